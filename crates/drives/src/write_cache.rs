//! The write-back cache of a rotating drive: what has been answered and is not yet on the medium.

use super::platters::Place;
use imbrex_core::disk::DiskOp;
use imbrex_core::extent::Extent;
use imbrex_core::operation::Cause;
use imbrex_core::saved::SavedValue;
use imbrex_core::units::BlockCount;
use std::collections::VecDeque;

/// Longest run of adjoining writes that is written in one go: a longer one would keep reads waiting.
pub const RUN_BYTES_MAX: u64 = 1 << 20;

/// A run of blocks to be written.
#[derive(Clone, Copy, Debug, SavedValue)]
pub struct Segment {
    /// Which blocks.
    pub extent: Extent,
    /// Where the first one lies.
    pub place: Place,
    /// Who wrote the first of them.
    pub cause: Cause,
    /// Order of arrival among all operations of the disk.
    pub sequence: u64,
}

/// Segments waiting to be written, and writes waiting for room.
#[derive(Debug, SavedValue)]
pub struct WriteCache {
    segments: Vec<Segment>,
    /// The one being written, which still takes room.
    writing: Option<Segment>,
    used_blocks: u64,
    capacity_blocks: u64,
    segments_max: usize,
    run_blocks_max: u64,
    /// Writes that have not been answered for want of room.
    pub waiting: VecDeque<DiskOp>,
}

impl WriteCache {
    /// An empty cache of `capacity` in at most `segments_max` runs of `run_blocks_max`.
    pub fn new(capacity: BlockCount, segments_max: usize, run_blocks_max: u64) -> WriteCache {
        WriteCache {
            segments: Vec::with_capacity(segments_max),
            writing: None,
            used_blocks: 0,
            capacity_blocks: capacity.0,
            segments_max,
            run_blocks_max,
            waiting: VecDeque::new(),
        }
    }

    /// Segments whose writing has not begun.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// True when everything answered is on the medium.
    pub fn is_clean(&self) -> bool {
        self.segments.is_empty() && self.writing.is_none()
    }

    /// True when a write is small enough to be cached at all.
    pub fn admits(&self, blocks: u64) -> bool {
        blocks <= self.capacity_blocks / 2
    }

    /// True when more than half of the room is taken, or a write waits for some.
    pub fn is_pressed(&self) -> bool {
        !self.waiting.is_empty()
            || self.segments.len() * 2 > self.segments_max
            || self.used_blocks * 2 > self.capacity_blocks
    }

    /// True when a read can be served from one segment.
    pub fn covers(&self, extent: Extent) -> bool {
        let all = self.segments.iter().chain(&self.writing);
        all.into_iter().any(|segment| segment.extent.covers(extent))
    }

    /// True when something answered before operation `sequence` is not yet on the medium.
    pub fn is_dirty_before(&self, sequence: u64) -> bool {
        let mut all = self.segments.iter().chain(&self.writing);
        all.any(|segment| segment.sequence < sequence)
    }

    /// Takes a write if there is room; false when it has to wait. It joins the segment that it
    /// continues or repeats.
    pub fn take(
        &mut self,
        extent: Extent,
        cause: Cause,
        sequence: u64,
        place: impl FnOnce() -> Place,
    ) -> bool {
        if self.segments.iter().any(|s| s.extent.covers(extent)) {
            return true;
        }
        if self.used_blocks + extent.blocks.0 > self.capacity_blocks {
            return false;
        }
        let run_blocks_max = self.run_blocks_max;
        let continued = self.segments.iter_mut().find(|segment| {
            segment.extent.end() == extent.start
                && segment.extent.blocks.0 + extent.blocks.0 <= run_blocks_max
        });
        if let Some(segment) = continued {
            segment.extent.blocks.0 += extent.blocks.0;
        } else if self.segments.len() + usize::from(self.writing.is_some()) < self.segments_max {
            self.segments.push(Segment { extent, place: place(), cause, sequence });
        } else {
            return false;
        }
        self.used_blocks += extent.blocks.0;
        true
    }

    /// Takes out segment `index` to be written.
    pub fn begin(&mut self, index: usize) -> Segment {
        assert!(self.writing.is_none(), "two segments are written at once");
        let segment = self.segments.remove(index);
        self.writing = Some(segment);
        segment
    }

    /// The segment being written is on the medium.
    pub fn end(&mut self) {
        if let Some(segment) = self.writing.take() {
            self.used_blocks -= segment.extent.blocks.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::platters::{Layout, PlatterShape, Platters};
    use super::super::shingles::Shingles;
    use super::*;

    fn platters() -> Platters {
        let shape = PlatterShape {
            heads: 1,
            zones: 1,
            outer_track_blocks: 100,
            inner_track_blocks: 100,
            layout: Layout::SurfaceBySurface,
            head_rates: Vec::new(),
            revolution_ns: 1000,
            head_skew_ns: 1,
            track_skew_ns: 1,
        };
        Platters::new(shape, BlockCount(10_000), &Shingles::default())
    }

    fn take(cache: &mut WriteCache, start: u64, blocks: u64, sequence: u64) -> bool {
        let extent = Extent::new(start, blocks);
        cache.take(extent, Cause::Host, sequence, || platters().place(start))
    }

    #[test]
    fn adjoining_and_repeated_writes_share_a_segment() {
        let mut cache = WriteCache::new(BlockCount(1000), 2, 256);
        assert!(take(&mut cache, 0, 8, 1));
        assert!(take(&mut cache, 8, 8, 2));
        assert!(take(&mut cache, 4, 4, 3));
        assert!(take(&mut cache, 100, 8, 4));
        assert!(!take(&mut cache, 200, 8, 5), "two segments are all");
        assert_eq!(cache.segments()[0].extent, Extent::new(0, 16));
        assert_eq!(cache.used_blocks, 24);
        assert!(cache.covers(Extent::new(2, 14)) && !cache.covers(Extent::new(2, 15)));
    }

    #[test]
    fn a_segment_takes_room_until_it_is_written() {
        let mut cache = WriteCache::new(BlockCount(20), 8, 256);
        assert!(take(&mut cache, 0, 10, 1));
        assert!(take(&mut cache, 50, 10, 2));
        assert!(!take(&mut cache, 90, 1, 3));
        cache.begin(0);
        assert!(!take(&mut cache, 90, 1, 3));
        assert!(cache.is_dirty_before(2) && !cache.is_dirty_before(1));
        cache.end();
        assert!(!cache.is_dirty_before(2));
        assert!(take(&mut cache, 90, 1, 3));
    }

    #[test]
    fn a_segment_does_not_grow_without_end() {
        let mut cache = WriteCache::new(BlockCount(4096), 8, 256);
        for i in 0..3 {
            assert!(take(&mut cache, i * 128, 128, i));
        }
        assert_eq!(cache.segments().len(), 2);
    }
}
