//! The logs of fio: a line for each request, or for each span of time.

use super::job::Direction;
use super::outcome::{JobOutcome, Outcome, Sample};
use super::parse::{JobFile, LogSettings};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What a log tells of requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nanoseconds.
    Latency,
    /// KiB a second over a span; of a single request, as in fio, thousands of bytes a second.
    Bandwidth,
    /// Requests a second over a span; of a single request 1.
    Requests,
}

/// A log file that a clone of a job writes to.
struct Log {
    /// The option that gives the start of its name.
    option: &'static str,
    name: String,
    /// None of one that stays empty.
    kind: Option<Kind>,
}

/// The logs of a clone, which is the `number`th of all, from 1.
fn logs_of(settings: &LogSettings, number: usize) -> Vec<Log> {
    let number = match settings.per_job {
        true => format!(".{number}"),
        false => String::new(),
    };
    let (latency, bandwidth, requests) =
        (&settings.latency, &settings.bandwidth, &settings.requests);
    let all = [
        // Submission takes no time, and its log stays empty, as with fio's synchronous engines.
        ("write_lat_log", latency, "slat", None),
        ("write_lat_log", latency, "clat", Some(Kind::Latency)),
        ("write_lat_log", latency, "lat", Some(Kind::Latency)),
        ("write_bw_log", bandwidth, "bw", Some(Kind::Bandwidth)),
        ("write_iops_log", requests, "iops", Some(Kind::Requests)),
    ];
    let log = |(option, start, what, kind): (_, &Option<String>, _, _)| {
        let name = format!("{}_{what}{number}.log", start.as_ref()?);
        Some(Log { option, name, kind })
    };
    all.into_iter().filter_map(log).collect()
}

/// The names of the log files that a run will write, each with the option that gives its start.
pub fn names(file: &JobFile) -> BTreeMap<String, &'static str> {
    let clones = file.jobs.iter().zip(&file.reports);
    let clones = clones.flat_map(|(job, report)| (0..job.numjobs).map(|_| &report.logs));
    let logs = clones.zip(1..).flat_map(|(settings, n)| logs_of(settings, n));
    logs.map(|log| (log.name, log.option)).collect()
}

/// The log files of a run: name and content.
pub fn files(file: &JobFile, outcome: &Outcome) -> BTreeMap<String, String> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for (job, number) in outcome.jobs.iter().zip(1..) {
        let settings = &file.reports[job.job].logs;
        for log in logs_of(settings, number) {
            let content = files.entry(log.name).or_default();
            if let Some(kind) = log.kind {
                lines(content, job, settings, kind);
            }
        }
    }
    files
}

fn line(out: &mut String, ms: u64, value: u64, way: Direction, bytes: u32, offset: Option<u64>) {
    let way = way as u8;
    // The last column is the priority, of which a model has none.
    match offset {
        None => writeln!(out, "{ms}, {value}, {way}, {bytes}, 0"),
        Some(offset) => writeln!(out, "{ms}, {value}, {way}, {bytes}, {offset}, 0"),
    }
    .expect("a string takes everything");
}

fn lines(out: &mut String, job: &JobOutcome, settings: &LogSettings, kind: Kind) {
    if settings.average_ms > 0 {
        return averages(out, job, settings, kind);
    }
    for sample in &job.samples {
        let value = match kind {
            Kind::Latency => sample.latency_ns,
            Kind::Bandwidth => u64::from(sample.bytes) * 1_000_000 / sample.latency_ns.max(1),
            Kind::Requests => 1,
        };
        let offset = settings.offsets.then_some(sample.offset);
        let ms = sample.time_ns / 1_000_000;
        line(out, ms, value, sample.direction, sample.bytes, offset);
    }
}

/// What was done in a direction in the present span.
#[derive(Clone, Copy, Default)]
struct Span {
    count: u64,
    bytes: u64,
    sum_ns: u64,
    largest_ns: u64,
}

fn averages(out: &mut String, job: &JobOutcome, settings: &LogSettings, kind: Kind) {
    let span_ns = settings.average_ms.saturating_mul(1_000_000);
    let mut spans = [Span::default(); 3];
    let mut number = 0;
    let offset = settings.offsets.then_some(0);
    let mut close = |spans: &mut [Span; 3], end_ns: u64, length_ns: u64| {
        for way in Direction::ALL {
            let span = std::mem::take(&mut spans[way as usize]);
            if span.count == 0 {
                continue;
            }
            let per_s = 1e9 / length_ns.max(1) as f64;
            let value = match kind {
                Kind::Latency if settings.largest => span.largest_ns,
                Kind::Latency => span.sum_ns / span.count,
                Kind::Bandwidth => (span.bytes as f64 * per_s / 1024.0) as u64,
                Kind::Requests => (span.count as f64 * per_s) as u64,
            };
            line(out, end_ns / 1_000_000, value, way, 0, offset);
        }
    };
    for sample in &job.samples {
        let Sample { time_ns, latency_ns, bytes, direction, .. } = *sample;
        if time_ns / span_ns > number {
            close(&mut spans, (number + 1) * span_ns, span_ns);
            number = time_ns / span_ns;
        }
        let span = &mut spans[direction as usize];
        span.count += 1;
        span.bytes += u64::from(bytes);
        span.sum_ns += latency_ns;
        span.largest_ns = span.largest_ns.max(latency_ns);
    }
    let end_ns = job.ended.since(job.started).0;
    let rest_ns = end_ns.saturating_sub(number * span_ns).min(span_ns);
    close(&mut spans, end_ns.min((number + 1).saturating_mul(span_ns)), rest_ns);
}
