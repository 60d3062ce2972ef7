//! Which block lies on which track, and which tracks a write destroys.

use crate::extent::Extent;
use crate::units::{BlockCount, Lba};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// A run of tracks of equal length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TrackRun {
    /// First block of the run.
    pub first_block: u64,
    /// First track of the run.
    pub first_track: u64,
    /// Tracks in the run.
    pub tracks: u64,
    /// Blocks on each of them.
    pub blocks_per_track: u64,
}

/// Which neighbours the writing of a track destroys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shingling {
    /// None: the tracks are conventional and may be written in any order.
    Apart,
    /// Those that follow in address order: the run is written from its first track to its last.
    Upwards,
    /// Those that precede in address order: the run is written from its last track to its first.
    Downwards,
}

/// A run of tracks that overlap in the same way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShingleRun {
    /// First track of the run.
    pub first_track: u64,
    /// Tracks in the run.
    pub tracks: u64,
    /// How they overlap.
    pub shingling: Shingling,
}

/// Track length assumed of a disk that does not tell its tracks (1 MiB).
pub const UNKNOWN_TRACK: BlockCount = BlockCount(256);

/// Which block lies on which track, in address order, and which tracks overlap.
///
/// The writer of a shingled disk is `overlap_tracks + 1` tracks wide (kappa). Writing a track
/// destroys the next `overlap_tracks` tracks in the shingle direction of the run that the written
/// track belongs to. The writer is as wide at the end of a run as elsewhere, so damage does not end
/// there:
///
/// | Border, in address order | What a write at the border destroys |
/// |---|---|
/// | upwards, downwards | tracks of the other run, on either side: both need unused guard tracks, which they may share |
/// | downwards, upwards | nothing across the border |
/// | upwards, conventional | the first conventional tracks |
/// | conventional, downwards | the last conventional tracks |
/// | conventional, upwards; downwards, conventional | nothing across the border |
///
/// A conventional track is written without harm to any other. Damage ends at the ends of the disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrackTable {
    runs: Vec<TrackRun>,
    /// All tracks in order; neighbours differ in how they overlap.
    shingle_runs: Vec<ShingleRun>,
    /// How many tracks beside its own the writing of a shingled track destroys: kappa - 1, since
    /// kappa counts the written track too.
    pub overlap_tracks: u64,
}

impl TrackTable {
    /// A table of `(tracks, blocks_per_track)` runs in address order, whose first
    /// `conventional_blocks` do not overlap while the others overlap upwards.
    ///
    /// Panics when a run is empty or the conventional part ends inside a track.
    pub fn new(
        runs: impl IntoIterator<Item = (u64, u64)>,
        conventional_blocks: BlockCount,
        overlap_tracks: u64,
    ) -> TrackTable {
        let mut table = TrackTable::of_lengths(runs, overlap_tracks);
        let (tracks, edge) = (table.tracks(), conventional_blocks.0);
        let mut conventional = tracks;
        if edge < table.blocks() {
            conventional = table.track_of(edge);
            let start = table.extent_of(conventional).start.0;
            assert_eq!(start, edge, "conventional part inside a track");
        }
        table.set_shingles([
            (conventional, Shingling::Apart),
            (tracks - conventional, Shingling::Upwards),
        ]);
        table
    }

    /// A table of `(tracks, blocks_per_track)` runs in address order, whose tracks overlap as
    /// `shingles` says, `(tracks, shingling)` in the same order.
    ///
    /// Panics when a run of tracks is empty or `shingles` are not as many tracks.
    pub fn with_shingles(
        runs: impl IntoIterator<Item = (u64, u64)>,
        shingles: impl IntoIterator<Item = (u64, Shingling)>,
        overlap_tracks: u64,
    ) -> TrackTable {
        let mut table = TrackTable::of_lengths(runs, overlap_tracks);
        table.set_shingles(shingles);
        table
    }

    /// A table of tracks that overlap upwards.
    fn of_lengths(runs: impl IntoIterator<Item = (u64, u64)>, overlap_tracks: u64) -> TrackTable {
        let (mut first_block, mut first_track) = (0, 0);
        let mut table = Vec::new();
        for (tracks, blocks_per_track) in runs {
            assert!(tracks > 0 && blocks_per_track > 0, "an empty run of tracks");
            table.push(TrackRun { first_block, first_track, tracks, blocks_per_track });
            first_block += tracks * blocks_per_track;
            first_track += tracks;
        }
        TrackTable {
            runs: table,
            shingle_runs: vec![ShingleRun {
                first_track: 0,
                tracks: first_track,
                shingling: Shingling::Upwards,
            }],
            overlap_tracks,
        }
    }

    fn set_shingles(&mut self, shingles: impl IntoIterator<Item = (u64, Shingling)>) {
        self.shingle_runs.clear();
        let mut first_track = 0;
        for (tracks, shingling) in shingles {
            match self.shingle_runs.last_mut() {
                _ if tracks == 0 => {}
                Some(last) if last.shingling == shingling => last.tracks += tracks,
                _ => self.shingle_runs.push(ShingleRun { first_track, tracks, shingling }),
            }
            first_track += tracks;
        }
        assert_eq!(first_track, self.tracks(), "each track overlaps in one way");
    }

    /// Blocks on all tracks.
    pub fn blocks(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.first_block + run.tracks * run.blocks_per_track)
    }

    /// Tracks in all.
    pub fn tracks(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.first_track + run.tracks)
    }

    /// The runs of tracks of equal length, in address order.
    pub fn runs(&self) -> &[TrackRun] {
        &self.runs
    }

    /// The runs of tracks that overlap in the same way, in address order: all tracks, neighbouring
    /// runs being different.
    pub fn shingle_runs(&self) -> &[ShingleRun] {
        &self.shingle_runs
    }

    /// How a track overlaps. Panics past the end.
    pub fn shingling_of(&self, track: u64) -> Shingling {
        let runs = &self.shingle_runs;
        let run = &runs[runs.partition_point(|run| run.first_track <= track) - 1];
        assert!(track < run.first_track + run.tracks, "track past the end");
        run.shingling
    }

    /// The tracks from one on that overlap downwards and adjoin, the first such ones. Panics past the end.
    pub fn next_downwards(&self, track: u64) -> Option<Range<u64>> {
        let runs = &self.shingle_runs;
        let first = runs.partition_point(|run| run.first_track <= track) - 1;
        let run = runs[first..].iter().find(|run| run.shingling == Shingling::Downwards)?;
        Some(run.first_track.max(track)..run.first_track + run.tracks)
    }

    /// Blocks at the start of the disk whose tracks do not overlap.
    pub fn conventional_prefix(&self) -> BlockCount {
        match self.shingle_runs.first() {
            Some(run) if run.shingling == Shingling::Apart => {
                BlockCount(self.extent_of(run.tracks - 1).end().0)
            }
            _ => BlockCount::ZERO,
        }
    }

    /// The first block on a track that destroys others when it is written and those are before
    /// it, if there is one.
    pub fn first_downwards(&self) -> Option<Lba> {
        let mut runs = self.shingle_runs.iter();
        let run = runs.find(|run| run.shingling == Shingling::Downwards)?;
        (self.overlap_tracks > 0).then(|| self.extent_of(run.first_track).start)
    }

    /// The tracks that the writing of a track destroys. Panics past the end.
    pub fn tracks_destroyed_by(&self, track: u64) -> Range<u64> {
        match self.shingling_of(track) {
            Shingling::Apart => track..track,
            Shingling::Upwards => {
                track + 1..(track + 1).saturating_add(self.overlap_tracks).min(self.tracks())
            }
            Shingling::Downwards => track.saturating_sub(self.overlap_tracks)..track,
        }
    }

    /// What the writing of `part`, which lies on one track, destroys: the same angular range of
    /// other tracks, rounded outward to whole blocks. Panics past the end.
    pub fn destroyed_by(&self, part: Extent) -> impl Iterator<Item = Extent> + '_ {
        let track = self.track_of(part.start.0);
        let whole = self.extent_of(track);
        let (from, to) = (part.start.0 - whole.start.0, part.end().0 - whole.start.0);
        self.tracks_destroyed_by(track).map(move |neighbour| {
            let beside = self.extent_of(neighbour);
            let scale = |block: u64| block * beside.blocks.0;
            let from = scale(from) / whole.blocks.0;
            let to = scale(to).div_ceil(whole.blocks.0);
            Extent::new(beside.start.0 + from, to - from)
        })
    }

    /// The run that holds a block. Panics past the end.
    #[inline]
    pub fn run_of_block(&self, block: u64) -> &TrackRun {
        let index = self.runs.partition_point(|run| run.first_block <= block) - 1;
        let run = &self.runs[index];
        assert!(block < run.first_block + run.tracks * run.blocks_per_track, "block past the end");
        run
    }

    /// The track that holds a block. Panics past the end.
    #[inline]
    pub fn track_of(&self, block: u64) -> u64 {
        let run = self.run_of_block(block);
        run.first_track + (block - run.first_block) / run.blocks_per_track
    }

    /// The blocks of a track. Panics past the end.
    pub fn extent_of(&self, track: u64) -> Extent {
        let index = self.runs.partition_point(|run| run.first_track <= track) - 1;
        let run = &self.runs[index];
        assert!(track < run.first_track + run.tracks, "track past the end");
        let start = run.first_block + (track - run.first_track) * run.blocks_per_track;
        Extent::new(start, run.blocks_per_track)
    }

    /// The start of the track that follows the one before `end` and `guard` tracks more; the end of
    /// the disk when there is none.
    pub fn start_after(&self, end: u64, guard: u64) -> u64 {
        let run = self.runs.partition_point(|run| run.first_block < end).saturating_sub(1);
        self.runs.get(run).map_or(0, |run| self.start_after_in(run, end, guard))
    }

    /// The same where the run is known that holds the block before `end`, or the last run when `end`
    /// is past the end of the disk.
    pub(super) fn start_after_in(&self, run: &TrackRun, end: u64, guard: u64) -> u64 {
        if end >= self.blocks() {
            return self.blocks();
        }
        if end == 0 {
            return 0;
        }
        assert!(run.first_block < end, "a place before the run of tracks");
        let in_run = (end - 1 - run.first_block) / run.blocks_per_track + 1 + guard;
        if in_run < run.tracks {
            return run.first_block + in_run * run.blocks_per_track;
        }
        let track = run.first_track + in_run;
        match track < self.tracks() {
            true => self.extent_of(track).start.0,
            false => self.blocks(),
        }
    }

    /// A disk that does not tell its tracks: tracks of 1 MiB that do not overlap; `None` when it
    /// is shorter than one.
    pub(crate) fn unknown(blocks: BlockCount) -> Option<TrackTable> {
        let tracks = blocks.0 / UNKNOWN_TRACK.0;
        let conventional = BlockCount(tracks * UNKNOWN_TRACK.0);
        (tracks > 0).then(|| TrackTable::new([(tracks, UNKNOWN_TRACK.0)], conventional, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::Shingling::{Apart, Downwards, Upwards};
    use super::*;

    /// The tracks that writing each track destroys, for runs of tracks of four blocks.
    fn destroyed(shingles: &[(u64, Shingling)], overlap_tracks: u64) -> Vec<Vec<u64>> {
        let tracks = shingles.iter().map(|(tracks, _)| tracks).sum();
        let shingles = shingles.iter().copied();
        let table = TrackTable::with_shingles([(tracks, 4)], shingles, overlap_tracks);
        (0..tracks).map(|track| table.tracks_destroyed_by(track).collect()).collect()
    }

    #[test]
    fn runs_that_face_each_other_destroy_tracks_of_one_another() {
        let seen = destroyed(&[(3, Upwards), (3, Downwards)], 2);
        let expected: [&[u64]; 6] = [&[1, 2], &[2, 3], &[3, 4], &[1, 2], &[2, 3], &[3, 4]];
        assert_eq!(seen, expected);
    }

    #[test]
    fn runs_back_to_back_spare_one_another() {
        let seen = destroyed(&[(3, Downwards), (3, Upwards)], 2);
        let expected: [&[u64]; 6] = [&[], &[0], &[0, 1], &[4, 5], &[5], &[]];
        assert_eq!(seen, expected);
    }

    #[test]
    fn conventional_tracks_harm_nothing_and_are_harmed_from_where_the_overlap_points() {
        let seen = destroyed(&[(2, Upwards), (3, Apart), (2, Downwards)], 1);
        let expected: [&[u64]; 7] = [&[1], &[2], &[], &[], &[], &[4], &[5]];
        assert_eq!(seen, expected);
        let seen = destroyed(&[(2, Downwards), (2, Apart), (2, Upwards)], 1);
        let expected: [&[u64]; 6] = [&[], &[0], &[], &[], &[5], &[]];
        assert_eq!(seen, expected);
    }

    #[test]
    fn damage_keeps_to_the_angle_in_both_directions() {
        let table = TrackTable::with_shingles([(2, 12), (2, 8)], [(2, Upwards), (2, Downwards)], 1);
        let lost = |start, blocks| -> Vec<Extent> {
            table.destroyed_by(Extent::new(start, blocks)).collect()
        };
        // Blocks 3 to 6 of 12 are a quarter to a half of the turn: blocks 2 to 4 of 8, and back.
        assert_eq!(lost(12 + 3, 3), [Extent::new(24 + 2, 2)]);
        assert_eq!(lost(24 + 2, 2), [Extent::new(12 + 3, 3)]);
        assert_eq!(lost(24 + 3, 1), [Extent::new(12 + 4, 2)], "rounded outward");
    }

    #[test]
    fn equal_neighbours_are_one_run_and_empty_ones_none() {
        let shingles = [(2, Apart), (0, Downwards), (1, Apart), (3, Upwards)];
        let table = TrackTable::with_shingles([(6, 4)], shingles, 1);
        let prefix = TrackTable::new([(6, 4)], BlockCount(12), 1);
        assert_eq!(table, prefix);
        assert_eq!(table.conventional_prefix(), BlockCount(12));
        assert_eq!(table.shingle_runs().len(), 2);
        assert_eq!(table.first_downwards(), None);
    }

    #[test]
    fn a_downward_run_is_found_where_it_can_do_harm() {
        let table =
            |overlap| TrackTable::with_shingles([(6, 4)], [(4, Upwards), (2, Downwards)], overlap);
        assert_eq!(table(1).first_downwards(), Some(Lba(16)));
        assert_eq!(table(0).first_downwards(), None);
        assert_eq!(table(1).conventional_prefix(), BlockCount::ZERO);
    }
}
