//! Measurements of drive-managed shingled drives: writes before and after the cliff, stalls, and
//! reads among and after random writes.

use super::subject::{BenchError, Subject};
use crate::fio::{Direction, Job, JobOutcome, Mix, Sample, Session};
use imbrex_core::counters::Counter;
use imbrex_core::rng::Rng;
use imbrex_core::units::Duration;
use imbrex_stack::NodeRole;

const MIB: u64 = 1 << 20;
const GIB: f64 = (1u64 << 30) as f64;
/// By how much `quick` divides the drive where the position of a cliff is measured.
const QUICK_SCALE: u64 = 8;
/// A request of up to 4 MiB that takes this long met a stall of the map's journal or a clean: no
/// seek and no number of turns come near.
const STALL_NS: u64 = 200_000_000;

/// Writes of one length, with what the drive did meanwhile.
#[derive(Clone, Debug)]
pub struct Writes {
    samples: Vec<Sample>,
    /// The writes before the hundredth of the job in which the first band was cleaned.
    cliff: Option<usize>,
    /// By how much the drive was divided.
    scale: u64,
}

/// Writes `bytes` (divided with the drive when the subject is to be quick) in requests of `chunk`
/// bytes at queue depth 1 to a drive that holds nothing, flushing after each when `synced`.
///
/// # Errors
/// When the drive is none, or fails.
pub fn writes(
    subject: &Subject,
    random: bool,
    synced: bool,
    chunk: u64,
    bytes: u64,
) -> Result<Writes, BenchError> {
    let scale = if subject.quick { QUICK_SCALE } else { 1 };
    writes_at(subject, scale, (random, synced), chunk, bytes)
}

/// As [`writes`], on the drive divided by `scale`.
///
/// # Errors
/// As [`writes`].
pub fn writes_at(
    subject: &Subject,
    scale: u64,
    (random, synced): (bool, bool),
    chunk: u64,
    bytes: u64,
) -> Result<Writes, BenchError> {
    /// The cliff is looked for between so many parts of the job.
    const PARTS: u64 = 100;
    let mut session = subject.scaled_session(scale)?;
    let mut job = Job::simple("writes", Direction::Write, random, chunk);
    job.sync_writes = synced;
    job.samples = true;
    let requests = bytes / scale / chunk;
    let mut writes = Writes { samples: Vec::new(), cliff: None, scale };
    for part in 0..PARTS {
        let from = requests * part / PARTS;
        job.number_ios = Some(requests * (part + 1) / PARTS - from);
        job.rand_seed = Some(Rng::new(subject.seed, part).next_u64());
        if !random {
            job.offset_bytes = from * chunk;
        }
        let outcome = subject.run_one(&mut session, &job)?;
        if writes.cliff.is_none() && rewritten(&session).0 > 0 {
            writes.cliff = Some(writes.samples.len());
        }
        writes.samples.extend(outcome.samples);
    }
    Ok(writes)
}

/// Bands cleaned so far, and the nanoseconds that took; nothing of a drive without a translation.
pub(super) fn rewritten(session: &Session) -> (u64, u64) {
    let counts = session.describe.counts_of(NodeRole::Translation, &session.engine.stack);
    counts.map_or((0, 0), |counts| {
        let bands = counts.counter(Counter::BandsRewritten);
        (bands, counts.counter(Counter::BandRewriteNs))
    })
}

/// Lets a drive be until it cleans no more: how long that took. `None` of one that does not clean in
/// idle time.
pub(super) fn silence_until_clean(session: &mut Session) -> Option<Duration> {
    /// How exactly that is told.
    const STEP: Duration = Duration::from_ms(1_000);
    /// Silence after which nothing more is to be expected: far beyond the `idle_after` of every drive
    /// of the library. One that waits longer counts as one that does not clean.
    const QUIET_STEPS: u32 = 60;
    let begun = session.now();
    let (before, mut cleaned, mut last) = (rewritten(session).0, rewritten(session).0, begun);
    let mut quiet_steps = 0;
    while quiet_steps < QUIET_STEPS {
        session.idle(STEP);
        quiet_steps += 1;
        let now = rewritten(session).0;
        if now > cleaned {
            (cleaned, last, quiet_steps) = (now, session.now(), 0);
        }
    }
    (cleaned > before).then(|| last.since(begun))
}

impl Writes {
    /// GiB written when cleaning began, on the whole drive; `None` when it did not.
    pub fn cliff_gib(&self) -> Option<f64> {
        let cliff = self.cliff?;
        let bytes: u64 = self.samples[..cliff].iter().map(|s| u64::from(s.bytes)).sum();
        Some(bytes as f64 * self.scale as f64 / GIB)
    }

    /// The writes before cleaning began.
    pub fn before(&self) -> &[Sample] {
        &self.samples[..self.cliff.unwrap_or(self.samples.len())]
    }

    /// The writes since.
    pub fn after(&self) -> &[Sample] {
        &self.samples[self.cliff.unwrap_or(self.samples.len())..]
    }
}

/// The mean over requests of bytes / latency, in MiB/s; `None` of no requests.
pub fn mean_of_rates(samples: &[Sample]) -> Option<f64> {
    let rate = |s: &Sample| f64::from(s.bytes) / MIB as f64 / (s.latency_ns as f64 / 1e9);
    let sum: f64 = samples.iter().map(rate).sum();
    (!samples.is_empty()).then(|| sum / samples.len() as f64)
}

/// Latency in ms that a share of the requests do not exceed, those that met a stall left out.
pub fn percentile_ms(samples: &[Sample], share: f64) -> Option<f64> {
    let mut latencies: Vec<u64> = samples.iter().map(|s| s.latency_ns).collect();
    latencies.retain(|latency| *latency < STALL_NS);
    latencies.sort_unstable();
    let last = latencies.len().checked_sub(1)?;
    let index = (latencies.len() as f64 * share) as usize;
    Some(latencies[index.min(last)] as f64 / 1e6)
}

/// The stalls before cleaning begins.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stalls {
    /// Requests from the start to the first.
    pub first: usize,
    /// Fewest requests from one to the next.
    pub period_min: usize,
    /// Most.
    pub period_max: usize,
    /// Mean length of a request that met one, s.
    pub mean_s: f64,
}

/// What can be said of stalls among requests; `None` where there are fewer than two.
pub fn stalls(samples: &[Sample]) -> Option<Stalls> {
    let (at, long): (Vec<usize>, Vec<u64>) = samples
        .iter()
        .enumerate()
        .filter(|(_, sample)| sample.latency_ns >= STALL_NS)
        .map(|(index, sample)| (index, sample.latency_ns))
        .unzip();
    let periods = || at.windows(2).map(|pair| pair[1] - pair[0]);
    Some(Stalls {
        first: *at.first()?,
        period_min: periods().min()?,
        period_max: periods().max()?,
        mean_s: long.iter().sum::<u64>() as f64 / long.len() as f64 / 1e9,
    })
}

/// How unsteady 8 MiB reads in sequence are over what was written in sequence, and over the same
/// after random 64 KiB writes to a hundredth of it: the second over the first.
///
/// # Errors
/// When the drive is none, or fails.
pub fn read_variance_ratio(subject: &Subject) -> Result<f64, BenchError> {
    let bytes = if subject.quick { 256 * MIB } else { 2048 * MIB };
    let mut session = subject.scaled_session(QUICK_SCALE)?;
    let mut write = Job::simple("fill", Direction::Write, false, MIB);
    write.size_bytes = Some(bytes);
    // What is still in the drive's memory would be read at the rate of the interface.
    write.end_fsync = true;
    subject.run_one(&mut session, &write)?;
    let mut read = Job::simple("read", Direction::Read, false, 8 * MIB);
    read.size_bytes = Some(bytes);
    read.samples = true;
    let fresh = subject.run_one(&mut session, &read)?;
    let mut scatter = Job::simple("scatter", Direction::Write, true, 64 << 10);
    scatter.size_bytes = Some(bytes);
    scatter.end_fsync = true;
    scatter.number_ios = Some(bytes / 100 / (64 << 10));
    subject.run_one(&mut session, &scatter)?;
    let scattered = subject.run_one(&mut session, &read)?;
    Ok(relative_variance(&scattered) / relative_variance(&fresh))
}

/// Variance of the rates over their mean. That of the rates themselves falls when all reads get
/// slower, though they go up and down as much.
fn relative_variance(outcome: &JobOutcome) -> f64 {
    let rates: Vec<f64> =
        outcome.samples.iter().map(|s| f64::from(s.bytes) / s.latency_ns as f64).collect();
    let count = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let squares = rates.iter().map(|rate| (rate / mean - 1.0).powi(2));
    squares.sum::<f64>() / count
}

/// Mean latency in ms of random 8 KiB reads and writes together, in ten parts of a run, with a
/// share of writes: whether it jumps when the log is full and whether it recovers. On a drive
/// divided by 64, or the run would last for days.
///
/// # Errors
/// When the drive is none, or fails.
pub fn mixed_latencies_ms(subject: &Subject, write_percent: u32) -> Result<Vec<f64>, BenchError> {
    const SCALE: u64 = 64;
    let mut session = subject.scaled_session(SCALE)?;
    let mut job = Job::simple("mix", Direction::Read, true, 8192);
    job.mix = Mix::ReadWrite { read_percent: 100 - write_percent };
    job.number_ios = Some(if subject.quick { 3_000 } else { 6_000 });
    (0..10)
        .map(|part| {
            job.rand_seed = Some(Rng::new(subject.seed, part).next_u64());
            let outcome = subject.run_one(&mut session, &job)?;
            Ok(outcome.runtime.as_seconds() * 1e3 / outcome.ios() as f64)
        })
        .collect()
}

/// Median time of a flush in s when the log is full: one after each 32 random writes of 8 KiB, `depth`
/// of which are in flight. On a drive divided by 64.
///
/// # Errors
/// When the drive is none, or fails.
pub fn full_flush_s(subject: &Subject, depth: u32) -> Result<Option<f64>, BenchError> {
    const SCALE: u64 = 64;
    const WRITES_PER_FLUSH: u64 = 32;
    let mut session = subject.scaled_session(SCALE)?;
    let mut job = Job::simple("writes", Direction::Write, true, 8192);
    job.iodepth = depth;
    job.rand_seed = Some(Rng::new(subject.seed, 0).next_u64());
    // More than the drive has entries, and flushes that fill its log.
    job.number_ios = Some(6_000);
    subject.run_one(&mut session, &job)?;
    if rewritten(&session).0 == 0 {
        return Ok(None);
    }
    job.rand_seed = Some(Rng::new(subject.seed, 1).next_u64());
    job.fsync = WRITES_PER_FLUSH;
    job.number_ios = Some(WRITES_PER_FLUSH * if subject.quick { 20 } else { 100 });
    let outcome = subject.run_one(&mut session, &job)?;
    Ok(Some(outcome.flushes.percentile_ns(50.0) as f64 / 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(settings: &[&str]) -> Subject {
        Subject::quick("st8000as0002", settings)
    }

    fn near(model: Option<f64>, published: f64, share: f64) {
        let model = model.expect("something was measured");
        let error = model / published - 1.0;
        assert!(error.abs() <= share, "{model} is not {published}");
    }

    #[test]
    fn synced_writes_are_as_measured() {
        let writes = writes(&subject(&[]), true, true, MIB, 24 << 30).unwrap();
        near(mean_of_rates(writes.before()), 46.5, 0.15);
        near(writes.cliff_gib(), 17.0, 0.2);
        assert!(mean_of_rates(writes.after()).unwrap() < 10.0, "collapse");
        let spread = [0.05, 0.95].map(|share| percentile_ms(writes.before(), share).unwrap());
        assert!((14.0..=20.0).contains(&spread[0]), "{spread:?}");
        assert!((28.0..=36.0).contains(&spread[1]), "{spread:?}");
        let stalls = stalls(writes.before()).unwrap();
        assert_eq!((stalls.period_min, stalls.period_max), (240, 240));
        assert_eq!(stalls.first, 240, "from the first write");
        assert!((0.4..=1.2).contains(&stalls.mean_s), "{stalls:?}");
    }

    /// Rates of large synced writes before the cliff, in MiB/s, and what was published: V13.
    fn large_writes(settings: &[&str]) -> Vec<(f64, f64)> {
        [(4, 90.6), (8, 88.1), (16, 81.4), (32, 82.9)]
            .into_iter()
            .map(|(mib, published)| {
                let writes = writes(&subject(settings), true, true, mib * MIB, 16 << 30).unwrap();
                assert_eq!(writes.cliff, None, "{mib} MiB");
                (mean_of_rates(writes.before()).unwrap(), published)
            })
            .collect()
    }

    #[test]
    fn large_synced_writes_are_as_measured() {
        for (model, published) in large_writes(&[]) {
            near(Some(model), published, 0.2);
        }
    }

    #[test]
    fn without_transactions_the_largest_synced_writes_are_too_fast() {
        let rates = large_writes(&["translation.log_transaction=0"]);
        for (model, published) in &rates[1..] {
            assert!(model / published > 1.2, "{model} for {published}");
        }
    }

    /// MiB/s of throughput behind the cliff, of writes so long.
    fn throughput_behind_the_cliff(mib: u64, settings: &[&str]) -> f64 {
        let writes = writes(&subject(settings), true, true, mib * MIB, 44 << 30).unwrap();
        let after = writes.after();
        let taken: u64 = after.iter().map(|write| write.latency_ns).sum();
        (after.len() as u64 * mib) as f64 / (taken as f64 / 1e9)
    }

    #[test]
    fn large_writes_behind_the_cliff_gain_from_what_the_log_holds() {
        let without = "translation.rewrite_covered=as-others";
        // A write of 32 MiB covers most of two bands, one of 2 MiB a fourteenth of one.
        for (mib, range) in [(32, 0.0..0.85), (2, 0.9..1.0)] {
            let with = throughput_behind_the_cliff(mib, &[]);
            let share = throughput_behind_the_cliff(mib, &[without]) / with;
            println!("{mib} MiB: {with:.1} MiB/s, without it {share:.2} of that");
            assert!(range.contains(&share), "{mib} MiB: {share} of {with}");
        }
    }

    #[test]
    fn the_length_of_a_transaction_is_where_the_rates_stop_growing() {
        let half = large_writes(&["translation.log_transaction=2MiB"]);
        assert!(half[0].0 / half[0].1 < 0.8, "at 4 MiB: {half:?}");
        let double = large_writes(&["translation.log_transaction=8MiB"]);
        assert!(double[2].0 / double[2].1 > 1.2, "at 16 MiB: {double:?}");
    }

    #[test]
    fn reads_in_sequence_are_uneven_after_random_writes() {
        let ratio = read_variance_ratio(&subject(&[])).unwrap();
        assert!(ratio >= 3.0, "{ratio}");
    }

    #[test]
    fn latency_of_a_mix_jumps_when_the_log_is_full_and_does_not_recover() {
        let parts = mixed_latencies_ms(&subject(&[]), 20).unwrap();
        assert!(parts[9] > 2.0 * parts[0] && parts[8] > 2.0 * parts[0], "{parts:?}");
    }

    #[test]
    fn a_flush_waits_for_the_cleans_of_the_writes_before_it() {
        let [alone, behind] =
            [1, 32].map(|depth| full_flush_s(&subject(&[]), depth).unwrap().unwrap());
        println!("a flush takes {alone:.3} s at depth 1 and {behind:.2} s at depth 32");
        assert!(alone < 0.2, "no write waits: {alone} s");
        assert!(behind > 1.0, "{behind} s");
    }

    #[test]
    fn without_the_stall_there_is_no_period() {
        let ablated = subject(&["translation.journal_every_records=0"]);
        let writes = writes(&ablated, true, true, MIB, 8 << 30).unwrap();
        assert_eq!(stalls(writes.before()), None);
    }
}
