//! What became of a job.

use super::job::{Direction, Job};
use super::spread::{Latencies, Spread};
use imbrex_core::error::IoError;
use imbrex_core::units::{Duration, Instant};

/// Span over which fio takes one figure of bandwidth and of requests a second.
const RATE_WINDOW_NS: u64 = 500_000_000;

const NS_PER_S: f64 = 1e9;

/// One request, when they are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// When it was done, ns from the start of the job.
    pub time_ns: u64,
    /// How long it took, ns.
    pub latency_ns: u64,
    /// First byte on the device.
    pub offset: u64,
    /// Length, bytes.
    pub bytes: u32,
    /// Which way.
    pub direction: Direction,
}

/// What a job did in one direction.
#[derive(Clone, Default)]
pub struct DirectionOutcome {
    /// Requests done.
    pub ios: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// From submission to completion. A model has no host, so fio's submission latency is nothing
    /// and its total latency is this one.
    pub latency: Latencies,
    /// KiB a second in each half second in which something was done.
    pub bandwidth_kib_per_s: Spread,
    /// Requests a second in each half second in which something was done.
    pub requests_per_s: Spread,
    /// Sum over the requests of bytes / latency.
    rate_sum: f64,
    /// Run time measured, when anything was moved in this direction; 0 otherwise, as in fio.
    pub runtime: Duration,
}

impl DirectionOutcome {
    /// The run time as fio reports it and divides by it: whole milliseconds, rounded up.
    pub fn runtime_ms(&self) -> u64 {
        (self.runtime.0 / 1000).div_ceil(1000)
    }

    /// Bytes a second of run time.
    pub fn bytes_per_s(&self) -> f64 {
        per_second(self.bytes, self.runtime)
    }

    /// Requests a second of run time.
    pub fn ios_per_s(&self) -> f64 {
        per_second(self.ios, self.runtime)
    }

    /// The mean over the requests of bytes / latency, in bytes a second: what a plot of rate by
    /// request shows, where a few long stalls weigh little. 0 without requests.
    pub fn mean_request_bytes_per_s(&self) -> f64 {
        if self.ios == 0 {
            return 0.0;
        }
        self.rate_sum / self.ios as f64
    }

    fn merge(&mut self, other: &DirectionOutcome) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.latency.merge(&other.latency);
        self.bandwidth_kib_per_s.add_rate(&other.bandwidth_kib_per_s);
        self.requests_per_s.add_rate(&other.requests_per_s);
        self.rate_sum += other.rate_sum;
        self.runtime = self.runtime.max(other.runtime);
    }
}

fn per_second(count: u64, runtime: Duration) -> f64 {
    if runtime == Duration::ZERO {
        return 0.0;
    }
    count as f64 * NS_PER_S / runtime.0 as f64
}

/// What one job did; with `group_reporting`, what a group of jobs did.
#[derive(Clone)]
pub struct JobOutcome {
    /// The job, or the first of the group.
    pub name: String,
    /// Its place among the jobs that were given; of a group, that of the last.
    pub job: usize,
    /// Which of its clones, from 0.
    pub clone: u32,
    /// Jobs in this outcome: 1, or those of the group.
    pub jobs: u32,
    /// The group of results, from 0.
    pub group: u32,
    /// When it started, start delay over and ramp included.
    pub started: Instant,
    /// When its last request was done.
    pub ended: Instant,
    /// Run time measured, ramp excluded; of a group the sum.
    pub runtime: Duration,
    /// By [`Direction`].
    pub directions: [DirectionOutcome; 3],
    /// Flushes.
    pub flushes: Latencies,
    /// Requests issued.
    pub issued: u64,
    /// Requests and flushes by the depth of the queue when they were issued, themselves included:
    /// 1, 2 to 3, 4 to 7, 8 to 15, 16 to 31, 32 to 63, 64 or more. A request is in the queue until
    /// fio would take its answer, which it does when it needs room.
    pub depths: [u64; 7],
    /// How often so many answers were taken at once: none (never), 1 to 4, 5 to 8, 9 to 16, 17 to
    /// 32, 33 to 64, more.
    pub batches: [u64; 7],
    /// Requests in flight at most, as the job was told.
    pub iodepth: u32,
    /// Zones it has reset to write them again.
    pub zone_resets: u64,
    /// It ended because no zone of its region had anything to read, or room to write.
    pub ran_out_of_zones: bool,
    /// What ended it before its time.
    pub error: Option<IoError>,
    /// Its requests, when they are kept; empty in a group.
    pub samples: Vec<Sample>,
}

impl JobOutcome {
    /// One direction.
    pub fn direction(&self, direction: Direction) -> &DirectionOutcome {
        &self.directions[direction as usize]
    }

    /// Requests in all directions.
    pub fn ios(&self) -> u64 {
        self.directions.iter().map(|d| d.ios).sum()
    }

    fn merge(&mut self, other: &JobOutcome) {
        // As in fio, a group has the name of its first job and the options of its last.
        self.job = other.job;
        self.jobs += other.jobs;
        self.started = self.started.min(other.started);
        self.ended = self.ended.max(other.ended);
        self.runtime += other.runtime;
        for (mine, theirs) in self.directions.iter_mut().zip(&other.directions) {
            mine.merge(theirs);
        }
        self.flushes.merge(&other.flushes);
        self.issued += other.issued;
        for (mine, theirs) in self.depths.iter_mut().zip(other.depths) {
            *mine += theirs;
        }
        for (mine, theirs) in self.batches.iter_mut().zip(other.batches) {
            *mine += theirs;
        }
        self.zone_resets += other.zone_resets;
        self.ran_out_of_zones |= other.ran_out_of_zones;
        self.error = self.error.or(other.error);
        self.samples.clear();
    }
}

/// What a run of jobs did.
#[derive(Clone)]
pub struct Outcome {
    /// Each clone of each job, in order.
    pub jobs: Vec<JobOutcome>,
    /// When the run began.
    pub started: Instant,
    /// When its last job ended.
    pub ended: Instant,
    /// Time in which a request was in flight.
    pub busy: Duration,
}

impl Outcome {
    /// The entries of fio's output: clones and jobs with `group_reporting` become one a group.
    pub fn reported(&self, jobs: &[Job]) -> Vec<JobOutcome> {
        let mut entries: Vec<JobOutcome> = Vec::new();
        for outcome in &self.jobs {
            let merges = |entry: &JobOutcome| {
                entry.group == outcome.group && jobs[entry.job].group_reporting
            };
            match entries.iter_mut().find(|entry| merges(entry)) {
                Some(entry) if jobs[outcome.job].group_reporting => entry.merge(outcome),
                _ => entries.push(outcome.clone()),
            }
        }
        entries
    }

    /// The first error of any job.
    pub fn error(&self) -> Option<(&JobOutcome, IoError)> {
        self.jobs.iter().find_map(|job| Some((job, job.error?)))
    }
}

/// Collects the outcome of one clone.
pub(super) struct Meter {
    pub outcome: JobOutcome,
    keep_samples: bool,
    /// Start of what is measured.
    since: Instant,
    /// Start of the present window of rates, and what was done in it.
    window: Instant,
    done: [(u64, u64); 3],
}

impl Meter {
    pub fn new(job: &Job, index: usize, clone: u32, group: u32) -> Meter {
        Meter {
            outcome: JobOutcome {
                name: job.name.clone(),
                job: index,
                clone,
                jobs: 1,
                group,
                started: Instant::ZERO,
                ended: Instant::ZERO,
                runtime: Duration::ZERO,
                directions: Default::default(),
                flushes: Latencies::default(),
                issued: 0,
                depths: [0; 7],
                batches: [0; 7],
                iodepth: job.iodepth,
                zone_resets: 0,
                ran_out_of_zones: false,
                error: None,
                samples: Vec::new(),
            },
            keep_samples: job.samples,
            since: Instant::ZERO,
            window: Instant::ZERO,
            done: [(0, 0); 3],
        }
    }

    pub fn start(&mut self, now: Instant) {
        self.outcome.started = now;
        self.since = now;
        self.window = now;
    }

    /// The ramp is over: forgets what was measured.
    pub fn restart(&mut self, now: Instant) {
        for direction in &mut self.outcome.directions {
            direction.ios = 0;
            direction.bytes = 0;
            direction.latency.clear();
            direction.bandwidth_kib_per_s = Spread::default();
            direction.requests_per_s = Spread::default();
            direction.rate_sum = 0.0;
        }
        self.outcome.flushes.clear();
        self.outcome.issued = 0;
        self.outcome.depths = [0; 7];
        self.outcome.batches = [0; 7];
        self.outcome.samples.clear();
        self.done = [(0, 0); 3];
        self.since = now;
        self.window = now;
    }

    /// A request was issued and made the queue `depth` deep.
    #[inline]
    pub fn issued(&mut self, depth: u32) {
        self.outcome.issued += 1;
        self.flush_issued(depth);
    }

    /// A flush was issued and made the queue `depth` deep.
    #[inline]
    pub fn flush_issued(&mut self, depth: u32) {
        self.outcome.depths[depth.ilog2().min(6) as usize] += 1;
    }

    /// So many answers were taken at once, at least one.
    #[inline]
    pub fn taken(&mut self, answers: u32) {
        let step = match answers {
            1..=4 => 1,
            _ => (answers - 1).ilog2().min(6),
        };
        self.outcome.batches[step as usize] += 1;
    }

    #[inline]
    pub fn done(
        &mut self,
        now: Instant,
        latency: Duration,
        direction: Direction,
        offset: u64,
        bytes: u64,
    ) {
        self.close_windows(now);
        let d = direction as usize;
        let of = &mut self.outcome.directions[d];
        of.ios += 1;
        of.bytes += bytes;
        of.latency.add(latency.0);
        of.rate_sum += bytes as f64 * NS_PER_S / latency.0.max(1) as f64;
        self.done[d].0 += 1;
        self.done[d].1 += bytes;
        if self.keep_samples {
            self.outcome.samples.push(Sample {
                time_ns: now.since(self.outcome.started).0,
                latency_ns: latency.0,
                offset,
                bytes: bytes as u32,
                direction,
            });
        }
    }

    /// Takes the figures of every half second that has passed. As in fio, one in which nothing was
    /// done gives none.
    #[inline]
    fn close_windows(&mut self, now: Instant) {
        let passed = now.since(self.window).0 / RATE_WINDOW_NS;
        if passed == 0 {
            return;
        }
        for (of, done) in self.outcome.directions.iter_mut().zip(&mut self.done) {
            let (ios, bytes) = std::mem::take(done);
            if ios > 0 {
                let per_s = NS_PER_S / RATE_WINDOW_NS as f64;
                of.requests_per_s.add((ios as f64 * per_s) as u64);
                of.bandwidth_kib_per_s.add((bytes as f64 * per_s / 1024.0) as u64);
            }
        }
        self.window = self.window + Duration(passed * RATE_WINDOW_NS);
    }

    pub fn end(&mut self, now: Instant) {
        self.close_windows(now);
        self.outcome.ended = now;
        self.outcome.runtime = now.since(self.since);
        for of in &mut self.outcome.directions {
            if of.ios > 0 {
                of.runtime = self.outcome.runtime;
            }
        }
    }
}
