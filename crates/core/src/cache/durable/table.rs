//! Which dirty blocks lie in which slots, and which slots may not be used again yet.

use super::changes::{Changes, GROUP_SLOTS, NextCheckpoint, SlotsNow};
use super::codec::{self, Mapping, NOBODY};
use crate::cache::block_index::{BlockIndex, Chained};
use crate::cache::entries::NONE;
use crate::durability::Lsn;
use crate::ledger::Quarantine;
use crate::saved::SavedValue;
use crate::units::Lba;
use alloc::vec;
use alloc::vec::Vec;

/// What slots are mapped to, as an index of the mapped ones goes through them.
#[derive(Debug, SavedValue)]
struct Owners {
    /// By slot: the block mapped to it, or [`NOBODY`].
    blocks: Vec<u64>,
    /// By slot: the next one of its bucket in the index.
    next: Vec<u32>,
}

impl Chained for Owners {
    #[inline]
    fn lba(&self, slot: u32) -> Lba {
        Lba(self.blocks[slot as usize])
    }

    #[inline]
    fn next(&self, slot: u32) -> u32 {
        self.next[slot as usize]
    }

    #[inline]
    fn set_next(&mut self, slot: u32, next: u32) {
        self.next[slot as usize] = next;
    }
}

/// The state that the records appended so far lead to: the *mapped* slots, each with the dirty
/// block whose newest durable or soon durable copy it holds.
///
/// The table of a cache that keeps no records has no slots: none is mapped, none has a checksum,
/// and each is free as soon as nobody uses it.
#[derive(Debug, SavedValue)]
pub(in crate::cache) struct SlotTable {
    owners: Owners,
    /// By slot: the checksum of what it holds, dirty or clean.
    checksums: Vec<u32>,
    /// By slot: the first place before which the record that last gave it a block or took one away is
    /// durable; 0 when there was none.
    settled_from: Vec<Lsn>,
    /// The slot of each mapped block.
    index: BlockIndex,
    /// Slots that are mapped.
    mapped: u64,
    /// Slots that are free once the record that freed them is durable.
    quarantine: Quarantine<u32>,
    /// By [`GROUP_SLOTS`] slots: how many are mapped.
    mapped_in: Vec<u16>,
    changes: Changes,
}

impl SlotTable {
    /// A table of `slots` slots, none mapped.
    pub fn new(slots: u32) -> SlotTable {
        SlotTable {
            owners: Owners {
                blocks: vec![NOBODY; slots as usize],
                next: vec![NONE; slots as usize],
            },
            checksums: vec![0; slots as usize],
            settled_from: vec![Lsn(0); slots as usize],
            index: BlockIndex::with_room(slots as usize),
            mapped: 0,
            quarantine: Quarantine::default(),
            mapped_in: vec![0; slots.div_ceil(GROUP_SLOTS) as usize],
            changes: Changes::new(slots),
        }
    }

    /// Slots in all.
    pub fn slots(&self) -> u64 {
        self.owners.blocks.len() as u64
    }

    /// True when the table knows what each slot must hold.
    pub fn keeps_checksums(&self) -> bool {
        !self.checksums.is_empty()
    }

    /// The block mapped to a slot.
    #[inline]
    pub fn owner(&self, slot: u32) -> Option<Lba> {
        let owner = *self.owners.blocks.get(slot as usize)?;
        (owner != NOBODY).then_some(Lba(owner))
    }

    /// True when the slot holds a dirty block.
    pub fn is_mapped(&self, slot: u32) -> bool {
        self.owner(slot).is_some()
    }

    /// True when a slot is mapped to the block.
    pub fn has_block(&self, lba: Lba) -> bool {
        self.slot_of(lba.0).is_some()
    }

    fn slot_of(&self, lba: u64) -> Option<u32> {
        self.index.find(Lba(lba), &self.owners)
    }

    /// The checksum of what a slot holds.
    pub fn checksum(&self, slot: u32) -> u32 {
        self.checksums[slot as usize]
    }

    /// Notes the checksum of what was written to a slot.
    pub fn set_checksum(&mut self, slot: u32, checksum: u32) {
        self.checksums[slot as usize] = checksum;
    }

    /// The first place before which the record that last spoke of a slot is durable.
    #[inline]
    fn settled_from(&self, slot: u32) -> Lsn {
        let known = self.settled_from.get(slot as usize);
        known.copied().unwrap_or(Lsn(0))
    }

    /// Maps a block to a slot, by a record at `place`. Returns the slot that it was mapped to until
    /// then.
    pub fn map(&mut self, mapping: Mapping, place: Lsn) -> Option<u32> {
        let Mapping { lba, slot, checksum } = mapping;
        assert!(!self.is_mapped(slot), "slot {slot} was given to a second block");
        let old = self.slot_of(lba);
        if let Some(old) = old {
            self.take_owner(old, place);
        }
        self.changed(slot, place);
        self.owners.blocks[slot as usize] = lba;
        self.checksums[slot as usize] = checksum;
        self.mapped += 1;
        self.mapped_in[(slot / GROUP_SLOTS) as usize] += 1;
        self.index.link(slot, &mut self.owners);
        old
    }

    /// Takes its block away from a mapped slot, by a record at `place`.
    pub fn unmap(&mut self, slot: u32, place: Lsn) -> Lba {
        let lba = self.owner(slot).expect("a mapped slot");
        self.take_owner(slot, place);
        lba
    }

    fn take_owner(&mut self, slot: u32, place: Lsn) {
        self.index.unlink(slot, &mut self.owners);
        self.changed(slot, place);
        self.owners.blocks[slot as usize] = NOBODY;
        self.mapped -= 1;
        self.mapped_in[(slot / GROUP_SLOTS) as usize] -= 1;
    }

    /// A record at `place` gives the slot to a block, or takes its block away.
    fn changed(&mut self, slot: u32, place: Lsn) {
        let at = slot as usize;
        self.changes.note(Mapping {
            lba: self.owners.blocks[at],
            slot,
            checksum: self.checksums[at],
        });
        self.settled_from[at] = Lsn(place.0 + 1);
    }

    /// True when what a slot holds survives a power cut, or what has superseded it does.
    pub fn is_durable(&self, slot: u32, durable_before: Lsn) -> bool {
        self.settled_from(slot) <= durable_before
    }

    /// What the slot's last record said is durable; or a planted bug has the slot used again too
    /// early.
    pub fn forget_place(&mut self, slot: u32) {
        self.settled_from[slot as usize] = Lsn(0);
    }

    /// Nobody uses a slot any more. True when it is free; else it will be, once every record
    /// before some place is durable.
    pub fn give_back(&mut self, slot: u32, durable_before: Lsn) -> bool {
        assert!(!self.is_mapped(slot), "the mapped slot {slot} was given up");
        let until = self.settled_from(slot);
        self.quarantine.hold(slot, until, durable_before).is_some()
    }

    /// The next slot of the quarantine that is free by now.
    pub fn next_free(&mut self, durable_before: Lsn) -> Option<u32> {
        self.quarantine.next_free(durable_before)
    }

    /// True when slots are in the quarantine.
    pub fn has_quarantined(&self) -> bool {
        !self.quarantine.is_empty()
    }

    /// True when so many slots have changed that a checkpoint is due.
    pub fn has_many_changes(&self) -> bool {
        self.changes.are_many()
    }

    /// A checkpoint of every [mapping](Self::mappings) begins.
    pub fn forget_changes(&mut self) {
        self.changes.forget();
    }

    /// Begins a checkpoint that comes in [pieces](Self::next_piece). `fits` tells whether there is room
    /// for a part behind the newest one.
    pub fn begin_checkpoint(&mut self, fits: impl Fn(u64) -> bool) -> NextCheckpoint {
        let mapped = self.mapped;
        let head = codec::CacheCheckpoint { slots: self.slots(), ..Default::default() };
        self.changes.begin((head.head_of(mapped), mapped), fits)
    }

    /// A planted bug: one slot that has changed is not told.
    pub fn leave_out_newest_change(&mut self) {
        self.changes.leave_out_newest();
    }

    /// The next piece of that checkpoint.
    pub fn next_piece(&mut self) -> &[u8] {
        let SlotTable { owners, checksums, mapped_in, changes, .. } = self;
        changes.next_piece(&SlotsNow { owners: &owners.blocks, checksums, mapped_in })
    }

    /// That checkpoint is durable.
    pub fn end_checkpoint(&mut self) {
        self.changes.end();
    }

    /// Every mapped block, by slot.
    pub fn mappings(&self) -> impl Iterator<Item = Mapping> + '_ {
        let slots = (0..).zip(self.owners.blocks.iter().zip(&self.checksums));
        slots.filter(|(_, (owner, _))| **owner != NOBODY).map(|(slot, (owner, checksum))| Mapping {
            lba: *owner,
            slot,
            checksum: *checksum,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn mapping(lba: u64, slot: u32) -> Mapping {
        Mapping { lba, slot, checksum: slot }
    }

    #[test]
    fn a_superseded_slot_is_free_only_when_the_record_is_durable() {
        let mut table = SlotTable::new(4);
        assert_eq!(table.map(mapping(7, 0), Lsn(1)), None);
        assert_eq!(table.map(mapping(7, 1), Lsn(3)), Some(0));
        assert!(!table.is_mapped(0));
        assert!(!table.give_back(0, Lsn(3)));
        assert_eq!(table.next_free(Lsn(3)), None);
        assert_eq!(table.next_free(Lsn(4)), Some(0));
        assert_eq!(table.unmap(1, Lsn(5)), Lba(7));
        assert!(table.give_back(1, Lsn(6)));
        assert_eq!(table.mappings().count(), 0);
    }

    /// Each checkpoint says what was so when it began, whatever changes before its last piece: maps and the parts
    /// behind them, of enough slots for several pieces and for groups of which none is mapped.
    #[test]
    fn checkpoints_say_what_was_so_when_they_began() {
        const SLOTS: u32 = 60_000;
        let mut rng = Rng::new(3, 1);
        let mut table = SlotTable::new(SLOTS);
        let (mut kept, mut parts, mut maps, mut pieces) = (Vec::new(), 0, 0, 0);
        let change = |table: &mut SlotTable, rng: &mut Rng| {
            // The last quarter stays empty.
            let slot = rng.below(u64::from(SLOTS) * 3 / 4) as u32;
            match table.is_mapped(slot) {
                true => drop(table.unmap(slot, Lsn(0))),
                false => drop(table.map(mapping(rng.below(1 << 16), slot), Lsn(0))),
            }
        };
        for round in 0..40 {
            let changes = if round % 8 == 0 { 30_000 } else { 500 };
            (0..changes).for_each(|_| change(&mut table, &mut rng));
            let expected: Vec<Mapping> = table.mappings().collect();
            let next = table.begin_checkpoint(|_| true);
            let before = if next.is_part { kept.len() } else { 0 };
            kept.truncate(before);
            parts += u32::from(next.is_part);
            maps += u32::from(!next.is_part);
            while ((kept.len() - before) as u64) < next.bytes {
                kept.extend_from_slice(table.next_piece());
                pieces += 1;
                (0..200).for_each(|_| change(&mut table, &mut rng));
            }
            table.end_checkpoint();
            assert_eq!((kept.len() - before) as u64, next.bytes);
            let found = codec::CacheCheckpoint::decode(&kept).map(|found| found.mappings);
            assert_eq!(found, Some(expected), "round {round}");
        }
        assert!(parts > 20 && maps > 3 && pieces > 2 * maps + parts, "{parts} {maps} {pieces}");
    }

    #[test]
    #[should_panic(expected = "was given up")]
    fn a_mapped_slot_is_never_given_up() {
        let mut table = SlotTable::new(1);
        table.map(mapping(7, 0), Lsn(0));
        table.give_back(0, Lsn(9));
    }
}
