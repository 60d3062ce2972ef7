//! The pages of tables of checksums that are in memory.

use super::areas::SUMS_PER_PAGE;
use super::table::Table;
use crate::map::BandId;
use alloc::vec::Vec;

/// Pages that are kept in memory.
const PAGES_MAX: usize = 64;

/// A page in memory.
#[derive(Debug)]
struct Page {
    band: BandId,
    table: Table,
    index: u64,
    /// Empty when the buffers of the engine hold no bytes, so that nothing can be compared.
    sums: Vec<u32>,
    used: u64,
}

/// What the cache knows of a checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Known {
    /// It is this.
    Sum(u32),
    /// It cannot be known.
    Nothing,
    /// There is none: nothing can be right.
    Wrong,
}

/// The pages that were used last.
#[derive(Debug, Default)]
pub(super) struct PageCache {
    pages: Vec<Page>,
    clock: u64,
}

impl PageCache {
    /// True when the page is in memory; it counts as used now.
    pub fn touch(&mut self, band: BandId, table: Table, index: u64) -> bool {
        self.clock += 1;
        let clock = self.clock;
        let page = self.find(band, table, index);
        page.map(|page| page.used = clock).is_some()
    }

    fn find(&mut self, band: BandId, table: Table, index: u64) -> Option<&mut Page> {
        self.pages
            .iter_mut()
            .find(|page| (page.band, page.table, page.index) == (band, table, index))
    }

    /// The checksum of the block of a band at an offset, from the page that was touched.
    pub fn sum(&mut self, band: BandId, table: Table, offset: u64) -> Known {
        let index = offset / SUMS_PER_PAGE as u64;
        let page = self.find(band, table, index).expect("a page in memory");
        match page.sums.get(offset as usize % SUMS_PER_PAGE) {
            Some(sum) => Known::Sum(*sum),
            None => Known::Nothing,
        }
    }

    /// Takes in a page in the place of the one that was not used for longest, and lets `fill` put
    /// its checksums there.
    pub fn insert(
        &mut self,
        band: BandId,
        table: Table,
        index: u64,
        fill: impl FnOnce(&mut Vec<u32>) -> bool,
    ) -> bool {
        let mut sums = match self.pages.len() {
            PAGES_MAX => {
                let oldest = (0..PAGES_MAX).min_by_key(|at| self.pages[*at].used);
                self.pages
                    .swap_remove(oldest.expect("there are pages"))
                    .sums
            }
            _ => Vec::with_capacity(SUMS_PER_PAGE),
        };
        sums.clear();
        if !fill(&mut sums) {
            return false;
        }
        self.clock += 1;
        self.pages.push(Page {
            band,
            table,
            index,
            sums,
            used: self.clock,
        });
        true
    }
}
