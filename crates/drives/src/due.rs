//! Operations whose end is known and not yet reported.

use imbrex_core::disk::DiskOp;
use imbrex_core::saved::SavedValue;
use imbrex_core::units::Instant;
use std::collections::VecDeque;

/// Operations by the time they end; those that end together in the order they were entered.
///
/// A sorted queue: an operation entered later mostly ends later, so its place is found in a step
/// or two from the back.
#[derive(Default, SavedValue)]
pub struct Due {
    queue: VecDeque<(Instant, DiskOp)>,
}

impl Due {
    /// `op` ends at `at`.
    #[inline]
    pub fn push(&mut self, at: Instant, op: DiskOp) {
        if self.queue.back().is_none_or(|last| last.0 <= at) {
            return self.queue.push_back((at, op));
        }
        let later = self.queue.iter().rev().take_while(|item| item.0 > at);
        let index = self.queue.len() - later.count();
        self.queue.insert(index, (at, op));
    }

    /// An operation that has ended by `now`.
    #[inline]
    pub fn pop(&mut self, now: Instant) -> Option<DiskOp> {
        if self.queue.front()?.0 > now {
            return None;
        }
        self.queue.pop_front().map(|item| item.1)
    }

    /// When the next one ends.
    #[inline]
    pub fn next(&self) -> Option<Instant> {
        self.queue.front().map(|item| item.0)
    }
}
