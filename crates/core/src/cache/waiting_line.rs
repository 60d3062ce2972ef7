//! Who waits for a slot, in the order in which they came.

use super::slots::SlotWaiter;
use crate::saved::SavedValue;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The place of an entry that does not wait.
const NOWHERE: u64 = u64::MAX;

/// A line from whose middle an entry may step out. Everything takes constant time, averaged over those who come,
/// and nothing allocates once the longest line and the highest number of an entry were seen.
#[derive(Debug, Default, SavedValue)]
pub(super) struct WaitingLine {
    /// None where somebody stepped out; never at the front.
    line: VecDeque<Option<SlotWaiter>>,
    /// Places that have left the front so far.
    left: u64,
    /// Where each entry stands, counted from the first place that ever was.
    place_of: Vec<u64>,
    waiting: u32,
}

impl WaitingLine {
    /// How many wait.
    pub fn len(&self) -> u32 {
        self.waiting
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Who has waited longest.
    #[inline]
    pub fn front(&self) -> Option<SlotWaiter> {
        self.line.front().copied().flatten()
    }

    /// Adds somebody who does not wait.
    pub fn push(&mut self, waiter: SlotWaiter) {
        if let SlotWaiter::Entry(entry) = waiter {
            let place = self.left + self.line.len() as u64;
            let entry = entry as usize;
            if entry >= self.place_of.len() {
                self.place_of.resize(entry + 1, NOWHERE);
            }
            self.place_of[entry] = place;
        }
        self.line.push_back(Some(waiter));
        self.waiting += 1;
    }

    /// Takes out who has waited longest.
    pub fn pop(&mut self) -> Option<SlotWaiter> {
        let waiter = self.front()?;
        if let SlotWaiter::Entry(entry) = waiter {
            self.place_of[entry as usize] = NOWHERE;
        }
        self.line[0] = None;
        self.close_up();
        Some(waiter)
    }

    /// Takes an entry out, wherever it stands, if it waits here.
    pub fn step_out(&mut self, entry: u32) {
        let Some(place) = self.place_of.get_mut(entry as usize) else { return };
        let place = core::mem::replace(place, NOWHERE);
        if place != NOWHERE {
            self.line[(place - self.left) as usize] = None;
            self.close_up();
        }
    }

    /// One has left: whoever waits next comes to the front.
    fn close_up(&mut self) {
        self.waiting -= 1;
        while self.line.front() == Some(&None) {
            self.line.pop_front();
            self.left += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn a_line_is_a_list_from_which_entries_are_searched_out() {
        let (mut line, mut list) = (WaitingLine::default(), Vec::new());
        let mut rng = Rng::new(1, 2);
        for _ in 0..20_000 {
            let entry = rng.below(40) as u32;
            match rng.below(5) {
                0 => {
                    line.push(SlotWaiter::Job(entry));
                    list.push(SlotWaiter::Job(entry));
                }
                1 | 2 if !list.contains(&SlotWaiter::Entry(entry)) => {
                    line.push(SlotWaiter::Entry(entry));
                    list.push(SlotWaiter::Entry(entry));
                }
                3 => {
                    line.step_out(entry);
                    list.retain(|waiter| *waiter != SlotWaiter::Entry(entry));
                }
                _ => {
                    let expected = (!list.is_empty()).then(|| list.remove(0));
                    assert_eq!(line.front(), expected);
                    assert_eq!(line.pop(), expected);
                }
            }
            assert_eq!((line.len() as usize, line.is_empty()), (list.len(), list.is_empty()));
        }
    }
}
