//! The second half of a rewrite: it writes home, in shingle order.

use super::jobs::{Aim, Purpose, Work};
use super::{Segments, Stuck, TRIES_MAX};
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::layer::Context;
use crate::operation::{Cause, Durability, Operation};
use crate::planted::PlantedBug;
use crate::translation::segment::rewrite::Stage;

impl Segments {
    /// Begins to write home.
    pub(super) fn begin_home(&mut self, job: u32, ctx: &mut Context<'_>) {
        let rewrite = &mut self.jobs.get_mut(job).rewrite;
        rewrite.stage = Stage::Writing;
        (rewrite.at, rewrite.tries) = (0, 0);
        let is_zeroing = rewrite.zeroed > 0;
        self.write_pages(job, ctx);
        if is_zeroing {
            return self.zero_next(job, ctx);
        }
        // Where no track overlaps another, the order is the disk's own affair.
        if self.shape.settings.kappa == 1 {
            return self.write_all(job, ctx);
        }
        self.write_next(job, ctx);
    }

    fn write_all(&mut self, job: u32, ctx: &mut Context<'_>) {
        let mut next = self.jobs.get(job).rewrite.next_written(0);
        while let Some(block) = next {
            self.jobs.get_mut(job).rewrite.left += 1;
            self.write_home(job, block, ctx);
            next = self.jobs.get(job).rewrite.next_written(block + 1);
        }
    }

    /// Writes the next block, once those that destroy it are written; ends with the last one.
    fn write_next(&mut self, job: u32, ctx: &mut Context<'_>) {
        let rewrite = &mut self.jobs.get_mut(job).rewrite;
        let Some(block) = rewrite.next_written(rewrite.at) else {
            return self.data_home(job, ctx);
        };
        rewrite.at = block;
        rewrite.left = 1;
        self.write_home(job, block, ctx);
    }

    fn write_home(&mut self, job: u32, block: u64, ctx: &mut Context<'_>) {
        let aim = Aim { purpose: Purpose::Home, job, block };
        let is_dirty = self.jobs.get(job).rewrite.dirty[block as usize];
        let cause = if is_dirty { Cause::Destage } else { Cause::Cleaning };
        let data = (self.home_of(job, block), self.part_of(job, block));
        self.issue(aim, Operation::WRITE, data, cause, ctx);
    }

    /// Zeroes the next track of the next region; `at` counts the tracks.
    fn zero_next(&mut self, job: u32, ctx: &mut Context<'_>) {
        let rewrite = &self.jobs.get(job).rewrite;
        let (tracks, end) =
            (self.shape.layout.blocks_of_segment(), rewrite.segment + rewrite.zeroed);
        let (mut segment, mut left) = (rewrite.segment, rewrite.at);
        while left >= tracks && segment < end {
            segment += self.shape.layout.rest_of_region(segment);
            left -= tracks;
        }
        if segment >= end {
            return self.data_home(job, ctx);
        }
        let segments = self.shape.layout.rest_of_region(segment).min(end - segment);
        let mut runs = self.shape.layout.tracks_of(segment, segments);
        let extent = runs.nth(left as usize).expect("a track of a region");
        let zero = Operation::Zero { durability: Durability::Cached, may_unmap: true };
        let aim = Aim::of(Purpose::Home, job);
        self.issue(aim, zero, (extent, BufferSlice::EMPTY), Cause::Destage, ctx);
    }

    /// A block is home, or a run of a track is zeroed. A write that failed is tried again.
    pub(super) fn home_done(
        &mut self,
        aim: Aim,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let is_lost = self.is_lost;
        let entry = self.jobs.get_mut(aim.job);
        let is_zeroing = entry.rewrite.zeroed > 0;
        entry.rewrite.tries += 1;
        if let Err(error) = result {
            if entry.rewrite.tries < TRIES_MAX && !is_lost {
                return match is_zeroing {
                    true => self.zero_next(aim.job, ctx),
                    false => self.write_home(aim.job, aim.block, ctx),
                };
            }
            entry.failure = entry.failure.or(Some(error));
        }
        entry.rewrite.tries = 0;
        if is_zeroing {
            entry.rewrite.at += 1;
            return self.zero_next(aim.job, ctx);
        }
        entry.rewrite.left -= 1;
        if self.shape.settings.kappa > 1 {
            entry.rewrite.at += 1;
            return self.write_next(aim.job, ctx);
        }
        if entry.rewrite.left == 0 {
            self.data_home(aim.job, ctx);
        }
    }

    /// All blocks are home; the pages of checksums may not be yet.
    fn data_home(&mut self, job: u32, ctx: &mut Context<'_>) {
        let sums = &mut self.jobs.get_mut(job).rewrite.sums;
        sums.is_data_home = true;
        if !sums.is_writing {
            self.all_home(job, ctx);
        }
    }

    /// All that could be written home is. What could not is read from its slot from now on, and nothing
    /// more is taken: the next start tries again.
    pub(super) fn all_home(&mut self, job: u32, ctx: &mut Context<'_>) {
        if self.jobs.get(job).work == Work::Write {
            self.keep_sums(job);
        }
        let pages_at = self.pages_in_slot(job);
        let entry = self.jobs.get_mut(job);
        let failure = entry.failure;
        if let Some(error) = failure
            && let Some(slot) = entry.rewrite.slot
            && self.shape.settings.journal.has_notes()
            && entry.work == Work::Write
        {
            self.stuck.push(Stuck {
                segment: entry.rewrite.segment,
                zeroed: entry.rewrite.zeroed,
                written: entry.rewrite.written.clone(),
                slot,
                pages: entry.rewrite.sums.pages.clone(),
                pages_at,
            });
            self.ledger.refuse_writes(error);
        }
        self.end_rewrite(job, ctx);
    }

    /// The rewrite ends, well or not, when the store of copies has been told all.
    pub(super) fn end_rewrite(&mut self, job: u32, ctx: &mut Context<'_>) {
        self.jobs.get_mut(job).rewrite.stage = Stage::Ending;
        if self.jobs.get(job).copies_left == 0 {
            self.rewrite_ended(job, ctx);
        }
    }

    pub(super) fn copy_told(&mut self, job: u32, ctx: &mut Context<'_>) {
        let entry = self.jobs.get_mut(job);
        entry.copies_left -= 1;
        if entry.copies_left > 0 {
            return;
        }
        match entry.rewrite.stage {
            Stage::Reading => self.all_read(job, ctx),
            Stage::Ending => self.rewrite_ended(job, ctx),
            _ => {}
        }
    }

    fn rewrite_ended(&mut self, job: u32, ctx: &mut Context<'_>) {
        let entry = self.jobs.get_mut(job);
        let rewrite = &mut entry.rewrite;
        rewrite.stage = Stage::Idle;
        let buffer = core::mem::replace(&mut rewrite.buffer, BufferSlice::EMPTY);
        let (slot, reserved) = (rewrite.slot.take(), rewrite.reserved);
        let rewritten = rewrite.zeroed.max(1);
        rewrite.reserved = 0;
        entry.rest.start += rewritten;
        let (failure, work) = (entry.failure, entry.work);
        if buffer != BufferSlice::EMPTY {
            ctx.release(buffer);
        }
        if work == Work::Redo {
            return self.redone(job, failure, ctx);
        }
        if let Some(slot) = slot {
            let is_noted = self.slots.noted().any(|(noted, _)| noted == slot);
            match (is_noted, failure) {
                // It was never noted, or nothing notes slots.
                (false, _) => {
                    self.ledger.release_reserved(reserved);
                    self.slots.give_back(slot);
                    self.give_slots(ctx);
                }
                (true, None) => self.slots.home.push(slot),
                (true, Some(_)) => self.give_slots(ctx),
            }
        }
        if ctx.is_planted(PlantedBug::SegmentSlotFreedEarly) {
            self.free_slots_early(ctx);
        }
        self.next_segment(job, ctx);
    }
}
