//! Which regions of an array may differ between its members.
//!
//! A region is *marked* before it is written: what the array keeps says durably that its members may differ
//! there. After a crash the marked regions alone are compared. A region that nobody writes for a while is
//! *cleared* again, when what was written there is durable on all members.

use crate::saved::SavedValue;
use crate::units::{Duration, Instant};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::ops::RangeInclusive;

/// Marked regions from which on those that are not written are cleared at once.
const MARKED_MANY: usize = 256;
/// Marked regions at most, unless one request alone needs more.
pub const MARKED_MAX: usize = 1024;
/// A region that was not written for so long is cleared.
const CLEARED_AFTER: Duration = Duration::from_ms(1000);

#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
enum State {
    /// That it may differ is being made durable.
    Marking,
    Marked,
    /// What was written there is being made durable.
    Clearing,
}

#[derive(Clone, Copy, Debug, SavedValue)]
struct Region {
    state: State,
    /// Writes under way.
    writes: u32,
    last_write: Instant,
}

/// The marked regions.
#[derive(Debug, Default, SavedValue)]
pub struct Regions {
    marked: BTreeMap<u64, Region>,
    /// Regions that are to be marked.
    to_mark: Vec<u64>,
    /// Writes that wait, with their regions, the first one first.
    waiting: VecDeque<(u32, RangeInclusive<u64>)>,
}

impl Regions {
    /// A write to some regions wants to begin. False when it has to wait until they are marked:
    /// [`next_ready`](Self::next_ready) says when.
    pub fn enter(&mut self, write: u32, regions: RangeInclusive<u64>) -> bool {
        if self.waiting.is_empty() && self.is_marked(&regions) {
            self.begin(&regions);
            return true;
        }
        self.waiting.push_back((write, regions));
        self.want_marks();
        false
    }

    fn is_marked(&self, regions: &RangeInclusive<u64>) -> bool {
        let is_marked = |it: &u64| self.marked.get(it).is_some_and(|it| it.state != State::Marking);
        regions.clone().all(|region| is_marked(&region))
    }

    fn begin(&mut self, regions: &RangeInclusive<u64>) {
        for region in regions.clone() {
            let entry = self.marked.get_mut(&region).expect("a marked region");
            entry.state = State::Marked;
            entry.writes += 1;
        }
    }

    /// Marks what the first waiting writes need, as far as there is room.
    fn want_marks(&mut self) {
        for (at, (_, regions)) in self.waiting.iter().enumerate() {
            for region in regions.clone() {
                if self.marked.contains_key(&region) {
                    continue;
                }
                if self.marked.len() >= MARKED_MAX && at > 0 {
                    return;
                }
                let state = State::Marking;
                let last_write = Instant::ZERO;
                self.marked.insert(region, Region { state, writes: 0, last_write });
                self.to_mark.push(region);
            }
        }
    }

    /// Regions that must be recorded as marked, and durably so.
    pub fn take_to_mark(&mut self) -> Vec<u64> {
        core::mem::take(&mut self.to_mark)
    }

    /// True when some region must be recorded.
    pub fn has_to_mark(&self) -> bool {
        !self.to_mark.is_empty()
    }

    /// That regions may differ is durable.
    pub fn marked(&mut self, regions: &[u64]) {
        for region in regions {
            if let Some(entry) = self.marked.get_mut(region) {
                entry.state = State::Marked;
            }
        }
    }

    /// The next write that has waited and may begin.
    pub fn next_ready(&mut self) -> Option<u32> {
        let (_, regions) = self.waiting.front()?;
        if !self.is_marked(regions) {
            return None;
        }
        let (write, regions) = self.waiting.pop_front()?;
        self.begin(&regions);
        self.want_marks();
        Some(write)
    }

    /// Any write that waits: it comes to nothing.
    pub fn pop_waiting(&mut self) -> Option<u32> {
        self.waiting.pop_front().map(|(write, _)| write)
    }

    /// A write to some regions has ended.
    pub fn leave(&mut self, regions: RangeInclusive<u64>, now: Instant) {
        for region in regions {
            let entry = self.marked.get_mut(&region).expect("a marked region");
            entry.writes -= 1;
            entry.last_write = now;
        }
    }

    /// Takes a region for one that was marked before the array came up.
    pub fn restore(&mut self, region: u64) {
        let (state, last_write) = (State::Marked, Instant::ZERO);
        self.marked.insert(region, Region { state, writes: 0, last_write });
    }

    /// The regions that are recorded as marked, in ascending order.
    pub fn recorded(&self) -> impl Iterator<Item = u64> + '_ {
        self.marked.keys().copied().filter(|region| !self.to_mark.contains(region))
    }

    /// Begins to clear what nobody writes and nobody has written for a while; everything that is not
    /// written when `all`. When there are many, or somebody waits for room, the half that was not written for
    /// longest.
    pub fn begin_clearing(&mut self, now: Instant, all: bool) -> Vec<u64> {
        if self.marked.values().any(|region| region.state == State::Clearing) {
            return Vec::new();
        }
        let free = |region: &Region| region.state == State::Marked && region.writes == 0;
        let mut found: Vec<(Instant, u64)> = self
            .marked
            .iter()
            .filter(|(_, region)| free(region))
            .map(|(number, region)| (region.last_write, *number))
            .collect();
        found.sort_unstable();
        let is_pressed = self.marked.len() > MARKED_MANY;
        let oldest = found.len().div_ceil(2);
        let is_due = |(at, (last, _)): (usize, &(Instant, u64))| {
            all || is_pressed && at < oldest || now >= *last + CLEARED_AFTER
        };
        let due = found.iter().enumerate().filter(|it| is_due(*it));
        let due: Vec<u64> = due.map(|(_, (_, region))| *region).collect();
        for region in &due {
            self.marked.get_mut(region).expect("a marked region").state = State::Clearing;
        }
        due
    }

    /// What was written to regions is durable on all members. Returns those that are cleared: nobody has
    /// written them meanwhile.
    pub fn cleared(&mut self, regions: &[u64]) -> Vec<u64> {
        let is_cleared = |region: &&u64| {
            let entry = self.marked.get(region);
            entry.is_some_and(|it| it.state == State::Clearing)
        };
        let cleared: Vec<u64> = regions.iter().filter(is_cleared).copied().collect();
        for region in &cleared {
            self.marked.remove(region);
        }
        self.want_marks();
        cleared
    }

    /// What was to be cleared is not.
    pub fn not_cleared(&mut self) {
        for region in self.marked.values_mut() {
            if region.state == State::Clearing {
                region.state = State::Marked;
            }
        }
    }

    /// When a region is due to be cleared.
    pub fn due_at(&self) -> Option<Instant> {
        let free = self.marked.values().filter(|it| it.state == State::Marked && it.writes == 0);
        free.map(|region| region.last_write + CLEARED_AFTER).min()
    }

    /// True when no region is marked.
    pub fn are_clear(&self) -> bool {
        self.marked.is_empty()
    }

    /// True when some region is marked that nobody writes.
    pub fn can_clear(&self) -> bool {
        self.marked.values().any(|it| it.state == State::Marked && it.writes == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_written_when_it_is_marked_and_cleared_when_it_is_not_written() {
        let mut regions = Regions::default();
        assert!(!regions.enter(1, 3..=4) && !regions.enter(2, 4..=4));
        assert_eq!(regions.take_to_mark(), [3, 4]);
        assert_eq!(regions.next_ready(), None);
        regions.marked(&[3, 4]);
        assert_eq!((regions.next_ready(), regions.next_ready()), (Some(1), Some(2)));
        regions.leave(3..=4, Instant(5));
        assert_eq!(regions.begin_clearing(Instant(9), true), [3], "4 is written still");
        regions.leave(4..=4, Instant(6));
        assert!(regions.enter(3, 3..=3), "it is marked until it is cleared");
        assert_eq!(regions.cleared(&[3]), []);
        regions.leave(3..=3, Instant(7));
        let due = Instant(7) + CLEARED_AFTER;
        assert_eq!(regions.begin_clearing(due, false), [4, 3]);
        assert_eq!(regions.cleared(&[4, 3]), [4, 3]);
        assert!(regions.are_clear() && regions.due_at().is_none());
    }
}
