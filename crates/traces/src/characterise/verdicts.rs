//! Which kind of drive a workload suits, judged from the trace alone.
//!
//! A verdict is made of rules. A rule compares one number of the trace with a threshold and says for or against. Every rule for:
//! well; every rule against: badly; otherwise: partly. No mechanics are simulated: `imbrex compare` does that.

use serde::Serialize;

use super::access::BLOCK_BYTES;
use super::info::TraceInfo;

/// Persistent cache of a drive-managed disk that bursts are held against: 20 GB, that of the ST5000AS0011 (PORE, MSST 2017), the
/// smallest of the drive library.
const LOG_BYTES: u64 = 20_000_000_000;
/// An update share above which a log is mostly garbage soon: every second write makes an earlier one dead.
const MANY_UPDATES_PERCENT: f64 = 50.0;
/// A share of written bytes in sequence with which most bands can be written whole, without a merge.
const MOSTLY_SEQUENTIAL_PERCENT: f64 = 80.0;
/// A share of the reads that are random with which it matters little that a log keeps blocks in the order of their writes:
/// most reads seek in any layout.
const MOSTLY_RANDOM_PERCENT: f64 = 50.0;
/// Share of the time in gaps of 1 s or more, long enough for a drive to begin to clean: with half of it, there is as much time
/// to clean as there is to work.
const IDLE_PERCENT: f64 = 50.0;
/// Writes below this share of the requests hardly matter to a shingled disk.
const FEW_WRITES_PERCENT: f64 = 5.0;
/// Random requests a second that a disk of 7200 rpm serves one at a time: about 12 ms each (seek 8 ms, half a turn 4 ms).
const DISK_RANDOM_PER_S: f64 = 80.0;
/// A hit ratio of a cache of a tenth of the distinct blocks with which at least every second request avoids the disk.
const HITS_PERCENT: f64 = 50.0;
/// Size of a common SSD cache, GiB.
const SSD_GIB: f64 = 256.0;
/// Fewer requests than this say little.
const REQUESTS_MIN: u64 = 1000;

/// A kind of drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriveKind {
    /// A disk without shingles.
    Plain,
    /// A drive-managed shingled disk with a persistent cache.
    DriveManaged,
    /// A host-managed shingled disk that is written as a log.
    HostManaged,
    /// An SSD as a cache in front of a disk.
    SsdCache,
}

/// How well a workload suits a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Suits {
    /// Every rule speaks for it.
    Well,
    /// Some rules speak for it, some against.
    Partly,
    /// Every rule speaks against it.
    Badly,
    /// The trace does not say enough.
    Unknown,
}

/// One drive, a verdict from the trace alone, and the numbers that made it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The kind of drive.
    pub drive: DriveKind,
    /// How well it suits.
    pub verdict: Suits,
    /// The verdict in one sentence.
    pub words: String,
    /// The rules that made it, each with its number, its threshold and its reason.
    pub evidence: Vec<String>,
}

/// What one rule says.
struct Rule {
    speaks_for: bool,
    says: String,
}

impl Rule {
    fn at_most(name: &str, value: f64, threshold: f64, unit: &str, reason: &str) -> Self {
        Self::new(value <= threshold, name, value, threshold, unit, reason)
    }

    fn at_least(name: &str, value: f64, threshold: f64, unit: &str, reason: &str) -> Self {
        Self::new(value >= threshold, name, value, threshold, unit, reason)
    }

    fn new(
        speaks_for: bool,
        name: &str,
        value: f64,
        threshold: f64,
        unit: &str,
        reason: &str,
    ) -> Self {
        let side = if speaks_for { "for" } else { "against" };
        Self {
            speaks_for,
            says: format!("{side}: {name} {value:.1} {unit} (threshold {threshold}): {reason}"),
        }
    }
}

/// Judges a trace by what was found of it.
pub(super) fn of(info: &TraceInfo) -> Vec<Verdict> {
    [
        (DriveKind::Plain, plain(info)),
        (DriveKind::DriveManaged, drive_managed(info)),
        (DriveKind::HostManaged, host_managed(info)),
        (DriveKind::SsdCache, ssd_cache(info)),
    ]
    .map(|(drive, rules)| judge(info, drive, &rules))
    .into()
}

fn judge(info: &TraceInfo, drive: DriveKind, rules: &[Rule]) -> Verdict {
    let mut evidence: Vec<String> = rules.iter().map(|rule| rule.says.clone()).collect();
    let requests = info.read.requests + info.write.requests;
    let few = requests < REQUESTS_MIN;
    if few {
        evidence.push(format!(
            "unknown: reads and writes {requests} (threshold {REQUESTS_MIN}): too few to judge by"
        ));
    }
    let speak_for = rules.iter().filter(|rule| rule.speaks_for).count();
    let verdict = match speak_for {
        _ if few || rules.is_empty() => Suits::Unknown,
        0 => Suits::Badly,
        all if all == rules.len() => Suits::Well,
        _ => Suits::Partly,
    };
    let on = match drive {
        DriveKind::Plain => "a disk without shingles",
        DriveKind::DriveManaged => "a drive-managed shingled disk",
        DriveKind::HostManaged => "a host-managed shingled disk written as a log",
        DriveKind::SsdCache => "an SSD cache in front of a disk",
    };
    let words = match verdict {
        Suits::Unknown => format!("From the trace alone, nothing can be said about {on}."),
        _ => format!(
            "From the trace alone, it suits {on} {}: {speak_for} of {} rules speak for it.",
            verdict.word(),
            rules.len()
        ),
    };
    Verdict {
        drive,
        verdict,
        words,
        evidence,
    }
}

impl Suits {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Well => "well",
            Self::Partly => "partly",
            Self::Badly => "badly",
            Self::Unknown => "unknown",
        }
    }
}

impl DriveKind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain disk",
            Self::DriveManaged => "drive-managed SMR",
            Self::HostManaged => "host-managed SMR, log",
            Self::SsdCache => "SSD cache in front",
        }
    }
}

/// A plain disk has trouble with too many random requests a second alone.
fn plain(info: &TraceInfo) -> Vec<Rule> {
    let Some(activity) = &info.sections.activity else {
        return Vec::new();
    };
    let random = info.sections.randomness.random_percent / 100.0;
    let reason = "more random requests than one disk serves (12 ms each)";
    let rule = |name, rate: f64| {
        Rule::at_most(
            name,
            rate * random,
            DISK_RANDOM_PER_S,
            "random requests/s",
            reason,
        )
    };
    // Beside the mean, the minute that is fullest: a queue of a second drains, one of a minute is noticed.
    let minute = activity.peaks.iter().find(|peak| peak.interval_s == 60);
    let mut rules = vec![rule("on average", activity.mean_requests_per_s)];
    rules.extend(minute.map(|peak| rule("in the fullest minute", peak.requests_per_s)));
    rules
}

/// A drive-managed disk takes writes into its persistent cache and cleans that when it is idle.
fn drive_managed(info: &TraceInfo) -> Vec<Rule> {
    if info.write_percent <= FEW_WRITES_PERCENT {
        return vec![few_writes(info)];
    }
    let mut rules = Vec::new();
    if let Some(gaps) = &info.sections.gaps {
        rules.push(Rule::at_most(
            "largest burst of writes",
            gaps.largest_write_burst_bytes as f64 / 1e9,
            LOG_BYTES as f64 / 1e9,
            "GB",
            "what exceeds the persistent cache waits for bands to be rewritten",
        ));
        let idle = gaps.idle.iter().find(|idle| idle.at_least_s == 1.0);
        rules.extend(idle.map(|idle| {
            Rule::at_least(
                "gaps of 1 s or more",
                idle.time_percent,
                IDLE_PERCENT,
                "% of the time",
                "the drive cleans its cache in them",
            )
        }));
    }
    let in_sequence = info.sections.randomness.sequential_write_bytes_percent;
    let working_set_gb = info.write.unique_bytes as f64 / 1e9;
    if working_set_gb <= LOG_BYTES as f64 / 1e9 {
        rules.push(Rule::at_most(
            "distinct bytes written",
            working_set_gb,
            LOG_BYTES as f64 / 1e9,
            "GB",
            "the persistent cache holds all that is written",
        ));
    } else {
        rules.push(Rule::at_least(
            "written in sequence",
            in_sequence,
            MOSTLY_SEQUENTIAL_PERCENT,
            "% of the bytes",
            "sequences fill whole bands; more is written than the persistent cache holds",
        ));
    }
    rules
}

fn few_writes(info: &TraceInfo) -> Rule {
    Rule::at_most(
        "writes",
        info.write_percent,
        FEW_WRITES_PERCENT,
        "% of the requests",
        "a shingled disk reads like any other",
    )
}

/// A log takes every write in sequence; it pays with cleaning and with reads that are scattered.
fn host_managed(info: &TraceInfo) -> Vec<Rule> {
    if info.write_percent <= FEW_WRITES_PERCENT {
        return vec![few_writes(info)];
    }
    let mut rules = Vec::new();
    let updates = info.sections.shares.of_accesses.update_percent
        / (info.sections.shares.of_accesses.write_percent.max(1e-9) / 100.0);
    rules.push(Rule::at_most(
        "updates",
        updates,
        MANY_UPDATES_PERCENT,
        "% of the blocks written",
        "each leaves a dead block in the log that cleaning must pass over",
    ));
    if let Some(gaps) = &info.sections.gaps {
        let idle = gaps.idle.iter().find(|idle| idle.at_least_s == 1.0);
        rules.extend(idle.map(|idle| {
            Rule::at_least(
                "gaps of 1 s or more",
                idle.time_percent,
                IDLE_PERCENT,
                "% of the time",
                "the host cleans zones in them",
            )
        }));
    }
    if info.write_percent < 100.0 - FEW_WRITES_PERCENT {
        rules.push(Rule::at_least(
            "random reads",
            info.sections.randomness.random_reads_percent,
            MOSTLY_RANDOM_PERCENT,
            "% of the reads",
            "sequential reads of what was written out of order become random",
        ));
    }
    rules
}

/// A cache pays where blocks are accessed again, and most where few blocks take much of the traffic.
fn ssd_cache(info: &TraceInfo) -> Vec<Rule> {
    let reuse = &info.sections.reuse;
    let whole = reuse.lru.last().map_or(0.0, |point| point.hit_percent);
    let mut rules = vec![
        Rule::at_least(
            "hits of an LRU cache of 10 % of the distinct blocks",
            reuse.lru_at_10_percent.hit_percent,
            HITS_PERCENT,
            "%",
            "what hits avoids the disk",
        ),
        Rule::at_least(
            "hits of a cache that holds every block",
            whole,
            HITS_PERCENT,
            "%",
            "no cache hits more; the rest are first accesses",
        ),
    ];
    let tenth_gib = (info.unique_blocks * BLOCK_BYTES) as f64 / 10.0 / (1u64 << 30) as f64;
    // That a small working set fits says nothing for a cache, so this rule can only speak against one.
    if tenth_gib > SSD_GIB {
        let reason = "a common SSD does not hold it";
        rules.push(Rule::at_most(
            "a tenth of the distinct blocks",
            tenth_gib,
            SSD_GIB,
            "GiB",
            reason,
        ));
    }
    rules
}
