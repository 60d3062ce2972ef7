//! Slices of one shingled disk: what stands on one must not harm what stands on another.

use crate::common::harness::{MemoryDisk, Step, play, random_steps};
use imbrex_core::disk::Shingling::{Apart, Downwards, Upwards};
use imbrex_core::disk::{Geometry, Media, TrackTable};
use imbrex_core::extent::Extent;
use imbrex_core::flush_failure::FlushFailure;
use imbrex_core::map::BandTable;
use imbrex_core::planted::PlantedBug;
use imbrex_core::rng::Rng;
use imbrex_core::slice::{Slice, SliceError};
use imbrex_core::span::Span;
use imbrex_core::stack::{NodeId, StackBuilder};
use imbrex_core::translation::{
    PersistentCache, PersistentCacheSettings, conventional_blocks_needed,
};
use imbrex_core::units::BlockCount;
use imbrex_core::zone::{ZoneGeometry, ZoneModel};
use std::sync::Arc;

const TRACK: u64 = 4;
const OVERLAP: u64 = 2;
/// The guard of a neighbour, in blocks.
const GUARD: u64 = TRACK * OVERLAP;

fn bands() -> Arc<BandTable> {
    Arc::new(BandTable::new([14, 20, 12].map(BlockCount)))
}

fn settings() -> PersistentCacheSettings {
    PersistentCacheSettings::new(BlockCount(16))
}

fn shingled(shingles: &[(u64, imbrex_core::disk::Shingling)]) -> Geometry {
    let tracks = shingles.iter().map(|(tracks, _)| tracks).sum();
    let tracks = TrackTable::with_shingles([(tracks, TRACK)], shingles.iter().copied(), OVERLAP);
    Geometry {
        blocks: BlockCount(tracks.blocks()),
        media: Media::Shingled,
        tracks: Some(Arc::new(tracks)),
        ..Geometry::plain(BlockCount(1), Media::Shingled)
    }
}

/// Tracks that do not overlap, and tracks that do, of the smallest disk for the translation.
fn smallest() -> (u64, u64) {
    let needed = conventional_blocks_needed(&settings(), &bands(), BlockCount(TRACK));
    let apart = needed.0.div_ceil(TRACK);
    let fits = |up: &u64| {
        let disk = shingled(&[(apart, Apart), (*up, Upwards)]);
        PersistentCache::new(settings(), bands(), &disk).is_ok()
    };
    (apart, (1..).find(fits).expect("a disk that is large enough"))
}

/// A stack that is being built over one disk.
struct OnOne {
    builder: StackBuilder,
    disk: NodeId,
    failure: FlushFailure,
}

impl OnOne {
    fn new(seed: u64, geometry: &Geometry) -> OnOne {
        let mut builder = StackBuilder::new(seed);
        let disk = builder.disk(geometry.clone());
        let failure = FlushFailure::default();
        OnOne { builder, disk, failure }
    }

    fn slice(&mut self, first_track: u64, tracks: u64) -> NodeId {
        let wanted = Extent::new(first_track * TRACK, tracks * TRACK);
        let below = self.builder.geometry(self.disk);
        let (slice, told) = Slice::new(wanted, below, &self.failure).expect("a slice");
        self.builder.part(Box::new(slice), told, self.disk)
    }

    fn translation(&mut self, below: NodeId) -> NodeId {
        let geometry = self.builder.geometry(below);
        let (layer, told) = PersistentCache::new(settings(), bands(), geometry).expect("a layout");
        self.builder.layer(Box::new(layer), told, &[below])
    }

    fn span(&mut self, below: &[NodeId]) -> NodeId {
        let geometries: Vec<_> = below.iter().map(|it| self.builder.geometry(*it)).collect();
        let (span, told) = Span::new(&geometries).expect("nodes to join");
        self.builder.layer(Box::new(span), told, below)
    }
}

/// Plays random requests on two translations that share a disk, each on the smallest slice there is.
fn two_translations(seed: u64, bug: Option<PlantedBug>) -> Result<(), String> {
    let (apart, up) = smallest();
    let up_first = up + OVERLAP;
    let geometry = shingled(&[(apart, Apart), (up_first, Upwards), (apart, Apart), (up, Upwards)]);
    let mut one = OnOne::new(seed, &geometry);
    let first = one.slice(0, apart + up_first);
    let second = one.slice(apart + up_first, apart + up);
    let windows = [first, second].map(|slice| one.translation(slice));
    let top = one.span(&windows);
    let mut stack = one.builder.build(top);
    if let Some(bug) = bug {
        stack.plant(bug);
    }
    let blocks = stack.geometry().blocks.0;
    assert_eq!(blocks, 2 * bands().blocks().0);
    assert_eq!(stack.geometry().bands.as_ref().map(|it| it.bands()), Some(6));
    let disk = MemoryDisk::new(geometry, seed, 1_000).destructive();
    let depth = [1, 4][(seed % 2) as usize];
    play(stack, vec![disk], random_steps(seed, 150, blocks, 12), depth).map(|_| ())
}

#[test]
fn two_translations_on_one_disk_keep_each_other_s_data() {
    for seed in 0..200 {
        two_translations(seed, None).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    }
}

#[test]
fn without_the_guard_upwards_the_neighbour_loses_data() {
    let bug = Some(PlantedBug::SliceGuardLeftOut);
    let lost = (0..20).filter(|seed| two_translations(*seed, bug).is_err());
    assert!(lost.count() > 10);
}

/// Writes the tracks of a run that overlaps downwards in the only order that keeps them, between
/// requests to the conventional tracks before it.
fn beside_downwards(seed: u64, bug: Option<PlantedBug>) -> Result<(), String> {
    const CONVENTIONAL: u64 = 6;
    const DOWN: u64 = 9;
    let geometry = shingled(&[(CONVENTIONAL, Apart), (DOWN, Downwards)]);
    let mut one = OnOne::new(seed, &geometry);
    let slices = [one.slice(0, CONVENTIONAL), one.slice(CONVENTIONAL, DOWN)];
    let offered = |node| one.builder.geometry(node).blocks.0;
    let (plain, down) = (offered(slices[0]), offered(slices[1]));
    assert_eq!((plain, down), (CONVENTIONAL * TRACK, DOWN * TRACK - GUARD));
    let top = one.span(&slices);
    let mut stack = one.builder.build(top);
    if let Some(bug) = bug {
        stack.plant(bug);
    }
    let mut rng = Rng::new(seed, 3);
    let mut steps = Vec::new();
    for _ in 0..3 {
        for track in (0..down / TRACK).rev() {
            steps.extend(random_steps(rng.next_u64(), 3, plain, 5));
            steps.push(Step::Write(Extent::new(plain + track * TRACK, TRACK)));
        }
    }
    let disk = MemoryDisk::new(geometry, seed, 1_000).destructive();
    play(stack, vec![disk], steps, 1).map(|_| ())
}

#[test]
fn tracks_that_overlap_downwards_keep_what_is_before_them() {
    for seed in 0..100 {
        beside_downwards(seed, None).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    }
    let bug = Some(PlantedBug::SliceGuardLeftOut);
    let lost = (0..20).filter(|seed| beside_downwards(*seed, bug).is_err());
    assert!(lost.count() > 10);
}

#[test]
fn a_slice_tells_of_its_own_part_of_everything() {
    let failure = FlushFailure::default();
    let disk = shingled(&[(5, Apart), (10, Upwards), (5, Downwards)]);
    let (slice, told) = Slice::new(Extent::new(6, 50), &disk, &failure).expect("a slice");
    assert_eq!(slice.extent(), Extent::new(8, 6 * 8 - GUARD));
    let tracks = told.tracks.expect("tracks");
    assert_eq!(tracks.conventional_prefix(), BlockCount(3 * TRACK));
    assert_eq!(tracks.blocks(), told.blocks.0);
    let past = Slice::new(Extent::new(6, 80), &disk, &failure).map(|_| ());
    assert!(matches!(past, Err(SliceError::PastEnd { .. })));
    let tight = Slice::new(Extent::new(20, GUARD), &disk, &failure).map(|_| ());
    assert_eq!(tight, Err(SliceError::NoRoom { guard_tracks: OVERLAP }));
    let zones = ZoneGeometry {
        model: ZoneModel::HostAware,
        blocks: BlockCount(90),
        zone_blocks: BlockCount(20),
        conventional_zones: 2,
        open_max: None,
        active_max: None,
        optimal_open: None,
        optimal_non_sequential: None,
    };
    let zoned = Geometry {
        bands: Some(Arc::new(BandTable::new([20, 20, 20, 20, 10].map(BlockCount)))),
        zones: Some(Arc::new(zones)),
        ..Geometry::plain(BlockCount(90), Media::Shingled)
    };
    let (_, told) = Slice::new(Extent::new(20, 70), &zoned, &failure).expect("whole zones");
    let zones = told.zones.expect("zones");
    assert_eq!((zones.zones(), zones.conventional_zones), (4, 1));
    assert_eq!(told.bands.expect("bands").bands(), 4);
    let cut = Slice::new(Extent::new(20, 50), &zoned, &failure).map(|_| ());
    let zone_blocks = BlockCount(20);
    assert_eq!(cut, Err(SliceError::CutsZone { zone_blocks }));
}
