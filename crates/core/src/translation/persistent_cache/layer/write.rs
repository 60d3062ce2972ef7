//! Writes: appended to the log in the order of arrival, as room is made for them.

use super::{PersistentCache, Timer};
use crate::counters::{Counter, Gauge};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::ledger::WrittenData;
use crate::operation::Operation;
use crate::planted::PlantedBug;
use crate::translation::persistent_cache::block_map::SUPERSEDES_NOTHING;
use crate::translation::persistent_cache::log::{Holds, LBA_MAX, Room};
use crate::translation::persistent_cache::records::Entry;
use crate::translation::persistent_cache::requests::{DataWrite, Part};
use crate::translation::persistent_cache::rewrite::{Reason, Rewrite};
use crate::translation::persistent_cache::settings::UpdateMethod;
use crate::translation::persistent_cache::writes::FirstBlocks;
use crate::units::BlockCount;

impl PersistentCache {
    /// Lets the queued writes proceed as far as there is room, and begins the rewrite they need.
    pub(super) fn proceed_with_writes(&mut self, ctx: &mut Context<'_>) {
        self.checkpoint_when_due(ctx);
        loop {
            while let Some(&job) = self.writes.queue.front() {
                if self.requests.get(job).request.operation == Operation::Flush {
                    self.writes.queue.pop_front();
                    self.flush(job, ctx);
                    continue;
                }
                if !self.cleaner.is_turn(ctx.now()) || !self.proceed_with(job, ctx) {
                    break;
                }
                self.writes.queue.pop_front();
                self.cleaner.take_turn(job);
                self.all_issued(job, ctx);
            }
            // A rewrite that turns out to be needless may have been what a write waited for.
            if !self.begin_rewrite_when_drained(ctx) {
                break;
            }
        }
        let is_held = self.firmware.is_stalled() || self.firmware.transaction.is_busy();
        let waits_for_room = !self.writes.queue.is_empty() && !is_held;
        if let Some(waited) = self.writes.waits_for_room(waits_for_room, ctx.now()) {
            ctx.count(Counter::PersistentCacheFullNs, waited.0);
        }
        self.gauge_use(ctx);
    }

    /// Tells how much of both resources is in use, and how much of the slots by live blocks.
    pub(super) fn gauge_use(&self, ctx: &mut Context<'_>) {
        let log = &self.blocks.log;
        ctx.gauge(Gauge::PersistentCacheUsedBlocks, log.used());
        ctx.gauge(Gauge::PersistentCacheEntries, log.map().entries());
        let live = log.map().mapped_blocks();
        ctx.gauge(Gauge::PersistentCacheLiveBlocks, live.0);
    }

    /// Issues what can be issued of a write; true when that is all of it.
    pub(super) fn proceed_with(&mut self, job: u32, ctx: &mut Context<'_>) -> bool {
        loop {
            let entry = self.requests.get(job);
            let whole = entry.request.extent;
            let rest = Extent::between(whole.start + BlockCount(entry.progress), whole.end());
            if rest.is_empty() {
                return true;
            }
            if let Some(error) = self.ledger.failure() {
                // A part that has failed says more.
                let entry = self.requests.get_mut(job);
                entry.result = entry.result.and(Err(error));
                return true;
            }
            // A rewrite waits for the writes in flight, so no further one may begin.
            if self.rewriter.holds_writes() || self.ledger_holds_writes() || self.stalls(ctx) {
                return false;
            }
            let entry = self.requests.get(job);
            let is_zero = matches!(entry.request.operation, Operation::Zero { .. });
            if is_zero && entry.zeroes.blocks == 0 {
                match self.zero_in_turn(job, ctx) {
                    Zeroed::Done => return true,
                    Zeroed::Waits => return false,
                    Zeroed::AsWrite => {}
                }
            }
            match self.issue_first_blocks(job, rest, is_zero, ctx) {
                FirstBlocks::Issued(blocks) => self.requests.get_mut(job).progress += blocks.0,
                FirstBlocks::Waits => return false,
            }
        }
    }

    /// Issues the first blocks of the rest of a write, home or into the log.
    fn issue_first_blocks(
        &mut self,
        job: u32,
        rest: Extent,
        is_zero: bool,
        ctx: &mut Context<'_>,
    ) -> FirstBlocks {
        if rest.start < self.shape.in_place_end {
            return self.write_in_place(job, rest, ctx);
        }
        let home = match (is_zero, self.zones.is_some()) {
            (true, _) => None,
            (false, true) => self.write_to_zone(job, rest, ctx),
            (false, false) => self.try_bypass(job, rest, ctx),
        };
        home.unwrap_or_else(|| {
            let mut first = self.up_to_next_band(rest);
            if is_zero {
                let zeroes = self.requests.get(job).zeroes.blocks;
                first.blocks = first.blocks.min(BlockCount(u64::from(zeroes)));
            }
            let appended = self.append_to_log(job, first, ctx);
            if matches!(appended, FirstBlocks::Issued(_)) {
                self.count_sequential_to_log(job, ctx);
            }
            appended
        })
    }

    /// Counts a sequential write of which blocks go to the log all the same, once.
    fn count_sequential_to_log(&mut self, job: u32, ctx: &mut Context<'_>) {
        if self.writes.classifier.is_some() {
            let entry = self.requests.get_mut(job);
            if entry.around_from == 0 && !entry.is_in_log {
                entry.is_in_log = true;
                ctx.count(Counter::SequentialToLog, 1);
            }
        }
    }

    /// True while writes wait for the map to be written out, which begins when it is due.
    fn stalls(&mut self, ctx: &mut Context<'_>) -> bool {
        if let Some(stall) = self.firmware.begin_stall() {
            ctx.count(Counter::MapStalls, 1);
            ctx.count(Counter::MapStallNs, stall.0);
            self.alarms.set(Timer::Stall, ctx.now() + stall, ctx);
        }
        self.firmware.is_stalled()
    }

    /// With the bypass on or with zones, the part of a run whose fate is decided together.
    pub(super) fn up_to_next_band(&self, rest: Extent) -> Extent {
        if self.shape.settings.bypass.is_none() && self.zones.is_none() {
            return rest;
        }
        let bands = &self.shape.bands;
        let band = bands.extent_of(bands.band_of(rest.start));
        Extent::between(rest.start, rest.end().min(band.end()))
    }

    fn append_to_log(&mut self, job: u32, rest: Extent, ctx: &mut Context<'_>) -> FirstBlocks {
        let Some(mut rest) = self.take_into_transaction(job, rest, ctx) else {
            return FirstBlocks::Waits;
        };
        if self.shape.settings.update == UpdateMethod::InPlace {
            let first = self.blocks.log.map().pieces(rest).next();
            if let Some(first) = first {
                if first.extent.start == rest.start {
                    return self.update_in_place(job, first.extent, first.position, ctx);
                }
                rest = Extent::between(rest.start, first.extent.start);
            }
        }
        self.release_early(ctx);
        let room = match self.skip_slots(ctx) {
            Room::For(_) => self.blocks.log.make_room(rest, self.log_holds(ctx)),
            none => none,
        };
        match room {
            Room::For(blocks) => {
                let extent = Extent { start: rest.start, blocks };
                let supersedes = self.blocks.lowest_position(extent);
                let position = self.blocks.append(extent);
                self.firmware.count_packet(extent.start);
                ctx.count(Counter::PersistentCacheAppendedBlocks, blocks.0);
                if self.zones.is_some() {
                    self.count_out_of_sequence(extent, ctx);
                }
                self.write_slots(job, extent, (position, supersedes), ctx);
                return FirstBlocks::Issued(blocks);
            }
            // What is on its way to the head of the log makes room.
            Room::AfterRewrite(_) if self.makes_room_by_a_move(ctx) => {}
            Room::AfterRewrite(oldest) => {
                if self.cleaner.begin_blocking(ctx.now()) {
                    ctx.count(Counter::BlockingPeriods, 1);
                }
                match self.rewriter.current() {
                    None => {
                        let band = self.shape.bands.band_of(oldest);
                        self.start_rewrite(band, Reason::Room, ctx);
                    }
                    Some(_) => self.rewriter.stop_waiting_for_idle_time(),
                }
            }
            // It may be the rewrite that reads the oldest slot.
            Room::AfterRead => self.rewriter.stop_waiting_for_idle_time(),
            Room::AfterFlush => self.flush_for_slots(ctx),
        }
        FirstBlocks::Waits
    }

    /// Skips the slots that the records of flushes take, as far as there is room for them.
    fn skip_slots(&mut self, ctx: &mut Context<'_>) -> Room {
        while self.firmware.slots_to_skip() > 0 {
            let wanted = Extent::new(LBA_MAX, self.firmware.slots_to_skip());
            match self.blocks.log.make_room(wanted, self.log_holds(ctx)) {
                Room::For(blocks) => {
                    self.blocks.log.skip(blocks);
                    self.firmware.skipped(blocks);
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
    ) -> FirstBlocks {
        // The rewrite is about to drop the slot together with what would be written to it.
        let bands = &self.shape.bands;
        let drops = |rewrite: &Rewrite| {
            rewrite.drops(position) && extent.overlaps(bands.extent_of(rewrite.band))
        };
        if self.rewriter.current().is_some_and(drops) {
            self.rewriter.stop_waiting_for_idle_time();
            return FirstBlocks::Waits;
        }
        ctx.count(Counter::PersistentCacheUpdatedBlocks, extent.blocks.0);
        self.write_slots(job, extent, (position, SUPERSEDES_NOTHING), ctx);
        FirstBlocks::Issued(extent.blocks)
    }

    /// Writes blocks of a job to the slots from a position, which supersede others.
    fn write_slots(
        &mut self,
        job: u32,
        extent: Extent,
        (position, supersedes): (u64, u64),
        ctx: &mut Context<'_>,
    ) {
        let entry = self.requests.get(job);
        let (requested, cause) = (entry.request.operation, entry.request.cause);
        let buffer = entry.payload_of(extent);
        self.writes.begin(extent.blocks, supersedes);
        if !requested.is_durable() {
            self.firmware.transaction.begin_run(extent.blocks);
        }
        let write = DataWrite { job, extent, buffer, supersedes };
        let slots = self.shape.log_area(position, extent.blocks.0);
        let operation = self.shape.conduct.data_operation(requested);
        let part = Part::Log { write, position };
        self.issue(part, operation, (slots, buffer), cause, ctx);
    }

    /// A write to the log has finished.
    pub(super) fn written_to_log(
        &mut self,
        write: &DataWrite,
        position: u64,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        self.writes.end(write.extent.blocks);
        let requested = self.requests.get(write.job).request.operation;
        if !requested.is_durable() {
            self.firmware.transaction.end_run(write.extent.blocks);
        }
        match result {
            Ok(()) => {
                let slots = self.shape.log_area(position, write.extent.blocks.0);
                let entry = Entry::Append { lba: write.extent.start, position };
                let (kind, payload) = entry.encode();
                let data = WrittenData { place: slots.extent, buffer: write.buffer };
                let (_, sums) = self.ledger.record_write(kind, payload.bytes(), data, ctx);
                self.checksums.set_slots(self.shape.slot(position), sums);
                self.flush_when_much_is_unflushed(ctx);
                self.writes.end_of_superseding(write.supersedes);
            }
            Err(_) => self.data_write_failed(write, ctx),
        }
        self.part_done(write.job, result, ctx);
    }

    /// A write to the log or of the bypass has failed: its blocks are lost.
    pub(super) fn data_write_failed(&mut self, write: &DataWrite, ctx: &mut Context<'_>) {
        self.blocks.lose(write.extent);
        self.record_lost(write.extent, ctx);
        self.writes.end_of_superseding(write.supersedes);
    }

    /// Which slots must not be used again yet.
    pub(super) fn log_holds(&self, ctx: &Context<'_>) -> Holds {
        let rewrite = self.rewriter.current();
        let gather = rewrite.and_then(|rewrite| rewrite.hold);
        Holds {
            position: self
                .reads
                .lowest_hold()
                .into_iter()
                .chain(gather)
                .chain(self.mover.hold())
                .min(),
            ignored: rewrite.is_some()
                && self.blocks.log.frees_at_once()
                && ctx.is_planted(PlantedBug::OldLocationReusedEarly),
        }
    }

    /// Lets slots be used again too early: planted bugs.
    fn release_early(&mut self, ctx: &Context<'_>) {
        if self.blocks.log.frees_at_once() {
            return;
        }
        let trims = ctx.is_planted(PlantedBug::TrimReusedEarly);
        let any = ctx.is_planted(PlantedBug::OldLocationReusedEarly);
        if any || (trims && self.is_unsure(self.undo.zeroed_at)) {
            let position = self.blocks.log.superseded_before();
            self.blocks.log.release(position);
        }
    }
}

/// What became of a zero whose turn has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Zeroed {
    Done,
    Waits,
    /// The set of zeroed ranges is full, or the drive has no TRIM: zeroes are to be written.
    AsWrite,
}
