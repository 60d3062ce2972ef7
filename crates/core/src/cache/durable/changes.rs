//! Which slots have changed since the newest checkpoint, and what the checkpoint that is being written
//! has yet to say.
//!
//! A checkpoint says what was so when it began, and records go on meanwhile. So what a slot was like is
//! kept when the slot changes before the checkpoint has come to it.

use super::codec::{self, Mapping};
use crate::durability::block::PAYLOAD_BYTES;
use crate::saved::SavedValue;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

/// Bytes of a piece, at least, where as many are left: 16 pages.
const PIECE_BYTES: usize = 16 * PAYLOAD_BYTES;
/// Changed slots with which a checkpoint is due, whatever room the ring has. It bounds what has to be
/// kept of them, and what recovery reads.
const CHANGES_MAX: usize = 1 << 16;
/// Slots that are passed over together when none of them is mapped.
pub(super) const GROUP_SLOTS: u32 = 4096;

/// What a checkpoint says beside its head.
#[derive(Debug, SavedValue)]
enum Says {
    /// Every mapped slot, from this one on.
    Map(u32),
    /// What these slots are like now, from the one with this index on.
    Part(Vec<u32>, usize),
}

/// A checkpoint that is being written.
#[derive(Debug, SavedValue)]
struct UnderWay {
    /// The first bytes, until they are told.
    head: Vec<u8>,
    says: Says,
    /// What slots were like when it began that have changed since.
    before: BTreeMap<u32, Mapping>,
}

/// What the next checkpoint is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::cache) struct NextCheckpoint {
    pub bytes: u64,
    /// It says what has changed, and belongs behind the newest one.
    pub is_part: bool,
}

/// What the slots of a table are like at this moment.
pub(super) struct SlotsNow<'a> {
    /// By slot: the block mapped to it, or [`codec::NOBODY`].
    pub owners: &'a [u64],
    pub checksums: &'a [u32],
    /// By [`GROUP_SLOTS`] slots: how many are mapped.
    pub mapped_in: &'a [u16],
}

impl SlotsNow<'_> {
    fn mapping(&self, slot: u32) -> Mapping {
        let at = slot as usize;
        Mapping { lba: self.owners[at], slot, checksum: self.checksums[at] }
    }
}

/// The changes since the newest checkpoint.
#[derive(Debug, SavedValue)]
pub(super) struct Changes {
    /// Each slot that has changed since the newest checkpoint began, once.
    slots: Vec<u32>,
    /// By slot, a bit: it is among them.
    is_noted: Vec<u64>,
    /// Bytes of the parts of the newest checkpoint.
    part_bytes: u64,
    under_way: Option<UnderWay>,
    piece: Vec<u8>,
}

impl Changes {
    /// No change of any of so many slots.
    pub fn new(slots: u32) -> Changes {
        Changes {
            slots: Vec::new(),
            is_noted: vec![0; (slots as usize).div_ceil(64)],
            part_bytes: 0,
            under_way: None,
            piece: Vec::new(),
        }
    }

    /// A slot is about to change; `was` is what it is like still.
    pub fn note(&mut self, was: Mapping) {
        let (word, bit) = (was.slot as usize / 64, 1 << (was.slot % 64));
        if self.is_noted[word] & bit != 0 {
            return;
        }
        self.is_noted[word] |= bit;
        self.slots.push(was.slot);
        if let Some(under_way) = &mut self.under_way {
            under_way.before.insert(was.slot, was);
        }
    }

    /// True when there are so many changes that a checkpoint is due.
    pub fn are_many(&self) -> bool {
        self.slots.len() >= CHANGES_MAX
    }

    /// A checkpoint has begun that says all, and it is told elsewhere.
    pub fn forget(&mut self) {
        for slot in self.slots.drain(..) {
            self.is_noted[slot as usize / 64] = 0;
        }
        self.part_bytes = 0;
    }

    /// A planted bug: the newest change is not told.
    pub fn leave_out_newest(&mut self) {
        self.slots.pop();
    }

    /// Begins a checkpoint. It says what has changed as long as all such parts are at most half as long
    /// as a map of so many mappings, which `map` has the head of; `fits` tells whether there is room
    /// for a part.
    pub fn begin(
        &mut self,
        (map, mapped): (Vec<u8>, u64),
        fits: impl Fn(u64) -> bool,
    ) -> NextCheckpoint {
        let map_bytes = map.len() as u64 + mapped * codec::MAPPING_BYTES;
        let bytes = codec::PART_HEAD_BYTES + self.slots.len() as u64 * codec::MAPPING_BYTES;
        let part_bytes = self.part_bytes + bytes;
        let slots = core::mem::take(&mut self.slots);
        for slot in &slots {
            self.is_noted[*slot as usize / 64] = 0;
        }
        let is_part = part_bytes <= map_bytes / 2 && fits(bytes);
        let (head, says) = match is_part {
            true => (codec::part_head(slots.len() as u64), Says::Part(slots, 0)),
            false => (map, Says::Map(0)),
        };
        self.part_bytes = if is_part { part_bytes } else { 0 };
        self.under_way = Some(UnderWay { head, says, before: BTreeMap::new() });
        NextCheckpoint { bytes: if is_part { bytes } else { map_bytes }, is_part }
    }

    /// The next piece of the checkpoint that is being written: nothing when all is said.
    pub fn next_piece(&mut self, slots: &SlotsNow<'_>) -> &[u8] {
        self.piece.clear();
        if let Some(under_way) = &mut self.under_way {
            self.piece.append(&mut under_way.head);
            under_way.tell(slots, &mut self.piece);
        }
        &self.piece
    }

    /// The checkpoint is written.
    pub fn end(&mut self) {
        self.under_way = None;
    }
}

impl UnderWay {
    /// What the slot was like when the checkpoint began.
    fn mapping(&self, slot: u32, slots: &SlotsNow<'_>) -> Mapping {
        let before = self.before.get(&slot);
        before.copied().unwrap_or_else(|| slots.mapping(slot))
    }

    fn tell(&mut self, slots: &SlotsNow<'_>, piece: &mut Vec<u8>) {
        while piece.len() < PIECE_BYTES
            && let Some(mapping) = self.next(slots)
        {
            mapping.put(piece);
        }
    }

    fn next(&mut self, slots: &SlotsNow<'_>) -> Option<Mapping> {
        loop {
            match &mut self.says {
                Says::Part(told, next) => {
                    let slot = *told.get(*next)?;
                    *next += 1;
                    return Some(self.mapping(slot, slots));
                }
                Says::Map(next) => {
                    let slot = *next;
                    let group = slots.mapped_in.get((slot / GROUP_SLOTS) as usize)?;
                    let end = slot.saturating_add(GROUP_SLOTS);
                    if slot.is_multiple_of(GROUP_SLOTS)
                        && *group == 0
                        && self.before.range(slot..end).next().is_none()
                    {
                        *next = end;
                        continue;
                    }
                    slots.owners.get(slot as usize)?;
                    *next = slot + 1;
                    let mapping = self.mapping(slot, slots);
                    if mapping.lba != codec::NOBODY {
                        return Some(mapping);
                    }
                }
            }
        }
    }
}
