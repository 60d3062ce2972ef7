//! What the journal of a write-back cache says, and whether it can be.

use super::findings::Findings;
use super::journal::{JournalRecord, JournalState};
use super::member::Member;
use super::words::Words;
use imbrex_core::cache::codec;
use std::collections::BTreeMap;

const STRUCTURE: &str = "map of the cache";

/// Where a block lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The slot of the flash.
    pub slot: u32,
    /// The checksum of its data.
    pub checksum: u32,
    /// The data never became durable.
    missing: bool,
}

/// The state of a cache.
#[derive(Clone, Debug, Default)]
pub struct CacheState {
    /// Slots of the flash.
    pub slots: u64,
    /// The block of the flash where they begin.
    pub slot_base: u64,
    /// The dirty blocks: what is newer here than below.
    pub dirty: BTreeMap<u64, Place>,
    /// Slots and checksums of clean blocks, after a clean shutdown.
    pub clean: Vec<(u32, u32)>,
    /// By slot: the dirty block in it.
    owners: BTreeMap<u32, u64>,
    /// Where blocks that records have moved were before, the newest last.
    older: BTreeMap<u64, Vec<Place>>,
}

/// The next mapping: slot, block and checksum.
fn mapping(words: &mut Words<'_>) -> Option<(u32, u64, u32)> {
    let lba = words.u64()?;
    Some((words.u32()?, lba, words.u32()?))
}

/// Takes the next part of a checkpoint, which says what some slots are like since then.
fn take_part(words: &mut Words<'_>, mapped: &mut BTreeMap<u32, (u64, u32)>) -> Result<(), String> {
    let short = || "a part of it is shorter than it says".to_owned();
    for _ in 0..words.u64().ok_or_else(short)? {
        match mapping(words).ok_or_else(short)? {
            (slot, codec::NOBODY, _) => mapped.remove(&slot),
            (slot, lba, checksum) => mapped.insert(slot, (lba, checksum)),
        };
    }
    Ok(())
}

impl CacheState {
    /// Works out the state; `None` when the checkpoint cannot be taken apart.
    pub fn read(
        journal: &JournalState,
        member: &Member,
        into: &mut Findings,
    ) -> Option<CacheState> {
        let mut state =
            CacheState { slot_base: journal.superblock.area_blocks, ..CacheState::default() };
        let (checkpoint, record) = (Self::take_checkpoint, Self::apply);
        if !journal.tell(&mut state, checkpoint, record, (member, into)) {
            return None;
        }
        state.roll_back();
        let end = state.slot_base.saturating_add(state.slots);
        if end > journal.superblock.member_blocks {
            let words = format!("its {} slots end past the member", state.slots);
            into.damage(member.name(), STRUCTURE, words);
        }
        Some(state)
    }

    fn take_checkpoint(&mut self, bytes: &[u8]) -> Result<(), String> {
        let short = || "it is shorter than it says".to_owned();
        let mut words = Words::new(bytes);
        let mut next = || words.u64().ok_or_else(short);
        let (slots, mappings, clean, state_bytes) = (next()?, next()?, next()?, next()?);
        self.slots = slots;
        let fits = |count: u64, bytes: u64, left: u64| {
            count.checked_mul(bytes).is_some_and(|bytes| bytes <= left)
        };
        if !fits(mappings, 16, words.left()) {
            return Err(short());
        }
        let mut mapped = BTreeMap::new();
        for _ in 0..mappings {
            let (slot, lba, checksum) = mapping(&mut words).ok_or_else(short)?;
            if let Some((owner, _)) = mapped.insert(slot, (lba, checksum)) {
                return Err(format!("slot {slot} is given to blocks {owner} and {lba}"));
            }
        }
        if !fits(clean, 8, words.left()) {
            return Err(short());
        }
        for _ in 0..clean {
            let slot = words.u32().ok_or_else(short)?;
            let checksum = words.u32().ok_or_else(short)?;
            if u64::from(slot) >= self.slots {
                return Err(format!("slot {slot} is past the last"));
            }
            if mapped.contains_key(&slot) {
                return Err(format!("slot {slot} is both dirty and clean"));
            }
            self.clean.push((slot, checksum));
        }
        words.take(state_bytes).ok_or_else(short)?;
        while words.left() > 0 {
            take_part(&mut words, &mut mapped)?;
        }
        for (slot, (lba, checksum)) in mapped {
            if self.dirty.contains_key(&lba) {
                return Err(format!("block {lba} has two places"));
            }
            self.map(lba, Place { slot, checksum, missing: false })?;
        }
        Ok(())
    }

    fn apply(&mut self, record: &JournalRecord) -> Result<(), String> {
        match (record.kind, record.data) {
            (codec::RECORD_MAP, Some(_)) => {
                for block in record.written(self.slot_base)? {
                    let place = Place {
                        slot: block.place,
                        checksum: block.checksum,
                        missing: block.is_missing,
                    };
                    self.map(block.lba, place)?;
                }
                Ok(())
            }
            (codec::RECORD_FREE | codec::RECORD_DROP, None) => {
                let mut words = Words::new(&record.payload);
                if !words.left().is_multiple_of(4) {
                    return Err("its payload is not a row of slots".to_owned());
                }
                while let Some(slot) = words.u32() {
                    if u64::from(slot) >= self.slots {
                        return Err(format!("slot {slot} is past the last"));
                    }
                    if let Some(lba) = self.owners.remove(&slot) {
                        self.dirty.remove(&lba);
                        self.older.remove(&lba);
                    }
                }
                Ok(())
            }
            _ => Err(record.unknown()),
        }
    }

    fn map(&mut self, lba: u64, place: Place) -> Result<(), String> {
        if u64::from(place.slot) >= self.slots {
            return Err(format!("block {lba} is said to lie past the last slot"));
        }
        if let Some(owner) = self.owners.get(&place.slot) {
            return Err(format!("slot {} is given to blocks {owner} and {lba}", place.slot));
        }
        self.owners.insert(place.slot, lba);
        if let Some(old) = self.dirty.insert(lba, place) {
            self.owners.remove(&old.slot);
            self.older.entry(lba).or_default().push(old);
        }
        Ok(())
    }

    /// Blocks whose newest data is missing are where they were before.
    fn roll_back(&mut self) {
        let missing: Vec<u64> =
            self.dirty.iter().filter(|(_, place)| place.missing).map(|(lba, _)| *lba).collect();
        for lba in missing {
            let older = self.older.get(&lba).map_or(&[][..], Vec::as_slice);
            match older.iter().rev().find(|place| !place.missing) {
                // It was used again, so the newest place was durable and is damaged since.
                Some(place) if self.owners.contains_key(&place.slot) => {}
                Some(place) => {
                    let place = *place;
                    self.owners.insert(place.slot, lba);
                    if let Some(newest) = self.dirty.insert(lba, place) {
                        self.owners.remove(&newest.slot);
                    }
                }
                None => {
                    if let Some(newest) = self.dirty.remove(&lba) {
                        self.owners.remove(&newest.slot);
                    }
                }
            }
        }
        self.older.clear();
    }

    /// Reads a slot and compares it with its checksum.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(super) fn read_slot(
        &self,
        slot: u32,
        checksum: u32,
        flash: &Member,
        into: &mut Vec<u8>,
    ) -> Result<(), String> {
        let address = self.slot_base + u64::from(slot);
        flash.read_checked(address, Some(checksum), into)
    }

    /// Reads every slot in use and compares it with its checksum.
    pub fn check_data(&self, member: &Member, into: &mut Findings) {
        let dirty = self
            .dirty
            .iter()
            .map(|(lba, place)| (place.slot, place.checksum, format!("dirty block {lba}")));
        let clean =
            self.clean.iter().map(|(slot, checksum)| (*slot, *checksum, "clean block".to_owned()));
        let mut bytes = Vec::new();
        for (slot, checksum, what) in dirty.chain(clean) {
            let Err(problem) = self.read_slot(slot, checksum, member, &mut bytes) else {
                continue;
            };
            into.damage(member.name(), "data", format!("{what} in slot {slot}: {problem}"));
        }
    }
}
