//! Operations whose end is known and not yet reported.

use imbrex_core::disk::DiskOp;
use imbrex_core::units::Instant;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

struct Item {
    at: Instant,
    /// Order of entry, which decides between equal times.
    sequence: u64,
    op: DiskOp,
}

impl PartialEq for Item {
    fn eq(&self, other: &Item) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Item {}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Item) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Item {
    /// The earliest is the greatest, as the heap wants it.
    fn cmp(&self, other: &Item) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

/// Operations by the time they end; those that end together in the order they were entered.
#[derive(Default)]
pub struct Due {
    heap: BinaryHeap<Item>,
    sequence: u64,
}

impl Due {
    /// `op` ends at `at`.
    #[inline]
    pub fn push(&mut self, at: Instant, op: DiskOp) {
        self.sequence += 1;
        let sequence = self.sequence;
        self.heap.push(Item { at, sequence, op });
    }

    /// An operation that has ended by `now`.
    #[inline]
    pub fn pop(&mut self, now: Instant) -> Option<DiskOp> {
        if self.heap.peek()?.at > now {
            return None;
        }
        self.heap.pop().map(|item| item.op)
    }

    /// When the next one ends.
    #[inline]
    pub fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|item| item.at)
    }
}
