//! What the runs of one drive come down to.

use super::facts::{DAY_S, Facts};
use super::standing::Standing;
use imbrex_core::operation::Cause;
use imbrex_core::units::BLOCK_BYTES;
use imbrex_report::{Run, Series};
use serde::Serialize;

/// A log is full when so much of it is in use. Series have means of their buckets, and a drive begins to clean
/// for want of room a little before the last entry is taken.
const FULL: f64 = 0.99;

/// A log that keeps less than this share of what the second half of the rounds appends is not about to fill: what
/// is written again frees its own room, or bands are cleaned in time.
const KEPT_SHARE_MIN: f64 = 0.05;

/// A request that takes longer is a stall: Linux gives a command of a disk up after 30 s, when nobody has
/// changed `/sys/block/DISK/device/timeout`.
pub(super) const STALL_MS: f64 = 30_000.0;

const BYTES_PER_MIB: f64 = 1024.0 * 1024.0;

/// What becomes of a workload on a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The drive answers in time.
    KeepsUp,
    /// It does, but single requests wait for more than 30 s.
    Stalls,
    /// It does in one round, and not when the rounds go on.
    FallsBehindLater,
    /// It does not, in the first round.
    FallsBehind,
}

/// How requests were served that were issued at their time stamps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Served {
    /// Mean response time.
    pub mean_ms: Option<f64>,
    /// The response time that one request of a thousand exceeds.
    pub p99_9_ms: Option<f64>,
    /// The longest response time.
    pub longest_ms: Option<f64>,
    /// From the last arrival to the last answer.
    pub behind_s: f64,
    /// As `keeps_up` of reports.
    pub keeps_up: bool,
    /// Bands that were rewritten meanwhile.
    pub bands_rewritten: u64,
    /// What makes the run again.
    pub command: String,
}

impl Served {
    /// That of a run in open loop.
    pub(super) fn of(run: &Run, command: String) -> Served {
        let response = run.costs.response_ms;
        Served {
            mean_ms: response.mean,
            p99_9_ms: response.p99_9,
            longest_ms: response.max,
            behind_s: run.costs.behind_s().unwrap_or_default(),
            keeps_up: run.costs.keeps_up == Some(true),
            bands_rewritten: run.rewrites.bands_rewritten,
            command,
        }
    }

    pub(super) fn stalls(&self) -> bool {
        self.longest_ms.is_some_and(|longest| longest > STALL_MS)
    }
}

/// The workload several times over, at its time stamps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Over {
    /// How many times.
    pub rounds: u32,
    /// How all of it was served.
    #[serde(flatten)]
    pub served: Served,
    /// Share of the log in use at the end.
    pub log_fill: f64,
    /// When the log was full for the first time, in seconds from the first request. Beyond the rounds it is what the
    /// second half of them makes likely; null where the log does not grow.
    pub log_full_after_s: Option<f64>,
}

impl Over {
    /// That of a run in open loop.
    pub(super) fn of(rounds: u32, run: &Run, command: String) -> Over {
        let fill = &run.figures.persistent_cache_fill;
        Over {
            rounds,
            served: Served::of(run, command),
            log_fill: end_of(fill),
            log_full_after_s: full_after_s(fill, appended_share(run)),
        }
    }
}

/// The workload back to back, for as long as it takes to fill the log and go on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sustained {
    /// Rounds of the workload.
    pub rounds: u32,
    /// Host writes in the second half of the rounds, with the reads among them and one request at a time.
    pub write_mib_per_s: f64,
    /// Bands were rewritten, or the log does not grow any more because what is in it is written again, or there is
    /// none: the rate holds for good.
    pub is_for_good: bool,
    /// What makes the run again.
    pub command: String,
}

/// What cleaning costs a drive, by what it cost with requests back to back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cleaning {
    /// Hours that the drive must clean in each day for what is written in one.
    pub needed_h_per_day: f64,
    /// Hours of each day in which the requests as recorded leave the drive alone.
    pub idle_h_per_day: f64,
}

/// A drive and what becomes of the workload on it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DriveVerdict {
    /// Name in the library, or path.
    pub drive: String,
    /// Vendor and model.
    pub model: String,
    /// Whether it has a log and bands.
    pub is_shingled: bool,
    /// How far its figures can be trusted.
    pub standing: Standing,
    /// What becomes of the workload.
    pub outcome: Outcome,
    /// One round at the time stamps, on the drive as it left the factory.
    pub as_recorded: Served,
    /// Several rounds; absent where the first has decided, and for drives without a log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<Over>,
    /// Rounds back to back.
    pub sustained: Sustained,
    /// What cleaning takes; absent where nothing was cleaned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleaning: Option<Cleaning>,
}

/// The runs of a drive.
pub(super) struct DriveRuns<'a> {
    pub as_recorded: (&'a Run, String),
    pub over: Option<(u32, &'a Run, String)>,
    pub sustained: (u32, &'a Run, String),
}

impl DriveVerdict {
    pub(super) fn new(
        drive: &str,
        model: &str,
        runs: DriveRuns<'_>,
        facts: &Facts,
    ) -> DriveVerdict {
        let (once, command) = runs.as_recorded;
        let as_recorded = Served::of(once, command);
        let over = runs.over.map(|(rounds, run, command)| Over::of(rounds, run, command));
        let (rounds, run, command) = runs.sustained;
        let is_shingled = run.log.bands.is_some();
        let sustained = Sustained {
            rounds,
            write_mib_per_s: later_mib_per_s(run, rounds),
            is_for_good: !is_shingled || run.rewrites.bands_rewritten > 0 || stands(run, rounds),
            command,
        };
        DriveVerdict {
            drive: drive.to_string(),
            model: model.to_string(),
            is_shingled,
            standing: Standing::of(drive),
            outcome: outcome_of(&as_recorded, over.as_ref()),
            as_recorded,
            over,
            sustained,
            cleaning: cleaning_of(once, run, facts),
        }
    }

    /// True when what is said of the drive leaves cleaning out.
    pub fn excludes_cleaning(&self) -> bool {
        let last = self.over.as_ref().map_or(&self.as_recorded, |over| &over.served);
        self.is_shingled && last.bands_rewritten == 0
    }
}

/// By the longest run at the time stamps.
fn outcome_of(once: &Served, over: Option<&Over>) -> Outcome {
    let over = over.map(|over| &over.served);
    match () {
        () if !once.keeps_up => Outcome::FallsBehind,
        () if over.is_some_and(|over| !over.keeps_up) => Outcome::FallsBehindLater,
        () if once.stalls() || over.is_some_and(Served::stalls) => Outcome::Stalls,
        () => Outcome::KeepsUp,
    }
}

fn end_of(fill: &Series) -> f64 {
    fill.values.last().copied().unwrap_or_default()
}

/// What a run has appended to its log, over what the log holds.
fn appended_share(run: &Run) -> f64 {
    let capacity = run.log.persistent_cache_bytes.unwrap_or_default().max(1);
    run.log.persistent_cache_bytes_appended as f64 / capacity as f64
}

/// Whether the log of a run of several rounds does not grow any more.
fn stands(run: &Run, rounds: u32) -> bool {
    let fill = &run.figures.persistent_cache_fill;
    rounds > 1 && full_after_s(fill, appended_share(run)).is_none()
}

/// When a log is full: the first bucket that is, or, where none is, the time at which it will be if it goes on to
/// grow as in the second half of a run that appends so many times what it holds.
fn full_after_s(fill: &Series, appended_share: f64) -> Option<f64> {
    if let Some(full) = fill.values.iter().position(|used| *used >= FULL) {
        return Some(full as f64 * fill.bucket_s);
    }
    let end = end_of(fill);
    let half = fill.values.len() / 2;
    let growth = end - fill.values.get(half)?;
    let span_s = (fill.values.len() - 1 - half) as f64 * fill.bucket_s;
    let least = appended_share / 2.0 * KEPT_SHARE_MIN;
    (growth > least && span_s > 0.0).then(|| {
        let end_s = (fill.values.len() - 1) as f64 * fill.bucket_s;
        end_s + (1.0 - end) / growth * span_s
    })
}

/// Host writes a second in the second half of the rounds: from when those of the first half were all answered.
fn later_mib_per_s(run: &Run, rounds: u32) -> f64 {
    let rates = &run.figures.write_mib_per_s;
    let (buckets, end_s) = (rates.values.len(), run.costs.finish_s);
    // The last bucket ends where the run does.
    let width_s = |index: usize| match index + 1 == buckets {
        true => (end_s - index as f64 * rates.bucket_s).max(0.0),
        false => rates.bucket_s,
    };
    let written = |index: usize| rates.values[index] * width_s(index);
    let total: f64 = (0..buckets).map(written).sum();
    let first_rounds = f64::from(rounds - rounds / 2) / f64::from(rounds);
    let mut before = match rounds {
        1 => 0.0,
        _ => total * first_rounds,
    };
    let later = total - before;
    let mut from_s = 0.0;
    for index in 0..buckets {
        let here = written(index);
        if here > before {
            from_s += width_s(index) * (before / here);
            break;
        }
        before -= here;
        from_s += width_s(index);
    }
    match end_s > from_s {
        true => later / (end_s - from_s),
        false => 0.0,
    }
}

/// What cleaning takes, for what is written in a day. What is still in the log was not cleaned for yet.
fn cleaning_of(once: &Run, back_to_back: &Run, facts: &Facts) -> Option<Cleaning> {
    let per_day = facts.write_bytes_per_day?;
    let cleaning_s = |run: &Run| -> f64 {
        run.disks.iter().map(|disk| disk.busy_time_by_cause_s[Cause::Cleaning]).sum()
    };
    let of_nodes = |name: &str| -> u64 {
        back_to_back.nodes.values().filter_map(|counts| counts.get(name)).sum()
    };
    let appended = of_nodes("persistent_cache_appended_blocks");
    let freed = appended.saturating_sub(of_nodes("persistent_cache_live_blocks"));
    let host_blocks = back_to_back.host.write_blocks;
    if back_to_back.rewrites.bands_rewritten == 0 || freed == 0 || host_blocks == 0 {
        return None;
    }
    let share_appended = appended as f64 / host_blocks as f64;
    let appended_per_day = per_day / BLOCK_BYTES as f64 * share_appended;
    let busy_s: f64 = once.disks.iter().map(|disk| disk.busy_time_s).sum();
    let busy = (busy_s - cleaning_s(once)) / once.costs.finish_s.max(facts.duration_s);
    Some(Cleaning {
        needed_h_per_day: cleaning_s(back_to_back) / freed as f64 * appended_per_day / 3600.0,
        idle_h_per_day: (1.0 - busy).max(0.0) * DAY_S / 3600.0,
    })
}

/// MiB a second that a workload writes as recorded.
pub(super) fn mib_per_s(bytes_per_day: f64) -> f64 {
    bytes_per_day / DAY_S / BYTES_PER_MIB
}

#[cfg(test)]
mod tests {
    use super::*;
    use imbrex_report::{ByCause, DiskUse, ReplayMode};

    fn series(bucket_s: f64, values: &[f64]) -> Series {
        Series { bucket_s, values: values.to_vec() }
    }

    #[test]
    fn a_log_is_full_in_the_first_bucket_that_is_or_when_it_goes_on_to_grow() {
        let after_s = |values: &[f64], appended| full_after_s(&series(10.0, values), appended);
        assert_eq!(after_s(&[0.2, 0.6, 0.995, 0.9], 2.0), Some(20.0));
        // 0.2 in 20 s, and 0.4 are missing at 40 s.
        assert_eq!(after_s(&[0.2, 0.3, 0.4, 0.5, 0.6], 0.5), Some(80.0));
        assert_eq!(after_s(&[0.2, 0.6, 0.6, 0.6, 0.6], 2.0), None, "it is cleaned");
        assert_eq!(after_s(&[0.2, 0.6, 0.6, 0.6, 0.64], 2.0), None, "it keeps 4 % of what comes");
        assert_eq!(after_s(&[], 2.0), None);
    }

    #[test]
    fn the_rate_is_that_of_the_second_half_of_the_rounds() {
        let mut run = Run::new("a", ReplayMode::ClosedLoop { depth: 1 });
        // 100 MiB in the first 10 s, then 10 MiB/s: 200 MiB in 20 s.
        run.figures.write_mib_per_s = series(5.0, &[10.0, 10.0, 5.0, 5.0, 5.0, 5.0]);
        run.costs.finish_s = 30.0;
        assert_eq!(later_mib_per_s(&run, 2), 5.0);
        // Three rounds: the last of them is the second half.
        let rate = later_mib_per_s(&run, 3);
        assert!((rate - 5.0).abs() < 1e-9, "{rate}");
        let whole = later_mib_per_s(&run, 1);
        assert!((whole - 200.0 / 30.0).abs() < 1e-9, "{whole}");
        // The last bucket may be cut.
        run.costs.finish_s = 27.5;
        assert!((later_mib_per_s(&run, 1) - 187.5 / 27.5).abs() < 1e-9);
    }

    fn served(keeps_up: bool, longest_ms: f64) -> Served {
        Served {
            mean_ms: Some(1.0),
            p99_9_ms: Some(2.0),
            longest_ms: Some(longest_ms),
            behind_s: 0.0,
            keeps_up,
            bands_rewritten: 0,
            command: String::new(),
        }
    }

    #[test]
    fn the_outcome_is_that_of_the_longest_run() {
        let over = |keeps_up, longest_ms| Over {
            rounds: 4,
            served: served(keeps_up, longest_ms),
            log_fill: 0.5,
            log_full_after_s: None,
        };
        let once = served(true, 10.0);
        assert_eq!(outcome_of(&once, None), Outcome::KeepsUp);
        assert_eq!(outcome_of(&once, Some(&over(true, 29_000.0))), Outcome::KeepsUp);
        assert_eq!(outcome_of(&once, Some(&over(true, 31_000.0))), Outcome::Stalls);
        assert_eq!(outcome_of(&once, Some(&over(false, 31_000.0))), Outcome::FallsBehindLater);
        assert_eq!(outcome_of(&served(false, 10.0), None), Outcome::FallsBehind);
    }

    fn disk(busy_time_s: f64, cleaning_s: f64) -> DiskUse {
        let nothing = ByCause::of(|_| 0);
        let by_cause = |cause| if cause == Cause::Cleaning { cleaning_s } else { 0.0 };
        DiskUse {
            name: String::new(),
            drive: String::new(),
            drive_sha256: None,
            write_cache: true,
            reads: 0,
            writes: 0,
            read_bytes: nothing,
            written_bytes: nothing,
            write_amplification: ByCause::of(|_| None),
            seek_time_s: 0.0,
            busy_time_s,
            busy_time_by_cause_s: ByCause::of(by_cause),
            areas: vec![],
        }
    }

    #[test]
    fn cleaning_is_counted_for_what_was_freed() {
        let mut run = Run::new("a", ReplayMode::ClosedLoop { depth: 1 });
        // 4000 blocks written, of which 1000 went straight home; 1000 of the others are still in the log: 2000 took
        // 100 s of cleaning.
        run.host.write_blocks = 4000;
        let counts =
            [("persistent_cache_appended_blocks", 3000), ("persistent_cache_live_blocks", 1000)];
        let counts = counts.map(|(name, count)| (name.to_string(), count));
        run.nodes.insert("translation".to_string(), counts.into());
        run.rewrites.bands_rewritten = 7;
        run.disks = vec![disk(100.0, 100.0)];
        let mut once = Run::new("a", ReplayMode::OpenLoop { speed: 1.0 });
        once.costs.finish_s = 1000.0;
        once.disks = vec![disk(260.0, 10.0)];
        let facts = Facts {
            requests: 1,
            duration_s: 1000.0,
            write_bytes: 1,
            touched_bytes: 1,
            write_bytes_per_day: Some(96_000.0 * 4096.0),
        };
        // 96,000 blocks a day, of which 72,000 go to the log, at 50 s for 1000: an hour. Three quarters of the day are
        // idle.
        let cleaning = cleaning_of(&once, &run, &facts).expect("bands were rewritten");
        assert!((cleaning.needed_h_per_day - 1.0).abs() < 1e-5, "{cleaning:?}");
        assert!((cleaning.idle_h_per_day - 18.0).abs() < 1e-9, "{cleaning:?}");
        run.rewrites.bands_rewritten = 0;
        assert_eq!(cleaning_of(&once, &run, &facts), None);
    }
}
