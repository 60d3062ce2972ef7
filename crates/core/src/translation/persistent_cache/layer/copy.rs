//! What a rewrite does beside an ordinary one where checksums are kept: it verifies all that it reads,
//! writes a new table of checksums, and waits for flushes between its steps.
//!
//! ```text
//! Reading (band, table) -> Gathering -> WritingScratch (scratch, new table) -> flush
//!     -> SCRATCH record, flush -> WritingHome -> flush -> HOME record
//! ```
//!
//! A band that goes home in [stretches](super::super::stretch) does all but the HOME record for each.
//! A crash between two leaves the scratch copy of the last, and all entries in the log.

use super::PersistentCache;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::map::BandId;
use crate::operation::{Cause, Operation};
use crate::planted::PlantedBug;
use crate::translation::persistent_cache::apply::apply_scratch;
use crate::translation::persistent_cache::records::Entry;
use crate::translation::persistent_cache::requests::Part;
use crate::translation::persistent_cache::rewrite::{Phase, Rewrite};
use crate::translation::persistent_cache::salvage::Salvage;
use crate::translation::persistent_cache::table::Table;
use crate::units::BlockCount;

impl PersistentCache {
    /// True when a rewrite of the band must wait: the scratch band still covers another one, or
    /// the band's table is being written.
    pub(super) fn rewrite_must_wait(&mut self, band: BandId, ctx: &mut Context<'_>) -> bool {
        let covers_another = self.is_unsure(self.undo.home_at) && self.ledger.failure().is_none();
        if covers_another && !ctx.is_planted(PlantedBug::ScratchReleasedEarly) {
            self.flush_for_room(ctx);
            return true;
        }
        self.checksums.open.band_written() == Some(band)
    }

    /// Issues the reads of a stretch and of the table of its band; what cannot be read at home
    /// becomes zeroes.
    pub(super) fn read_with_checksums(&mut self, ctx: &mut Context<'_>) {
        let rewrite = *self.rewriter.get();
        let (band, held) = (rewrite.band, rewrite.stretch);
        let mut there = held.blocks;
        if !held.is_in_scratch {
            there = self.blocks.readable_blocks(band).saturating_sub(held.from);
            there = there.min(held.blocks);
            ctx.zero(rewrite.buffer.part(there, held.blocks - there));
        }
        let there = there.saturating_sub(held.carried);
        self.rewriter.enter(Phase::Reading, there);
        if self.copy_check.pages.blocks > 0 {
            // The checksums are in memory since the first stretch.
            self.gather_beside(ctx);
            return self.continue_rewrite(ctx);
        }
        let in_memory = self.copy_check.begin(&rewrite, &self.shape, &self.blocks, &self.checksums);
        self.undo.end_of_waiting();
        let pages = ctx.allocate(BlockCount(self.checksums.table_blocks()));
        self.copy_check.pages = pages;
        self.gather_beside(ctx);
        self.send_steps(ctx);
        let table = self.checksums.table(band);
        if !in_memory && table != Table::NONE {
            let blocks = self.shape.bands.extent_of(band).blocks.0;
            let area = self.checksums.table_area(band, table, blocks);
            let place = (area, pages.part(0, area.extent.blocks.0));
            self.issue_for_rewrite(Operation::Read, place, Cause::Metadata, ctx);
        }
        if self.rewriter.get().steps.outstanding == 0 {
            self.gather(ctx);
        }
    }

    /// A stretch and the table of its band have been read.
    ///
    /// # Errors
    /// When the table, or what was read from the scratch band, is not what it must be.
    pub(super) fn take_old_checksums(
        &mut self,
        rewrite: &Rewrite,
        ctx: &Context<'_>,
    ) -> Result<(), IoError> {
        let check = &mut self.copy_check;
        if check.wants_table(rewrite.band, &self.checksums) {
            check.take_table(rewrite.band, &self.shape, &self.checksums, ctx)?;
        }
        let held = &rewrite.stretch;
        if !held.is_in_scratch {
            return Ok(());
        }
        let end = held.from + held.blocks;
        check.expect_home(rewrite, end, &self.shape, &self.blocks);
        check.verify(rewrite.buffer.part(0, held.blocks), ctx)
    }

    /// Takes note of what the merged copy of a stretch must be.
    pub(super) fn expect_merged(&mut self) {
        if !self.shape.conduct.verifies {
            return;
        }
        let rewrite = self.rewriter.get();
        let held = &rewrite.stretch;
        let readable = self.blocks.readable_blocks(rewrite.band);
        let check = &mut self.copy_check;
        check.expect_home(rewrite, readable, &self.shape, &self.blocks);
        let start = self.shape.bands.extent_of(rewrite.band).start.0 + held.from;
        for zeroed in self.rewriter.zeroed(Extent::new(start, held.blocks)) {
            check.expect_zeroes(zeroed, start);
        }
        let gathered = self.rewriter.gathered();
        check.expect_gathered(gathered, start, &self.shape, &self.checksums);
    }

    /// Everything is gathered: the scratch copy and the new table are written.
    pub(super) fn write_scratch_and_table(&mut self, ctx: &mut Context<'_>) {
        let rewrite = *self.rewriter.get();
        let (band, held) = (rewrite.band, rewrite.stretch);
        let copy = rewrite.buffer.part(0, held.blocks);
        if let Err(error) = self.copy_check.verify(copy, ctx) {
            return self.fail_rewrite(error, ctx);
        }
        let blocks = match ctx.is_planted(PlantedBug::BandRewriteWithoutScratch) {
            true => 0,
            false => held.blocks,
        };
        self.rewriter.enter(Phase::WritingScratch, blocks);
        let table = self.checksums.next_table(band);
        let band_blocks = self.shape.bands.extent_of(band).blocks.0;
        let pages = self.copy_check.pages;
        let sums = self.copy_check.new_table(held.from, band_blocks, table);
        let place = self.checksums.seal_table((band, table), sums, pages, ctx);
        self.rewriter.get_mut().steps.sent_beside();
        let part = Part::Rewrite { end: None };
        self.issue(part, Operation::WRITE, place, Cause::Metadata, ctx);
        self.send_steps(ctx);
    }

    /// Begins the flush that ends a phase.
    pub(super) fn flush_for_rewrite(&mut self, phase: Phase, ctx: &mut Context<'_>) {
        if let Some(error) = self.ledger.failure() {
            return self.fail_rewrite(error, ctx);
        }
        // At a start and at an end there is no journal that could say so.
        let is_home = phase == Phase::FlushingHome && self.ledger.is_running();
        if is_home && ctx.is_planted(PlantedBug::ScratchReleasedEarly) {
            return self.end_stretch(ctx);
        }
        self.rewriter.enter(phase, 0);
        let ticket = self.flush_ledger(ctx);
        self.undo.rewrite_awaits(ticket);
    }

    /// The scratch copy and the new table are durable: they are what is read from now on.
    pub(super) fn scratch_flushed(&mut self, ctx: &mut Context<'_>) {
        let rewrite = *self.rewriter.get();
        let had_table = self.checksums.table(rewrite.band) != Table::NONE;
        self.copy_check.accept_table(had_table);
        let (table, salvage) = (self.copy_check.table, Salvage::of(&rewrite));
        apply_scratch(salvage, table, &self.shape, &mut self.blocks, &mut self.checksums);
        if ctx.is_planted(PlantedBug::BandRewriteWithoutScratch) {
            self.blocks.salvage = None;
            return self.write_home(ctx);
        }
        let entry = Entry::Scratch {
            band: rewrite.band,
            from: rewrite.stretch.from,
            blocks: rewrite.stretch.blocks,
            table,
            place: self.shape.layout.recorded_place(rewrite.stretch.place),
        };
        self.record(&entry, ctx);
        self.flush_for_rewrite(Phase::NotingScratch, ctx);
    }

    /// The band is complete at home.
    pub(super) fn record_home(&mut self, rewrite: &Rewrite, ctx: &mut Context<'_>) {
        let gathered_before = match rewrite.is_restore {
            true => 0,
            false => rewrite.gathered_before,
        };
        let entry = Entry::Home {
            band: rewrite.band,
            gathered_before,
            table: self.checksums.table(rewrite.band),
        };
        let record = self.record(&entry, ctx);
        self.undo.home_at = Some(record);
    }
}
