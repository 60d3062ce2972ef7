//! Half-open ranges of blocks.

use crate::saved::SavedValue;
use crate::units::{BlockCount, Lba};

/// The blocks `start .. start + blocks`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, SavedValue)]
pub struct Extent {
    /// First block.
    pub start: Lba,
    /// Number of blocks.
    pub blocks: BlockCount,
}

impl Extent {
    /// No blocks at address zero: what a flush covers.
    pub const EMPTY: Extent = Extent { start: Lba(0), blocks: BlockCount(0) };

    /// The extent of `blocks` blocks from `start`.
    #[inline]
    pub const fn new(start: u64, blocks: u64) -> Extent {
        Extent { start: Lba(start), blocks: BlockCount(blocks) }
    }

    /// The extent `start .. end`. Panics when `end < start`.
    #[inline]
    pub fn between(start: Lba, end: Lba) -> Extent {
        Extent { start, blocks: BlockCount(end.0 - start.0) }
    }

    /// The first block after the extent.
    #[inline]
    pub fn end(self) -> Lba {
        self.start + self.blocks
    }

    /// True when it covers no block.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.blocks.0 == 0
    }

    /// True when `lba` lies inside.
    #[inline]
    pub fn contains(self, lba: Lba) -> bool {
        self.start <= lba && lba < self.end()
    }

    /// True when every block of `other` lies inside.
    #[inline]
    pub fn covers(self, other: Extent) -> bool {
        other.is_empty() || (self.start <= other.start && other.end() <= self.end())
    }

    /// True when the two share a block.
    #[inline]
    pub fn overlaps(self, other: Extent) -> bool {
        self.start < other.end() && other.start < self.end()
    }

    /// The blocks both have, if any.
    #[inline]
    pub fn intersection(self, other: Extent) -> Option<Extent> {
        let start = self.start.max(other.start);
        let end = self.end().min(other.end());
        (start < end).then(|| Extent::between(start, end))
    }
}
