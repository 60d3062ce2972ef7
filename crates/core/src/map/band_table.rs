//! Which band holds which block.

use super::Guide;
use crate::extent::Extent;
use crate::saved::SavedValue;
use crate::units::{BlockCount, Lba};
use alloc::vec::Vec;

/// Names a band of a translation; 0 is the band at address 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, SavedValue)]
pub struct BandId(pub u32);

/// The binary logarithm of how many of the longest bands are at most as long as a run that the guide tells of.
const RUN_BANDS_LOG2: u32 = 2;

/// The bands of a translation: adjoining address ranges from 0 up, each exact.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BandTable {
    /// Band `i` is `starts[i] .. starts[i + 1]`.
    starts: Vec<u64>,
    /// Length of every band but the last, where all are equal: then a look-up is a division.
    uniform_blocks: Option<u64>,
    largest: u64,
    /// Where bands differ: which are left to be searched.
    guide: Guide,
}

impl BandTable {
    /// A table of bands of the given lengths. Panics when one is empty.
    pub fn new(lengths: impl IntoIterator<Item = BlockCount>) -> BandTable {
        let mut starts = Vec::from([0]);
        let (mut end, mut largest) = (0u64, 0u64);
        for length in lengths {
            assert!(length.0 > 0, "an empty band");
            end += length.0;
            largest = largest.max(length.0);
            starts.push(end);
        }
        let bands = starts.len() - 1;
        let first = starts.get(1).copied().unwrap_or(0);
        let all_equal = (1..bands).all(|i| starts[i] - starts[i - 1] == first)
            && (bands < 2 || starts[bands] - starts[bands - 1] <= first);
        let uniform_blocks = (bands > 0 && all_equal).then_some(first);
        let run_log2 = largest.max(1).ilog2() + RUN_BANDS_LOG2;
        let guide = match uniform_blocks {
            Some(_) => Guide::default(),
            None => Guide::new(starts[..bands].iter().copied(), end, run_log2),
        };
        BandTable { starts, uniform_blocks, largest, guide }
    }

    /// The bands of an extent, in addresses that begin at 0. A band that the extent cuts is shorter.
    /// Panics past the end.
    #[must_use]
    pub fn part(&self, extent: Extent) -> BandTable {
        if extent.is_empty() {
            return BandTable::new([]);
        }
        let last = self.band_of(Lba(extent.end().0 - 1));
        let bands = self.band_of(extent.start).0..=last.0;
        let inside = bands.filter_map(|band| self.extent_of(BandId(band)).intersection(extent));
        BandTable::new(inside.map(|inside| inside.blocks))
    }

    /// How many bands there are.
    pub fn bands(&self) -> u32 {
        (self.starts.len() - 1) as u32
    }

    /// Blocks in all bands.
    pub fn blocks(&self) -> BlockCount {
        BlockCount(self.starts[self.starts.len() - 1])
    }

    /// Blocks of the longest band.
    pub fn largest(&self) -> BlockCount {
        BlockCount(self.largest)
    }

    /// The band that holds a block. Panics past the end.
    #[inline]
    pub fn band_of(&self, lba: Lba) -> BandId {
        assert!(lba < Lba(self.blocks().0), "{lba:?} is past the last band");
        match self.uniform_blocks {
            Some(length) => BandId((lba.0 / length) as u32),
            None => {
                let (first, last) = self.guide.candidates(lba.0);
                // The first one begins at the block or before it.
                let later = &self.starts[first + 1..=last];
                BandId((first + later.partition_point(|start| *start <= lba.0)) as u32)
            }
        }
    }

    /// The blocks of a band. Panics when there is no such band.
    #[inline]
    pub fn extent_of(&self, band: BandId) -> Extent {
        let index = band.0 as usize;
        Extent::between(Lba(self.starts[index]), Lba(self.starts[index + 1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn bands_of_unequal_length_are_found_by_search() {
        let table = BandTable::new([3, 5, 2].map(BlockCount));
        assert_eq!(table.bands(), 3);
        assert_eq!(table.blocks(), BlockCount(10));
        assert_eq!(table.largest(), BlockCount(5));
        let bands: Vec<u32> = (0..10).map(|lba| table.band_of(Lba(lba)).0).collect();
        assert_eq!(bands, [0, 0, 0, 1, 1, 1, 1, 1, 2, 2]);
        assert_eq!(table.extent_of(BandId(1)), Extent::new(3, 5));
    }

    #[test]
    fn a_block_is_in_the_band_that_ends_behind_it() {
        let mut rng = Rng::new(5, 0);
        for bands in 1..200 {
            let most = 1 << rng.below(12);
            let lengths = (0..bands).map(|_| BlockCount(1 + rng.below(most)));
            let table = BandTable::new(lengths.collect::<Vec<_>>());
            for lba in (0..table.blocks().0).map(Lba) {
                assert!(table.extent_of(table.band_of(lba)).contains(lba), "{lba:?} of {table:?}");
            }
        }
    }

    #[test]
    fn bands_of_equal_length_may_end_in_a_shorter_one() {
        let table = BandTable::new([4, 4, 1].map(BlockCount));
        assert_eq!(table.uniform_blocks, Some(4));
        assert_eq!(table.band_of(Lba(8)), BandId(2));
        assert_eq!(table.extent_of(BandId(2)), Extent::new(8, 1));
    }

    #[test]
    fn a_part_has_the_bands_inside_and_shorter_ones_at_its_ends() {
        let table = BandTable::new([3, 5, 2].map(BlockCount));
        assert_eq!(table.part(Extent::new(3, 5)), BandTable::new([BlockCount(5)]));
        let cut = table.part(Extent::new(1, 8));
        assert_eq!(cut, BandTable::new([2, 5, 1].map(BlockCount)));
        assert_eq!(table.part(Extent::EMPTY).bands(), 0);
    }
}
