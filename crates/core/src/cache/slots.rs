//! Which flash slots are free, and who waits for one.

use crate::extent::Extent;
use alloc::collections::VecDeque;

/// The slots of a cache. Slots never used come first and in order, then freed ones in the order
/// of their freeing, so that blocks that come together, or whose predecessors left together, lie
/// together and move in one operation.
#[derive(Debug)]
pub(super) struct Slots {
    /// The block of the flash where the slots begin.
    base: u64,
    /// First slot that was never used.
    fresh: u32,
    total: u32,
    freed: VecDeque<u32>,
    waiting: VecDeque<SlotWaiter>,
}

/// Who waits for a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SlotWaiter {
    /// A newcomer.
    Entry(u32),
    /// A host write to fresh slots.
    Job(u32),
}

impl Slots {
    /// `total` free slots from block `base` of the flash on.
    pub fn new(total: u32, base: u64) -> Slots {
        Slots { base, fresh: 0, total, freed: VecDeque::new(), waiting: VecDeque::new() }
    }

    /// How many slots there are.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// The block of the flash where the slots begin.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Where a run of slots lies in flash.
    #[inline]
    pub fn place(&self, first: u32, slots: u64) -> Extent {
        Extent::new(self.base + u64::from(first), slots)
    }

    /// A free slot. `None` when there is none, or when somebody else waits already.
    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        if !self.waiting.is_empty() {
            return None;
        }
        if self.fresh < self.total {
            self.fresh += 1;
            return Some(self.fresh - 1);
        }
        self.freed.pop_front()
    }

    /// True when [`take`](Self::take) would give one.
    pub fn has_free(&self) -> bool {
        self.waiting.is_empty() && (self.fresh < self.total || !self.freed.is_empty())
    }

    /// Lets somebody wait for a slot, behind all that wait already.
    pub fn wait(&mut self, waiter: SlotWaiter) {
        self.waiting.push_back(waiter);
    }

    /// Lets an entry wait no longer.
    pub fn stop_waiting(&mut self, entry: u32) {
        let entry = SlotWaiter::Entry(entry);
        self.waiting.retain(|waiting| *waiting != entry);
    }

    /// Frees a slot. Returns who gets it instead, when somebody waits.
    pub fn free(&mut self, slot: u32) -> Option<SlotWaiter> {
        let waiter = self.waiting.pop_front();
        if waiter.is_none() {
            self.freed.push_back(slot);
        }
        waiter
    }

    /// Who has waited longest, taken off the list.
    pub fn pop_waiting(&mut self) -> Option<SlotWaiter> {
        self.waiting.pop_front()
    }

    /// True when somebody waits.
    pub fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Makes exactly the slots for which `used` holds taken ones.
    pub fn restore(&mut self, used: impl Fn(u32) -> bool) {
        self.fresh = (0..self.total).rfind(|slot| used(*slot)).map_or(0, |s| s + 1);
        self.freed = (0..self.fresh).filter(|slot| !used(*slot)).collect();
    }
}
