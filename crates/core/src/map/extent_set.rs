//! Sets of blocks kept as ranges.

use crate::extent::Extent;
use crate::saved::SavedValue;
use crate::units::Lba;
use alloc::collections::BTreeMap;

/// A set of blocks, adjoining ranges joined.
#[derive(Clone, Debug, Default, PartialEq, Eq, SavedValue)]
pub struct ExtentSet {
    /// First block of a range to the first block after it.
    ranges: BTreeMap<u64, u64>,
}

impl ExtentSet {
    /// An empty set.
    pub fn new() -> ExtentSet {
        ExtentSet::default()
    }

    /// True when it holds no block.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many ranges it is.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Adds the blocks of `extent`.
    pub fn insert(&mut self, extent: Extent) {
        if extent.is_empty() {
            return;
        }
        let (mut start, mut end) = (extent.start.0, extent.end().0);
        while let Some((s, e)) = self.ranges.range(..=end).next_back().map(|(s, e)| (*s, *e))
            && e >= start
        {
            start = start.min(s);
            end = end.max(e);
            self.ranges.remove(&s);
        }
        self.ranges.insert(start, end);
    }

    /// Takes the blocks of `extent` out.
    pub fn remove(&mut self, extent: Extent) {
        if extent.is_empty() {
            return;
        }
        let (start, end) = (extent.start.0, extent.end().0);
        while let Some((s, e)) = self.ranges.range(..end).next_back().map(|(s, e)| (*s, *e))
            && e > start
        {
            self.ranges.remove(&s);
            if s < start {
                self.ranges.insert(s, start);
            }
            if e > end {
                self.ranges.insert(end, e);
            }
        }
    }

    /// The ranges that `extent` shares with the set, in address order, cut to it.
    pub fn pieces(&self, extent: Extent) -> impl Iterator<Item = Extent> + '_ {
        let first = self.ranges.range(..extent.start.0).next_back();
        let rest = self.ranges.range(extent.start.0..extent.end().0);
        first.into_iter().chain(rest).filter_map(move |(start, end)| {
            Extent::between(Lba(*start), Lba(*end)).intersection(extent)
        })
    }

    /// Every range, in address order.
    pub fn ranges(&self) -> impl Iterator<Item = Extent> + '_ {
        self.ranges.iter().map(|(start, end)| Extent::between(Lba(*start), Lba(*end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        /// The set agrees with a set of single blocks, and holds no two ranges that adjoin.
        #[test]
        fn agrees_with_a_set_of_blocks(
            steps in prop::collection::vec((any::<bool>(), 0u64..60, 0u64..12), 1..80)
        ) {
            let mut set = ExtentSet::new();
            let mut model = BTreeSet::new();
            for (insert, start, blocks) in steps {
                let extent = Extent::new(start, blocks);
                if insert {
                    set.insert(extent);
                    model.extend(start..start + blocks);
                } else {
                    set.remove(extent);
                    (start..start + blocks).for_each(|block| { model.remove(&block); });
                }
                let blocks: Vec<u64> = set.ranges().flat_map(|r| r.start.0..r.end().0).collect();
                prop_assert_eq!(&blocks, &model.iter().copied().collect::<Vec<_>>());
                let ranges: Vec<Extent> = set.ranges().collect();
                prop_assert!(ranges.windows(2).all(|pair| pair[0].end() < pair[1].start));
                let inside: Vec<u64> =
                    set.pieces(Extent::new(10, 30)).flat_map(|r| r.start.0..r.end().0).collect();
                prop_assert_eq!(inside, model.range(10..40).copied().collect::<Vec<_>>());
            }
        }
    }
}
