//! The jobs of a group as closed loops: the frontend of the engine.

use super::closed_loop::{Clone, Loop, Step};
use super::job::{Direction, Job, Mix};
use super::offsets::Place;
use super::outcome::JobOutcome;
use super::zoned::{Admission, Zones};
use crate::progress::{Piece, Pieces};
use imbrex_core::buffer::{BufferSlice, Buffers};
use imbrex_core::engine::Frontend;
use imbrex_core::extent::Extent;
use imbrex_core::map::Slab;
use imbrex_core::operation::{Completion, Durability, Operation, Tag};
use imbrex_core::stack::Arrival;
use imbrex_core::units::{BLOCK_BYTES, Duration, Instant};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A request, a flush or a reset that is not answered.
#[derive(Clone, Copy)]
pub(super) struct InFlight {
    owner: u32,
    pub arrived: Instant,
    pub what: What,
    pub place: Place,
    /// The zone that is its owner's until it is answered.
    zone: Option<u32>,
    buffer: BufferSlice,
    /// A write whose own flush is still to come, or is under way.
    syncing: bool,
}

impl InFlight {
    /// A flush of a clone.
    fn flush(owner: u32, now: Instant) -> InFlight {
        InFlight {
            owner,
            arrived: now,
            what: What::Flush,
            place: Place { offset: 0, bytes: 0 },
            zone: None,
            buffer: BufferSlice::EMPTY,
            syncing: false,
        }
    }
}

/// What is in flight.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A request of the job.
    Request(Direction),
    /// A flush of its own.
    Flush,
    /// The reset of a zone that is written next.
    Reset,
}

/// Runs the clones of a group.
pub(super) struct Jobs<'a> {
    loops: Vec<Loop<'a>>,
    /// One for each clone, until it is over.
    pieces: Vec<Option<Piece<'a>>>,
    /// Of a device that has any.
    zones: Option<&'a mut Zones>,
    /// Clones that wait for an answer in a zone.
    blocked: VecDeque<u32>,
    slots: Slab<InFlight>,
    /// Slots of written requests that wait for their own flush to be issued.
    followups: VecDeque<u32>,
    ready: VecDeque<u32>,
    timers: BinaryHeap<Reverse<(Instant, u32)>>,
    live: usize,
    busy_since: Instant,
    pub busy: Duration,
    pub ended: Instant,
}

impl<'a> Jobs<'a> {
    /// Each clone is a piece for those who hear of `pieces`.
    pub fn new(
        clones: &'a [Clone<'a>],
        zones: Option<&'a mut Zones>,
        pieces: &'a Pieces<'a>,
        now: Instant,
    ) -> Jobs<'a> {
        let mut jobs = Jobs {
            loops: clones.iter().map(|clone| Loop::new(clone, now)).collect(),
            pieces: clones.iter().map(|_| Some(pieces.piece())).collect(),
            zones,
            blocked: VecDeque::new(),
            slots: Slab::default(),
            followups: VecDeque::new(),
            ready: VecDeque::new(),
            timers: BinaryHeap::new(),
            live: clones.len(),
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
                each.end(now);
                if let Some(piece) = self.pieces[index as usize].take() {
                    piece.end(&each.job.name);
                }
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

    /// Begins a step; `None` when it must wait for an answer, or there is nothing left to do.
    fn begin(
        &mut self,
        index: u32,
        step: Step,
        now: Instant,
        buffers: &mut Buffers,
    ) -> Option<Arrival> {
        let mut entry = InFlight::flush(index, now);
        match step {
            Step::Request(direction) => entry = self.admit(direction, entry)?,
            _ => self.loops[index as usize].flush_begun(),
        }
        let mut arrival = match entry.what {
            What::Request(direction) => self.request(direction, &mut entry, buffers),
            What::Reset => self.reset(&entry),
            What::Flush => flush(Tag(0)),
        };
        self.loops[index as usize].in_flight += 1;
        if self.slots.is_empty() {
            self.busy_since = now;
        }
        arrival.tag = Tag(u64::from(self.slots.add(entry)));
        Some(arrival)
    }

    /// Asks the zones for the place of a request. `None` when it must wait, or no zone is left for it.
    fn admit(&mut self, direction: Direction, entry: InFlight) -> Option<InFlight> {
        let each = &mut self.loops[entry.owner as usize];
        let (direction, admission) = each.admit(direction, self.zones.as_deref_mut());
        match admission {
            Admission::Go(place, zone) => {
                Some(InFlight { what: What::Request(direction), place, zone, ..entry })
            }
            Admission::Reset(zone) => {
                each.is_blocked = true;
                Some(InFlight { what: What::Reset, zone: Some(zone), ..entry })
            }
            Admission::Wait => {
                each.is_blocked = true;
                self.blocked.push_back(entry.owner);
                None
            }
            Admission::Over => {
                each.stopped = true;
                each.meter.outcome.ran_out_of_zones = true;
                None
            }
        }
    }

    /// A request that was admitted, as the stack takes it: the whole blocks that it touches.
    fn request(
        &mut self,
        direction: Direction,
        entry: &mut InFlight,
        buffers: &mut Buffers,
    ) -> Arrival {
        let each = &self.loops[entry.owner as usize];
        let first = entry.place.offset / BLOCK_BYTES;
        let end = (entry.place.offset + entry.place.bytes).div_ceil(BLOCK_BYTES);
        let is_zoned = entry.zone.is_some() && self.zones.is_some();
        let operation = operation_of(direction, is_zoned);
        let extent = Extent::new(first, end - first);
        if operation.has_data() {
            entry.buffer = buffers.allocate(end - first);
        }
        entry.syncing = each.job.sync_writes && direction == Direction::Write;
        if let Some(zones) = self.zones.as_deref_mut()
            && each.zoned.is_none()
            && direction != Direction::Read
        {
            zones.follow(extent);
        }
        Arrival { tag: Tag(0), operation, extent, buffer: entry.buffer }
    }

    /// The reset of the zone of an entry.
    fn reset(&mut self, entry: &InFlight) -> Arrival {
        let owned = entry.zone.zip(self.zones.as_deref());
        let (zone, zones) = owned.expect("a zone that is reset");
        self.loops[entry.owner as usize].meter.outcome.zone_resets += 1;
        Arrival {
            tag: Tag(0),
            operation: Operation::ZoneReset,
            extent: zones.extent_of(zone),
            buffer: BufferSlice::EMPTY,
        }
    }

    /// Lets the clones go on that waited for an answer.
    fn unblock(&mut self, owner: u32, zone: Option<u32>, now: Instant) {
        if let Some((zone, zones)) = zone.zip(self.zones.as_deref_mut()) {
            zones.done(zone);
        }
        self.loops[owner as usize].is_blocked = false;
        for _ in 0..self.blocked.len() {
            let index = self.blocked.pop_front().expect("as many as there are");
            self.loops[index as usize].is_blocked = false;
            self.schedule(index, now);
        }
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
            return Some(flush(Tag(u64::from(slot))));
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
            let arrival = match can {
                true => self.begin(index, step, now, buffers),
                false => None,
            };
            self.schedule(index, now);
            if arrival.is_some() {
                return arrival;
            }
        }
        None
    }

    fn reply(&mut self, now: Instant, completion: Completion, buffers: &mut Buffers) {
        let slot = completion.tag.0 as u32;
        let entry = &mut self.slots[slot];
        if entry.syncing && completion.result.is_ok() {
            buffers.release(std::mem::replace(&mut entry.buffer, BufferSlice::EMPTY));
            entry.syncing = false;
            self.followups.push_back(slot);
            return;
        }
        let entry = self.slots.take(slot);
        buffers.release(entry.buffer);
        if self.slots.is_empty() {
            self.busy += now.since(self.busy_since);
        }
        let each = &mut self.loops[entry.owner as usize];
        each.done(now, &entry, completion.result);
        if let Some(piece) = &self.pieces[entry.owner as usize] {
            piece.reach(each.share(now));
        }
        if self.zones.is_some() {
            self.unblock(entry.owner, entry.zone, now);
        }
        self.schedule(entry.owner, now);
    }

    fn finished(&self) -> bool {
        self.live == 0
    }
}

/// A flush, as the stack takes it.
fn flush(tag: Tag) -> Arrival {
    Arrival { tag, operation: Operation::Flush, extent: Extent::EMPTY, buffer: BufferSlice::EMPTY }
}

/// What a request of a direction asks of the stack. A trim in a zone with a write pointer resets it.
fn operation_of(direction: Direction, is_zoned: bool) -> Operation {
    let durability = Durability::Cached;
    match (direction, is_zoned) {
        (Direction::Read, _) => Operation::Read,
        (Direction::Write, _) => Operation::Write { durability },
        (Direction::Trim, true) => Operation::ZoneReset,
        (Direction::Trim, false) => Operation::Zero { durability, may_unmap: true },
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
