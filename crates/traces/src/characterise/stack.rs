//! The LRU stack: how many blocks were accessed since the last access to one of them.
//!
//! Each access gets the next position; a block's mark moves from its last position to the new one. The marks behind the last
//! position are the blocks accessed since. They are bits, with sums of 512 of them in a Fenwick tree, so the whole fits the
//! processor's caches.
//!
//! A cache of n blocks holds the blocks of the n newest marks. One that is forgotten, as a trim does it, leaves its mark as a
//! *hole*: the caches that had the block have room for one more, the smaller ones do not. Whatever misses next takes that room,
//! so the newest hole is filled, and the marks before it stay where they are. When the block comes from a mark before the hole,
//! the caches that hit it keep their room: the hole moves to where the block was.

use std::collections::BinaryHeap;

/// Positions whose marks are summed together.
const SPAN: usize = 512;
const WORD: usize = 64;

/// Positions of blocks in the order of their last accesses.
pub(super) struct Stack {
    marks: Vec<u64>,
    /// Fenwick tree over the number of marks in each span.
    sums: Vec<u32>,
    next: usize,
    /// Blocks and holes.
    marked: u32,
    /// Positions of the holes, the newest first.
    holes: BinaryHeap<u32>,
}

impl Stack {
    /// A stack with room for `positions` accesses before it must be packed.
    pub(super) fn new(positions: usize) -> Self {
        let spans = positions.div_ceil(SPAN).max(1);
        Self {
            marks: vec![0; spans * SPAN / WORD],
            sums: vec![0; spans + 1],
            next: 0,
            marked: 0,
            holes: BinaryHeap::new(),
        }
    }

    /// True if the next access needs a [`pack`](Self::pack) first.
    pub(super) fn is_full(&self) -> bool {
        self.next == self.marks.len() * WORD
    }

    /// The position of a first access, or of the first since the block was forgotten.
    pub(super) fn push(&mut self) -> u32 {
        if let Some(hole) = self.holes.pop() {
            self.unmark(hole);
        }
        self.mark_next()
    }

    /// Number of blocks and holes newer than the block at `position`, and the position of an access to it now.
    pub(super) fn touch(&mut self, position: u32) -> (u32, u32) {
        let since = self.marked - self.rank(position);
        let newest = self.holes.peek_mut().filter(|hole| **hole > position);
        let filled = newest.map_or(position, |mut hole| std::mem::replace(&mut *hole, position));
        self.unmark(filled);
        (since, self.mark_next())
    }

    /// Makes the place of the block at `position` a hole.
    pub(super) fn forget(&mut self, position: u32) {
        self.holes.push(position);
    }

    fn mark_next(&mut self) -> u32 {
        let position = self.next;
        self.marks[position / WORD] |= 1 << (position % WORD);
        let mut span = position / SPAN + 1;
        while span < self.sums.len() {
            self.sums[span] += 1;
            span += span & span.wrapping_neg();
        }
        self.next += 1;
        self.marked += 1;
        position as u32
    }

    fn unmark(&mut self, position: u32) {
        let position = position as usize;
        self.marks[position / WORD] &= !(1 << (position % WORD));
        let mut span = position / SPAN + 1;
        while span < self.sums.len() {
            self.sums[span] -= 1;
            span += span & span.wrapping_neg();
        }
        self.marked -= 1;
    }

    /// Number of marks up to `position` and there.
    fn rank(&self, position: u32) -> u32 {
        let position = position as usize;
        let mut upto = 0;
        let mut span = position / SPAN;
        while span > 0 {
            upto += self.sums[span];
            span &= span - 1;
        }
        let word = position / WORD;
        let first = position / SPAN * (SPAN / WORD);
        for marks in &self.marks[first..word] {
            upto += marks.count_ones();
        }
        upto + (self.marks[word] & (u64::MAX >> (WORD - 1 - position % WORD))).count_ones()
    }

    /// Leaves no marks but the holes and those at `positions`.
    pub(super) fn keep(&mut self, positions: impl Iterator<Item = u32>) {
        self.marks.fill(0);
        for position in positions.chain(self.holes.iter().copied()) {
            self.marks[position as usize / WORD] |= 1 << (position as usize % WORD);
        }
        self.sum_up();
    }

    /// Gives the blocks, whose positions these are, the first positions in the order of those they have. There is room for
    /// as many accesses then as there are blocks.
    pub(super) fn pack<'a>(&mut self, positions: impl Iterator<Item = &'a mut u32>) {
        for position in positions {
            *position = self.rank(*position) - 1;
        }
        let holes = std::mem::take(&mut self.holes).into_iter();
        self.holes = holes.map(|position| self.rank(position) - 1).collect();
        let marked = self.marked as usize;
        self.next = marked;
        self.marks.fill(0);
        self.marks[..marked / WORD].fill(u64::MAX);
        if !marked.is_multiple_of(WORD) {
            self.marks[marked / WORD] = u64::MAX >> (WORD - marked % WORD);
        }
        if 2 * marked > self.marks.len() * WORD {
            self.marks.resize(2 * self.marks.len(), 0);
        }
        self.sum_up();
    }

    /// Counts the marks again.
    fn sum_up(&mut self) {
        let in_span = |marks: &[u64]| marks.iter().map(|marks| marks.count_ones()).sum::<u32>();
        self.sums.clear();
        self.sums.push(0);
        self.sums.extend(self.marks.chunks(SPAN / WORD).map(in_span));
        self.marked = self.sums.iter().sum();
        for span in 1..self.sums.len() {
            let above = span + (span & span.wrapping_neg());
            if above < self.sums.len() {
                self.sums[above] += self.sums[span];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_a_list() {
        let mut stack = Stack::new(1024);
        let mut positions: Vec<(usize, u32)> = Vec::new();
        let mut list: Vec<usize> = Vec::new();
        let mut state = 5u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            let block = (state >> 33) as usize % 300 * ((state >> 60) as usize % 3) / 2;
            if stack.is_full() {
                stack.pack(positions.iter_mut().map(|known| &mut known.1));
            }
            let expected = list.iter().rev().position(|&other| other == block);
            list.retain(|&other| other != block);
            list.push(block);
            let found = match positions.iter_mut().find(|known| known.0 == block) {
                Some((_, position)) => {
                    let (since, now) = stack.touch(*position);
                    *position = now;
                    Some(since as usize)
                }
                None => {
                    positions.push((block, stack.push()));
                    None
                }
            };
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_full_stack_of_blocks_grows_when_it_is_packed() {
        let mut stack = Stack::new(1);
        let mut positions = Vec::new();
        for _ in 0..10_000 {
            if stack.is_full() {
                stack.pack(positions.iter_mut());
                assert!(!stack.is_full());
            }
            positions.push(stack.push());
        }
        for position in positions {
            assert_eq!(stack.touch(position).0, 9_999);
            if stack.is_full() {
                break;
            }
        }
    }
}
