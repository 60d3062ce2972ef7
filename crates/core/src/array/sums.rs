//! What the blocks of an array must be: tables of checksums, a table for each region, those in memory that
//! were used last.

use super::RegionShape;
use crate::buffer::BufferSlice;
use crate::checksums::{NOTHING, Page, PageId, PageState, is_right, word_of};
use crate::extent::Extent;
use crate::layer::Context;
use crate::lifecycle::Uuid;
use crate::map::{AddressMap, LruList, address_map};
use crate::planted::PlantedBug;
use crate::saved::SavedValue;
use crate::units::BLOCK_BYTES;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

/// The table of a region in memory.
#[derive(Debug, SavedValue)]
struct Table {
    region: u64,
    /// A word for each row; none while it is being read.
    words: Vec<u32>,
    /// How many need it.
    holds: u32,
    is_known: bool,
    /// Somebody waits for it, and has not held it yet.
    is_awaited: bool,
}

/// The tables of an array.
#[derive(Debug, SavedValue)]
pub struct Sums {
    shape: RegionShape,
    /// Whose tables they are.
    set: Uuid,
    /// The block of each member in which the first table begins.
    first_block: u64,
    tables: Vec<Table>,
    by_region: AddressMap<u32>,
    /// Tables that nobody needs.
    recency: LruList,
    tables_max: usize,
    /// Regions whose tables are to be read.
    wanted: VecDeque<u64>,
    scratch: Vec<u32>,
}

impl Sums {
    /// None in memory yet, where so many bytes of them may be.
    pub fn new(shape: RegionShape, first_block: u64, memory_bytes: u64) -> Sums {
        let tables_max =
            (memory_bytes / (4 * shape.region_rows)).min(shape.regions).max(1) as usize;
        Sums {
            shape,
            set: Uuid::default(),
            first_block,
            tables: Vec::new(),
            by_region: address_map(tables_max.min(1 << 16)),
            recency: LruList::new(),
            tables_max,
            wanted: VecDeque::new(),
            scratch: Vec::new(),
        }
    }

    /// The set is known: tables of another one are not taken.
    pub fn of_set(&mut self, set: Uuid) {
        self.set = set;
    }

    /// How rows are cut into regions.
    pub fn shape(&self) -> &RegionShape {
        &self.shape
    }

    /// Holds the tables of regions in memory, each until [`release`](Self::release). False while one of them is
    /// being read; none is held then.
    pub fn hold(&mut self, regions: RangeInclusive<u64>) -> bool {
        let mut are_known = true;
        for region in regions.clone() {
            let table = self.find_or_read(region);
            are_known &= self.tables[table as usize].is_known;
        }
        if !are_known {
            return false;
        }
        for region in regions {
            let table = self.by_region[&region];
            let entry = &mut self.tables[table as usize];
            let was_free = entry.holds == 0 && !core::mem::take(&mut entry.is_awaited);
            entry.holds += 1;
            if was_free {
                self.recency.remove(table);
            }
        }
        true
    }

    fn find_or_read(&mut self, region: u64) -> u32 {
        if let Some(table) = self.by_region.get(&region) {
            return *table;
        }
        let table = self.free_table();
        let entry = &mut self.tables[table as usize];
        (entry.region, entry.is_known, entry.is_awaited) = (region, false, true);
        entry.holds = 0;
        entry.words.clear();
        self.by_region.insert(region, table);
        self.wanted.push_back(region);
        table
    }

    fn free_table(&mut self) -> u32 {
        if self.tables.len() >= self.tables_max
            && let Some(oldest) = self.recency.oldest()
        {
            self.recency.remove(oldest);
            self.by_region.remove(&self.tables[oldest as usize].region);
            return oldest;
        }
        let words = Vec::new();
        let table = Table { region: 0, words, holds: 0, is_known: false, is_awaited: false };
        self.tables.push(table);
        self.tables.len() as u32 - 1
    }

    /// True when the table of a region is in memory.
    pub fn is_known(&self, region: u64) -> bool {
        let table = self.by_region.get(&region);
        table.is_some_and(|table| self.tables[*table as usize].is_known)
    }

    /// Holds the table of a region, if it is in memory.
    pub fn hold_known(&mut self, region: u64) -> bool {
        self.is_known(region) && self.hold(region..=region)
    }

    /// One who has held the table of a region needs it no more.
    pub fn release(&mut self, region: u64) {
        let table = self.by_region[&region];
        let entry = &mut self.tables[table as usize];
        entry.holds -= 1;
        if entry.holds == 0 {
            self.recency.push_newest(table);
        }
    }

    /// The next region whose table must be read.
    pub fn next_wanted(&mut self) -> Option<u64> {
        self.wanted.pop_front()
    }

    /// The pages of a table were read. False when one of them is another block than it must be: another member
    /// may have it. Of pages where nothing was ever written nothing is known.
    pub fn take(&mut self, region: u64, pages: BufferSlice, ctx: &Context<'_>) -> bool {
        let table = self.by_region[&region];
        let mut words = core::mem::take(&mut self.tables[table as usize].words);
        words.clear();
        let mut is_whole = true;
        let first = self.first_page(region);
        if let Some(bytes) = ctx.metadata(pages) {
            let ignore_address = ctx.is_planted(PlantedBug::CrcWithoutAddress);
            for (index, block) in (0..).zip(bytes.chunks_exact(BLOCK_BYTES as usize)) {
                let page = first.at(index);
                match page.unseal(block, ignore_address, &mut words) {
                    PageState::Right => {}
                    PageState::Blank => words.resize(page.first() + page.len(), NOTHING),
                    PageState::Wrong => {
                        is_whole = false;
                        words.resize(page.first() + page.len(), NOTHING);
                    }
                }
            }
        }
        self.tables[table as usize].words = words;
        is_whole
    }

    /// What is known of a region is all that can be known; those who wait for it may go on.
    pub fn settle(&mut self, region: u64) {
        let rows = self.shape.region_rows as usize;
        let table = self.by_region[&region];
        let entry = &mut self.tables[table as usize];
        entry.words.resize(rows, NOTHING);
        entry.is_known = true;
    }

    fn first_page(&self, region: u64) -> Page {
        let address = self.first_block + region * self.shape.pages;
        let id = PageId { address, generation: 0 };
        Page { member: self.set, id, index: 0, sums: self.shape.region_rows }
    }

    /// Puts the pages of a region together in a buffer.
    pub fn seal(&mut self, region: u64, pages: BufferSlice, ctx: &mut Context<'_>) {
        let table = self.by_region[&region];
        let words = &self.tables[table as usize].words;
        let mut block = vec![0; BLOCK_BYTES as usize];
        for index in 0..self.shape.pages {
            self.first_page(region).at(index).seal(words, &mut block);
            ctx.fill_metadata(pages.part(index, 1), &block);
        }
    }

    /// True of a block that may lie in a row of the tables: the page that belongs there, or one that was never
    /// written.
    pub fn is_page(&self, row: u64, block: &[u8], ctx: &Context<'_>) -> bool {
        let (region, index) = (row / self.shape.pages, row % self.shape.pages);
        let page = self.first_page(region).at(index);
        let ignore_address = ctx.is_planted(PlantedBug::CrcWithoutAddress);
        page.unseal(block, ignore_address, &mut Vec::new()) != PageState::Wrong
    }

    fn word(&self, row: u64) -> u32 {
        let region = self.shape.region_of(row);
        let table = self.by_region.get(&region).map(|table| &self.tables[*table as usize]);
        let at = row - self.shape.rows_of(region).start.0;
        table.and_then(|table| table.words.get(at as usize)).copied().unwrap_or(NOTHING)
    }

    /// Sets the word of a row whose table is in memory.
    pub fn set_word(&mut self, row: u64, word: u32) {
        let region = self.shape.region_of(row);
        let at = row - self.shape.rows_of(region).start.0;
        let table = self.by_region[&region];
        self.tables[table as usize].words[at as usize] = word;
    }

    /// Blocks of rows are what is in a buffer from now on. Their tables are held.
    pub fn set(&mut self, rows: Extent, data: BufferSlice, ctx: &Context<'_>) {
        let mut sums = core::mem::take(&mut self.scratch);
        sums.clear();
        ctx.checksum(data, &mut sums);
        for (row, sum) in (rows.start.0..).zip(&sums) {
            self.set_word(row, word_of(*sum));
        }
        self.scratch = sums;
    }

    /// Nobody knows what blocks of rows are.
    pub fn forget(&mut self, rows: Extent) {
        for row in rows.start.0..rows.end().0 {
            self.set_word(row, NOTHING);
        }
    }

    /// True when a block with a checksum is what a row must have, or nobody knows.
    pub fn is_right(&self, row: u64, sum: u32) -> bool {
        is_right(self.word(row), sum)
    }
}
