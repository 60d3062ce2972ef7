//! The slots of the journal: each holds what one rewrite is about to write home.

use super::areas::SLOTS;
use crate::durability::Lsn;
use crate::ledger::Quarantine;
use crate::saved::SavedValue;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// What a slot is noted for.
#[derive(Clone, PartialEq, Eq, Debug, SavedValue)]
pub enum Noted {
    /// The marked blocks of a segment are to be written home from the slot.
    Rewrite {
        /// The segment.
        segment: u64,
        /// By block, in shingle order.
        written: Vec<bool>,
    },
    /// Whole segments are to be zeroed; the slot holds nothing.
    Zero {
        /// The first one.
        segment: u64,
        /// How many.
        segments: u64,
    },
}

/// All slots, and who waits for one.
#[derive(Debug, SavedValue)]
pub(super) struct Slots {
    /// What the journal says of each.
    states: Vec<Option<Noted>>,
    /// The slots that are noted, in the order in which they were: what is written home again goes in
    /// this order, since two may speak of one segment.
    order: Vec<u32>,
    free: Vec<u32>,
    /// Jobs that wait for a slot or for room in the journal, in the order of asking.
    pub waiting: VecDeque<u32>,
    /// Slots whose data is home and not yet durable there.
    pub home: Vec<u32>,
    /// Those of them that the flushes on their way cover.
    pub flushing: Vec<u32>,
    /// Flushes that are on their way.
    pub flushes_left: u32,
    quarantine: Quarantine<u32>,
}

impl Slots {
    /// All free.
    pub fn new() -> Slots {
        let slots = 0..SLOTS as u32;
        Slots {
            states: slots.clone().map(|_| None).collect(),
            order: Vec::new(),
            free: slots.rev().collect(),
            waiting: VecDeque::new(),
            home: Vec::new(),
            flushing: Vec::new(),
            flushes_left: 0,
            quarantine: Quarantine::default(),
        }
    }

    /// A free slot.
    pub fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// A slot that was taken is free again, without ever having been noted.
    pub fn give_back(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// True when no slot is free.
    pub fn is_short(&self) -> bool {
        self.free.is_empty()
    }

    /// The journal says this of a slot.
    pub fn note(&mut self, slot: u32, noted: Noted) {
        self.states[slot as usize] = Some(noted);
        self.order.push(slot);
    }

    /// The journal says at `record` that nothing is noted for a slot any more.
    pub fn clear(&mut self, slot: u32, record: Lsn, durable_before: Lsn) {
        self.states[slot as usize] = None;
        self.order.retain(|noted| *noted != slot);
        let until = Lsn(record.0 + 1);
        let free = self.quarantine.hold(slot, until, durable_before);
        self.free.extend(free);
    }

    /// Records are durable: slots that waited for them are free.
    pub fn places_free(&mut self, durable_before: Lsn) {
        while let Some(slot) = self.quarantine.next_free(durable_before) {
            self.free.push(slot);
        }
    }

    /// How many slots are noted.
    pub fn noted_slots(&self) -> u64 {
        self.order.len() as u64
    }

    /// True when a slot waits until the end of its note is durable.
    pub fn has_held(&self) -> bool {
        !self.quarantine.is_empty()
    }

    /// What the slots are noted for, in the order in which they were.
    pub fn noted(&self) -> impl Iterator<Item = (u32, &Noted)> + Clone {
        let noted = |slot: &u32| Some((*slot, self.states[*slot as usize].as_ref()?));
        self.order.iter().filter_map(noted)
    }
}
