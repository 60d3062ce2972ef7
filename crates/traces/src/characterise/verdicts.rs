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

/// Why a rule speaks for a drive, and why against it.
struct Reasons {
    to_speak_for: &'static str,
    to_speak_against: &'static str,
}

impl Rule {
    fn at_most(name: &str, value: f64, threshold: f64, unit: &str, reasons: Reasons) -> Self {
        let stated = format!("{name} {} {unit} (at most", rounded(value, threshold));
        Self::new(value <= threshold, &stated, threshold, &reasons)
    }

    fn at_least(name: &str, value: f64, threshold: f64, unit: &str, reasons: Reasons) -> Self {
        let stated = format!("{name} {} {unit} (at least", rounded(value, threshold));
        Self::new(value >= threshold, &stated, threshold, &reasons)
    }

    fn new(speaks_for: bool, stated: &str, threshold: f64, reasons: &Reasons) -> Self {
        let (side, reason) = if speaks_for {
            ("for", reasons.to_speak_for)
        } else {
            ("against", reasons.to_speak_against)
        };
        Self { speaks_for, says: format!("{side}: {stated} {threshold}): {reason}") }
    }
}

/// A number with as few decimals as leave it on its side of the threshold and of zero.
fn rounded(value: f64, threshold: f64) -> String {
    let sides = |value: f64| (value.total_cmp(&threshold), value == 0.0);
    let texts = (1..=9).map(|decimals| format!("{value:.decimals$}"));
    let mut kept =
        texts.filter(|text| text.parse().is_ok_and(|shown| sides(shown) == sides(value)));
    kept.next().unwrap_or_else(|| value.to_string())
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
            "unknown: {requests} reads and writes (at least {REQUESTS_MIN}): too few to judge by"
        ));
    } else if rules.is_empty() {
        evidence.push("unknown: the trace has no times".to_owned());
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
        Suits::Unknown => format!("Nothing can be said about {on}."),
        _ => format!("It suits {on} {}: {}.", verdict.word(), told(speak_for, rules.len())),
    };
    Verdict { drive, verdict, words, evidence }
}

/// How many rules speak for a drive.
fn told(speak_for: usize, rules: usize) -> String {
    match (speak_for, rules) {
        (0, 1) => "the only rule speaks against it".to_owned(),
        (1, 1) => "the only rule speaks for it".to_owned(),
        (0, 2) => "both rules speak against it".to_owned(),
        (2, 2) => "both rules speak for it".to_owned(),
        (0, _) => format!("all {rules} rules speak against it"),
        _ if speak_for == rules => format!("all {rules} rules speak for it"),
        (1, _) => format!("1 of {rules} rules speaks for it"),
        _ => format!("{speak_for} of {rules} rules speak for it"),
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
    let rule = |name, rate: f64| {
        Rule::at_most(
            name,
            rate * random,
            DISK_RANDOM_PER_S,
            "random requests/s",
            Reasons {
                to_speak_for: "one disk serves them, at 12 ms each",
                to_speak_against: "one disk does not serve them, at 12 ms each",
            },
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
            Reasons {
                to_speak_for: "the persistent cache takes it",
                to_speak_against: "what exceeds the cache waits for bands to be rewritten",
            },
        ));
        let idle = gaps.idle.iter().find(|idle| idle.at_least_s == 1.0);
        rules.extend(idle.map(|idle| {
            Rule::at_least(
                "gaps of 1 s or more",
                idle.time_percent,
                IDLE_PERCENT,
                "% of the time",
                Reasons {
                    to_speak_for: "the drive has time to clean its cache in them",
                    to_speak_against: "the drive has too little time to clean its cache",
                },
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
            Reasons {
                to_speak_for: "the persistent cache holds all that is written",
                to_speak_against: "the persistent cache does not hold all that is written",
            },
        ));
    } else {
        rules.push(Rule::at_least(
            "written in sequence",
            in_sequence,
            MOSTLY_SEQUENTIAL_PERCENT,
            "% of the bytes",
            Reasons {
                to_speak_for: "sequences fill whole bands, which need no place in the cache",
                to_speak_against: "the cache does not hold the rest, which fills no whole bands",
            },
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
        Reasons {
            to_speak_for: "a shingled disk reads like any other",
            to_speak_against: "writes meet the shingles",
        },
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
        Reasons {
            to_speak_for: "little of the log dies, so there is little to clean",
            to_speak_against: "most of the log dies soon, so there is much to clean",
        },
    ));
    if let Some(gaps) = &info.sections.gaps {
        let idle = gaps.idle.iter().find(|idle| idle.at_least_s == 1.0);
        rules.extend(idle.map(|idle| {
            Rule::at_least(
                "gaps of 1 s or more",
                idle.time_percent,
                IDLE_PERCENT,
                "% of the time",
                Reasons {
                    to_speak_for: "the host has time to clean zones in them",
                    to_speak_against: "the host has too little time to clean zones",
                },
            )
        }));
    }
    if info.write_percent < 100.0 - FEW_WRITES_PERCENT {
        rules.push(Rule::at_least(
            "random reads",
            info.sections.randomness.random_reads_percent,
            MOSTLY_RANDOM_PERCENT,
            "% of the reads",
            Reasons {
                to_speak_for: "most reads seek in any layout",
                to_speak_against: "sequential reads become random if written in another order",
            },
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
            Reasons {
                to_speak_for: "at least every second access avoids the disk",
                to_speak_against: "most accesses still reach the disk",
            },
        ),
        Rule::at_least(
            "hits of a cache that holds every block",
            whole,
            HITS_PERCENT,
            "%",
            Reasons {
                to_speak_for: "blocks are accessed again often enough for some cache",
                to_speak_against: "no cache hits more; the rest are first accesses",
            },
        ),
    ];
    let tenth_gib = (info.unique_blocks * BLOCK_BYTES) as f64 / 10.0 / (1u64 << 30) as f64;
    // That a small working set fits says nothing for a cache, so this rule can only speak against one.
    if tenth_gib > SSD_GIB {
        let reasons = Reasons {
            to_speak_for: "a common SSD holds it",
            to_speak_against: "a common SSD does not hold it",
        };
        rules.push(Rule::at_most(
            "a tenth of the distinct blocks",
            tenth_gib,
            SSD_GIB,
            "GiB",
            reasons,
        ));
    }
    rules
}
