//! What a drive file says of the overlap of its tracks, and what that makes of a disk.

use super::model::within;
use crate::quantity::Size;
use imbrex_core::disk::Shingling;
use imbrex_core::extent::Extent;
use imbrex_core::units::{BLOCK_BYTES, Lba};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// More tracks than any disk has.
const RUN_TRACKS_MAX: u64 = 1 << 32;
/// Real drives have a handful.
const OVERLAP_TRACKS_MAX: u64 = 1 << 20;

/// The overlap of tracks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShingleModel {
    /// How many tracks beside its own the writing of a track destroys: kappa - 1, since kappa, the
    /// width of the writer in tracks, counts the written track too.
    pub overlap_tracks: u64,
    /// Room beyond the user's capacity, as a share of it, for guard tracks and for rounding bands
    /// up to whole tracks.
    pub spare: f64,
    /// Runs of tracks with the direction in which they overlap, from the first track of the medium
    /// on, repeated to its end; every track overlaps upwards when there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<DirectionRun>,
    /// Parts of the medium whose tracks do not overlap.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conventional: Vec<ConventionalRun>,
}

/// A run of tracks that overlap in the same direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectionRun {
    /// Tracks of the run, guard tracks with them.
    pub tracks: u64,
    /// Which tracks the writing of one of them destroys.
    pub direction: ShingleDirection,
}

/// Which tracks the writing of a track destroys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShingleDirection {
    /// Those that follow in address order.
    Upwards,
    /// Those that precede in address order.
    Downwards,
}

/// A part of the medium whose tracks do not overlap, rounded outward to whole tracks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConventionalRun {
    /// Where on the medium it starts, guard tracks and whatever else no user sees counted.
    pub start: Size,
    /// How long it is.
    pub size: Size,
}

impl ShingleModel {
    /// Checks what the type of a field cannot say, on a drive of a capacity.
    pub(super) fn check(&self, capacity: Size) -> Result<(), String> {
        if !(0.0..=10.0).contains(&self.spare) {
            return Err(format!("shingles.spare = {} is not a share of 0 to 10", self.spare));
        }
        if self.overlap_tracks > OVERLAP_TRACKS_MAX {
            return Err(format!(
                "shingles.overlap_tracks = {}; accepted: at most {OVERLAP_TRACKS_MAX}",
                self.overlap_tracks
            ));
        }
        for run in &self.runs {
            within("shingles.runs: tracks", run.tracks, RUN_TRACKS_MAX)?;
        }
        let medium = capacity.0 + (capacity.0 as f64 * self.spare) as u64;
        for ConventionalRun { start, size } in &self.conventional {
            let fits = start.0.checked_add(size.0).is_some_and(|end| end <= medium);
            if size.0 == 0 || !fits {
                return Err(format!(
                    "shingles.conventional: {{ start = \"{start}\", size = \"{size}\" }}; accepted: a \
                     size above 0 that ends within the capacity and its spare share, {medium} B"
                ));
            }
        }
        Ok(())
    }
}

/// How the tracks of a disk overlap, before it is known how long they are.
#[derive(Clone, Debug, Default)]
pub struct Shingles {
    /// How many tracks beside its own the writing of a track destroys.
    pub overlap_tracks: u64,
    /// Tracks of each run and how they overlap, from the first track on, repeated to the end;
    /// upwards where there is none.
    pub runs: Vec<(u64, Shingling)>,
    /// Parts of the disk whose tracks do not overlap, each rounded outward to whole tracks. What
    /// lies beyond the disk is left out.
    pub conventional: Vec<Extent>,
}

impl Shingles {
    /// Those of a drive that is shrunk `scale` times, which has conventional parts of its own
    /// beside those that are asked for. Its runs keep their tracks; its conventional parts shrink.
    /// Without a model no track overlaps another.
    pub(super) fn of(
        model: Option<&ShingleModel>,
        scale: u64,
        conventional: &[Extent],
    ) -> Shingles {
        let mut shingles = Shingles { conventional: conventional.to_vec(), ..Shingles::default() };
        if let Some(model) = model {
            shingles.overlap_tracks = model.overlap_tracks;
            let runs = model.runs.iter();
            shingles.runs = runs.map(|run| (run.tracks, run.direction.into())).collect();
            let unit = BLOCK_BYTES * scale;
            let own = model.conventional.iter().map(|part| {
                let end = (part.start.0 + part.size.0).div_ceil(unit);
                Extent::between(Lba(part.start.0 / unit), Lba(end))
            });
            shingles.conventional.extend(own);
        }
        shingles
    }

    /// How each of `tracks` tracks overlaps, as runs; `conventional` are the tracks that do not.
    pub(super) fn of_tracks(
        &self,
        tracks: u64,
        mut conventional: Vec<Range<u64>>,
    ) -> Vec<(u64, Shingling)> {
        conventional.sort_by_key(|part| part.start);
        conventional.push(tracks..tracks);
        let mut all = Vec::new();
        let mut next = 0;
        for part in conventional {
            self.repeat_runs(next, part.start, &mut all);
            next = next.max(part.start);
            all.push((part.end.saturating_sub(next), Shingling::Apart));
            next = next.max(part.end);
        }
        all
    }

    /// Appends the part of the repeated runs from one track to another.
    fn repeat_runs(&self, from: u64, to: u64, all: &mut Vec<(u64, Shingling)>) {
        let period: u64 = self.runs.iter().map(|(tracks, _)| tracks).sum();
        if period == 0 {
            all.push((to.saturating_sub(from), Shingling::Upwards));
            return;
        }
        let mut start = from / period * period;
        for (tracks, shingling) in self.runs.iter().cycle() {
            if start >= to {
                return;
            }
            let end = start + tracks;
            let inside = end.min(to).saturating_sub(start.max(from));
            all.push((inside, *shingling));
            start = end;
        }
    }
}

impl From<ShingleDirection> for Shingling {
    fn from(direction: ShingleDirection) -> Shingling {
        match direction {
            ShingleDirection::Upwards => Shingling::Upwards,
            ShingleDirection::Downwards => Shingling::Downwards,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Shingling::{Apart, Downwards, Upwards};

    fn wave(tracks: u64, conventional: &[Range<u64>]) -> Vec<(u64, Shingling)> {
        let shingles = Shingles {
            overlap_tracks: 1,
            runs: vec![(3, Upwards), (2, Downwards)],
            conventional: Vec::new(),
        };
        let mut runs = shingles.of_tracks(tracks, conventional.to_vec());
        runs.retain(|(tracks, _)| *tracks > 0);
        runs
    }

    #[test]
    fn runs_are_repeated_to_the_end() {
        assert_eq!(wave(9, &[]), [(3, Upwards), (2, Downwards), (3, Upwards), (1, Downwards)]);
        let plain = Shingles::default().of_tracks(9, vec![0..2, 4..5]);
        assert_eq!(
            plain,
            [(0, Upwards), (2, Apart), (2, Upwards), (1, Apart), (4, Upwards), (0, Apart)]
        );
    }

    /// Conventional parts replace the tracks of the pattern without moving it, in whatever order
    /// they are listed and wherever they overlap.
    #[test]
    fn conventional_parts_lie_anywhere() {
        let expected = [
            (1, Apart),
            (2, Upwards),
            (1, Downwards),
            (2, Apart),
            (1, Apart),
            (1, Upwards),
            (1, Downwards),
        ];
        assert_eq!(wave(9, &[5..7, 0..1, 4..6]), expected);
        assert_eq!(wave(4, &[0..3, 3..4]), [(3, Apart), (1, Apart)]);
    }

    #[test]
    fn conventional_parts_shrink_with_the_drive() {
        let model = ShingleModel {
            overlap_tracks: 2,
            spare: 0.0,
            runs: vec![DirectionRun { tracks: 7, direction: ShingleDirection::Downwards }],
            conventional: vec![ConventionalRun { start: Size(40 * 4096), size: Size(30 * 4096) }],
        };
        let shingles = Shingles::of(Some(&model), 4, &[Extent::new(0, 5)]);
        let expected = [Extent::new(0, 5), Extent::new(10, 8)];
        assert_eq!(shingles.conventional, expected);
        assert_eq!(shingles.runs, [(7, Downwards)]);
        assert_eq!(shingles.overlap_tracks, 2);
    }
}
