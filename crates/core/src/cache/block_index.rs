//! A hash index that finds numbered things by their block.
//!
//! It chains the things through themselves: no tombstones, no rehashing in steady state, four bytes a
//! bucket and four a thing. Seven buckets serve eight things.

use super::entries::NONE;
use crate::saved::SavedValue;
use crate::units::Lba;
use alloc::vec;
use alloc::vec::Vec;

/// Blocks whose buckets adjoin: those of 8 blocks fill half a cache line.
const GROUP_BITS: u32 = 3;
const GROUP: usize = 1 << GROUP_BITS;

/// Buckets of an empty index.
const BUCKETS_MIN: usize = 8 * GROUP;

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
    /// First thing of each bucket, in whole groups.
    buckets: Vec<u32>,
    /// Buckets of as many things as are foreseen.
    foreseen: usize,
}

impl BlockIndex {
    /// An index of nothing, with all buckets that so many things need.
    pub fn with_room(things: usize) -> BlockIndex {
        let foreseen = buckets_of(things);
        BlockIndex { buckets: vec![NONE; foreseen], foreseen }
    }

    /// An index of nothing that grows with its things: twofold, but to no more buckets than this number of things needs.
    pub fn growing_to(things: usize) -> BlockIndex {
        BlockIndex { buckets: vec![NONE; BUCKETS_MIN], foreseen: buckets_of(things) }
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

    /// There are so many things now: where they are too many for the buckets there will be more of these.
    #[inline]
    pub fn make_room(&mut self, count: usize, things: &mut impl Chained) {
        // Things beyond those foreseen are few, as a rule, and share the buckets there are.
        let most = match self.buckets.len() < self.foreseen {
            true => self.buckets.len(),
            false => self.buckets.len() * 2,
        };
        if count > most {
            self.grow(things);
        }
    }

    #[cold]
    fn grow(&mut self, things: &mut impl Chained) {
        let doubled = self.buckets.len() * 2;
        let wanted = match self.buckets.len() < self.foreseen {
            true => doubled.min(self.foreseen),
            false => doubled,
        };
        let buckets = vec![NONE; wanted];
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
        // Fibonacci hashing (Knuth, vol. 3, 6.4): the high bits of the product are well mixed. They become a group by
        // a second product, so that the number of groups need not be a power of two. The buckets of adjoining blocks
        // adjoin, for they are often looked up together.
        let mixed = (lba.0 >> GROUP_BITS).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let groups = self.buckets.len() as u128 >> GROUP_BITS;
        let group = ((u128::from(mixed) * groups) >> u64::BITS) as usize;
        group << GROUP_BITS | lba.0 as usize & (GROUP - 1)
    }
}

/// The buckets of so many things.
fn buckets_of(things: usize) -> usize {
    things.div_ceil(8).saturating_mul(7).next_multiple_of(GROUP).max(BUCKETS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thing is its block and the next thing.
    impl Chained for Vec<(u64, u32)> {
        fn lba(&self, id: u32) -> Lba {
            Lba(self[id as usize].0)
        }

        fn next(&self, id: u32) -> u32 {
            self[id as usize].1
        }

        fn set_next(&mut self, id: u32, next: u32) {
            self[id as usize].1 = next;
        }
    }

    fn fill(index: &mut BlockIndex, things: &mut Vec<(u64, u32)>, count: usize) {
        for id in things.len()..count {
            things.push((id as u64 * 37, NONE));
            index.make_room(things.len(), things);
            index.link(id as u32, things);
        }
        for (id, thing) in things.iter().enumerate() {
            assert_eq!(index.find(Lba(thing.0), things), Some(id as u32));
        }
        assert_eq!(index.find(Lba(1), things), None);
    }

    #[test]
    fn it_ends_with_the_buckets_of_what_was_foreseen() {
        for foreseen in [0, 1, 64, 1000, 4096, 5000] {
            let most = buckets_of(foreseen);
            assert!(most <= foreseen * 7 / 8 + 2 * GROUP || most == BUCKETS_MIN);
            let (mut index, mut things) = (BlockIndex::growing_to(foreseen), Vec::new());
            fill(&mut index, &mut things, foreseen.max(BUCKETS_MIN));
            assert_eq!(index.buckets.len(), most, "of {foreseen}");
            assert_eq!(BlockIndex::with_room(foreseen).buckets.len(), most);
            fill(&mut index, &mut things, most * 2);
            assert_eq!(index.buckets.len(), most, "a few more of {foreseen} change nothing");
            fill(&mut index, &mut things, most * 2 + 1);
            assert_eq!(index.buckets.len(), most * 2, "many more of {foreseen}");
        }
    }

    #[test]
    fn buckets_are_used_evenly() {
        let mut index = BlockIndex::with_room(100_000);
        let mut things = Vec::new();
        fill(&mut index, &mut things, 100_000);
        // Adjoining blocks lie 37 apart, so each group of them is alone.
        let empty = index.buckets.iter().filter(|&&first| first == NONE).count() as f64;
        let share = empty / index.buckets.len() as f64;
        // Of things that fall at random with 8/7 to a bucket, e^(-8/7) of the buckets stay empty.
        assert!(share < 0.34, "{share} of the buckets are empty");
    }
}
