//! The slots of the data disk.

use super::settings::SlotOrder;
use crate::saved::SavedValue;
use crate::state::{StateError, StateReader, StateWriter};
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

/// Which slots are free.
#[derive(Debug, SavedValue)]
pub struct Slots {
    capacity: u64,
    /// Slots from this one on were never used.
    new: u64,
    freed: Freed,
    /// Slots that are free, and not given out before everything is durable.
    aside: Vec<u64>,
}

#[derive(Debug, SavedValue)]
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
        Slots { capacity, new: 0, freed, aside: Vec::new() }
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

    /// A slot that was freed is not given out before [`free_aside`](Self::free_aside).
    pub fn set_aside(&mut self, slot: u64) {
        let is_free = match &self.freed {
            Freed::Lowest(slots) => slots.contains(&slot),
            Freed::Fifo(slots) => slots.contains(&slot),
        };
        if is_free {
            self.take_back(slot);
            self.aside.push(slot);
        }
    }

    /// Everything is durable: slots that were set aside are free.
    pub fn free_aside(&mut self) {
        core::mem::take(&mut self.aside).into_iter().for_each(|slot| self.free(slot));
    }

    /// Records need not have freed slots in the order in which they were taken: those in use are `taken`, and all
    /// others are free.
    pub fn keep_free(&mut self, taken: &BTreeSet<u64>) {
        let mut known = BTreeSet::new();
        let mut keep = |slot: &u64| !taken.contains(slot) && known.insert(*slot);
        match &mut self.freed {
            Freed::Lowest(slots) => slots.retain(&mut keep),
            Freed::Fifo(slots) => slots.retain(&mut keep),
        }
        let missing = (0..self.new).filter(|slot| !taken.contains(slot) && !known.contains(slot));
        missing.collect::<Vec<_>>().into_iter().for_each(|slot| self.free(slot));
    }

    /// A slot is in use, whoever has given it out. Those below it that were never used are free.
    pub fn claim(&mut self, slot: u64) {
        match slot < self.new {
            true => self.take_back(slot),
            false => {
                (self.new..slot).for_each(|free| self.free(free));
                self.new = slot + 1;
            }
        }
    }

    /// Adds the state to a checkpoint: the first slot that was never used, and those that were freed, in the
    /// order in which they are used next.
    pub fn put(&self, words: &mut StateWriter) {
        words.put_u64(self.new);
        let mut free: Vec<u64> = match &self.freed {
            Freed::Lowest(slots) => slots.iter().copied().collect(),
            Freed::Fifo(slots) => slots.iter().copied().collect(),
        };
        free.extend(&self.aside);
        words.put_u64(free.len() as u64);
        free.into_iter().for_each(|slot| words.put_u64(slot));
    }

    /// Takes the state back.
    ///
    /// # Errors
    /// When it is not that of so many slots.
    pub fn take_state(&mut self, words: &mut StateReader<'_>) -> Result<(), StateError> {
        self.new = words.take_u64()?;
        let freed = words.take_u64()?;
        if self.new > self.capacity || freed > self.new {
            return Err(StateError::new("other slots than there are"));
        }
        for _ in 0..freed {
            let slot = words.take_u64()?;
            if slot >= self.new {
                return Err(StateError::new("a free slot that is not there"));
            }
            self.free(slot);
        }
        Ok(())
    }

    /// How many are free.
    pub fn left(&self) -> u64 {
        let freed = match &self.freed {
            Freed::Lowest(slots) => slots.len(),
            Freed::Fifo(slots) => slots.len(),
        };
        self.capacity - self.new + freed as u64
    }

    /// How many there are.
    pub fn capacity(&self) -> u64 {
        self.capacity
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
