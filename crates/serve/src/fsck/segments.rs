//! What the journal of a segment layout says: which slots are noted, and so where each block is.

use super::findings::Findings;
use super::journal::{JournalRecord, JournalState};
use super::member::Member;
use super::words::Words;
use imbrex_core::durability::superblock::FEATURE_CHECKSUMS;
use imbrex_core::extent::Extent;
use imbrex_core::translation::NOTHING;
use imbrex_core::translation::segment::codec::{self, HEAD_FIELDS, Identity};
use imbrex_core::translation::segment::{SegmentAreas, SegmentLayout};
use std::collections::{BTreeMap, BTreeSet};

const WORDS_VERSION: u64 = 1;

/// Where everything of a segment layout lies, as the settings of its node say.
#[derive(Clone, Debug)]
pub struct SegmentGeometry {
    /// What a checkpoint must say again.
    pub identity: Identity,
    /// Where the blocks lie on the disk.
    pub layout: SegmentLayout,
    /// Where the journal and the slots lie.
    pub areas: SegmentAreas,
}

/// What a slot is noted for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Noted {
    /// The marked blocks of a segment are to be written home from the slot.
    Rewrite {
        /// The segment.
        segment: u64,
        /// By block, in shingle order.
        written: Vec<bool>,
    },
    /// Whole segments are to be zeroed.
    Zero {
        /// The first one.
        segment: u64,
        /// How many.
        segments: u64,
    },
}

/// Where a block of the device is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// At a block of the member with the slots.
    Slot(u64),
    /// At a block of the disk.
    Home(u64),
    /// Nowhere: it reads as zeroes.
    Zeroes,
}

/// The state of a segment layout.
#[derive(Clone, Debug)]
pub struct SegmentsState {
    /// Where everything lies.
    pub geometry: SegmentGeometry,
    /// Where checksums are kept: the word of each block of a page that was never written.
    pub blank: Option<u32>,
    /// The noted slots, in the order in which they were.
    pub noted: Vec<(u32, Noted)>,
    /// The checksums of what was written to slots since the checkpoint, by block of the member.
    sums: BTreeMap<u64, u32>,
    /// Slots of which a block never became durable.
    torn: BTreeSet<u32>,
}

impl SegmentsState {
    /// Works out the state; `None` when the checkpoint cannot be taken apart.
    pub(super) fn read(
        journal: &JournalState,
        geometry: &SegmentGeometry,
        member: &Member,
        into: &mut Findings,
    ) -> Option<SegmentsState> {
        let mut state = SegmentsState {
            geometry: geometry.clone(),
            blank: None,
            noted: Vec::new(),
            sums: BTreeMap::new(),
            torn: BTreeSet::new(),
        };
        if !journal.takes(geometry.areas.journal.blocks.0, member, into) {
            return None;
        }
        let has_sums = journal.superblock.required_features & FEATURE_CHECKSUMS != 0;
        if has_sums == geometry.areas.tables.is_empty() {
            let words =
                "it says otherwise than the settings of the node whether there are checksums";
            into.damage(member.name(), "superblock", words.to_owned());
            return None;
        }
        let take = |state: &mut Self, bytes: &[u8]| state.take_checkpoint(bytes, has_sums);
        if !journal.tell(&mut state, take, Self::apply, (member, into)) {
            return None;
        }
        Some(state)
    }

    /// How many slots there are.
    pub fn slots(&self) -> u64 {
        let areas = &self.geometry.areas;
        areas.slots.blocks.0 / areas.slot(0).blocks.0
    }

    fn take_checkpoint(&mut self, bytes: &[u8], has_sums: bool) -> Result<(), String> {
        let short = || "it is shorter than it says".to_owned();
        let mut words = Words::new(bytes);
        let identity = self.geometry.identity;
        let known = [
            WORDS_VERSION,
            identity.block,
            identity.region_tracks,
            identity.segments,
            identity.first_block,
            identity.kappa,
        ];
        for (field, expected) in HEAD_FIELDS.iter().zip(known) {
            let found = words.u64().ok_or_else(short)?;
            if found != expected {
                return Err(format!(
                    "its `{}` is {found}, and by the settings of the node {expected}",
                    field.name
                ));
            }
        }
        let count = words.u64().ok_or_else(short)?;
        if has_sums {
            let blank = words.u64().ok_or_else(short)?;
            let known = [0, NOTHING].into_iter().find(|it| u64::from(*it) == blank);
            let unknown = || format!("a page that was never written says {blank}");
            self.blank = Some(known.ok_or_else(unknown)?);
        }
        for _ in 0..count {
            let kind = words.u64().ok_or_else(short)?;
            let length = words.u64().and_then(|length| length.checked_mul(8));
            let payload = length.and_then(|length| words.take(length));
            let kind = u8::try_from(kind).map_err(|_| format!("a slot is of kind {kind}"))?;
            let (slot, noted) = self.noted(kind, payload.ok_or_else(short)?)?;
            self.note(slot, noted)?;
        }
        match words.left() {
            0 => Ok(()),
            _ => Err("it is longer than it says".to_owned()),
        }
    }

    fn apply(&mut self, record: &JournalRecord) -> Result<(), String> {
        match (record.kind, record.data) {
            (codec::KEPT, Some(data)) => self.kept(data, record),
            (codec::REWRITE | codec::ZERO, None) => {
                let (slot, noted) = self.noted(record.kind, &record.payload)?;
                // What is torn was not durable, so nothing of it went home.
                match self.torn.remove(&slot) {
                    true => Ok(()),
                    false => self.note(slot, noted),
                }
            }
            (codec::DONE, None) => {
                let slot = self.slot_of(&mut Words::new(&record.payload))?;
                self.noted.retain(|(known, _)| *known != slot);
                Ok(())
            }
            _ => Err(record.unknown()),
        }
    }

    /// A run of a slot was written.
    fn kept(&mut self, data: Extent, record: &JournalRecord) -> Result<(), String> {
        let slot = self.slot_of(&mut Words::new(&record.payload))?;
        if !self.geometry.areas.slot(slot).covers(data) {
            return Err(format!("its data does not lie in slot {slot}"));
        }
        if self.noted.iter().any(|(known, _)| *known == slot) {
            return Err(format!("slot {slot} is written while it is noted"));
        }
        for (index, checksum) in record.checksums.iter().enumerate() {
            if record.is_missing(index) {
                self.torn.insert(slot);
            }
            self.sums.insert(data.start.0 + index as u64, *checksum);
        }
        Ok(())
    }

    fn note(&mut self, slot: u32, noted: Noted) -> Result<(), String> {
        if self.noted.iter().any(|(known, _)| *known == slot) {
            return Err(format!("slot {slot} is noted twice"));
        }
        self.noted.push((slot, noted));
        Ok(())
    }

    fn slot_of(&self, words: &mut Words<'_>) -> Result<u32, String> {
        let slot = words.u64().ok_or("it names no slot")?;
        let inside = u32::try_from(slot).ok();
        let inside = inside.filter(|slot| u64::from(*slot) < self.slots());
        inside.ok_or_else(|| format!("there is no slot {slot}"))
    }

    /// What a payload of this kind says.
    fn noted(&self, kind: u8, payload: &[u8]) -> Result<(u32, Noted), String> {
        let identity = self.geometry.identity;
        let mut words = Words::new(payload);
        let slot = self.slot_of(&mut words)?;
        let segment = words.u64().ok_or("it names no segment")?;
        let noted = match kind {
            codec::REWRITE => {
                let mut written = Vec::new();
                while let Some(bits) = words.u64() {
                    written.extend((0..64).map(|bit| bits >> bit & 1 == 1));
                }
                let blocks = usize::try_from(identity.region_tracks).unwrap_or(usize::MAX);
                let behind = written.get(blocks..).unwrap_or(&[]);
                if written.len() != blocks.next_multiple_of(64) || behind.contains(&true) {
                    return Err("it has not as many bits as a segment has blocks".to_owned());
                }
                written.truncate(blocks);
                Noted::Rewrite { segment, written }
            }
            codec::ZERO => {
                Noted::Zero { segment, segments: words.u64().ok_or("it names no segments")? }
            }
            kind => return Err(format!("a slot is noted by a record of kind {kind}")),
        };
        let count = match noted {
            Noted::Rewrite { .. } => 1,
            Noted::Zero { segments, .. } => segments,
        };
        let end = segment.checked_add(count);
        match end.is_some_and(|end| end <= identity.segments) && words.left() == 0 {
            true => Ok((slot, noted)),
            false => Err(format!(
                "it names segments from {segment} on, and there are {}",
                identity.segments
            )),
        }
    }

    /// Where a block of the device is; `None` past its end.
    pub fn find(&self, lba: u64) -> Option<Place> {
        let SegmentGeometry { layout, areas, .. } = &self.geometry;
        if lba >= layout.blocks().0 {
            return None;
        }
        let place = layout.place_of(lba);
        for (slot, noted) in self.noted.iter().rev() {
            match noted {
                Noted::Zero { segment, segments }
                    if (*segment..segment + segments).contains(&place.segment) =>
                {
                    return Some(Place::Zeroes);
                }
                Noted::Rewrite { segment, written }
                    if *segment == place.segment && written[place.block as usize] =>
                {
                    let inside = place.block * layout.block() + place.offset;
                    return Some(Place::Slot(areas.slot(*slot).start.0 + inside));
                }
                _ => {}
            }
        }
        Some(Place::Home(layout.on_disk(place)))
    }

    /// Reads a block of a slot and compares it with its checksum, where that is known: a checkpoint
    /// has none.
    pub(super) fn read_slot(
        &self,
        address: u64,
        member: &Member,
        into: &mut Vec<u8>,
    ) -> Result<(), String> {
        member.read_checked(address, self.sums.get(&address).copied(), into)
    }

    /// Reads what the noted slots hold and compares it with its checksums.
    pub(super) fn check_slots(&self, member: &Member, into: &mut Findings) {
        let SegmentGeometry { layout, areas, .. } = &self.geometry;
        let mut bytes = Vec::new();
        for (slot, noted) in &self.noted {
            let Noted::Rewrite { segment, written } = noted else {
                continue;
            };
            let marked = (0..layout.segment_blocks())
                .filter(|at| written[usize::try_from(at / layout.block()).expect("a block")]);
            for at in marked {
                let address = areas.slot(*slot).start.0 + at;
                if let Err(problem) = self.read_slot(address, member, &mut bytes) {
                    let words =
                        format!("block {at} of slot {slot}, of segment {segment}: {problem}");
                    into.damage(member.name(), "slot", words);
                }
            }
        }
    }
}
