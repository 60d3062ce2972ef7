//! Bands that the sequential bypass is filling: their checksums are in memory, and go to a table
//! on the disk when the band is full or another band needs the memory.

use super::table::Table;
use crate::buffer::BufferSlice;
use crate::durability::FlushTicket;
use crate::map::BandId;
use crate::saved::SavedValue;
use alloc::vec::Vec;

/// Bands that the bypass fills at once.
pub(super) const OPEN_BANDS_MAX: usize = 8;

/// A band that the bypass is filling.
#[derive(Clone, Debug, SavedValue)]
pub(super) struct OpenBand {
    pub band: BandId,
    /// The checksums of the blocks below the write pointer.
    pub sums: Vec<u32>,
    /// Its memory is wanted for another band, so it gets no more blocks.
    closing: bool,
    /// Its table could not be written.
    stuck: bool,
}

/// The table of an open band on its way to the disk.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct TableWrite {
    pub band: BandId,
    pub table: Table,
    pub pages: BufferSlice,
    /// The flush that must be done before the record.
    ticket: Option<FlushTicket>,
}

/// The open bands, and the one whose table is being written.
#[derive(Debug, Default, SavedValue)]
pub(super) struct OpenBands {
    bands: Vec<OpenBand>,
    write: Option<TableWrite>,
}

impl OpenBands {
    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &OpenBand> {
        self.bands.iter()
    }

    pub fn get(&self, band: BandId) -> Option<&OpenBand> {
        self.bands.iter().find(|open| open.band == band)
    }

    fn get_mut(&mut self, band: BandId) -> Option<&mut OpenBand> {
        self.bands.iter_mut().find(|open| open.band == band)
    }

    /// Takes in a band whose first blocks have these checksums.
    pub fn insert(&mut self, band: BandId, sums: Vec<u32>) {
        self.bands.push(OpenBand { band, sums, closing: false, stuck: false });
    }

    /// True when blocks of the band may be added. When only memory is missing for that, asks a
    /// band for its own.
    pub fn takes_more(&mut self, band: BandId, is_begun: bool) -> bool {
        if let Some(open) = self.get(band) {
            return !open.closing;
        }
        if is_begun {
            return false;
        }
        if self.bands.len() < OPEN_BANDS_MAX {
            return true;
        }
        if self.bands.iter().all(|open| !open.closing) {
            self.bands[0].closing = true;
        }
        false
    }

    /// Puts checksums behind those of the blocks of a band before `offset`.
    pub fn append(&mut self, band: BandId, offset: u64, sums: &[u32]) {
        if self.get(band).is_none() {
            self.insert(band, Vec::new());
        }
        let kept = &mut self.get_mut(band).expect("an open band").sums;
        // Only a planted bug writes below what is there.
        let end = offset as usize + sums.len();
        if kept.len() < end {
            kept.resize(end, 0);
        }
        kept[offset as usize..end].copy_from_slice(sums);
    }

    /// Forgets the checksums of blocks from `offset` on.
    pub fn truncate(&mut self, band: BandId, offset: u64) {
        if let Some(open) = self.get_mut(band) {
            open.sums.truncate(offset as usize);
        }
    }

    /// The checksums of a band are on the disk now.
    pub fn remove(&mut self, band: BandId) {
        self.bands.retain(|open| open.band != band);
    }

    /// The band whose table is being written.
    pub fn band_written(&self) -> Option<BandId> {
        self.write.map(|write| write.band)
    }

    /// A band whose table should be written: it is full or must go.
    pub fn due(
        &self,
        is_full: impl Fn(&OpenBand) -> bool,
        is_busy: impl Fn(BandId) -> bool,
    ) -> Option<&OpenBand> {
        if self.write.is_some() {
            return None;
        }
        let is_due = |open: &&OpenBand| {
            (is_full(open) || open.closing) && !open.stuck && !is_busy(open.band)
        };
        self.bands.iter().find(is_due)
    }

    /// The table of an open band goes to the disk.
    pub fn begin_write(&mut self, band: BandId, table: Table, pages: BufferSlice) {
        if let Some(open) = self.get_mut(band) {
            open.closing = true;
        }
        self.write = Some(TableWrite { band, table, pages, ticket: None });
    }

    /// The pages are written; the table counts when a flush is done.
    pub fn await_flush(&mut self, ticket: FlushTicket) {
        if let Some(write) = &mut self.write {
            write.ticket = Some(ticket);
        }
    }

    /// The table whose flush is done: it is on the disk.
    pub fn flushed(&mut self, is_done: impl Fn(FlushTicket) -> bool) -> Option<TableWrite> {
        self.write.take_if(|write| write.ticket.is_some_and(&is_done))
    }

    /// True while a written table waits for a flush.
    pub fn awaits_flush(&self) -> bool {
        self.write.is_some_and(|write| write.ticket.is_some())
    }

    /// The table could not be written: its band keeps its checksums in memory.
    pub fn give_up_write(&mut self) -> TableWrite {
        let write = self.write.take().expect("a table on its way");
        if let Some(open) = self.get_mut(write.band) {
            open.stuck = true;
        }
        write
    }
}
