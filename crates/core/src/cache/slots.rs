//! Which flash slots are free, and who waits for one.

use super::free_slots::FreeSlots;
use super::waiting_line::WaitingLine;
use crate::extent::Extent;
use crate::saved::SavedValue;

/// The slots of a cache, in two pools: those of cached blocks, and behind them those in which a zone
/// is put together that is to be rewritten. So a rewrite, which holds the slots of its victims until
/// it has ended, never waits for a slot that a newcomer took.
#[derive(Debug, SavedValue)]
pub(super) struct Slots {
    /// The block of the flash where the slots begin.
    base: u64,
    cached: Pool,
    staging: Pool,
}

/// Slots of one pool, and who waits for one.
#[derive(Debug, SavedValue)]
struct Pool {
    /// First slot, and the one behind the last.
    first: u32,
    end: u32,
    free: FreeSlots,
    /// Entries that have a slot, and how many may.
    held: u32,
    held_max: u32,
    /// The slot that went to the last one of those who wait, as long as others do.
    last_granted: Option<u32>,
    waiting: WaitingLine,
}

/// Where a slot should lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wish {
    /// Where so many blocks can lie one behind the other.
    Run(u32),
    /// Behind this slot, or else where so many blocks can.
    Behind(u32, u32),
    /// Near this slot.
    Beside(u32),
}

/// Who waits for a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) enum SlotWaiter {
    /// A newcomer: it waits as well until few enough entries have one.
    Entry(u32),
    /// A host write to fresh slots.
    Job(u32),
}

impl Pool {
    fn new(first: u32, end: u32, held_max: u32) -> Pool {
        let free = FreeSlots::new(first, end);
        Pool {
            first,
            end,
            free,
            held: 0,
            held_max,
            last_granted: None,
            waiting: WaitingLine::default(),
        }
    }

    #[inline]
    fn has_free(&self) -> bool {
        self.waiting.is_empty() && !self.free.is_empty()
    }

    #[inline]
    fn hold(&mut self, wish: Wish) -> Option<u32> {
        if self.held == self.held_max {
            return None;
        }
        let slot = self.take(wish)?;
        self.held += 1;
        Some(slot)
    }

    #[inline]
    fn take(&mut self, wish: Wish) -> Option<u32> {
        if !self.has_free() {
            return None;
        }
        match wish {
            Wish::Run(blocks) => self.free.take_first(blocks),
            Wish::Behind(slot, blocks) => {
                self.free.take_behind(slot).or_else(|| self.free.take_first(blocks))
            }
            Wish::Beside(slot) if slot < self.end => {
                self.free.take_beside(slot).or_else(|| self.free.take_first(1))
            }
            Wish::Beside(_) => self.free.take_first(1),
        }
    }

    /// Gives a slot to whoever has waited longest, if there is one for it. Those who wait belong together.
    fn grant(&mut self) -> Option<(SlotWaiter, u32)> {
        let waiting = self.waiting.len();
        let holds = match self.waiting.front()? {
            SlotWaiter::Entry(_) => 1,
            SlotWaiter::Job(_) => 0,
        };
        if self.free.is_empty() || self.held + holds > self.held_max {
            return None;
        }
        let waiter = self.waiting.pop()?;
        self.held += holds;
        let behind = self.last_granted.and_then(|last| self.free.take_behind(last));
        let slot = behind.or_else(|| self.free.take_first(waiting)).expect("one is free");
        self.last_granted = (waiting > 1).then_some(slot);
        Some((waiter, slot))
    }

    fn restore(&mut self, used: impl Fn(u32) -> bool) {
        self.held = (self.first..self.end).filter(|slot| used(*slot)).count() as u32;
        self.free.restore(used);
    }
}

impl Slots {
    /// Free slots from block `base` of the flash on: `total` in all, of which the last `staging` are
    /// for zones that are put together. So many of the others, the `spare` ones, are never held at once with the
    /// rest: they let newcomers choose, and take what is written again to fresh slots.
    pub fn new(total: u32, staging: u32, spare: u32, base: u64) -> Slots {
        let cached = total - staging;
        let cached_pool = Pool::new(0, cached, cached - spare);
        Slots { base, cached: cached_pool, staging: Pool::new(cached, total, staging) }
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

    /// A free slot for a newcomer, which holds it from now on. `None` when there is none, when as many are held as may
    /// be, or when somebody else waits already.
    #[inline]
    pub fn hold(&mut self, wish: Wish) -> Option<u32> {
        self.cached.hold(wish)
    }

    /// A free slot for a block that has one, and gives that back when it has moved to this one. `None` when there
    /// is none, or when somebody else waits already.
    #[inline]
    pub fn take(&mut self, wish: Wish) -> Option<u32> {
        self.cached.take(wish)
    }

    /// The same for a block of a zone that is put together.
    pub fn hold_staging(&mut self) -> Option<u32> {
        self.staging.hold(Wish::Run(1))
    }

    /// True when [`take`](Self::take) would give one.
    pub fn has_free(&self) -> bool {
        self.cached.has_free()
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
        self.cached.waiting.push(waiter);
    }

    /// Lets a block of a zone that is put together wait for a slot.
    pub fn wait_for_staging(&mut self, entry: u32) {
        self.staging.waiting.push(SlotWaiter::Entry(entry));
    }

    /// Lets an entry wait no longer.
    pub fn stop_waiting(&mut self, entry: u32) {
        self.cached.waiting.step_out(entry);
        self.staging.waiting.step_out(entry);
    }

    fn pool_of(&mut self, slot: u32) -> &mut Pool {
        match slot < self.staging.first {
            true => &mut self.cached,
            false => &mut self.staging,
        }
    }

    /// An entry does not hold the slot any more. Who waits may [get one](Self::grant) for it.
    #[inline]
    pub fn let_go(&mut self, slot: u32) {
        self.pool_of(slot).held -= 1;
    }

    /// Frees a slot. Who waits may [get it](Self::grant).
    #[inline]
    pub fn free(&mut self, slot: u32) {
        self.pool_of(slot).free.put(slot);
    }

    /// Who gets a slot now of those who wait, and which.
    #[inline]
    pub fn grant(&mut self) -> Option<(SlotWaiter, u32)> {
        self.cached.grant().or_else(|| self.staging.grant())
    }

    /// Who has waited longest, taken off the list: first of those who wait for a slot of a cached block.
    pub fn pop_waiting(&mut self) -> Option<SlotWaiter> {
        self.cached.waiting.pop().or_else(|| self.staging.waiting.pop())
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn spare_slots_are_for_what_is_written_again_and_not_for_newcomers() {
        let mut slots = Slots::new(10, 0, 4, 0);
        let held: Vec<u32> = (0..6).filter_map(|_| slots.hold(Wish::Run(1))).collect();
        assert_eq!(held.len(), 6);
        assert_eq!(slots.hold(Wish::Run(1)), None, "as many are held as may be");
        assert!(slots.has_free());
        let again: Vec<u32> = (0..4).filter_map(|_| slots.take(Wish::Run(1))).collect();
        assert_eq!(again.len(), 4);
        assert!(!slots.has_free() && slots.take(Wish::Run(1)).is_none());

        // A newcomer waits for both: a free slot, and that an entry gives its own up.
        slots.wait(SlotWaiter::Entry(7));
        slots.free(held[0]);
        assert_eq!(slots.grant(), None);
        slots.let_go(held[1]);
        assert_eq!(slots.grant(), Some((SlotWaiter::Entry(7), held[0])));
        assert_eq!(slots.hold(Wish::Run(1)), None);
        // What is written again waits for a slot alone.
        slots.wait(SlotWaiter::Job(1));
        assert_eq!(slots.grant(), None);
        slots.free(held[1]);
        assert_eq!(slots.grant(), Some((SlotWaiter::Job(1), held[1])));
    }
}
