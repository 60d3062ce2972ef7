//! The slots of a log whose space is freed by zones: all that a zone has is free when it is cleaned, wherever it lies.
//!
//! The log goes round as it does without. Its next slot is the next free one, so a write may be cut where the slots of
//! other zones lie. A slot that was written again stays in use until its zone is cleaned, as the host counts it
//! (Idler, IEEE TC 2020, section 4.2: "repetitive updates to the same address will also be counted").

use super::log::{Holds, set_bits};
use crate::extent::Extent;
use crate::map::Slab;
use crate::saved::SavedValue;
use crate::units::{BlockCount, Lba};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// Of a zone without a run, and behind the last run.
const NONE: u32 = u32::MAX;

/// Adjoining slots that were filled at once.
#[derive(Clone, Copy, Debug, SavedValue)]
struct Run {
    position: u64,
    blocks: u32,
    /// The run of the same zone that was filled before.
    before: u32,
}

/// Which slots are in use, and by which zone.
#[derive(Debug, SavedValue)]
pub(super) struct ZoneSlots {
    zone_blocks: u64,
    capacity: u64,
    /// One bit per slot: it is in use.
    taken: Vec<u64>,
    used: u64,
    runs: Slab<Run>,
    /// The run of each zone that was filled last.
    newest: Vec<u32>,
    /// Zones with slots, the one that has had some longest first.
    oldest: VecDeque<u32>,
    /// Runs of cleaned zones that are not free yet, because a read may be using them.
    cleaned: Vec<(u64, u32)>,
}

impl ZoneSlots {
    /// So many slots, all free, for so many zones of equal length.
    pub fn new(capacity: BlockCount, zone_blocks: BlockCount, zones: u32) -> ZoneSlots {
        ZoneSlots {
            zone_blocks: zone_blocks.0,
            capacity: capacity.0,
            taken: vec![0; capacity.0.div_ceil(64) as usize],
            used: 0,
            runs: Slab::default(),
            newest: vec![NONE; zones as usize],
            oldest: VecDeque::new(),
            cleaned: Vec::new(),
        }
    }

    /// Slots in use.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// True when nothing but a read keeps slots from being free.
    pub fn waits_for_read(&self) -> bool {
        !self.cleaned.is_empty()
    }

    /// The first block of the zone that has had slots longest.
    pub fn oldest(&self) -> Option<Lba> {
        self.oldest.front().map(|zone| Lba(u64::from(*zone) * self.zone_blocks))
    }

    /// The zones of which blocks lie in an extent.
    pub fn zones_of(&self, extent: Extent) -> core::ops::Range<u32> {
        let first = extent.start.0 / self.zone_blocks;
        (first as u32)..(extent.end().0.div_ceil(self.zone_blocks) as u32)
    }

    /// The blocks of a zone.
    pub fn extent_of(&self, zone: u32) -> Extent {
        Extent::new(u64::from(zone) * self.zone_blocks, self.zone_blocks)
    }

    /// True when a zone has slots.
    pub fn has_slots(&self, zone: u32) -> bool {
        self.newest[zone as usize] != NONE
    }

    /// The next free slots behind a position, at most so many, those of one run: where they begin, and how many there
    /// are. There are free ones.
    pub fn next_free(&self, behind: u64, most: u64) -> (u64, u64) {
        let mut position = behind;
        loop {
            let slot = position % self.capacity;
            let free = self.free_from(slot, most.min(self.capacity - slot));
            if free > 0 {
                return (position, free);
            }
            position += self.taken_from(slot);
        }
    }

    /// A zone takes slots from a position on, which are free.
    pub fn take(&mut self, extent: Extent, position: u64) {
        let zone = (extent.start.0 / self.zone_blocks) as u32;
        debug_assert!(extent.end() <= self.extent_of(zone).end(), "a write is of one zone");
        let newest = &mut self.newest[zone as usize];
        if *newest == NONE {
            self.oldest.push_back(zone);
        }
        let blocks = extent.blocks.0 as u32;
        *newest = self.runs.add(Run { position, blocks, before: *newest });
        set_bits(&mut self.taken, position % self.capacity, extent.blocks.0, true);
        self.used += extent.blocks.0;
    }

    /// A zone was cleaned of what was written before a position.
    pub fn clean(&mut self, zone: u32, before: u64) {
        // The runs of a zone are in the order of their positions, the last first.
        let (mut at, mut kept) = (self.newest[zone as usize], NONE);
        while at != NONE && self.runs[at].position >= before {
            (kept, at) = (at, self.runs[at].before);
        }
        match kept {
            NONE => self.newest[zone as usize] = NONE,
            kept => self.runs[kept].before = NONE,
        }
        if at == NONE {
            return;
        }
        self.oldest.retain(|it| *it != zone);
        if kept != NONE {
            self.oldest.push_back(zone);
        }
        while at != NONE {
            let Run { position, blocks, before } = self.runs.take(at);
            self.cleaned.push((position, blocks));
            at = before;
        }
    }

    /// Frees the slots of cleaned zones that no read is using.
    pub fn settle(&mut self, holds: Holds) {
        let held_from = holds.position.filter(|_| !holds.ignored).unwrap_or(u64::MAX);
        let ZoneSlots { taken, capacity, used, cleaned, .. } = self;
        cleaned.retain(|(position, blocks)| {
            let is_free = position + u64::from(*blocks) <= held_from;
            if is_free {
                set_bits(taken, position % *capacity, u64::from(*blocks), false);
                *used -= u64::from(*blocks);
            }
            !is_free
        });
    }

    /// How many slots from one on, at most so many, are free.
    fn free_from(&self, slot: u64, most: u64) -> u64 {
        self.count_from(slot, most, false)
    }

    /// How many slots from one on, to the end of the log, are in use.
    fn taken_from(&self, slot: u64) -> u64 {
        self.count_from(slot, self.capacity - slot, true)
    }

    fn count_from(&self, slot: u64, most: u64, is_taken: bool) -> u64 {
        let mut count = 0;
        while count < most {
            let at = slot + count;
            let word = self.taken[(at / 64) as usize];
            let others = if is_taken { !word } else { word };
            let same = u64::from((others >> (at % 64)).trailing_zeros()).min(64 - at % 64);
            count += same;
            if at % 64 + same < 64 {
                break;
            }
        }
        count.min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many slots for three zones of 100 blocks.
    fn slots(capacity: u64) -> ZoneSlots {
        ZoneSlots::new(BlockCount(capacity), BlockCount(100), 3)
    }

    const FREELY: Holds = Holds { position: None, ignored: false };

    #[test]
    fn what_a_zone_has_is_free_when_it_is_cleaned_wherever_it_lies() {
        let mut slots = slots(10);
        slots.take(Extent::new(0, 2), 0);
        slots.take(Extent::new(150, 3), 2);
        slots.take(Extent::new(0, 2), 5);
        assert_eq!((slots.used(), slots.oldest()), (7, Some(Lba(0))));
        slots.clean(0, 7);
        assert_eq!(slots.used(), 7, "a read may be using them");
        slots.settle(FREELY);
        assert_eq!((slots.used(), slots.oldest()), (3, Some(Lba(100))));
        assert_eq!(slots.next_free(7, 9), (7, 3), "to the end of the log");
        assert_eq!(slots.next_free(10, 9), (10, 2), "before the other zone");
        assert_eq!(slots.next_free(12, 9), (15, 5), "behind it");
    }

    #[test]
    fn what_came_behind_a_position_stays_and_is_the_youngest() {
        let mut slots = slots(10);
        for (start, position) in [(0, 0), (100, 1), (0, 2), (0, 3)] {
            slots.take(Extent::new(start, 1), position);
        }
        slots.clean(0, 3);
        slots.settle(FREELY);
        assert_eq!((slots.used(), slots.oldest()), (2, Some(Lba(100))));
        slots.clean(0, 3);
        assert_eq!(slots.oldest(), Some(Lba(100)), "nothing was there to be cleaned");
        slots.clean(1, u64::MAX);
        assert_eq!(slots.oldest(), Some(Lba(0)));
    }

    #[test]
    fn slots_that_a_read_may_be_using_are_not_free() {
        let mut slots = slots(10);
        slots.take(Extent::new(0, 4), 0);
        slots.take(Extent::new(0, 4), 4);
        slots.clean(0, u64::MAX);
        slots.settle(Holds { position: Some(5), ignored: false });
        assert_eq!((slots.used(), slots.waits_for_read()), (4, true));
        slots.settle(FREELY);
        assert_eq!((slots.used(), slots.waits_for_read()), (0, false));
    }

    #[test]
    fn free_and_used_slots_are_counted_across_words() {
        let mut slots = slots(300);
        slots.take(Extent::new(0, 100), 60);
        slots.take(Extent::new(100, 33), 160);
        assert_eq!(slots.next_free(0, 1_000), (0, 60));
        assert_eq!(slots.next_free(60, 1_000), (193, 107));
        assert_eq!(slots.next_free(299, 1_000), (299, 1));
        assert_eq!(slots.next_free(64, 5), (193, 5));
    }
}
