//! Results in the JSON layout of fio.

use super::job::Direction;
use super::outcome::{DirectionOutcome, JobOutcome, Outcome};
use super::parse::{JobFile, JobReport};
use super::spread::{Latencies, Spread};
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
    Json::Object(
        entries
            .map(|(key, value)| (key.to_string(), value))
            .collect(),
    )
}

fn text(words: &str) -> Json {
    Json::Text(words.to_string())
}

fn options(given: &[(String, String)]) -> Json {
    Json::Object(
        given
            .iter()
            .map(|(key, value)| (key.clone(), text(value)))
            .collect(),
    )
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

/// Labels of fio's latency figures, and the end of each in the unit.
pub(super) const STEPS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

const NS_PER_MS: u64 = 1_000_000;

/// The document of fio, with one object more: `imbrex` says on what the jobs ran.
pub fn document(file: &JobFile, outcome: &Outcome, setting: &Setting) -> Json {
    let reported = outcome.reported(&file.jobs);
    let jobs = reported
        .iter()
        .map(|entry| job(entry, &file.reports[entry.job], &reported))
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
            text(concat!(
                "imbrex-",
                env!("CARGO_PKG_VERSION"),
                " (layout of fio-3.33)"
            )),
        ),
        // Of virtual time, which begins at 0.
        ("timestamp", Json::Integer(ended_ms / 1000)),
        ("timestamp_ms", Json::Integer(ended_ms)),
        (
            "time",
            text(&format!(
                "{:.3} s of virtual time",
                ended_ms as f64 / 1000.0
            )),
        ),
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
        Some(IoError::Medium | IoError::ZoneReadOnly | IoError::ZoneOffline) => 5,
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

fn job(entry: &JobOutcome, report: &JobReport, all: &[JobOutcome]) -> Json {
    let ios = entry.ios();
    let elapsed_s = entry.ended.since(entry.started).0.div_ceil(1_000_000_000);
    let mut entries = vec![
        ("jobname".to_string(), text(&entry.name)),
        ("groupid".to_string(), Json::Integer(u64::from(entry.group))),
        ("error".to_string(), Json::Integer(errno(entry.error))),
        ("eta".to_string(), Json::Integer(0)),
        ("elapsed".to_string(), Json::Integer(elapsed_s)),
        ("job options".to_string(), options(&report.options)),
    ];
    if let Some(words) = &report.description {
        entries.push(("desc".to_string(), text(words)));
    }
    for way in Direction::ALL {
        let agg = aggregate_kib_per_s(all, entry.group, way);
        let value = direction(entry.direction(way), agg, &report.percentiles);
        entries.push((way.name().to_string(), value));
    }
    let flushes = &entry.flushes;
    let sync = object([
        ("total_ios", Json::Integer(flushes.spread.count)),
        ("lat_ns", latencies(flushes, &report.percentiles)),
    ]);
    let depth = |labels: [&str; 7], shares: [f64; 7]| {
        let pairs = labels.iter().zip(shares);
        Json::Object(
            pairs
                .map(|(l, share)| (l.to_string(), Json::Number(share)))
                .collect(),
        )
    };
    // Requests are issued and answered one by one: in fio's batches of 1 to 4.
    let whole = if ios > 0 { 100.0 } else { 0.0 };
    let batches = depth(
        ["0", "4", "8", "16", "32", "64", ">=64"],
        [0.0, whole, 0.0, 0.0, 0.0, 0.0, 0.0],
    );
    let [ns, us, ms] = latency_steps(entry);
    let rest = [
        ("sync", sync),
        ("job_runtime", Json::Integer(entry.runtime.0 / NS_PER_MS)),
        // A model has no host whose processor works, switches and faults.
        ("usr_cpu", Json::Number(0.0)),
        ("sys_cpu", Json::Number(0.0)),
        ("ctx", Json::Integer(0)),
        ("majf", Json::Integer(0)),
        ("minf", Json::Integer(0)),
        (
            "iodepth_level",
            depth(
                ["1", "2", "4", "8", "16", "32", ">=64"],
                depth_shares(entry),
            ),
        ),
        ("iodepth_submit", batches.clone()),
        ("iodepth_complete", batches),
        ("latency_ns", steps(&ns)),
        ("latency_us", steps(&us)),
        ("latency_ms", steps(&ms)),
        ("latency_depth", Json::Integer(u64::from(entry.iodepth))),
        // fio's search for a queue depth by latency, which jobs here do not do.
        ("latency_target", Json::Integer(0)),
        ("latency_percentile", Json::Number(100.0)),
        ("latency_window", Json::Integer(0)),
    ];
    entries.extend(rest.map(|(key, value)| (key.to_string(), value)));
    Json::Object(entries)
}

fn steps(shares: &[(String, f64)]) -> Json {
    let pairs = shares.iter();
    Json::Object(
        pairs
            .map(|(label, share)| (label.clone(), Json::Number(*share)))
            .collect(),
    )
}

/// Percent of the requests by how many were in flight.
pub(super) fn depth_shares(entry: &JobOutcome) -> [f64; 7] {
    let issued: u64 = entry.depths.iter().sum();
    entry.depths.map(|count| share(count, issued))
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
    let between = |from: u64, to: u64| {
        let counts = entry.directions.iter().map(|d| d.latency.between(from, to));
        share(counts.sum(), ios)
    };
    [1u64, 1_000, 1_000_000].map(|unit| {
        // What is shorter than a unit was counted under the smaller one.
        let mut from = if unit == 1 { 0 } else { unit };
        let mut found: Vec<(String, f64)> = STEPS
            .iter()
            .map(|step| {
                let part = between(from, step * unit);
                from = step * unit;
                (step.to_string(), part)
            })
            .collect();
        if unit == 1_000_000 {
            found.push(("2000".to_string(), between(from, 2000 * unit)));
            found.push((">=2000".to_string(), between(2000 * unit, u64::MAX)));
        }
        found
    })
}

/// What all jobs of a group moved in a direction in a second, KiB.
pub(super) fn aggregate_kib_per_s(all: &[JobOutcome], group: u32, way: Direction) -> f64 {
    let of_group = all.iter().filter(|job| job.group == group);
    let (mut bytes, mut ns) = (0, 0);
    for job in of_group.map(|job| job.direction(way)) {
        bytes += job.bytes;
        ns = ns.max(job.runtime.0);
    }
    if ns == 0 {
        return 0.0;
    }
    bytes as f64 * 1e9 / ns as f64 / 1024.0
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

fn direction(of: &DirectionOutcome, aggregate_kib_per_s: f64, percentiles: &[f64]) -> Json {
    let (bw, iops) = (&of.bandwidth_kib_per_s, &of.requests_per_s);
    let agg = match aggregate_kib_per_s > 0.0 {
        true => (bw.mean * 100.0 / aggregate_kib_per_s).min(100.0),
        false => 0.0,
    };
    let bytes_per_s = of.bytes_per_s() as u64;
    object([
        ("io_bytes", Json::Integer(of.bytes)),
        ("io_kbytes", Json::Integer(of.bytes / 1024)),
        ("bw_bytes", Json::Integer(bytes_per_s)),
        ("bw", Json::Integer(bytes_per_s / 1024)),
        ("iops", Json::Number(of.ios_per_s())),
        ("runtime", Json::Integer(of.runtime.0 / NS_PER_MS)),
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
