//! The clairvoyant bound: the block that is used again last leaves (Belady, IBM Systems Journal
//! 1966). No policy that must take in every missing block has more hits.

use super::policy::{AccessKind, CachedBlock, EvictionPolicy, PolicyEvents};
use crate::saved::{Saved, SavedValue};
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// The settings of a cache see to it.
const NEVER_DURABLE: &str = "a clairvoyant cache foresees one run and cannot be durable";

/// For each of `lbas`, the position of the next one that is equal, or `u32::MAX`: the table that
/// the clairvoyant policy needs for the blocks a cache looks up, in their order. Panics when there
/// are `u32::MAX` or more.
pub fn next_uses(lbas: &[Lba]) -> Vec<u32> {
    assert!(lbas.len() < u32::MAX as usize, "more accesses than can be numbered");
    let mut order: Vec<u32> = (0..lbas.len() as u32).collect();
    order.sort_unstable_by_key(|at| (lbas[*at as usize], *at));
    let mut next = vec![u32::MAX; lbas.len()];
    for pair in order.windows(2) {
        if lbas[pair[0] as usize] == lbas[pair[1] as usize] {
            next[pair[0] as usize] = pair[1];
        }
    }
    next
}

/// Blocks in a heap by their next use, the last one on top; among blocks that are never used
/// again, the lowest address.
#[derive(Saved)]
pub(super) struct Opt {
    #[saved(keep)]
    next_uses: Arc<[u32]>,
    /// Blocks looked up so far.
    accesses: u64,
    heap: Vec<u32>,
    known: Vec<Known>,
}

#[derive(Clone, Copy, SavedValue)]
struct Known {
    lba: Lba,
    next_use: u32,
    /// Where the block is in the heap.
    position: u32,
}

impl Opt {
    pub fn new(next_uses: Arc<[u32]>) -> Opt {
        Opt { next_uses, accesses: 0, heap: Vec::new(), known: Vec::new() }
    }

    /// The next use of the block being looked up. Past the end of the table nothing is used again.
    fn advance(&mut self) -> u32 {
        let at = usize::try_from(self.accesses).unwrap_or(usize::MAX);
        self.accesses += 1;
        self.next_uses.get(at).copied().unwrap_or(u32::MAX)
    }

    fn key(&self, entry: u32) -> (u32, Reverse<Lba>) {
        let known = &self.known[entry as usize];
        (known.next_use, Reverse(known.lba))
    }

    fn add(&mut self, entry: u32, lba: Lba, next_use: u32) {
        let position = self.heap.len() as u32;
        let known = Known { lba, next_use, position };
        if entry as usize >= self.known.len() {
            self.known.resize(entry as usize + 1, known);
        }
        self.known[entry as usize] = known;
        self.heap.push(entry);
        self.sift_up(position as usize);
    }

    fn place(&mut self, entry: u32, at: usize) {
        self.heap[at] = entry;
        self.known[entry as usize].position = at as u32;
    }

    fn sift_up(&mut self, mut at: usize) {
        let entry = self.heap[at];
        while at > 0 {
            let parent = self.heap[(at - 1) / 2];
            if self.key(parent) >= self.key(entry) {
                break;
            }
            self.place(parent, at);
            at = (at - 1) / 2;
        }
        self.place(entry, at);
    }

    fn sift_down(&mut self, mut at: usize) {
        let entry = self.heap[at];
        loop {
            let children = (2 * at + 1)..(2 * at + 3).min(self.heap.len());
            let Some(child) = children.max_by_key(|child| self.key(self.heap[*child])) else {
                break;
            };
            if self.key(self.heap[child]) <= self.key(entry) {
                break;
            }
            self.place(self.heap[child], at);
            at = child;
        }
        self.place(entry, at);
    }
}

impl EvictionPolicy for Opt {
    fn on_insert(&mut self, entry: u32, lba: Lba, _: AccessKind, _: &mut PolicyEvents) {
        let next_use = self.advance();
        self.add(entry, lba, next_use);
    }

    fn on_access(&mut self, entry: u32, _: AccessKind, _: &mut PolicyEvents) {
        self.known[entry as usize].next_use = self.advance();
        self.sift_up(self.known[entry as usize].position as usize);
        self.sift_down(self.known[entry as usize].position as usize);
    }

    fn victims(&mut self, victims: &mut Vec<u32>, _: &mut PolicyEvents) {
        victims.extend(self.heap.first());
    }

    fn on_remove(&mut self, entry: u32) {
        let at = self.known[entry as usize].position as usize;
        let last = self.heap.pop().expect("the block is in the heap");
        if last != entry {
            self.place(last, at);
            self.sift_up(at);
            self.sift_down(self.known[last as usize].position as usize);
        }
    }

    fn save(&self, _: &[u32], _: &mut StateWriter) {
        unreachable!("{NEVER_DURABLE}")
    }

    fn restore(&mut self, _: &[CachedBlock], _: &mut StateReader<'_>) -> Result<(), StateError> {
        unreachable!("{NEVER_DURABLE}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_access_knows_the_next_one_of_its_block() {
        let lbas = [7, 3, 7, 7, 9, 3].map(Lba);
        let never = u32::MAX;
        assert_eq!(next_uses(&lbas), [2, 5, 3, never, never, never]);
    }
}
