//! A campaign: for each seed one recorded workload and many points.

use super::coverage::{Coverage, JournalActivity, activity};
use super::image::{Cut, EXHAUSTIVE_PENDING_MAX, EXHAUSTIVE_PENDING_SOAK, Mode};
use super::recorded::{Afterwards, Recorded, recover_and_judge};
use super::subject::{Member, Subject};
use super::trial::Setting;
use super::workload::{self, Step};
use imbrex_core::planted::PlantedBug;
use imbrex_core::rng::Rng;

/// Requests of a seed's workload.
pub const STEPS: usize = 320;
/// Every so many points of a mode one has its recovery crashed.
const DEPTH_EVERY: u64 = 9;
/// Most requests that are served after a recovery.
const STEPS_AFTER_MAX: u64 = 40;
/// Points of each kind in turn: the modes, then the faults.
const TURN: u64 = Mode::ALL.len() as u64;

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
    /// Points with a crashed recovery.
    pub deep: u64,
    /// Points that went on after a recovery.
    pub went_on: u64,
    /// Blocks read back and judged.
    pub blocks_judged: u64,
    /// What was pending at the cuts.
    pub coverage: Coverage,
    /// By seed and member how busy the journal was, and bands rewritten.
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
        self.deep += other.deep;
        self.went_on += other.went_on;
        self.blocks_judged += other.blocks_judged;
        self.coverage.add(other.coverage);
        self.runs.extend(other.runs);
        self.failures.extend(other.failures);
    }
}

/// The points of one seed.
pub struct SeedCampaign<'a> {
    setting: Setting<'a>,
    options: Options,
    members: Vec<Member>,
    recorded: Recorded,
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
        let setting = Setting {
            subject,
            seed,
            plant: options.plant,
        };
        let recorded = Recorded::make(setting, steps).map_err(|what| Failure {
            seed,
            point: None,
            what,
        })?;
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
            exhaustive,
        })
    }

    /// How busy the workload was.
    pub fn activity(&self) -> RunActivity {
        RunActivity {
            seed: self.setting.seed,
            journals: activity(&self.recorded.log(), self.members.len()),
            bands_rewritten: self.recorded.bands_rewritten,
        }
    }

    /// Tries one point.
    ///
    /// # Errors
    /// When it fails.
    pub fn try_point(&self, point: u64, totals: &mut Totals) -> Result<(), Failure> {
        let seed = self.setting.seed;
        let (mode, turn) = match self.options.mode {
            Some(mode) => (mode, point),
            None => (Mode::ALL[(point % TURN) as usize], point / TURN),
        };
        totals.points += 1;
        let mut rng = Rng::new(seed, 1000 + point);
        let cut = match (mode, self.exhaustive.get(turn as usize)) {
            (Mode::Exhaustive, Some((index, subset))) => {
                let log = self.recorded.log();
                Cut::draw(&log, &self.recorded.base, *index, mode, *subset)
            }
            (Mode::Exhaustive, None) => self.recorded.draw(Mode::Subset, &mut rng),
            _ => self.recorded.draw(mode, &mut rng),
        };
        let afterwards = Afterwards {
            crashed_recoveries: match turn % DEPTH_EVERY {
                7 => 1 + rng.below(2),
                _ => 0,
            },
            steps: match turn % DEPTH_EVERY {
                2 | 5 | 7 => 1 + rng.below(STEPS_AFTER_MAX) as usize,
                _ => 0,
            },
            seed: rng.next_u64(),
        };
        let log = self.recorded.log();
        totals.by_mode[mode as usize] += 1;
        totals.deep += u64::from(afterwards.crashed_recoveries > 0);
        totals.went_on += u64::from(afterwards.steps > 0);
        let subject = self.setting.subject;
        totals
            .coverage
            .count(&cut, mode, &log, subject, &self.members);
        let image = cut.image(&log, &self.recorded.base);
        let oracle = &self.recorded.oracle;
        match recover_and_judge(self.setting, image, oracle, cut.index, afterwards) {
            Ok(report) => {
                totals.blocks_judged += report.blocks_judged;
                Ok(())
            }
            Err(what) => Err(Failure {
                seed,
                point: Some(point),
                what: format!("mode {}, log index {}: {what}", mode.name(), cut.index),
            }),
        }
    }
}

/// Runs all points of a seed, or those before the first that fails.
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
