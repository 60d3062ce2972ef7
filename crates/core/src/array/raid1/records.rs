//! The bytes of what a durable array of copies keeps: its records and its checkpoint.
//!
//! ```text
//! checkpoint: | members 1 | member 13 each | head 24 | marked region 8 each | unreadable row 8 each | missed regions, a bit each |
//! ```

use crate::array::COLUMNS_MAX;
use crate::array::member_record::{MEMBER_BYTES, RECORD_MEMBER};
use crate::array::regions::MARKED_MAX;
use crate::durability::block::{Field, field};
use crate::durability::{RECORD_BYTES_MAX, Replayed};
use crate::lifecycle::OpenError;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// Regions may differ between the members from now on. The payload is their numbers.
pub const RECORD_MARKED: u8 = 2;
/// Regions are the same on all members again.
pub const RECORD_CLEARED: u8 = 3;
/// Rows of which no member has the block any more.
pub const RECORD_UNREADABLE: u8 = 4;
/// Such rows were written.
pub const RECORD_READABLE: u8 = 5;

/// Every kind of record and its name.
pub const RECORD_KINDS: [(u8, &str); 5] = [
    (RECORD_MEMBER, "member"),
    (RECORD_MARKED, "marked"),
    (RECORD_CLEARED, "cleared"),
    (RECORD_UNREADABLE, "unreadable"),
    (RECORD_READABLE, "readable"),
];

/// The head of a checkpoint, behind the members.
pub const CHECKPOINT_FIELDS: [Field; 3] = [
    field("checkpoint_marked", 0, 8),
    field("checkpoint_unreadable", 8, 8),
    field("checkpoint_regions", 16, 8),
];
const HEAD_BYTES: usize = 24;

/// Rows that are listed as unreadable at most.
pub const UNREADABLE_MAX: usize = 1024;
/// Marked regions at most, those of one request that needs more than its share among them.
const MARKED_RECORDED_MAX: usize = 2 * MARKED_MAX;
/// Numbers in one record.
pub const NUMBERS_OF_RECORD: usize = RECORD_BYTES_MAX / 16;

/// Bytes of a checkpoint over so many regions at most.
pub fn checkpoint_bytes_max(regions: u64) -> u64 {
    let listed = (regions.min(MARKED_RECORDED_MAX as u64) as usize + UNREADABLE_MAX) * 8;
    (1 + COLUMNS_MAX.min(8) * MEMBER_BYTES + HEAD_BYTES + listed) as u64 + regions.div_ceil(8)
}

/// What is kept beside who the members are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Kept {
    /// Regions that may differ between the members.
    pub marked: BTreeSet<u64>,
    /// Rows of which no member has the block.
    pub unreadable: BTreeSet<u64>,
    /// Regions that a member which was out has missed.
    pub missed: BTreeSet<u64>,
}

impl Kept {
    /// Appends the bytes of a checkpoint over so many regions.
    pub fn put(
        marked: impl Iterator<Item = u64>,
        unreadable: impl Iterator<Item = u64>,
        missed: impl Iterator<Item = u64>,
        regions: u64,
        bytes: &mut Vec<u8>,
    ) {
        let head = bytes.len();
        bytes.resize(head + HEAD_BYTES, 0);
        let put_all = |numbers: &mut dyn Iterator<Item = u64>, bytes: &mut Vec<u8>| {
            let before = bytes.len();
            numbers.for_each(|number| bytes.extend(number.to_le_bytes()));
            ((bytes.len() - before) / 8) as u64
        };
        let (mut marked, mut unreadable) = (marked, unreadable);
        let marked = put_all(&mut marked, bytes);
        let unreadable = put_all(&mut unreadable, bytes);
        for (at, number) in [marked, unreadable, regions].into_iter().enumerate() {
            bytes[head + 8 * at..head + 8 * at + 8].copy_from_slice(&number.to_le_bytes());
        }
        let bits = bytes.len();
        bytes.resize(bits + regions.div_ceil(8) as usize, 0);
        for region in missed {
            bytes[bits + region as usize / 8] |= 1 << (region % 8);
        }
    }

    /// What the bytes of a checkpoint say, behind the members.
    ///
    /// # Errors
    /// When they are not those of so many regions.
    pub fn take(bytes: &[u8], regions: u64) -> Result<Kept, OpenError> {
        let damaged = || OpenError::damaged("checkpoint", "it is shorter or longer than it says");
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES).ok_or_else(damaged)?;
        let head = numbers(head);
        if head[2] != regions {
            let (found, expected) = (head[2], regions);
            return Err(OpenError::Settings { name: "regions", found, expected });
        }
        let of = |count: u64| usize::try_from(count).ok().and_then(|count| count.checked_mul(8));
        let marked_bytes = of(head[0]).ok_or_else(damaged)?;
        let (marked, rest) = rest.split_at_checked(marked_bytes).ok_or_else(damaged)?;
        let unreadable_bytes = of(head[1]).ok_or_else(damaged)?;
        let (unreadable, bits) = rest.split_at_checked(unreadable_bytes).ok_or_else(damaged)?;
        if bits.len() as u64 != regions.div_ceil(8) {
            return Err(damaged());
        }
        let is_missed = |region: &u64| bits[*region as usize / 8] >> (region % 8) & 1 == 1;
        let kept = Kept {
            marked: numbers(marked).into_iter().collect(),
            unreadable: numbers(unreadable).into_iter().collect(),
            missed: (0..regions).filter(is_missed).collect(),
        };
        match kept.marked.last().is_some_and(|last| *last >= regions) {
            true => Err(damaged()),
            false => Ok(kept),
        }
    }

    /// Takes a record into account. False of one of another kind.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn replay(
        &mut self,
        record: &Replayed,
        regions: u64,
        is_a_member_out: bool,
    ) -> Result<bool, OpenError> {
        let numbers = numbers(&record.payload);
        let is_region = matches!(record.kind, RECORD_MARKED | RECORD_CLEARED);
        if is_region && numbers.iter().any(|region| *region >= regions) {
            return Err(OpenError::damaged("record", "it speaks of a region that is not there"));
        }
        match record.kind {
            RECORD_MARKED => {
                self.marked.extend(&numbers);
                if is_a_member_out {
                    self.missed.extend(&numbers);
                }
            }
            RECORD_CLEARED => numbers.iter().for_each(|region| {
                self.marked.remove(region);
            }),
            RECORD_UNREADABLE => self.unreadable.extend(&numbers),
            RECORD_READABLE => numbers.iter().for_each(|row| {
                self.unreadable.remove(row);
            }),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The payload of a record of numbers.
pub fn payload(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.chunks_exact(8);
    words.map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_comes_back_and_a_cut_one_does_not() {
        let kept = Kept { marked: [2, 8].into(), unreadable: [77].into(), missed: [0, 8].into() };
        let mut bytes = Vec::new();
        let Kept { marked, unreadable, missed } = kept.clone();
        Kept::put(marked.into_iter(), unreadable.into_iter(), missed.into_iter(), 9, &mut bytes);
        assert_eq!(Kept::take(&bytes, 9), Ok(kept));
        assert!(Kept::take(&bytes, 10).is_err());
        for end in 0..bytes.len() {
            assert!(Kept::take(&bytes[..end], 9).is_err(), "{end}");
        }
    }
}
