//! Where each block of a segment layout lies: arithmetic, and a table of regions.

use super::settings::{RegionLayout, SegmentError, SegmentSettings, TrackLength};
use crate::disk::{ShingleRun, Shingling, TrackTable};
use crate::extent::Extent;
use crate::units::BlockCount;
use alloc::vec::Vec;

/// A run of neighbouring tracks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Region {
    /// First block of its lowest track, in the addresses of the disk.
    base: u64,
    /// Its first segment.
    first_segment: u64,
    /// Blocks of each of its tracks.
    track_blocks: u64,
    /// It is written from its highest track to its lowest.
    is_down: bool,
}

/// Where each block lies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentLayout {
    /// Blocks of 4 KiB of a block.
    block: u64,
    /// Tracks of a region.
    region_tracks: u64,
    regions: Vec<Region>,
    segments: u64,
    /// Segments of each region, where all have as many.
    uniform: Option<u64>,
    /// Blocks of the disk, from the first of a region on, in no block of a segment.
    unused: u64,
}

/// Where a block of 4 KiB belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The segment.
    pub segment: u64,
    /// The block of the segment, in shingle order.
    pub block: u64,
    /// The block of 4 KiB in that.
    pub offset: u64,
}

impl SegmentLayout {
    /// The layout of the blocks of a disk from `start` on.
    ///
    /// # Errors
    /// When no region has room, or the layout does not fit the tracks of the disk.
    pub fn new(
        settings: &SegmentSettings,
        start: u64,
        disk_blocks: BlockCount,
        tracks: Option<&TrackTable>,
    ) -> Result<SegmentLayout, SegmentError> {
        let mut layout = SegmentLayout {
            block: settings.block.0,
            region_tracks: settings.region_tracks,
            regions: Vec::new(),
            segments: 0,
            uniform: None,
            unused: 0,
        };
        match settings.track {
            TrackLength::Assumed(track) => {
                layout.add_assumed(settings, track.0, start, disk_blocks)
            }
            TrackLength::OfDisk => {
                let tracks = tracks.ok_or(SegmentError::UnknownTracks)?;
                layout.add_on_tracks(settings, start, tracks);
            }
        }
        if layout.segments == 0 {
            return Err(SegmentError::NoRegion);
        }
        layout.unused = disk_blocks.0 - start - layout.blocks().0;
        layout.shorten(settings)?;
        let first = layout.segments_of(0);
        let mut regions = 0..layout.regions.len();
        layout.uniform = regions.all(|region| layout.segments_of(region) == first).then_some(first);
        Ok(layout)
    }

    /// Regions one behind the other, as the paper computes them.
    fn add_assumed(
        &mut self,
        settings: &SegmentSettings,
        track: u64,
        start: u64,
        disk: BlockCount,
    ) {
        let region_blocks = track * self.region_tracks;
        let room = disk.0.saturating_sub(start) / region_blocks;
        for region in 0..room {
            let is_down = settings.layout == RegionLayout::Wave && region % 2 == 1;
            self.push(start + region * region_blocks, track, is_down);
        }
    }

    /// Regions on the tracks of a disk, each of tracks of one length that overlap as it needs. Guards
    /// of kappa tracks lie between two regions that face each other, or behind each.
    fn add_on_tracks(&mut self, settings: &SegmentSettings, start: u64, tracks: &TrackTable) {
        let (m, guard) = (self.region_tracks, settings.kappa);
        let mut at = match start {
            0 => 0,
            start => match start < tracks.blocks() {
                true => tracks.track_of(start - 1) + 1,
                false => return,
            },
        };
        let mut is_down = false;
        while let Some(first) = first_fit(tracks, at, m, is_down) {
            let whole = tracks.extent_of(first);
            if whole.blocks.0 >= self.block {
                self.push(whole.start.0, whole.blocks.0, is_down);
                // Behind a region that is written downwards another begins at once.
                at = first + m + if is_down { 0 } else { guard };
                is_down = settings.layout == RegionLayout::Wave && !is_down;
            } else {
                at = first + m;
            }
        }
    }

    fn push(&mut self, base: u64, track_blocks: u64, is_down: bool) {
        self.regions.push(Region { base, first_segment: self.segments, track_blocks, is_down });
        self.segments += track_blocks / self.block;
    }

    /// Leaves out the regions behind what is to be offered.
    fn shorten(&mut self, settings: &SegmentSettings) -> Result<(), SegmentError> {
        let Some(offered) = settings.offered else {
            return Ok(());
        };
        if offered > self.blocks() {
            let room = self.blocks();
            return Err(SegmentError::TooFew { room, offered });
        }
        let segments = offered.0.div_ceil(self.segment_blocks());
        let regions = self.regions.iter();
        let kept = regions.take_while(|region| region.first_segment < segments);
        let kept = kept.count();
        let end = self.regions.get(kept);
        self.segments = end.map_or(self.segments, |region| region.first_segment);
        self.regions.truncate(kept);
        Ok(())
    }

    fn segments_of(&self, region: usize) -> u64 {
        let next = self.regions.get(region + 1);
        let end = next.map_or(self.segments, |next| next.first_segment);
        end - self.regions[region].first_segment
    }

    /// Blocks of 4 KiB in all segments.
    pub fn blocks(&self) -> BlockCount {
        BlockCount(self.segments * self.segment_blocks())
    }

    /// The end of the last region on the disk.
    pub fn end(&self) -> u64 {
        let last = self.regions.last();
        last.map_or(0, |region| region.base + region.track_blocks * self.region_tracks)
    }

    /// Blocks of the disk that are in no block of a segment, guards among them.
    pub fn unused_blocks(&self) -> u64 {
        self.unused
    }

    /// How many segments there are.
    pub fn segments(&self) -> u64 {
        self.segments
    }

    /// How many regions there are.
    pub fn regions(&self) -> usize {
        self.regions.len()
    }

    /// Blocks of 4 KiB of a segment.
    #[inline]
    pub fn segment_blocks(&self) -> u64 {
        self.block * self.region_tracks
    }

    /// Blocks of 4 KiB of a block.
    #[inline]
    pub fn block(&self) -> u64 {
        self.block
    }

    /// Blocks of a segment.
    #[inline]
    pub fn blocks_of_segment(&self) -> u64 {
        self.region_tracks
    }

    /// Bytes that the table of regions takes.
    pub fn table_bytes(&self) -> u64 {
        (self.regions.capacity() * size_of::<Region>()) as u64
    }

    /// Where a block of 4 KiB of the device belongs.
    #[inline]
    pub fn place_of(&self, address: u64) -> Place {
        let in_segment = address % self.segment_blocks();
        Place {
            segment: address / self.segment_blocks(),
            block: in_segment / self.block,
            offset: in_segment % self.block,
        }
    }

    /// The address of a place in the device.
    #[inline]
    pub fn address_of(&self, place: Place) -> u64 {
        place.segment * self.segment_blocks() + place.block * self.block + place.offset
    }

    /// Where a block of 4 KiB lies on the disk. Panics past the end.
    #[inline]
    pub fn on_disk(&self, place: Place) -> u64 {
        let (region, column) = self.region_of(place.segment);
        let track = match region.is_down {
            true => self.region_tracks - 1 - place.block,
            false => place.block,
        };
        region.base + track * region.track_blocks + column * self.block + place.offset
    }

    /// What lies at a block of the disk; none outside of the blocks of segments.
    pub fn at(&self, on_disk: u64) -> Option<Place> {
        let index = self.regions.partition_point(|it| it.base <= on_disk);
        let region = self.regions.get(index.checked_sub(1)?)?;
        let inside = on_disk - region.base;
        let (track, angle) = (inside / region.track_blocks, inside % region.track_blocks);
        let column = angle / self.block;
        if track >= self.region_tracks || column >= region.track_blocks / self.block {
            return None;
        }
        let block = match region.is_down {
            true => self.region_tracks - 1 - track,
            false => track,
        };
        Some(Place { segment: region.first_segment + column, block, offset: angle % self.block })
    }

    /// For each track of the region of a segment, in shingle order, where `segments` segments from that
    /// one on lie. They are of one region.
    pub fn tracks_of(&self, segment: u64, segments: u64) -> impl Iterator<Item = Extent> + '_ {
        let start = (0..self.region_tracks)
            .map(move |block| self.on_disk(Place { segment, block, offset: 0 }));
        start.map(move |start| Extent::new(start, segments * self.block))
    }

    /// Segments from this one to the end of its region.
    pub fn rest_of_region(&self, segment: u64) -> u64 {
        let (region, _) = self.region_of(segment);
        region.first_segment + region.track_blocks / self.block - segment
    }

    #[inline]
    fn region_of(&self, segment: u64) -> (Region, u64) {
        let index = match self.uniform {
            Some(segments) => (segment / segments) as usize,
            None => self.regions.partition_point(|it| it.first_segment <= segment) - 1,
        };
        let region = self.regions[index];
        (region, segment - region.first_segment)
    }
}

/// The first track at or behind `at` that begins `m` tracks of one length that can be written in the
/// direction: those that do not overlap can be in either.
fn first_fit(tracks: &TrackTable, at: u64, m: u64, is_down: bool) -> Option<u64> {
    let wanted = match is_down {
        true => Shingling::Downwards,
        false => Shingling::Upwards,
    };
    let fits = |shingling| shingling == wanted || shingling == Shingling::Apart;
    let mut at = at;
    while at + m <= tracks.tracks() {
        let end = at + m;
        let lengths = tracks.runs();
        let run = &lengths[lengths.partition_point(|run| run.first_track <= at) - 1];
        if end > run.first_track + run.tracks {
            at = run.first_track + run.tracks;
            continue;
        }
        let behind = |run: &&ShingleRun| run.first_track < end && at < run.first_track + run.tracks;
        let mut shingles = tracks.shingle_runs().iter().filter(behind);
        match shingles.rfind(|run| !fits(run.shingling)) {
            Some(run) => at = run.first_track + run.tracks,
            None => return Some(at),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use alloc::collections::BTreeSet;
    use alloc::vec;

    fn settings(block: u64, region_tracks: u64, layout: RegionLayout) -> SegmentSettings {
        SegmentSettings {
            block: BlockCount(block),
            region_tracks,
            layout,
            ..SegmentSettings::paper()
        }
    }

    /// Every address has a place of its own on the disk, and the disk says the same; what is left is
    /// what is called unused.
    fn check(layout: &SegmentLayout, start: u64, disk_blocks: u64) {
        let mut seen = BTreeSet::new();
        for address in 0..layout.blocks().0 {
            let place = layout.place_of(address);
            assert_eq!(layout.address_of(place), address);
            let on_disk = layout.on_disk(place);
            assert!((start..disk_blocks).contains(&on_disk), "{place:?} at {on_disk}");
            assert_eq!(layout.at(on_disk), Some(place));
            assert!(seen.insert(on_disk), "two blocks at {on_disk}");
        }
        let others = (start..disk_blocks).filter(|at| !seen.contains(at));
        assert!(others.clone().all(|at| layout.at(at).is_none()));
        assert_eq!(others.count() as u64, layout.unused_blocks());
    }

    #[test]
    fn the_mapping_is_a_bijection_for_thousands_of_assumed_geometries() {
        let mut rng = Rng::new(7, 1);
        let mut regions = 0;
        for _ in 0..3000 {
            let (block, m) = (1 + rng.below(5), 1 + rng.below(7));
            let track = block * (1 + rng.below(5)) + rng.below(block);
            let start = rng.below(30);
            let disk = start + m * track * (1 + rng.below(5)) + rng.below(m * track);
            let which = [RegionLayout::Wave, RegionLayout::Conventional][rng.below(2) as usize];
            let settings = SegmentSettings {
                track: TrackLength::Assumed(BlockCount(track)),
                ..settings(block, m, which)
            };
            let layout = SegmentLayout::new(&settings, start, BlockCount(disk), None).unwrap();
            check(&layout, start, disk);
            regions += layout.regions();
        }
        assert!(regions > 6000, "{regions} regions");
    }

    /// The paper's five equations (section 4.2), in sectors.
    #[test]
    fn the_mapping_is_that_of_the_paper() {
        let settings = settings(16, 32, RegionLayout::Conventional);
        let disk = BlockCount(4 * 32 * 1024 + 77);
        let layout = SegmentLayout::new(&settings, 0, disk, None).unwrap();
        let (block, track, m) = (128, 8192, 32);
        let (segment, region) = (m * block, m * track);
        for lba in (0..4 * region).step_by(8 * 41) {
            let in_region = lba % region;
            let at = lba / region * region
                + in_region % segment / block * track
                + in_region / segment * block
                + lba % block;
            assert_eq!(layout.on_disk(layout.place_of(lba / 8)), at / 8);
        }
        assert_eq!(layout.unused_blocks(), 77);
    }

    /// Tracks of several lengths whose direction changes: nothing that a block destroys is of another
    /// segment, or before it in its own.
    #[test]
    fn on_tracks_a_write_destroys_what_follows_in_its_segment_alone() {
        let mut rng = Rng::new(11, 3);
        let mut placed = 0;
        for _ in 0..2000 {
            let overlap = rng.below(4);
            let kappa = overlap + 1;
            let (block, m) = (1 + rng.below(3), kappa + rng.below(5));
            let wave = rng.below(2) == 0;
            let lengths =
                [(4 + rng.below(40), 2 + rng.below(9)), (4 + rng.below(40), 2 + rng.below(9))];
            let tracks: u64 = lengths.iter().map(|(tracks, _)| tracks).sum();
            let mut shingles = vec![(rng.below(4), Shingling::Apart)];
            let mut left = tracks - shingles[0].0;
            while left > 0 {
                let up = if wave { (m + kappa).min(left) } else { left };
                shingles.push((up, Shingling::Upwards));
                left -= up;
                let down = m.min(left);
                shingles.push((down, Shingling::Downwards));
                left -= down;
            }
            let table = TrackTable::with_shingles(lengths, shingles, overlap);
            let which = if wave { RegionLayout::Wave } else { RegionLayout::Conventional };
            let settings =
                SegmentSettings { track: TrackLength::OfDisk, kappa, ..settings(block, m, which) };
            let disk = BlockCount(table.blocks());
            let start = rng.below(5).min(disk.0);
            let Ok(layout) = SegmentLayout::new(&settings, start, disk, Some(&table)) else {
                continue;
            };
            placed += layout.regions();
            check(&layout, start, disk.0);
            for address in 0..layout.blocks().0 {
                let place = layout.place_of(address);
                let written = Extent::new(layout.on_disk(place), 1);
                for at in table.destroyed_by(written).flat_map(|it| it.start.0..it.end().0) {
                    let hit = layout.at(at);
                    let is_behind = |hit: Place| {
                        hit.segment == place.segment
                            && hit.block > place.block
                            && hit.block - place.block < kappa
                    };
                    assert!(hit.is_none_or(is_behind), "{place:?} destroys {hit:?}");
                }
            }
        }
        assert!(placed > 3000, "{placed} regions");
    }
}
