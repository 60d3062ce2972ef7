//! Scrubs, and blocks that are wrong or cannot be read.

use super::Raid4Smr;
use crate::array::RowMap;
use crate::array::keeper::Life;
use crate::array::raid4smr::directory::{Place, Target};
use crate::array::raid4smr::on_the_way::Quiet;
use crate::array::raid4smr::word::Word;
use crate::array::status::first_runs;
use crate::counters::Gauge;
use crate::error::IoError;
use crate::layer::Context;
use alloc::vec::Vec;

impl Raid4Smr {
    /// Goes on with what makes blocks right. False when there is nothing to do now.
    pub(super) fn repair_on(&mut self, ctx: &mut Context<'_>) -> bool {
        if !self.keeps() || !matches!(self.notes.keeper.life, Life::Up | Life::Draining) {
            self.end_scrub_of_lost(ctx);
            return false;
        }
        self.list_unreadable(ctx);
        let Raid4Smr { repairs, rows, contents, .. } = self;
        repairs.scrubs.repair(Word::Repair.number(), rows, contents, ctx);
        if let Some(ended) = repairs.scrubs.go_on(Word::Scrub.number(), rows, contents, ctx) {
            self.repairs.ended_scrubs.push(ended);
        }
        for band in self.contents.take_to_rewrite() {
            // One that is spare still counts in the parity: whatever is collected to it is written over it.
            self.repairs.rewrites.add(self.collector.band_row_at(band).unwrap_or_default());
        }
        let are_over = self.repairs.rewrites.is_empty() && self.collector.is_idle();
        if are_over && !self.repairs.ended_scrubs.is_empty() && !self.repairs.is_flushing {
            self.repairs.is_flushing = true;
            self.flush_members(Word::Scrubbed, ctx);
        }
        // What was begun may want tables that nothing else has asked for.
        self.read_tables(ctx) || self.rewrite_next(ctx)
    }

    /// The array is lost: who waits for a scrub is told.
    fn end_scrub_of_lost(&mut self, ctx: &mut Context<'_>) {
        let Raid4Smr { repairs, rows, contents, .. } = self;
        if self.notes.keeper.life == Life::Lost {
            repairs.scrubs.stop("two members are lost");
            if let Some(ended) = repairs.scrubs.go_on(Word::Scrub.number(), rows, contents, ctx) {
                ended.tell(Err(IoError::Lost), ctx);
            }
        }
    }

    /// True when nothing is compared or made right, and everybody was told.
    pub(super) fn have_scrubs_ended(&self) -> bool {
        self.repairs.scrubs.are_over() && self.repairs.ended_scrubs.is_empty()
    }

    /// What scrubs have made right is durable.
    pub(super) fn scrubs_flushed(&mut self, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        self.repairs.is_flushing = false;
        for ended in self.repairs.ended_scrubs.drain(..) {
            ended.tell(result, ctx);
        }
    }

    /// Has the next band row collected that has a wrong block. False when none can be now.
    fn rewrite_next(&mut self, ctx: &mut Context<'_>) -> bool {
        if self.notes.keeper.life != Life::Up || !self.can_collect(ctx) {
            self.repairs.rewrites.clear();
        }
        let may_begin = self.collector.is_idle() && self.gate.quiet == Quiet::No;
        let Some(band_row) = self.repairs.rewrites.next().filter(|_| may_begin) else {
            return false;
        };
        if !self.notes.keeper.ledger.reserve(self.room.of_collection()) {
            return false;
        }
        self.room.add_collection();
        self.repairs.rewrites.begun();
        self.directory.collect_again(band_row);
        let decisions: Vec<_> = self.directory.take_decisions().collect();
        decisions.into_iter().for_each(|decision| self.collector.add(decision, ctx));
        let (collector, mut around) = self.around(ctx);
        collector.go_on(&mut around);
        true
    }

    /// Lists what was found to be unreadable since the last event, and forgets what was written since.
    fn list_unreadable(&mut self, ctx: &mut Context<'_>) {
        for (column, row) in self.contents.take_newly_unreadable() {
            let place = self.collector.place_at(column, row, &self.directory, &self.contents);
            match place.map(|place| (place, self.directory.is_live(place))) {
                Some((place, true)) => self.contents.unreadable.add(place),
                // Nobody wants it any more: it is read as zeroes.
                Some((_, false)) => self.contents.is_not_missed(column, row),
                None => {}
            }
        }
        if self.contents.unreadable.is_empty() {
            return;
        }
        let mut listed = core::mem::take(&mut self.contents.unreadable);
        listed.keep(|place| self.is_lost_at(*place));
        self.contents.unreadable = listed;
        ctx.gauge(Gauge::UnreadableBlocks, self.contents.unreadable.len());
    }

    /// True when nothing of a place is in the parity, though it was written.
    fn is_lost_at(&self, place: Place) -> bool {
        let (column, row) = match self.directory.slot_of(place) {
            Some(slot) => (self.contents.data(), slot),
            None => self.collector.find(place, &self.directory, &self.contents),
        };
        self.directory.is_live(place) && !self.contents.held(row).has(column)
    }

    /// True of a block that is listed as unreadable, and was not written since.
    pub(super) fn is_unreadable(&self, target: Target) -> bool {
        if self.contents.unreadable.is_empty() {
            return false;
        }
        match target {
            Target::Home(place) | Target::Slot { place, .. } => {
                self.contents.unreadable.has(place) && self.is_lost_at(place)
            }
            Target::Nowhere | Target::NoSlot | Target::Unwritten(_) => false,
        }
    }

    /// The first runs of blocks of the host that are unreadable, each with the block behind its last.
    pub(super) fn unreadable_runs(&self) -> Vec<(u64, u64)> {
        let places = self.contents.unreadable.places();
        let mut blocks: Vec<u64> =
            places.filter_map(|place| self.directory.block_at(place)).collect();
        blocks.sort_unstable();
        first_runs(blocks.into_iter())
    }
}
