//! The jobs of a group as closed loops: the frontend of the engine.

use super::job::{Direction, Job, Mix, RateLimit};
use super::offsets::{Directions, Offsets, Place, exponential};
use super::outcome::{JobOutcome, Meter};
use imbrex_core::buffer::{BufferSlice, Buffers};
use imbrex_core::engine::Frontend;
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Completion, Durability, Operation, Tag};
use imbrex_core::rng::Rng;
use imbrex_core::stack::Arrival;
use imbrex_core::units::{BLOCK_BYTES, Duration, Instant};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A clone of a job, and the region it works on.
pub(super) struct Clone<'a> {
    pub job: &'a Job,
    pub index: usize,
    pub clone: u32,
    pub group: u32,
    pub start: u64,
    pub length: u64,
    pub seed: u64,
}

/// What a clone can do at an instant.
enum Step {
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

struct Loop<'a> {
    job: &'a Job,
    offsets: Offsets,
    directions: Directions,
    rate_rng: Rng,
    meter: Meter,
    /// Direction of the next request.
    next: Direction,
    in_flight: u32,
    /// Requests and bytes issued since the ramp, by direction.
    issued: [(u64, u64); 3],
    /// Bytes to issue; `u64::MAX` while only time ends the job.
    bytes_max: u64,
    starts: Instant,
    /// When measuring begins.
    ramp_ends: Instant,
    /// When it must stop.
    ends: Option<Instant>,
    measuring: bool,
    /// Flushes that are due before the next request.
    flushes_due: u32,
    /// Waits for what is in flight, then pauses.
    quiescing: bool,
    /// Not before this.
    not_before: Instant,
    /// Under a rate limit, when the next request of a direction is due.
    due: [Instant; 3],
    /// No further request.
    stopped: bool,
    end_flushed: bool,
    over: bool,
    /// Is in the queue of those that can do something.
    queued: bool,
    timer: Option<Instant>,
}

#[derive(Clone, Copy)]
struct InFlight {
    owner: u32,
    arrived: Instant,
    /// `None` for a flush of its own.
    direction: Option<Direction>,
    place: Place,
    buffer: BufferSlice,
    /// A write whose own flush is still to come, or is under way.
    syncing: bool,
}

/// Runs the clones of a group.
pub(super) struct Jobs<'a> {
    loops: Vec<Loop<'a>>,
    slots: Vec<InFlight>,
    free: Vec<u32>,
    /// Slots of written requests that wait for their own flush to be issued.
    followups: VecDeque<u32>,
    ready: VecDeque<u32>,
    timers: BinaryHeap<Reverse<(Instant, u32)>>,
    live: usize,
    outstanding: u32,
    busy_since: Instant,
    pub busy: Duration,
    pub ended: Instant,
}

impl<'a> Jobs<'a> {
    pub fn new(clones: &[Clone<'a>], now: Instant) -> Jobs<'a> {
        let mut jobs = Jobs {
            loops: clones.iter().map(|clone| Loop::new(clone, now)).collect(),
            slots: Vec::new(),
            free: Vec::new(),
            followups: VecDeque::new(),
            ready: VecDeque::new(),
            timers: BinaryHeap::new(),
            live: clones.len(),
            outstanding: 0,
            busy_since: now,
            busy: Duration::ZERO,
            ended: now,
        };
        for index in 0..jobs.loops.len() {
            let starts = jobs.loops[index].starts;
            jobs.timers.push(Reverse((starts, index as u32)));
        }
        jobs
    }

    pub fn into_outcomes(self) -> impl Iterator<Item = JobOutcome> {
        self.loops.into_iter().map(|each| each.meter.outcome)
    }

    /// Queues a clone, sets its timer, or notes that it is over.
    fn schedule(&mut self, index: u32, now: Instant) {
        let each = &mut self.loops[index as usize];
        if each.over || each.queued {
            return;
        }
        match each.step(now) {
            Step::Request(_) | Step::Flush => {
                each.queued = true;
                self.ready.push_back(index);
            }
            Step::Wait(until) => {
                if each.timer.is_none_or(|timer| until < timer) {
                    each.timer = Some(until);
                    self.timers.push(Reverse((until, index)));
                }
            }
            Step::Blocked => {}
            Step::Over => {
                each.over = true;
                each.meter.end(now);
                self.live -= 1;
                self.ended = now;
                if each.job.exit_all {
                    for other in 0..self.loops.len() {
                        self.loops[other].stopped = true;
                        self.schedule(other as u32, now);
                    }
                }
            }
        }
    }

    fn enter(&mut self, entry: InFlight) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = entry;
                slot
            }
            None => {
                self.slots.push(entry);
                (self.slots.len() - 1) as u32
            }
        }
    }

    fn begin(&mut self, index: u32, step: Step, now: Instant, buffers: &mut Buffers) -> Arrival {
        let each = &mut self.loops[index as usize];
        each.in_flight += 1;
        if self.outstanding == 0 {
            self.busy_since = now;
        }
        self.outstanding += 1;
        let mut entry = InFlight {
            owner: index,
            arrived: now,
            direction: None,
            place: Place {
                offset: 0,
                bytes: 0,
            },
            buffer: BufferSlice::EMPTY,
            syncing: false,
        };
        let mut arrival = Arrival {
            tag: Tag(0),
            operation: Operation::Flush,
            extent: Extent::EMPTY,
            buffer: BufferSlice::EMPTY,
        };
        match step {
            Step::Request(direction) => {
                let place = each.take(direction);
                let first = place.offset / BLOCK_BYTES;
                let end = (place.offset + place.bytes).div_ceil(BLOCK_BYTES);
                let durability = Durability::Cached;
                arrival.operation = match direction {
                    Direction::Read => Operation::Read,
                    Direction::Write => Operation::Write { durability },
                    Direction::Trim => Operation::Zero {
                        durability,
                        may_unmap: true,
                    },
                };
                arrival.extent = Extent::new(first, end - first);
                if arrival.operation.has_data() {
                    arrival.buffer = buffers.allocate(end - first);
                }
                entry.direction = Some(direction);
                entry.place = place;
                entry.buffer = arrival.buffer;
                entry.syncing = each.job.sync_writes && direction == Direction::Write;
            }
            _ => each.flush_begun(),
        }
        arrival.tag = Tag(u64::from(self.enter(entry)));
        arrival
    }
}

impl Frontend for Jobs<'_> {
    fn next_arrival(&self) -> Option<Instant> {
        if !self.followups.is_empty() || !self.ready.is_empty() {
            return Some(Instant::ZERO);
        }
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        if let Some(slot) = self.followups.pop_front() {
            return Some(Arrival {
                tag: Tag(u64::from(slot)),
                operation: Operation::Flush,
                extent: Extent::EMPTY,
                buffer: BufferSlice::EMPTY,
            });
        }
        while let Some(Reverse((at, index))) = self.timers.peek().copied()
            && at <= now
        {
            self.timers.pop();
            self.loops[index as usize].timer = None;
            self.schedule(index, now);
        }
        while let Some(index) = self.ready.pop_front() {
            let each = &mut self.loops[index as usize];
            each.queued = false;
            let step = each.step(now);
            let can = matches!(step, Step::Request(_) | Step::Flush);
            let arrival = can.then(|| self.begin(index, step, now, buffers));
            self.schedule(index, now);
            if arrival.is_some() {
                return arrival;
            }
        }
        None
    }

    fn reply(&mut self, now: Instant, completion: Completion, buffers: &mut Buffers) {
        let slot = completion.tag.0 as u32;
        let entry = &mut self.slots[slot as usize];
        if entry.syncing && completion.result.is_ok() {
            buffers.release(std::mem::replace(&mut entry.buffer, BufferSlice::EMPTY));
            entry.syncing = false;
            self.followups.push_back(slot);
            return;
        }
        let entry = *entry;
        buffers.release(entry.buffer);
        self.free.push(slot);
        self.outstanding -= 1;
        if self.outstanding == 0 {
            self.busy += now.since(self.busy_since);
        }
        self.loops[entry.owner as usize].done(now, &entry, completion.result);
        self.schedule(entry.owner, now);
    }

    fn finished(&self) -> bool {
        self.live == 0
    }
}

impl<'a> Loop<'a> {
    fn new(clone: &Clone<'a>, now: Instant) -> Loop<'a> {
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
            next: directions.draw(),
            directions,
            rate_rng: Rng::new(clone.seed, 4),
            meter: Meter::new(job, clone.index, clone.clone, clone.group),
            in_flight: 0,
            issued: [(0, 0); 3],
            bytes_max,
            starts,
            ramp_ends,
            ends: job.runtime.map(|runtime| ramp_ends + runtime),
            measuring: false,
            flushes_due: 0,
            quiescing: false,
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

    fn step(&mut self, now: Instant) -> Step {
        if !self.measuring {
            self.begin_measuring(now);
        }
        let issued_bytes: u64 = self.issued.iter().map(|(_, bytes)| bytes).sum();
        self.stopped |= issued_bytes >= self.bytes_max
            || self
                .job
                .number_ios
                .is_some_and(|max| self.issued_ios() >= max)
            || self.ends.is_some_and(|ends| now >= ends);
        if self.stopped {
            return match (self.in_flight, self.end_flushed) {
                (0, true) => Step::Over,
                (0, false) => Step::Flush,
                _ => Step::Blocked,
            };
        }
        if self.in_flight >= self.job.iodepth || self.quiescing {
            return Step::Blocked;
        }
        if now < self.not_before {
            return self.wait(self.not_before);
        }
        if self.flushes_due > 0 {
            return Step::Flush;
        }
        let next = self.next;
        if now >= self.due[next as usize] {
            return Step::Request(next);
        }
        // A mixed job goes on in the direction that may.
        match self.directions.other(next) {
            Some(other) if now >= self.due[other as usize] => Step::Request(other),
            Some(other) => self.wait(self.due[next as usize].min(self.due[other as usize])),
            None => self.wait(self.due[next as usize]),
        }
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

    /// Draws the next request and counts it as issued.
    fn take(&mut self, direction: Direction) -> Place {
        let place = self.offsets.draw(direction);
        let d = direction as usize;
        self.issued[d].0 += 1;
        self.issued[d].1 += place.bytes;
        self.meter.issued(self.in_flight);
        if direction == self.next {
            self.next = self.directions.draw();
        }
        if direction == Direction::Write && self.job.fsync > 0 {
            self.flushes_due += u32::from(self.issued[d].0.is_multiple_of(self.job.fsync));
        }
        self.limit_rate(d, place.bytes);
        if let Some(think) = self.job.think
            && self.issued_ios().is_multiple_of(think.every)
        {
            self.quiescing = true;
        }
        place
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

    fn flush_begun(&mut self) {
        if self.stopped {
            self.end_flushed = true;
        } else {
            self.flushes_due -= 1;
        }
    }

    fn done(&mut self, now: Instant, entry: &InFlight, result: Result<(), IoError>) {
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
            match entry.direction {
                Some(direction) => {
                    let Place { offset, bytes } = entry.place;
                    self.meter.done(now, latency, direction, offset, bytes);
                }
                // As in fio, the flush at the end takes its time but is not among the flushes.
                None if self.stopped && self.job.end_fsync && self.end_flushed => {}
                None => self.meter.outcome.flushes.add(latency.0),
            }
        }
        if self.quiescing && self.in_flight == 0 {
            self.quiescing = false;
            if let Some(think) = self.job.think {
                self.not_before = now + think.pause;
            }
        }
    }
}

/// The highest of the numbers of requests in flight that the jobs may have at once.
pub(super) fn in_flight_max(clones: &[Clone<'_>]) -> u64 {
    clones.iter().map(|c| u64::from(c.job.iodepth)).sum()
}

/// True when the job writes or trims.
pub(super) fn writes(job: &Job) -> bool {
    job.mix != Mix::Only(Direction::Read)
}
