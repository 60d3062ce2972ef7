//! What a band rewrite need not do with blocks that the log holds: read them at home, since the merged
//! copy takes them from the log, and copy them to the scratch band, since they leave the log only when
//! all of the band is home.
//!
//! Writing a stretch home destroys the tracks behind it, which are carried on to the next. So a stretch
//! goes home without a copy only if the log holds it with what is carried from it and what was carried
//! to it. Until the band is whole, every block that is not whole at home is then in the log, in the
//! scratch band or zeroed, and a rewrite that fails or is given up begins anew from these.

use super::block_map::BlockMap;
use super::shape::Shape;
use crate::extent::Extent;
use crate::map::{BandId, Piece};
use crate::saved::SavedValue;
use crate::units::Lba;
use alloc::vec::Vec;
use core::ops::Range;

/// The runs of a stretch that are not read at home, as offsets from the first block to be read.
#[derive(Debug, Default, SavedValue)]
pub(super) struct Unread {
    runs: Vec<Range<u64>>,
    /// What the log gives, while the runs are being found; kept for its memory.
    covered: Vec<Extent>,
}

impl Unread {
    /// All of it is read.
    pub fn clear(&mut self) {
        self.runs.clear();
    }

    /// Finds what is not read of `part`, of which the log gives `gathered`: what it gives at either
    /// end, and what lies between if it is as long as a track. A shorter run passes below the head
    /// in less than the turn that it may cost to begin again behind it.
    pub fn find(&mut self, gathered: &[Piece], band: BandId, part: Extent, shape: &Shape) {
        self.clear();
        let covered = &mut self.covered;
        covered.clear();
        let extents = gathered.iter().map(|piece| piece.extent);
        covered.extend(extents.filter_map(|extent| extent.intersection(part)));
        covered.sort_unstable_by_key(|extent| extent.start);
        covered.dedup_by(|second, first| {
            let adjoin = first.end() == second.start;
            if adjoin {
                *first = Extent::between(first.start, second.end());
            }
            adjoin
        });
        let band_start = shape.bands.extent_of(band).start;
        let is_left_out = |run: &Extent| {
            let offset = run.start.offset_from(band_start);
            let track =
                shape.layout.track_start(band, offset)..shape.layout.track_end(band, offset);
            let is_at_end = run.start == part.start || run.end() == part.end();
            is_at_end || run.blocks.0 >= track.end - track.start
        };
        let offset = |lba: Lba| lba.offset_from(part.start);
        let left_out = covered.iter().filter(|run| is_left_out(run));
        self.runs.extend(left_out.map(|run| offset(run.start)..offset(run.end())));
    }

    /// The next run to be read, from `next` on and before `end`; empty when there is none.
    pub fn run_to_read(&self, next: u64, end: u64) -> Range<u64> {
        let mut start = next;
        for unread in &self.runs {
            if start < unread.start {
                return start..unread.start.min(end);
            }
            start = start.max(unread.end);
        }
        start.min(end)..end
    }

    /// How many blocks from `next` on are not read.
    pub fn blocks_from(&self, next: u64) -> u64 {
        let behind = |unread: &Range<u64>| unread.end.max(next) - unread.start.max(next);
        self.runs.iter().map(behind).sum()
    }
}

impl BlockMap {
    /// True when the log holds every block of an extent at a position before `before`.
    pub(super) fn log_covers(&self, extent: Extent, before: u64) -> bool {
        let pieces = self.log.map().pieces(extent);
        let covered: u64 =
            pieces.filter(|piece| piece.position < before).map(|piece| piece.extent.blocks.0).sum();
        covered == extent.blocks.0
    }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "a list of one run")]
mod tests {
    use super::*;
    use crate::disk::{Geometry, Media, TrackTable};
    use crate::map::BandTable;
    use crate::translation::persistent_cache::conduct::Conduct;
    use crate::translation::persistent_cache::disks::Disks;
    use crate::translation::persistent_cache::layout::Layout;
    use crate::translation::persistent_cache::log::Log;
    use crate::translation::persistent_cache::settings::PersistentCacheSettings;
    use crate::units::BlockCount;
    use alloc::sync::Arc;

    /// Bands of 64 blocks on tracks of 8, a log of 32.
    fn shape() -> Shape {
        let settings = PersistentCacheSettings::new(BlockCount(32));
        let tracks = TrackTable::new([(64, 8)], BlockCount(64), 1);
        let disk = Geometry {
            tracks: Some(Arc::new(tracks)),
            ..Geometry::plain(BlockCount(512), Media::Shingled)
        };
        let bands = Arc::new(BandTable::new([64; 2].map(BlockCount)));
        let layout = Layout::new(&settings, &bands, Disks::One(&disk)).expect("a layout");
        let conduct = Conduct::of_a_drive(&settings);
        Shape::new(settings, conduct, bands, layout)
    }

    /// What is read of the blocks 64 to 112, the first 48 of the second band, when the log holds
    /// these runs.
    fn read_runs(covered: &[(u64, u64)]) -> Vec<Range<u64>> {
        let pieces: Vec<Piece> = covered
            .iter()
            .map(|(start, blocks)| Piece { extent: Extent::new(*start, *blocks), position: 0 })
            .collect();
        let mut unread = Unread::default();
        unread.find(&pieces, BandId(1), Extent::new(64, 48), &shape());
        let (mut next, mut runs) = (0, Vec::new());
        loop {
            let run = unread.run_to_read(next, 48);
            if run.is_empty() {
                break;
            }
            next = run.end;
            runs.push(run);
        }
        let read: u64 = runs.iter().map(|run| run.end - run.start).sum();
        assert_eq!(unread.blocks_from(0), 48 - read);
        runs
    }

    #[test]
    fn what_the_log_holds_is_left_out_at_the_ends_and_from_a_track_on() {
        assert_eq!(read_runs(&[]), [0..48]);
        assert_eq!(read_runs(&[(64, 1), (111, 1)]), [1..47], "at the ends");
        assert_eq!(read_runs(&[(72, 7)]), [0..48], "shorter than a track");
        assert_eq!(read_runs(&[(75, 8)]), [0..11, 19..48], "a track long");
        let in_two = [(79, 4), (75, 4)];
        assert_eq!(read_runs(&in_two), [0..11, 19..48], "written in two");
        assert_eq!(read_runs(&[(60, 10), (100, 20)]), [6..36], "beyond the part");
        assert_eq!(read_runs(&[(64, 48)]), [], "all of it");
    }

    #[test]
    fn what_was_written_since_covers_nothing() {
        let shape = shape();
        let mut blocks = BlockMap::new(&shape, Log::new(BlockCount(32), BlockCount(16), None));
        blocks.append(Extent::new(0, 8));
        let before = blocks.append(Extent::new(8, 8)) + 8;
        assert!(blocks.log_covers(Extent::new(0, 16), before));
        assert!(!blocks.log_covers(Extent::new(0, 17), before));
        blocks.append(Extent::new(4, 1));
        assert!(!blocks.log_covers(Extent::new(0, 16), before));
        assert!(blocks.log_covers(Extent::new(5, 11), before));
    }
}
