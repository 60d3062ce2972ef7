//! One record per block that the cache holds or is about to let go, and the index that finds it.

use super::block_index::{BlockIndex, Chained};
use crate::extent::Extent;
use crate::saved::SavedValue;
use crate::units::Lba;
use alloc::vec::Vec;

/// Stands for no entry, no slot and no list.
pub(super) const NONE: u32 = u32::MAX;

/// What is known of one version of a block.
///
/// An entry is *cached* until it is evicted or dropped, then *leaving* until nothing refers to it
/// any more and, when it was dirty, its data is durable below.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct Entry {
    /// Where the block belongs.
    pub lba: Lba,
    /// Where it lies in flash, or [`NONE`].
    pub slot: u32,
    /// The next entry of the bucket; of a free entry, the next free one.
    next: u32,
    /// First of the waits for this entry.
    pub waits: u32,
    /// Jobs that name this entry.
    pub pins: u16,
    /// Flash writes to the slot that have not completed, those not yet issued included.
    pub writes: u8,
    flags: u8,
}

/// A property of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Flag {
    /// A look-up hits it, and the policy knows it.
    Cached = 1,
    /// Evicted or dropped, not yet gone.
    Leaving = 2,
    /// Newer than the copy below.
    Dirty = 4,
    /// An earlier version of the block is still leaving.
    HasOlder = 8,
    /// Its data must be durable below before it may go.
    Destaging = 16,
    /// A read below has yet to bring its data.
    AwaitsData = 32,
    /// It waits for a slot.
    AwaitsSlot = 64,
    /// The slot holds a version of the block: some write to it has completed.
    HoldsData = 128,
}

impl Entry {
    /// True when the entry has the property.
    #[inline]
    pub fn is(&self, flag: Flag) -> bool {
        self.flags & flag as u8 != 0
    }

    /// Gives the entry the property.
    #[inline]
    pub fn set(&mut self, flag: Flag) {
        self.flags |= flag as u8;
    }

    /// Takes the property away.
    #[inline]
    pub fn clear(&mut self, flag: Flag) {
        self.flags &= !(flag as u8);
    }
}

impl Chained for Vec<Entry> {
    #[inline]
    fn lba(&self, id: u32) -> Lba {
        self[id as usize].lba
    }

    #[inline]
    fn next(&self, id: u32) -> u32 {
        self[id as usize].next
    }

    #[inline]
    fn set_next(&mut self, id: u32, next: u32) {
        self[id as usize].next = next;
    }
}

/// All entries, and an index over the newest entry of each block.
#[derive(Debug, SavedValue)]
pub(super) struct Entries {
    entries: Vec<Entry>,
    index: BlockIndex,
    /// First free entry.
    free: u32,
}

impl Entries {
    /// No entries, and room for so many. With more it grows, each time to twice as many, and whoever waits
    /// then waits for that.
    pub fn new(room: usize) -> Entries {
        Entries { entries: Vec::with_capacity(room), index: BlockIndex::new(room), free: NONE }
    }

    /// How many entry numbers were ever in use at once.
    pub fn high_water(&self) -> u32 {
        self.entries.len() as u32
    }

    /// The entry with a number.
    #[inline]
    pub fn get(&self, id: u32) -> &Entry {
        &self.entries[id as usize]
    }

    /// The entry with a number, to be changed.
    #[inline]
    pub fn get_mut(&mut self, id: u32) -> &mut Entry {
        &mut self.entries[id as usize]
    }

    /// The newest entry of a block, cached or leaving.
    #[inline]
    pub fn find(&self, lba: Lba) -> Option<u32> {
        self.index.find(lba, &self.entries)
    }

    /// A new cached entry as the newest of its block. An older one must have been taken out of
    /// the index.
    pub fn insert(&mut self, lba: Lba) -> u32 {
        let entry = Entry {
            lba,
            slot: NONE,
            next: NONE,
            waits: NONE,
            pins: 0,
            writes: 0,
            flags: Flag::Cached as u8,
        };
        let id = if self.free == NONE {
            self.entries.push(entry);
            (self.entries.len() - 1) as u32
        } else {
            let id = self.free;
            self.free = self.entries[id as usize].next;
            self.entries[id as usize] = entry;
            id
        };
        let count = self.entries.len();
        self.index.make_room(count, &mut self.entries);
        self.index.link(id, &mut self.entries);
        id
    }

    /// Takes an entry out of the index, if it is the newest of its block; it stays an entry.
    pub fn unlink(&mut self, id: u32) {
        self.index.unlink(id, &mut self.entries);
    }

    /// Gives back the number of an entry that is not in the index.
    pub fn free(&mut self, id: u32) {
        let entry = &mut self.entries[id as usize];
        assert!(
            entry.is(Flag::Leaving) && entry.pins == 0 && entry.waits == NONE,
            "an entry was freed while something refers to it"
        );
        entry.flags = 0;
        entry.next = self.free;
        self.free = id;
    }

    /// The newest entries of all blocks of `extent`, appended to `out` in the order that is
    /// cheaper to produce: by address for a short extent, by number for one that is longer than
    /// the table.
    pub fn newest_within(&self, extent: Extent, out: &mut Vec<u32>) {
        // A step of the scan is sequential and cheap, a look-up is not.
        const SCAN_STEPS_PER_LOOKUP: u64 = 16;
        if extent.blocks.0 <= self.entries.len() as u64 / SCAN_STEPS_PER_LOOKUP {
            let blocks = extent.start.0..extent.end().0;
            out.extend(blocks.filter_map(|lba| self.find(Lba(lba))));
            return;
        }
        let ids = 0..self.entries.len() as u32;
        out.extend(ids.filter(|id| {
            let entry = &self.entries[*id as usize];
            let in_use = entry.is(Flag::Cached) || entry.is(Flag::Leaving);
            in_use && extent.contains(entry.lba) && self.find(entry.lba) == Some(*id)
        }));
    }

    /// Every cached entry, by number.
    pub fn cached(&self) -> impl Iterator<Item = (u32, &Entry)> {
        let numbered = self.entries.iter().enumerate();
        numbered.map(|(id, entry)| (id as u32, entry)).filter(|(_, entry)| entry.is(Flag::Cached))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    #[test]
    fn an_entry_takes_24_bytes() {
        assert_eq!(size_of::<Entry>(), 24);
    }

    proptest! {
        /// The index agrees with a sorted map under random insertions and removals.
        #[test]
        fn finds_what_was_inserted(
            steps in prop::collection::vec((any::<bool>(), 0u64..300), 1..600)
        ) {
            let mut entries = Entries::new(0);
            let mut model: BTreeMap<u64, u32> = BTreeMap::new();
            for (insert, lba) in steps {
                match (insert, model.get(&lba).copied()) {
                    (true, None) => {
                        model.insert(lba, entries.insert(Lba(lba)));
                    }
                    (false, Some(id)) => {
                        entries.get_mut(id).clear(Flag::Cached);
                        entries.get_mut(id).set(Flag::Leaving);
                        entries.unlink(id);
                        entries.free(id);
                        model.remove(&lba);
                    }
                    _ => {}
                }
            }
            for lba in 0..300 {
                prop_assert_eq!(entries.find(Lba(lba)), model.get(&lba).copied());
            }
            for extent in [Extent::new(0, 2), Extent::new(20, 1 << 40)] {
                let mut found = Vec::new();
                entries.newest_within(extent, &mut found);
                found.sort_unstable();
                let mut expected: Vec<u32> =
                    model.range(extent.start.0..extent.end().0).map(|(_, id)| *id).collect();
                expected.sort_unstable();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
