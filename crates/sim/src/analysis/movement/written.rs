//! Which blocks were written, and what of a band lies behind a write.

use super::footprint::Touched;
use super::geometry::Geometry;
use super::head::Sweep;
use super::marks::Marks;
use std::ops::Range;

/// The blocks written so far.
#[derive(Clone, Debug)]
pub struct Written {
    geometry: Geometry,
    touched: Touched,
    /// Ranks of the blocks written.
    blocks: Marks,
    /// Those of them whose block before is not written ...
    after_gap: Marks,
    /// ... and those that lie two tracks or more after the written block before.
    after_track: Marks,
}

/// Written blocks of a band behind a write, the lowest first. They are known by their order among
/// all written blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behind {
    /// Their order, never empty.
    pub order: Range<u64>,
    /// The last of them.
    pub last: u64,
}

impl Written {
    /// Nothing is written yet of the blocks that the trace touches.
    pub fn new(geometry: Geometry, touched: Touched) -> Written {
        let marks = || Marks::new(touched.blocks());
        Written { geometry, blocks: marks(), after_gap: marks(), after_track: marks(), touched }
    }

    /// How many blocks the trace touches.
    pub fn touched_blocks(&self) -> u64 {
        self.touched.blocks()
    }

    /// The rank of a touched block; those of a request follow one another.
    pub fn rank(&self, block: u64) -> u64 {
        self.touched.rank(block)
    }

    /// How many blocks of these ranks are written.
    pub fn count(&self, ranks: Range<u64>) -> u64 {
        self.blocks.below(ranks.end) - self.blocks.below(ranks.start)
    }

    /// True when the block of a rank is written.
    pub fn has(&self, rank: u64) -> bool {
        self.blocks.has(rank)
    }

    /// The blocks from `block` on, of these ranks, are written now.
    pub fn write(&mut self, block: u64, ranks: Range<u64>) {
        for (rank, block) in ranks.zip(block..) {
            if !self.blocks.has(rank) {
                self.write_first(block, rank);
            }
        }
    }

    fn write_first(&mut self, block: u64, rank: u64) {
        let order = self.blocks.below(rank);
        let next = self.blocks.nth(order);
        if let Some(before) = order.checked_sub(1) {
            let before = self.blocks.nth(before).expect("counted as written");
            self.follow(self.touched.block(before), block, rank);
        }
        self.blocks.set(rank, true);
        if let Some(next) = next {
            self.follow(block, self.touched.block(next), next);
        }
    }

    /// The written block before `block`, which has this rank, is `before`.
    fn follow(&mut self, before: u64, block: u64, rank: u64) {
        let tracks = self.geometry.track(block) - self.geometry.track(before);
        self.after_gap.set(rank, block - before > 1);
        self.after_track.set(rank, tracks > 1);
    }

    /// The written blocks from `start` to before `end`, if there are any.
    pub fn behind(&self, start: u64, end: u64) -> Option<Behind> {
        if start >= end {
            return None;
        }
        let order = self.blocks.below(self.rank(start))..self.blocks.below(self.rank(end));
        let last = order.end.checked_sub(1).filter(|_| !order.is_empty())?;
        let last = self.block_of(last);
        Some(Behind { order, last })
    }

    /// A sweep over written blocks of one band, by their order; never empty.
    pub fn sweep(&self, order: Range<u64>) -> Sweep {
        let first = self.rank_of(order.start);
        let last = self.rank_of(order.end - 1);
        let between = |marks: &Marks| marks.below(last + 1) - marks.below(first + 1);
        Sweep {
            first: self.touched.block(first),
            last: self.touched.block(last),
            visits: order.end - order.start,
            block_skips: between(&self.after_gap),
            track_skips: between(&self.after_track),
        }
    }

    /// The runs of neighbouring blocks among written blocks of one band, by their order.
    pub fn each_run(&self, order: Range<u64>, mut visit: impl FnMut(u64, u64)) {
        let mut start = order.start;
        while start < order.end {
            let rank = self.rank_of(start);
            let gap = self.after_gap.nth(self.after_gap.below(rank + 1));
            let end = gap.map_or(order.end, |gap| self.blocks.below(gap).min(order.end));
            visit(self.touched.block(rank), end - start);
            start = end;
        }
    }

    fn rank_of(&self, order: u64) -> u64 {
        self.blocks.nth(order).expect("an order below their number")
    }

    fn block_of(&self, order: u64) -> u64 {
        self.touched.block(self.rank_of(order))
    }
}
