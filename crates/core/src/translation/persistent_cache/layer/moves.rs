//! Blocks that move within the log: what the [mover](super::super::mover) decides, done.

use super::PersistentCache;
use crate::checksums::Verdict;
use crate::counters::Counter;
use crate::error::IoError;
use crate::layer::Context;
use crate::ledger::WrittenData;
use crate::operation::{Cause, Operation};
use crate::planted::PlantedBug;
use crate::translation::persistent_cache::block_map::SUPERSEDES_NOTHING;
use crate::translation::persistent_cache::mover::Move;
use crate::translation::persistent_cache::records::Entry;
use crate::translation::persistent_cache::requests::Part;
use crate::units::BlockCount;

impl PersistentCache {
    /// True when blocks are on their way to the head of the log, or will be: a move waits for the writes in
    /// flight, whose slots it may read.
    pub(super) fn makes_room_by_a_move(&mut self, ctx: &mut Context<'_>) -> bool {
        if !self.mover.moves() || self.rewriter.current().is_some() {
            return false;
        }
        self.mover.is_moving() || self.writes.in_flight() > 0 || self.start_move(ctx)
    }

    /// Begins to move the oldest live blocks to the head of the log; false when the band of the oldest must
    /// be rewritten instead.
    fn start_move(&mut self, ctx: &mut Context<'_>) -> bool {
        // Each run takes a record.
        let runs_max = self.records_to_spare();
        if !self.mover.start(&mut self.blocks.log, runs_max) {
            return false;
        }
        for _ in self.mover.runs() {
            // What fails on its way is not lost.
            self.writes.begin(BlockCount::ZERO, SUPERSEDES_NOTHING);
        }
        let Move { from, slots, blocks, .. } = self.mover.get();
        let read = ctx.allocate(BlockCount(slots));
        let written = ctx.allocate(BlockCount(blocks));
        self.mover.use_memory(read, written);
        let place = (self.shape.log_area(from, slots), read);
        self.issue(Part::Move, Operation::Read, place, Cause::Cleaning, ctx);
        true
    }

    /// The read of a move, or its write, has finished.
    pub(super) fn move_part_done(&mut self, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        let is_writing = self.mover.get().is_writing;
        let is_good = result.is_ok() && (is_writing || self.is_as_it_was_written(ctx));
        if is_good && !is_writing {
            return self.write_moved(ctx);
        }
        for _ in self.mover.runs() {
            self.writes.end(BlockCount::ZERO);
        }
        let Move { read, written, .. } = self.mover.get();
        match is_good {
            true => self.point_to_moved(ctx),
            false => self.mover.fail(&mut self.blocks.log),
        }
        ctx.release(read);
        ctx.release(written);
        if self.mover.closes {
            self.close_ledger(ctx);
        }
    }

    /// Compares what was read with its checksums, where there are any.
    fn is_as_it_was_written(&mut self, ctx: &Context<'_>) -> bool {
        let Move { from, read, .. } = self.mover.get();
        let (shape, checksums) = (&self.shape, &mut self.checksums);
        self.mover.runs().iter().all(|run| {
            let data = read.part(run.from - from, run.extent.blocks.0);
            matches!(checksums.verify_slots(shape.slot(run.from), data, ctx), Verdict::Right)
        })
    }

    fn write_moved(&mut self, ctx: &mut Context<'_>) {
        for (from, to) in self.mover.copies() {
            ctx.copy(from, to);
        }
        self.mover.begin_writing();
        let Move { to, blocks, written, .. } = self.mover.get();
        let place = (self.shape.log_area(to, blocks), written);
        self.issue(Part::Move, Operation::WRITE, place, Cause::Cleaning, ctx);
    }

    /// The copies are written: those that are still the newest count, and are recorded.
    fn point_to_moved(&mut self, ctx: &mut Context<'_>) {
        let Move { to, written, .. } = self.mover.get();
        let ignores_overwrites = ctx.is_planted(PlantedBug::RemapIgnoresOverwrite);
        self.mover.end(&mut self.blocks.log, ignores_overwrites);
        for piece in self.mover.placed() {
            let (slot, blocks) = (self.shape.slot(piece.position), piece.extent.blocks.0);
            ctx.count(Counter::MovedBlocks, blocks);
            let entry = Entry::Append { lba: piece.extent.start, position: piece.position };
            let (kind, payload) = entry.encode();
            let place = self.shape.log_area(piece.position, blocks).extent;
            let data = WrittenData { place, buffer: written.part(piece.position - to, blocks) };
            let (_, sums) = self.ledger.record_write(kind, payload.bytes(), data, ctx);
            self.checksums.set_slots(slot, sums);
        }
        self.flush_when_much_is_unflushed(ctx);
    }
}
