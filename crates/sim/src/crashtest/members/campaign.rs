//! Cases over many seeds.

use super::case::{Case, First, Outcome, Play, mode_of};
use super::happening::{Happened, Happening};
use super::lives::Lives;
use crate::crashtest::campaign::{Failure, in_parallel, tries_to_find};
use crate::crashtest::subject::{Member, Subject};
use crate::crashtest::trial::Setting;
use crate::progress::Progress;
use imbrex_core::planted::PlantedBug;
use imbrex_core::rng::Rng;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

/// Cases of each seed of a short campaign: more seeds mean more different settings.
pub const CASES: u64 = 50;
/// Draws of a case before one is taken that was there before.
const DRAWS_MAX: u64 = 20;

/// What a campaign is to do.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Cases of each seed.
    pub cases: u64,
    /// The bug that is planted.
    pub plant: Option<PlantedBug>,
}

/// What has come of the cases of one happening.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    /// Cases that went as they should.
    pub cases: u64,
    /// The start was refused.
    pub refused: u64,
    /// Everything was served.
    pub whole: u64,
    /// Some blocks could not be read.
    pub errors: u64,
    /// The disk as it was before was refused.
    pub back_refused: u64,
}

impl Counts {
    fn count(&mut self, outcome: Outcome) {
        self.cases += 1;
        self.refused += u64::from(outcome.first == First::Refused);
        self.whole += u64::from(outcome.first == First::Whole);
        self.errors += u64::from(outcome.first == First::Errors);
        self.back_refused += u64::from(outcome.is_back_refused);
    }

    fn add(&mut self, other: Counts) {
        self.cases += other.cases;
        self.refused += other.refused;
        self.whole += other.whole;
        self.errors += other.errors;
        self.back_refused += other.back_refused;
    }
}

/// What has come of a campaign, or of one seed of it.
#[derive(Clone, Default, Debug)]
pub struct Totals {
    /// Cases tried.
    pub cases: u64,
    /// Those that differ from every other: in the cut, in what happens or in where.
    pub distinct: u64,
    /// By happening.
    pub by_happening: [Counts; Happening::ALL.len()],
    /// What failed.
    pub failures: Vec<Failure>,
}

impl Totals {
    /// Adds what another seed has found.
    pub fn add(&mut self, other: Totals) {
        self.cases += other.cases;
        self.distinct += other.distinct;
        let pairs = self.by_happening.iter_mut().zip(other.by_happening);
        pairs.for_each(|(mine, more)| mine.add(more));
        self.failures.extend(other.failures);
    }
}

/// The cases of one seed.
pub struct SeedCases<'a> {
    setting: Setting<'a>,
    members: Vec<Member>,
    lives: Lives,
    possible: Vec<Happening>,
    seen: HashSet<u64>,
}

impl<'a> SeedCases<'a> {
    /// Lives through the lives of a seed.
    ///
    /// # Errors
    /// When one of them is not in order.
    pub fn new(
        subject: &'a Subject,
        seed: u64,
        plant: Option<PlantedBug>,
    ) -> Result<SeedCases<'a>, Failure> {
        let setting = Setting { subject, seed, plant };
        let members = (subject.build)(seed).members;
        let possible = Happening::ALL.into_iter();
        let possible = possible.filter(|it| it.is_possible(&members)).collect();
        let lives = Lives::make(setting).map_err(|what| Failure { seed, point: None, what })?;
        Ok(SeedCases { setting, members, lives, possible, seen: HashSet::new() })
    }

    /// The case with a number, which depends on those before it only where it would be one of them.
    pub fn case(&mut self, number: u64) -> Case {
        let mut rng = Rng::new(self.setting.seed, 2000 + number);
        let mut draws = 0;
        loop {
            draws += 1;
            let case = self.draw(number, &mut rng);
            let mut hasher = DefaultHasher::new();
            case.cut.hash(&mut hasher);
            let Happened { happening, touched, place, .. } = &case.happened;
            (happening, touched, place).hash(&mut hasher);
            if self.seen.insert(hasher.finish()) || draws >= DRAWS_MAX {
                return case;
            }
        }
    }

    fn draw(&self, number: u64, rng: &mut Rng) -> Case {
        let turns = self.possible.len() as u64;
        loop {
            let happening = self.possible[(number % turns) as usize];
            let mode = mode_of(happening, number / turns);
            let cut = self.lives.draw(mode, rng);
            let image = self.lives.image(&cut);
            let happened = Happened::draw(happening, &image, &self.lives, &self.members, rng);
            if let Some(happened) = happened {
                let seed = rng.next_u64();
                return Case { mode, cut, happened, seed };
            }
        }
    }

    /// Plays the case with a number, behind those before it, which are drawn alone.
    ///
    /// # Errors
    /// When it fails.
    pub fn try_alone(&mut self, number: u64, totals: &mut Totals) -> Result<(), Failure> {
        (0..number).for_each(|before| {
            self.case(before);
        });
        self.try_case(number, totals)
    }

    /// Plays the case with a number and counts it.
    ///
    /// # Errors
    /// When it fails.
    pub fn try_case(&mut self, number: u64, totals: &mut Totals) -> Result<(), Failure> {
        let case = self.case(number);
        totals.cases += 1;
        totals.distinct = self.seen.len() as u64;
        let play =
            Play { setting: self.setting, members: &self.members, lives: &self.lives, case: &case };
        match play.play() {
            Ok(outcome) => {
                totals.by_happening[case.happened.happening as usize].count(outcome);
                Ok(())
            }
            Err(what) => Err(Failure {
                seed: self.setting.seed,
                point: Some(number),
                what: format!("mode {}, log index {}, {what}", case.mode.name(), case.cut.index),
            }),
        }
    }
}

/// Plays the cases of a seed up to the first that fails.
pub fn run_seed(subject: &Subject, seed: u64, options: Options) -> Totals {
    let mut totals = Totals::default();
    let mut cases = match SeedCases::new(subject, seed, options.plant) {
        Ok(cases) => cases,
        Err(failure) => {
            totals.cases = 1;
            totals.failures.push(failure);
            return totals;
        }
    };
    for number in 0..options.cases {
        if let Err(failure) = cases.try_case(number, &mut totals) {
            totals.failures.push(failure);
            break;
        }
    }
    totals
}

/// Runs seeds on several threads. The result does not depend on how many.
pub fn run_seeds(
    subject: &Subject,
    seeds: Range<u64>,
    options: Options,
    jobs: usize,
    progress: Progress<'_>,
) -> Totals {
    let mut totals = Totals::default();
    let found = in_parallel(seeds, jobs, progress, |seed| run_seed(subject, seed, options));
    found.into_iter().for_each(|one| totals.add(one));
    totals
}

/// How many cases it takes to find a planted bug, of at most `limit`; no failure when that many do not.
pub fn cases_to_find(subject: &Subject, bug: PlantedBug, limit: u64) -> (u64, Option<Failure>) {
    tries_to_find(CASES, limit, |seed, cases| {
        let options = Options { cases, plant: Some(bug) };
        let totals = run_seed(subject, seed, options);
        (totals.cases, totals.failures)
    })
}
