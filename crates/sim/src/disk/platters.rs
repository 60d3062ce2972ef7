//! Where a block lies on the platters: cylinder, surface and angle.

use imbrex_core::disk::TrackTable;
use imbrex_core::units::BlockCount;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// In which order the tracks of a zone are numbered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// All tracks of a cylinder, then the next cylinder.
    CylinderByCylinder,
    /// All tracks of a zone on one surface, then the next surface in the other direction. Tracks
    /// that follow one another are then neighbours, as shingling needs.
    SurfaceBySurface,
}

/// What the platters are made from.
#[derive(Clone, Debug)]
pub struct PlatterShape {
    /// Surfaces with a head each.
    pub heads: u64,
    /// Zones of equally long tracks.
    pub zones: u64,
    /// Blocks on a track of the first zone.
    pub outer_track_blocks: u64,
    /// Blocks on a track of the last zone.
    pub inner_track_blocks: u64,
    /// Numbering of tracks.
    pub layout: Layout,
    /// Length of the tracks of each surface, relative to the above; empty where all are alike.
    /// Needs tracks that are numbered surface by surface.
    pub head_rates: Vec<f64>,
    /// Time of a revolution in nanoseconds.
    pub revolution_ns: u64,
    /// By how much a track on the next surface starts later, in nanoseconds.
    pub head_skew_ns: u64,
    /// By how much a track on the next cylinder starts later, in nanoseconds.
    pub track_skew_ns: u64,
}

/// Tracks of equal length that follow one another in address order: those of a zone, or of a zone
/// on one surface where the surfaces differ.
#[derive(Clone, Copy, Debug)]
struct Zone {
    first_block: u64,
    first_cylinder: u64,
    first_surface: u64,
    tracks: u64,
    blocks_per_track: u64,
    /// By how much its first track starts late.
    skew_ns: u64,
}

/// A track and a block on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    zone: u32,
    /// Track in the zone.
    track: u64,
    /// Block on the track.
    pub offset: u64,
    /// Blocks on the track.
    pub blocks_per_track: u64,
    /// Distance from the outermost cylinder.
    pub cylinder: u64,
    /// Surface.
    pub surface: u64,
    /// Angle of the first block of the track, as time in nanoseconds below a revolution.
    start_angle_ns: u64,
}

/// The tracks of a disk and their places.
#[derive(Clone, Debug)]
pub struct Platters {
    shape: PlatterShape,
    zones: Vec<Zone>,
    cylinders_per_zone: u64,
    cylinders: u64,
    tracks: Arc<TrackTable>,
}

impl Platters {
    /// Platters that hold at least `blocks`: each zone gets as many tracks as that takes. The
    /// length of tracks falls linearly from the outer to the inner zone. The first
    /// `conventional_blocks`, rounded up to a whole track, do not overlap.
    pub fn new(
        shape: PlatterShape,
        blocks: BlockCount,
        conventional_blocks: BlockCount,
        overlap_tracks: u64,
    ) -> Platters {
        let PlatterShape { heads, .. } = shape;
        let surfaces = if shape.head_rates.is_empty() {
            1
        } else {
            heads
        };
        let length = |zone: u64, surface: u64| {
            let (outer, inner) = (shape.outer_track_blocks, shape.inner_track_blocks);
            let last = (shape.zones - 1).max(1);
            let blocks = outer - ((outer - inner) * zone + last / 2) / last;
            match shape.head_rates.get(surface as usize) {
                Some(rate) => ((blocks as f64 * rate).round() as u64).max(1),
                None => blocks,
            }
        };
        let parts =
            || (0..shape.zones).flat_map(|zone| (0..surfaces).map(move |surface| (zone, surface)));
        let cylinder_of_each: u64 = parts()
            .map(|(zone, surface)| length(zone, surface) * heads / surfaces)
            .sum();
        let cylinders_per_zone = blocks.0.div_ceil(cylinder_of_each).max(1);
        let tracks = cylinders_per_zone * heads / surfaces;
        let surface_skew_ns = (cylinders_per_zone - 1) * shape.track_skew_ns + shape.head_skew_ns;
        let mut zones = Vec::new();
        let mut first_block = 0;
        for (zone, surface) in parts() {
            let blocks_per_track = length(zone, surface);
            zones.push(Zone {
                first_block,
                first_cylinder: zone * cylinders_per_zone,
                first_surface: surface,
                tracks,
                blocks_per_track,
                skew_ns: surface * surface_skew_ns,
            });
            first_block += blocks_per_track * tracks;
        }
        let runs = || {
            zones
                .iter()
                .map(|zone| (zone.tracks, zone.blocks_per_track))
        };
        let bare = TrackTable::new(runs(), BlockCount::ZERO, 0);
        let conventional = match conventional_blocks.0.min(bare.blocks()) {
            0 => 0,
            blocks => bare.extent_of(bare.track_of(blocks - 1)).end().0,
        };
        Platters {
            tracks: Arc::new(TrackTable::new(
                runs(),
                BlockCount(conventional),
                overlap_tracks,
            )),
            cylinders: shape.zones * cylinders_per_zone,
            shape,
            zones,
            cylinders_per_zone,
        }
    }

    /// The tracks in address order.
    pub fn tracks(&self) -> &Arc<TrackTable> {
        &self.tracks
    }

    /// Cylinders in all.
    pub fn cylinders(&self) -> u64 {
        self.cylinders
    }

    /// Time of a revolution in nanoseconds.
    #[inline]
    pub fn revolution_ns(&self) -> u64 {
        self.shape.revolution_ns
    }

    /// Where a block lies.
    #[inline]
    pub fn place(&self, block: u64) -> Place {
        let index = self.zones.partition_point(|zone| zone.first_block <= block) - 1;
        let zone = &self.zones[index];
        let within = block - zone.first_block;
        let track = within / zone.blocks_per_track;
        self.on_track(index as u32, track, within - track * zone.blocks_per_track)
    }

    /// The first block of the track after `place`; that of the last track is the first of all, so
    /// that a look-ahead at the end of the disk has somewhere to stand.
    #[inline]
    pub fn next_track(&self, place: &Place) -> Place {
        if place.track + 1 < self.zones[place.zone as usize].tracks {
            return self.on_track(place.zone, place.track + 1, 0);
        }
        let zone = place.zone + 1;
        let zone = if (zone as usize) < self.zones.len() {
            zone
        } else {
            0
        };
        self.on_track(zone, 0, 0)
    }

    #[inline]
    fn on_track(&self, zone: u32, track: u64, offset: u64) -> Place {
        let PlatterShape {
            heads,
            layout,
            revolution_ns,
            head_skew_ns,
            track_skew_ns,
            ..
        } = self.shape;
        let Zone {
            first_cylinder,
            first_surface,
            blocks_per_track,
            skew_ns: zone_skew_ns,
            ..
        } = self.zones[zone as usize];
        // Each step to the next track delays its start by what the step takes, so a sequential
        // transfer finds the first block just arriving.
        let (cylinder, surface, skew_ns) = match layout {
            Layout::CylinderByCylinder => {
                let cylinder = track / heads;
                let skew = (track - cylinder) * head_skew_ns + cylinder * track_skew_ns;
                (cylinder, track - cylinder * heads, skew)
            }
            Layout::SurfaceBySurface => {
                let surfaces = track / self.cylinders_per_zone;
                let along = track - surfaces * self.cylinders_per_zone;
                let surface = first_surface + surfaces;
                let cylinder = if surface.is_multiple_of(2) {
                    along
                } else {
                    self.cylinders_per_zone - 1 - along
                };
                let skew = (track - surfaces) * track_skew_ns + surfaces * head_skew_ns;
                (cylinder, surface, skew)
            }
        };
        Place {
            zone,
            track,
            offset,
            blocks_per_track,
            cylinder: first_cylinder + cylinder,
            surface,
            start_angle_ns: (zone_skew_ns + skew_ns) % revolution_ns,
        }
    }

    /// Angle at which block `offset` of the track of `place` starts, as time below a revolution.
    #[inline]
    pub fn angle_ns(&self, place: &Place, offset: u64) -> u64 {
        let angle = place.start_angle_ns + self.sweep_ns(place, offset);
        if angle >= self.shape.revolution_ns {
            angle - self.shape.revolution_ns
        } else {
            angle
        }
    }

    /// Time the first `blocks` blocks of the track take to pass the head.
    #[inline]
    pub fn sweep_ns(&self, place: &Place, blocks: u64) -> u64 {
        blocks * self.shape.revolution_ns / place.blocks_per_track
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(layout: Layout) -> PlatterShape {
        PlatterShape {
            heads: 2,
            zones: 3,
            outer_track_blocks: 40,
            inner_track_blocks: 20,
            layout,
            head_rates: Vec::new(),
            revolution_ns: 1_000_000,
            head_skew_ns: 100_000,
            track_skew_ns: 200_000,
        }
    }

    #[test]
    fn tracks_shorten_linearly_and_hold_what_was_asked_for() {
        let shape = shape(Layout::CylinderByCylinder);
        let platters = Platters::new(shape, BlockCount(500), BlockCount::ZERO, 0);
        let runs: Vec<_> = platters
            .tracks()
            .runs()
            .iter()
            .map(|r| (r.tracks, r.blocks_per_track))
            .collect();
        assert_eq!(runs, [(6, 40), (6, 30), (6, 20)]);
        assert_eq!(platters.cylinders(), 9);
    }

    #[test]
    fn cylinders_come_one_after_another() {
        let shape = shape(Layout::CylinderByCylinder);
        let platters = Platters::new(shape, BlockCount(500), BlockCount::ZERO, 0);
        let seen: Vec<_> = (0..4)
            .map(|track| {
                let place = platters.place(track * 40 + 10);
                (
                    place.cylinder,
                    place.surface,
                    platters.angle_ns(&place, place.offset),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                (0, 0, 250_000),
                (0, 1, 350_000),
                (1, 0, 550_000),
                (1, 1, 650_000)
            ]
        );
    }

    #[test]
    fn surfaces_come_one_after_another_in_alternating_direction() {
        let shape = shape(Layout::SurfaceBySurface);
        let platters = Platters::new(shape, BlockCount(500), BlockCount::ZERO, 0);
        let seen: Vec<_> = (0..7)
            .map(|track| platters.place(if track < 6 { track * 40 } else { 240 }))
            .map(|place| (place.cylinder, place.surface))
            .collect();
        assert_eq!(
            seen,
            [(0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (0, 1), (3, 0)]
        );
    }

    #[test]
    fn heads_may_write_tracks_of_different_length() {
        let mut shape = shape(Layout::SurfaceBySurface);
        let even = Platters::new(shape.clone(), BlockCount(500), BlockCount::ZERO, 0);
        shape.head_rates = vec![1.1, 0.9];
        let platters = Platters::new(shape, BlockCount(500), BlockCount::ZERO, 0);
        let runs: Vec<_> = platters
            .tracks()
            .runs()
            .iter()
            .map(|r| (r.tracks, r.blocks_per_track))
            .collect();
        assert_eq!(runs, [(3, 44), (3, 36), (3, 33), (3, 27), (3, 22), (3, 18)]);
        for track in 0..18 {
            let place = |platters: &Platters| {
                let place = platters.place(platters.tracks().extent_of(track).start.0);
                (place.cylinder, place.surface, platters.angle_ns(&place, 0))
            };
            assert_eq!(place(&platters), place(&even), "track {track}");
        }
    }

    #[test]
    fn the_next_track_is_that_of_the_next_block() {
        for (layout, rates) in [
            (Layout::CylinderByCylinder, vec![]),
            (Layout::SurfaceBySurface, vec![]),
            (Layout::SurfaceBySurface, vec![0.9, 1.1]),
        ] {
            let mut shape = shape(layout);
            shape.head_rates = rates;
            let platters = Platters::new(shape, BlockCount(500), BlockCount::ZERO, 0);
            for track in 0..17 {
                let extent = platters.tracks().extent_of(track);
                let place = platters.place(extent.start.0 + 3);
                assert_eq!(platters.next_track(&place), platters.place(extent.end().0));
            }
        }
    }

    #[test]
    fn the_conventional_part_is_rounded_up_to_a_track() {
        let shape = shape(Layout::SurfaceBySurface);
        for (wanted, got) in [(0, 0), (1, 40), (40, 40), (41, 80), (250, 270), (9999, 540)] {
            let platters = Platters::new(shape.clone(), BlockCount(500), BlockCount(wanted), 2);
            assert_eq!(
                platters.tracks().conventional_blocks,
                BlockCount(got),
                "{wanted}"
            );
            assert_eq!(platters.tracks().overlap_tracks, 2);
        }
    }
}
