//! What each block must be when it is read: the tables of checksums of a durable layout.
//!
//! A segment has a table of its own, of one page for each 1008 blocks of 4 KiB, so two rewrites never
//! share a page. A rewrite writes the pages that it changes to its slot, with the data, and home before
//! its note ends. A page that was never written is all zeroes; what that says was decided when the
//! layout was made.

use super::areas::SegmentAreas;
use crate::buffer::BufferSlice;
use crate::checksums::{BAD, ChecksumSettings, Page, PageId, PageState, Pages, Verdict, is_right};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::lifecycle::Uuid;
use crate::map::Slab;
use crate::saved::SavedValue;
use alloc::vec::Vec;

/// Blocks of 4 KiB that were read and are to be compared.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct Check {
    /// The read that has them.
    pub job: u32,
    pub segment: u64,
    /// The first block of 4 KiB of the segment.
    pub offset: u64,
    pub buffer: BufferSlice,
}

/// A page of a segment's table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) struct SegmentPage {
    pub segment: u64,
    pub index: u64,
}

/// A page that is being read.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct PageRead {
    pub page: SegmentPage,
    pub buffer: BufferSlice,
    /// It was read before, and that failed.
    pub is_again: bool,
}

/// Who waits for a page.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) enum Waiter {
    /// Blocks that were read.
    Check(u32),
    /// A read whose blocks are still being read.
    Read(u32),
    /// A rewrite.
    Rewrite(u32),
}

/// The tables of checksums.
#[derive(Debug, SavedValue)]
pub(super) struct Sums {
    /// The member that they lie on.
    pub member: Uuid,
    /// What a page says, on which nothing was ever written: the word of each block.
    pub blank: u32,
    pages: Pages<Waiter>,
    /// What is being read, to be compared then.
    pub checks: Slab<Check>,
    pub page_reads: Slab<PageRead>,
}

impl Sums {
    pub fn new(settings: ChecksumSettings, areas: &SegmentAreas, blank: u32) -> Sums {
        Sums {
            member: Uuid::default(),
            blank,
            pages: Pages::new(settings.pages_max(areas.tables.blocks.0, areas.segment_blocks)),
            checks: Slab::default(),
            page_reads: Slab::default(),
        }
    }

    /// The first page of the table of a segment.
    fn table(&self, segment: u64, areas: &SegmentAreas) -> Page {
        Page {
            member: self.member,
            id: PageId { address: areas.tables_of(segment, 1).start.0, generation: 0 },
            index: 0,
            sums: areas.segment_blocks,
        }
    }

    /// What is said of a page.
    fn page(&self, page: SegmentPage, areas: &SegmentAreas) -> Page {
        self.table(page.segment, areas).at(page.index)
    }

    /// Compares blocks that were read, as far as there are pages in memory.
    pub fn verify(&mut self, check: Check, areas: &SegmentAreas, ctx: &Context<'_>) -> Verdict {
        let table = self.table(check.segment, areas);
        let checks = &mut self.checks;
        let rest = |offset, buffer| Waiter::Check(checks.add(Check { offset, buffer, ..check }));
        let blocks = (check.offset, check.buffer);
        self.pages.verify(&table, blocks, is_right, rest, ctx)
    }

    /// Asks for a page that is not in memory: `waiter` gets it then. True when it has to wait; the page
    /// is to be read where it is told.
    pub fn ask(
        &mut self,
        page: SegmentPage,
        waiter: Waiter,
        areas: &SegmentAreas,
    ) -> (bool, Option<SegmentPage>) {
        let about = self.page(page, areas);
        if self.pages.known(&about).is_some() {
            return (false, None);
        }
        let is_first = self.pages.wait(&about, waiter);
        (true, is_first.then_some(page))
    }

    /// Takes in a page that was read.
    ///
    /// # Errors
    /// When it is not what it must be.
    pub fn take_page(
        &mut self,
        read: &PageRead,
        areas: &SegmentAreas,
        ctx: &Context<'_>,
    ) -> Result<(), IoError> {
        let page = self.page(read.page, areas);
        match self.pages.take(&page, read.buffer, Some(self.blank), ctx) {
            true => Ok(()),
            false => Err(IoError::Medium),
        }
    }

    /// The next one that waited for a page that was read.
    pub fn next_waiting(&mut self, page: SegmentPage, areas: &SegmentAreas) -> Option<Waiter> {
        let page = self.page(page, areas);
        self.pages.next_waiting(&page)
    }

    /// Puts what a page in memory says to its place among the words of the whole segment. Of a page
    /// that could not be read, no block is right.
    pub fn copy_words(
        &mut self,
        page: SegmentPage,
        is_there: bool,
        areas: &SegmentAreas,
        words: &mut [u32],
    ) {
        let about = self.page(page, areas);
        let words = &mut words[about.first()..about.first() + about.len()];
        match self.pages.known(&about) {
            Some(known) if is_there => {
                // Without bytes in the buffers it says nothing.
                for (word, known) in words.iter_mut().zip(known) {
                    *word = *known;
                }
            }
            _ => words.fill(BAD),
        }
    }

    /// Keeps in memory what the pages of a segment say from now on.
    pub fn keep(
        &mut self,
        segment: u64,
        pages: core::ops::Range<u64>,
        words: &[u32],
        areas: &SegmentAreas,
    ) {
        for index in pages {
            let page = self.page(SegmentPage { segment, index }, areas);
            self.pages.keep(&page, words);
        }
    }

    /// Nothing is known of the tables in these blocks any more.
    pub fn forget(&mut self, tables: Extent) {
        for address in tables.start.0..tables.end().0 {
            self.pages.forget(address);
        }
    }

    /// Puts pages of a segment together, one behind the other.
    pub fn seal(
        &mut self,
        segment: u64,
        pages: core::ops::Range<u64>,
        words: &[u32],
        buffer: BufferSlice,
        areas: &SegmentAreas,
        ctx: &mut Context<'_>,
    ) {
        for (at, index) in (0..).zip(pages) {
            let page = self.page(SegmentPage { segment, index }, areas);
            self.pages.seal(&page, words, buffer.part(at, 1), ctx);
        }
    }

    /// Pages of a segment that were read from a slot. Where one is not what it must be, it is made anew,
    /// and says that no block is right.
    pub fn mend(
        &mut self,
        segment: u64,
        pages: core::ops::Range<u64>,
        buffer: BufferSlice,
        areas: &SegmentAreas,
        ctx: &mut Context<'_>,
    ) {
        let mut words = Vec::new();
        for (at, index) in (0..).zip(pages) {
            let page = self.page(SegmentPage { segment, index }, areas);
            words.clear();
            let bytes = ctx.metadata(buffer.part(at, 1));
            let state = bytes.map(|bytes| page.unseal(bytes, false, &mut words));
            if matches!(state, Some(PageState::Wrong | PageState::Blank)) {
                words.clear();
                words.resize(areas.segment_blocks as usize, BAD);
                let one = index..index + 1;
                self.seal(segment, one, &words, buffer.part(at, 1), areas, ctx);
            }
        }
    }

    /// The checksums of blocks, in memory that is used again.
    pub fn of(&mut self, buffer: BufferSlice, ctx: &Context<'_>) -> &[u32] {
        self.pages.sums_of(buffer, ctx)
    }
}
