//! What a durable band rewrite does beside an ordinary one: it verifies all that it reads, writes a
//! new table of checksums, and waits for flushes between its steps.
//!
//! ```text
//! Reading (band, table) -> Gathering -> WritingScratch (scratch, new table) -> flush
//!     -> SCRATCH record, flush -> WritingHome -> flush -> HOME record
//! ```
//!
//! A band that goes home in [stretches](crate::translation::stretch) does all but the HOME record for
//! each. A crash between two leaves the scratch copy of the last, and all entries in the log.

use super::checksums::{Table, pages_of};
use super::records::Entry;
use crate::buffer::BufferSlice;
use crate::durability::FlushTicket;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::map::{BandId, ExtentSet};
use crate::operation::{Cause, Operation};
use crate::planted::PlantedBug;
use crate::translation::persistent_cache::{Part, PersistentCache};
use crate::translation::rewrite::{NO_STEP, Phase, Rewrite};
use crate::translation::stretch::Salvage;
use crate::units::BlockCount;
use alloc::vec::Vec;

/// What a rewrite in progress needs beside the rewrite itself.
#[derive(Debug)]
pub(super) struct Work {
    /// The flush that must be done before the next step.
    ticket: Option<FlushTicket>,
    /// Pages of the old table, then of the new one.
    pages: BufferSlice,
    /// The ranges that were zeroed when the rewrite began, and those that were since. A write that
    /// comes meanwhile may yet be undone, and must not uncover what was there before the zero.
    pub(super) zeroed: ExtentSet,
    /// What the log held of the band when a restore of it began. The next stretch is durable only
    /// together with that, so what is at home there is never read again, and may be bad.
    hidden: Vec<Extent>,
    /// The checksums of the band at home below the write pointer; empty when they are not known.
    old: Vec<u32>,
    /// What the blocks that are rewritten must be, where that is known.
    expected: Vec<Option<u32>>,
    /// The new table and its checksums.
    table: Table,
    sums: Vec<u32>,
}

impl Work {
    pub fn new(pages: BufferSlice) -> Work {
        Work {
            ticket: None,
            pages,
            zeroed: ExtentSet::new(),
            hidden: Vec::new(),
            old: Vec::new(),
            expected: Vec::new(),
            table: Table::NONE,
            sums: Vec::new(),
        }
    }
}

impl PersistentCache {
    /// True when a rewrite of the band must wait: the scratch band still covers another one, or
    /// the band's table is being written.
    pub(in crate::translation) fn rewrite_must_wait(
        &mut self,
        band: BandId,
        ctx: &mut Context<'_>,
    ) -> bool {
        let Some(durable) = &self.durable else {
            return false;
        };
        let covered = durable.is_unsure(durable.home_at) && durable.failure().is_none();
        if covered && !ctx.is_planted(PlantedBug::ScratchReleasedEarly) {
            self.flush_for_room(ctx);
            return true;
        }
        self.is_table_written(band)
    }

    /// True while a rewrite has gathered a band of the extent and not recorded it.
    pub(super) fn is_gathering(&self, extent: Extent) -> bool {
        self.rewrite.as_ref().is_some_and(|rewrite| {
            let gathering = matches!(
                rewrite.phase,
                Phase::Reading | Phase::Gathering | Phase::WritingScratch | Phase::FlushingScratch
            );
            gathering
                && !rewrite.is_in_scratch
                && extent.overlaps(self.bands.extent_of(rewrite.band))
        })
    }

    /// The offset from which a band is rewritten, when its lowest block in the log would have it
    /// rewritten from `from`: nothing below may be left unwritten.
    pub(in crate::translation) fn rewrite_from(&self, band: BandId, from: u64) -> u64 {
        let readable = match (&self.durable, &self.zones) {
            (Some(_), _) => self.readable_blocks(band),
            (None, Some(_)) => u64::from(self.write_pointers[band.0 as usize]),
            (None, None) => return from,
        };
        match readable < from {
            true => self.layout.track_start(band, readable).min(from),
            false => from,
        }
    }

    /// Issues the reads of a band and of its table; what cannot be read at home becomes zeroes.
    pub(in crate::translation) fn read_band_durably(
        &mut self,
        rewrite: &Rewrite,
        ctx: &mut Context<'_>,
    ) {
        let band = rewrite.band;
        let buffer = rewrite.buffer.part(0, rewrite.blocks);
        let mut there = rewrite.blocks;
        if !rewrite.is_in_scratch {
            there = self.readable_blocks(band).saturating_sub(rewrite.from);
            there = there.min(rewrite.blocks);
            ctx.zero(buffer.part(there, rewrite.blocks - there));
        }
        let there = there.saturating_sub(rewrite.carried);
        if self.durable().rewrite.pages.blocks > 0 {
            // The checksums are in memory since the first stretch.
            self.enter(Phase::Reading, there);
            return self.go_on(ctx);
        }
        let whole = self.bands.extent_of(band);
        let durable = self.durable.as_mut().expect("a durable translation");
        durable.rewrite.zeroed = ExtentSet::new();
        for zeroed in self.zeroed.pieces(whole) {
            durable.rewrite.zeroed.insert(zeroed);
        }
        durable.rewrite.hidden.clear();
        if rewrite.is_restore {
            let hidden = self.log.map().pieces(whole).map(|piece| piece.extent);
            durable.rewrite.hidden.extend(hidden);
        }
        let table_blocks = self.durable().areas.table_blocks;
        let mut old = core::mem::take(&mut self.durable().rewrite.old);
        old.clear();
        let open = self.open_band(band).map(|open| open.sums.as_slice());
        old.extend_from_slice(open.unwrap_or(&[]));
        let in_memory = open.is_some();
        let work = &mut self.durable().rewrite;
        work.old = old;
        work.ticket = None;
        work.pages = ctx.allocate(BlockCount(table_blocks));
        self.enter(Phase::Reading, there);
        self.send_steps(ctx);
        let table = self.durable().tables[band.0 as usize];
        if !in_memory && table != Table::NONE {
            let pages = pages_of(self.bands.extent_of(band).blocks.0);
            let start = self.durable().areas.table_start(band, table.place());
            let place = Extent::new(start, pages);
            let buffer = self.durable().rewrite.pages.part(0, pages);
            self.issue_for_rewrite(Operation::Read, place, buffer, Cause::Metadata, ctx);
        }
        if self.rewriting().outstanding == 0 {
            self.gather(ctx);
        }
    }

    /// The band and its table have been read.
    pub(in crate::translation) fn band_read_durably(&mut self, ctx: &mut Context<'_>) {
        let rewrite = self.rewriting();
        let band = rewrite.band;
        let table = self.durable().tables[band.0 as usize];
        let is_read = self.durable().rewrite.old.is_empty() && self.open_band(band).is_none();
        if is_read && table != Table::NONE {
            let pages = pages_of(self.bands.extent_of(band).blocks.0);
            let mut old = core::mem::take(&mut self.durable().rewrite.old);
            let buffer = self.durable().rewrite.pages.part(0, pages);
            let taken = self.take_table(band, buffer, &mut old, ctx);
            self.durable().rewrite.old = old;
            if let Err(error) = taken {
                return self.fail_rewrite(error, ctx);
            }
        }
        if !rewrite.is_in_scratch {
            return self.gather(ctx);
        }
        self.expect_home(&rewrite, rewrite.from + rewrite.blocks);
        match self.verify_rewrite(&rewrite, ctx) {
            Ok(()) => self.write_home(ctx),
            Err(error) => self.fail_rewrite(error, ctx),
        }
    }

    /// Takes note of what the blocks that are rewritten must be at home, up to an offset.
    fn expect_home(&mut self, rewrite: &Rewrite, readable: u64) {
        let start = self.bands.extent_of(rewrite.band).start.0 + rewrite.from;
        let whole = Extent::new(start, rewrite.blocks);
        let durable = self.durable.as_mut().expect("a durable translation");
        let Work {
            old,
            expected,
            hidden,
            ..
        } = &mut durable.rewrite;
        expected.clear();
        expected.extend((rewrite.from..rewrite.from + rewrite.blocks).map(|offset| {
            let known = offset < readable;
            known.then(|| old.get(offset as usize).copied()).flatten()
        }));
        let hidden = hidden
            .iter()
            .filter_map(|hidden| hidden.intersection(whole));
        for hidden in hidden.chain(self.lost.pieces(whole)) {
            let at = (hidden.start.0 - start) as usize;
            expected[at..at + hidden.blocks.0 as usize].fill(None);
        }
    }

    /// Takes note of what the gathered copy of a band must be.
    pub(in crate::translation) fn expect_gathered(&mut self, rewrite: &Rewrite) {
        if self.durable.is_none() {
            return;
        }
        self.expect_home(rewrite, self.readable_blocks(rewrite.band));
        let start = self.bands.extent_of(rewrite.band).start.0 + rewrite.from;
        let whole = Extent::new(start, rewrite.blocks);
        let capacity = self.log.capacity;
        let durable = self.durable.as_mut().expect("a durable translation");
        let Work {
            expected, zeroed, ..
        } = &mut durable.rewrite;
        for zeroed in zeroed.pieces(whole) {
            let at = (zeroed.start.0 - start) as usize;
            expected[at..at + zeroed.blocks.0 as usize].fill(None);
        }
        for piece in &self.gathered {
            for block in 0..piece.extent.blocks.0 {
                let at = piece.extent.start.0 + block - start;
                let slot = (piece.position + block) % capacity;
                expected[at as usize] = Some(durable.slot_sums[slot as usize]);
            }
        }
    }

    /// The ranges of what is rewritten that go home as zeroes.
    pub(in crate::translation) fn zeroes_of_rewrite(
        &mut self,
        part: Extent,
        out: &mut Vec<Extent>,
    ) {
        match &self.durable {
            None => out.extend(self.zeroed.pieces(part)),
            Some(durable) => out.extend(durable.rewrite.zeroed.pieces(part)),
        }
    }

    /// Compares what was read with what was expected, and keeps the checksums.
    fn verify_rewrite(&mut self, rewrite: &Rewrite, ctx: &Context<'_>) -> Result<(), IoError> {
        let work = &mut self.durable().rewrite;
        work.sums.clear();
        ctx.checksum(rewrite.buffer.part(0, rewrite.blocks), &mut work.sums);
        let right = |(sum, expected): (&u32, &Option<u32>)| expected.is_none_or(|it| it == *sum);
        if ctx.is_planted(PlantedBug::ReadCrcSkipped)
            || work.sums.iter().zip(&work.expected).all(right)
        {
            Ok(())
        } else {
            Err(IoError::Medium)
        }
    }

    /// Everything is gathered: the scratch copy and the new table are written.
    pub(in crate::translation) fn write_scratch_durably(&mut self, ctx: &mut Context<'_>) {
        let rewrite = self.rewriting();
        if let Err(error) = self.verify_rewrite(&rewrite, ctx) {
            return self.fail_rewrite(error, ctx);
        }
        let mut blocks = rewrite.blocks;
        if ctx.is_planted(PlantedBug::BandRewriteWithoutScratch) {
            blocks = 0;
        }
        let rewrite = self.enter(Phase::WritingScratch, blocks);
        let band = rewrite.band;
        let band_blocks = self.bands.extent_of(band).blocks.0;
        let durable = self.durable();
        durable.generation += 1;
        let table = durable.tables[band.0 as usize].successor(durable.generation);
        durable.rewrite.table = table;
        let mut sums = core::mem::take(&mut durable.rewrite.sums);
        // What is not rewritten, or not yet, keeps its checksums.
        let old = &durable.rewrite.old;
        let kept = (0..rewrite.from as usize).map(|at| old.get(at).copied().unwrap_or(0));
        sums.splice(0..0, kept);
        sums.extend(old.iter().skip(sums.len()));
        sums.resize(band_blocks as usize, 0);
        let pages = durable.rewrite.pages;
        self.rewrite.as_mut().expect("a rewrite").outstanding += 1;
        self.write_table(
            Part::Rewrite { end: NO_STEP },
            (band, table),
            &sums,
            pages,
            ctx,
        );
        self.durable().rewrite.sums = sums;
        self.send_steps(ctx);
    }

    /// Begins the flush that ends a phase.
    pub(in crate::translation) fn flush_for_rewrite(
        &mut self,
        phase: Phase,
        ctx: &mut Context<'_>,
    ) {
        if let Some(error) = self.durable().failure() {
            return self.fail_rewrite(error, ctx);
        }
        if ctx.is_planted(PlantedBug::ScratchReleasedEarly) && phase == Phase::FlushingHome {
            return self.end_stretch(ctx);
        }
        self.enter(phase, 0);
        let ticket = self.flush_durably(ctx);
        self.durable().rewrite.ticket = Some(ticket);
    }

    /// A flush is done.
    pub(super) fn rewrite_flushed(&mut self, done: FlushTicket, ctx: &mut Context<'_>) {
        let ticket = self.durable().rewrite.ticket;
        if ticket.is_none_or(|ticket| ticket > done) {
            return;
        }
        self.durable().rewrite.ticket = None;
        self.go_on(ctx);
    }

    /// The scratch copy and the new table are durable: they are what is read from now on.
    pub(in crate::translation) fn scratch_flushed(&mut self, ctx: &mut Context<'_>) {
        let rewrite = self.rewriting();
        let durable = self.durable();
        let had_table = durable.tables[rewrite.band.0 as usize] != Table::NONE;
        let work = &mut durable.rewrite;
        // Without bytes in the buffers, what a table says is not known.
        if !work.old.is_empty() || !had_table {
            core::mem::swap(&mut work.old, &mut work.sums);
        }
        let table = work.table;
        self.apply_scratch(Salvage::of(&rewrite), table);
        if ctx.is_planted(PlantedBug::BandRewriteWithoutScratch) {
            self.salvage = None;
            return self.write_home(ctx);
        }
        let entry = Entry::Scratch {
            band: rewrite.band,
            from: rewrite.from,
            blocks: rewrite.blocks,
            table,
            place: self.recorded_place(rewrite.place),
        };
        self.record(&entry, None, ctx);
        self.flush_for_rewrite(Phase::NotingScratch, ctx);
    }

    /// The scratch band holds the merged copy of blocks of a band: with the new table and what lies
    /// before and behind them, the band can be read from there.
    pub(super) fn apply_scratch(&mut self, salvage: Salvage, table: Table) {
        let Salvage {
            band, from, blocks, ..
        } = salvage;
        self.salvage = Some(salvage);
        self.apply_table(band, table);
        let pointer = &mut self.write_pointers[band.0 as usize];
        *pointer = (*pointer).max(salvage.end() as u32);
        let start = self.bands.extent_of(band).start.0;
        self.zeroed.remove(Extent::new(start + from, blocks));
    }

    /// The band is complete at home.
    pub(in crate::translation) fn record_home(&mut self, rewrite: &Rewrite, ctx: &mut Context<'_>) {
        let gathered_before = if rewrite.is_restore {
            0
        } else {
            rewrite.gathered_before
        };
        let table = self.durable().tables[rewrite.band.0 as usize];
        let entry = Entry::Home {
            band: rewrite.band,
            gathered_before,
            table,
        };
        let lsn = self.record(&entry, None, ctx);
        self.durable().home_at = Some(lsn);
        self.salvage = None;
    }

    /// The journal has failed: a rewrite that waits for it fails as well.
    pub(super) fn rewrite_lost_its_journal(&mut self, error: IoError, ctx: &mut Context<'_>) {
        if self.durable().rewrite.ticket.take().is_some() {
            self.fail_rewrite(error, ctx);
        }
    }

    /// Gives back the memory of the durable half of a rewrite.
    pub(in crate::translation) fn end_work(&mut self, ctx: &mut Context<'_>) {
        if let Some(durable) = &mut self.durable {
            durable.rewrite.ticket = None;
            let pages = core::mem::replace(&mut durable.rewrite.pages, BufferSlice::EMPTY);
            ctx.release(pages);
        }
    }
}
