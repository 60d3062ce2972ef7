//! The segments that have blocks in memory, the one to give up first.

use crate::map::{AddressMap, address_map};
use crate::saved::{Saved, SavedValue};
use alloc::vec::Vec;

/// Stands for no entry and no segment.
const NONE: u32 = u32::MAX;

/// What a segment is compared by: the greatest is given up.
///
/// First how many of its blocks count, then how old a block of it is. No two segments are equal, for
/// no two blocks were used at one time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, SavedValue)]
pub(super) struct Rank {
    /// Blocks that count.
    pub blocks: u32,
    /// Greater, the longer ago the block was used that decides.
    pub age: u64,
}

/// A segment with its entries, the least recently used first.
#[derive(Clone, Copy, Debug, SavedValue)]
struct Segment {
    number: u64,
    oldest: u32,
    newest: u32,
    in_window: u32,
    entries: u32,
    rank: Rank,
    /// Where it is in the heap.
    at: u32,
}

/// An entry among those of its segment.
#[derive(Clone, Copy, Debug, SavedValue)]
struct Member {
    segment: u32,
    older: u32,
    newer: u32,
    used_at: u64,
}

/// The segments of the blocks in memory, as a heap whose root is given up first.
///
/// Counting takes constant time; the order is kept in the logarithm of the number of segments, because
/// equal counts are told apart by the age of a block. Nothing allocates once as many segments as there
/// are blocks were seen.
#[derive(Debug, Saved)]
pub(super) struct Segments {
    members: Vec<Member>,
    segments: Vec<Segment>,
    unused: Vec<u32>,
    heap: Vec<u32>,
    by_number: AddressMap<u32>,
    #[saved(keep)]
    by: fn(Count) -> Rank,
}

/// What a rank is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    /// Entries of the segment, and those of them in the window.
    pub entries: u32,
    pub in_window: u32,
    /// When its least and its most recently used entry were used.
    pub oldest_at: u64,
    pub newest_at: u64,
}

impl Segments {
    /// No segments yet, ranked by a function of what they count.
    pub fn new(entries: usize, by: fn(Count) -> Rank) -> Segments {
        Segments {
            members: Vec::with_capacity(entries),
            segments: Vec::with_capacity(entries),
            unused: Vec::new(),
            heap: Vec::with_capacity(entries),
            by_number: address_map(entries),
            by,
        }
    }

    /// Adds an entry as the most recently used one of its segment.
    pub fn push_newest(&mut self, entry: u32, number: u64, used_at: u64, is_in_window: bool) {
        let segment = match self.by_number.get(&number) {
            Some(segment) => *segment,
            None => self.add(number),
        };
        let it = &mut self.segments[segment as usize];
        let newest = it.newest;
        it.newest = entry;
        if newest == NONE {
            it.oldest = entry;
        }
        it.entries += 1;
        it.in_window += u32::from(is_in_window);
        if entry as usize >= self.members.len() {
            let nobody = Member { segment: NONE, older: NONE, newer: NONE, used_at: 0 };
            self.members.resize(entry as usize + 1, nobody);
        }
        self.members[entry as usize] = Member { segment, older: newest, newer: NONE, used_at };
        if newest != NONE {
            self.members[newest as usize].newer = entry;
        }
        self.rank(segment);
    }

    /// Takes an entry out.
    pub fn remove(&mut self, entry: u32, was_in_window: bool) {
        let member = self.members[entry as usize];
        let it = &mut self.segments[member.segment as usize];
        it.entries -= 1;
        it.in_window -= u32::from(was_in_window);
        match member.older {
            NONE => it.oldest = member.newer,
            older => self.members[older as usize].newer = member.newer,
        }
        match member.newer {
            NONE => it.newest = member.older,
            newer => self.members[newer as usize].older = member.older,
        }
        match it.entries {
            0 => self.drop_segment(member.segment),
            _ => self.rank(member.segment),
        }
    }

    /// An entry has come into the window.
    pub fn comes_into_window(&mut self, entry: u32) {
        let segment = self.members[entry as usize].segment;
        self.segments[segment as usize].in_window += 1;
        self.rank(segment);
    }

    /// The entries of the segment that is given up first, the least recently used first.
    pub fn first(&self) -> impl Iterator<Item = u32> + '_ {
        let first = self.heap.first();
        let oldest = first.map(|segment| self.segments[*segment as usize].oldest);
        core::iter::successors(oldest, |entry| {
            let newer = self.members[*entry as usize].newer;
            (newer != NONE).then_some(newer)
        })
    }

    fn add(&mut self, number: u64) -> u32 {
        let segment = Segment {
            number,
            oldest: NONE,
            newest: NONE,
            in_window: 0,
            entries: 0,
            rank: Rank::default(),
            at: self.heap.len() as u32,
        };
        let index = match self.unused.pop() {
            Some(index) => {
                self.segments[index as usize] = segment;
                index
            }
            None => {
                self.segments.push(segment);
                self.segments.len() as u32 - 1
            }
        };
        self.heap.push(index);
        self.by_number.insert(number, index);
        index
    }

    fn drop_segment(&mut self, segment: u32) {
        let Segment { number, at, .. } = self.segments[segment as usize];
        self.by_number.remove(&number);
        self.unused.push(segment);
        self.heap.swap_remove(at as usize);
        if (at as usize) < self.heap.len() {
            self.segments[self.heap[at as usize] as usize].at = at;
            self.sift(at as usize);
        }
    }

    fn rank(&mut self, segment: u32) {
        let it = self.segments[segment as usize];
        let used_at = |entry: u32| self.members[entry as usize].used_at;
        let rank = (self.by)(Count {
            entries: it.entries,
            in_window: it.in_window,
            oldest_at: used_at(it.oldest),
            newest_at: used_at(it.newest),
        });
        self.segments[segment as usize].rank = rank;
        self.sift(it.at as usize);
    }

    fn rank_at(&self, at: usize) -> Rank {
        self.segments[self.heap[at] as usize].rank
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        for at in [a, b] {
            self.segments[self.heap[at] as usize].at = at as u32;
        }
    }

    /// Brings a segment to its place.
    fn sift(&mut self, mut at: usize) {
        while at > 0 && self.rank_at(at) > self.rank_at((at - 1) / 2) {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        loop {
            let children = 2 * at + 1..(2 * at + 3).min(self.heap.len());
            let Some(greatest) = children.max_by_key(|child| self.rank_at(*child)) else {
                return;
            };
            if self.rank_at(greatest) <= self.rank_at(at) {
                return;
            }
            self.swap(at, greatest);
            at = greatest;
        }
    }
}
