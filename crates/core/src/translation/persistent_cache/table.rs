//! Tables of the checksums of bands: sealed pages on the disk.

use super::areas::{DurableAreas, SUMS_PER_PAGE, pages_of};
use crate::durability::block::{BlockKind, Expected, Header, PAYLOAD_BYTES, seal_into, unseal};
use crate::lifecycle::Uuid;
use crate::map::BandId;
use alloc::vec::Vec;

/// The table of a band: which of its two places holds it, and the generation that its pages must
/// have. The word of a band without a table is zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Table(u64);

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
