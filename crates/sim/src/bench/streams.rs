//! Streams over long stretches of a drive, in sequence and in strides, and what successive short reads
//! take: measurements that users of shingled drives have published beside the synced writes.

use super::drive_managed::rewritten;
use super::subject::{BenchError, Subject};
use crate::fio::{Access, Direction, Job, Mix, Sample, Session};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Rates of a long stream that is not synced.
#[derive(Clone, Copy, Debug)]
pub struct Plateaus {
    /// Mean length of a plateau in GiB: the distance after which the rates repeat, over the heads.
    pub gib: f64,
    /// Half of the difference of the highest and the lowest rate, in percent of their mean.
    pub spread_percent: f64,
}

/// V19b: the plateaus in the rate of 1 MiB writes in sequence at the start of the disk, of which
/// `heads` make one zone.
///
/// # Errors
/// When the drive is none, or fails.
pub fn plateaus(subject: &Subject, heads: u64) -> Result<Option<Plateaus>, BenchError> {
    /// What one rate is of.
    const WINDOW_BYTES: u64 = GIB / 2;
    /// The drive learns in the first that the stream is one.
    const LEFT_OUT: usize = 1;
    /// As long as a zone may be, in windows; twice that is written.
    const LONGEST: usize = 180;
    const SHORTEST: usize = 60;
    let mut session = subject.session()?;
    let mut job = Job::simple("stream", Direction::Write, false, MIB);
    job.size_bytes = Some(2 * LONGEST as u64 * WINDOW_BYTES);
    job.samples = true;
    let outcome = subject.run_one(&mut session, &job)?;
    let windows = outcome.samples.chunks((WINDOW_BYTES / MIB) as usize);
    let rates: Vec<f64> = windows.skip(LEFT_OUT).map(bytes_over_time).collect();
    let unlike = |lag: usize| {
        let pairs = rates.iter().zip(&rates[lag..]);
        pairs.map(|(a, b)| (a - b).abs()).sum::<f64>() / (rates.len() - lag) as f64
    };
    let zone = (SHORTEST..LONGEST).min_by(|a, b| unlike(*a).total_cmp(&unlike(*b)));
    Ok(zone.map(|zone| {
        let first = &rates[..zone];
        let lowest = first.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = first.iter().copied().fold(0.0, f64::max);
        let mean = first.iter().sum::<f64>() / first.len() as f64;
        Plateaus {
            gib: (zone as u64 * WINDOW_BYTES) as f64 / GIB as f64 / heads as f64,
            spread_percent: (highest - lowest) / 2.0 / mean * 100.0,
        }
    }))
}

/// V19g: MB/s of 1 MiB writes in sequence that are not synced, at the start of each tenth of the disk.
///
/// # Errors
/// When the drive is none, or fails.
pub fn streaming_mb_per_s(subject: &Subject) -> Result<f64, BenchError> {
    const PLACES: u64 = 10;
    const BYTES: u64 = 4 * GIB;
    let mut session = subject.session()?;
    let tenth = session.device_bytes() / PLACES / MIB * MIB;
    let mut samples = Vec::new();
    for place in 0..PLACES {
        let mut job = Job::simple("file", Direction::Write, false, MIB);
        job.offset_bytes = place * tenth;
        job.size_bytes = Some(BYTES);
        job.samples = true;
        samples.extend(subject.run_one(&mut session, &job)?.samples);
    }
    Ok(bytes_over_time(&samples) / 1e6)
}

/// Bytes a second of requests that were made one at a time.
fn bytes_over_time(samples: &[Sample]) -> f64 {
    let bytes: u64 = samples.iter().map(|s| u64::from(s.bytes)).sum();
    let ns: u64 = samples.iter().map(|s| s.latency_ns).sum();
    bytes as f64 / (ns as f64 / 1e9)
}

/// What a plot file that is written in strides takes.
#[derive(Clone, Copy, Debug)]
pub struct Plot {
    /// MB/s until the first band is cleaned.
    pub before_mb_per_s: f64,
    /// GB written until then.
    pub cliff_gb: f64,
    /// MB/s of the slowest step.
    pub slowest_mb_per_s: f64,
}

/// V19i: a plot of a proof-of-capacity coin as large as the disk, which is written without a buffer: each step
/// adds `bytes` to each of its 4,096 parts, one after another.
///
/// # Errors
/// When the drive is none, or fails.
pub fn plot(subject: &Subject, bytes: u64) -> Result<Plot, BenchError> {
    const PARTS: u64 = 4_096;
    /// More than the persistent cache and what is cleaned next.
    const WRITTEN_BYTES: u64 = 48 * GIB;
    let mut session = subject.session()?;
    let stride = session.device_bytes() / PARTS / bytes * bytes;
    let mut job = Job::simple("plot", Direction::Write, true, bytes);
    job.access = Access::Sequential { skip_bytes: (stride - bytes) as i64 };
    job.number_ios = Some(PARTS);
    let mut plot = Plot { before_mb_per_s: 0.0, cliff_gb: 0.0, slowest_mb_per_s: f64::INFINITY };
    let begun = session.now();
    for step in 0..WRITTEN_BYTES / (PARTS * bytes) {
        job.offset_bytes = step * bytes;
        let outcome = subject.run_one(&mut session, &job)?;
        let rate = outcome.direction(Direction::Write).bytes_per_s() / 1e6;
        plot.slowest_mb_per_s = plot.slowest_mb_per_s.min(rate);
        if rewritten(&session).0 == 0 {
            plot.cliff_gb = ((step + 1) * PARTS * bytes) as f64 / 1e9;
            plot.before_mb_per_s = plot.cliff_gb * 1e3 / session.now().since(begun).as_seconds();
        }
    }
    Ok(plot)
}

/// V46: the rate of random 8 KiB writes before anything is cleaned, over the highest of ten rates later.
/// On an eighth of the drive.
///
/// # Errors
/// When the drive is none, or fails.
pub fn before_over_after(subject: &Subject, range_bytes: u64) -> Result<f64, BenchError> {
    const SCALE: u64 = 8;
    let mut session = subject.scaled_session(SCALE)?;
    let mut job = Job::simple("writes", Direction::Write, true, 8192);
    job.size_bytes = Some(range_bytes / SCALE / 8192 * 8192);
    job.random_map = false;
    job.rand_repeat = false;
    let mut part = |session: &mut Session, writes: u64| {
        job.number_ios = Some(writes);
        let outcome = subject.run_one(session, &job)?;
        Ok::<f64, BenchError>(outcome.direction(Direction::Write).bytes_per_s())
    };
    let before = part(&mut session, 10_000)?;
    while rewritten(&session).0 == 0 {
        part(&mut session, 1_000)?;
    }
    let mut highest: f64 = 0.0;
    for _ in 0..10 {
        highest = highest.max(part(&mut session, 5_000)?);
    }
    Ok(before / highest)
}

/// MiB/s of a copy as a file system makes it: 1 MiB writes in sequence with a flush after each 0.9 GiB,
/// about five seconds. Twice as much is written as the log of an 8 TB disk holds.
///
/// # Errors
/// When the drive is none, or fails.
pub fn copy_mib_per_s(subject: &Subject) -> Result<f64, BenchError> {
    const WRITES_PER_FLUSH: u64 = 922;
    let mut session = subject.session()?;
    let mut job = Job::simple("copy", Direction::Write, false, MIB);
    job.size_bytes = Some(if subject.quick { 16 * GIB } else { 64 * GIB });
    job.fsync = WRITES_PER_FLUSH;
    let outcome = subject.run_one(&mut session, &job)?;
    Ok(outcome.direction(Direction::Write).bytes_per_s() / MIB as f64)
}

/// What successive reads of a stretch take when every other block of it was written again, so that the
/// media cache holds these: mean of 4 KiB reads at queue depth 1, in milliseconds, over 128 MiB from
/// `start_bytes` on.
///
/// # Errors
/// When the drive is none, or fails.
pub fn reads_with_gaps_ms(subject: &Subject, start_bytes: u64) -> Result<f64, BenchError> {
    const BYTES: u64 = 128 * MIB;
    const READ_BYTES: u64 = 4096;
    let mut session = subject.session()?;
    let mut fill = Job::simple("fill", Direction::Write, false, MIB);
    fill.offset_bytes = start_bytes;
    fill.size_bytes = Some(BYTES);
    fill.end_fsync = true;
    subject.run_one(&mut session, &fill)?;
    let mut job = Job::simple("gaps", Direction::Write, false, READ_BYTES);
    job.offset_bytes = start_bytes;
    job.size_bytes = Some(BYTES);
    job.access = Access::Sequential { skip_bytes: READ_BYTES as i64 };
    job.end_fsync = true;
    subject.run_one(&mut session, &job)?;
    job.mix = Mix::Only(Direction::Read);
    job.access = Access::Sequential { skip_bytes: 0 };
    let outcome = subject.run_one(&mut session, &job)?;
    Ok(outcome.runtime.as_seconds() * 1e3 / outcome.ios() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(drive: &str) -> Subject {
        Subject {
            drive: drive.to_string(),
            settings: Vec::new(),
            seed: 1,
            quick: true,
            traces: None,
        }
    }

    #[test]
    fn twelve_surfaces_make_twelve_plateaus() {
        let found = plateaus(&subject("st8000as0002"), 12).unwrap().unwrap();
        println!("{found:.2?}");
        assert!((5.1..=7.1).contains(&found.gib));
        assert!((2.5..=4.5).contains(&found.spread_percent));
    }

    /// Row V19i: the writes of one round through a plot have a band each, so the first bands that are cleaned
    /// free one write each; later ones find what several rounds left.
    #[test]
    fn a_plot_in_strides_falls_to_two_megabytes_a_second_when_the_log_is_full() {
        let it = plot(&subject("st8000as0002"), MIB / 2).unwrap();
        println!("{it:.2?}");
        assert!(it.before_mb_per_s > 20.0 && (0.67..=3.0).contains(&it.slowest_mb_per_s));
    }

    #[test]
    fn random_writes_are_fast_and_then_slow_for_good() {
        let ratio = before_over_after(&subject("st5000as0011"), 1_000_000_000_000).unwrap();
        println!("{ratio:.1}");
        assert!(ratio > 10.0);
    }
}
