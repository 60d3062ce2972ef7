//! What the log of a write buffer says: which blocks it alone may have, and where.

use super::findings::Findings;
use super::journal::{JournalRecord, JournalState, Written};
use super::member::Member;
use super::words::Words;
use imbrex_core::memory_buffer::codec;
use std::collections::{BTreeMap, BTreeSet};

/// Where the log has a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogPlace {
    /// The place, counted from the first.
    pub place: u32,
    /// The checksum of its data.
    pub checksum: u32,
}

/// The state of the log of a write buffer.
#[derive(Clone, Debug, Default)]
pub struct BufferState {
    /// Places of the log.
    pub places: u64,
    /// Blocks of the device.
    pub device_blocks: u64,
    /// Where the places begin on the member.
    first_place: u64,
    /// The dirty blocks: the log may have the only durable copy of each.
    pub live: BTreeMap<u64, LogPlace>,
    /// By place: the block in it.
    owners: BTreeMap<u32, u64>,
    /// Blocks of which a newer write never became durable.
    rolled_back: BTreeSet<u64>,
}

impl BufferState {
    /// Works out the state; `None` when the checkpoint cannot be taken apart. By the settings of its
    /// node the buffer has so many places and a device of so many blocks.
    pub(super) fn read(
        journal: &JournalState,
        (places, device_blocks): (u64, u64),
        member: &Member,
        into: &mut Findings,
    ) -> Option<BufferState> {
        let mut state = BufferState {
            places,
            device_blocks,
            first_place: journal.superblock.area_blocks,
            ..BufferState::default()
        };
        let (checkpoint, record) = (Self::take_checkpoint, Self::apply);
        if !journal.tell(&mut state, checkpoint, record, (member, into)) {
            return None;
        }
        let end = state.first_place.saturating_add(places);
        if end > journal.superblock.member_blocks {
            let words = format!("its {places} places end past the member");
            into.damage(member.name(), "map of the log", words);
        }
        Some(state)
    }

    fn take_checkpoint(&mut self, bytes: &[u8]) -> Result<(), String> {
        let short = || "it is shorter than it says".to_owned();
        let mut words = Words::new(bytes);
        let places = words.u64().ok_or_else(short)?;
        if places != self.places {
            return Err(format!(
                "its log has {places} places, and by the settings of the node {}",
                self.places
            ));
        }
        for _ in 0..words.u64().ok_or_else(short)? {
            let lba = words.u64().ok_or_else(short)?;
            let place = words.u32().ok_or_else(short)?;
            let checksum = words.u32().ok_or_else(short)?;
            if self.live.contains_key(&lba) {
                return Err(format!("block {lba} has two places"));
            }
            self.written(lba, LogPlace { place, checksum })?;
        }
        match words.left() {
            0 => Ok(()),
            _ => Err("it is longer than it says".to_owned()),
        }
    }

    fn apply(&mut self, record: &JournalRecord) -> Result<(), String> {
        let mut words = Words::new(&record.payload);
        match (record.kind, record.data) {
            (codec::RECORD_WRITTEN, Some(_)) => {
                for block in record.written(self.first_place)? {
                    let Written { lba, place, checksum, is_missing } = block;
                    match is_missing {
                        true => drop(self.rolled_back.insert(lba)),
                        false => self.written(lba, LogPlace { place, checksum })?,
                    }
                }
                Ok(())
            }
            (codec::RECORD_CLEAN, None) => {
                if words.left() == 0 || !words.left().is_multiple_of(16) {
                    return Err("its payload is not a row of runs".to_owned());
                }
                while let (Some(lba), Some(place), Some(blocks)) =
                    (words.u64(), words.u32(), words.u32())
                {
                    self.clean(lba, place, blocks)?;
                }
                Ok(())
            }
            (codec::RECORD_ZEROED, None) => {
                let (first, blocks) = (words.u64(), words.u64());
                let (first, blocks) = first.zip(blocks).ok_or("its payload is not a run")?;
                let end = first.checked_add(blocks).filter(|_| words.left() == 0);
                let end = end.ok_or("its payload is not a run")?;
                let gone: Vec<u64> = self.live.range(first..end).map(|(lba, _)| *lba).collect();
                gone.iter().for_each(|lba| self.forget(*lba));
                Ok(())
            }
            _ => Err(record.unknown()),
        }
    }

    /// A place holds a block.
    fn written(&mut self, lba: u64, place: LogPlace) -> Result<(), String> {
        if u64::from(place.place) >= self.places {
            return Err(format!("block {lba} is said to lie past the last place"));
        }
        if lba >= self.device_blocks {
            return Err(format!("block {lba} lies past the device"));
        }
        let before = self.owners.get(&place.place).copied();
        let before = before.filter(|before| *before != lba);
        if let Some(before) = before {
            self.forget(before);
        }
        self.forget(lba);
        self.owners.insert(place.place, lba);
        self.live.insert(lba, place);
        match before {
            // A newer write of that block gave the place free, and is damaged since.
            Some(before) if !self.rolled_back.contains(&before) => {
                Err(format!("place {} is given to blocks {before} and {lba}", place.place))
            }
            _ => Ok(()),
        }
    }

    /// Blocks are durable below; one that has another place by now is meant no more.
    fn clean(&mut self, lba: u64, place: u32, blocks: u32) -> Result<(), String> {
        let is_inside = u64::from(place) + u64::from(blocks) <= self.places;
        let end = lba.checked_add(u64::from(blocks)).filter(|_| is_inside);
        let end = end.ok_or_else(|| format!("blocks from {lba} on left places past the last"))?;
        let left =
            |(at, it): &(&u64, &LogPlace)| u64::from(it.place) == u64::from(place) + *at - lba;
        let gone = self.live.range(lba..end).filter(left);
        let gone: Vec<u64> = gone.map(|(at, _)| *at).collect();
        gone.iter().for_each(|lba| self.forget(*lba));
        Ok(())
    }

    fn forget(&mut self, lba: u64) {
        if let Some(place) = self.live.remove(&lba) {
            self.owners.remove(&place.place);
        }
    }

    /// Reads a place and compares it with its checksum.
    pub(super) fn read_place(
        &self,
        place: LogPlace,
        log: &Member,
        into: &mut Vec<u8>,
    ) -> Result<(), String> {
        let address = self.first_place + u64::from(place.place);
        log.read_checked(address, Some(place.checksum), into)
    }

    /// Reads every place that holds a block and compares it with its checksum.
    pub(super) fn check_data(&self, log: &Member, into: &mut Findings) {
        let mut bytes = Vec::new();
        for (lba, place) in &self.live {
            if let Err(problem) = self.read_place(*place, log, &mut bytes) {
                let words = format!("block {lba} in place {}: {problem}", place.place);
                into.damage(log.name(), "data", words);
            }
        }
    }
}
