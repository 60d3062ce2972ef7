//! Which flash slots are free, and who waits for one.

use crate::extent::Extent;
use alloc::collections::VecDeque;

/// The slots of a cache, in two pools: those of cached blocks, and behind them those in which a zone
/// is put together that is to be rewritten. So a rewrite, which holds the slots of its victims until
/// it has ended, never waits for a slot that a newcomer took.
#[derive(Debug)]
pub(super) struct Slots {
    /// The block of the flash where the slots begin.
    base: u64,
    cached: Pool,
    staging: Pool,
}

/// Slots of one pool. Those never used come first and in order, then freed ones in the order of their
/// freeing, so that blocks that come together, or whose predecessors left together, lie together and
/// move in one operation.
#[derive(Debug)]
struct Pool {
    /// First slot, and the one behind the last.
    first: u32,
    end: u32,
    /// First slot that was never used.
    fresh: u32,
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

impl Pool {
    fn new(first: u32, end: u32) -> Pool {
        Pool { first, end, fresh: first, freed: VecDeque::new(), waiting: VecDeque::new() }
    }

    #[inline]
    fn take(&mut self) -> Option<u32> {
        if !self.waiting.is_empty() {
            return None;
        }
        if self.fresh < self.end {
            self.fresh += 1;
            return Some(self.fresh - 1);
        }
        self.freed.pop_front()
    }

    fn free(&mut self, slot: u32) -> Option<SlotWaiter> {
        let waiter = self.waiting.pop_front();
        if waiter.is_none() {
            self.freed.push_back(slot);
        }
        waiter
    }

    fn restore(&mut self, used: impl Fn(u32) -> bool) {
        self.fresh = (self.first..self.end).rfind(|slot| used(*slot)).map_or(self.first, |s| s + 1);
        self.freed = (self.first..self.fresh).filter(|slot| !used(*slot)).collect();
    }
}

impl Slots {
    /// Free slots from block `base` of the flash on: `total` in all, of which the last `staging` are
    /// for zones that are put together.
    pub fn new(total: u32, staging: u32, base: u64) -> Slots {
        let cached = total - staging;
        Slots { base, cached: Pool::new(0, cached), staging: Pool::new(cached, total) }
    }

    /// How many slots there are.
    pub fn total(&self) -> u32 {
        self.staging.end
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

    /// A free slot for a cached block. `None` when there is none, or when somebody else waits already.
    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        self.cached.take()
    }

    /// The same for a block of a zone that is put together.
    pub fn take_staging(&mut self) -> Option<u32> {
        self.staging.take()
    }

    /// True when [`take`](Self::take) would give one.
    pub fn has_free(&self) -> bool {
        let Pool { fresh, end, freed, waiting, .. } = &self.cached;
        waiting.is_empty() && (fresh < end || !freed.is_empty())
    }

    /// True for a slot in which a block of a zone is put that is to be rewritten.
    pub fn is_staging(&self, slot: u32) -> bool {
        (self.staging.first..self.staging.end).contains(&slot)
    }

    /// Slots in which zones are put together.
    pub fn staging(&self) -> u32 {
        self.staging.end - self.staging.first
    }

    /// Lets somebody wait for a slot for a cached block, behind all that wait already.
    pub fn wait(&mut self, waiter: SlotWaiter) {
        self.cached.waiting.push_back(waiter);
    }

    /// Lets a block of a zone that is put together wait for a slot.
    pub fn wait_for_staging(&mut self, entry: u32) {
        self.staging.waiting.push_back(SlotWaiter::Entry(entry));
    }

    /// Lets an entry wait no longer.
    pub fn stop_waiting(&mut self, entry: u32) {
        let entry = SlotWaiter::Entry(entry);
        for pool in [&mut self.cached, &mut self.staging] {
            pool.waiting.retain(|waiting| *waiting != entry);
        }
    }

    /// Frees a slot. Returns who gets it instead, when somebody waits.
    #[inline]
    pub fn free(&mut self, slot: u32) -> Option<SlotWaiter> {
        match slot < self.staging.first {
            true => self.cached.free(slot),
            false => self.staging.free(slot),
        }
    }

    /// Who has waited longest, taken off the list: first of those who wait for a slot of a cached block.
    pub fn pop_waiting(&mut self) -> Option<SlotWaiter> {
        self.cached.waiting.pop_front().or_else(|| self.staging.waiting.pop_front())
    }

    /// True when somebody waits.
    pub fn is_awaited(&self) -> bool {
        !self.cached.waiting.is_empty() || !self.staging.waiting.is_empty()
    }

    /// Makes exactly the slots for which `used` holds taken ones.
    pub fn restore(&mut self, used: impl Fn(u32) -> bool) {
        self.cached.restore(&used);
        self.staging.restore(&used);
    }
}
