//! Which flash slots are free, and who waits for one.

use alloc::collections::VecDeque;

/// The slots of a cache. Slots never used come first and in order, then freed ones in the order
/// of their freeing, so that blocks that come together, or whose predecessors left together, lie
/// together and move in one operation.
#[derive(Debug)]
pub(super) struct Slots {
    /// First slot that was never used.
    fresh: u32,
    total: u32,
    freed: VecDeque<u32>,
    waiting: VecDeque<u32>,
}

impl Slots {
    /// `total` free slots.
    pub fn new(total: u32) -> Slots {
        Slots {
            fresh: 0,
            total,
            freed: VecDeque::new(),
            waiting: VecDeque::new(),
        }
    }

    /// How many slots there are.
    pub fn total(&self) -> u32 {
        self.total
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

    /// Lets an entry wait for a slot, behind all that wait already.
    pub fn wait(&mut self, entry: u32) {
        self.waiting.push_back(entry);
    }

    /// Lets an entry wait no longer.
    pub fn stop_waiting(&mut self, entry: u32) {
        self.waiting.retain(|waiting| *waiting != entry);
    }

    /// Frees a slot. Returns the entry that gets it instead, when one waits.
    pub fn free(&mut self, slot: u32) -> Option<u32> {
        let entry = self.waiting.pop_front();
        if entry.is_none() {
            self.freed.push_back(slot);
        }
        entry
    }

    /// The entry that has waited longest, taken off the list.
    pub fn pop_waiting(&mut self) -> Option<u32> {
        self.waiting.pop_front()
    }

    /// True when somebody waits.
    pub fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Makes exactly the slots for which `used` holds taken ones.
    pub fn restore(&mut self, used: impl Fn(u32) -> bool) {
        self.fresh = (0..self.total)
            .rfind(|slot| used(*slot))
            .map_or(0, |s| s + 1);
        self.freed = (0..self.fresh).filter(|slot| !used(*slot)).collect();
    }
}
