//! The ready-made stacks in durable mode on disks of a few hundred blocks.

use super::subject::{Member, Parts, Subject};
use super::workload::Shape;
use imbrex_core::cache::codec::RECORD_KINDS;
use imbrex_core::cache::{
    Cache, CacheMode, CacheSettings, OpenZones, PeriodCounter, PolicySettings, PopularityWindow,
    PoreSettings,
};
use imbrex_core::disk::{Geometry, Media, TrackTable};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::map::BandTable;
use imbrex_core::operation::Durability;
use imbrex_core::rng::Rng;
use imbrex_core::stack::{NodeId, StackBuilder};
use imbrex_core::translation::records::RECORDS;
use imbrex_core::translation::{
    BlockingCleaning, IdleCleaning, LayoutError, OnArrival, PersistentCache,
    PersistentCacheSettings, RewriteExtent, RewriteMethod,
};
use imbrex_core::units::{BlockCount, Duration};
use std::sync::Arc;

/// The stacks by name; the first is the default.
pub const NAMES: [&str; 5] = ["pore", "lru", "lru-band", "smr-only", "lru-cmr"];

/// Bands of a device.
const BANDS: u64 = 8;
/// Blocks of a band, on average.
const BAND_BLOCKS: u64 = 24;
/// Blocks of a shingled track, and of a conventional one.
const TRACK_BLOCKS: (u64, u64) = (4, 6);
/// Tracks that overlap, enough for all bands and their guards.
const SHINGLED_TRACKS: u64 = 110;
/// Most conventional tracks.
const CONVENTIONAL_TRACKS_MAX: u64 = 200;

/// A stack by name.
pub fn subject(name: &str) -> Option<Subject> {
    let name = NAMES.into_iter().find(|known| *known == name)?;
    Some(Subject {
        name: name.to_string(),
        build: Box::new(move |seed| build(name, seed)),
        record_name,
        check: None,
    })
}

/// The names of the formats' pages. The member called flash has a cache, any other a translation.
fn record_name(member: &str, kind: u8) -> String {
    let cache = RECORD_KINDS.iter().find(|(known, _)| *known == kind);
    let translation = RECORDS.iter().find(|record| record.kind == kind);
    let name = match member {
        "flash" => cache.map(|(_, name)| *name),
        _ => translation.map(|record| record.name),
    };
    name.map_or(kind.to_string(), str::to_string)
}

fn build(name: &str, seed: u64) -> Parts {
    let mut rng = Rng::new(seed, 71);
    let mut builder = StackBuilder::new(seed);
    let mut members = Vec::new();
    let mut disk = |builder: &mut StackBuilder, name, geometry: Geometry| {
        members.push(Member {
            name,
            geometry: geometry.clone(),
            // Nothing checks the data on a plain disk.
            is_trusted: geometry.media == Media::Conventional,
        });
        builder.disk(geometry)
    };
    let cache = cache_settings(name, &mut rng);
    let flash = cache.as_ref().map(|settings| {
        let geometry = Geometry::plain(settings.flash_blocks(), Media::SolidState);
        disk(&mut builder, "flash", geometry)
    });
    let (below, translation) = if name == "lru-cmr" {
        let blocks = BlockCount(BANDS * BAND_BLOCKS);
        let geometry = Geometry::plain(blocks, Media::Conventional);
        (disk(&mut builder, "cmr", geometry), None)
    } else {
        let ((layer, told), shingled) = translation(&mut rng, seed);
        let smr = disk(&mut builder, "smr", shingled);
        let node = builder.layer(Box::new(layer), told, &[smr]);
        (node, Some(node))
    };
    let top = match (cache, flash) {
        (Some(settings), Some(flash)) => cached(&mut builder, settings, flash, below),
        _ => below,
    };
    let blocks = builder.geometry(top).blocks.0;
    Parts {
        stack: builder.build(top),
        members,
        translation,
        shape: Shape {
            blocks,
            band_blocks: BAND_BLOCKS,
        },
    }
}

fn cached(
    builder: &mut StackBuilder,
    settings: CacheSettings,
    flash: NodeId,
    below: NodeId,
) -> NodeId {
    let (flash_geometry, backing) = (builder.geometry(flash), builder.geometry(below));
    let (cache, told) =
        Cache::new(settings, flash_geometry, backing).unwrap_or_else(|error| panic!("{error}"));
    builder.layer(Box::new(cache), told, &[flash, below])
}

fn cache_settings(name: &str, rng: &mut Rng) -> Option<CacheSettings> {
    let policy = match name {
        "pore" => PolicySettings::Pore(PoreSettings {
            zone_blocks: BAND_BLOCKS / 2,
            period_blocks: 12,
            period_counter: PeriodCounter::WriteMiss,
            popularity_window: PopularityWindow::Period,
            access_floor: 1,
            open_zones: OpenZones::Bl,
        }),
        "lru" | "lru-cmr" => PolicySettings::Lru,
        "lru-band" => PolicySettings::LruBand { bands: None },
        _ => return None,
    };
    let mode = match rng.below(2) {
        0 => CacheMode::ReadWrite,
        _ => CacheMode::WriteOnly,
    };
    Some(CacheSettings {
        capacity_blocks: 12 + rng.below(16),
        destage_slots_max: 1 + rng.below(6) as u32,
        destage: Durability::Durable,
        mode,
        policy,
        durability: Some(DurabilitySettings {
            ring_blocks: 8 + rng.below(3),
            unflushed_blocks_max: 8 + rng.below(24),
        }),
    })
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

/// The translation over a disk whose conventional part is just large enough, so that the scratch
/// band and all bands lie on tracks that overlap.
fn translation(rng: &mut Rng, seed: u64) -> ((PersistentCache, Geometry), Geometry) {
    let spread = BAND_BLOCKS / 2;
    let lengths: Vec<BlockCount> = (0..BANDS)
        .map(|_| BlockCount(BAND_BLOCKS - spread / 2 + rng.below(spread)))
        .collect();
    let bands = Arc::new(BandTable::new(lengths));
    let rewrite_extent = match rng.below(2) {
        0 => RewriteExtent::Band,
        _ => RewriteExtent::FromFirstDirty,
    };
    let mut settings = PersistentCacheSettings {
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
    settings.merge_buffer_blocks = merge_buffer(seed, overlap_tracks);
    for conventional in 1..CONVENTIONAL_TRACKS_MAX {
        let runs = [
            (conventional, TRACK_BLOCKS.1),
            (SHINGLED_TRACKS, TRACK_BLOCKS.0),
        ];
        let edge = BlockCount(conventional * TRACK_BLOCKS.1);
        let tracks = TrackTable::new(runs, edge, overlap_tracks);
        let geometry = Geometry {
            tracks: Some(Arc::new(tracks)),
            ..Geometry::plain(
                BlockCount(edge.0 + SHINGLED_TRACKS * TRACK_BLOCKS.0),
                Media::Shingled,
            )
        };
        match PersistentCache::new(settings.clone(), Arc::clone(&bands), &geometry) {
            Ok(built) => return (built, geometry),
            Err(LayoutError::LogPastConventional { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("a log that no conventional part can hold");
}
