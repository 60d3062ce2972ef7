//! Free slots, given out so that blocks which belong together lie together.

use crate::map::LruLists;
use crate::saved::SavedValue;
use alloc::vec;
use alloc::vec::Vec;

/// Most slots of a window: the bits of a word.
const WINDOW_SLOTS_MAX: u32 = u64::BITS;

/// How slots are divided into windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) struct Windows {
    /// Slots of each, at most [`WINDOW_SLOTS_MAX`].
    slots: u32,
    /// Slots of each that runs of blocks leave free where they can: for blocks of the window that are written again.
    /// With any no run goes on from one window to the next.
    reserve: u32,
}

impl Windows {
    /// The most slots, and none of them in reserve.
    pub const PLAIN: Windows = Windows { slots: WINDOW_SLOTS_MAX, reserve: 0 };

    /// Windows that each have room for a run of `blocks` and a reserve, where there is one.
    pub fn of_runs(blocks: u32, reserve: u32) -> Windows {
        match reserve {
            0 => Windows::PLAIN,
            _ => Windows { slots: (blocks + reserve).min(WINDOW_SLOTS_MAX), reserve },
        }
    }
}

/// The free slots among those from `first` to `end`.
///
/// Slots are divided into *windows*. Each has a word of bits, one for each free slot, and stands in the list of
/// the longest run of free slots that it has. So the best place for a run of blocks is found at once:
/// a window whose longest run is as long as the blocks and a reserve need, or hardly longer.
#[derive(Debug, SavedValue)]
pub(super) struct FreeSlots {
    first: u32,
    end: u32,
    division: Windows,
    /// By window: a bit for each free slot.
    free: Vec<u64>,
    /// By window: its longest run of free slots; 0 of one that is full.
    longest: Vec<u8>,
    /// By window: the list that it is in, 0 for none. It is that of its longest run, but for the windows of `changing`.
    listed: Vec<u8>,
    /// The windows by their longest run. The one that changed last is the first to be taken from.
    windows: LruLists,
    /// A bit for each list that is not empty, by its number.
    lists: u128,
    /// The two windows whose longest run changed last, the last one behind the other. They are put into their lists
    /// when others change: most slots are taken of one window and given back to another one by turns.
    changing: [Option<u32>; 2],
    /// The run that is being given out, one slot behind the other.
    giving: Option<Giving>,
    /// Free slots.
    count: u32,
}

/// A run of free slots that is given out from its first slot on, as long as no other slot of its window is taken: what
/// is left of it is known without a look at the bits.
#[derive(Clone, Copy, Debug, SavedValue)]
struct Giving {
    /// The slot that comes next, and the one behind the last.
    next: u32,
    end: u32,
    window: u32,
    /// The longest of the other runs of its window.
    others: u8,
}

impl Giving {
    /// Takes note of a slot of some window that has become free, in a run of so many. False where it adjoins this run,
    /// of which nothing is known any more.
    #[inline]
    fn note_free(&mut self, slot: u32, window: u32, run: u8) -> bool {
        if window != self.window {
            return true;
        }
        self.others = self.others.max(run);
        slot + 1 != self.next && slot != self.end
    }
}

/// A list for each length that a longest run may have.
const LISTS: usize = WINDOW_SLOTS_MAX as usize + 1;

impl FreeSlots {
    /// All slots from `first` to `end` are free.
    pub fn new(first: u32, end: u32, division: Windows) -> FreeSlots {
        let windows = (end - first).div_ceil(division.slots) as usize;
        let mut slots = FreeSlots {
            first,
            end,
            division,
            free: vec![0; windows],
            longest: vec![0; windows],
            listed: vec![0; windows],
            windows: LruLists::new(LISTS),
            lists: 0,
            changing: [None; 2],
            giving: None,
            count: 0,
        };
        slots.restore(|_| false);
        slots
    }

    /// Makes exactly the slots for which `used` holds taken ones.
    pub fn restore(&mut self, used: impl Fn(u32) -> bool) {
        self.listed.fill(0);
        self.windows = LruLists::new(LISTS);
        self.lists = 0;
        self.changing = [None; 2];
        self.giving = None;
        self.count = 0;
        // The first window comes first in its list.
        for window in (0..self.free.len() as u32).rev() {
            let start = self.first + window * self.division.slots;
            let slots = start..self.end.min(start.saturating_add(self.division.slots));
            let bits = slots.filter(|slot| !used(*slot)).map(|slot| 1 << (slot - start));
            let bits: u64 = bits.sum();
            self.free[window as usize] = bits;
            self.count += bits.count_ones();
            self.longest[window as usize] = longest_run(bits) as u8;
            self.list(window);
        }
    }

    /// True when no slot is free.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A slot for the first of so many blocks that belong together: a window that has room for all of them and the
    /// reserve, and the least of such, or the one with most room.
    pub fn take_first(&mut self, blocks: u32) -> Option<u32> {
        for window in core::mem::take(&mut self.changing).into_iter().flatten() {
            self.list(window);
        }
        let Windows { slots, reserve } = self.division;
        let blocks = blocks.clamp(1, slots);
        let wanted = (blocks + reserve).min(slots);
        let enough = self.lists >> wanted << wanted;
        let list = match enough {
            0 => (u128::BITS - 1).checked_sub(self.lists.leading_zeros())?,
            _ => enough.trailing_zeros(),
        };
        let window = self.windows.newest(list as usize)?;
        let free = self.free[window as usize];
        let run = blocks.min(list);
        let at = starts_of_runs(free, run).trailing_zeros();
        Some(self.take_with_those_behind(window, at))
    }

    /// Takes a slot whose neighbours behind it are likely to be taken next.
    fn take_with_those_behind(&mut self, window: u32, at: u32) -> u32 {
        let free = self.free[window as usize];
        let length = (free >> at).trailing_ones();
        let own = (u64::MAX >> (u64::BITS - length)) << at;
        let next = self.first + window * self.division.slots + at;
        let others = longest_run(free & !own) as u8;
        self.giving = Some(Giving { next, end: next + length, window, others });
        self.take_given().expect("a run is given out")
    }

    /// Takes the next slot of the run that is being given out; none where none is.
    // The run is changed where it is. A copy of it would be read in one piece just after `next` was written, and the
    // processor would wait.
    #[inline]
    fn take_given(&mut self) -> Option<u32> {
        let giving = self.giving.as_mut()?;
        let (slot, end, window) = (giving.next, giving.end, giving.window);
        giving.next += 1;
        let longest = giving.others.max((end - giving.next) as u8);
        if giving.next == end {
            self.giving = None;
        }
        self.free[window as usize] &= !(1 << (slot - self.first - window * self.division.slots));
        self.count -= 1;
        if longest < self.longest[window as usize] {
            self.changes(window, longest);
        }
        Some(slot)
    }

    /// The slot behind another one, if it is free.
    pub fn take_behind(&mut self, slot: u32) -> Option<u32> {
        let next = slot + 1;
        if self.giving.as_ref().is_some_and(|giving| giving.next == next) {
            return self.take_given();
        }
        if next >= self.end {
            return None;
        }
        let (window, at) = self.place_of(next);
        let goes_on = at > 0 || self.division.reserve == 0;
        let is_free = goes_on && self.free[window as usize] >> at & 1 == 1;
        is_free.then(|| self.take_with_those_behind(window, at))
    }

    /// True when both slots are of one window.
    pub fn is_one_window(&self, a: u32, b: u32) -> bool {
        self.place_of(a).0 == self.place_of(b).0
    }

    /// A slot of the window of another one: the nearest one behind it, else before it.
    pub fn take_beside(&mut self, slot: u32) -> Option<u32> {
        let (window, at) = self.place_of(slot);
        let free = self.free[window as usize];
        let behind = free >> at << at;
        match (free, behind) {
            (0, _) => None,
            (_, 0) => Some(self.take(window, u64::BITS - 1 - free.leading_zeros())),
            _ => Some(self.take(window, behind.trailing_zeros())),
        }
    }

    /// The slot is free again.
    pub fn put(&mut self, slot: u32) {
        let (window, at) = self.place_of(slot);
        debug_assert!(self.free[window as usize] >> at & 1 == 0, "slot {slot} is free already");
        let free = self.free[window as usize] | 1 << at;
        self.free[window as usize] = free;
        self.count += 1;
        // No run but that of the slot has become longer.
        let run = run_around(free, at) as u8;
        if self.giving.as_mut().is_some_and(|giving| !giving.note_free(slot, window, run)) {
            self.giving = None;
        }
        if run > self.longest[window as usize] {
            self.changes(window, run);
        }
    }

    /// The window of a slot, and which of its slots it is.
    #[inline]
    fn place_of(&self, slot: u32) -> (u32, u32) {
        let at = slot - self.first;
        (at / self.division.slots, at % self.division.slots)
    }

    fn take(&mut self, window: u32, at: u32) -> u32 {
        if self.giving.as_ref().is_some_and(|giving| giving.window == window) {
            self.giving = None;
        }
        let before = self.free[window as usize];
        let free = before & !(1 << at);
        self.free[window as usize] = free;
        self.count -= 1;
        let longest = u32::from(self.longest[window as usize]);
        // Where the slot was of a shorter run, or another one is as long, nothing changes.
        if run_around(before, at) == longest && starts_of_runs(free, longest) == 0 {
            let shorter = longest - 1;
            let is_shorter = shorter > 0 && starts_of_runs(free, shorter) != 0;
            let longest = if is_shorter { shorter } else { longest_run(free) };
            self.changes(window, longest as u8);
        }
        self.first + window * self.division.slots + at
    }

    /// The longest run of a window is another one now.
    #[inline]
    fn changes(&mut self, window: u32, longest: u8) {
        self.longest[window as usize] = longest;
        let [before, last] = &mut self.changing;
        if *last == Some(window) {
            return;
        }
        let before = core::mem::replace(before, last.replace(window));
        if let Some(before) = before.filter(|before| *before != window) {
            self.list(before);
        }
    }

    /// Puts a window into the list of its longest run, as the one that changed last.
    fn list(&mut self, window: u32) {
        let (from, to) = (self.listed[window as usize], self.longest[window as usize]);
        if from > 0 {
            self.windows.remove(usize::from(from), window);
            if self.windows.newest(usize::from(from)).is_none() {
                self.lists &= !(1 << from);
            }
        }
        self.listed[window as usize] = to;
        if to > 0 {
            self.windows.push_newest(usize::from(to), window);
            self.lists |= 1 << to;
        }
    }
}

/// How many set bits adjoin at most.
#[inline]
fn longest_run(bits: u64) -> u32 {
    if bits == u64::MAX {
        return u64::BITS;
    }
    // Where runs of 1, 2, 4 slots and so on start; then as many more as go on behind the longest of them.
    let mut starts = [bits; 6];
    for power in 1..starts.len() {
        let shorter = starts[power - 1];
        starts[power] = shorter & shorter >> (1 << (power - 1));
    }
    let (mut longest, mut of_longest) = (0, u64::MAX);
    for (power, starts) in starts.into_iter().enumerate().rev() {
        let longer = of_longest & starts >> longest;
        if longer != 0 {
            (longest, of_longest) = (longest + (1 << power), longer);
        }
    }
    longest
}

/// How many set bits adjoin around a set one.
#[inline]
fn run_around(bits: u64, at: u32) -> u32 {
    let behind = (bits >> at).trailing_ones();
    let before = (bits << (u64::BITS - 1 - at)).leading_ones();
    before + behind - 1
}

/// A bit for each place from which on so many set bits adjoin, 1 to 64.
#[inline]
fn starts_of_runs(bits: u64, length: u32) -> u64 {
    let mut starts = bits;
    let mut known = 1;
    while known < length {
        let step = known.min(length - known);
        starts &= starts >> step;
        known += step;
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn runs_of_bits_are_found() {
        assert_eq!([0, 1, 0b1011, u64::MAX, u64::MAX >> 1].map(longest_run), [0, 1, 2, 64, 63]);
        assert_eq!(starts_of_runs(0b1110_1100, 2), 0b0110_0100);
        assert_eq!(starts_of_runs(0b1110_1100, 3), 0b0010_0000);
        let mut rng = Rng::new(11, 0);
        for round in 0..2000 {
            // Of any density.
            let bits = (0..round % 6).fold(rng.next_u64(), |bits, _| bits | rng.next_u64());
            let naive = (1..=64)
                .filter(|length| {
                    (0..=64 - length).any(|at| (bits >> at).trailing_ones() >= *length)
                })
                .max();
            assert_eq!(longest_run(bits), naive.unwrap_or(0), "{bits:b}");
            let length = 1 + round % 64;
            let starts = (0..64)
                .filter(|at| (bits >> at).trailing_ones() >= length)
                .map(|at| 1 << at)
                .sum::<u64>();
            assert_eq!(starts_of_runs(bits, length), starts, "{bits:b} {length}");
        }
    }

    #[test]
    fn a_run_takes_the_least_room_that_is_enough() {
        let mut slots = FreeSlots::new(10, 10 + 4 * 64, Windows::PLAIN);
        let run = |slots: &mut FreeSlots, blocks: u32| {
            let mut last = slots.take_first(blocks).expect("a free slot");
            let first = last;
            (1..blocks).for_each(|_| last = slots.take_behind(last).expect("the slot behind"));
            first
        };
        assert_eq!([40, 24, 16, 48].map(|blocks| run(&mut slots, blocks)), [10, 50, 74, 90]);
        assert_eq!(slots.take_first(64), Some(138));
        assert_eq!(slots.take_first(63), Some(139), "of the run that has begun");
        assert_eq!(slots.take_beside(20), None, "its window is full");
        assert_eq!(slots.take_beside(150), Some(150));
        assert_eq!(slots.take_behind(201), Some(202), "of the next window");
        // The longest run, where none is as long.
        assert_eq!(slots.take_first(64), Some(203));
    }

    #[test]
    fn runs_leave_a_reserve_where_they_can_and_end_with_their_window() {
        let mut slots = FreeSlots::new(0, 30, Windows::of_runs(8, 2));
        let run = |slots: &mut FreeSlots, blocks: u32| {
            let first = slots.take_first(blocks).expect("a free slot");
            let behind = (first..).take_while(|slot| slots.take_behind(*slot).is_some()).take(7);
            (first, behind.count())
        };
        assert_eq!([8, 8].map(|blocks| run(&mut slots, blocks)), [(0, 7), (10, 7)]);
        // The least run that leaves two: that of the last window, for the others have two left.
        assert_eq!(slots.take_first(1), Some(20));
        assert_eq!(
            (slots.take_beside(3), slots.take_beside(3), slots.take_beside(3)),
            (Some(8), Some(9), None)
        );
        assert_eq!(slots.take_behind(19), None, "of the next window");
        assert!(slots.is_one_window(10, 19) && !slots.is_one_window(9, 10));
        // Nothing leaves as much any more.
        let rest: Vec<u32> = core::iter::from_fn(|| slots.take_first(8)).collect();
        assert_eq!(rest.len(), 11);
    }

    #[test]
    fn each_slot_is_given_out_once() {
        let mut rng = Rng::new(7, 0);
        for division in [Windows::PLAIN, Windows::of_runs(32, 4), Windows::of_runs(7, 1)] {
            let mut slots = FreeSlots::new(5, 205, division);
            let mut taken: Vec<u32> = Vec::new();
            for _ in 0..5000 {
                if rng.below(3) == 0 && !taken.is_empty() {
                    let slot = taken.swap_remove(rng.below(taken.len() as u64) as usize);
                    slots.put(slot);
                    continue;
                }
                let near = 5 + rng.below(200) as u32;
                let slot = match (rng.below(4), taken.last()) {
                    (0, _) => slots.take_first(1 + rng.below(80) as u32),
                    (1, _) => slots.take_beside(near),
                    (2, Some(last)) => slots.take_behind(*last),
                    _ => slots.take_behind(near),
                };
                if let Some(slot) = slot {
                    assert!((5..205).contains(&slot) && !taken.contains(&slot), "slot {slot}");
                    taken.push(slot);
                }
                assert_eq!(slots.is_empty(), taken.len() == 200);
                // However the longest run of a window was found, it is that of its bits.
                let longest = slots.free.iter().map(|free| longest_run(*free) as u8);
                assert!(longest.eq(slots.longest.iter().copied()), "{:?}", slots.giving);
            }
            let mut others = FreeSlots::new(5, 205, division);
            others.restore(|slot| taken.contains(&slot));
            let rest: Vec<u32> = core::iter::from_fn(|| others.take_first(1)).collect();
            assert_eq!(rest.len() + taken.len(), 200);
            assert!(rest.iter().all(|slot| !taken.contains(slot)));
        }
    }
}
