//! The part of a drive's memory that answers reads: segments of blocks that were read or written.

use crate::quantity::{Size, Span};
use imbrex_core::extent::Extent;
use imbrex_core::saved::Saved;
use imbrex_core::units::Duration;
use serde::{Deserialize, Serialize};

use super::arm::Direction;

/// The table `[segments]` of a drive file: a drive that keeps several streams. Without it a drive
/// keeps the one it read last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentModel {
    /// Segments in all; the least recently used one makes room.
    pub count: u32,
    /// Room of each.
    pub size: Size,
    /// Where reading ahead ends, beside `cache.read_ahead` and the end of the segment.
    pub read_ahead_to: ReadAheadTo,
    /// Whether the drive reads on after a read that needed nothing from the medium.
    pub after_hit: bool,
    /// Whether blocks that pass the head before the first one asked for are kept.
    pub keeps_passed: bool,
    /// Whether reads find what was written and is on the medium already.
    pub keeps_written: bool,
    /// Whether one of the segments is for writes alone, and reads do not look there.
    #[serde(default)]
    pub separate_write_segment: bool,
}

impl SegmentModel {
    /// Checks what the type of a field cannot say.
    ///
    /// # Errors
    /// A sentence that names the field, its value and what is accepted.
    pub(super) fn check(&self) -> Result<(), String> {
        if !self.separate_write_segment {
            return Ok(());
        }
        if self.count < 2 {
            return Err(format!(
                "segments.count = {}; accepted with separate_write_segment = true: from 2 on",
                self.count
            ));
        }
        if self.keeps_written {
            return Err(
                "segments.keeps_written = true; accepted with separate_write_segment = true: false, \
                 because reads do not look into that segment"
                    .to_string(),
            );
        }
        Ok(())
    }
}

/// Where reading ahead ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadAheadTo {
    /// Where the segment is full.
    Segment,
    /// At the end of the track; of the next one for a stream that has come from an earlier track.
    Track,
    /// At the end of the track, always.
    TrackEnd,
    /// At the end of the cylinder.
    CylinderEnd,
}

/// The table `[overheads]` of a drive file: what a request takes before it needs arm or bus, by
/// its kind and the kind of the one before it. Without it `queue.command_overhead` goes for what
/// needs the arm and `cache.latency` for what does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverheadModel {
    /// A read from memory.
    pub read_hit_after_read: Span,
    /// The same after a write.
    pub read_hit_after_write: Span,
    /// A read from the medium.
    pub read_miss_after_read: Span,
    /// The same after a write.
    pub read_miss_after_write: Span,
    /// A write answered from memory.
    pub write_hit_after_read: Span,
    /// The same after a write.
    pub write_hit_after_write: Span,
    /// A write answered from the medium.
    pub write_miss_after_read: Span,
    /// The same after a write.
    pub write_miss_after_write: Span,
}

/// What requests take by kind, kind of the one before, and whether memory is enough.
#[derive(Clone, Copy, Debug)]
pub struct Overheads {
    /// By kind and kind of the one before.
    hit: [[Duration; 2]; 2],
    miss: [[Duration; 2]; 2],
}

impl Overheads {
    /// All hits and all misses alike.
    pub fn even(hit: Duration, miss: Duration) -> Overheads {
        Overheads { hit: [[hit; 2]; 2], miss: [[miss; 2]; 2] }
    }

    /// As a drive file states them.
    pub fn of(model: &OverheadModel) -> Overheads {
        let (read, write) = (Direction::Read as usize, Direction::Write as usize);
        let mut all = Overheads::even(Duration::ZERO, Duration::ZERO);
        all.hit[read][read] = model.read_hit_after_read.0;
        all.hit[read][write] = model.read_hit_after_write.0;
        all.hit[write][read] = model.write_hit_after_read.0;
        all.hit[write][write] = model.write_hit_after_write.0;
        all.miss[read][read] = model.read_miss_after_read.0;
        all.miss[read][write] = model.read_miss_after_write.0;
        all.miss[write][read] = model.write_miss_after_read.0;
        all.miss[write][write] = model.write_miss_after_write.0;
        all
    }

    /// Of a request that memory answers, after one of kind `last`.
    #[inline]
    pub fn hit(&self, direction: Direction, last: Direction) -> Duration {
        self.hit[direction as usize][last as usize]
    }

    /// Of a request that needs the medium, after one of kind `last`.
    #[inline]
    pub fn miss(&self, direction: Direction, last: Direction) -> Duration {
        self.miss[direction as usize][last as usize]
    }
}

/// Segments that are not being read into.
#[derive(Clone, Debug, Saved)]
pub struct Segments {
    /// Where reading ahead ends.
    #[saved(keep)]
    pub read_ahead_to: ReadAheadTo,
    /// As [`SegmentModel::after_hit`].
    #[saved(keep)]
    pub after_hit: bool,
    /// As [`SegmentModel::keeps_passed`].
    #[saved(keep)]
    pub keeps_passed: bool,
    #[saved(keep)]
    keeps_written: bool,
    /// Room of each.
    pub blocks: u64,
    /// Most recently used last.
    held: Vec<Extent>,
    /// As many when none is read into.
    held_max: usize,
}

impl Segments {
    /// Empty segments, in blocks of `block_bytes`.
    pub fn new(model: &SegmentModel, block_bytes: u64) -> Segments {
        let for_writes = u32::from(model.separate_write_segment);
        let held_max = (model.count - for_writes) as usize;
        Segments {
            read_ahead_to: model.read_ahead_to,
            after_hit: model.after_hit,
            keeps_passed: model.keeps_passed,
            keeps_written: model.keeps_written,
            blocks: model.size.0 / block_bytes,
            held: Vec::with_capacity(held_max + 1),
            held_max,
        }
    }

    /// Keeps the last blocks of an extent, as many as a segment holds.
    pub fn keep(&mut self, extent: Extent) {
        let blocks = extent.blocks.0.min(self.blocks);
        if blocks == 0 {
            return;
        }
        if self.held.len() >= self.held_max {
            self.held.remove(0);
        }
        self.held.push(Extent::new(extent.end().0 - blocks, blocks));
    }

    /// Frees a segment for what is read now.
    pub fn make_room(&mut self) {
        if self.held.len() >= self.held_max {
            self.held.remove(0);
        }
    }

    /// Whether a segment holds all of `extent`, which is then the most recently used.
    pub fn covers(&mut self, extent: Extent) -> bool {
        let found = self.held.iter().rposition(|held| held.covers(extent));
        if let Some(index) = found {
            let held = self.held.remove(index);
            self.held.push(held);
        }
        found.is_some()
    }

    /// Takes out a segment that holds the first blocks of `extent` and ends inside it or just
    /// before it.
    pub fn take_start(&mut self, extent: Extent) -> Option<Extent> {
        let (start, end) = (extent.start.0, extent.end().0);
        let index = self.held.iter().rposition(|held| {
            held.start.0 <= start && start <= held.end().0 && held.end().0 < end
        })?;
        Some(self.held.remove(index))
    }

    /// Blocks were written: what is held of them is no longer true, and the new may be kept.
    pub fn written(&mut self, extent: Extent) {
        self.held.retain(|held| held.intersection(extent).is_none());
        if self.keeps_written {
            let begun = self.held.iter().rposition(|held| held.end() == extent.start);
            let start = begun.map_or(extent.start.0, |index| self.held.remove(index).start.0);
            self.keep(Extent::new(start, extent.end().0 - start));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(count: u32, blocks: u64, keeps_written: bool) -> Segments {
        let model = SegmentModel {
            count,
            size: Size(blocks * 512),
            read_ahead_to: ReadAheadTo::Segment,
            after_hit: false,
            keeps_passed: false,
            keeps_written,
            separate_write_segment: false,
        };
        Segments::new(&model, 512)
    }

    #[test]
    fn the_least_recently_used_segment_makes_room() {
        let mut segments = segments(2, 100, false);
        segments.keep(Extent::new(0, 10));
        segments.keep(Extent::new(100, 10));
        assert!(segments.covers(Extent::new(2, 8)));
        segments.keep(Extent::new(200, 10));
        assert!(segments.covers(Extent::new(0, 10)));
        assert!(!segments.covers(Extent::new(100, 1)));
    }

    #[test]
    fn a_segment_holds_the_last_blocks_that_fit() {
        let mut segments = segments(2, 100, false);
        segments.keep(Extent::new(0, 130));
        assert!(!segments.covers(Extent::new(29, 10)));
        assert!(segments.covers(Extent::new(30, 100)));
        assert_eq!(segments.take_start(Extent::new(30, 100)), None);
        let start = segments.take_start(Extent::new(120, 20));
        assert_eq!(start, Some(Extent::new(30, 100)));
        assert!(!segments.covers(Extent::new(30, 100)));
    }

    #[test]
    fn writes_replace_what_is_held_and_may_be_read_back() {
        for keeps_written in [false, true] {
            let mut segments = segments(4, 100, keeps_written);
            segments.keep(Extent::new(0, 50));
            segments.written(Extent::new(49, 5));
            assert!(!segments.covers(Extent::new(0, 10)));
            segments.written(Extent::new(54, 6));
            assert_eq!(segments.covers(Extent::new(49, 11)), keeps_written);
        }
    }
}
