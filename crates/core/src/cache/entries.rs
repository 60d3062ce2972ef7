//! One record per block that the cache holds or is about to let go, and the index that finds it.

use super::block_index::{BlockIndex, Chained};
use crate::extent::Extent;
use crate::map::Slab;
use crate::saved::SavedValue;
use crate::units::Lba;
use alloc::vec::Vec;

/// Stands for no entry, no slot and no list.
pub(super) const NONE: u32 = u32::MAX;

/// What is known of one version of a block.
///
/// An entry is *cached* until it is evicted or dropped, then *leaving* until nothing refers to it
/// any more and, when it was dirty, its data is durable below.
///
/// Few entries are waited for or named by many jobs at once, and there are as many entries as blocks in the cache.
/// So a few bits of an entry count, and what they have no room for is in a [`Record`] beside the entries.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct Entry {
    /// The flags, how many jobs name the entry, how many writes are under way, and the address above them.
    word: u64,
    /// Where it lies in flash, or [`NONE`]; the number of its record, when it has one.
    place: u32,
    /// The next entry of the bucket; of a free entry, the next free one.
    next: u32,
}

/// What an entry has no room for: who waits for it, or counts that its own bits cannot hold.
#[derive(Clone, Copy, Debug, SavedValue)]
struct Record {
    /// Where the block lies in flash, or [`NONE`].
    slot: u32,
    /// First of the waits for the entry.
    waits: u32,
    /// Jobs that name the entry.
    pins: u32,
    /// Flash writes to the slot that have not completed, those not yet issued included.
    writes: u32,
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

/// One job that names an entry, and as many as the bits of an entry count.
const PIN: u64 = 1 << 8;
const PINS: u64 = 3 * PIN;
/// The entry has a record, which has both counts.
const RECORDED: u64 = 1 << 10;
/// A write to the slot of an entry, the only one that the bits of an entry count.
const WRITE: u64 = 1 << 11;
/// Bits below the address.
const ADDRESS_SHIFT: u32 = 12;
/// The first address that an entry cannot hold (16 EiB). A cache over a larger device is refused.
pub(super) const ADDRESSES: u64 = 1 << (u64::BITS - ADDRESS_SHIFT);

impl Entry {
    /// Where the block belongs.
    #[inline]
    pub fn lba(&self) -> Lba {
        Lba(self.word >> ADDRESS_SHIFT)
    }

    /// True when the entry has the property.
    #[inline]
    pub fn is(&self, flag: Flag) -> bool {
        self.word & flag as u64 != 0
    }

    /// Gives the entry the property.
    #[inline]
    pub fn set(&mut self, flag: Flag) {
        self.word |= flag as u64;
    }

    /// Takes the property away.
    #[inline]
    pub fn clear(&mut self, flag: Flag) {
        self.word &= !(flag as u64);
    }

    /// True of a cached entry that holds data, for which nobody waits, to which nobody writes, and which few name.
    #[inline]
    pub fn is_at_rest(&self) -> bool {
        const AT_REST: u64 = Flag::Cached as u64 | Flag::HoldsData as u64;
        self.word & (AT_REST | Flag::AwaitsSlot as u64 | RECORDED | WRITE) == AT_REST
    }

    #[inline]
    fn has_record(&self) -> bool {
        self.word & RECORDED != 0
    }
}

impl Chained for Vec<Entry> {
    #[inline]
    fn lba(&self, id: u32) -> Lba {
        self[id as usize].lba()
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
    records: Slab<Record>,
    index: BlockIndex,
    /// First free entry.
    free: u32,
}

impl Entries {
    /// No entries, and room for so many. With more it grows, each time to twice as many, and whoever waits
    /// then waits for that.
    pub fn with_room(entries: usize) -> Entries {
        Entries {
            entries: Vec::with_capacity(entries),
            records: Slab::default(),
            index: BlockIndex::with_room(entries),
            free: NONE,
        }
    }

    /// No entries and no room, which grows with them. More than so many are not foreseen.
    pub fn growing_to(entries: usize) -> Entries {
        Entries {
            entries: Vec::new(),
            records: Slab::default(),
            index: BlockIndex::growing_to(entries),
            free: NONE,
        }
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

    /// Where an entry lies in flash, or [`NONE`].
    #[inline]
    pub fn slot(&self, id: u32) -> u32 {
        self.slot_of(self.get(id))
    }

    /// As [`slot`](Self::slot), of an entry that was looked at.
    #[inline]
    pub fn slot_of(&self, entry: &Entry) -> u32 {
        match entry.has_record() {
            false => entry.place,
            true => self.records[entry.place].slot,
        }
    }

    /// Puts an entry elsewhere, or nowhere, and returns where it was.
    #[inline]
    pub fn replace_slot(&mut self, id: u32, slot: u32) -> u32 {
        let entry = &mut self.entries[id as usize];
        let place = match entry.has_record() {
            false => &mut entry.place,
            true => &mut self.records[entry.place].slot,
        };
        core::mem::replace(place, slot)
    }

    /// How many jobs name an entry.
    #[inline]
    pub fn pins(&self, id: u32) -> u32 {
        self.pins_of(self.get(id))
    }

    /// As [`pins`](Self::pins), of an entry that was looked at.
    #[inline]
    pub fn pins_of(&self, entry: &Entry) -> u32 {
        match entry.has_record() {
            false => ((entry.word & PINS) / PIN) as u32,
            true => self.records[entry.place].pins,
        }
    }

    /// A job names an entry from now on.
    #[inline]
    pub fn pin(&mut self, id: u32) {
        let entry = &mut self.entries[id as usize];
        if entry.word & (RECORDED | PINS) < PINS {
            entry.word = entry.word.wrapping_add(PIN);
        } else {
            self.record(id).pins += 1;
        }
    }

    /// A job that writes to the slot of an entry names it from now on. True when others write to it already.
    #[inline]
    pub fn pin_to_write(&mut self, id: u32) -> bool {
        let entry = &mut self.entries[id as usize];
        if entry.word & (WRITE | RECORDED | PINS) < PINS {
            entry.word = entry.word.wrapping_add(PIN + WRITE);
            return false;
        }
        let record = self.record(id);
        record.pins += 1;
        record.writes += 1;
        record.writes > 1
    }

    /// A job no longer names an entry. True when it may have to leave because of that.
    #[inline]
    pub fn unpin(&mut self, id: u32) -> bool {
        let entry = &mut self.entries[id as usize];
        if entry.has_record() {
            return self.unpin_recorded(id);
        }
        assert!(entry.word & PINS != 0, "nothing names the entry");
        entry.word = entry.word.wrapping_sub(PIN);
        entry.is(Flag::Leaving)
    }

    #[inline(never)]
    fn unpin_recorded(&mut self, id: u32) -> bool {
        self.record(id).pins -= 1;
        self.settle_record(id);
        self.get(id).is(Flag::Leaving)
    }

    /// A write to the slot of an entry that has ended well, and the job no longer names the entry: both are noted where
    /// nobody waits for the entry, few name it and it stays. Returns false otherwise.
    #[inline]
    pub fn end_plain_write(&mut self, id: u32) -> bool {
        let entry = &mut self.entries[id as usize];
        let is_plain = entry.word & (RECORDED | Flag::Leaving as u64) == 0;
        if is_plain {
            assert!(entry.word & WRITE != 0 && entry.word & PINS != 0, "no write is under way");
            entry.word = entry.word.wrapping_sub(PIN + WRITE) | Flag::HoldsData as u64;
        }
        is_plain
    }

    /// An entry is newer than the copy below from now on. True when it was not before.
    #[inline]
    pub fn soil(&mut self, id: u32) -> bool {
        let entry = &mut self.entries[id as usize];
        let was_clean = !entry.is(Flag::Dirty);
        entry.set(Flag::Dirty);
        was_clean
    }

    /// Flash writes to the slot of an entry that have not completed, those not yet issued included.
    #[inline]
    pub fn writes(&self, id: u32) -> u32 {
        self.writes_of(self.get(id))
    }

    /// As [`writes`](Self::writes), of an entry that was looked at.
    #[inline]
    pub fn writes_of(&self, entry: &Entry) -> u32 {
        match entry.has_record() {
            false => ((entry.word & WRITE) / WRITE) as u32,
            true => self.records[entry.place].writes,
        }
    }

    /// One write less to the slot of an entry.
    #[inline]
    pub fn end_write(&mut self, id: u32) {
        let entry = &mut self.entries[id as usize];
        if entry.has_record() {
            self.record(id).writes -= 1;
            self.settle_record(id);
        } else {
            assert!(entry.word & WRITE != 0, "no write is under way");
            entry.word &= !WRITE;
        }
    }

    /// First of the waits for an entry, or [`NONE`].
    #[inline]
    pub fn waits(&self, id: u32) -> u32 {
        let entry = self.get(id);
        match entry.has_record() {
            false => NONE,
            true => self.records[entry.place].waits,
        }
    }

    /// Sets which of the waits for an entry is the first.
    pub fn set_waits(&mut self, id: u32, first: u32) {
        self.record(id).waits = first;
        self.settle_record(id);
    }

    /// The record of an entry, which it is given where it has none.
    fn record(&mut self, id: u32) -> &mut Record {
        let entry = &mut self.entries[id as usize];
        if !entry.has_record() {
            let pins = ((entry.word & PINS) / PIN) as u32;
            let writes = ((entry.word & WRITE) / WRITE) as u32;
            let record = Record { slot: entry.place, waits: NONE, pins, writes };
            entry.place = self.records.add(record);
            entry.word = entry.word & !(PINS | WRITE) | RECORDED;
        }
        &mut self.records[entry.place]
    }

    /// Ends the record of an entry that has room for all that is in it.
    fn settle_record(&mut self, id: u32) {
        let entry = &mut self.entries[id as usize];
        let Record { slot, waits, pins, writes } = self.records[entry.place];
        let (pins, writes) = (u64::from(pins), u64::from(writes));
        if waits == NONE && pins * PIN <= PINS && writes <= 1 {
            self.records.remove(entry.place);
            entry.place = slot;
            let counts = pins * PIN + writes * WRITE;
            entry.word = entry.word & !RECORDED | counts;
        }
    }

    /// The newest entry of a block, cached or leaving.
    #[inline]
    pub fn find(&self, lba: Lba) -> Option<u32> {
        self.index.find(lba, &self.entries)
    }

    /// A new cached entry as the newest of its block. An older one must have been taken out of
    /// the index.
    pub fn insert(&mut self, lba: Lba) -> u32 {
        assert!(lba.0 < ADDRESSES, "a block behind the end of any device below a cache");
        let word = lba.0 << ADDRESS_SHIFT | Flag::Cached as u64;
        let entry = Entry { word, place: NONE, next: NONE };
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
            entry.is(Flag::Leaving) && entry.word & (RECORDED | PINS | WRITE) == 0,
            "an entry was freed while something refers to it"
        );
        entry.word = 0;
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
            in_use && extent.contains(entry.lba()) && self.find(entry.lba()) == Some(*id)
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
    use crate::saved::{SavedReader, SavedWriter};
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    #[test]
    fn an_entry_takes_16_bytes() {
        assert_eq!(size_of::<Entry>(), 16);
    }

    #[test]
    fn the_last_address_keeps_clear_of_the_counts() {
        let mut entries = Entries::growing_to(0);
        let last = Lba(ADDRESSES - 1);
        let id = entries.insert(last);
        for count in 1..6 {
            assert_eq!(entries.pin_to_write(id), count > 1);
            assert_eq!((entries.pins(id), entries.writes(id)), (count, count));
            assert_eq!(entries.get(id).lba(), last);
        }
        assert_eq!(entries.find(last), Some(id));
    }

    #[test]
    #[should_panic(expected = "behind the end of any device")]
    fn an_address_that_has_no_room_is_refused() {
        Entries::growing_to(0).insert(Lba(ADDRESSES));
    }

    #[test]
    fn an_entry_is_at_rest_that_holds_data_and_is_neither_written_nor_waited_for() {
        let mut entries = Entries::growing_to(0);
        let id = entries.insert(Lba(5));
        let is_at_rest = |entries: &Entries| entries.get(id).is_at_rest();
        assert!(!is_at_rest(&entries));
        assert!(!entries.pin_to_write(id));
        assert!(entries.end_plain_write(id));
        assert!(is_at_rest(&entries));
        entries.pin(id);
        assert!(is_at_rest(&entries), "others may read it");
        assert!(!entries.pin_to_write(id) && !is_at_rest(&entries));
        entries.end_write(id);
        entries.set_waits(id, 7);
        assert!(!is_at_rest(&entries));
        entries.set_waits(id, NONE);
        entries.get_mut(id).set(Flag::AwaitsSlot);
        assert!(!is_at_rest(&entries));
        entries.get_mut(id).clear(Flag::AwaitsSlot);
        assert!(!entries.unpin(id) && is_at_rest(&entries));
        entries.get_mut(id).clear(Flag::Cached);
        entries.get_mut(id).set(Flag::Leaving);
        assert!(!is_at_rest(&entries));
        assert!(entries.unpin(id), "it may leave");
    }

    /// What an entry was before its counts were packed.
    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Plain {
        lba: u64,
        slot: u32,
        waits: u32,
        pins: u32,
        writes: u32,
        dirty: bool,
    }

    fn plain(entries: &Entries, id: u32) -> Plain {
        Plain {
            lba: entries.get(id).lba().0,
            slot: entries.slot(id),
            waits: entries.waits(id),
            pins: entries.pins(id),
            writes: entries.writes(id),
            dirty: entries.get(id).is(Flag::Dirty),
        }
    }

    fn saved_and_taken_back(entries: &Entries) -> Entries {
        let mut to = SavedWriter::default();
        entries.put_into(&mut to);
        let bytes = to.into_bytes();
        Entries::take_from(&mut SavedReader::new(&bytes)).expect("a state")
    }

    proptest! {
        /// Entries with and without records hold what plain fields do, and so do those of a saved state.
        #[test]
        fn counts_and_waits_are_those_of_plain_fields(
            steps in prop::collection::vec((0u8..9, 0usize..4, 0u32..9), 1..400)
        ) {
            let mut entries = Entries::growing_to(0);
            let new = |lba| Plain { lba, slot: NONE, waits: NONE, pins: 0, writes: 0, dirty: false };
            let mut model: Vec<Plain> = (0..4).map(|lba| new(lba << 50)).collect();
            model.iter().for_each(|plain| { entries.insert(Lba(plain.lba)); });
            for (step, at, value) in steps {
                let (id, plain) = (at as u32, &mut model[at]);
                match step {
                    0 | 1 => { entries.pin(id); plain.pins += 1; }
                    2 if plain.pins > 0 => { entries.unpin(id); plain.pins -= 1; }
                    3 => {
                        prop_assert_eq!(entries.pin_to_write(id), plain.writes > 0);
                        plain.pins += 1;
                        plain.writes += 1;
                    }
                    4 if plain.writes > 0 => { entries.end_write(id); plain.writes -= 1; }
                    5 => prop_assert_eq!(
                        entries.replace_slot(id, value),
                        core::mem::replace(&mut plain.slot, value)
                    ),
                    6 => {
                        plain.waits = value.checked_sub(4).unwrap_or(NONE);
                        entries.set_waits(id, plain.waits);
                    }
                    7 => {
                        match plain.dirty {
                            true => entries.get_mut(id).clear(Flag::Dirty),
                            false => prop_assert!(entries.soil(id)),
                        }
                        plain.dirty = !plain.dirty;
                        prop_assert!(!plain.dirty || !entries.soil(id));
                    }
                    8 if plain.pins > 0 && plain.writes > 0 => {
                        let is_plain = plain.waits == NONE && plain.pins < 4 && plain.writes == 1;
                        prop_assert_eq!(entries.end_plain_write(id), is_plain);
                        plain.pins -= u32::from(is_plain);
                        plain.writes -= u32::from(is_plain);
                        prop_assert!(!is_plain || entries.get(id).is(Flag::HoldsData));
                    }
                    _ => {}
                }
            }
            let taken = saved_and_taken_back(&entries);
            for (id, expected) in (0..).zip(&model) {
                prop_assert_eq!(plain(&entries, id), *expected);
                prop_assert_eq!(plain(&taken, id), *expected);
                prop_assert!(entries.get(id).is(Flag::Cached));
                prop_assert_eq!(entries.find(Lba(expected.lba)), Some(id));
            }
            for (id, plain) in (0..).zip(&model) {
                (0..plain.pins).for_each(|_| assert!(!entries.unpin(id)));
                (0..plain.writes).for_each(|_| entries.end_write(id));
                entries.set_waits(id, NONE);
                prop_assert_eq!(entries.slot(id), plain.slot);
            }
            prop_assert!(entries.records.is_empty());
        }

        /// The index agrees with a sorted map under random insertions and removals.
        #[test]
        fn finds_what_was_inserted(
            steps in prop::collection::vec((any::<bool>(), 0u64..300), 1..600)
        ) {
            let mut entries = Entries::growing_to(0);
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
