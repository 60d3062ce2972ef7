//! Bands that the sequential bypass is filling: their checksums are in memory, and go to a table
//! on the disk when the band is full or another band needs the memory.

use super::OPEN_BANDS_MAX;
use super::checksums::Table;
use super::records::Entry;
use crate::buffer::BufferSlice;
use crate::durability::FlushTicket;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::map::BandId;
use crate::planted::PlantedBug;
use crate::translation::persistent_cache::{Part, PersistentCache};
use crate::units::BlockCount;
use alloc::vec::Vec;

/// A band that the bypass is filling.
#[derive(Clone, Debug)]
pub(super) struct OpenBand {
    pub band: BandId,
    /// The checksums of the blocks below the write pointer.
    pub sums: Vec<u32>,
    /// Its memory is wanted for another band, so it gets no more blocks.
    pub closing: bool,
    /// Its table could not be written.
    pub stuck: bool,
}

impl OpenBand {
    /// A band of which so much is there.
    pub fn new(band: BandId, sums: Vec<u32>) -> OpenBand {
        OpenBand {
            band,
            sums,
            closing: false,
            stuck: false,
        }
    }
}

/// The table of an open band on its way to the disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableWrite {
    band: BandId,
    table: Table,
    pages: BufferSlice,
    /// The flush that must be done before the record.
    ticket: Option<FlushTicket>,
}

impl PersistentCache {
    pub(super) fn open_band(&self, band: BandId) -> Option<&OpenBand> {
        let durable = self.durable.as_ref()?;
        durable.open.iter().find(|open| open.band == band)
    }

    /// True when the bypass may write to the band now, as far as durability goes. Asks for memory
    /// when that is all that is missing.
    pub(in crate::translation) fn may_bypass(&mut self, band: BandId, ctx: &Context<'_>) -> bool {
        let pointer = self.write_pointers[band.0 as usize];
        let trims_early = ctx.is_planted(PlantedBug::TrimReusedEarly);
        let Some(durable) = &mut self.durable else {
            return true;
        };
        // The data below a pointer that a trim has lowered is still good if the trim is undone.
        if durable.is_unsure(durable.zeroed_at) && !trims_early {
            return false;
        }
        if let Some(open) = durable.open.iter().find(|open| open.band == band) {
            return !open.closing;
        }
        if pointer > 0 {
            return ctx.is_planted(PlantedBug::BypassOverLiveData);
        }
        if durable.open.len() < OPEN_BANDS_MAX {
            return true;
        }
        if durable.open.iter().all(|open| !open.closing) {
            durable.open[0].closing = true;
        }
        false
    }

    /// Takes note of a write of the bypass that is about to begin.
    pub(in crate::translation) fn begin_bypass(
        &mut self,
        (band, offset): (BandId, u64),
        buffer: BufferSlice,
        ctx: &Context<'_>,
    ) {
        let Some(durable) = &mut self.durable else {
            return;
        };
        durable.sums.clear();
        ctx.checksum(buffer, &mut durable.sums);
        let sums = &durable.sums;
        append_sums(&mut durable.open, band, offset, sums);
    }

    /// A write of the bypass has succeeded.
    pub(in crate::translation) fn record_bypass(
        &mut self,
        extent: Extent,
        supersedes: u64,
        ctx: &mut Context<'_>,
    ) {
        let band = self.bands.band_of(extent.start);
        let offset = extent.start.offset_from(self.bands.extent_of(band).start);
        let home = self.layout.home(band, offset, extent.blocks.0);
        let mut sums = core::mem::take(&mut self.durable().sums);
        sums.clear();
        let open = self.open_band(band).expect("a band that the bypass fills");
        let from = offset as usize;
        sums.extend_from_slice(&open.sums[from..from + extent.blocks.0 as usize]);
        let entry = Entry::Bypass { lba: extent.start };
        self.record_data(&entry, home, &sums, ctx);
        self.durable().sums = sums;
        self.end_of_superseding(supersedes);
    }

    /// A write of the bypass has failed: nothing of it can be read, and the pointer goes back.
    pub(in crate::translation) fn bypass_failed(&mut self, band: BandId, extent: Extent) {
        let offset = extent.start.offset_from(self.bands.extent_of(band).start) as u32;
        let pointer = &mut self.write_pointers[band.0 as usize];
        *pointer = offset.min(*pointer);
        self.forget_sums_above(band);
    }

    /// Forgets the checksums of blocks that cannot be read at home any more.
    pub(super) fn forget_sums_above(&mut self, band: BandId) {
        let pointer = self.write_pointers[band.0 as usize];
        if let Some(durable) = &mut self.durable
            && let Some(open) = durable.open.iter_mut().find(|open| open.band == band)
        {
            open.sums.truncate(pointer as usize);
        }
    }

    /// The checksums of a band are in a table now.
    pub(super) fn apply_table(&mut self, band: BandId, table: Table) {
        let durable = self.durable();
        durable.generation = durable.generation.max(table.generation());
        durable.tables[band.0 as usize] = table;
        durable.open.retain(|open| open.band != band);
    }

    /// True while the table of a band is being written.
    pub(super) fn is_table_written(&self, band: BandId) -> bool {
        let durable = self.durable.as_ref();
        let write = durable.and_then(|durable| durable.table_write);
        write.is_some_and(|write| write.band == band)
    }

    /// Begins to write the table of an open band that is full or must go.
    pub(super) fn advance_tables(&mut self, ctx: &mut Context<'_>) {
        let durable = self.durable.as_ref().expect("a durable translation");
        let may = durable.is_running() && !ctx.is_read_only();
        if !may || durable.table_write.is_some() || durable.open.is_empty() {
            return;
        }
        let under_rewrite = self.rewrite.as_ref().map(|rewrite| rewrite.band);
        let is_due = |open: &&OpenBand| {
            let full = open.sums.len() as u64 == self.bands.extent_of(open.band).blocks.0;
            let busy = under_rewrite == Some(open.band) || self.bypassing.contains(&open.band);
            (full || open.closing) && !open.stuck && !busy
        };
        let Some(open) = durable.open.iter().find(is_due) else {
            return;
        };
        let (band, mut sums) = (open.band, open.sums.clone());
        sums.resize(self.bands.extent_of(band).blocks.0 as usize, 0);
        let durable = self.durable();
        if let Some(open) = durable.open.iter_mut().find(|open| open.band == band) {
            open.closing = true;
        }
        durable.generation += 1;
        let table = durable.tables[band.0 as usize].successor(durable.generation);
        let pages = ctx.allocate(BlockCount(durable.areas.table_blocks));
        durable.table_write = Some(TableWrite {
            band,
            table,
            pages,
            ticket: None,
        });
        self.write_table(Part::Table, (band, table), &sums, pages, ctx);
    }

    /// The pages of a table have been written.
    pub(in crate::translation) fn table_written(
        &mut self,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        if result.is_err() || self.durable().failure().is_some() {
            return self.drop_table_write(ctx);
        }
        let ticket = self.flush_durably(ctx);
        if let Some(write) = &mut self.durable().table_write {
            write.ticket = Some(ticket);
        }
    }

    /// A flush is done.
    pub(super) fn table_flushed(&mut self, done: FlushTicket, ctx: &mut Context<'_>) {
        let durable = self.durable();
        let Some(write) = durable.table_write else {
            return;
        };
        if write.ticket.is_some_and(|ticket| ticket <= done) {
            durable.table_write = None;
            ctx.release(write.pages);
            let (band, table) = (write.band, write.table);
            self.apply_table(band, table);
            self.record(&Entry::Table { band, table }, None, ctx);
        }
    }

    /// The flush of a table will not come.
    pub(super) fn table_write_failed(&mut self, ctx: &mut Context<'_>) {
        let write = self.durable().table_write;
        if write.is_some_and(|write| write.ticket.is_some()) {
            self.drop_table_write(ctx);
        }
    }

    fn drop_table_write(&mut self, ctx: &mut Context<'_>) {
        let durable = self.durable();
        let write = durable.table_write.take().expect("a table on its way");
        ctx.release(write.pages);
        if let Some(open) = durable.open.iter_mut().find(|open| open.band == write.band) {
            open.stuck = true;
        }
    }
}

/// Puts checksums behind those of the blocks of a band before `offset`.
pub(super) fn append_sums(open: &mut Vec<OpenBand>, band: BandId, offset: u64, sums: &[u32]) {
    let at = open.iter().position(|open| open.band == band);
    let at = at.unwrap_or_else(|| {
        open.push(OpenBand::new(band, Vec::new()));
        open.len() - 1
    });
    let kept = &mut open[at].sums;
    // Only a planted bug writes below what is there.
    let end = offset as usize + sums.len();
    if kept.len() < end {
        kept.resize(end, 0);
    }
    kept[offset as usize..end].copy_from_slice(sums);
}
