//! What each block must be when it is read.
//!
//! Blocks in the log have their checksums in memory, bands have theirs in tables on the disk, and
//! bands that the bypass is filling have theirs in memory until they are full. A translation that
//! keeps nothing over a power cut has none, and then whatever is read is right.

use super::areas::DurableAreas;
use super::open_bands::OpenBands;
use super::shape::Shape;
use super::table::{Table, TablePlace};
use crate::buffer::BufferSlice;
use crate::checksums::{Page, PageRead, PageState, Pages, Verdict, pages_of};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Area, Context};
use crate::lifecycle::Uuid;
use crate::map::BandId;
use crate::planted::PlantedBug;
use crate::saved::{Saved, SavedValue};
use crate::units::BLOCK_BYTES;
use alloc::vec;
use alloc::vec::Vec;

/// Pages that are kept in memory.
const PAGES_MAX: usize = 64;

/// Where blocks that were read come from, and so what they must be.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) enum Origin {
    /// What was written to the log at this position and after.
    Log(u64),
    /// What is at home in a band from this offset on.
    Home(BandId, u64),
}

/// Blocks that were read at home and are to be verified.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct HomeRead {
    pub job: u32,
    pub band: BandId,
    pub offset: u64,
    pub buffer: BufferSlice,
}

/// The checksums of all blocks.
#[derive(Debug, Saved)]
pub(super) struct Checksums {
    /// Where the tables lie; none where there are no checksums.
    #[saved(keep)]
    areas: Option<DurableAreas>,
    /// Whose tables they are.
    pub member: Uuid,
    /// The checksum of the block in each slot of the log.
    slots: Vec<u32>,
    /// The table of each band.
    tables: Vec<Table>,
    /// The newest generation of a table.
    pub generation: u64,
    pub open: OpenBands,
    /// Reads of home blocks wait for pages.
    pages: Pages<HomeRead>,
}

impl Checksums {
    /// None yet; the tables lie in `areas`.
    pub fn new(areas: DurableAreas, slots: u64, bands: u32) -> Checksums {
        Checksums {
            areas: Some(areas),
            slots: vec![0; slots as usize],
            tables: vec![Table::NONE; bands as usize],
            pages: Pages::new(PAGES_MAX),
            ..Checksums::none()
        }
    }

    /// None ever.
    pub fn none() -> Checksums {
        Checksums {
            areas: None,
            member: Uuid::default(),
            slots: Vec::new(),
            tables: Vec::new(),
            generation: 0,
            open: OpenBands::default(),
            pages: Pages::new(0),
        }
    }

    fn areas(&self) -> &DurableAreas {
        self.areas.as_ref().expect("checksums that are kept")
    }

    /// Blocks of memory that a table needs.
    pub fn table_blocks(&self) -> u64 {
        self.areas().table_blocks
    }

    /// The checksums of the blocks in slots of the log.
    pub fn slots(&self, slot: u64, blocks: u64) -> &[u32] {
        &self.slots[slot as usize..(slot + blocks) as usize]
    }

    /// Sets the checksums of the blocks in slots of the log.
    pub fn set_slots(&mut self, slot: u64, sums: &[u32]) {
        for (kept, sum) in self.slots.iter_mut().skip(slot as usize).zip(sums) {
            *kept = *sum;
        }
    }

    /// Compares blocks that were read from the log.
    pub fn verify_slots(&mut self, slot: u64, buffer: BufferSlice, ctx: &Context<'_>) -> Verdict {
        if self.areas.is_none() {
            return Verdict::Right;
        }
        let known = &self.slots[slot as usize..];
        self.pages.verify_known(known, buffer, ctx)
    }

    /// Compares blocks that were read at home, as far as there are pages in memory.
    pub fn verify_home(&mut self, read: HomeRead, shape: &Shape, ctx: &Context<'_>) -> Verdict {
        if self.areas.is_none() {
            return Verdict::Right;
        }
        if let Some(open) = self.open.get(read.band) {
            let known = open.sums.get(read.offset as usize..).unwrap_or(&[]);
            return self.pages.verify_known(known, read.buffer, ctx);
        }
        let table = self.place(read.band, self.table(read.band), shape).page(0);
        let rest = |offset, buffer| HomeRead { offset, buffer, ..read };
        let blocks = (read.offset, read.buffer);
        let is_right = |known, sum| known == sum;
        self.pages.verify(&table, blocks, is_right, rest, ctx)
    }

    /// The table of a band, with what its pages must say.
    fn place(&self, band: BandId, table: Table, shape: &Shape) -> TablePlace<'_> {
        TablePlace {
            areas: self.areas(),
            member: self.member,
            band,
            table,
            blocks: shape.bands.extent_of(band).blocks.0,
        }
    }

    /// Where a page is read from, and what to tell when it was.
    pub fn read_page(&self, page: Page, buffer: BufferSlice) -> (Area, PageRead) {
        let read = PageRead { page, buffer };
        (self.areas().area(read.extent()), read)
    }

    /// Takes in a page that was read; false when it is not what it must be.
    pub fn take_page(&mut self, read: &PageRead, ctx: &Context<'_>) -> bool {
        self.pages.take(&read.page, read.buffer, None, ctx)
    }

    /// The next read that waited for a page.
    pub fn next_waiting(&mut self, read: &PageRead) -> Option<HomeRead> {
        self.pages.next_waiting(&read.page)
    }

    /// The table of a band.
    pub fn table(&self, band: BandId) -> Table {
        let table = self.tables.get(band.0 as usize);
        table.copied().unwrap_or(Table::NONE)
    }

    /// Every table, by band.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Sets the table of a band, as a checkpoint has it.
    pub fn set_table(&mut self, band: BandId, table: Table) {
        self.tables[band.0 as usize] = table;
    }

    /// A new table for a band, to be written to the other place.
    pub fn next_table(&mut self, band: BandId) -> Table {
        self.generation += 1;
        self.table(band).successor(self.generation)
    }

    /// The checksums of a band are in a table now.
    pub fn apply_table(&mut self, band: BandId, table: Table) {
        self.generation = self.generation.max(table.generation());
        self.set_table(band, table);
        self.open.remove(band);
    }

    /// Where the table of a band lies on the disk.
    pub fn table_area(&self, band: BandId, table: Table, sums: u64) -> Area {
        let start = self.areas().table_start(band, table.place());
        self.areas().area(Extent::new(start, pages_of(sums)))
    }

    /// Takes the checksums of the first blocks of a band out of the pages of its table, which were
    /// read at once; nothing is appended when the buffers hold no bytes.
    ///
    /// # Errors
    /// When a page is not what it must be.
    pub fn take_table(
        &self,
        band: BandId,
        pages: BufferSlice,
        shape: &Shape,
        sums: &mut Vec<u32>,
        ctx: &Context<'_>,
    ) -> Result<(), IoError> {
        let place = self.place(band, self.table(band), shape).page(0);
        let ignore_address = ctx.is_planted(PlantedBug::CrcWithoutAddress);
        let Some(bytes) = ctx.metadata(pages) else {
            return Ok(());
        };
        for (index, page) in (0..).zip(bytes.chunks_exact(BLOCK_BYTES as usize)) {
            match place.at(index).unseal(page, ignore_address, sums) {
                PageState::Right => {}
                PageState::Blank | PageState::Wrong => return Err(IoError::Medium),
            }
        }
        Ok(())
    }

    /// Seals the checksums of a whole band into `pages`; returns where they are written to, and the
    /// pages that are.
    pub fn seal_table(
        &mut self,
        (band, table): (BandId, Table),
        sums: &[u32],
        pages: BufferSlice,
        ctx: &mut Context<'_>,
    ) -> (Area, BufferSlice) {
        let place = TablePlace {
            areas: self.areas(),
            member: self.member,
            band,
            table,
            blocks: sums.len() as u64,
        };
        let first = place.page(0);
        let area = self.table_area(band, table, sums.len() as u64);
        for page in 0..area.extent.blocks.0 {
            let buffer = pages.part(page, 1);
            self.pages.seal(&first.at(page), sums, buffer, ctx);
        }
        (area, pages.part(0, area.extent.blocks.0))
    }

    /// Keeps the checksums of blocks that the bypass has written home.
    pub fn append_home(&mut self, band: BandId, offset: u64, sums: &[u32]) {
        if !sums.is_empty() {
            self.open.append(band, offset, sums);
        }
    }

    /// Makes room for the checksums of more blocks at the write pointer of a band; false when there
    /// is no memory yet, which is asked for. A planted bug writes below what was written.
    pub fn open_band(&mut self, band: BandId, is_begun: bool, writes_below: bool) -> bool {
        if self.areas.is_none() {
            return true;
        }
        let is_open = self.open.get(band).is_some();
        let takes_more =
            (is_begun && writes_below && !is_open) || self.open.takes_more(band, is_begun);
        if takes_more && !is_open {
            self.open.insert(band, Vec::new());
        }
        takes_more
    }
}
