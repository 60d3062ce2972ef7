//! What a layer knows of its tables: pages in memory, and what waits for the others.

use super::page::{Page, PageState, SUMS_PER_PAGE};
use super::page_cache::PageCache;
use super::waiting::Waiting;
use crate::buffer::BufferSlice;
use crate::extent::Extent;
use crate::layer::Context;
use crate::planted::PlantedBug;
use crate::saved::SavedValue;
use crate::units::BLOCK_BYTES;
use alloc::vec;
use alloc::vec::Vec;

/// What became of blocks that were read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict {
    /// They are what they must be, or nobody can tell.
    Right,
    Wrong,
    /// A page of checksums must be read first: this one, where nobody waits for it yet.
    Waits(Option<Page>),
}

impl Verdict {
    fn of(is_right: bool) -> Verdict {
        match is_right {
            true => Verdict::Right,
            false => Verdict::Wrong,
        }
    }
}

/// A page that is being read.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(crate) struct PageRead {
    pub page: Page,
    pub buffer: BufferSlice,
}

impl PageRead {
    /// Where the page lies.
    pub fn extent(&self) -> Extent {
        Extent::new(self.page.id.address, 1)
    }
}

/// The pages of a layer's tables. A `W` waits for a page that is not in memory.
#[derive(Debug, SavedValue)]
pub(crate) struct Pages<W> {
    cache: PageCache,
    waiting: Waiting<W>,
    /// Scratch space: the checksums of blocks, and a page.
    sums: Vec<u32>,
    block: Vec<u8>,
}

impl<W: Copy> Pages<W> {
    /// None in memory yet, where so many may be.
    pub fn new(pages_max: usize) -> Pages<W> {
        Pages {
            cache: PageCache::new(pages_max),
            waiting: Waiting::new(),
            sums: Vec::new(),
            block: vec![0; BLOCK_BYTES as usize],
        }
    }

    /// The checksums of blocks, in memory that is used again.
    pub fn sums_of(&mut self, buffer: BufferSlice, ctx: &Context<'_>) -> &[u32] {
        self.sums.clear();
        ctx.checksum(buffer, &mut self.sums);
        &self.sums
    }

    /// Compares blocks that were read with the checksums of them, and of blocks behind them.
    pub fn verify_known(
        &mut self,
        known: &[u32],
        buffer: BufferSlice,
        ctx: &Context<'_>,
    ) -> Verdict {
        let is_skipped = ctx.is_planted(PlantedBug::ReadCrcSkipped);
        Verdict::of(is_skipped || known.starts_with(self.sums_of(buffer, ctx)))
    }

    /// Compares as many of the blocks that were read as there are pages in memory; the rest waits for
    /// the next page. `table` is the first page of the table that speaks of them, from `offset` on;
    /// `is_right` compares what that says with a checksum, and `rest` says who waits with blocks that
    /// are left.
    pub fn verify(
        &mut self,
        table: &Page,
        (offset, buffer): (u64, BufferSlice),
        is_right: impl Fn(u32, u32) -> bool,
        rest: impl FnOnce(u64, BufferSlice) -> W,
        ctx: &Context<'_>,
    ) -> Verdict {
        if ctx.is_planted(PlantedBug::ReadCrcSkipped) {
            return Verdict::Right;
        }
        self.sums.clear();
        ctx.checksum(buffer, &mut self.sums);
        let mut at = 0;
        while at < self.sums.len() {
            let from = offset + at as u64;
            let page = table.at(from / SUMS_PER_PAGE as u64);
            let inside = from as usize % SUMS_PER_PAGE;
            let left = self.sums.len() - at;
            let blocks = left.min(SUMS_PER_PAGE - inside);
            let Some(known) = self.cache.get(page.id) else {
                let waiter = rest(from, buffer.part(at as u64, left as u64));
                let is_first = self.waiting.wait(page.id.address, waiter);
                return Verdict::Waits(is_first.then_some(page));
            };
            // Without bytes in the buffers, what a page says is not known.
            let mut pairs = known.iter().skip(inside).zip(&self.sums[at..at + blocks]);
            if !pairs.all(|(known, sum)| is_right(*known, *sum)) {
                return Verdict::Wrong;
            }
            at += blocks;
        }
        Verdict::Right
    }

    /// What a page says that is in memory; nothing where the buffers hold no bytes.
    pub fn known(&mut self, page: &Page) -> Option<&[u32]> {
        self.cache.get(page.id).map(|sums| sums.as_slice())
    }

    /// `waiter` waits for a page. True when nobody did before: the page is to be read.
    pub fn wait(&mut self, page: &Page, waiter: W) -> bool {
        self.waiting.wait(page.id.address, waiter)
    }

    /// The next one that waited for a page that was read.
    pub fn next_waiting(&mut self, page: &Page) -> Option<W> {
        self.waiting.next(page.id.address)
    }

    /// Takes in a page that was read; false when it is not what it must be. `blank` is what a page says
    /// of each block where nothing was ever written, if there may be such a one.
    pub fn take(
        &mut self,
        page: &Page,
        buffer: BufferSlice,
        blank: Option<u32>,
        ctx: &Context<'_>,
    ) -> bool {
        let ignore_address = ctx.is_planted(PlantedBug::CrcWithoutAddress);
        self.cache.insert(page.id, |sums| {
            let Some(bytes) = ctx.metadata(buffer) else {
                return true;
            };
            match (page.unseal(bytes, ignore_address, sums), blank) {
                (PageState::Right, _) => true,
                (PageState::Blank, Some(word)) => {
                    sums.resize(page.len(), word);
                    true
                }
                (PageState::Blank | PageState::Wrong, _) => false,
            }
        })
    }

    /// Keeps in memory what a page says from now on; `table` has what the whole table does.
    pub fn keep(&mut self, page: &Page, table: &[u32]) {
        self.cache.insert(page.id, |kept| {
            kept.extend_from_slice(&table[page.first()..page.first() + page.len()]);
            true
        });
    }

    /// Nothing is known of the page at an address any more.
    pub fn forget(&mut self, address: u64) {
        self.cache.forget(address);
    }

    /// Puts a page together in a buffer of one block; `table` has what the whole table says.
    pub fn seal(&mut self, page: &Page, table: &[u32], buffer: BufferSlice, ctx: &mut Context<'_>) {
        page.seal(table, &mut self.block);
        ctx.fill_metadata(buffer, &self.block);
    }
}
