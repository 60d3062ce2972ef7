//! A hash index that finds numbered things by their block.
//!
//! It chains the things through themselves: no tombstones, no rehashing in steady state, four bytes a
//! bucket and four a thing.

use super::entries::NONE;
use crate::saved::SavedValue;
use crate::units::Lba;
use alloc::vec;
use alloc::vec::Vec;

/// Buckets of an empty index.
const BUCKETS_MIN: usize = 64;

/// Blocks whose buckets adjoin: those of 8 blocks fill half a cache line.
const GROUP_BITS: u32 = 3;

/// The things that an index finds, by their numbers.
pub(super) trait Chained {
    /// The block of a thing.
    fn lba(&self, id: u32) -> Lba;
    /// The next thing of its bucket, or [`NONE`].
    fn next(&self, id: u32) -> u32;
    /// Sets the next thing of its bucket.
    fn set_next(&mut self, id: u32, next: u32);
}

/// The index. The things are handed to it with each call, for they belong to who owns it.
#[derive(Debug, SavedValue)]
pub(super) struct BlockIndex {
    /// First thing of each bucket; as many as a power of two.
    buckets: Vec<u32>,
}

impl BlockIndex {
    /// An index of nothing, with a bucket for each of so many things.
    pub fn new(things: usize) -> BlockIndex {
        let buckets = things.next_power_of_two().max(BUCKETS_MIN);
        BlockIndex { buckets: vec![NONE; buckets] }
    }

    /// The thing with this block that was linked last.
    #[inline]
    pub fn find(&self, lba: Lba, things: &impl Chained) -> Option<u32> {
        let mut id = self.buckets[self.bucket(lba)];
        while id != NONE {
            if things.lba(id) == lba {
                return Some(id);
            }
            id = things.next(id);
        }
        None
    }

    /// Takes a thing in.
    #[inline]
    pub fn link(&mut self, id: u32, things: &mut impl Chained) {
        let bucket = self.bucket(things.lba(id));
        things.set_next(id, self.buckets[bucket]);
        self.buckets[bucket] = id;
    }

    /// Takes a thing out, if it is in.
    pub fn unlink(&mut self, id: u32, things: &mut impl Chained) {
        let bucket = self.bucket(things.lba(id));
        let next = things.next(id);
        let mut at = self.buckets[bucket];
        if at == id {
            self.buckets[bucket] = next;
            return;
        }
        while at != NONE {
            let after = things.next(at);
            if after == id {
                return things.set_next(at, next);
            }
            at = after;
        }
    }

    /// There are so many things now: where that is more than there are buckets, twice as many are made.
    #[inline]
    pub fn make_room(&mut self, count: usize, things: &mut impl Chained) {
        if count > self.buckets.len() {
            self.grow(things);
        }
    }

    fn grow(&mut self, things: &mut impl Chained) {
        let buckets = vec![NONE; self.buckets.len() * 2];
        for first in core::mem::replace(&mut self.buckets, buckets) {
            let mut id = first;
            while id != NONE {
                let next = things.next(id);
                self.link(id, things);
                id = next;
            }
        }
    }

    #[inline]
    fn bucket(&self, lba: Lba) -> usize {
        // Fibonacci hashing (Knuth, vol. 3, 6.4): the high bits of the product are well mixed. The
        // buckets of adjoining blocks adjoin, for they are often looked up together.
        let group = (lba.0 >> GROUP_BITS).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let groups = self.buckets.len().trailing_zeros() - GROUP_BITS;
        let first = (group >> (64 - groups)) as usize;
        first << GROUP_BITS | lba.0 as usize & ((1 << GROUP_BITS) - 1)
    }
}
