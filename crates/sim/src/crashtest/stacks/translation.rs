//! A drive-managed translation under test.

use super::{Assembly, BAND_BLOCKS, BANDS, disk};
use imbrex_core::disk::{Geometry, Media, TrackTable};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::map::BandTable;
use imbrex_core::rng::Rng;
use imbrex_core::stack::NodeId;
use imbrex_core::translation::records::{BYPASS, RECORDS};
use imbrex_core::translation::{
    BlockingCleaning, IdleCleaning, LayoutError, OnArrival, PersistentCache,
    PersistentCacheSettings, RewriteExtent, RewriteMethod,
};
use imbrex_core::units::{BlockCount, Duration};
use std::sync::Arc;

/// Blocks of a shingled track, and of a conventional one.
const TRACK_BLOCKS: (u64, u64) = (4, 6);
/// Tracks that overlap, enough for all bands and their guards.
const SHINGLED_TRACKS: u64 = 110;
/// Most conventional tracks.
const CONVENTIONAL_TRACKS_MAX: u64 = 200;

/// The name of a kind of record on the format's page.
pub fn record_name(kind: u8) -> Option<&'static str> {
    let known = RECORDS.iter().find(|record| record.kind == kind);
    known.map(|record| record.name)
}

/// How bands are cleaned for want of room: mostly as little as possible and at once, so that the
/// journal, which most crashes are about, has as much to do as it can.
fn blocking_cleaning(seed: u64) -> BlockingCleaning {
    let mut rng = Rng::new(seed, 79);
    let mut sometimes = |value: u64| (rng.below(4) == 0).then(|| rng.below(value));
    BlockingCleaning {
        low_permille: sometimes(1000).map_or(1000, |low| low as u32),
        slice: sometimes(2_000_000).map(Duration),
    }
}

/// How bands are cleaned in idle time: in three of four cases not at all.
fn idle_cleaning(seed: u64) -> Option<IdleCleaning> {
    let mut rng = Rng::new(seed, 73);
    let on_arrival = match rng.below(4) {
        0 => OnArrival::Abort,
        1 => OnArrival::FinishBand,
        2 => OnArrival::FinishIfShort,
        _ => OnArrival::FinishChunk,
    };
    let after = Duration(1 + rng.below(100_000));
    (rng.below(4) == 0).then(|| IdleCleaning {
        on_arrival,
        finish_within: Duration::from_ms(rng.below(100)),
        resumes: rng.below(4) > 0,
        ..IdleCleaning::new(after, BlockCount(1), Duration::from_us(20))
    })
}

/// How much of a band is merged at a time, on a disk that destroys so many tracks: in three of four
/// cases all of it.
fn merge_buffer(seed: u64, overlap_tracks: u64) -> Option<BlockCount> {
    let mut rng = Rng::new(seed, 83);
    let least = (overlap_tracks + 1) * TRACK_BLOCKS.0;
    (rng.below(4) == 0).then(|| BlockCount(least + rng.below(TRACK_BLOCKS.0)))
}

/// Adds a translation over a disk of its own, whose conventional part is just large enough, so that
/// the scratch band and all bands lie on tracks that overlap.
pub fn build(assembly: &mut Assembly, disk: &'static str) -> NodeId {
    let settings = Settings::draw(&mut assembly.rng, assembly.seed);
    let overlap = settings.overlap_tracks;
    let (built, shingled) = just_large_enough(|conventional| {
        let disk = shingled_disk(conventional, overlap);
        let Settings { layer, bands, .. } = settings.clone();
        (PersistentCache::new(layer, bands, &disk), disk)
    });
    let below = disk::add(assembly, disk, shingled);
    add(assembly, built, &[below])
}

/// Adds a translation over two disks of its own: one without overlapping tracks that is just large
/// enough for the log, and one of which all tracks overlap.
pub fn build_on_two(assembly: &mut Assembly, log: &'static str, home: &'static str) -> NodeId {
    let settings = Settings::draw(&mut assembly.rng, assembly.seed);
    let shingled = shingled_disk(0, settings.overlap_tracks);
    let (built, plain) = just_large_enough(|tracks| {
        let blocks = BlockCount(tracks * TRACK_BLOCKS.1);
        let plain = Geometry::plain(blocks, Media::SolidState);
        let Settings { layer, bands, .. } = settings.clone();
        let built = PersistentCache::on_two(layer, bands, &plain, &shingled);
        (built, plain)
    });
    let below = [
        disk::add(assembly, log, plain),
        disk::add(assembly, home, shingled),
    ];
    let home = assembly.members.last_mut().expect("a disk was added");
    home.data_of = Some((log, BYPASS));
    add(assembly, built, &below)
}

fn add(
    assembly: &mut Assembly,
    (layer, told): (PersistentCache, Geometry),
    below: &[NodeId],
) -> NodeId {
    let node = assembly.builder.layer(Box::new(layer), told, below);
    assembly.translations.push(node);
    node
}

/// A translation with so many bands over tracks that so overlap.
#[derive(Clone)]
struct Settings {
    layer: PersistentCacheSettings,
    bands: Arc<BandTable>,
    overlap_tracks: u64,
}

impl Settings {
    fn draw(rng: &mut Rng, seed: u64) -> Settings {
        let spread = BAND_BLOCKS / 2;
        let lengths: Vec<BlockCount> = (0..BANDS)
            .map(|_| BlockCount(BAND_BLOCKS - spread / 2 + rng.below(spread)))
            .collect();
        let bands = Arc::new(BandTable::new(lengths));
        let rewrite_extent = match rng.below(2) {
            0 => RewriteExtent::Band,
            _ => RewriteExtent::FromFirstDirty,
        };
        let mut layer = PersistentCacheSettings {
            bypass: true,
            bypass_after_blocks: BlockCount(4),
            rewrite: RewriteMethod::CopyThenHome,
            rewrite_extent,
            packet_blocks_max: BlockCount(8),
            blocking: blocking_cleaning(seed),
            idle: idle_cleaning(seed),
            durability: Some(DurabilitySettings {
                ring_blocks: 16 + rng.below(5),
                unflushed_blocks_max: 16 + rng.below(24),
            }),
            ..PersistentCacheSettings::new(BlockCount(24 + rng.below(16)))
        };
        let overlap_tracks = 1 + rng.below(2);
        layer.merge_buffer_blocks = merge_buffer(seed, overlap_tracks);
        Settings {
            layer,
            bands,
            overlap_tracks,
        }
    }
}

/// A disk of which the first tracks do not overlap.
fn shingled_disk(conventional_tracks: u64, overlap_tracks: u64) -> Geometry {
    let runs = [
        (conventional_tracks, TRACK_BLOCKS.1),
        (SHINGLED_TRACKS, TRACK_BLOCKS.0),
    ];
    let edge = BlockCount(conventional_tracks * TRACK_BLOCKS.1);
    let runs = runs.into_iter().filter(|(tracks, _)| *tracks > 0);
    let tracks = TrackTable::new(runs, edge, overlap_tracks);
    Geometry {
        tracks: Some(Arc::new(tracks)),
        ..Geometry::plain(
            BlockCount(edge.0 + SHINGLED_TRACKS * TRACK_BLOCKS.0),
            Media::Shingled,
        )
    }
}

type Built = (PersistentCache, Geometry);

/// The translation, and the disk of its log, for the least number of tracks that hold the log.
fn just_large_enough(
    mut with: impl FnMut(u64) -> (Result<Built, LayoutError>, Geometry),
) -> (Built, Geometry) {
    for tracks in 1..CONVENTIONAL_TRACKS_MAX {
        match with(tracks) {
            (Ok(built), disk) => return (built, disk),
            (Err(LayoutError::LogPastConventional { .. }), _) => {}
            (Err(error), _) => panic!("{error}"),
        }
    }
    panic!("a log that no conventional part can hold");
}
