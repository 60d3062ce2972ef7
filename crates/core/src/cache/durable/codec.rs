//! The bytes of a durable cache: its records, its checkpoint and its write-intent page.
//!
//! ```text
//! checkpoint: | head 32 | mapping 16 each | clean slot 8 each | state of a clean shutdown |
//! its parts:  | head 8 | mapping 16 each |, one behind another
//! ```

use crate::durability::JournalSettings;
use crate::durability::block::{Field, HEADER_BYTES, PAYLOAD_BYTES, field};
use crate::saved::SavedValue;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// A run of dirty blocks has come into a run of slots. The payload is the first block of the run,
/// the data of the record is the run of slots with its checksums.
pub const RECORD_MAP: u8 = 1;
/// The dirty blocks in some slots are durable below. The payload is the slots; a slot whose block
/// has a newer place by then says nothing.
pub const RECORD_FREE: u8 = 2;
/// The dirty blocks in some slots were replaced below by a zeroing or by a write around the cache.
/// As [`RECORD_FREE`].
pub const RECORD_DROP: u8 = 3;

/// Every kind of record and its name.
pub const RECORD_KINDS: [(u8, &str); 3] =
    [(RECORD_MAP, "map"), (RECORD_FREE, "free"), (RECORD_DROP, "drop")];

/// The payload of a map record.
pub const MAP_FIELDS: [Field; 1] = [field("map_lba", 0, 8)];
/// One slot in the payload of a free or drop record, as often as there are slots.
pub const FREE_FIELDS: [Field; 1] = [field("free_slot", 0, 4)];

/// The head of a checkpoint, offsets from its first byte.
pub const CHECKPOINT_FIELDS: [Field; 4] = [
    field("checkpoint_slots", 0, 8),
    field("checkpoint_mappings", 8, 8),
    field("checkpoint_clean_slots", 16, 8),
    field("checkpoint_state_bytes", 24, 8),
];
/// One dirty block in a checkpoint.
pub const MAPPING_FIELDS: [Field; 3] =
    [field("mapping_lba", 0, 8), field("mapping_slot", 8, 4), field("mapping_checksum", 12, 4)];
/// One slot with a clean block in the checkpoint of a clean shutdown.
pub const CLEAN_FIELDS: [Field; 2] = [field("clean_slot", 0, 4), field("clean_checksum", 4, 4)];

/// The head of a part of a checkpoint, offset from its first byte.
pub const PART_FIELDS: [Field; 1] = [field("part_mappings", 0, 8)];
/// Stands for no block: in the mapping of a part, the slot is mapped to none any more.
pub const NOBODY: u64 = u64::MAX;

/// Words before the blocks in the state of a clean shutdown, and some to spare.
const STATE_BYTES_MAX: u64 = 512;
/// Bytes that a clean shutdown may need for a slot beyond the mapping: its address, its slot, and
/// what the policy knows of it.
const STATE_BYTES_PER_SLOT: u64 = 32;

/// The fixed fields of a write-intent page, offsets from the start of the block. The bits of the
/// regions follow, the lowest first.
pub const INTENT_FIELDS: [Field; 4] = [
    field("intent_region_blocks", HEADER_BYTES, 8),
    field("intent_regions", HEADER_BYTES + 8, 8),
    field("intent_generation", HEADER_BYTES + 16, 8),
    field("intent_pending_generation", HEADER_BYTES + 24, 8),
];
/// Bytes of a write-intent page before the bits.
pub(super) const INTENT_HEAD_BYTES: usize = 32;
/// Regions that one page has bits for.
pub const INTENT_REGIONS_MAX: u64 = ((PAYLOAD_BYTES - INTENT_HEAD_BYTES) * 8) as u64;

/// Bytes of the head of a checkpoint.
pub(super) const CHECKPOINT_HEAD_BYTES: u64 = 32;
/// Bytes of the head of a part of a checkpoint.
pub(super) const PART_HEAD_BYTES: u64 = 8;
/// Bytes of a dirty block in a checkpoint.
pub(super) const MAPPING_BYTES: u64 = 16;
/// Slots in one free record.
pub(super) const FREE_SLOTS_MAX: usize = 480;
/// Blocks in one map record: at most half a journal block, so that little of a block is wasted.
pub(super) const MAP_BLOCKS_MAX: usize = 480;

/// A dirty block, where it lies and what its checksum is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(in crate::cache) struct Mapping {
    pub lba: u64,
    pub slot: u32,
    pub checksum: u32,
}

impl Mapping {
    /// Puts its bytes behind others.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.lba.to_le_bytes());
        out.extend_from_slice(&self.slot.to_le_bytes());
        out.extend_from_slice(&self.checksum.to_le_bytes());
    }

    fn take(bytes: &[u8]) -> Mapping {
        Mapping { lba: u64_at(bytes, 0), slot: u32_at(bytes, 8), checksum: u32_at(bytes, 12) }
    }
}

/// The head of a part that says what so many slots are like now.
pub(super) fn part_head(mappings: u64) -> Vec<u8> {
    mappings.to_le_bytes().to_vec()
}

/// What a checkpoint says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct CacheCheckpoint {
    /// Slots of the cache.
    pub slots: u64,
    /// The dirty blocks, by slot.
    pub mappings: Vec<Mapping>,
    /// The slots of clean blocks and their checksums; only at a clean shutdown.
    pub clean: Vec<(u32, u32)>,
    /// The cached blocks and what the policy knows of them; only at a clean shutdown.
    pub state: Vec<u8>,
}

impl CacheCheckpoint {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.head_of(self.mappings.len() as u64);
        out.reserve_exact(self.bytes() as usize - out.len());
        self.mappings.iter().for_each(|mapping| mapping.put(&mut out));
        for (slot, checksum) in &self.clean {
            out.extend_from_slice(&slot.to_le_bytes());
            out.extend_from_slice(&checksum.to_le_bytes());
        }
        out.extend_from_slice(&self.state);
        out
    }

    /// The bytes before its mappings, of which there are so many.
    pub fn head_of(&self, mappings: u64) -> Vec<u8> {
        let words = [self.slots, mappings, self.clean.len() as u64, self.state.len() as u64];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Bytes of it.
    pub fn bytes(&self) -> u64 {
        let mappings = self.mappings.len() as u64 * MAPPING_BYTES;
        CHECKPOINT_HEAD_BYTES + mappings + 8 * self.clean.len() as u64 + self.state.len() as u64
    }

    /// Takes a checkpoint with its parts apart; `None` when its lengths do not fit its bytes.
    pub fn decode(bytes: &[u8]) -> Option<CacheCheckpoint> {
        let (head, rest) = bytes.split_at_checked(CHECKPOINT_HEAD_BYTES as usize)?;
        let count = |at: usize| usize::try_from(u64_at(head, at)).ok();
        let (mappings, rest) =
            rest.split_at_checked(count(8)?.checked_mul(MAPPING_BYTES as usize)?)?;
        let (clean, rest) = rest.split_at_checked(count(16)?.checked_mul(8)?)?;
        let (state, parts) = rest.split_at_checked(count(24)?)?;
        let mappings = mappings.chunks_exact(MAPPING_BYTES as usize).map(Mapping::take);
        Some(CacheCheckpoint {
            slots: u64_at(head, 0),
            mappings: with_parts(mappings.collect(), parts)?,
            clean: clean
                .chunks_exact(8)
                .map(|entry| (u32_at(entry, 0), u32_at(entry, 4)))
                .collect(),
            state: state.to_vec(),
        })
    }
}

/// The mappings, by slot, when the slots that the parts speak of are as the last of these says.
fn with_parts(mut mappings: Vec<Mapping>, mut parts: &[u8]) -> Option<Vec<Mapping>> {
    let mut newest = BTreeMap::new();
    while !parts.is_empty() {
        let (head, rest) = parts.split_at_checked(PART_HEAD_BYTES as usize)?;
        let count = usize::try_from(u64_at(head, 0)).ok()?;
        let (entries, rest) = rest.split_at_checked(count.checked_mul(MAPPING_BYTES as usize)?)?;
        let told = entries.chunks_exact(MAPPING_BYTES as usize).map(Mapping::take);
        newest.extend(told.map(|mapping| (mapping.slot, mapping)));
        parts = rest;
    }
    if !newest.is_empty() {
        mappings.retain(|mapping| !newest.contains_key(&mapping.slot));
        mappings.extend(newest.into_values().filter(|mapping| mapping.lba != NOBODY));
        mappings.sort_unstable_by_key(|mapping| mapping.slot);
    }
    Some(mappings)
}

/// The slots that a free or drop record names; `None` when the payload is of another length.
pub(super) fn freed_slots(payload: &[u8]) -> Option<impl Iterator<Item = u32> + '_> {
    let whole = payload.len().is_multiple_of(4);
    whole.then(|| payload.chunks_exact(4).map(|slot| u32_at(slot, 0)))
}

/// The first block that a map record names; `None` when the payload is of another length.
pub(super) fn mapped_lba(payload: &[u8]) -> Option<u64> {
    (payload.len() == 8).then(|| u64_at(payload, 0))
}

/// Most journal blocks that the records of `blocks` blocks can open, each in a record of its own.
pub(super) fn journal_blocks_for(blocks: u64) -> u64 {
    const RECORD_BYTES: u64 = 28;
    const FILLED_BYTES: u64 = PAYLOAD_BYTES as u64 / 2;
    1 + blocks * RECORD_BYTES / FILLED_BYTES
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

/// Blocks of a place for any checkpoint of a cache with `slots` slots.
pub(in crate::cache) fn checkpoint_blocks(slots: u64) -> u64 {
    let per_slot = MAPPING_BYTES + STATE_BYTES_PER_SLOT;
    let bytes = CHECKPOINT_HEAD_BYTES + STATE_BYTES_MAX + slots * per_slot;
    JournalSettings::checkpoint_blocks_for(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn sample() -> CacheCheckpoint {
        CacheCheckpoint {
            slots: 9,
            mappings: vec![Mapping { lba: 70, slot: 3, checksum: 5 }],
            clean: vec![(1, 2), (4, 6)],
            state: vec![1, 2, 3],
        }
    }

    #[test]
    fn a_checkpoint_comes_back_and_is_as_long_as_it_says() {
        let bytes = sample().encode();
        assert_eq!(bytes.len() as u64, sample().bytes());
        assert_eq!(CacheCheckpoint::decode(&bytes), Some(sample()));
        for length in 0..bytes.len() {
            assert_eq!(CacheCheckpoint::decode(&bytes[..length]), None);
        }
    }

    #[test]
    fn the_last_part_that_speaks_of_a_slot_counts() {
        let at = |slot: u32, lba: u64| Mapping { lba, slot, checksum: slot };
        let mut bytes = sample().encode();
        for part in [[at(3, NOBODY), at(1, 8)], [at(1, 9), at(4, 70)]] {
            bytes.extend(part_head(part.len() as u64));
            part.iter().for_each(|mapping| mapping.put(&mut bytes));
        }
        let found = CacheCheckpoint::decode(&bytes).map(|checkpoint| checkpoint.mappings);
        assert_eq!(found, Some(vec![at(1, 9), at(4, 70)]));
        for cut in 1..2 * 40 {
            let bytes = &bytes[..bytes.len() - cut];
            assert_eq!(CacheCheckpoint::decode(bytes).is_some(), cut == 40, "{cut}");
        }
    }

    #[test]
    fn the_fields_leave_no_gap() {
        let tables: [(&[Field], usize, usize); 7] = [
            (&MAP_FIELDS, 0, 8),
            (&FREE_FIELDS, 0, 4),
            (&CHECKPOINT_FIELDS, 0, CHECKPOINT_HEAD_BYTES as usize),
            (&MAPPING_FIELDS, 0, MAPPING_BYTES as usize),
            (&PART_FIELDS, 0, PART_HEAD_BYTES as usize),
            (&CLEAN_FIELDS, 0, 8),
            (&INTENT_FIELDS, HEADER_BYTES, INTENT_HEAD_BYTES),
        ];
        for (fields, start, bytes) in tables {
            let mut next = start;
            for field in fields {
                assert_eq!(field.offset, next, "{}", field.name);
                next += field.bytes;
            }
            assert_eq!(next, start + bytes);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_apart_without_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200)
        ) {
            let _ = CacheCheckpoint::decode(&bytes);
        }
    }
}
