//! The checksums of S-blocks: a table on the disk for each position.
//!
//! A table has a word for each block, which says what its checksum must be. The table of a position is
//! written together with the S-block, and like it only where nobody needs
//! what was there. So there is one place for each table, and a record names its generation.

use super::layout::Layout;
use super::work::ReadPart;
use crate::buffer::BufferSlice;
use crate::extent::Extent;
use crate::layer::Context;
use crate::lifecycle::Uuid;
use crate::planted::PlantedBug;
use crate::translation::checksums::{
    ChecksumSettings, Page, PageCache, PageId, PageState, SUMS_PER_PAGE, Waiting, is_right,
    pages_of,
};
use crate::units::BLOCK_BYTES;
use alloc::vec;
use alloc::vec::Vec;

/// A page of a table that is being read.
#[derive(Clone, Copy, Debug)]
pub struct PageRead {
    pub page: Page,
    pub buffer: BufferSlice,
}

impl PageRead {
    /// Where the page lies.
    pub fn extent(&self) -> Extent {
        Extent::new(self.page.id.address, 1)
    }
}

/// What became of blocks that were read.
#[derive(Clone, Copy, Debug)]
pub enum Verdict {
    /// They are what they must be, or nobody can tell.
    Right,
    Wrong,
    /// A page of checksums must be read first: this one, where nobody waits for it yet.
    Waits(Option<Page>),
}

/// The tables of all positions, and what waits for their pages.
#[derive(Debug)]
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
    pages: PageCache,
    waiting: Waiting<ReadPart>,
    /// Scratch space: checksums, and a page.
    scratch: Vec<u32>,
    block: Vec<u8>,
}

impl Tables {
    /// None written yet.
    pub fn new(layout: &Layout, settings: Option<ChecksumSettings>) -> Tables {
        let pages = layout.tables.blocks.0;
        let pages_max = settings.map_or(0, |it| it.pages_max(pages, layout.segment));
        let (positions, block) = match layout.has_sums() {
            true => (layout.positions() as usize, BLOCK_BYTES as usize),
            false => (0, 0),
        };
        Tables {
            area: layout.tables,
            blocks: layout.table_blocks,
            sums: layout.segment,
            member: Uuid::default(),
            generations: vec![0; positions],
            newest: 0,
            pages: PageCache::new(pages_max),
            waiting: Waiting::new(),
            scratch: Vec::new(),
            block: vec![0; block],
        }
    }

    /// True when nothing can be found wrong: there are no checksums, or a planted bug skips them.
    fn trusts_all(&self, ctx: &Context<'_>) -> bool {
        self.blocks == 0 || ctx.is_planted(PlantedBug::ReadCrcSkipped)
    }

    /// Compares blocks that were read with checksums that are in memory.
    pub fn verify_ring(
        &mut self,
        known: &[u32],
        buffer: BufferSlice,
        ctx: &Context<'_>,
    ) -> Verdict {
        if self.trusts_all(ctx) {
            return Verdict::Right;
        }
        self.scratch.clear();
        ctx.checksum(buffer, &mut self.scratch);
        match known.starts_with(&self.scratch) {
            true => Verdict::Right,
            false => Verdict::Wrong,
        }
    }

    /// Compares as many blocks of the S-block at a position as there are pages in memory; the rest
    /// waits for the next page.
    pub fn verify(&mut self, position: u32, mut read: ReadPart, ctx: &Context<'_>) -> Verdict {
        if self.trusts_all(ctx) {
            return Verdict::Right;
        }
        let mut sums = core::mem::take(&mut self.scratch);
        sums.clear();
        ctx.checksum(read.buffer, &mut sums);
        let mut verdict = Verdict::Right;
        let mut at = 0;
        while at < sums.len() && matches!(verdict, Verdict::Right) {
            let offset = read.offset + at as u64;
            let page = self.page(position, offset / SUMS_PER_PAGE as u64);
            let inside = offset as usize % SUMS_PER_PAGE;
            let blocks = (sums.len() - at).min(SUMS_PER_PAGE - inside);
            match self.pages.get(page.id) {
                Some(known) => {
                    // Without bytes in the buffers, what a page says is not known.
                    let mut pairs = known.iter().skip(inside).zip(&sums[at..at + blocks]);
                    if !pairs.all(|(word, sum)| is_right(*word, *sum)) {
                        verdict = Verdict::Wrong;
                    }
                    at += blocks;
                }
                None => {
                    let left = (sums.len() - at) as u64;
                    read.buffer = read.buffer.part(at as u64, left);
                    read.offset = offset;
                    let is_first = self.waiting.wait(page.id.address, read);
                    verdict = Verdict::Waits(is_first.then_some(page));
                }
            }
        }
        self.scratch = sums;
        verdict
    }

    /// The next read that waited for a page.
    pub fn next_waiting(&mut self, read: &PageRead) -> Option<ReadPart> {
        self.waiting.next(read.page.id.address)
    }

    fn page(&self, position: u32, index: u64) -> Page {
        let generation = self.generations[position as usize];
        self.page_of(position, generation, index)
    }

    fn page_of(&self, position: u32, generation: u64, index: u64) -> Page {
        let start = self.area.start.0 + u64::from(position) * self.blocks;
        Page {
            member: self.member,
            id: PageId {
                address: start + index,
                generation,
            },
            index,
            sums: self.sums,
        }
    }

    /// The pages of the table of a position.
    pub fn pages_of(&self, position: u32) -> impl Iterator<Item = Page> + use<> {
        let first = self.page(position, 0);
        let at = move |index| Page {
            id: PageId {
                address: first.id.address + index,
                ..first.id
            },
            index,
            ..first
        };
        (0..pages_of(self.sums)).map(at)
    }

    /// The read of a page into a buffer of one block.
    pub fn read_page(page: Page, buffer: BufferSlice) -> PageRead {
        PageRead { page, buffer }
    }

    /// The words of a page that is in memory; none in it where the buffers hold no bytes.
    pub fn known(&mut self, page: Page) -> Option<&[u32]> {
        self.pages.get(page.id).map(|sums| sums.as_slice())
    }

    /// Takes in a page that was read; the words in it when it is what it must be.
    pub fn take_page(&mut self, read: &PageRead, ctx: &Context<'_>) -> Option<&[u32]> {
        let ignore_address = ctx.is_planted(PlantedBug::CrcWithoutAddress);
        let PageRead { page, buffer } = *read;
        self.pages.insert(page.id, |sums| {
            let bytes = ctx.metadata(buffer);
            bytes.is_none_or(|it| page.unseal(it, ignore_address, sums) == PageState::Right)
        });
        self.known(page)
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
        let mut block = core::mem::take(&mut self.block);
        for index in 0..self.blocks {
            let page = self.page_of(position, generation, index);
            page.seal(words, &mut block);
            ctx.fill_metadata(pages.part(index, 1), &block);
        }
        self.block = block;
        let start = self.page_of(position, generation, 0).id.address;
        Extent::new(start, self.blocks)
    }

    /// The S-block at a position has another table from now on, which is kept in memory.
    pub fn written(&mut self, position: u32, generation: u64, words: &[u32]) {
        self.set_generation(position, generation);
        for page in self.pages_of(position) {
            let own = &words[page.first()..page.first() + page.len()];
            self.pages.insert(page.id, |kept| {
                kept.extend_from_slice(own);
                true
            });
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
