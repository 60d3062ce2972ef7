//! One clone of a job: a closed loop, what it does next and when.

use super::engine::{InFlight, What};
use super::job::{Direction, Job, RateLimit};
use super::offsets::{Directions, Offsets, Place, exponential};
use super::outcome::Meter;
use super::queue::Queue;
use super::zoned::{Admission, Drawn, Zoned, Zones};
use imbrex_core::error::IoError;
use imbrex_core::rng::Rng;
use imbrex_core::units::{Duration, Instant};

/// A clone of a job, and the region it works on.
pub(super) struct Clone<'a> {
    pub job: &'a Job,
    pub index: usize,
    pub clone: u32,
    pub group: u32,
    pub start: u64,
    pub length: u64,
    pub seed: u64,
    /// What it may do among the zones of the device.
    pub zoned: Option<Zoned>,
}

/// What a clone can do at an instant.
pub(super) enum Step {
    /// Make a request.
    Request(Direction),
    /// Flush.
    Flush,
    /// Nothing before the instant.
    Wait(Instant),
    /// Nothing before an answer.
    Blocked,
    /// Nothing ever.
    Over,
}

/// Why a job waits until nothing of it is in flight.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// A pause (`thinktime`) follows.
    Think,
    /// It is ahead of its rate.
    Rate,
}

/// A clone at work.
pub(super) struct Loop<'a> {
    pub job: &'a Job,
    offsets: Offsets,
    pub zoned: Option<&'a Zoned>,
    /// The next request, when it could not be issued at once.
    drawn: Option<Drawn>,
    /// It waits for an answer.
    pub is_blocked: bool,
    directions: Directions,
    rate_rng: Rng,
    pub meter: Meter,
    /// Direction of the next request.
    next: Direction,
    pub in_flight: u32,
    queue: Queue,
    /// Requests and bytes issued since the ramp, by direction.
    issued: [(u64, u64); 3],
    /// Bytes issued in the present pass over the region.
    pass_bytes: u64,
    /// Bytes of a pass; `u64::MAX` when the job does not wait between passes.
    pass_bytes_max: u64,
    /// Requests to issue.
    ios_max: u64,
    /// Bytes to issue; `u64::MAX` while only time ends the job.
    bytes_max: u64,
    pub starts: Instant,
    /// When measuring begins.
    ramp_ends: Instant,
    /// When it must stop.
    ends: Option<Instant>,
    measuring: bool,
    /// The last thing issued was a flush.
    flushed: bool,
    /// Set while the job waits until nothing is in flight.
    resting: Option<Rest>,
    /// Number of requests, as `thinktime_blocks_type` counts them, when the last pause was due.
    thought_at: u64,
    /// True from each request until it is checked whether a pause is due after it.
    may_think: bool,
    /// Not before this.
    not_before: Instant,
    /// Under a rate limit, when the next request of a direction is due.
    due: [Instant; 3],
    /// No further request.
    pub stopped: bool,
    end_flushed: bool,
    pub over: bool,
    /// Is in the queue of those that can do something.
    pub queued: bool,
    pub timer: Option<Instant>,
}

impl<'a> Loop<'a> {
    pub fn new(clone: &'a Clone<'a>, now: Instant) -> Loop<'a> {
        let job = clone.job;
        let starts = now + job.start_delay;
        let ramp_ends = starts + job.ramp_time;
        let mut directions = Directions::new(job.mix, clone.seed);
        let smallest = job.smallest_block();
        let usable = clone.length - clone.length % smallest;
        let bytes_max = match job.time_based {
            true => u64::MAX,
            false => job.io_bytes.unwrap_or(usable).saturating_mul(job.loops),
        };
        Loop {
            job,
            offsets: Offsets::new(job, clone.start, clone.length, clone.seed),
            zoned: clone.zoned.as_ref(),
            drawn: None,
            is_blocked: false,
            next: directions.draw(),
            directions,
            rate_rng: Rng::new(clone.seed, 4),
            meter: Meter::new(job, clone.index, clone.clone, clone.group),
            in_flight: 0,
            queue: Queue::new(job.iodepth),
            issued: [(0, 0); 3],
            pass_bytes: 0,
            pass_bytes_max: match job.time_based || clone.zoned.is_some() {
                true => u64::MAX,
                false => usable,
            },
            ios_max: match job.number_ios {
                Some(ios) => ios.saturating_mul(job.loops),
                None => u64::MAX,
            },
            bytes_max,
            starts,
            ramp_ends,
            ends: job.runtime.map(|runtime| ramp_ends + runtime),
            measuring: false,
            flushed: false,
            resting: None,
            thought_at: 0,
            may_think: false,
            not_before: starts,
            due: [starts; 3],
            stopped: false,
            end_flushed: !job.end_fsync,
            over: false,
            queued: false,
            timer: Some(starts),
        }
    }

    fn issued_ios(&self) -> u64 {
        self.issued.iter().map(|(ios, _)| ios).sum()
    }

    /// Which share of its time, its bytes or its requests has passed, whichever is most.
    pub fn share(&self, now: Instant) -> f64 {
        let part = |of: u64, all: u64| of as f64 / all.max(1) as f64;
        let issued_bytes: u64 = self.issued.iter().map(|(_, bytes)| bytes).sum();
        let of_limits =
            part(issued_bytes, self.bytes_max).max(part(self.issued_ios(), self.ios_max));
        match self.ends {
            Some(ends) => of_limits.max(part(now.since(self.starts).0, ends.since(self.starts).0)),
            None => of_limits,
        }
    }

    pub fn step(&mut self, now: Instant) -> Step {
        if !self.measuring {
            self.begin_measuring(now);
        }
        self.stopped |= self.ends.is_some_and(|ends| now >= ends);
        if !self.stopped {
            if self.must_wait_for_answers(now) {
                return Step::Blocked;
            }
            // As in fio, a pause that is due after the last request is made.
            if now < self.not_before {
                return self.wait(self.not_before);
            }
        }
        let issued_bytes: u64 = self.issued.iter().map(|(_, bytes)| bytes).sum();
        self.stopped |= issued_bytes >= self.bytes_max || self.issued_ios() >= self.ios_max;
        if self.stopped {
            return match (self.in_flight, self.end_flushed) {
                (0, true) => Step::Over,
                (0, false) => Step::Flush,
                _ => Step::Blocked,
            };
        }
        if self.in_flight >= self.job.iodepth || self.is_blocked {
            return Step::Blocked;
        }
        if self.pass_bytes >= self.pass_bytes_max {
            if self.in_flight > 0 {
                return Step::Blocked;
            }
            self.queue.end_pass(&mut self.meter);
            self.pass_bytes = 0;
        }
        if self.flush_is_due() {
            return Step::Flush;
        }
        if let Some(drawn) = self.drawn {
            return Step::Request(drawn.direction);
        }
        self.next_request(now)
    }

    /// The next request, when the limits of the rates allow it.
    fn next_request(&mut self, now: Instant) -> Step {
        let next = self.next;
        if now >= self.due[next as usize] {
            return Step::Request(next);
        }
        // A mixed job goes on in the direction that may.
        let until = match self.directions.other(next) {
            Some(other) if now >= self.due[other as usize] => return Step::Request(other),
            Some(other) => self.due[next as usize].min(self.due[other as usize]),
            None => self.due[next as usize],
        };
        // As in fio, a job that is ahead of its rate first waits for what is in flight.
        if self.in_flight > 0 {
            self.resting = Some(Rest::Rate);
            return Step::Blocked;
        }
        self.queue.wait_for_each(&mut self.meter);
        self.wait(until)
    }

    /// True while a pause, or a wait for a rate, needs answers first. Begins a pause that is due.
    fn must_wait_for_answers(&mut self, now: Instant) -> bool {
        if self.may_think
            && let Some(think) = self.job.think
        {
            if self.in_flight >= self.job.iodepth {
                return true;
            }
            self.may_think = false;
            self.queue.make_room(&mut self.meter);
            let counted = match think.counts_issued {
                true => self.queue.issued,
                false => self.queue.taken,
            };
            if counted >= self.thought_at.saturating_add(think.every) {
                self.thought_at = counted;
                self.resting = Some(Rest::Think);
            }
        }
        let Some(rest) = self.resting else {
            return false;
        };
        if self.in_flight > 0 {
            return true;
        }
        self.queue.wait_for_each(&mut self.meter);
        self.resting = None;
        if rest == Rest::Think {
            self.not_before = now + self.job.think.expect("a job that pauses").pause;
        }
        false
    }

    /// True when the next thing to issue is a flush. As fio, the job flushes after every request
    /// that leaves the number of writes at a multiple of `fsync`. A read leaves it there too, so a
    /// mixed job also flushes after each read that comes before the next write.
    fn flush_is_due(&self) -> bool {
        let (writes, _) = self.issued[Direction::Write as usize];
        let every = self.job.fsync;
        every > 0 && !self.flushed && writes > 0 && writes.is_multiple_of(every)
    }

    /// Nothing will be done any more.
    pub fn end(&mut self, now: Instant) {
        self.over = true;
        self.queue.end_pass(&mut self.meter);
        self.meter.end(now);
    }

    fn wait(&self, until: Instant) -> Step {
        Step::Wait(self.ends.map_or(until, |ends| until.min(ends)))
    }

    /// Starts, and ends the ramp, when it is time for either.
    fn begin_measuring(&mut self, now: Instant) {
        if now < self.starts {
            return;
        }
        if self.meter.outcome.started < self.starts {
            self.meter.start(self.starts);
        }
        if now >= self.ramp_ends {
            self.measuring = true;
            if self.ramp_ends > self.starts {
                self.meter.restart(self.ramp_ends);
                // Limits count from here, as in fio.
                self.issued = [(0, 0); 3];
            }
        }
    }

    /// Draws the next request, unless one is drawn already, and counts it as issued when it may be.
    /// With its direction, because a mixed job writes as long as there is nothing to read.
    pub fn admit(
        &mut self,
        mut direction: Direction,
        zones: Option<&mut Zones>,
    ) -> (Direction, Admission) {
        let Some((zoned, zones)) = self.zoned.zip(zones) else {
            let place = self.offsets.draw(direction);
            self.issue(direction, place);
            return (direction, Admission::Go(place, None));
        };
        let mut drawn = match self.drawn {
            Some(drawn) => drawn,
            None => {
                if direction == Direction::Read && !zones.has_data(zoned) {
                    direction = self.directions.other(direction).unwrap_or(direction);
                }
                Drawn::new(direction, self.offsets.draw(direction))
            }
        };
        let admission = zones.admit(zoned, &mut drawn, self.in_flight);
        match admission {
            Admission::Go(place, _) => {
                let next = zones.next_of(zoned, direction, place);
                self.offsets.went(direction, place, next);
                self.issue(direction, place);
                self.drawn = None;
            }
            _ => self.drawn = Some(drawn),
        }
        (direction, admission)
    }

    /// Counts a request as issued.
    fn issue(&mut self, direction: Direction, place: Place) {
        let d = direction as usize;
        self.issued[d].0 += 1;
        self.issued[d].1 += place.bytes;
        self.pass_bytes += place.bytes;
        self.queue.issue(&mut self.meter);
        self.flushed = false;
        self.may_think = true;
        if direction == self.next {
            self.next = self.directions.draw();
        }
        self.limit_rate(d, place.bytes);
    }

    fn limit_rate(&mut self, d: usize, bytes: u64) {
        let gap_ns = match self.job.rate[d] {
            RateLimit::None => return,
            RateLimit::Bytes(rate) => bytes as f64 * 1e9 / rate as f64,
            RateLimit::Requests(rate) => 1e9 / rate as f64,
        };
        let gap_ns = match self.job.rate_poisson {
            true => gap_ns * exponential(&mut self.rate_rng),
            false => gap_ns,
        };
        // Counted from when it was due, so that a late request does not make the next ones late.
        self.due[d] = self.due[d] + Duration(gap_ns as u64);
    }

    pub fn flush_begun(&mut self) {
        if self.stopped {
            self.end_flushed = true;
        } else {
            self.flushed = true;
            self.queue.flush(&mut self.meter);
        }
    }

    pub fn done(&mut self, now: Instant, entry: &InFlight, result: Result<(), IoError>) {
        self.in_flight -= 1;
        if !self.measuring {
            self.begin_measuring(now);
        }
        if let Err(error) = result {
            self.meter.outcome.error.get_or_insert(error);
            self.stopped = true;
            self.end_flushed = true;
        } else {
            let latency = now.since(entry.arrived);
            match entry.what {
                What::Reset => {}
                What::Request(direction) => {
                    let Place { offset, bytes } = entry.place;
                    self.meter.done(now, latency, direction, offset, bytes);
                }
                // As in fio, the flush at the end takes its time but is not among the flushes.
                What::Flush if self.stopped && self.job.end_fsync && self.end_flushed => {}
                What::Flush => self.meter.outcome.flushes.add(latency.0),
            }
        }
    }
}
