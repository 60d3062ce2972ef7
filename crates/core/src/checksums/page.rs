//! A page of a table of checksums: a sealed block.

use crate::durability::block::{
    BlockError, BlockKind, Expected, Header, PAYLOAD_BYTES, seal_into, unseal,
};
use crate::lifecycle::Uuid;
use crate::saved::SavedValue;
use alloc::vec::Vec;

/// Checksums in a page.
pub(crate) const SUMS_PER_PAGE: usize = PAYLOAD_BYTES / 4;

/// Pages of a table of `sums` checksums.
pub(crate) fn pages_of(sums: u64) -> u64 {
    sums.div_ceil(SUMS_PER_PAGE as u64)
}

/// Which page it is, of all that a layer has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(crate) struct PageId {
    /// Where it lies on its port.
    pub address: u64,
    /// The generation of its table. A page of another generation at the same address is another page.
    pub generation: u64,
}

/// A page of a table: what its header says.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(crate) struct Page {
    /// The member that it lies on.
    pub member: Uuid,
    pub id: PageId,
    /// Its number in the table.
    pub index: u64,
    /// Checksums of the whole table.
    pub sums: u64,
}

/// What a block that was read as a page is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PageState {
    /// The page.
    Right,
    /// All zeroes: nothing was ever written there.
    Blank,
    /// Something else.
    Wrong,
}

impl Page {
    /// Another page of the table, of which this is the first.
    pub fn at(&self, index: u64) -> Page {
        let id = PageId { address: self.id.address + index, ..self.id };
        Page { id, index, ..*self }
    }

    /// The number of its first checksum in the table.
    pub fn first(&self) -> usize {
        self.index as usize * SUMS_PER_PAGE
    }

    /// Checksums in this page.
    pub fn len(&self) -> usize {
        (self.sums - self.first() as u64).min(SUMS_PER_PAGE as u64) as usize
    }

    /// Puts the page together in the memory of a block. `table` has the checksums of the whole table.
    pub fn seal(&self, table: &[u32], block: &mut [u8]) {
        assert_eq!(table.len() as u64, self.sums, "another table");
        let mut payload = [0; PAYLOAD_BYTES];
        for (bytes, sum) in payload.chunks_exact_mut(4).zip(&table[self.first()..]) {
            bytes.copy_from_slice(&sum.to_le_bytes());
        }
        let header = Header {
            kind: BlockKind::ChecksumTable,
            member: self.member,
            address: self.id.address,
            generation: self.id.generation,
            sequence: self.index,
            mark: pages_of(self.sums),
        };
        seal_into(&header, &payload[..4 * self.len()], block);
    }

    /// Appends the checksums of the page to `sums` when the block is that page. A planted bug leaves
    /// the address out.
    pub fn unseal(&self, block: &[u8], ignore_address: bool, sums: &mut Vec<u32>) -> PageState {
        let kind = BlockKind::ChecksumTable;
        let expected =
            Expected { ignore_address, ..Expected::new(kind, Some(self.member), self.id.address) };
        let (header, payload) = match unseal(block, expected) {
            Ok(found) => found,
            Err(BlockError::Zero) => return PageState::Blank,
            Err(_) => return PageState::Wrong,
        };
        let is_it = header.generation == self.id.generation && header.sequence == self.index;
        if !(is_it || ignore_address) || payload.len() != 4 * self.len() {
            return PageState::Wrong;
        }
        let words = payload.chunks_exact(4);
        sums.extend(words.map(|word| u32::from_le_bytes(word.try_into().expect("4 bytes"))));
        PageState::Right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BLOCK_BYTES;
    use alloc::vec;

    #[test]
    fn a_page_comes_back_and_no_other_is_taken_for_it() {
        let table: Vec<u32> = (0..1500).map(|at| at * 7 + 1).collect();
        let page = Page {
            member: Uuid([3; 16]),
            id: PageId { address: 77, generation: 5 },
            index: 1,
            sums: table.len() as u64,
        };
        let mut block = vec![0; BLOCK_BYTES as usize];
        let mut sums = Vec::new();
        assert_eq!(page.unseal(&block, false, &mut sums), PageState::Blank);
        page.seal(&table, &mut block);
        assert_eq!(page.unseal(&block, false, &mut sums), PageState::Right);
        assert_eq!(sums, table[SUMS_PER_PAGE..]);
        let id = |address, generation| PageId { address, generation };
        let others = [
            Page { id: id(78, 5), ..page },
            Page { id: id(77, 6), ..page },
            Page { index: 0, ..page },
            Page { sums: 1501, ..page },
            Page { member: Uuid([4; 16]), ..page },
        ];
        for other in others {
            assert_eq!(other.unseal(&block, false, &mut sums), PageState::Wrong);
        }
        block[100] ^= 1;
        assert_eq!(page.unseal(&block, false, &mut sums), PageState::Wrong);
        assert_eq!(sums.len(), table.len() - SUMS_PER_PAGE);
    }
}
