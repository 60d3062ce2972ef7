//! Writes: appended to the log in the order of arrival, as room is made for them.

use super::durable::{SUPERSEDES_NOTHING, Zeroed};
use super::log::{Holds, LBA_MAX, Room};
use super::persistent_cache::{Job, Part, PersistentCache};
use super::rewrite::{Reason, Rewrite};
use super::settings::UpdateMethod;
use super::zones::Belongs;
use crate::counters::{Counter, Gauge};
use crate::extent::Extent;
use crate::layer::Context;
use crate::operation::Operation;
use crate::planted::PlantedBug;
use crate::units::BlockCount;

/// What became of the first blocks of a write that are not issued yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// This many were issued.
    Issued(BlockCount),
    /// They wait for a rewrite, or for an operation in flight.
    Waits,
}

impl PersistentCache {
    /// Lets the queued writes proceed as far as there is room, and begins the rewrite they need.
    pub(super) fn proceed_with_writes(&mut self, ctx: &mut Context<'_>) {
        self.checkpoint_when_due(ctx);
        loop {
            while let Some(&job) = self.queue.front() {
                if self.jobs[job as usize].request.operation == Operation::Flush {
                    self.queue.pop_front();
                    self.flush(job, ctx);
                    continue;
                }
                if !self.is_turn(ctx) || !self.proceed_with(job, ctx) {
                    break;
                }
                self.queue.pop_front();
                self.take_turn(job);
                self.all_issued(job, ctx);
            }
            // A rewrite that turns out to be needless may have been what a write waited for.
            if !self.begin_rewrite_when_drained(ctx) {
                break;
            }
        }
        let waits_for_room = !self.queue.is_empty() && !self.map_journal.is_stalled();
        match self.queued_since {
            None if waits_for_room => self.queued_since = Some(ctx.now()),
            Some(since) if !waits_for_room => {
                let waited = ctx.now().since(since).0;
                ctx.count(Counter::PersistentCacheFullNs, waited);
                self.queued_since = None;
            }
            _ => {}
        }
        self.gauge_use(ctx);
    }

    /// Flushes behind the writes that wait for room, as a disk does that flushes when its queue is
    /// empty: so a flush takes as long as the clean that they need (bcachefs-tools issue 813: 1.0
    /// to 1.9 s with a full media cache). A durable translation, which models no disk but keeps a
    /// promise, flushes at once: what waits was not answered.
    pub(super) fn flush_in_turn(&mut self, job: u32, ctx: &mut Context<'_>) {
        match self.queue.is_empty() || self.durable.is_some() {
            true => self.flush(job, ctx),
            false => self.queue.push_back(job),
        }
    }

    /// Tells how much of both resources is in use, and how much of the slots by live blocks.
    pub(super) fn gauge_use(&self, ctx: &mut Context<'_>) {
        ctx.gauge(Gauge::PersistentCacheUsedBlocks, self.log.used());
        let map = self.log.map();
        ctx.gauge(Gauge::PersistentCacheEntries, map.entries());
        ctx.gauge(Gauge::PersistentCacheLiveBlocks, map.mapped_blocks().0);
    }

    /// Issues what can be issued of a write; true when that is all of it.
    pub(super) fn proceed_with(&mut self, job: u32, ctx: &mut Context<'_>) -> bool {
        loop {
            let entry = self.jobs[job as usize];
            let whole = entry.request.extent;
            let rest = Extent::between(whole.start + BlockCount(entry.progress), whole.end());
            if rest.is_empty() {
                return true;
            }
            if let Some(error) = self.durable.as_ref().and_then(|durable| durable.failure()) {
                // A part that has failed says more.
                self.jobs[job as usize].result = entry.result.and(Err(error));
                return true;
            }
            // The rewrite waits for the writes in flight, so no further one may begin.
            if self.rewrite.as_ref().is_some_and(|r| r.holds_writes()) {
                return false;
            }
            if self.holds_writes() || self.stalls(ctx) {
                return false;
            }
            if matches!(entry.request.operation, Operation::Zero { .. }) && entry.zeroes.blocks == 0
            {
                match self.zero_durably(job, ctx) {
                    Zeroed::Done => return true,
                    Zeroed::Waits => return false,
                    Zeroed::AsWrite => {}
                }
            }
            let as_zeroes = self.jobs[job as usize].zeroes.blocks > 0;
            let bypassed = match (as_zeroes, self.zones.is_some()) {
                (true, _) => None,
                (false, true) => self.write_to_zone(job, rest, ctx),
                (false, false) => self.try_bypass(job, rest, ctx),
            };
            let progress = match bypassed {
                Some(progress) => progress,
                None => self.append_to_log(job, self.up_to_next_band(rest), ctx),
            };
            match progress {
                Progress::Issued(blocks) => self.jobs[job as usize].progress += blocks.0,
                Progress::Waits => return false,
            }
        }
    }

    /// With the bypass on or with zones, the part of a run whose fate is decided together.
    fn up_to_next_band(&self, rest: Extent) -> Extent {
        if !self.settings.bypass && self.zones.is_none() {
            return rest;
        }
        let band = self.bands.extent_of(self.bands.band_of(rest.start));
        Extent::between(rest.start, rest.end().min(band.end()))
    }

    /// Writes the first blocks of the rest of a job home if their zone takes them there; `None`
    /// when they belong into the log.
    fn write_to_zone(&mut self, job: u32, rest: Extent, ctx: &mut Context<'_>) -> Option<Progress> {
        match self.place_in_zone(rest) {
            Belongs::InLog => None,
            Belongs::AtPointer => self.write_at_pointer(job, rest, ctx),
            Belongs::Anywhere => {
                let extent = self.up_to_next_band(rest);
                self.zeroed.remove(extent);
                self.lost.remove(extent);
                let band = self.bands.band_of(extent.start);
                let offset = extent.start.offset_from(self.bands.extent_of(band).start);
                let home = self.layout.home(band, offset, extent.blocks.0);
                let request = self.jobs[job as usize].request;
                let first = extent.start.offset_from(request.extent.start);
                let buffer = request.buffer.part(first, extent.blocks.0);
                let part = Part::Conventional { job, extent };
                self.issue(part, request.operation, home, buffer, request.cause, ctx);
                Some(Progress::Issued(extent.blocks))
            }
        }
    }

    fn append_to_log(&mut self, job: u32, rest: Extent, ctx: &mut Context<'_>) -> Progress {
        let mut rest = rest;
        if self.settings.update == UpdateMethod::InPlace {
            let first = self.log.map().pieces(rest).next();
            if let Some(first) = first {
                if first.extent.start == rest.start {
                    return self.update_in_place(job, first.extent, first.position, ctx);
                }
                rest = Extent::between(rest.start, first.extent.start);
            }
        }
        self.release_early(ctx);
        let room = match self.map_journal.skip {
            0 => Room::For(BlockCount::ZERO),
            _ => self.skip_slots(ctx),
        };
        let room = match room {
            Room::For(_) => self.log.make_room(rest, self.holds_now(ctx)),
            none => none,
        };
        match room {
            Room::For(blocks) => {
                let extent = Extent {
                    start: rest.start,
                    blocks,
                };
                let supersedes = self.begin_to_supersede(extent);
                let position = self.log.append(extent);
                self.count_packet(extent);
                self.zeroed.remove(extent);
                self.lost.remove(extent);
                ctx.count(Counter::PersistentCacheAppendedBlocks, blocks.0);
                if self.zones.is_some() {
                    self.count_out_of_sequence(extent, ctx);
                }
                self.write_slots(job, extent, (position, supersedes), ctx);
                Progress::Issued(blocks)
            }
            Room::AfterRewrite(oldest) => {
                self.begin_blocking(ctx);
                match self.rewrite {
                    None => self.start_rewrite(self.bands.band_of(oldest), Reason::Room, ctx),
                    Some(_) => self.press_rewrite(),
                }
                Progress::Waits
            }
            Room::AfterRead => {
                // It may be the rewrite that reads the oldest slot.
                self.press_rewrite();
                Progress::Waits
            }
            Room::AfterFlush => {
                self.flush_for_slots(ctx);
                Progress::Waits
            }
        }
    }

    /// Skips the slots that the records of flushes take, as far as there is room for them.
    fn skip_slots(&mut self, ctx: &mut Context<'_>) -> Room {
        while self.map_journal.skip > 0 {
            let wanted = Extent::new(LBA_MAX, self.map_journal.skip);
            match self.log.make_room(wanted, self.holds_now(ctx)) {
                Room::For(blocks) => {
                    self.log.skip(blocks);
                    self.map_journal.skip -= blocks.0;
                    ctx.count(Counter::PersistentCacheSkippedBlocks, blocks.0);
                }
                none => return none,
            }
        }
        Room::For(BlockCount::ZERO)
    }

    fn update_in_place(
        &mut self,
        job: u32,
        extent: Extent,
        position: u64,
        ctx: &mut Context<'_>,
    ) -> Progress {
        // The rewrite is about to drop the slot together with what would be written to it.
        let drops = |rewrite: &Rewrite| {
            rewrite.drops(position) && extent.overlaps(self.bands.extent_of(rewrite.band))
        };
        if self.rewrite.as_ref().is_some_and(drops) {
            self.press_rewrite();
            return Progress::Waits;
        }
        ctx.count(Counter::PersistentCacheUpdatedBlocks, extent.blocks.0);
        self.write_slots(job, extent, (position, SUPERSEDES_NOTHING), ctx);
        Progress::Issued(extent.blocks)
    }

    /// Writes blocks of a job to the slots from a position, which supersede others.
    fn write_slots(
        &mut self,
        job: u32,
        extent: Extent,
        (position, supersedes): (u64, u64),
        ctx: &mut Context<'_>,
    ) {
        let Job {
            request, zeroes, ..
        } = self.jobs[job as usize];
        let first = extent.start.offset_from(request.extent.start);
        let buffer = if zeroes.blocks > 0 {
            zeroes.part(0, extent.blocks.0)
        } else {
            request.buffer.part(first, extent.blocks.0)
        };
        if self.durable.is_some() {
            self.keep_slot_sums(position, buffer, ctx);
        }
        let slots = self.log_extent(position, extent.blocks.0);
        self.begin_write(extent.blocks);
        let part = Part::Log {
            job,
            extent,
            position,
            supersedes,
        };
        let operation = self.data_operation(request.operation);
        self.issue(part, operation, slots, buffer, request.cause, ctx);
    }

    /// What is written below for a request. Where there is a journal, its flush makes the data of
    /// a forced write durable together with the record.
    pub(super) fn data_operation(&self, requested: Operation) -> Operation {
        if self.durable.is_some() {
            Operation::WRITE
        } else {
            requested
        }
    }

    /// Which slots must not be used again yet.
    pub(super) fn holds_now(&self, ctx: &Context<'_>) -> Holds {
        let gather = self.rewrite.as_ref().and_then(|rewrite| rewrite.hold);
        Holds {
            position: self.holds.iter().copied().chain(gather).min(),
            ignored: self.rewrite.is_some()
                && self.durable.is_none()
                && ctx.is_planted(PlantedBug::OldLocationReusedEarly),
        }
    }
}
