//! The report: the document that scripts read and that the table, CSV and HTML are made from.
//!
//! Keys are a contract (`docs/schema/report.schema.json`): more may be added, none renamed. The
//! order of fields is the order in the JSON, and maps are ordered, so equal runs give equal bytes.

use std::collections::BTreeMap;

use super::activity_use::{ActivityFigures, GhostUse, ResponseByActivity};
use super::by_cause::ByCause;
use super::event_use::EventUse;
use super::heads::{Heads, is_zero};
use super::movement::MemberMovement;
use super::node_table::NodeTable;
use super::phases::Phases;
use super::request_series::ResponseSeries;
use super::response_times::ResponseTimes;
use super::run_parts::{CacheUse, Costs, Hardware, Hits, Inputs, LogUse, RequestCounts, Rewrites};
use super::series::Series;
use super::windows::WindowsUse;
use super::zone_use::ZoneUse;
use imbrex_core::operation::Cause;
use imbrex_drives::HeatMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The schema identifier every report starts with.
pub const SCHEMA: &str = "imbrex.report/1";

/// The commit of a program that was built without git, or that does not say.
pub const UNKNOWN_COMMIT: &str = "unknown";

/// Bytes of one block, the unit in which hits and sizes are counted.
const BLOCK_BYTES: u64 = 4096;

/// One workload and what each system did with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Commit the program was built from, `unknown` without git.
    pub commit: String,
    /// The root seed of every random stream.
    pub seed: u64,
    /// What was replayed or served.
    pub workload: Workload,
    /// Runs that were not made because somebody stopped them, or that failed before that: the workload, and
    /// the system with its settings. Absent when all were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
    /// One entry a system (and swept setting), in the order asked for.
    pub runs: Vec<Run>,
}

/// Where the requests came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Trace file, recipe, or the address a device was served on.
    pub path: String,
    /// How the requests came to be.
    pub kind: WorkloadKind,
    /// Requests in the workload after `--limit`, skipped reads included.
    pub requests: u64,
    /// SHA-256 of the trace file as stored; null when the requests came over a socket or a pipe, or from
    /// several traces.
    pub sha256: Option<String>,
    /// Trace format, such as `msr`; null when nothing was parsed.
    pub format: Option<String>,
    /// How many times over it was replayed; absent where it was once.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub repeat: u32,
    /// Each round was on other blocks; absent where all were on the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new_blocks: bool,
    /// Lines of the trace that were not used, counted by reason.
    pub skipped_lines: BTreeMap<String, u64>,
    /// Response times that the trace has of its requests, skipped reads among them: those of the system on which it was
    /// captured. Absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_response_ms: Option<ResponseTimes>,
    /// Requests that were earlier than the one before and were taken to come with it; absent where none was.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub time_inversions: u64,
    /// How it was made of several traces; absent when it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub combination: Option<Combination>,
}

fn once() -> u32 {
    1
}

fn is_once(repeat: &u32) -> bool {
    *repeat == 1
}

/// A workload that was made of several traces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Combination {
    /// Order, placement, seed and what else was stated; the values of swept keys are parameters of the runs.
    pub parameters: BTreeMap<String, Value>,
    /// The traces, in their order.
    pub sources: Vec<CombinedSource>,
}

/// A trace that a workload was made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CombinedSource {
    /// File, or `synthetic:RECIPE`.
    pub path: String,
    /// How its requests came to be.
    pub kind: WorkloadKind,
    /// SHA-256 of the file as stored (of the text of a recipe), in hex.
    pub sha256: Option<String>,
}

/// How a workload came to be. A reader must never mistake a synthetic load for a captured one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkloadKind {
    /// A trace captured by others from a system in use.
    Captured,
    /// Recorded by Imbrex itself from real software.
    Recorded,
    /// Generated from a recipe.
    Synthetic,
    /// Requests of the clients of a served device.
    Live,
    /// None: a closed form was computed. No report of runs has this kind.
    #[serde(rename = "closed form")]
    ClosedForm,
}

/// When a request of a stream is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Due {
    /// At its time stamp.
    #[default]
    Absolute,
    /// As long after its predecessor was issued as their time stamps are apart.
    Shift,
}

impl Due {
    fn is_absolute(&self) -> bool {
        *self == Due::Absolute
    }
}

/// Which stream a request joins, and so which request it waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dependencies {
    /// One stream after the other.
    #[default]
    InTurn,
    /// By the response times in the trace: the stream whose last request had ended latest before this one arrived. Where
    /// none had, a stream that has no request yet; where there is none, the one whose last request ended first.
    Latency,
}

impl Dependencies {
    fn is_in_turn(&self) -> bool {
        *self == Dependencies::InTurn
    }
}

/// How requests were issued.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ReplayMode {
    /// The next request is issued as soon as fewer than `depth` are outstanding.
    ClosedLoop {
        /// Requests outstanding at most.
        depth: u32,
    },
    /// Each request is issued at its timestamp divided by `speed`.
    OpenLoop {
        /// 2 replays twice as fast as recorded.
        speed: f64,
    },
    /// Each of `streams` streams issues when a request is due and the one before it has ended.
    Streams {
        /// Number of streams.
        streams: u32,
        /// When a request of one is due.
        #[serde(default, skip_serializing_if = "Due::is_absolute")]
        due: Due,
        /// Which one a request joins.
        #[serde(default, skip_serializing_if = "Dependencies::is_in_turn")]
        dependencies: Dependencies,
    },
    /// The next request is issued as soon as the last is answered, over disks that answer at once. Work was
    /// counted and nothing took time.
    Untimed,
    /// Clients issued as they pleased.
    Live,
}

impl ReplayMode {
    /// Whether requests come at their time stamps.
    pub fn is_by_time(self) -> bool {
        matches!(self, ReplayMode::OpenLoop { .. } | ReplayMode::Streams { .. })
    }
}

/// What one system did. Its parts stand in the document side by side, without their own names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Name of the stack.
    pub system: String,
    /// Swept settings of this run (`node.key` to value); empty outside a sweep.
    pub parameters: BTreeMap<String, Value>,
    /// What the host asked for.
    #[serde(flatten)]
    pub host: RequestCounts,
    /// What the host found in the caches that are below no other one.
    #[serde(flatten)]
    pub hits: Hits,
    /// What the translations rewrote.
    #[serde(flatten)]
    pub rewrites: Rewrites,
    /// What the requests cost the disks and the host.
    #[serde(flatten)]
    pub costs: Costs,
    /// What the run cost; the only part that may differ between two runs.
    pub simulation: SimulationCost,
    /// How the workload was given to the stack, and what shares were shares of.
    #[serde(flatten)]
    pub inputs: Inputs,
    /// The caches.
    #[serde(flatten)]
    pub cache: CacheUse,
    /// The bands and the logs of the translations.
    #[serde(flatten)]
    pub log: LogUse,
    /// What was done to the zones of zoned disks; absent without zones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<ZoneUse>,
    /// What came of the commands to nodes, in the order of the experiment file; absent without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventUse>,
    /// How the host fared while arrays had lost members; absent when none was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
    /// The requests by what nodes did while they were open; absent where none cleaned or held requests back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_by_activity: Option<ResponseByActivity>,
    /// How far the books of each controller were from its drive, by the name of the controller; absent without any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ghosts: BTreeMap<String, GhostUse>,
    /// The windows of the device that are devices of their own to those who use them; absent without any.
    #[serde(flatten)]
    pub windows: WindowsUse,
    /// The hardware that the stack is given; absent in reports of earlier builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<Hardware>,
    /// Each disk of the stack, in the order of the stack file.
    pub disks: Vec<DiskUse>,
    /// How far the heads of the disks were moved by a model; absent when none was asked for.
    #[serde(flatten)]
    pub movement: MemberMovement,
    /// What every node of the stack has counted, by the name of the node and that of the counter.
    #[serde(default)]
    pub nodes: BTreeMap<String, BTreeMap<String, u64>>,
    /// The nodes that the keys of this run without a node are about, by what they are: `cache`,
    /// `translation`, `zones`. Each in the order of the stack file.
    #[serde(default)]
    pub roles: BTreeMap<String, Vec<String>>,
    /// The configuration with every default filled in.
    pub configuration: Value,
    /// The keys of every node as its layer has got them: over those of the drive and the defaults, with shares
    /// and scales worked out. By the name of the node and that of the key.
    #[serde(default)]
    pub resolved: BTreeMap<String, Value>,
    /// What the figures are drawn from.
    pub figures: Figures,
}

/// Band bytes written over three denominators; null for a zero denominator or without bands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WriteAmplification {
    /// Over the bytes of live blocks merged out of the persistent cache.
    pub evicted: Option<f64>,
    /// Over the bytes appended to the persistent cache; blocks updated in place are not appended.
    pub cache_in: Option<f64>,
    /// Over the bytes written to the persistent cache, appended or over an entry in place: what
    /// PORE's prototype counts. Absent where it is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_in: Option<f64>,
    /// Over the bytes the host wrote.
    pub host: Option<f64>,
}

/// Busy time: the sum, then each disk under its own name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IoTime {
    /// Sum over the disks, in seconds.
    pub total: f64,
    /// Seconds by disk name.
    #[serde(flatten)]
    pub disks: BTreeMap<String, f64>,
}

/// What a run cost the machine it ran on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SimulationCost {
    /// Wall-clock time in seconds.
    pub wall_s: f64,
    /// Host requests per second of wall-clock time.
    pub requests_per_s: f64,
    /// Peak resident set of the process in bytes, where the run had the process to itself; null where it did
    /// not ([`MemoryUser`](crate::MemoryUser)).
    pub peak_rss_bytes: Option<u64>,
}

/// What one disk did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskUse {
    /// Name of the node in the stack.
    pub name: String,
    /// Name of the drive model or backing.
    pub drive: String,
    /// SHA-256 of the drive file; null for a disk without a model.
    pub drive_sha256: Option<String>,
    /// Whether the write cache of the drive was on.
    pub write_cache: bool,
    /// Operations that read.
    pub reads: u64,
    /// Operations that wrote.
    pub writes: u64,
    /// Bytes read, by cause.
    pub read_bytes: ByCause<u64>,
    /// Bytes written, by cause.
    pub written_bytes: ByCause<u64>,
    /// Bytes written by each cause over the bytes the host wrote; null without host writes.
    pub write_amplification: ByCause<Option<f64>>,
    /// Time spent seeking; zero for a disk without heads.
    pub seek_time_s: f64,
    /// Time busy.
    pub busy_time_s: f64,
    /// Time busy, by cause.
    pub busy_time_by_cause_s: ByCause<f64>,
    /// Use of the parts of the disk, by address; empty unless a translation has divided it.
    #[serde(default)]
    pub areas: Vec<DiskAreaUse>,
}

/// What was done in one part of a disk. An operation counts where it starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskAreaUse {
    /// `metadata`, `persistent_cache`, `scratch` or `bands`.
    pub name: String,
    /// Bytes the medium read.
    pub read_bytes: u64,
    /// Bytes the medium wrote.
    pub written_bytes: u64,
    /// Time busy reading.
    pub read_time_s: f64,
    /// Time busy writing.
    pub write_time_s: f64,
}

/// What the figures are drawn from; every array is bounded whatever the length of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Host reads completed, MiB/s, mean of each bucket.
    pub read_mib_per_s: Series,
    /// Host writes completed, MiB/s, mean of each bucket.
    pub write_mib_per_s: Series,
    /// Host requests completed per second, mean of each bucket.
    pub requests_per_s: Series,
    /// Host requests that had been issued and not answered, time-weighted mean of each bucket; empty in reports of earlier
    /// builds.
    #[serde(default)]
    pub requests_under_way: Series,
    /// Response times of reads and of writes over time.
    #[serde(flatten)]
    pub responses: ResponseSeries,
    /// Share of the persistent cache in use (0 to 1), time-weighted mean of each bucket.
    pub persistent_cache_fill: Series,
    /// What cleaned and held requests back, and what requests felt; absent where nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activities: Option<ActivityFigures>,
    /// Distribution of response times.
    pub latency_cdf: LatencyCdf,
    /// Writes to home bands over address and time.
    pub band_writes: HeatMap,
    /// Gauges that were asked for, by `NODE.GAUGE`: time-weighted mean of each bucket.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, Series>,
    /// Of each array in which a member was rebuilt, how much of the member was done (0 to 1), 0 while none
    /// was being rebuilt: time-weighted mean of each bucket.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rebuild_progress: BTreeMap<String, Series>,
    /// The tables and series that kinds of node make of their nodes, in the order of the stack file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<NodeTable>,
    /// What went to the disks in the time that was asked for.
    #[serde(flatten)]
    pub heads: Heads,
}

impl Figures {
    /// Every series that has a value, by name: that of its key, of a gauge `NODE.GAUGE`, and of a rebuild
    /// `NODE.rebuild_progress`.
    pub fn all_series(&self) -> impl Iterator<Item = (String, &Series)> {
        let responses = &self.responses;
        let own = [
            ("read_mib_per_s", &self.read_mib_per_s),
            ("write_mib_per_s", &self.write_mib_per_s),
            ("requests_per_s", &self.requests_per_s),
            ("requests_under_way", &self.requests_under_way),
            ("read_p50_ms", &responses.read_p50_ms),
            ("read_p99_ms", &responses.read_p99_ms),
            ("read_max_ms", &responses.read_max_ms),
            ("write_p50_ms", &responses.write_p50_ms),
            ("write_p99_ms", &responses.write_p99_ms),
            ("write_max_ms", &responses.write_max_ms),
            ("persistent_cache_fill", &self.persistent_cache_fill),
        ];
        let own = own.into_iter().map(|(name, series)| (name.to_string(), series));
        let gauges = self.series.iter().map(|(name, series)| (name.clone(), series));
        let rebuilds = self.rebuild_progress.iter();
        let rebuilds = rebuilds.map(|(node, series)| (format!("{node}.rebuild_progress"), series));
        own.chain(gauges).chain(rebuilds).filter(|(_, series)| !series.is_empty())
    }
}

/// Points of the latency distribution, ascending: `tail[i]` of the requests took longer than `ms[i]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyCdf {
    /// Response time in milliseconds.
    pub ms: Vec<f64>,
    /// Share of requests that took longer; the last is 0.
    pub tail: Vec<f64>,
}

#[cfg(test)]
impl Report {
    /// A report of some trace.
    pub(super) fn of_runs(runs: Vec<Run>) -> Report {
        let workload = Workload {
            path: "t.csv".into(),
            kind: WorkloadKind::Captured,
            requests: 1,
            sha256: None,
            format: None,
            skipped_lines: BTreeMap::new(),
            repeat: 1,
            new_blocks: false,
            captured_response_ms: None,
            time_inversions: 0,
            combination: None,
        };
        Report { runs, ..Report::new(7, workload) }
    }
}

impl Report {
    /// A report without runs. The program that asked for it sets the commit.
    pub fn new(seed: u64, workload: Workload) -> Report {
        Report {
            schema: SCHEMA.to_string(),
            commit: UNKNOWN_COMMIT.to_string(),
            seed,
            workload,
            left: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// The report without the cost of its runs: equal for equal experiment, seed and commit.
    pub fn without_simulation(&self) -> Report {
        let mut report = self.clone();
        for run in &mut report.runs {
            run.simulation = SimulationCost::default();
        }
        report
    }
}

impl Run {
    /// An empty run of `system`: all counts zero, all ratios null.
    pub fn new(system: &str, replay: ReplayMode) -> Run {
        Run {
            system: system.to_string(),
            parameters: BTreeMap::new(),
            host: RequestCounts::default(),
            hits: Hits::default(),
            rewrites: Rewrites::default(),
            costs: Costs::default(),
            simulation: SimulationCost::default(),
            inputs: Inputs {
                replay,
                blocks: None,
                footprint_bytes: None,
                written_footprint_bytes: None,
                warm_up: None,
            },
            cache: CacheUse::default(),
            log: LogUse::default(),
            zones: None,
            events: Vec::new(),
            phases: None,
            response_by_activity: None,
            ghosts: BTreeMap::new(),
            windows: WindowsUse::default(),
            hardware: None,
            disks: Vec::new(),
            movement: MemberMovement::default(),
            nodes: BTreeMap::new(),
            roles: BTreeMap::new(),
            configuration: Value::Null,
            resolved: BTreeMap::new(),
            figures: Figures::default(),
        }
    }

    /// Computes what follows from the counts: hit ratios, write amplification, sums over disks.
    /// Call it once, after the counts and `disks` are set.
    pub fn derive_ratios(&mut self) {
        let host_bytes = self.host.write_blocks * BLOCK_BYTES;
        self.hits.read_hit_ratio = ratio(self.hits.read_hits, self.host.read_blocks);
        self.hits.write_hit_ratio = ratio(self.hits.write_hits, self.host.write_blocks);
        self.rewrites.write_amplification = match self.log.bands {
            None => WriteAmplification::default(),
            Some(_) => WriteAmplification {
                evicted: ratio(
                    self.rewrites.band_bytes_written,
                    self.log.persistent_cache_bytes_merged,
                ),
                cache_in: ratio(
                    self.rewrites.band_bytes_written,
                    self.log.persistent_cache_bytes_appended,
                ),
                log_in: ratio(
                    self.rewrites.band_bytes_written,
                    self.log.persistent_cache_bytes_appended
                        + self.log.persistent_cache_bytes_updated,
                ),
                host: ratio(self.rewrites.band_bytes_written, host_bytes),
            },
        };
        let mut written = ByCause::<u64>::default();
        for disk in &mut self.disks {
            disk.write_amplification = disk.written_bytes.map(|bytes| ratio(bytes, host_bytes));
            for cause in Cause::ALL {
                written[cause] += disk.written_bytes[cause];
            }
        }
        self.costs.write_amplification_by_cause = written.map(|bytes| ratio(bytes, host_bytes));
        self.costs.io_time_s = IoTime {
            total: self.disks.iter().map(|disk| disk.busy_time_s).sum(),
            disks: self.disks.iter().map(|disk| (disk.name.clone(), disk.busy_time_s)).collect(),
        };
        self.costs.seek_time_s = self.disks.iter().map(|disk| disk.seek_time_s).sum();
    }

    /// The system, with the swept settings of this run if it has any.
    pub fn label(&self) -> String {
        label(&self.system, &self.parameters)
    }
}

/// A system with its swept settings, in few words.
pub fn label(system: &str, parameters: &BTreeMap<String, Value>) -> String {
    let mut label = system.to_string();
    for (name, value) in parameters {
        let value = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        // The system is in the label already.
        if value != system {
            let name = name.rsplit('.').next().unwrap_or(name);
            label.push_str(&format!(" {name}={value}"));
        }
    }
    label
}

/// `numerator / denominator`, or nothing when the denominator is zero.
pub fn ratio(numerator: u64, denominator: u64) -> Option<f64> {
    (denominator > 0).then(|| numerator as f64 / denominator as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_follow_the_definitions() {
        let mut run = Run::new("lru", ReplayMode::ClosedLoop { depth: 1 });
        run.host.write_blocks = 10;
        run.hits.write_hits = 4;
        run.log.bands = Some(3);
        run.rewrites.band_bytes_written = 20 * BLOCK_BYTES;
        run.log.persistent_cache_bytes_merged = 5 * BLOCK_BYTES;
        run.derive_ratios();
        assert_eq!(run.hits.read_hit_ratio, None, "no reads");
        assert_eq!(run.hits.write_hit_ratio, Some(0.4));
        assert_eq!(run.rewrites.write_amplification.evicted, Some(4.0));
        assert_eq!(run.rewrites.write_amplification.cache_in, None, "nothing was appended");
        assert_eq!(run.rewrites.write_amplification.host, Some(2.0));
        run.log.persistent_cache_bytes_appended = 6 * BLOCK_BYTES;
        run.log.persistent_cache_bytes_updated = 2 * BLOCK_BYTES;
        run.derive_ratios();
        let amplification = run.rewrites.write_amplification;
        let over_log = (amplification.cache_in, amplification.log_in);
        assert_eq!(over_log, (Some(10.0 / 3.0), Some(2.5)), "an update in place is no append");
        assert_eq!(amplification.evicted, Some(4.0), "and is not evicted");
        run.log.bands = None;
        run.derive_ratios();
        assert_eq!(run.rewrites.write_amplification, WriteAmplification::default(), "no bands");
    }

    #[test]
    fn a_label_names_the_swept_settings_once() {
        let mut run = Run::new("pore", ReplayMode::Live);
        assert_eq!(run.label(), "pore");
        run.parameters.insert("system".into(), Value::from("pore"));
        run.parameters.insert("cache.capacity".into(), Value::from("2 %"));
        assert_eq!(run.label(), "pore capacity=2 %");
    }
}
