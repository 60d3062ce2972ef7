//! A rotating drive: its queue, its write cache and the one arm they compete for.

use super::arm::{Access, Arm, Direction};
use super::due::Due;
use super::model::QueueModel;
use super::schedulers::{Choice, Command, Head, Queue, State};
use super::segments::Overheads;
use super::statistics::{DiskStatistics, Moved};
use super::write_cache::WriteCache;
use crate::quantity::Rate;
use imbrex_core::disk::DiskOp;
use imbrex_core::extent::Extent;
use imbrex_core::operation::Operation;
use imbrex_core::saved::{Saved, SavedValue};
use imbrex_core::units::{Duration, Instant};
use std::collections::VecDeque;

#[derive(SavedValue)]
struct PendingFlush {
    op: DiskOp,
    sequence: u64,
}

/// Times and limits of the electronics.
#[derive(Clone, Copy, Debug)]
pub struct Electronics {
    /// Response to a command that moves no data.
    pub command_overhead: Duration,
    /// From the arrival of a request to the start of the arm or of the transfer.
    pub overheads: Overheads,
    /// Bytes of a block: 4096, or those of the drive's sectors.
    pub block_bytes: u64,
    /// Blocks of this drive in one that statistics count.
    pub blocks_per_counted: u64,
    /// Between drive and host.
    pub interface: Rate,
    /// Quiet time after which cached writes go to the medium though there is room.
    pub destage_after: Duration,
}

impl Electronics {
    /// An extent as statistics count it: at least one block.
    #[inline]
    pub fn counted(&self, extent: Extent) -> Extent {
        match self.blocks_per_counted {
            1 => extent,
            share => Extent::new(extent.start.0 / share, (extent.blocks.0 / share).max(1)),
        }
    }
}

/// The state of a rotating drive.
///
/// The arm serves one access at a time. It is idle, or busy until `arm_free`; what it does next is
/// decided when it gets free, among the operations that have arrived by then. Background writes
/// are carried out when time is next asked for: nothing outside can see them earlier.
#[derive(Saved)]
pub struct RotatingDrive {
    arm: Arm,
    #[saved(keep)]
    electronics: Electronics,
    #[saved(keep)]
    scheduling: QueueModel,
    /// In order of arrival; the first `depth` are visible to the scheduler.
    queue: VecDeque<Command>,
    cache: Option<WriteCache>,
    flushes: Vec<PendingFlush>,
    busy: bool,
    arm_free: Instant,
    last_arrival: Instant,
    last_direction: Direction,
    sequence: u64,
    /// What the scheduler remembers of its choices.
    choices: State,
}

impl RotatingDrive {
    /// An idle drive; without a cache every write is answered from the medium.
    pub fn new(
        arm: Arm,
        electronics: Electronics,
        scheduling: QueueModel,
        cache: Option<WriteCache>,
    ) -> RotatingDrive {
        RotatingDrive {
            arm,
            electronics,
            scheduling,
            queue: VecDeque::new(),
            cache,
            flushes: Vec::new(),
            busy: false,
            arm_free: Instant::ZERO,
            last_arrival: Instant::ZERO,
            last_direction: Direction::Read,
            sequence: 0,
            choices: State::new(scheduling.age_window),
        }
    }

    /// Takes an operation.
    #[inline]
    pub fn submit(&mut self, now: Instant, op: DiskOp, due: &mut Due, statistics: &DiskStatistics) {
        self.run(now, false, due, statistics);
        self.last_arrival = now;
        self.sequence += 1;
        match op.operation {
            Operation::Read => {
                if self.cache.as_ref().is_some_and(|cache| cache.covers(op.extent))
                    || self.arm.holds(now, op.extent)
                {
                    statistics.hit();
                    due.push(now + self.cached_response(&op, Direction::Read), op);
                } else {
                    self.enqueue(now, op, Direction::Read);
                }
                self.last_direction = Direction::Read;
            }
            Operation::Write { .. } => {
                self.arm.wrote(now, op.extent);
                self.submit_write(now, op, due);
                self.last_direction = Direction::Write;
            }
            Operation::Flush => match &self.cache {
                Some(cache) if !cache.is_clean() => {
                    self.flushes.push(PendingFlush { op, sequence: self.sequence })
                }
                _ => due.push(now + self.electronics.command_overhead, op),
            },
            // Zeroes change a table of the drive, not the medium.
            _ => due.push(now + self.electronics.command_overhead, op),
        }
    }

    fn submit_write(&mut self, now: Instant, op: DiskOp, due: &mut Due) {
        let cacheable = !op.operation.is_durable();
        let response = self.cached_response(&op, Direction::Write);
        match &mut self.cache {
            Some(cache) if cacheable && cache.admits(op.extent.blocks.0) => {
                let platters = &self.arm.platters;
                let place = || platters.place(op.extent.start.0);
                if cache.waiting.is_empty() && cache.take(op.extent, op.cause, self.sequence, place)
                {
                    due.push(now + response, op);
                } else {
                    cache.waiting.push_back(op);
                }
            }
            _ => self.enqueue(now, op, Direction::Write),
        }
    }

    fn enqueue(&mut self, now: Instant, op: DiskOp, direction: Direction) {
        self.queue.push_back(Command {
            place: self.arm.platters.place(op.extent.start.0),
            direction,
            ready: now + self.electronics.overheads.miss(direction, self.last_direction),
            sequence: self.sequence,
            op,
        });
    }

    /// Response of the electronics alone.
    fn cached_response(&self, op: &DiskOp, direction: Direction) -> Duration {
        self.electronics.overheads.hit(direction, self.last_direction) + self.bus_time(op)
    }

    /// Time of the data on the interface.
    fn bus_time(&self, op: &DiskOp) -> Duration {
        let bytes = op.extent.blocks.0 * self.electronics.block_bytes;
        self.electronics.interface.time_of(bytes)
    }

    /// Brings the drive to `now`: what is decided at `now` itself only when `inclusive`, so that
    /// operations which arrive together are all there when the arm chooses.
    #[inline]
    pub fn run(
        &mut self,
        now: Instant,
        inclusive: bool,
        due: &mut Due,
        statistics: &DiskStatistics,
    ) {
        let is_past = |at: Instant| at < now || (inclusive && at == now);
        loop {
            if self.busy {
                if !is_past(self.arm_free) {
                    return;
                }
                self.busy = false;
                self.end_segment(due);
            }
            match self.next_start() {
                Some(start) if is_past(start) => self.start(start, due, statistics),
                _ => return,
            }
        }
    }

    /// When a visible change is next due inside the drive; completions apart.
    #[inline]
    pub fn next_event(&self) -> Option<Instant> {
        let waited_for = !self.queue.is_empty()
            || !self.flushes.is_empty()
            || self.cache.as_ref().is_some_and(|cache| !cache.waiting.is_empty());
        if !waited_for {
            return None;
        }
        if self.busy { Some(self.arm_free) } else { self.next_start() }
    }

    fn must_destage(&self) -> bool {
        match &self.cache {
            Some(cache) => {
                !cache.segments().is_empty() && (cache.is_pressed() || !self.flushes.is_empty())
            }
            None => false,
        }
    }

    /// When the idle arm starts something, if nothing else arrives.
    #[inline]
    fn next_start(&self) -> Option<Instant> {
        let earliest = self.arm_free.max(self.last_arrival);
        if !self.queue.is_empty() || self.must_destage() {
            return Some(earliest);
        }
        match &self.cache {
            Some(cache) if !cache.segments().is_empty() => {
                Some(earliest + self.electronics.destage_after)
            }
            _ => None,
        }
    }

    // Apart from `run`, which most often finds nothing to do.
    #[inline(never)]
    fn start(&mut self, at: Instant, due: &mut Due, statistics: &DiskStatistics) {
        let (access, start, direction, cause, extent) = match self.choose(at) {
            Choice::Command(index) => {
                let command = self.queue.remove(index).expect("a chosen command");
                let Command { op, direction, place, ready, .. } = command;
                let start = at.max(ready);
                let access = self.arm.access(start, op.extent, &place, direction);
                // The last blocks still have to cross the interface when it is the slower side;
                // the first can when it has been read.
                let response = access.first.unwrap_or(ready) + self.bus_time(&op);
                due.push(access.end.max(response), op);
                (access, start, direction, op.cause, op.extent)
            }
            Choice::Cached(index) => {
                let cache = self.cache.as_mut().expect("a chosen segment");
                let segment = cache.begin(index);
                let access = self.arm.access(at, segment.extent, &segment.place, Direction::Write);
                (access, at, Direction::Write, segment.cause, segment.extent)
            }
        };
        let busy_ns = access.end.since(start).0;
        let extent = self.electronics.counted(extent);
        let Access { time, end, .. } = access;
        statistics.moved(&Moved { direction, cause, extent, busy_ns, time, end });
        self.busy = true;
        self.arm_free = end;
    }

    fn choose(&mut self, at: Instant) -> Choice {
        let cached = match &self.cache {
            Some(cache) if self.queue.is_empty() || self.must_destage() => cache.segments(),
            _ => &[],
        };
        let QueueModel { depth, scheduler, guard, .. } = self.scheduling;
        let queue = Queue::new(&self.queue, cached, depth as usize);
        let head = Head::new(&self.arm, at, guard.0.0);
        scheduler.choose(&queue, &head, &mut self.choices)
    }

    /// A cached segment may have reached the medium: answers the flushes that waited for it and
    /// lets waiting writes in.
    #[inline(never)]
    fn end_segment(&mut self, due: &mut Due) {
        let at = self.arm_free;
        let Some(cache) = &mut self.cache else {
            return;
        };
        cache.end();
        self.flushes.retain(|flush| {
            let done = !cache.is_dirty_before(flush.sequence);
            if done {
                due.push(at, flush.op);
            }
            !done
        });
        while let Some(op) = cache.waiting.front().copied() {
            let platters = &self.arm.platters;
            let place = || platters.place(op.extent.start.0);
            self.sequence += 1;
            if !cache.take(op.extent, op.cause, self.sequence, place) {
                break;
            }
            cache.waiting.pop_front();
            let bytes = op.extent.blocks.0 * self.electronics.block_bytes;
            let transfer = self.electronics.interface.time_of(bytes);
            let latency = self.electronics.overheads.hit(Direction::Write, self.last_direction);
            due.push(at + latency + transfer, op);
        }
    }
}
