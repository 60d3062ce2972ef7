//! Where a block lies on the platters: cylinder, surface and angle.

use super::shingles::Shingles;
use super::zone_table::SparesAt;
use imbrex_core::disk::TrackTable;
use imbrex_core::extent::Extent;
use imbrex_core::map::Guide;
use imbrex_core::saved::SavedValue;
use imbrex_core::units::BlockCount;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// In which order the tracks of a zone are numbered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// All tracks of a cylinder, then the next cylinder.
    CylinderByCylinder,
    /// The same, with the surfaces of odd cylinders in reverse, so that the next cylinder begins
    /// under the same head.
    CylinderSerpentine,
    /// The same, counting the cylinders of each zone from its first one.
    ZoneSerpentine,
    /// All tracks of a zone on one surface, then the next surface in the other direction. Tracks
    /// that follow one another are then neighbours, as shingling needs.
    SurfaceBySurface,
}

/// Tracks between two cylinders that are all alike, as a list of zones gives them.
#[derive(Clone, Copy, Debug)]
pub struct ZoneShape {
    /// Outermost cylinder.
    pub first_cylinder: u64,
    /// Cylinders; more than 0.
    pub cylinders: u64,
    /// Blocks on a track; more than 0.
    pub track_blocks: u64,
    /// By how many blocks a track on the next surface starts later.
    pub head_skew_blocks: u64,
    /// By how many blocks a track on the next cylinder starts later.
    pub cylinder_skew_blocks: u64,
    /// Blocks without data in each `spares_every` cylinders, or on each track; fewer than those hold.
    pub spare_blocks: u64,
    /// Cylinders from one run of spare blocks to the next; more than 0.
    pub spares_every: u64,
    /// Where in those cylinders.
    pub spares_at: SparesAt,
    /// By how many blocks the first track starts late.
    pub first_offset_blocks: u64,
    /// Blocks before the first one that has an address, spares not counted.
    pub reserved_blocks: u64,
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
    head_skew_ns: u64,
    track_skew_ns: u64,
    /// Tracks up to and with those of a run of spare blocks; 0 where there are no spares.
    group_tracks: u64,
    /// Blocks of them that hold data.
    group_blocks: u64,
    /// Spare blocks before these.
    group_front: u64,
    /// Blocks of a track but for its own spares.
    track_data: u64,
    /// Blocks that hold data and have no address, at the start.
    reserved: u64,
}

/// A track and a block on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub struct Place {
    zone: u32,
    /// Track in the zone.
    track: u64,
    /// Block on the track.
    pub offset: u64,
    /// Blocks on the track.
    pub blocks_per_track: u64,
    /// Blocks on it that hold data; the others are spares.
    pub end: u64,
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
    /// To the first blocks of the zones.
    guide: Guide,
    cylinders_per_zone: u64,
    cylinders: u64,
    tracks: Arc<TrackTable>,
}

/// Runs of the guide to zones that a zone has in the mean.
const RUNS_PER_ZONE: u64 = 8;

fn guide_to(zones: &[Zone], blocks: u64) -> Guide {
    let run_log2 = (blocks / (zones.len() as u64 * RUNS_PER_ZONE)).max(1).ilog2();
    Guide::new(zones.iter().map(|zone| zone.first_block), blocks, run_log2)
}

impl Platters {
    /// Platters that hold at least `blocks`: each zone gets as many tracks as that takes. The
    /// length of tracks falls linearly from the outer to the inner zone.
    pub fn new(shape: PlatterShape, blocks: BlockCount, shingles: &Shingles) -> Platters {
        let PlatterShape { heads, head_skew_ns, track_skew_ns, .. } = shape;
        let surfaces = if shape.head_rates.is_empty() { 1 } else { heads };
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
        let cylinder_of_each: u64 =
            parts().map(|(zone, surface)| length(zone, surface) * heads / surfaces).sum();
        let cylinders_per_zone = blocks.0.div_ceil(cylinder_of_each).max(1);
        let tracks = cylinders_per_zone * heads / surfaces;
        let surface_skew_ns = (cylinders_per_zone - 1) * track_skew_ns + head_skew_ns;
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
                head_skew_ns,
                track_skew_ns,
                group_tracks: 0,
                group_blocks: 0,
                group_front: 0,
                track_data: blocks_per_track,
                reserved: 0,
            });
            first_block += blocks_per_track * tracks;
        }
        Platters {
            tracks: Arc::new(track_table(&zones, shingles)),
            guide: guide_to(&zones, first_block),
            cylinders: shape.zones * cylinders_per_zone,
            shape,
            zones,
            cylinders_per_zone,
        }
    }

    /// Platters with zones that are known one by one, in address order. Of `shape` only the heads,
    /// the layout and the revolution count. Their tracks are not told to the layers above: bands
    /// are not laid out on them.
    pub fn of_zones(shape: PlatterShape, zones: &[ZoneShape]) -> Platters {
        let mut first_block = 0;
        let mut cylinders = 0;
        let zones = zones.iter().map(|zone| {
            let turn = |blocks: u64| blocks * shape.revolution_ns / zone.track_blocks;
            let group_tracks = zone.spares_every * shape.heads;
            let (of_track, of_group, front) = match zone.spares_at {
                SparesAt::End => (0, zone.spare_blocks, 0),
                SparesAt::Start => (0, zone.spare_blocks, zone.spare_blocks),
                SparesAt::Track => (zone.spare_blocks, 0, 0),
            };
            let track_data = zone.track_blocks - of_track;
            let group_blocks = group_tracks * track_data - of_group;
            let groups = zone.cylinders / zone.spares_every;
            let rest = (zone.cylinders % zone.spares_every) * shape.heads * track_data;
            let blocks = groups * group_blocks + rest.saturating_sub(of_group);
            let start = first_block;
            first_block += blocks.saturating_sub(zone.reserved_blocks);
            cylinders = zone.first_cylinder + zone.cylinders;
            Zone {
                first_block: start,
                first_cylinder: zone.first_cylinder,
                first_surface: 0,
                tracks: zone.cylinders * shape.heads,
                blocks_per_track: zone.track_blocks,
                skew_ns: turn(zone.first_offset_blocks),
                head_skew_ns: turn(zone.head_skew_blocks),
                track_skew_ns: turn(zone.cylinder_skew_blocks),
                group_tracks,
                group_blocks,
                group_front: front,
                track_data,
                reserved: zone.reserved_blocks,
            }
        });
        let zones: Vec<Zone> = zones.collect();
        Platters {
            tracks: Arc::new(TrackTable::new([(1, first_block)], BlockCount::ZERO, 0)),
            guide: guide_to(&zones, first_block),
            cylinders,
            shape,
            zones,
            cylinders_per_zone: 1,
        }
    }

    /// Blocks that hold data.
    #[inline]
    pub fn blocks(&self) -> u64 {
        self.tracks.blocks()
    }

    /// The tracks in address order; one for all where zones were listed.
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
        let (mut index, last) = self.guide.candidates(block);
        while index < last && self.zones[index + 1].first_block <= block {
            index += 1;
        }
        let zone = &self.zones[index];
        let mut within = block - zone.first_block + zone.reserved;
        let mut before = 0;
        if zone.group_tracks > 0 {
            let group = within / zone.group_blocks;
            within -= group * zone.group_blocks;
            within += zone.group_front;
            before = group * zone.group_tracks;
        }
        let track = within / zone.track_data;
        self.on_track(index as u32, before + track, within - track * zone.track_data)
    }

    /// The first block of the track after `place`; that of the last track is the first of all, so
    /// that a look-ahead at the end of the disk has somewhere to stand.
    #[inline]
    pub fn next_track(&self, place: &Place) -> Place {
        let zone = &self.zones[place.zone as usize];
        let mut next = place.track + 1;
        let mut offset = 0;
        if zone.group_tracks > 0 {
            let (front, data) = (zone.group_front, zone.group_front + zone.group_blocks);
            if (next % zone.group_tracks) * zone.track_data >= data {
                next = next.next_multiple_of(zone.group_tracks);
            }
            if next.is_multiple_of(zone.group_tracks) {
                next += front / zone.track_data;
                offset = front % zone.track_data;
            }
        }
        if next < zone.tracks {
            return self.on_track(place.zone, next, offset);
        }
        let zone = place.zone + 1;
        let zone = if (zone as usize) < self.zones.len() { zone } else { 0 };
        self.place(self.zones[zone as usize].first_block)
    }

    #[inline]
    fn on_track(&self, zone: u32, track: u64, offset: u64) -> Place {
        let PlatterShape { heads, layout, revolution_ns, .. } = self.shape;
        let Zone {
            first_cylinder,
            first_surface,
            blocks_per_track,
            skew_ns: zone_skew_ns,
            head_skew_ns,
            track_skew_ns,
            group_tracks,
            group_blocks,
            group_front,
            track_data,
            ..
        } = self.zones[zone as usize];
        // Each step to the next track delays its start by what the step takes, so a sequential
        // transfer finds the first block just arriving.
        let (cylinder, surface, skew_ns) = match layout {
            Layout::CylinderByCylinder | Layout::CylinderSerpentine | Layout::ZoneSerpentine => {
                let cylinder = track / heads;
                let along = track - cylinder * heads;
                let reversed = match layout {
                    Layout::CylinderSerpentine => !(first_cylinder + cylinder).is_multiple_of(2),
                    Layout::ZoneSerpentine => !cylinder.is_multiple_of(2),
                    _ => false,
                };
                let surface = match reversed {
                    true => heads - 1 - along,
                    false => along,
                };
                let skew = (track - cylinder) * head_skew_ns + cylinder * track_skew_ns;
                (cylinder, surface, skew)
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
        let mut end = track_data;
        if group_tracks > 0 {
            end = end.min(group_front + group_blocks - (track % group_tracks) * track_data);
        }
        Place {
            zone,
            track,
            offset,
            blocks_per_track,
            end,
            cylinder: first_cylinder + cylinder,
            surface,
            start_angle_ns: (zone_skew_ns + skew_ns) % revolution_ns,
        }
    }

    /// Angle at which block `offset` of the track of `place` starts, as time below a revolution.
    #[inline]
    pub fn angle_ns(&self, place: &Place, offset: u64) -> u64 {
        let angle = place.start_angle_ns + self.sweep_ns(place, offset);
        if angle >= self.shape.revolution_ns { angle - self.shape.revolution_ns } else { angle }
    }

    /// Time the first `blocks` blocks of the track take to pass the head.
    #[inline]
    pub fn sweep_ns(&self, place: &Place, blocks: u64) -> u64 {
        blocks * self.shape.revolution_ns / place.blocks_per_track
    }
}

/// The tracks of zones in address order, and how they overlap.
fn track_table(zones: &[Zone], shingles: &Shingles) -> TrackTable {
    let lengths = || zones.iter().map(|zone| (zone.tracks, zone.blocks_per_track));
    let bare = TrackTable::new(lengths(), BlockCount::ZERO, 0);
    let all = Extent::new(0, bare.blocks());
    let parts = shingles.conventional.iter().filter_map(|part| {
        let part = part.intersection(all)?;
        Some(bare.track_of(part.start.0)..bare.track_of(part.end().0 - 1) + 1)
    });
    let runs = shingles.of_tracks(bare.tracks(), parts.collect());
    TrackTable::with_shingles(lengths(), runs, shingles.overlap_tracks)
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
        let platters = Platters::new(shape, BlockCount(500), &Shingles::default());
        let runs: Vec<_> =
            platters.tracks().runs().iter().map(|r| (r.tracks, r.blocks_per_track)).collect();
        assert_eq!(runs, [(6, 40), (6, 30), (6, 20)]);
        assert_eq!(platters.cylinders(), 9);
    }

    #[test]
    fn cylinders_come_one_after_another() {
        let shape = shape(Layout::CylinderByCylinder);
        let platters = Platters::new(shape, BlockCount(500), &Shingles::default());
        let seen: Vec<_> = (0..4)
            .map(|track| {
                let place = platters.place(track * 40 + 10);
                (place.cylinder, place.surface, platters.angle_ns(&place, place.offset))
            })
            .collect();
        assert_eq!(seen, [(0, 0, 250_000), (0, 1, 350_000), (1, 0, 550_000), (1, 1, 650_000)]);
    }

    #[test]
    fn surfaces_come_one_after_another_in_alternating_direction() {
        let shape = shape(Layout::SurfaceBySurface);
        let platters = Platters::new(shape, BlockCount(500), &Shingles::default());
        let seen: Vec<_> = (0..7)
            .map(|track| platters.place(if track < 6 { track * 40 } else { 240 }))
            .map(|place| (place.cylinder, place.surface))
            .collect();
        assert_eq!(seen, [(0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (0, 1), (3, 0)]);
    }

    #[test]
    fn heads_may_write_tracks_of_different_length() {
        let mut shape = shape(Layout::SurfaceBySurface);
        let even = Platters::new(shape.clone(), BlockCount(500), &Shingles::default());
        shape.head_rates = vec![1.1, 0.9];
        let platters = Platters::new(shape, BlockCount(500), &Shingles::default());
        let runs: Vec<_> =
            platters.tracks().runs().iter().map(|r| (r.tracks, r.blocks_per_track)).collect();
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
            let platters = Platters::new(shape, BlockCount(500), &Shingles::default());
            for track in 0..17 {
                let extent = platters.tracks().extent_of(track);
                let place = platters.place(extent.start.0 + 3);
                assert_eq!(platters.next_track(&place), platters.place(extent.end().0));
            }
        }
    }

    /// Two zones with spare blocks after every cylinder and at the end, and a cylinder between them
    /// that holds no data.
    #[test]
    fn listed_zones_skip_their_spares() {
        let zones = [(0, 2, 10, 3, 1), (3, 2, 8, 9, 2)].map(
            |(first_cylinder, cylinders, track_blocks, spare_blocks, spares_every)| ZoneShape {
                first_cylinder,
                cylinders,
                track_blocks,
                head_skew_blocks: 1,
                cylinder_skew_blocks: 2,
                spare_blocks,
                spares_every,
                spares_at: SparesAt::End,
                first_offset_blocks: 0,
                reserved_blocks: 0,
            },
        );
        let shape = shape(Layout::CylinderSerpentine);
        let platters = Platters::of_zones(shape, &zones);
        assert_eq!(platters.blocks(), 2 * (20 - 3) + (32 - 9));
        assert_eq!(platters.cylinders(), 5);
        // (cylinder, surface, blocks with data) of each track with data, in address order.
        let tracks =
            [(0, 0, 10), (0, 1, 7), (1, 1, 10), (1, 0, 7), (3, 1, 8), (3, 0, 8), (4, 0, 7)];
        let mut block = 0;
        for (index, track) in tracks.iter().enumerate() {
            for offset in 0..track.2 {
                let place = platters.place(block);
                assert_eq!((place.cylinder, place.surface, place.end), *track);
                assert_eq!(place.offset, offset);
                block += 1;
            }
            let place = platters.place(block - 1);
            let next = platters.next_track(&place);
            let (cylinder, surface, _) = tracks[(index + 1) % tracks.len()];
            assert_eq!((next.cylinder, next.surface), (cylinder, surface));
        }
        assert_eq!(block, platters.blocks());
        let angle = |block| platters.angle_ns(&platters.place(block), 0);
        assert_eq!(angle(10), 100_000, "one block of ten at a head switch");
        assert_eq!(angle(17), 300_000, "two more at a cylinder switch");
    }

    #[test]
    fn the_conventional_part_is_rounded_up_to_a_track() {
        let shape = shape(Layout::SurfaceBySurface);
        for (wanted, got) in [(0, 0), (1, 40), (40, 40), (41, 80), (250, 270), (9999, 540)] {
            let shingles = Shingles {
                overlap_tracks: 2,
                conventional: vec![Extent::new(0, wanted)],
                ..Shingles::default()
            };
            let platters = Platters::new(shape.clone(), BlockCount(500), &shingles);
            let prefix = platters.tracks().conventional_prefix();
            assert_eq!(prefix, BlockCount(got), "{wanted}");
            assert_eq!(platters.tracks().overlap_tracks, 2);
        }
    }
}
