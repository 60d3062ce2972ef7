//! Cases over many seeds.

use super::case::Case;
use super::reached::Reached;
use super::recorded::Recorded;
use super::site::{Site, Wrong};
use super::story::Phase;
use crate::crashtest::campaign::{Failure, in_parallel, tries_to_find};
use crate::crashtest::image::Mode;
use crate::crashtest::stacks::SearchedStack;
use crate::crashtest::trial::{catching, is_slip};
use crate::progress::Progress;
use imbrex_core::planted::PlantedBug;
use std::collections::HashSet;
use std::ops::Range;

/// Cases of each seed of a short campaign: more seeds mean more different settings and lives.
pub const CASES: u64 = 12;
/// Draws of a case before one is taken that was there before.
const DRAWS_MAX: u64 = 20;
/// The least share of the cases that each pair of a member and a phase must have, in hundredths; where there
/// are so many pairs that this is more than half of an even share, that half.
const PAIR_PERCENT_MIN: u64 = 2;

/// What a campaign is to do.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Cases of each seed.
    pub cases: u64,
    /// What is wrong on purpose.
    pub wrong: Wrong,
}

/// What has come of a campaign, or of one seed of it.
#[derive(Clone, Default, Debug)]
pub struct Totals {
    /// What the cases have reached.
    pub reached: Reached,
    /// What failed.
    pub failures: Vec<Failure>,
}

impl Totals {
    /// Adds what another seed has found.
    pub fn add(&mut self, other: Totals) {
        self.reached.add(&other.reached);
        self.failures.extend(other.failures);
    }

    /// Pairs of a member and a phase that have less than their share of the cases.
    pub fn pairs_below_share(&self) -> Vec<String> {
        let Reached { cases, by_pair, .. } = &self.reached;
        let mut members: Vec<&String> = by_pair.keys().map(|(member, _)| member).collect();
        members.dedup();
        let mut phases: Vec<&str> = by_pair.keys().map(|(_, phase)| *phase).collect();
        phases.sort_unstable();
        phases.dedup();
        let pairs = (members.len() * phases.len()) as u64;
        let is_below =
            |count: u64| count * 100 < cases * PAIR_PERCENT_MIN && count * 2 * pairs < *cases;
        let count = |member: &String, phase: &'static str| {
            by_pair.get(&(member.clone(), phase)).copied().unwrap_or(0)
        };
        let mut below = Vec::new();
        for member in members {
            for phase in Phase::ALL.map(Phase::name) {
                let found = count(member, phase);
                if phases.contains(&phase) && is_below(found) {
                    below.push(format!("{member} in {phase}: {found} of {cases} cases"));
                }
            }
        }
        below
    }
}

/// The cases of one seed, which are those of one life.
struct SeedCases<'a> {
    recorded: Recorded<'a>,
    phases: Vec<Phase>,
    seen: HashSet<u64>,
}

impl<'a> SeedCases<'a> {
    fn new(site: &'a Site) -> Result<SeedCases<'a>, String> {
        let port = (site.seed % site.array.ports.len() as u64) as usize;
        let recorded = Recorded::first_life(site, port)?;
        Ok(SeedCases { recorded, phases: Phase::of(&site.array), seen: HashSet::new() })
    }

    /// The case with a number, which depends on those before it only where it would be one of them.
    fn case(&mut self, number: u64) -> Case {
        let turns = self.phases.len() as u64;
        let mode = (number / turns + self.recorded.site.seed) % (Mode::ALL.len() as u64 - 1);
        let mode = Mode::ALL[mode as usize];
        let mut draw = 0;
        loop {
            draw += 1;
            // The life may have none of the phase: then any other that it has.
            let mut phases = (0..turns).map(|by| self.phases[((number + by) % turns) as usize]);
            let case = phases.find_map(|phase| self.recorded.draw(number, draw, phase, mode));
            let case = case.expect("a life has a first index");
            if self.seen.insert(case.identity()) || draw >= DRAWS_MAX {
                return case;
            }
        }
    }

    fn try_case(&mut self, number: u64, reached: &mut Reached) -> Result<(), String> {
        let case = self.case(number);
        reached.distinct = self.seen.len() as u64;
        self.recorded.try_case(case, reached)
    }
}

/// Plays cases of a seed. Those whose number is not in `played` are drawn alone.
fn run_some(
    stack: &SearchedStack,
    seed: u64,
    cases: Range<u64>,
    played: impl Fn(u64) -> bool,
    wrong: Wrong,
) -> Totals {
    let mut totals = Totals::default();
    let mut at = None;
    let reached = &mut totals.reached;
    let work = || {
        let site = Site::new(stack, seed, wrong)?;
        let site = site.ok_or("accepted: a stack with an array that can be rebuilt")?;
        let mut of_seed = SeedCases::new(&site)?;
        reached.lives += 1;
        reached.ends_lost += u64::from(of_seed.recorded.ends_lost);
        reached.returned += u64::from(of_seed.recorded.has_returned);
        for number in cases {
            at = Some(number);
            match played(number) {
                true => of_seed.try_case(number, reached)?,
                false => drop(of_seed.case(number)),
            }
        }
        Ok(())
    };
    let result = catching(work).and_then(|result| result);
    if let Err(what) = result {
        totals.failures.push(Failure { seed, point: at, what });
    }
    totals
}

/// Plays the cases of a seed up to the first that fails.
pub fn run_seed(stack: &SearchedStack, seed: u64, options: Options) -> Totals {
    run_some(stack, seed, 0..options.cases, |_| true, options.wrong)
}

/// Plays one case of a seed, behind those before it, which are drawn alone.
pub fn run_case(stack: &SearchedStack, seed: u64, number: u64, options: Options) -> Totals {
    run_some(stack, seed, 0..number + 1, |it| it == number, options.wrong)
}

/// Runs seeds on several threads. The result does not depend on how many.
pub fn run_seeds(
    stack: &SearchedStack,
    seeds: Range<u64>,
    options: Options,
    jobs: usize,
    progress: Progress<'_>,
) -> Totals {
    let mut totals = Totals::default();
    let found = in_parallel(seeds, jobs, progress, |seed| run_seed(stack, seed, options));
    found.into_iter().for_each(|one| totals.add(one));
    totals
}

/// How many cases it takes until something that is wrong is found, of at most `limit`; no failure when that
/// many do not. What fails without it too counts for nothing, nor does a slip of the code.
pub fn cases_to_find(stack: &SearchedStack, wrong: Wrong, limit: u64) -> (u64, Option<Failure>) {
    tries_to_find(CASES, limit, |seed, cases| {
        let run = |wrong| run_seed(stack, seed, Options { cases, wrong });
        let mut totals = run(wrong);
        totals.failures.retain(|failure| !is_slip(&failure.what));
        if !totals.failures.is_empty() && !run(Wrong::default()).failures.is_empty() {
            totals.failures.clear();
        }
        (totals.reached.cases.max(1), totals.failures)
    })
}

/// The bugs that are looked for on arrays of a kind.
pub fn bugs(kind: &str) -> impl Iterator<Item = PlantedBug> + use<> {
    let is_copies = kind == "raid1";
    let only_with_parity = [
        PlantedBug::ArrayRowChangedUnrecorded,
        PlantedBug::ArrayParityFromCorruptBlock,
        PlantedBug::ArraySlotReusedEarly,
        PlantedBug::ArrayCollectsInPlace,
        PlantedBug::ArrayCollectsDegraded,
        PlantedBug::ArrayMissedWriteForgotten,
        PlantedBug::ArrayUnflushedWriteForgotten,
    ];
    // Arrays with parity mark no regions. What they promise waits for a flush of the journal, which has the record of
    // a loss: no gate that holds answers for that alone can be missed.
    let only_with_copies = [
        PlantedBug::ArrayAnswersBeforeLossRecorded,
        PlantedBug::LostCopyUnrecorded,
        PlantedBug::ArrayRegionClearedEarly,
        PlantedBug::ArrayRegionWrittenUnrecorded,
    ];
    let all = PlantedBug::ALL.iter().copied();
    let all = all.filter(|bug| bug.is_of_arrays() || bug.is_of_copies());
    all.filter(move |bug| match is_copies {
        true => !only_with_parity.contains(bug),
        false => !only_with_copies.contains(bug),
    })
}
