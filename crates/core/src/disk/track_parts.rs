//! A part of a disk, as a table of tracks of its own.

use super::{Shingling, TrackTable};
use crate::extent::Extent;
use crate::units::Lba;
use alloc::vec::Vec;
use core::ops::Range;

impl TrackTable {
    /// True when the writing of some track destroys another.
    pub fn has_overlaps(&self) -> bool {
        let mut runs = self.shingle_runs().iter();
        self.overlap_tracks > 0 && runs.any(|run| run.shingling != Shingling::Apart)
    }

    /// The longest run of whole tracks inside `wanted` whose writing destroys no track outside
    /// `wanted`, whichever of them is written. Of tracks that do not overlap it is all of `wanted`.
    pub fn harmless_part(&self, wanted: Extent) -> Extent {
        if !self.has_overlaps() || wanted.is_empty() {
            return wanted;
        }
        let tracks = self.whole_tracks(wanted);
        let harmless = self.harmless_tracks(tracks);
        match harmless.is_empty() {
            true => Extent::EMPTY,
            false => Extent::between(
                self.extent_of(harmless.start).start,
                self.extent_of(harmless.end - 1).end(),
            ),
        }
    }

    /// The tracks that lie inside an extent as a whole.
    fn whole_tracks(&self, extent: Extent) -> Range<u64> {
        let mut first = self.track_of(extent.start.0);
        if self.extent_of(first).start < extent.start {
            first += 1;
        }
        let last = extent.end().0.min(self.blocks()) - 1;
        let mut end = self.track_of(last) + 1;
        if self.extent_of(end - 1).end() > extent.end() {
            end -= 1;
        }
        first..end.max(first)
    }

    /// Without the tracks at the ends that are only guards of their neighbours outside.
    fn harmless_tracks(&self, tracks: Range<u64>) -> Range<u64> {
        let near_start = tracks.start..tracks.end.min(tracks.start + self.overlap_tracks);
        let reaches_down = |track: &u64| self.tracks_destroyed_by(*track).start < tracks.start;
        let first = near_start.rev().find(reaches_down);
        let start = first.map_or(tracks.start, |track| track + 1);
        let near_end = tracks.end.saturating_sub(self.overlap_tracks).max(start)..tracks.end;
        let reaches_up = |track: &u64| self.tracks_destroyed_by(*track).end > tracks.end;
        let end = near_end.into_iter().find(reaches_up).unwrap_or(tracks.end);
        start..end.max(start)
    }

    /// The tracks of an extent, which is not empty, in addresses that begin at 0. A track that the
    /// extent cuts is shorter. Panics past the end.
    pub fn part(&self, extent: Extent) -> TrackTable {
        let mut lengths = Vec::new();
        for run in self.runs() {
            let length = run.blocks_per_track;
            let all = Extent::new(run.first_block, run.tracks * length);
            let Some(inside) = all.intersection(extent) else {
                continue;
            };
            let cut = (inside.start.0 - run.first_block) % length;
            let before = match cut {
                0 => 0,
                _ => (length - cut).min(inside.blocks.0),
            };
            let (whole, after) =
                ((inside.blocks.0 - before) / length, (inside.blocks.0 - before) % length);
            let parts = [(u64::from(before > 0), before), (whole, length), (1, after)];
            lengths.extend(parts.into_iter().filter(|part| part.0 > 0 && part.1 > 0));
        }
        let last = Lba(extent.end().0 - 1);
        let (first, end) = (self.track_of(extent.start.0), self.track_of(last.0) + 1);
        let shingles = self.shingle_runs().iter().map(|run| {
            let (from, to) = (run.first_track, run.first_track + run.tracks);
            let inside = to.min(end).saturating_sub(from.max(first));
            (inside, run.shingling)
        });
        TrackTable::with_shingles(lengths, shingles, self.overlap_tracks)
    }
}

#[cfg(test)]
mod tests {
    use super::Shingling::{Apart, Downwards, Upwards};
    use super::*;
    use crate::rng::Rng;

    /// Tracks of six blocks, then of four, that overlap as told.
    fn table(shingles: &[(u64, Shingling)], overlap_tracks: u64) -> TrackTable {
        let tracks: u64 = shingles.iter().map(|(tracks, _)| tracks).sum();
        let shingles = shingles.iter().copied();
        let runs = [(tracks / 2, 6), (tracks - tracks / 2, 4)];
        let runs = runs.into_iter().filter(|run| run.0 > 0);
        TrackTable::with_shingles(runs, shingles, overlap_tracks)
    }

    #[test]
    fn a_part_rounds_inward_and_leaves_the_guard_that_its_direction_needs() {
        let up = table(&[(20, Upwards)], 2);
        // Blocks 0 to 60 are ten tracks of six.
        assert_eq!(up.harmless_part(Extent::new(0, 30)), Extent::new(0, 18));
        assert_eq!(up.harmless_part(Extent::new(1, 34)), Extent::new(6, 12));
        assert_eq!(
            up.harmless_part(Extent::new(60, 40)),
            Extent::new(60, 40),
            "to the end of the disk"
        );
        let down = table(&[(20, Downwards)], 2);
        assert_eq!(
            down.harmless_part(Extent::new(0, 30)),
            Extent::new(0, 30),
            "from the start of the disk"
        );
        assert_eq!(down.harmless_part(Extent::new(30, 30)), Extent::new(42, 18));
        assert!(up.harmless_part(Extent::new(0, 12)).is_empty());
        assert!(up.harmless_part(Extent::new(1, 4)).is_empty());
    }

    #[test]
    fn where_nothing_is_destroyed_there_is_no_guard() {
        let facing_away = table(&[(5, Downwards), (5, Upwards), (10, Apart)], 2);
        assert_eq!(facing_away.harmless_part(Extent::new(0, 30)), Extent::new(0, 30));
        // Conventional tracks behind upward ones are destroyed like any other.
        assert_eq!(facing_away.harmless_part(Extent::new(30, 30)), Extent::new(30, 18));
        let plain = table(&[(20, Apart)], 2);
        assert_eq!(plain.harmless_part(Extent::new(7, 31)), Extent::new(7, 31));
    }

    #[test]
    fn a_part_destroys_inside_what_the_disk_does_and_nothing_outside() {
        let mut rng = Rng::new(7, 0);
        for _ in 0..2_000 {
            let mut shingles = Vec::new();
            for _ in 0..1 + rng.below(5) {
                let shingling = [Apart, Upwards, Downwards][rng.below(3) as usize];
                shingles.push((1 + rng.below(6), shingling));
            }
            let disk = table(&shingles, rng.below(4));
            let start = rng.below(disk.blocks());
            let wanted = Extent::new(start, 1 + rng.below(disk.blocks() - start));
            let harmless = disk.harmless_part(wanted);
            if harmless.is_empty() {
                continue;
            }
            assert!(wanted.covers(harmless));
            let part = disk.part(harmless);
            assert_eq!(part.blocks(), harmless.blocks.0);
            for at in 0..part.blocks() {
                let there = Extent::new(harmless.start.0 + at, 1);
                let on_disk: Vec<Extent> = disk.destroyed_by(there).collect();
                assert!(on_disk.iter().all(|lost| wanted.covers(*lost)), "{shingles:?} {wanted:?}");
                if !disk.has_overlaps() {
                    continue;
                }
                let inside = |lost: &Extent| lost.intersection(harmless);
                let expected: Vec<Extent> = on_disk.iter().filter_map(inside).collect();
                let of_part = part.destroyed_by(Extent::new(at, 1));
                let shifted =
                    of_part.map(|lost| Extent::new(lost.start.0 + harmless.start.0, lost.blocks.0));
                assert_eq!(shifted.collect::<Vec<_>>(), expected, "{shingles:?} {harmless:?}");
            }
        }
    }
}
