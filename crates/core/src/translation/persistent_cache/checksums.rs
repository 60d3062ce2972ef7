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
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Area, Context};
use crate::lifecycle::Uuid;
use crate::map::BandId;
use crate::planted::PlantedBug;
use crate::translation::checksums::{Page, PageCache, PageState, SUMS_PER_PAGE, Waiting, pages_of};
use crate::units::BLOCK_BYTES;
use alloc::vec;
use alloc::vec::Vec;

/// Pages that are kept in memory.
const PAGES_MAX: usize = 64;

/// Where blocks that were read come from, and so what they must be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Origin {
    /// What was written to the log at this position and after.
    Log(u64),
    /// What is at home in a band from this offset on.
    Home(BandId, u64),
}

/// Blocks that were read at home and are to be verified.
#[derive(Clone, Copy, Debug)]
pub(super) struct HomeRead {
    pub job: u32,
    pub band: BandId,
    pub offset: u64,
    pub buffer: BufferSlice,
}

/// A page of a table that is being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageRead {
    page: Page,
    pub buffer: BufferSlice,
}

/// What became of blocks that were read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Verdict {
    /// They are what they must be, or nobody can tell.
    Right,
    Wrong,
    /// A page of checksums must be read first: this one, where nobody waits for it yet.
    Waits(Option<Page>),
}

/// The checksums of all blocks.
#[derive(Debug)]
pub(super) struct Checksums {
    /// Where the tables lie; none where there are no checksums.
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
    pages: PageCache,
    /// Reads of home blocks that wait for pages.
    waiting: Waiting<HomeRead>,
    /// Scratch space.
    sums: Vec<u32>,
}

impl Checksums {
    /// None yet; the tables lie in `areas`.
    pub fn new(areas: DurableAreas, slots: u64, bands: u32) -> Checksums {
        Checksums {
            areas: Some(areas),
            slots: vec![0; slots as usize],
            tables: vec![Table::NONE; bands as usize],
            pages: PageCache::new(PAGES_MAX),
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
            pages: PageCache::new(0),
            waiting: Waiting::new(),
            sums: Vec::new(),
        }
    }

    /// True when nothing can be found wrong: there are no checksums, or a planted bug skips them.
    fn trusts_all(&self, ctx: &Context<'_>) -> bool {
        self.areas.is_none() || ctx.is_planted(PlantedBug::ReadCrcSkipped)
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
        if self.trusts_all(ctx) {
            return Verdict::Right;
        }
        self.sums.clear();
        ctx.checksum(buffer, &mut self.sums);
        let slot = slot as usize;
        match self.slots[slot..slot + self.sums.len()] == self.sums {
            true => Verdict::Right,
            false => Verdict::Wrong,
        }
    }

    /// Compares as many blocks as there are pages in memory; the rest waits for the next page.
    pub fn verify_home(&mut self, mut read: HomeRead, shape: &Shape, ctx: &Context<'_>) -> Verdict {
        if self.trusts_all(ctx) {
            return Verdict::Right;
        }
        let mut sums = core::mem::take(&mut self.sums);
        sums.clear();
        ctx.checksum(read.buffer, &mut sums);
        let mut verdict = Verdict::Right;
        let mut at = 0;
        while at < sums.len() && matches!(verdict, Verdict::Right) {
            let offset = read.offset + at as u64;
            match self.compare_home(read.band, offset, &sums[at..], shape) {
                Ok((blocks, true)) => at += blocks,
                Ok((_, false)) => verdict = Verdict::Wrong,
                Err(page) => {
                    let left = (sums.len() - at) as u64;
                    read.buffer = read.buffer.part(at as u64, left);
                    read.offset = offset;
                    let is_first = self.waiting.wait(page.id.address, read);
                    verdict = Verdict::Waits(is_first.then_some(page));
                }
            }
        }
        self.sums = sums;
        verdict
    }

    /// Compares the checksums of blocks at home up to the end of a page: how many there are, and
    /// whether they are right. An error names the page that must be read first.
    fn compare_home(
        &mut self,
        band: BandId,
        offset: u64,
        sums: &[u32],
        shape: &Shape,
    ) -> Result<(usize, bool), Page> {
        if let Some(open) = self.open.get(band) {
            let known = open.sums.get(offset as usize..).unwrap_or(&[]);
            return Ok((sums.len(), known.starts_with(sums)));
        }
        let page = self
            .place(band, self.table(band), shape)
            .page(offset / SUMS_PER_PAGE as u64);
        let inside = offset as usize % SUMS_PER_PAGE;
        let blocks = sums.len().min(SUMS_PER_PAGE - inside);
        let known = self.pages.get(page.id).ok_or(page)?;
        // Without bytes in the buffers, what a page says is not known.
        let known = known.iter().skip(inside);
        Ok((blocks, known.zip(sums).all(|(known, sum)| known == sum)))
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
        let area = self.areas().area(Extent::new(page.id.address, 1));
        (area, PageRead { page, buffer })
    }

    /// Takes in a page that was read; false when it is not what it must be.
    pub fn take_page(&mut self, read: &PageRead, ctx: &Context<'_>) -> bool {
        let ignore_address = ctx.is_planted(PlantedBug::CrcWithoutAddress);
        let PageRead { page, buffer } = *read;
        self.pages.insert(page.id, |sums| {
            let bytes = ctx.metadata(buffer);
            bytes.is_none_or(|it| page.unseal(it, ignore_address, sums) == PageState::Right)
        })
    }

    /// The next read that waited for a page.
    pub fn next_waiting(&mut self, read: &PageRead) -> Option<HomeRead> {
        self.waiting.next(read.page.id.address)
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
        let place = self.place(band, self.table(band), shape);
        let ignore_address = ctx.is_planted(PlantedBug::CrcWithoutAddress);
        let Some(bytes) = ctx.metadata(pages) else {
            return Ok(());
        };
        for (index, page) in (0..).zip(bytes.chunks_exact(BLOCK_BYTES as usize)) {
            match place.page(index).unseal(page, ignore_address, sums) {
                PageState::Right => {}
                PageState::Blank | PageState::Wrong => return Err(IoError::Medium),
            }
        }
        Ok(())
    }

    /// Seals the checksums of a whole band into `pages`; returns where they are written to, and the
    /// pages that are.
    pub fn seal_table(
        &self,
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
        let mut block = vec![0; BLOCK_BYTES as usize];
        let area = self.table_area(band, table, sums.len() as u64);
        for page in 0..area.extent.blocks.0 {
            place.page(page).seal(sums, &mut block);
            ctx.fill_metadata(pages.part(page, 1), &block);
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
