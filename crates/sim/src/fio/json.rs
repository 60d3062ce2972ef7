//! Results in the JSON layout of fio.

use super::job::Direction;
use super::outcome::{DirectionOutcome, JobOutcome, Outcome};
use super::parse::{JobFile, JobReport};
use super::spread::{Latencies, STEP_ENDS, Spread};
use imbrex_core::error::IoError;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// A document that keeps the order of its keys, which is fio's.
#[derive(Clone, PartialEq, Debug)]
pub enum Json {
    /// A whole number.
    Integer(u64),
    /// Any other number.
    Number(f64),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// An object.
    Object(Vec<(String, Json)>),
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Json::Integer(number) => serializer.serialize_u64(*number),
            Json::Number(number) => serializer.serialize_f64(*number),
            Json::Text(text) => serializer.serialize_str(text),
            Json::List(items) => items.serialize(serializer),
            Json::Object(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

fn object<'a>(entries: impl IntoIterator<Item = (&'a str, Json)>) -> Json {
    let entries = entries.into_iter();
    Json::Object(entries.map(|(key, value)| (key.to_string(), value)).collect())
}

fn text(words: &str) -> Json {
    Json::Text(words.to_string())
}

fn options(given: &[(String, String)]) -> Json {
    Json::Object(given.iter().map(|(key, value)| (key.clone(), text(value))).collect())
}

/// On what the jobs ran.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// Name of the stack, for most a drive.
    pub system: String,
    /// Size of the device.
    pub device_bytes: u64,
    /// Seed of the run.
    pub seed: u64,
    /// By what the drives were divided.
    pub scale: u64,
}

/// Labels of the depths of the queue.
pub(super) const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];

/// Labels of the numbers of requests issued, or answers taken, at once.
pub(super) const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];

/// Percent that fio reports at least of depths and batches that were seen at all.
const DEPTH_SHARE_MIN: f64 = 0.1;

/// Percent that fio reports at least of latencies that were seen at all.
const LATENCY_SHARE_MIN: f64 = 0.01;

const NS_PER_MS: u64 = 1_000_000;
const NS_PER_S: u64 = 1_000_000_000;

/// The document of fio, with one object more: `imbrex` says on what the jobs ran.
pub fn document(file: &JobFile, outcome: &Outcome, setting: &Setting) -> Json {
    let reported = outcome.reported(&file.jobs);
    // As in fio, of the whole run, and the same in each job.
    let elapsed_s = outcome.ended.since(outcome.started).0.div_ceil(NS_PER_S);
    let jobs = reported
        .iter()
        .map(|entry| job(entry, &file.reports[entry.job], &reported, elapsed_s))
        .collect();
    let ended_ms = outcome.ended.0 / NS_PER_MS;
    let mut own = vec![
        ("system", text(&setting.system)),
        ("device_bytes", Json::Integer(setting.device_bytes)),
        ("seed", Json::Integer(setting.seed)),
        ("scale", Json::Integer(setting.scale)),
    ];
    if file.jobs.iter().any(|job| job.zones.is_some()) {
        let resets = outcome.jobs.iter().map(|job| job.zone_resets).sum();
        own.push(("zone_resets", Json::Integer(resets)));
    }
    let notes = file.notes.iter().map(|note| text(note)).collect();
    own.push(("notes", Json::List(notes)));
    object([
        (
            "fio version",
            text(concat!("imbrex-", env!("CARGO_PKG_VERSION"), " (layout of fio-3.33)")),
        ),
        // Of virtual time, which begins at 0.
        ("timestamp", Json::Integer(ended_ms / 1000)),
        ("timestamp_ms", Json::Integer(ended_ms)),
        ("time", text(&format!("{:.3} s of virtual time", ended_ms as f64 / 1000.0))),
        ("global options", options(&file.global)),
        ("jobs", Json::List(jobs)),
        ("disk_util", Json::List(vec![disk_util(outcome, setting)])),
        ("imbrex", object(own)),
    ])
}

/// The number Linux gives an error.
pub(super) fn errno(error: Option<IoError>) -> u64 {
    match error {
        None => 0,
        Some(IoError::NotPermitted) => 1,
        Some(
            IoError::Medium
            | IoError::Lost
            | IoError::NoCopy
            | IoError::ZoneReadOnly
            | IoError::ZoneOffline,
        ) => 5,
        Some(IoError::Invalid) => 22,
        Some(IoError::NoSpace) => 28,
        Some(IoError::ShutDown) => 108,
        // ETOOMANYREFS: what the block layer makes of INSUFFICIENT ZONE RESOURCES.
        Some(IoError::ZoneResources) => 109,
        // EREMOTEIO: what it makes of ILLEGAL REQUEST.
        Some(
            IoError::UnalignedWrite
            | IoError::WriteBoundary
            | IoError::ReadBoundary
            | IoError::ReadInvalidData
            | IoError::InvalidField,
        ) => 121,
    }
}

fn job(entry: &JobOutcome, report: &JobReport, all: &[JobOutcome], elapsed_s: u64) -> Json {
    let mut entries = vec![
        ("jobname", text(&entry.name)),
        ("groupid", Json::Integer(u64::from(entry.group))),
        ("error", Json::Integer(errno(entry.error))),
        ("eta", Json::Integer(0)),
        ("elapsed", Json::Integer(elapsed_s)),
        ("job options", options(&report.options)),
    ];
    for way in Direction::ALL {
        let agg = aggregate_bytes_per_s(all, entry.group, way);
        let value = direction(entry.direction(way), agg, &report.percentiles);
        entries.push((way.name(), value));
    }
    let flushes = &entry.flushes;
    let sync = object([
        ("total_ios", Json::Integer(flushes.spread.count)),
        ("lat_ns", latencies(flushes, &report.percentiles)),
    ]);
    let [ns, us, ms] = latency_steps(entry);
    entries.extend([
        ("sync", sync),
        ("job_runtime", Json::Integer(entry.runtime.0 / NS_PER_MS)),
        // A model has no host whose processor works, switches and faults.
        ("usr_cpu", Json::Number(0.0)),
        ("sys_cpu", Json::Number(0.0)),
        ("ctx", Json::Integer(0)),
        ("majf", Json::Integer(0)),
        ("minf", Json::Integer(0)),
        ("iodepth_level", labelled(DEPTHS, depth_shares(entry))),
        ("iodepth_submit", labelled(BATCHES, submit_shares(entry))),
        ("iodepth_complete", labelled(BATCHES, complete_shares(entry))),
        ("latency_ns", steps(&ns)),
        ("latency_us", steps(&us)),
        ("latency_ms", steps(&ms)),
        ("latency_depth", Json::Integer(u64::from(report.iodepth))),
        // fio's search for a queue depth by latency, which jobs here do not do.
        ("latency_target", Json::Integer(0)),
        ("latency_percentile", Json::Number(100.0)),
        ("latency_window", Json::Integer(0)),
    ]);
    if let Some(words) = &report.description {
        entries.push(("desc", text(words)));
    }
    object(entries)
}

fn labelled(labels: [&str; 7], shares: [f64; 7]) -> Json {
    object(labels.into_iter().zip(shares.map(Json::Number)))
}

fn steps(shares: &[(String, f64)]) -> Json {
    let pairs = shares.iter();
    Json::Object(pairs.map(|(label, share)| (label.clone(), Json::Number(*share))).collect())
}

/// Percent of the requests by the depth of the queue. As in fio flushes count in the parts and not
/// in the whole, so that the parts of a job that flushes add up to more than 100.
pub(super) fn depth_shares(entry: &JobOutcome) -> [f64; 7] {
    entry.depths.map(|count| share_at_least(count, entry.issued, DEPTH_SHARE_MIN))
}

/// Percent of the times that requests were issued, by how many at once: always one.
pub(super) fn submit_shares(entry: &JobOutcome) -> [f64; 7] {
    let whole = if entry.issued > 0 { 100.0 } else { 0.0 };
    [0.0, whole, 0.0, 0.0, 0.0, 0.0, 0.0]
}

/// Percent of the times that answers were taken, by how many at once.
pub(super) fn complete_shares(entry: &JobOutcome) -> [f64; 7] {
    let times = entry.batches.iter().sum();
    entry.batches.map(|count| share_at_least(count, times, DEPTH_SHARE_MIN))
}

/// As fio a share that is not nothing is reported as `least` at least.
fn share_at_least(part: u64, whole: u64, least: f64) -> f64 {
    match part {
        0 => 0.0,
        _ => share(part, whole).max(least),
    }
}

pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 * 100.0 / whole as f64
}

/// Percent of the requests by latency, under fio's labels: of the nanoseconds below a microsecond,
/// the microseconds below a millisecond, and the milliseconds.
pub(super) fn latency_steps(entry: &JobOutcome) -> [Vec<(String, f64)>; 3] {
    let ios = entry.ios();
    [0, 1, 2].map(|unit| {
        let labels = STEP_ENDS.iter().map(u64::to_string);
        let labels = labels.chain(["2000".to_string(), ">=2000".to_string()]);
        let of_direction = entry.directions.each_ref().map(|d| d.latency.steps()[unit]);
        let counts = (0..of_direction[0].len()).map(|step| of_direction.map(|d| d[step]));
        labels
            .zip(counts)
            .map(|(label, counts)| {
                let count = counts.iter().sum();
                (label, share_at_least(count, ios, LATENCY_SHARE_MIN))
            })
            .collect()
    })
}

/// What all jobs of a group moved in a direction in a second of the longest of them, bytes.
pub(super) fn aggregate_bytes_per_s(all: &[JobOutcome], group: u32, way: Direction) -> u64 {
    let of_group = all.iter().filter(|job| job.group == group);
    let (mut bytes, mut ms) = (0, 0);
    for job in of_group.map(|job| job.direction(way)) {
        bytes += job.bytes;
        ms = ms.max(job.runtime_ms());
    }
    per_second(bytes, ms)
}

/// As fio divides: a second holds whole units, and a run of no millisecond none.
pub(super) fn per_second(count: u64, ms: u64) -> u64 {
    match ms {
        0 => 0,
        _ => (u128::from(count) * 1000 / u128::from(ms)) as u64,
    }
}

/// Requests a second of the run time that is reported.
pub(super) fn ios_per_s(of: &DirectionOutcome) -> f64 {
    match of.runtime_ms() {
        0 => 0.0,
        ms => of.ios as f64 * 1000.0 / ms as f64,
    }
}

/// Percent that the bandwidth of a job is of that of its group, as fio works it out.
pub(super) fn share_of_group(of: &DirectionOutcome, group_bytes_per_s: u64) -> f64 {
    let bw = &of.bandwidth_kib_per_s;
    match (bw.count, group_bytes_per_s) {
        (0, _) => 0.0,
        (_, 0..=1024) => 100.0,
        (_, whole) => (bw.mean.trunc() * 100.0 / (whole as f64 / 1024.0)).min(100.0),
    }
}

fn spread_of(spread: &Spread) -> Vec<(String, Json)> {
    let entries = [
        ("min", Json::Integer(spread.min())),
        ("max", Json::Integer(spread.max)),
        ("mean", Json::Number(spread.mean)),
        ("stddev", Json::Number(spread.deviation())),
        ("N", Json::Integer(spread.count)),
    ];
    entries.map(|(key, value)| (key.to_string(), value)).into()
}

fn latencies(of: &Latencies, percentiles: &[f64]) -> Json {
    let mut entries = spread_of(&of.spread);
    if of.spread.count > 0 {
        let values = percentiles.iter().map(|percent| {
            let ns = of.percentile_ns(*percent);
            (format!("{percent:.6}"), Json::Integer(ns))
        });
        entries.push(("percentile".to_string(), Json::Object(values.collect())));
    }
    Json::Object(entries)
}

fn direction(of: &DirectionOutcome, group_bytes_per_s: u64, percentiles: &[f64]) -> Json {
    let (bw, iops) = (&of.bandwidth_kib_per_s, &of.requests_per_s);
    let agg = share_of_group(of, group_bytes_per_s);
    let bytes_per_s = per_second(of.bytes, of.runtime_ms());
    object([
        ("io_bytes", Json::Integer(of.bytes)),
        ("io_kbytes", Json::Integer(of.bytes / 1024)),
        ("bw_bytes", Json::Integer(bytes_per_s)),
        ("bw", Json::Integer(bytes_per_s / 1024)),
        ("iops", Json::Number(ios_per_s(of))),
        ("runtime", Json::Integer(of.runtime_ms())),
        ("total_ios", Json::Integer(of.ios)),
        // A request of a model is answered as a whole or with an error.
        ("short_ios", Json::Integer(0)),
        ("drop_ios", Json::Integer(0)),
        // Submission takes no time; fio's synchronous engines report none either.
        ("slat_ns", Json::Object(spread_of(&Spread::default()))),
        ("clat_ns", latencies(&of.latency, percentiles)),
        ("lat_ns", Json::Object(spread_of(&of.latency.spread))),
        ("bw_min", Json::Integer(bw.min())),
        ("bw_max", Json::Integer(bw.max)),
        ("bw_agg", Json::Number(agg)),
        ("bw_mean", Json::Number(bw.mean)),
        ("bw_dev", Json::Number(bw.deviation())),
        ("bw_samples", Json::Integer(bw.count)),
        ("iops_min", Json::Integer(iops.min())),
        ("iops_max", Json::Integer(iops.max)),
        ("iops_mean", Json::Number(iops.mean)),
        ("iops_stddev", Json::Number(iops.deviation())),
        ("iops_samples", Json::Integer(iops.count)),
    ])
}

/// What Linux would count of the device.
fn disk_util(outcome: &Outcome, setting: &Setting) -> Json {
    let sum = |way: Direction| {
        let of = outcome.jobs.iter().map(|job| job.direction(way));
        of.fold((0, 0.0), |(ios, ns), d| {
            let spread = &d.latency.spread;
            (ios + d.ios, ns + spread.mean * spread.count as f64)
        })
    };
    let ((reads, read_ns), (writes, write_ns)) = (sum(Direction::Read), sum(Direction::Write));
    let ms = |ns: f64| Json::Integer((ns / NS_PER_MS as f64) as u64);
    let span = outcome.ended.since(outcome.started).0;
    object([
        ("name", text(&setting.system)),
        ("read_ios", Json::Integer(reads)),
        ("write_ios", Json::Integer(writes)),
        ("read_merges", Json::Integer(0)),
        ("write_merges", Json::Integer(0)),
        ("read_ticks", ms(read_ns)),
        ("write_ticks", ms(write_ns)),
        ("in_queue", ms(read_ns + write_ns)),
        ("util", Json::Number(share(outcome.busy.0, span))),
    ])
}
