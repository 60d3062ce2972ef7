//! Where runs of blocks are.

use crate::extent::Extent;
use crate::saved::SavedValue;
use crate::units::{BlockCount, Lba};
use alloc::collections::BTreeMap;

/// A map from blocks to positions in which runs of adjoining blocks at adjoining positions take
/// one entry. Entries are never joined: one insertion is one entry until something overwrites a
/// part of it, which is how drives count them.
#[derive(Clone, Debug, Default, SavedValue)]
pub struct ExtentMap {
    /// First block of a run to its length and the position of that first block.
    runs: BTreeMap<u64, (u64, u64)>,
    mapped_blocks: u64,
}

/// A run of blocks at adjoining positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub struct Piece {
    /// The blocks.
    pub extent: Extent,
    /// The position of the first.
    pub position: u64,
}

impl Piece {
    /// The part of the piece inside `bounds`.
    pub(crate) fn clip(self, bounds: Extent) -> Option<Piece> {
        let extent = self.extent.intersection(bounds)?;
        let skipped = extent.start.offset_from(self.extent.start);
        Some(Piece { extent, position: self.position + skipped })
    }
}

impl ExtentMap {
    /// An empty map.
    pub fn new() -> ExtentMap {
        ExtentMap::default()
    }

    /// Entries in the map.
    #[inline]
    pub fn entries(&self) -> u64 {
        self.runs.len() as u64
    }

    /// Blocks that have a position.
    #[inline]
    pub fn mapped_blocks(&self) -> BlockCount {
        BlockCount(self.mapped_blocks)
    }

    /// Places `extent` at `position`, replacing what was there. Returns how many of its blocks
    /// had a position before.
    pub fn insert(&mut self, extent: Extent, position: u64) -> BlockCount {
        self.replace(extent, position, |_| {})
    }

    /// Like [`insert`](Self::insert), calling `removed` for each piece that was there before, in
    /// descending address order.
    pub fn replace(
        &mut self,
        extent: Extent,
        position: u64,
        mut removed: impl FnMut(Piece),
    ) -> BlockCount {
        let mut replaced = BlockCount::ZERO;
        if extent.is_empty() {
            return replaced;
        }
        // The last run that begins before the end of the extent is the only one to look at when
        // nothing is replaced, or exactly one entry: the common cases.
        if let Some((start, run)) = self.runs.range_mut(..extent.end().0).next_back()
            && start + run.0 > extent.start.0
        {
            if *start == extent.start.0 && run.0 == extent.blocks.0 {
                let old = core::mem::replace(&mut run.1, position);
                removed(Piece { extent, position: old });
                return extent.blocks;
            }
            replaced = self.remove(extent, removed);
        }
        self.runs.insert(extent.start.0, (extent.blocks.0, position));
        self.mapped_blocks += extent.blocks.0;
        replaced
    }

    /// Forgets the positions of `extent`, calling `removed` for each piece in descending address
    /// order. Returns how many blocks had one.
    pub fn remove(&mut self, extent: Extent, mut removed: impl FnMut(Piece)) -> BlockCount {
        let mut count = 0;
        let mut end = extent.end().0;
        // Runs share no block, so none is left once one has reached down to the start.
        while extent.start.0 < end
            && let Some((start, (blocks, position))) =
                self.runs.range(..end).next_back().map(|(s, run)| (*s, *run))
            && start + blocks > extent.start.0
        {
            let whole = Piece { extent: Extent::new(start, blocks), position };
            let piece = whole.clip(extent).expect("a run that overlaps");
            self.runs.remove(&start);
            if start < piece.extent.start.0 {
                self.runs.insert(start, (piece.extent.start.0 - start, position));
            }
            if piece.extent.end() < whole.extent.end() {
                let skipped = piece.extent.end().0 - start;
                self.runs.insert(piece.extent.end().0, (blocks - skipped, position + skipped));
            }
            count += piece.extent.blocks.0;
            self.mapped_blocks -= piece.extent.blocks.0;
            end = piece.extent.start.0;
            removed(piece);
        }
        BlockCount(count)
    }

    /// The position of one block.
    #[inline]
    pub fn get(&self, lba: Lba) -> Option<u64> {
        let (start, (blocks, position)) = self.runs.range(..=lba.0).next_back()?;
        let offset = lba.0 - start;
        (offset < *blocks).then(|| position + offset)
    }

    /// The mapped pieces of `extent` in address order, cut to it.
    pub fn pieces(&self, extent: Extent) -> impl Iterator<Item = Piece> + '_ {
        let first = self.runs.range(..extent.start.0).next_back();
        let rest = self.runs.range(extent.start.0..extent.end().0);
        first.into_iter().chain(rest).filter_map(move |(start, (blocks, position))| {
            Piece { extent: Extent::new(*start, *blocks), position: *position }.clip(extent)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        /// The map agrees with one entry per block under random insertions and removals.
        #[test]
        fn agrees_with_a_map_per_block(
            steps in prop::collection::vec((any::<bool>(), 0u64..60, 1u64..12), 1..80)
        ) {
            let mut map = ExtentMap::new();
            let mut model: BTreeMap<u64, u64> = BTreeMap::new();
            for (round, (insert, start, blocks)) in steps.into_iter().enumerate() {
                let extent = Extent::new(start, blocks);
                let expected = (start..start + blocks).filter(|b| model.contains_key(b)).count();
                let replaced = if insert {
                    for block in 0..blocks {
                        model.insert(start + block, 1000 * round as u64 + block);
                    }
                    map.insert(extent, 1000 * round as u64)
                } else {
                    (start..start + blocks).for_each(|block| { model.remove(&block); });
                    map.remove(extent, |_| {})
                };
                prop_assert_eq!(replaced.0, expected as u64);
                prop_assert_eq!(map.mapped_blocks().0, model.len() as u64);
                for block in 0..80 {
                    prop_assert_eq!(map.get(Lba(block)), model.get(&block).copied());
                }
                let pieces: Vec<(u64, u64)> = map
                    .pieces(Extent::new(10, 30))
                    .flat_map(|p| {
                        (0..p.extent.blocks.0).map(move |i| (p.extent.start.0 + i, p.position + i))
                    })
                    .collect();
                let expected: Vec<(u64, u64)> =
                    model.range(10..40).map(|(k, v)| (*k, *v)).collect();
                prop_assert_eq!(pieces, expected);
            }
        }
    }
}
