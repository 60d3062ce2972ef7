//! The standard measurements, which every drive takes, published figures or not.

use super::drive_managed::{rewritten, silence_until_clean};
use super::host_managed;
use super::row::{Accepted, Published, Role, Row, gate};
use super::subject::{BenchError, Subject};
use crate::fio::{Direction, Job, JobOutcome, Sample, Session};
use imbrex_report::human_bytes;
use imbrex_stack::NodeRole;

/// Queue depths of random reads.
const DEPTHS: [u32; 4] = [1, 4, 16, 32];
/// Lengths of random writes: below and above the length at which entries and space of a persistent
/// cache bind alike.
const CHUNKS: [u64; 3] = [4 << 10, 64 << 10, 1 << 20];
/// Shares of the disk that random writes go to.
const RANGES: [(u64, &str); 2] = [(100, "1 %"), (1, "all")];
/// What is left of drives with a persistent cache: a full one takes hours to fill.
const SCALE: u64 = 64;
const QUICK_SCALE: u64 = 512;

/// Measures a drive.
///
/// # Errors
/// When the drive cannot be built, or fails a request.
pub fn rows(subject: &Subject) -> Result<Vec<Row>, BenchError> {
    let mut rows = Vec::new();
    let describe = subject.session()?.describe;
    if describe.has(NodeRole::Zones) && !describe.has(NodeRole::Translation) {
        // It refuses writes out of sequence, and reads of what was not written ask nothing of it.
        zones(subject, &mut rows)?;
        return Ok(rows);
    }
    random_reads(subject, &mut rows)?;
    sequential(subject, &mut rows)?;
    let has_log = describe.has(NodeRole::Translation);
    for (part, name) in RANGES {
        for chunk in CHUNKS {
            match has_log {
                true => writes_over_the_cliff(subject, (part, name), chunk, &mut rows)?,
                false => random_writes(subject, (part, name), chunk, &mut rows)?,
            }
        }
    }
    if has_log {
        idle_drain(subject, &mut rows)?;
    }
    Ok(rows)
}

/// What a host-managed drive can be asked.
fn zones(subject: &Subject, rows: &mut Vec<Row>) -> Result<(), BenchError> {
    type MakeJob = fn(host_managed::FirstZones) -> Job;
    let measures: [(&str, &str, MakeJob); 4] = [
        (
            "256 KiB writes in sequence, depth 8",
            "through four zones, one after another",
            host_managed::sequential_write,
        ),
        (
            "64 KiB writes of eight writers to random zones of four",
            "each at the write pointer of its zone",
            host_managed::random_write,
        ),
        (
            "512 KiB writes of four writers",
            "each through a zone of its own, one at a time",
            host_managed::four_streams,
        ),
        (
            "256 KiB reads of unwritten blocks, depth 8",
            "past the write pointers of four zones",
            host_managed::read_beyond,
        ),
    ];
    for (metric, definition, job) in measures {
        let run = host_managed::measure(subject, job)?;
        let rate = host_managed::mib_per_s(&run);
        rows.push(row(subject, metric, definition, "MiB/s", rate));
        let ms = |percent| host_managed::percentile_ms(&run, percent);
        latencies(subject, metric, ms, rows);
    }
    Ok(())
}

fn row(subject: &Subject, metric: &str, definition: &str, unit: &'static str, value: f64) -> Row {
    let nothing = (Published::Nothing, Accepted::Any);
    let gate = gate("", "", "", unit, nothing, (Role::Model, ""));
    let mut row = gate.row(&subject.drive, Some(value));
    row.metric = metric.to_string();
    row.definition = definition.to_string();
    row
}

/// Median, tail and longest of the latencies of a run.
fn latencies(subject: &Subject, of: &str, ms: impl Fn(f64) -> f64, rows: &mut Vec<Row>) {
    for (percent, name) in [(50.0, "p50"), (99.0, "p99"), (99.9, "p99.9"), (100.0, "longest")] {
        let metric = format!("{of}, {name}");
        let definition = "from submission to answer";
        rows.push(row(subject, &metric, definition, "ms", ms(percent)));
    }
}

fn ms(outcome: &JobOutcome, direction: Direction, percent: f64) -> f64 {
    outcome.direction(direction).latency.percentile_ns(percent) as f64 / 1e6
}

fn random_reads(subject: &Subject, rows: &mut Vec<Row>) -> Result<(), BenchError> {
    let mut session = subject.session()?;
    for depth in DEPTHS {
        let mut job = Job::simple("random-read", Direction::Read, true, 4096);
        job.iodepth = depth;
        job.number_ios = Some(if subject.quick { 2_000 } else { 20_000 });
        let outcome = subject.run_one(&mut session, &job)?;
        let name = format!("4 KiB random reads, depth {depth}");
        let rate = outcome.direction(Direction::Read).ios_per_s();
        rows.push(row(subject, &name, "requests over time, over the whole disk", "IOPS", rate));
        latencies(subject, &name, |percent| ms(&outcome, Direction::Read, percent), rows);
    }
    Ok(())
}

fn sequential(subject: &Subject, rows: &mut Vec<Row>) -> Result<(), BenchError> {
    let bytes: u64 = if subject.quick { 256 << 20 } else { 2 << 30 };
    let mut session = subject.session()?;
    for direction in [Direction::Write, Direction::Read] {
        let mut job = Job::simple("sequential", direction, false, 1 << 20);
        job.iodepth = 4;
        job.size_bytes = Some(bytes.min(session.device_bytes()));
        let outcome = subject.run_one(&mut session, &job)?;
        let metric = format!("sequential {}s of 1 MiB, depth 4, fresh", direction.name());
        let rate = outcome.direction(direction).bytes_per_s() / 1e6;
        let definition = format!("bytes over time, first {} of the disk", human_bytes(bytes));
        rows.push(row(subject, &metric, &definition, "MB/s", rate));
    }
    Ok(())
}

fn random_writes(
    subject: &Subject,
    (part, range): (u64, &str),
    chunk: u64,
    rows: &mut Vec<Row>,
) -> Result<(), BenchError> {
    let mut session = subject.session()?;
    let job = write_job(&session, part, chunk, if subject.quick { 2_000 } else { 10_000 });
    subject.run_one(&mut session, &job)?;
    let outcome = subject.run_one(&mut session, &job)?;
    let metric = format!("{} random writes over {range}", human_bytes(chunk));
    let rate = outcome.direction(Direction::Write).bytes_per_s() / 1e6;
    let definition = "bytes over time at queue depth 1, after as many writes that are not counted";
    rows.push(row(subject, &metric, definition, "MB/s", rate));
    Ok(())
}

fn write_job(session: &Session, part: u64, chunk: u64, writes: u64) -> Job {
    let mut job = Job::simple("random-write", Direction::Write, true, chunk);
    let range = session.device_bytes() / part / chunk * chunk;
    job.size_bytes = Some(range.max(chunk));
    job.random_map = false;
    job.rand_repeat = false;
    job.number_ios = Some(writes);
    job
}

fn scaled(subject: &Subject) -> (u64, Result<Session, BenchError>) {
    let scale = if subject.quick { QUICK_SCALE } else { SCALE };
    (scale, subject.scaled_session(scale))
}

/// What was written before the drive had to clean.
struct Climb {
    /// Until cleaning began.
    bytes: u64,
    /// In `seconds`: without the slice of writes in which cleaning began, unless that was the first.
    measured_bytes: u64,
    seconds: f64,
    /// Bytes and seconds of each slice.
    slices: Vec<(u64, f64)>,
}

/// Points of a curve before the cliff, and as many after it.
const CURVE_POINTS: usize = 60;

/// Bytes written of a drive that was divided by `scale`, in GB of the whole one, and the rate in MB/s up to there from the point
/// before, of the spans of writes before the cliff and after it.
fn curve(before: &[(u64, f64)], after: &[(u64, f64)], scale: u64) -> Vec<[f64; 2]> {
    let mut written = 0;
    let mut points = Vec::new();
    for spans in [before, after] {
        for group in spans.chunks(spans.len().div_ceil(CURVE_POINTS).max(1)) {
            let bytes: u64 = group.iter().map(|span| span.0).sum();
            let seconds: f64 = group.iter().map(|span| span.1).sum();
            written += bytes;
            points.push([(written * scale) as f64 / 1e9, bytes as f64 / seconds / 1e6]);
        }
    }
    points
}

/// How the metric of a row ends that says where a cliff is.
pub(super) const CLIFF: &str = ", cliff";

/// How the rows about a cliff are called.
struct CliffNames {
    /// The writes: start of each metric.
    writes: String,
    /// The circumstances: end of each definition.
    on: String,
}

/// Writes until the drive has to clean, and then as much again.
fn writes_over_the_cliff(
    subject: &Subject,
    range: (u64, &str),
    chunk: u64,
    rows: &mut Vec<Row>,
) -> Result<(), BenchError> {
    let (scale, session) = scaled(subject);
    let mut session = session?;
    // As many writes as say within 1 MiB where the cliff is.
    let slice = ((1 << 20) / chunk).clamp(1, 50);
    let mut job = write_job(&session, range.0, chunk, slice);
    let climb = write_until_cleaning(subject, &mut session, &job, slice * chunk)?;
    let names = CliffNames {
        writes: format!("{} random writes over {}", human_bytes(chunk), range.1),
        on: format!(", queue depth 1, on 1/{scale} of the drive"),
    };
    let CliffNames { writes, on } = &names;
    let rate = climb.measured_bytes as f64 / climb.seconds / 1e6;
    let metric = format!("{writes}, before the cliff");
    let definition = format!("bytes over time until cleaning begins{on}");
    rows.push(row(subject, &metric, &definition, "MB/s", rate));
    if rewritten(&session).0 == 0 {
        return Ok(());
    }
    let written = (climb.bytes * scale) as f64 / 1e9;
    let metric = format!("{writes}{CLIFF}");
    let definition = format!("bytes written until cleaning begins, times {scale}{on}");
    let cliff = rows.len();
    rows.push(row(subject, &metric, &definition, "GB", written));
    // A cycle of all bands, or as many writes as there were before the cliff.
    job.number_ios = Some((climb.bytes / chunk).clamp(200, 20_000));
    job.samples = true;
    let after = after_the_cliff(subject, &mut session, &job, &names, rows)?;
    rows[cliff].curve = curve(&climb.slices, &after, scale);
    Ok(())
}

/// Repeats a job of `slice_bytes` until the drive cleans, or twice its capacity is written.
fn write_until_cleaning(
    subject: &Subject,
    session: &mut Session,
    job: &Job,
    slice_bytes: u64,
) -> Result<Climb, BenchError> {
    let mut climb = Climb { bytes: 0, measured_bytes: 0, seconds: 0.0, slices: Vec::new() };
    // A range smaller than the persistent cache, rewritten for ever, need not fill it.
    let bytes_max = 2 * session.device_bytes();
    while rewritten(session).0 == 0 && climb.bytes < bytes_max {
        let outcome = subject.run_one(session, job)?;
        climb.bytes += slice_bytes;
        climb.slices.push((slice_bytes, outcome.runtime.as_seconds()));
        if rewritten(session).0 == 0 || climb.seconds == 0.0 {
            climb.seconds += outcome.runtime.as_seconds();
            climb.measured_bytes = climb.bytes;
        }
    }
    Ok(climb)
}

/// Runs a job on a drive that has to clean: its rate, its latencies and what a band's cleaning takes. Gives bytes and seconds of
/// each write.
fn after_the_cliff(
    subject: &Subject,
    session: &mut Session,
    job: &Job,
    CliffNames { writes, on }: &CliffNames,
    rows: &mut Vec<Row>,
) -> Result<Vec<(u64, f64)>, BenchError> {
    let (bands, cleaning_ns) = rewritten(session);
    let outcome = subject.run_one(session, job)?;
    let rate = outcome.direction(Direction::Write).bytes_per_s() / 1e6;
    let metric = format!("{writes}, after the cliff");
    let definition = format!("bytes over time of as many writes again (200 to 20,000){on}");
    rows.push(row(subject, &metric, &definition, "MB/s", rate));
    let ms = |percent| ms(&outcome, Direction::Write, percent);
    latencies(subject, &metric, ms, rows);
    let (bands_after, cleaning_after_ns) = rewritten(session);
    if bands_after > bands {
        let each_s = (cleaning_after_ns - cleaning_ns) as f64 / (bands_after - bands) as f64 / 1e9;
        let metric = format!("{writes}, time of a band's cleaning");
        let definition = "mean over those of the writes above";
        rows.push(row(subject, &metric, definition, "s", each_s));
    }
    let span = |sample: &Sample| (u64::from(sample.bytes), sample.latency_ns as f64 / 1e9);
    Ok(outcome.samples.iter().map(span).collect())
}

/// How long a full persistent cache takes to empty when the host is silent.
fn idle_drain(subject: &Subject, rows: &mut Vec<Row>) -> Result<(), BenchError> {
    let (scale, session) = scaled(subject);
    let mut session = session?;
    let job = write_job(&session, 1, 64 << 10, 200);
    while rewritten(&session).0 == 0 {
        subject.run_one(&mut session, &job)?;
    }
    let drained = silence_until_clean(&mut session);
    if let Some(silent) = drained {
        let hours = silent.as_seconds() * scale as f64 / 3600.0;
        let definition = format!(
            "idle time until nothing is cleaned any more, after 64 KiB random writes until cleaning \
             began, times {scale}, on 1/{scale} of the drive"
        );
        rows.push(row(subject, "a full persistent cache empties in", &definition, "h", hours));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_has_few_points_and_all_that_was_written() {
        let before = vec![(1_000_000, 0.125); 6000];
        let points = curve(&before, &[(1_000_000, 1.0), (3_000_000, 2.0)], 10);
        assert_eq!(points.len(), CURVE_POINTS + 2);
        assert_eq!(points[0], [1.0, 8.0]);
        assert_eq!(points[CURVE_POINTS..], [[60.01, 1.0], [60.04, 1.5]]);
        assert!(curve(&[], &[], 1).is_empty());
    }
}
