//! From a checkpoint and the records after it to the dirty blocks that are there.
//!
//! A record whose data is not there is rolled back to what it replaced, which is still there, for
//! its slot was in the quarantine. But what a later record has done to it counts: a block that was
//! freed is durable below, whether its last place in flash can still be read or not.

use super::codec::{self, CacheCheckpoint, Mapping, NOBODY};
use crate::durability::{Recovery, Replayed};
use crate::lifecycle::OpenError;
use crate::units::Lba;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

/// What the cache can be expected to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Slots, and the block of the flash where they begin.
    pub slots: u64,
    pub slot_base: u64,
    /// Blocks that the cache serves.
    pub blocks: u64,
    /// The planted bug: records of trims are left out.
    pub forgets_trims: bool,
}

/// A place of a block, and whether its data is known to be there.
#[derive(Clone, Copy, Debug)]
struct Place {
    slot: u32,
    checksum: u32,
    intact: bool,
    /// Counts the places, for the order in which blocks came.
    order: u64,
}

struct Replay {
    bounds: Bounds,
    /// The places of each dirty block, the newest last.
    places: BTreeMap<u64, Vec<Place>>,
    /// By slot: the block whose newest place it is.
    owners: Vec<u64>,
    order: u64,
}

fn damaged(detail: impl Into<alloc::string::String>) -> OpenError {
    OpenError::damaged("cache", detail)
}

/// The dirty blocks that a recovery brings back, in the order in which they came.
///
/// # Errors
/// When a checkpoint or a record contradicts what was there before it.
pub(super) fn replay(
    checkpoint: &CacheCheckpoint,
    recovery: &Recovery,
    bounds: Bounds,
) -> Result<Vec<Mapping>, OpenError> {
    if checkpoint.slots != bounds.slots {
        return Err(OpenError::Settings {
            name: "cache slots",
            found: checkpoint.slots,
            expected: bounds.slots,
        });
    }
    let mut replay = Replay {
        bounds,
        places: BTreeMap::new(),
        owners: vec![NOBODY; bounds.slots as usize],
        order: 0,
    };
    for mapping in &checkpoint.mappings {
        replay.map(*mapping, true)?;
    }
    for record in &recovery.records {
        replay.apply(record)?;
    }
    Ok(replay.finish())
}

impl Replay {
    fn apply(&mut self, record: &Replayed) -> Result<(), OpenError> {
        match record.kind {
            codec::RECORD_MAP => {
                let first = codec::mapped_lba(&record.payload);
                let (Some(first), Some(data)) = (first, record.data) else {
                    return Err(damaged("a map record is not whole"));
                };
                let slot = data.start.0.checked_sub(self.bounds.slot_base);
                let slot =
                    slot.ok_or_else(|| damaged("a map record names a place before the slots"))?;
                for (at, checksum) in record.checksums.iter().enumerate() {
                    let mapping = Mapping {
                        lba: first.saturating_add(at as u64),
                        slot: u32::try_from(slot + at as u64).unwrap_or(u32::MAX),
                        checksum: *checksum,
                    };
                    self.map(mapping, record.intact.block(at))?;
                }
                Ok(())
            }
            codec::RECORD_DROP if self.bounds.forgets_trims => Ok(()),
            codec::RECORD_FREE | codec::RECORD_DROP => {
                let slots = codec::freed_slots(&record.payload);
                for slot in slots.ok_or_else(|| damaged("a free record is not whole"))? {
                    let owner = self.owners.get_mut(slot as usize);
                    let owner = owner.ok_or_else(|| {
                        damaged(format!("a free record names slot {slot}, past the last"))
                    })?;
                    self.places.remove(owner);
                    *owner = NOBODY;
                }
                Ok(())
            }
            kind => Err(damaged(format!("a record is of the unknown kind {kind}"))),
        }
    }

    fn map(&mut self, mapping: Mapping, intact: bool) -> Result<(), OpenError> {
        let Mapping { lba, slot, checksum } = mapping;
        if lba >= self.bounds.blocks || u64::from(slot) >= self.bounds.slots {
            return Err(damaged(format!(
                "{:?} is said to lie in slot {slot}: one of them is past the last",
                Lba(lba)
            )));
        }
        if self.owners[slot as usize] != NOBODY {
            return Err(damaged(format!("slot {slot} is given to two blocks")));
        }
        self.owners[slot as usize] = lba;
        self.order += 1;
        let place = Place { slot, checksum, intact, order: self.order };
        let places = self.places.entry(lba).or_default();
        if let Some(old) = places.last() {
            self.owners[old.slot as usize] = NOBODY;
        }
        places.push(place);
        Ok(())
    }

    /// The newest place of each block whose data is there.
    fn finish(self) -> Vec<Mapping> {
        let mut found: Vec<(u64, Mapping)> = Vec::new();
        for (lba, places) in &self.places {
            let Some(newest) = places.last() else {
                continue;
            };
            let there = places.iter().rev().find(|place| place.intact);
            let taken = |place: &Place| {
                place.slot != newest.slot && self.owners[place.slot as usize] != NOBODY
            };
            let place = match there {
                // The slot was used again, so the newest place was durable: its data was damaged
                // later, which a read will tell.
                Some(place) if taken(place) => newest,
                Some(place) => place,
                None => continue,
            };
            let mapping = Mapping { lba: *lba, slot: place.slot, checksum: place.checksum };
            found.push((place.order, mapping));
        }
        found.sort_unstable_by_key(|(order, _)| *order);
        found.into_iter().map(|(_, mapping)| mapping).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durability::Intact;
    use crate::extent::Extent;

    const BOUNDS: Bounds = Bounds { slots: 8, slot_base: 100, blocks: 50, forgets_trims: false };

    fn map(lba: u64, slot: u64, intact: bool) -> Replayed {
        Replayed {
            kind: codec::RECORD_MAP,
            payload: lba.to_le_bytes().to_vec(),
            data: Some(Extent::new(100 + slot, 1)),
            checksums: vec![9],
            intact: Intact::Blocks(vec![intact]),
        }
    }

    fn free(slot: u32) -> Replayed {
        Replayed {
            kind: codec::RECORD_FREE,
            payload: slot.to_le_bytes().to_vec(),
            data: None,
            checksums: vec![],
            intact: Intact::All,
        }
    }

    fn slots_of(records: Vec<Replayed>) -> Result<Vec<(u64, u32)>, OpenError> {
        let checkpoint = CacheCheckpoint { slots: 8, ..CacheCheckpoint::default() };
        let recovery = Recovery { checkpoint: vec![], records, clean: false, generation: 1 };
        let found = replay(&checkpoint, &recovery, BOUNDS)?;
        Ok(found.iter().map(|found| (found.lba, found.slot)).collect())
    }

    #[test]
    fn data_that_is_not_there_is_rolled_back() {
        let records = vec![map(7, 1, true), map(8, 2, true), map(7, 3, false)];
        assert_eq!(slots_of(records), Ok(vec![(7, 1), (8, 2)]));
        assert_eq!(slots_of(vec![map(7, 3, false)]), Ok(vec![]));
    }

    #[test]
    fn a_freed_block_does_not_come_back_in_an_older_place() {
        // The newest place was freed and used again, so that its data is not there any more.
        let records = vec![map(7, 1, true), map(7, 3, false), free(3), map(9, 3, true)];
        assert_eq!(slots_of(records), Ok(vec![(9, 3)]));
    }

    #[test]
    fn freeing_a_superseded_place_leaves_the_newer_one() {
        let records = vec![map(7, 1, true), map(7, 3, true), free(1)];
        assert_eq!(slots_of(records), Ok(vec![(7, 3)]));
    }

    #[test]
    fn contradictions_are_refused() {
        for records in [
            vec![map(7, 1, true), map(8, 1, true)],
            vec![map(50, 1, true)],
            vec![map(7, 8, true)],
            vec![free(8)],
        ] {
            assert!(matches!(slots_of(records), Err(OpenError::Damaged { .. })));
        }
    }
}
