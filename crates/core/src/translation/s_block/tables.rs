//! The checksums of S-blocks: a table on the disk for each position.
//!
//! A table has a word for each block, which says what its checksum must be. The table of a position is
//! written together with the S-block, and like it only where nobody needs
//! what was there. So there is one place for each table, and a record names its generation.

use super::layout::Layout;
use super::work::ReadPart;
use crate::buffer::BufferSlice;
use crate::checksums::{
    ChecksumSettings, Page, PageId, PageRead, Pages, Verdict, is_right, pages_of,
};
use crate::extent::Extent;
use crate::layer::Context;
use crate::lifecycle::Uuid;
use crate::saved::SavedValue;
use alloc::vec;
use alloc::vec::Vec;

/// The tables of all positions, and what waits for their pages.
#[derive(Debug, SavedValue)]
pub struct Tables {
    /// Where they lie; empty where there are no checksums.
    area: Extent,
    /// Blocks of each, and words in it.
    blocks: u64,
    sums: u64,
    /// Whose tables they are.
    pub member: Uuid,
    /// The generation of the table of each position; 0 where it never had one.
    generations: Vec<u64>,
    /// The newest of them, and of those that are being written.
    newest: u64,
    pages: Pages<ReadPart>,
}

impl Tables {
    /// None written yet.
    pub fn new(layout: &Layout, settings: Option<ChecksumSettings>) -> Tables {
        let pages = layout.tables.blocks.0;
        let pages_max = settings.map_or(0, |it| it.pages_max(pages, layout.segment));
        let positions = match layout.has_sums() {
            true => layout.positions() as usize,
            false => 0,
        };
        Tables {
            area: layout.tables,
            blocks: layout.table_blocks,
            sums: layout.segment,
            member: Uuid::default(),
            generations: vec![0; positions],
            newest: 0,
            pages: Pages::new(pages_max),
        }
    }

    /// Compares blocks that were read with checksums that are in memory.
    pub fn verify_ring(
        &mut self,
        known: &[u32],
        buffer: BufferSlice,
        ctx: &Context<'_>,
    ) -> Verdict {
        if self.blocks == 0 {
            return Verdict::Right;
        }
        self.pages.verify_known(known, buffer, ctx)
    }

    /// Compares blocks of the S-block at a position, as far as there are pages in memory.
    pub fn verify(&mut self, position: u32, read: ReadPart, ctx: &Context<'_>) -> Verdict {
        if self.blocks == 0 {
            return Verdict::Right;
        }
        let table = self.table(position, self.generations[position as usize]);
        let rest = |offset, buffer| ReadPart { offset, buffer, ..read };
        let blocks = (read.offset, read.buffer);
        self.pages.verify(&table, blocks, is_right, rest, ctx)
    }

    /// The next read that waited for a page.
    pub fn next_waiting(&mut self, read: &PageRead) -> Option<ReadPart> {
        self.pages.next_waiting(&read.page)
    }

    /// The first page of the table of a position.
    fn table(&self, position: u32, generation: u64) -> Page {
        Page {
            member: self.member,
            id: PageId {
                address: self.area.start.0 + u64::from(position) * self.blocks,
                generation,
            },
            index: 0,
            sums: self.sums,
        }
    }

    /// The pages of the table of a position.
    pub fn pages_of(&self, position: u32) -> impl Iterator<Item = Page> + use<> {
        let table = self.table(position, self.generations[position as usize]);
        (0..pages_of(self.sums)).map(move |index| table.at(index))
    }

    /// The words of a page that is in memory; none in it where the buffers hold no bytes.
    pub fn known(&mut self, page: &Page) -> Option<&[u32]> {
        self.pages.known(page)
    }

    /// Takes in a page that was read; the words in it when it is what it must be.
    pub fn take_page(&mut self, read: &PageRead, ctx: &Context<'_>) -> Option<&[u32]> {
        let is_right = self.pages.take(&read.page, read.buffer, None, ctx);
        self.known(&read.page).filter(|_| is_right)
    }

    /// The generation of a table that is about to be written.
    pub fn next_generation(&mut self) -> u64 {
        self.newest += 1;
        self.newest
    }

    /// Puts a table together in `pages`; gives where it is written.
    pub fn seal(
        &mut self,
        (position, generation): (u32, u64),
        words: &[u32],
        pages: BufferSlice,
        ctx: &mut Context<'_>,
    ) -> Extent {
        let table = self.table(position, generation);
        for index in 0..self.blocks {
            let buffer = pages.part(index, 1);
            self.pages.seal(&table.at(index), words, buffer, ctx);
        }
        Extent::new(table.id.address, self.blocks)
    }

    /// The S-block at a position has another table from now on, which is kept in memory.
    pub fn written(&mut self, position: u32, generation: u64, words: &[u32]) {
        self.set_generation(position, generation);
        for page in self.pages_of(position) {
            self.pages.keep(&page, words);
        }
    }

    /// The generation of the table of each position, by its number.
    pub fn generations(&self) -> &[u64] {
        &self.generations
    }

    /// Takes back which table a position has.
    pub fn set_generation(&mut self, position: u32, generation: u64) {
        self.generations[position as usize] = generation;
        self.newest = self.newest.max(generation);
    }
}
