//! Tables of the checksums of bands: sealed pages on the disk, and a bounded cache of them.

use super::areas::DurableAreas;
use crate::durability::block::{BlockKind, Expected, Header, PAYLOAD_BYTES, seal_into, unseal};
use crate::lifecycle::Uuid;
use crate::map::BandId;
use alloc::vec::Vec;

/// Checksums in a page of a table.
pub(super) const SUMS_PER_PAGE: usize = PAYLOAD_BYTES / 4;
/// Pages that are kept in memory.
const PAGES_MAX: usize = 64;

/// The table of a band: which of its two places holds it, and the generation that its pages must
/// have. The word of a band without a table is zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::translation) struct Table(u64);

impl Table {
    /// No table.
    pub const NONE: Table = Table(0);

    /// The table that replaces this one: in the other place.
    pub fn successor(self, generation: u64) -> Table {
        let place = if self == Table::NONE {
            0
        } else {
            1 - self.place()
        };
        Table(generation << 1 | place)
    }

    /// As it is written down.
    pub fn word(self) -> u64 {
        self.0
    }

    /// Back from a word.
    pub fn from_word(word: u64) -> Table {
        Table(word)
    }

    /// Counts the tables that were ever written.
    pub fn generation(self) -> u64 {
        self.0 >> 1
    }

    /// The place: 0 or 1.
    pub fn place(self) -> u64 {
        self.0 & 1
    }
}

/// Pages of a table of `sums` checksums.
pub(super) fn pages_of(sums: u64) -> u64 {
    sums.div_ceil(SUMS_PER_PAGE as u64)
}

/// Whose table it is and which of it is read or written.
#[derive(Clone, Copy, Debug)]
pub(super) struct TablePlace<'a> {
    pub areas: &'a DurableAreas,
    pub member: Uuid,
    pub band: BandId,
    pub table: Table,
    /// Blocks of the band, and so checksums in the table.
    pub blocks: u64,
    /// A planted bug leaves the address out.
    pub ignore_address: bool,
}

impl TablePlace<'_> {
    /// Puts page number `page` of `pages` together in the memory of a block.
    pub fn seal_page(&self, page: u64, sums: &[u32], block: &mut [u8]) {
        let from = page as usize * SUMS_PER_PAGE;
        let to = (from + SUMS_PER_PAGE).min(sums.len());
        let mut payload = Vec::with_capacity(PAYLOAD_BYTES);
        for sum in &sums[from..to] {
            payload.extend_from_slice(&sum.to_le_bytes());
        }
        let header = Header {
            kind: BlockKind::ChecksumTable,
            member: self.member,
            address: self.areas.table_start(self.band, self.table.place()) + page,
            generation: self.table.generation(),
            sequence: page,
            mark: pages_of(sums.len() as u64),
        };
        seal_into(&header, &payload, block);
    }

    /// Appends the checksums in page number `page`; false when it is not that page.
    #[must_use]
    pub fn unseal_page(&self, page: u64, block: &[u8], sums: &mut Vec<u32>) -> bool {
        let address = self.areas.table_start(self.band, self.table.place()) + page;
        let expected = Expected {
            ignore_address: self.ignore_address,
            ..Expected::new(BlockKind::ChecksumTable, Some(self.member), address)
        };
        let Ok((header, payload)) = unseal(block, expected) else {
            return false;
        };
        let is_right = header.generation == self.table.generation() && header.sequence == page;
        if !is_right && !self.ignore_address {
            return false;
        }
        let before = page * SUMS_PER_PAGE as u64;
        let count = (self.blocks - before).min(SUMS_PER_PAGE as u64);
        if payload.len() as u64 != 4 * count {
            return false;
        }
        let words = payload.chunks_exact(4);
        sums.extend(words.map(|word| u32::from_le_bytes(word.try_into().expect("4 bytes"))));
        true
    }
}

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
