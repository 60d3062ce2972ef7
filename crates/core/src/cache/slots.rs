//! Which flash slots are free, and who waits for one.

use super::free_slots::{FreeSlots, Windows};
use super::waiting_line::WaitingLine;
use crate::extent::Extent;
use crate::saved::SavedValue;
use crate::units::Lba;

/// Blocks of a *group*, from an address that is a multiple of them on. They are kept in one window where there are slots
/// in reserve: a request of 128 KiB is of one group or two.
const GROUP_BLOCKS: u32 = 32;
/// Blocks that lie together from which on they take a new place, one behind the other, when they are written again. Fewer
/// stay among their neighbours.
pub(super) const RUN_MIN: u32 = 8;
/// Eighths of the spare slots that windows keep in reserve. With more, large writes find fewer free windows; with less, more
/// blocks find no slot where their group is.
const RESERVE_EIGHTHS: u64 = 5;
/// Most slots of a window that are kept in reserve.
const RESERVE_MAX: u32 = 16;

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
    /// Blocks are kept together by groups.
    has_groups: bool,
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
    fn new(first: u32, end: u32, held_max: u32, reserve: u32) -> Pool {
        let free = FreeSlots::new(first, end, Windows::of_runs(GROUP_BLOCKS, reserve));
        Pool {
            first,
            end,
            free,
            has_groups: reserve > 0,
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
                let stays = self.has_groups && blocks < RUN_MIN && slot < self.end;
                let behind = self.free.take_behind(slot);
                let near = match behind {
                    None if stays => self.free.take_beside(slot),
                    behind => behind,
                };
                near.or_else(|| self.free.take_first(blocks))
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
        let cached_pool = Pool::new(0, cached, cached - spare, 0);
        Slots { base, cached: cached_pool, staging: Pool::new(cached, total, staging, 0) }
    }

    /// The same slots, all free, for blocks that never are written over where they lie. Groups of blocks are kept together: some
    /// of the spare slots are spread over the windows of groups, and the others are windows for what is written in runs.
    pub fn in_groups(self) -> Slots {
        let Pool { end, held_max, .. } = self.cached;
        let of_group = u64::from(end - held_max) * u64::from(GROUP_BLOCKS);
        let reserve = of_group * RESERVE_EIGHTHS / (8 * u64::from(held_max.max(1)));
        let reserve = reserve.min(u64::from(RESERVE_MAX)) as u32;
        Slots { cached: Pool::new(0, end, held_max, reserve), ..self }
    }

    /// Of so many blocks from an address on, those that are kept together.
    #[inline]
    pub fn together(&self, lba: Lba, blocks: u64) -> u32 {
        let group = u64::from(GROUP_BLOCKS);
        match self.cached.has_groups {
            true => blocks.min(group - lba.0 % group) as u32,
            false => blocks.min(u64::from(u32::MAX)) as u32,
        }
    }

    /// True of an address with which a group begins.
    #[inline]
    pub fn begins_group(&self, lba: Lba) -> bool {
        self.cached.has_groups && lba.0.is_multiple_of(u64::from(GROUP_BLOCKS))
    }

    /// Where a newcomer should lie with which few others come, none of them before it: where others of its group are,
    /// by where blocks have their slots. One of a new group gets a window, which has room for those to come.
    pub fn wish_of_newcomer(
        &self,
        lba: Lba,
        blocks: u32,
        slot_of: impl Fn(Lba) -> Option<u32>,
    ) -> Wish {
        if !self.cached.has_groups {
            return Wish::Run(blocks);
        }
        // The nearest ones first.
        let mut others = (1..u64::from(GROUP_BLOCKS)).map(|distance| Lba(lba.0 ^ distance));
        others.find_map(slot_of).map_or(Wish::Run(GROUP_BLOCKS), Wish::Beside)
    }

    /// Where a block should lie that is written again with few others and lies in its `own` slot, by where blocks have
    /// their slots.
    #[inline]
    pub fn wish_of_rewritten(
        &self,
        lba: Lba,
        own: u32,
        slot_of: impl Fn(Lba) -> Option<u32>,
    ) -> Wish {
        // The other one of its pair.
        let neighbour = slot_of(Lba(lba.0 ^ 1)).unwrap_or(own);
        if !self.cached.has_groups || self.is_one_window(own, neighbour) {
            return Wish::Beside(neighbour);
        }
        // One of the two has found no place where their group is. The next pair says which.
        let third = slot_of(Lba(lba.0 ^ 2)).unwrap_or(own);
        Wish::Beside(if self.is_one_window(third, neighbour) { neighbour } else { own })
    }

    /// True when both are slots of one window of cached blocks.
    fn is_one_window(&self, a: u32, b: u32) -> bool {
        let is_cached = |slot: u32| slot < self.cached.end;
        is_cached(a) && is_cached(b) && self.cached.free.is_one_window(a, b)
    }

    /// Slots of cached blocks beyond those that may be held at once.
    pub fn spare(&self) -> u32 {
        self.cached.end - self.cached.held_max
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
    #[inline]
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
    use crate::rng::Rng;
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

    /// Blocks of a cache that holds all of its device, each in a slot. What a slot held is free when a flush has come.
    struct Model {
        slots: Slots,
        of_block: Vec<u32>,
        awaits_flush: Vec<u32>,
        unflushed_max: usize,
    }

    const NONE: u32 = u32::MAX;

    impl Model {
        fn new(blocks: u32, spare: u32, unflushed_max: usize) -> Model {
            let slots = Slots::new(blocks + spare, 0, spare, 0).in_groups();
            let of_block = alloc::vec![NONE; blocks as usize];
            Model { slots, of_block, awaits_flush: Vec::new(), unflushed_max }
        }

        fn slot_of(&self, lba: Lba) -> Option<u32> {
            self.of_block.get(lba.0 as usize).copied().filter(|slot| *slot != NONE)
        }

        /// Writes blocks as the cache does. Answers in how many runs they lie.
        fn write(&mut self, first: u64, blocks: u64) -> usize {
            let mut last: Option<u32> = None;
            let mut taken = Vec::new();
            for lba in (first..first + blocks).map(Lba) {
                let own = self.of_block[lba.0 as usize];
                let rest = self.slots.together(lba, first + blocks - lba.0);
                let wish = match last.filter(|_| !self.slots.begins_group(lba)) {
                    _ if own != NONE && blocks < u64::from(RUN_MIN) => {
                        self.slots.wish_of_rewritten(lba, own, |lba| self.slot_of(lba))
                    }
                    Some(slot) => Wish::Behind(slot, rest),
                    None if rest < RUN_MIN && own == NONE => {
                        self.slots.wish_of_newcomer(lba, rest, |lba| self.slot_of(lba))
                    }
                    None => Wish::Run(rest),
                };
                let slot = match own {
                    NONE => self.slots.hold(wish),
                    _ => self.slots.take(wish),
                };
                last = slot;
                taken.push((lba, slot.expect("a slot is free")));
            }
            for (lba, slot) in &taken {
                match core::mem::replace(&mut self.of_block[lba.0 as usize], *slot) {
                    NONE => {}
                    old => self.awaits_flush.push(old),
                }
            }
            if self.awaits_flush.len() >= self.unflushed_max {
                self.awaits_flush.drain(..).for_each(|slot| self.slots.free(slot));
            }
            taken.chunk_by(|(_, a), (_, b)| a + 1 == *b).count()
        }

        /// In how many stretches blocks lie whose gaps are short.
        fn stretches(&self, first: u64, blocks: u64) -> usize {
            let blocks = first as usize..(first + blocks) as usize;
            let mut slots: Vec<u32> = self.of_block[blocks].to_vec();
            slots.sort_unstable();
            slots.chunk_by(|a, b| b - a <= 4).count()
        }

        /// Writes all blocks one by one, in any order.
        fn use_all(&mut self, rng: &mut Rng) {
            let mut order: Vec<u64> = (0..self.of_block.len() as u64).collect();
            for at in (1..order.len()).rev() {
                order.swap(at, rng.below(at as u64 + 1) as usize);
            }
            order.iter().for_each(|lba| assert_eq!(self.write(*lba, 1), 1));
        }
    }

    #[test]
    fn blocks_of_a_group_stay_together_whatever_is_written_again() {
        const BLOCKS: u64 = 16 << 10;
        const GROUP: u64 = GROUP_BLOCKS as u64;
        let mut rng = Rng::new(5, 0);
        // Filled in sequence, or in any order.
        for is_filled in [true, false] {
            let mut model = Model::new(BLOCKS as u32, BLOCKS as u32 / 4, BLOCKS as usize / 16);
            if is_filled {
                (0..BLOCKS / 256).for_each(|at| assert_eq!(model.write(at * 256, 256), 8));
            }
            for round in 0..6 {
                model.use_all(&mut rng);
                let reads = (0..BLOCKS / GROUP).map(|group| model.stretches(group * GROUP, GROUP));
                let reads: usize = reads.sum();
                let groups = BLOCKS / GROUP;
                assert!(reads as u64 <= 2 * groups + groups / 4, "{is_filled}, {round}: {reads}");
            }
            let groups = BLOCKS / GROUP;
            let writes = (0..2 * groups).map(|_| model.write(rng.below(groups) * GROUP, GROUP));
            let writes: usize = writes.sum();
            assert!(writes as u64 <= 3 * groups, "{writes} for {}", 2 * groups);
        }
    }
}
