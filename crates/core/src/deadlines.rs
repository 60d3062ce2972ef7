//! Which of many parts is due next, and when.

use crate::saved::SavedValue;
use crate::units::Instant;
use alloc::vec;
use alloc::vec::Vec;

/// No part is ever due so late.
const NEVER: Instant = Instant(u64::MAX);

/// One deadline for each of a fixed number of parts. The earliest is known at once, and a change costs the
/// logarithm of their number: a stack of a hundred disks looks at those with something to say alone.
#[derive(SavedValue)]
pub(crate) struct Deadlines {
    /// A tree in an array: the root is 1, the children of `n` are `2n` and `2n + 1`, each inner place has
    /// the earlier of its children, and the last half are the parts in their order.
    earliest: Vec<Instant>,
    /// The root, which is asked for most.
    first: Instant,
}

impl Deadlines {
    /// Of so many parts, each with the deadline `at`.
    pub fn new(parts: usize, at: Option<Instant>) -> Deadlines {
        let leaves = parts.next_power_of_two();
        let mut deadlines = Deadlines { earliest: vec![NEVER; 2 * leaves], first: NEVER };
        (0..parts).for_each(|part| deadlines.set(part, at));
        deadlines
    }

    fn leaves(&self) -> usize {
        self.earliest.len() / 2
    }

    /// The part is due at `at`, instead of at an instant set before; or never.
    #[inline]
    pub fn set(&mut self, part: usize, at: Option<Instant>) {
        let mut place = self.leaves() + part;
        let mut earliest = at.unwrap_or(NEVER);
        while self.earliest[place] != earliest {
            self.earliest[place] = earliest;
            if place == 1 {
                self.first = earliest;
                return;
            }
            earliest = earliest.min(self.earliest[place ^ 1]);
            place /= 2;
        }
    }

    /// When the part is due.
    #[inline]
    pub fn get(&self, part: usize) -> Option<Instant> {
        let at = self.earliest[self.leaves() + part];
        (at != NEVER).then_some(at)
    }

    /// The earliest deadline of all.
    #[inline]
    pub fn earliest(&self) -> Option<Instant> {
        (self.first != NEVER).then_some(self.first)
    }

    /// The first part from `from` on that is due by `now`.
    #[inline]
    pub fn first_due(&self, from: usize, now: Instant) -> Option<usize> {
        let leaves = self.leaves();
        if self.first > now || from >= leaves {
            return None;
        }
        let mut place = leaves + from;
        while self.earliest[place] > now {
            // Up from each right child, then to the right: everything before is done.
            while place % 2 == 1 {
                place /= 2;
            }
            if place == 0 {
                return None;
            }
            place += 1;
        }
        while place < leaves {
            place *= 2;
            if self.earliest[place] > now {
                place += 1;
            }
        }
        Some(place - leaves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn deadlines_agree_with_a_list() {
        let mut rng = Rng::new(3, 0);
        for parts in 1..=70 {
            let mut list: Vec<Option<Instant>> = vec![Some(Instant(5)); parts];
            let mut deadlines = Deadlines::new(parts, Some(Instant(5)));
            for _ in 0..400 {
                let part = rng.below(parts as u64) as usize;
                let at = Some(rng.below(20)).filter(|at| *at < 16).map(Instant);
                list[part] = at;
                deadlines.set(part, at);
                assert_eq!(deadlines.get(part), at);
                assert_eq!(deadlines.earliest(), list.iter().flatten().min().copied());
                let (from, now) = (rng.below(parts as u64 + 2) as usize, Instant(rng.below(16)));
                let is_due = |part: &usize| list[*part].is_some_and(|at| at <= now);
                let first = (from..parts).find(is_due);
                assert_eq!(deadlines.first_due(from, now), first, "{parts} parts, {list:?}");
            }
        }
    }
}
