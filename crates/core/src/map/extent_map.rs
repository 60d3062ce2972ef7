//! Where runs of blocks are.

use super::runs::{ADDRESSES, RUN_BLOCKS_MAX, Run, Runs};
use crate::extent::Extent;
use crate::saved::SavedValue;
use crate::units::{BlockCount, Lba};

/// A map from blocks to positions in which runs of adjoining blocks at adjoining positions take
/// one entry. Entries are never joined: one insertion is one entry until something overwrites a
/// part of it, which is how drives count them. Only one of more than 64 GiB is several.
#[derive(Clone, Debug, Default, SavedValue)]
pub struct ExtentMap {
    runs: Runs,
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
    #[inline]
    fn of(run: Run) -> Piece {
        Piece { extent: Extent::new(run.start, run.blocks), position: run.position }
    }

    /// The part of the piece inside `bounds`.
    pub(crate) fn clip(self, bounds: Extent) -> Option<Piece> {
        let extent = self.extent.intersection(bounds)?;
        let skipped = extent.start.offset_from(self.extent.start);
        Some(Piece { extent, position: self.position + skipped })
    }
}

impl ExtentMap {
    /// The first address, and the first position, that a run cannot have (16 EiB).
    pub const ADDRESSES: u64 = ADDRESSES;

    /// An empty map.
    pub fn new() -> ExtentMap {
        ExtentMap::default()
    }

    /// Entries in the map.
    #[inline]
    pub fn entries(&self) -> u64 {
        self.runs.len()
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
        if let Some(last) = self.runs.last_before_mut(extent.end().0)
            && let old = Piece::of(last.run())
            && old.extent.end() > extent.start
        {
            if old.extent == extent {
                last.set_position(position);
                removed(old);
                return extent.blocks;
            }
            replaced = self.remove(extent, removed);
        }
        let mut done = 0;
        while done < extent.blocks.0 {
            let blocks = (extent.blocks.0 - done).min(RUN_BLOCKS_MAX);
            let (start, position) = (extent.start.0 + done, position + done);
            self.runs.insert(Run { start, blocks, position });
            done += blocks;
        }
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
            && let Some(run) = self.runs.last_before(end)
            && run.start + run.blocks > extent.start.0
        {
            let whole = Piece::of(run);
            let piece = whole.clip(extent).expect("a run that overlaps");
            self.runs.remove(run.start);
            if run.start < piece.extent.start.0 {
                self.runs.insert(Run { blocks: piece.extent.start.0 - run.start, ..run });
            }
            if piece.extent.end() < whole.extent.end() {
                let skipped = piece.extent.end().0 - run.start;
                self.runs.insert(Run {
                    start: piece.extent.end().0,
                    blocks: run.blocks - skipped,
                    position: run.position + skipped,
                });
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
        let run = self.runs.last_before(lba.0.saturating_add(1))?;
        let offset = lba.0 - run.start;
        (offset < run.blocks).then(|| run.position + offset)
    }

    /// The mapped pieces of `extent` in address order, cut to it.
    pub fn pieces(&self, extent: Extent) -> impl Iterator<Item = Piece> + '_ {
        let runs = self.runs.from(extent.start.0).take_while(move |run| run.start < extent.end().0);
        runs.filter_map(move |run| Piece::of(run).clip(extent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn a_run_that_is_longer_than_an_entry_is_found_as_a_whole() {
        let (mut map, long) = (ExtentMap::new(), 2 * RUN_BLOCKS_MAX + 5);
        assert_eq!(map.insert(Extent::new(7, long), 100), BlockCount::ZERO);
        assert_eq!((map.entries(), map.mapped_blocks()), (3, BlockCount(long)));
        for at in [0, RUN_BLOCKS_MAX - 1, RUN_BLOCKS_MAX, long - 1] {
            assert_eq!(map.get(Lba(7 + at)), Some(100 + at));
        }
        assert_eq!((map.get(Lba(6)), map.get(Lba(7 + long))), (None, None));
        assert_eq!(map.insert(Extent::new(7, long), 100), BlockCount(long));
        assert_eq!(map.remove(Extent::new(9, long), |_| {}), BlockCount(long - 2));
        assert_eq!((map.entries(), map.get(Lba(8))), (1, Some(101)));
    }

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
