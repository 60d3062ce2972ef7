//! What a persistent cache makes of a trim beside zeroes: which blocks of a band it need not keep.
//!
//! A drive with TRIM keeps a list of what is in no use. It answers a read of that without the medium
//! (notes of data recovery on Western Digital's module 190), forgets its entries in the log, and has
//! less to move: a band is rewritten to the end of what is in use, and a stream may go home from there
//! on. A drive without TRIM is sent zeroes instead, which are data like any other.

use super::block_map::BlockMap;
use super::shape::Shape;
use crate::extent::Extent;
use crate::map::BandId;
use crate::units::Lba;

impl BlockMap {
    /// The offset behind the last block of a band, among those before `end`, that home has the only
    /// copy of and that is not zeroed. What the log alone has overwritten frees nothing: without
    /// a zeroed block behind it, that is `end`.
    pub(super) fn end_of_use(&self, whole: Extent, end: u64) -> u64 {
        let part = Extent::new(whole.start.0, end);
        let mapped = self.log.map().pieces(part).map(|piece| piece.extent);
        let mut mapped = mapped.peekable();
        let mut zeroed = self.zeroed.pieces(part).peekable();
        let (mut next, mut end_of_use) = (part.start, part.start);
        loop {
            let is_mapped = match (mapped.peek(), zeroed.peek()) {
                (Some(mapped), Some(zeroed)) => mapped.start <= zeroed.start,
                (mapped, _) => mapped.is_some(),
            };
            let unused = if is_mapped { mapped.next() } else { zeroed.next() };
            let Some(extent) = unused else {
                break;
            };
            if extent.start > next {
                end_of_use = extent.start;
            }
            next = next.max(extent.end());
        }
        let tail = Extent::between(end_of_use, part.end());
        match next < part.end() || self.zeroed.pieces(tail).next().is_none() {
            true => end,
            false => end_of_use.offset_from(whole.start),
        }
    }

    /// Blocks were zeroed: lowers the write pointers of their bands to the end of what is in use,
    /// except that of a band that is `busy`.
    pub(super) fn free_tails(&mut self, shape: &Shape, zeroed: Extent, busy: Option<BandId>) {
        for band in shape.bands_of(zeroed) {
            if Some(band) == busy || self.is_salvaged(band) {
                continue;
            }
            if let Some(pointer) = self.pointer(band) {
                let end = self.end_of_use(shape.bands.extent_of(band), pointer);
                self.lower_pointer(band, end);
            }
        }
    }
}

/// The offset at which the rewrite of a band ends that is in use up to `end_of_use`: behind that, and
/// behind the last block that the log holds.
pub(super) fn end_with_the_log(blocks: &BlockMap, whole: Extent, end_of_use: u64) -> u64 {
    let last = blocks.log.map().pieces(whole).last();
    let end: Lba = last.map_or(whole.start, |piece| piece.extent.end());
    end.offset_from(whole.start).max(end_of_use)
}
