//! A campaign: for each seed one recorded workload and many points.

use super::coverage::{Coverage, JournalActivity, activity};
use super::fault_points::{self, FaultClass, Faulty};
use super::image::{Cut, EXHAUSTIVE_PENDING_MAX, EXHAUSTIVE_PENDING_SOAK, Mode};
use super::recorded::{Afterwards, PointReport, Recorded, recover_and_judge};
use super::subject::{Member, Subject};
use super::trial::Setting;
use super::workload::{self, Step};
use crate::progress::{Pieces, Progress};
use imbrex_core::planted::PlantedBug;
use imbrex_core::rng::Rng;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Requests of a seed's workload.
pub const STEPS: usize = 320;
/// Points of a seed.
pub const POINTS: u64 = 500;
/// Every so many points of a mode one has its recovery crashed.
const DEEP_EVERY: u64 = 7;
/// Which of them.
const DEEP_AT: u64 = 6;
/// Most requests that are served after a recovery.
const STEPS_AFTER_MAX: u64 = 40;
/// Points in a turn: one of each mode, then faults.
pub(super) const TURN: u64 = Mode::ALL.len() as u64 + FAULTS_OF_TURN;
/// Faults in a turn.
const FAULTS_OF_TURN: u64 = 2;

/// What a campaign is to do.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Points of each seed.
    pub points: u64,
    /// Crashes of this mode alone.
    pub mode: Option<Mode>,
    /// Larger windows are tried in full.
    pub soak: bool,
    /// The bug that is planted.
    pub plant: Option<PlantedBug>,
}

/// A point that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The number of the point; `None` when the workload failed before any.
    pub point: Option<u64>,
    /// What went wrong.
    pub what: String,
}

/// What has come of a campaign, or of one seed of it.
#[derive(Clone, Default, Debug)]
pub struct Totals {
    /// Points tried.
    pub points: u64,
    /// By mode.
    pub by_mode: [u64; Mode::ALL.len()],
    /// By class of fault.
    pub by_fault: [u64; FaultClass::ALL.len()],
    /// Points with a crashed recovery.
    pub deep: u64,
    /// Points that went on after a recovery.
    pub went_on: u64,
    /// Blocks read back and judged after crashes.
    pub blocks_judged: u64,
    /// What was pending at the cuts.
    pub coverage: Coverage,
    /// How busy each seed's workload was.
    pub runs: Vec<RunActivity>,
    /// What failed.
    pub failures: Vec<Failure>,
}

/// How busy a seed's workload was.
#[derive(Clone, Debug)]
pub struct RunActivity {
    /// The seed.
    pub seed: u64,
    /// The journal of each member.
    pub journals: Vec<JournalActivity>,
    /// Bands rewritten.
    pub bands_rewritten: u64,
}

impl Totals {
    /// Adds what another seed has found.
    pub fn add(&mut self, other: Totals) {
        self.points += other.points;
        let modes = self.by_mode.iter_mut().zip(other.by_mode);
        modes.for_each(|(mine, more)| *mine += more);
        let faults = self.by_fault.iter_mut().zip(other.by_fault);
        faults.for_each(|(mine, more)| *mine += more);
        self.deep += other.deep;
        self.went_on += other.went_on;
        self.blocks_judged += other.blocks_judged;
        self.coverage.add(other.coverage);
        self.runs.extend(other.runs);
        self.failures.extend(other.failures);
    }
}

/// What a point is.
#[derive(Clone, Debug)]
pub enum Point {
    /// The power goes.
    Crash {
        /// Which pending writes reach the medium.
        mode: Mode,
        /// When, and which in particular.
        cut: Cut,
        /// What happens after that.
        afterwards: Afterwards,
    },
    /// Something breaks.
    Fault {
        /// What.
        class: FaultClass,
        /// Decides the rest.
        seed: u64,
    },
}

/// The points of one seed.
pub struct SeedCampaign<'a> {
    /// The stack, the seed and the planted bug.
    pub setting: Setting<'a>,
    /// The members of the stack.
    pub members: Vec<Member>,
    /// The workload that is crashed.
    pub recorded: Recorded,
    options: Options,
    faulty: Option<Faulty<'a>>,
    exhaustive: Vec<(u64, u64)>,
}

/// The workload of a seed.
pub fn steps_of(subject: &Subject, seed: u64) -> Vec<Step> {
    let shape = (subject.build)(seed).shape;
    workload::ordinary(seed, STEPS, shape, 0)
}

impl<'a> SeedCampaign<'a> {
    /// Runs the workload of a seed once.
    ///
    /// # Errors
    /// When the workload itself fails.
    pub fn new(
        subject: &'a Subject,
        seed: u64,
        options: Options,
        steps: &[Step],
    ) -> Result<SeedCampaign<'a>, Failure> {
        let setting = Setting { subject, seed, plant: options.plant };
        let failed = |what| Failure { seed, point: None, what };
        let recorded = Recorded::make(setting, steps).map_err(failed)?;
        let faulty = match options.mode {
            Some(_) => None,
            None => {
                let steps = &steps[..steps.len().min(fault_points::STEPS)];
                Some(Faulty::make(setting, steps).map_err(failed)?)
            }
        };
        let pending_max = match options.soak {
            true => EXHAUSTIVE_PENDING_SOAK,
            false => EXHAUSTIVE_PENDING_MAX,
        };
        let share = match options.mode {
            Some(Mode::Exhaustive) => options.points,
            _ => options.points / TURN + 1,
        };
        let exhaustive = recorded.exhaustive(seed, pending_max, share as usize);
        Ok(SeedCampaign {
            members: (subject.build)(seed).members,
            setting,
            options,
            recorded,
            faulty,
            exhaustive,
        })
    }

    /// How busy the workload was.
    pub fn activity(&self) -> RunActivity {
        RunActivity {
            seed: self.setting.seed,
            journals: activity(&self.recorded.log(), &self.members),
            bands_rewritten: self.recorded.bands_rewritten,
        }
    }

    /// The point with a number.
    pub fn point(&self, point: u64) -> Point {
        let mut rng = Rng::new(self.setting.seed, 1000 + point);
        let (turn, place) = (point / TURN, point % TURN);
        let (mode, turn) = match (self.options.mode, Mode::ALL.get(place as usize)) {
            (Some(mode), _) => (mode, point),
            (None, Some(mode)) => (*mode, turn),
            (None, None) => {
                let number = turn * FAULTS_OF_TURN + place - Mode::ALL.len() as u64;
                return Point::Fault {
                    class: FaultClass::ALL[(number % FaultClass::ALL.len() as u64) as usize],
                    seed: rng.next_u64(),
                };
            }
        };
        let (mode, cut) = match (mode, self.exhaustive.get(turn as usize)) {
            (Mode::Exhaustive, Some((index, subset))) => {
                let log = self.recorded.log();
                let cut = Cut::draw(&log, &self.recorded.base, *index, mode, *subset);
                (mode, cut)
            }
            // Every subset of every window that is small enough has had its turn.
            (Mode::Exhaustive, None) => (Mode::Subset, self.recorded.draw(Mode::Subset, &mut rng)),
            _ => (mode, self.recorded.draw(mode, &mut rng)),
        };
        let afterwards = Afterwards {
            crashed_recoveries: match turn % DEEP_EVERY {
                DEEP_AT => 1 + rng.below(2),
                _ => 0,
            },
            steps: match turn % DEEP_EVERY {
                2 | 5 | DEEP_AT => 1 + rng.below(STEPS_AFTER_MAX) as usize,
                _ => 0,
            },
            seed: rng.next_u64(),
        };
        Point::Crash { mode, cut, afterwards }
    }

    /// Tries a point.
    ///
    /// # Errors
    /// What went wrong.
    pub fn outcome(&self, point: &Point) -> Result<PointReport, String> {
        match point {
            Point::Crash { mode, cut, afterwards } => {
                let image = cut.image(&self.recorded.log(), &self.recorded.base);
                let oracle = &self.recorded.oracle;
                recover_and_judge(self.setting, image, oracle, cut.index, *afterwards).map_err(
                    |what| format!("mode {}, log index {}: {what}", mode.name(), cut.index),
                )
            }
            Point::Fault { class, seed } => {
                let faulty = self.faulty.as_ref().expect("faults are part of this campaign");
                let mut rng = Rng::new(*seed, 53);
                faulty.try_class(*class, &self.recorded, &mut rng)?;
                Ok(PointReport::default())
            }
        }
    }

    /// Tries the point with a number and counts it.
    ///
    /// # Errors
    /// When it fails.
    pub fn try_point(&self, number: u64, totals: &mut Totals) -> Result<(), Failure> {
        let point = self.point(number);
        totals.points += 1;
        match &point {
            Point::Crash { mode, cut, afterwards } => {
                totals.by_mode[*mode as usize] += 1;
                totals.deep += u64::from(afterwards.crashed_recoveries > 0);
                totals.went_on += u64::from(afterwards.steps > 0);
                totals.coverage.count(cut, *mode, &self.recorded.log(), &self.members);
            }
            Point::Fault { class, .. } => totals.by_fault[*class as usize] += 1,
        }
        match self.outcome(&point) {
            Ok(report) => {
                totals.blocks_judged += report.blocks_judged;
                Ok(())
            }
            Err(what) => Err(Failure { seed: self.setting.seed, point: Some(number), what }),
        }
    }
}

/// Runs the points of a seed up to the first that fails.
pub fn run_seed(subject: &Subject, seed: u64, options: Options) -> Totals {
    let mut totals = Totals::default();
    let steps = steps_of(subject, seed);
    let campaign = match SeedCampaign::new(subject, seed, options, &steps) {
        Ok(campaign) => campaign,
        Err(failure) => {
            totals.points = 1;
            totals.failures.push(failure);
            return totals;
        }
    };
    totals.runs.push(campaign.activity());
    for point in 0..options.points {
        if let Err(failure) = campaign.try_point(point, &mut totals) {
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

/// What each seed comes to, on several threads, in the order of the seeds. `progress` hears of each.
pub fn in_parallel<T: Send>(
    seeds: Range<u64>,
    jobs: usize,
    progress: Progress<'_>,
    run: impl Fn(u64) -> T + Sync,
) -> Vec<T> {
    let next = AtomicU64::new(seeds.start);
    let total = usize::try_from(seeds.end - seeds.start).unwrap_or(usize::MAX);
    let pieces = Pieces::begin(progress, 0, total);
    let found = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if !seeds.contains(&seed) {
                        return;
                    }
                    let one = run(seed);
                    found.lock().expect("no holder panics").insert(seed, one);
                    pieces.end(&format!("seed {seed}"));
                }
            });
        }
    });
    let found = found.into_inner().expect("no holder panics");
    found.into_values().collect()
}

/// How many points it takes to find a planted bug, of at most `limit`; `None` when that many do
/// not. Half as many points a seed as the campaign has, so that `limit` covers the settings of twice
/// as many seeds: some bugs show with some settings only.
pub fn points_to_find(subject: &Subject, bug: PlantedBug, limit: u64) -> (u64, Option<Failure>) {
    tries_to_find(POINTS / 2, limit, |seed, points| {
        let options = Options { points, mode: None, soak: false, plant: Some(bug) };
        let totals = run_seed(subject, seed, options);
        (totals.points, totals.failures)
    })
}

/// How many tries it takes until one fails, of at most `limit`; no failure when that many do not. A
/// seed is `run` with so many of them at most, and answers how many it took, and what failed.
pub(super) fn tries_to_find(
    of_seed: u64,
    limit: u64,
    run: impl Fn(u64, u64) -> (u64, Vec<Failure>),
) -> (u64, Option<Failure>) {
    let mut tries = 0;
    for seed in 0.. {
        let (tried, failures) = run(seed, of_seed.min(limit - tries));
        tries += tried;
        if let Some(failure) = failures.into_iter().next() {
            return (tries, Some(failure));
        }
        if tries >= limit {
            break;
        }
    }
    (tries, None)
}
