//! The LRU stack: how many blocks were accessed since the last access to one of them.
//!
//! Each access gets the next position; a block's mark moves from its last position to the new one. The marks behind the last
//! position are the blocks accessed since. They are bits, with sums of 512 of them in a Fenwick tree, so the whole fits the
//! processor's caches.

/// Positions whose marks are summed together.
const SPAN: usize = 512;
const WORD: usize = 64;

/// Positions of blocks in the order of their last accesses.
pub(super) struct Stack {
    marks: Vec<u64>,
    /// Fenwick tree over the number of marks in each span.
    sums: Vec<u32>,
    next: usize,
    marked: u32,
}

impl Stack {
    /// A stack with room for `positions` accesses before it must be packed.
    pub(super) fn new(positions: usize) -> Self {
        let spans = positions.div_ceil(SPAN).max(1);
        Self { marks: vec![0; spans * SPAN / WORD], sums: vec![0; spans + 1], next: 0, marked: 0 }
    }

    /// True if the next access needs a [`pack`](Self::pack) first.
    pub(super) fn is_full(&self) -> bool {
        self.next == self.marks.len() * WORD
    }

    /// The position of a first access.
    pub(super) fn push(&mut self) -> u32 {
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

    /// Number of blocks accessed since the block at `position`, which is taken out.
    pub(super) fn take(&mut self, position: u32) -> u32 {
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
        upto += (self.marks[word] & (u64::MAX >> (WORD - 1 - position % WORD))).count_ones();
        let since = self.marked - upto;
        self.marks[word] &= !(1 << (position % WORD));
        let mut span = position / SPAN + 1;
        while span < self.sums.len() {
            self.sums[span] -= 1;
            span += span & span.wrapping_neg();
        }
        self.marked -= 1;
        since
    }

    /// Gives the blocks the first positions, in the order of those they have.
    pub(super) fn pack<T>(&mut self, blocks: &mut [T], position: impl Fn(&mut T) -> &mut u32) {
        let places = (0..).zip(blocks.iter_mut());
        let mut order: Vec<(u32, u32)> =
            places.map(|(place, block)| (*position(block), place)).collect();
        order.sort_unstable();
        self.marks.fill(0);
        self.sums.fill(0);
        (self.next, self.marked) = (0, 0);
        for (_, place) in order {
            *position(&mut blocks[place as usize]) = self.push();
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
                stack.pack(&mut positions, |known| &mut known.1);
            }
            let expected = list.iter().rev().position(|&other| other == block);
            let known = positions.iter().position(|known| known.0 == block);
            let found = known.map(|known| stack.take(positions[known].1) as usize);
            assert_eq!(found, expected);
            list.retain(|&other| other != block);
            list.push(block);
            let position = stack.push();
            match known {
                Some(known) => positions[known].1 = position,
                None => positions.push((block, position)),
            }
        }
    }
}
