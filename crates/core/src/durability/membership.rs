//! The membership page: which copies of a mirrored journal count, as one of them has it.
//!
//! Each copy keeps two pages, at both ends of its area. They are written one after the other with
//! a flush after each, so that one of them always says what was durable last. All that a page says
//! lies in the first sector of 512 bytes, which a power cut does not tear.

use super::block::{self, BlockError, BlockKind, Expected, Field, Header, field};
use crate::lifecycle::Uuid;
use alloc::vec::Vec;

/// Pages of each copy.
pub const PAGES: usize = 2;
/// Most copies of a journal.
pub const COPIES_MAX: usize = 32;
/// Bytes that a page has for each copy.
const ENTRY_BYTES: usize = 4;

/// The fields that a page has for each copy, in the order of the ports; offsets from the start of
/// the entry.
pub const FIELDS: [Field; 2] = [field("copy_number", 0, 2), field("copy_is_in", 2, 2)];

/// What a membership page says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Membership {
    /// Counts the changes since the members were formatted.
    pub changes: u64,
    /// The copies, in the order of the ports.
    pub copies: Vec<Listed>,
}

/// What is said of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listed {
    /// The number of its member in the set.
    pub number: u16,
    /// It has every record.
    pub is_in: bool,
}

/// A membership page as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// What it says.
    pub membership: Membership,
    /// The index of the copy that it was written for.
    pub index: u64,
    /// The member that it was written to.
    pub member: Uuid,
}

impl Membership {
    /// Writes the page of the copy with this index into the memory of a block.
    pub fn seal_into(&self, member: Uuid, index: usize, address: u64, out: &mut [u8]) {
        let mut payload = [0; COPIES_MAX * ENTRY_BYTES];
        for (entry, copy) in payload.chunks_exact_mut(ENTRY_BYTES).zip(&self.copies) {
            entry[..2].copy_from_slice(&copy.number.to_le_bytes());
            entry[2..].copy_from_slice(&u16::from(copy.is_in).to_le_bytes());
        }
        let header = Header {
            kind: BlockKind::Membership,
            member,
            address,
            generation: self.changes,
            sequence: index as u64,
            mark: self.copies.len() as u64,
        };
        block::seal_into(&header, &payload[..self.copies.len() * ENTRY_BYTES], out);
    }

    /// The page in a block that was read at `address`, of whatever member.
    ///
    /// # Errors
    /// When the block is not a whole membership page.
    pub fn decode(bytes: &[u8], address: u64) -> Result<Page, BlockError> {
        let expected = Expected::new(BlockKind::Membership, None, address);
        let (header, payload) = block::unseal(bytes, expected)?;
        let copies: Vec<Listed> = payload.chunks_exact(ENTRY_BYTES).map(listed).collect();
        let is_whole = payload.len() % ENTRY_BYTES == 0
            && header.mark == copies.len() as u64
            && header.sequence < header.mark
            && copies.len() <= COPIES_MAX;
        if !is_whole {
            return Err(BlockError::Length(payload.len() as u32));
        }
        Ok(Page {
            membership: Membership { changes: header.generation, copies },
            index: header.sequence,
            member: header.member,
        })
    }
}

fn listed(entry: &[u8]) -> Listed {
    let u16_at = |at: usize| u16::from_le_bytes([entry[at], entry[at + 1]]);
    Listed { number: u16_at(0), is_in: u16_at(2) != 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BLOCK_BYTES;
    use alloc::vec;

    #[test]
    fn a_page_comes_back() {
        let membership = Membership {
            changes: 9,
            copies: vec![Listed { number: 4, is_in: true }, Listed { number: 515, is_in: false }],
        };
        let member = Uuid([3; 16]);
        let mut block = vec![0; BLOCK_BYTES as usize];
        membership.seal_into(member, 1, 70, &mut block);
        let page = Page { membership, index: 1, member };
        assert_eq!(Membership::decode(&block, 70), Ok(page));
        let elsewhere = Membership::decode(&block, 71);
        assert_eq!(elsewhere, Err(BlockError::Address(70)));
    }

    #[test]
    fn all_that_a_page_says_lies_in_the_first_sector() {
        let listed = Listed { number: u16::MAX, is_in: true };
        let membership = Membership { changes: u64::MAX, copies: vec![listed; COPIES_MAX] };
        let mut block = vec![0; BLOCK_BYTES as usize];
        membership.seal_into(Uuid([3; 16]), COPIES_MAX - 1, 70, &mut block);
        assert!(block[512..].iter().all(|byte| *byte == 0));
    }
}
