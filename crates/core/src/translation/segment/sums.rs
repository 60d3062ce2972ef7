//! What each block must be when it is read: the tables of checksums of a durable layout.
//!
//! A segment has a table of its own, of one page for each 1008 blocks of 4 KiB, so two rewrites never
//! share a page. A rewrite writes the pages that it changes to its slot, with the data, and home before
//! its note ends. A page that was never written is all zeroes; what that says was decided when the
//! layout was made.

use super::areas::SegmentAreas;
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::lifecycle::Uuid;
use crate::planted::PlantedBug;
use crate::translation::checksums::{
    BAD, ChecksumSettings, Numbered, Page, PageCache, PageId, PageState, SUMS_PER_PAGE, Waiting,
    is_right,
};
use crate::units::BLOCK_BYTES;
use alloc::vec;
use alloc::vec::Vec;

/// Blocks of 4 KiB that were read and are to be compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    /// The read that has them.
    pub job: u32,
    pub segment: u64,
    /// The first block of 4 KiB of the segment.
    pub offset: u64,
    pub buffer: BufferSlice,
}

/// A page of a segment's table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SegmentPage {
    pub segment: u64,
    pub index: u64,
}

/// A page that is being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageRead {
    pub page: SegmentPage,
    pub buffer: BufferSlice,
    /// It was read before, and that failed.
    pub is_again: bool,
}

/// Who waits for a page.
#[derive(Clone, Copy, Debug)]
pub(super) enum Waiter {
    /// Blocks that were read.
    Check(u32),
    /// A read whose blocks are still being read.
    Read(u32),
    /// A rewrite.
    Rewrite(u32),
}

/// What became of blocks that were read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Verdict {
    /// They are what they must be, or nobody knows what that is.
    Right,
    Wrong,
    /// A page must be read first: this one, where nobody waits for it yet.
    Waits(Option<SegmentPage>),
}

/// The tables of checksums.
#[derive(Debug)]
pub(super) struct Sums {
    /// The member that they lie on.
    pub member: Uuid,
    /// What a page says, on which nothing was ever written: the word of each block.
    pub blank: u32,
    pages: PageCache,
    waiting: Waiting<Waiter>,
    /// What is being read, to be compared then.
    pub checks: Numbered<Check>,
    pub page_reads: Numbered<PageRead>,
    /// Scratch space.
    sums: Vec<u32>,
    block: Vec<u8>,
}

impl Sums {
    pub fn new(settings: ChecksumSettings, areas: &SegmentAreas, blank: u32) -> Sums {
        Sums {
            member: Uuid::default(),
            blank,
            pages: PageCache::new(settings.pages_max(areas.tables.blocks.0, areas.segment_blocks)),
            waiting: Waiting::new(),
            checks: Numbered::default(),
            page_reads: Numbered::default(),
            sums: Vec::new(),
            block: vec![0; BLOCK_BYTES as usize],
        }
    }

    /// What is said of a page.
    fn page(&self, page: SegmentPage, areas: &SegmentAreas) -> Page {
        let SegmentPage { segment, index } = page;
        Page {
            member: self.member,
            id: PageId {
                address: areas.tables_of(segment, 1).start.0 + index,
                generation: 0,
            },
            index,
            sums: areas.segment_blocks,
        }
    }

    /// Compares as many blocks as there are pages in memory; the rest waits for the next page.
    pub fn verify(&mut self, check: Check, areas: &SegmentAreas, ctx: &Context<'_>) -> Verdict {
        if !has_bytes(ctx) || ctx.is_planted(PlantedBug::ReadCrcSkipped) {
            return Verdict::Right;
        }
        let mut sums = core::mem::take(&mut self.sums);
        sums.clear();
        ctx.checksum(check.buffer, &mut sums);
        let verdict = self.compare(check, &sums, areas);
        self.sums = sums;
        verdict
    }

    fn compare(&mut self, check: Check, sums: &[u32], areas: &SegmentAreas) -> Verdict {
        let mut at = 0;
        while at < sums.len() {
            let offset = check.offset as usize + at;
            let page = SegmentPage {
                segment: check.segment,
                index: (offset / SUMS_PER_PAGE) as u64,
            };
            let inside = offset % SUMS_PER_PAGE;
            let blocks = (sums.len() - at).min(SUMS_PER_PAGE - inside);
            let id = self.page(page, areas).id;
            let Some(words) = self.pages.get(id) else {
                let rest = Check {
                    offset: offset as u64,
                    buffer: check.buffer.part(at as u64, (sums.len() - at) as u64),
                    ..check
                };
                let number = self.checks.add(rest);
                let is_first = self.waiting.wait(id.address, Waiter::Check(number));
                return Verdict::Waits(is_first.then_some(page));
            };
            let known = words[inside..inside + blocks].iter();
            let mut pairs = known.zip(&sums[at..at + blocks]);
            if !pairs.all(|(word, sum)| is_right(*word, *sum)) {
                return Verdict::Wrong;
            }
            at += blocks;
        }
        Verdict::Right
    }

    /// Asks for a page that is not in memory: `waiter` gets it then. True when it has to wait; the page
    /// is to be read where it is told.
    pub fn ask(
        &mut self,
        page: SegmentPage,
        waiter: Waiter,
        areas: &SegmentAreas,
    ) -> (bool, Option<SegmentPage>) {
        let id = self.page(page, areas).id;
        if self.pages.get(id).is_some() {
            return (false, None);
        }
        let is_first = self.waiting.wait(id.address, waiter);
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
        let (blank, ignore_address) = (self.blank, ctx.is_planted(PlantedBug::CrcWithoutAddress));
        let taken = self.pages.insert(page.id, |words| {
            let Some(bytes) = ctx.metadata(read.buffer) else {
                return true;
            };
            match page.unseal(bytes, ignore_address, words) {
                PageState::Right => true,
                PageState::Blank => {
                    words.resize(page.len(), blank);
                    true
                }
                PageState::Wrong => false,
            }
        });
        match taken {
            true => Ok(()),
            false => Err(IoError::Medium),
        }
    }

    /// The next one that waited for a page that was read.
    pub fn next_waiting(&mut self, page: SegmentPage, areas: &SegmentAreas) -> Option<Waiter> {
        self.waiting.next(self.page(page, areas).id.address)
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
        let from = page.index as usize * SUMS_PER_PAGE;
        let words = &mut words[from..from + about.len()];
        match self.pages.get(about.id) {
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
        ctx: &Context<'_>,
    ) {
        for index in pages {
            let page = self.page(SegmentPage { segment, index }, areas);
            let from = index as usize * SUMS_PER_PAGE;
            self.pages.insert(page.id, |kept| {
                if has_bytes(ctx) {
                    kept.extend_from_slice(&words[from..from + page.len()]);
                }
                true
            });
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
            let mut block = core::mem::take(&mut self.block);
            page.seal(words, &mut block);
            ctx.fill_metadata(buffer.part(at, 1), &block);
            self.block = block;
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
        let mut words = core::mem::take(&mut self.sums);
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
        self.sums = words;
    }

    /// The checksums of blocks, in memory that is used again.
    pub fn of(&mut self, buffer: BufferSlice, ctx: &Context<'_>) -> &[u32] {
        self.sums.clear();
        ctx.checksum(buffer, &mut self.sums);
        &self.sums
    }
}

/// True when there is something that can be compared: buffers of a simulation hold no bytes.
pub(super) fn has_bytes(ctx: &Context<'_>) -> bool {
    ctx.metadata(BufferSlice::EMPTY).is_some()
}
