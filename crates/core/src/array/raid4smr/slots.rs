//! The slots of the data disk.

use super::settings::SlotOrder;
use alloc::collections::{BTreeSet, VecDeque};

/// Which slots are free.
#[derive(Debug)]
pub struct Slots {
    capacity: u64,
    /// Slots from this one on were never used.
    new: u64,
    freed: Freed,
}

#[derive(Debug)]
enum Freed {
    Lowest(BTreeSet<u64>),
    Fifo(VecDeque<u64>),
}

impl Slots {
    /// So many slots, none used.
    pub fn new(capacity: u64, order: SlotOrder) -> Slots {
        let freed = match order {
            SlotOrder::Lowest => Freed::Lowest(BTreeSet::new()),
            SlotOrder::Fifo => Freed::Fifo(VecDeque::new()),
        };
        Slots { capacity, new: 0, freed }
    }

    /// Takes a slot: one that was freed, else a new one. None when all are in use.
    pub fn take(&mut self) -> Option<u64> {
        let freed = match &mut self.freed {
            Freed::Lowest(slots) => slots.pop_first(),
            Freed::Fifo(slots) => slots.pop_front(),
        };
        if freed.is_some() {
            return freed;
        }
        let new = (self.new < self.capacity).then_some(self.new)?;
        self.new += 1;
        Some(new)
    }

    /// A slot is free again.
    pub fn free(&mut self, slot: u64) {
        match &mut self.freed {
            Freed::Lowest(slots) => {
                slots.insert(slot);
            }
            Freed::Fifo(slots) => slots.push_back(slot),
        }
    }

    /// A slot that was freed is in use after all.
    pub fn take_back(&mut self, slot: u64) {
        match &mut self.freed {
            Freed::Lowest(slots) => {
                slots.remove(&slot);
            }
            Freed::Fifo(slots) => slots.retain(|freed| *freed != slot),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_slots_go_before_new_ones() {
        let mut lowest = Slots::new(4, SlotOrder::Lowest);
        let mut fifo = Slots::new(4, SlotOrder::Fifo);
        for slots in [&mut lowest, &mut fifo] {
            assert_eq!([slots.take(), slots.take(), slots.take()], [Some(0), Some(1), Some(2)]);
            for slot in [2, 0] {
                slots.free(slot);
            }
        }
        assert_eq!([lowest.take(), lowest.take()], [Some(0), Some(2)]);
        assert_eq!([fifo.take(), fifo.take()], [Some(2), Some(0)]);
        assert_eq!([fifo.take(), fifo.take()], [Some(3), None]);
        fifo.free(1);
        fifo.take_back(1);
        assert_eq!(fifo.take(), None);
    }
}
