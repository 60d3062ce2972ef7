//! A drive-managed translation under test.

use super::{Assembly, BAND_BLOCKS, BANDS, disk};
use imbrex_core::disk::{Geometry, Media, Shingling, TrackTable};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::map::BandTable;
use imbrex_core::rng::Rng;
use imbrex_core::stack::NodeId;
use imbrex_core::translation::records::{BYPASS, RECORDS};
use imbrex_core::translation::{
    BlockingCleaning, BypassSettings, IdleCleaning, IdlePiece, LayoutError, MapJournalSettings,
    OnArrival, PersistentCache, PersistentCacheSettings, RewriteExtent, RewriteMethod,
    RewriteSettings, TrimMethod,
};
use imbrex_core::units::{BlockCount, Duration};
use std::sync::Arc;

/// Blocks of a shingled track, and of a conventional one.
const TRACK_BLOCKS: (u64, u64) = (4, 6);
/// Tracks that overlap, enough for all bands and their guards.
pub const SHINGLED_TRACKS: u64 = 110;
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
        piece: match rng.below(2) {
            0 => IdlePiece::Track,
            _ => IdlePiece::Band,
        },
        ..IdleCleaning::new(after, BlockCount(1), Duration::from_us(20))
    })
}

/// What the firmware does beside: what a trim does, which streams go round the log, and how data
/// and records reach it. In three of four cases that is as little as it can be.
fn firmware(seed: u64) -> (TrimMethod, BypassSettings, MapJournalSettings) {
    let mut rng = Rng::new(seed, 89);
    let bypass = BypassSettings::after(BlockCount(4));
    if rng.below(4) > 0 {
        return (TrimMethod::FromLog, bypass, MapJournalSettings::default());
    }
    let trim = match rng.below(3) {
        0 => TrimMethod::None,
        1 => TrimMethod::FromLog,
        _ => TrimMethod::Frees,
    };
    let bypass = BypassSettings {
        after_blocks: BlockCount(rng.below(6)),
        min_blocks: BlockCount(rng.below(6)),
        after_max_blocks: BlockCount(6),
    };
    let map_journal = MapJournalSettings {
        every_records: rng.below(4),
        stall: Duration(rng.below(50_000)),
        stall_per_mib: Duration(rng.below(50_000)),
        log_per_flush: BlockCount(rng.below(3)),
        transaction: BlockCount(rng.below(16)),
        flush_overhead: Duration(rng.below(50_000)),
    };
    (trim, bypass, map_journal)
}

/// How much of a band is merged at a time, on a disk that destroys so many tracks: in three of four
/// cases all of it.
fn merge_buffer(seed: u64, overlap_tracks: u64) -> Option<BlockCount> {
    let mut rng = Rng::new(seed, 83);
    let least = (overlap_tracks + 1) * TRACK_BLOCKS.0;
    (rng.below(4) == 0).then(|| BlockCount(least + rng.below(TRACK_BLOCKS.0)))
}

/// Adds a translation over a disk of its own.
pub fn build(assembly: &mut Assembly, disk: &'static str) -> NodeId {
    let drawn = draw(&mut assembly.rng, assembly.seed);
    let part = (drawn.conventional_tracks(SHINGLED_TRACKS), SHINGLED_TRACKS);
    let shingled = shingled_disk(&[part], drawn.overlap_tracks);
    let (layer, told) = drawn.over(&shingled).expect("a disk that is large enough");
    let below = disk::add(assembly, disk, shingled);
    add(assembly, (layer, told), &[below])
}

/// Adds a translation over two disks of its own: one without overlapping tracks that is just large
/// enough for the log, and one of which all tracks overlap.
pub fn build_on_two(assembly: &mut Assembly, log: &'static str, home: &'static str) -> NodeId {
    let drawn = draw(&mut assembly.rng, assembly.seed);
    let shingled = shingled_disk(&[(0, SHINGLED_TRACKS)], drawn.overlap_tracks);
    let (built, plain) = (1..CONVENTIONAL_TRACKS_MAX)
        .find_map(|tracks| {
            let blocks = BlockCount(tracks * TRACK_BLOCKS.1);
            let plain = Geometry::plain(blocks, Media::SolidState);
            let bands = Arc::clone(&drawn.bands);
            match PersistentCache::on_two(drawn.settings.clone(), bands, &plain, &shingled) {
                Ok(built) => Some((built, plain)),
                Err(LayoutError::LogPastConventional { .. }) => None,
                Err(error) => panic!("{error}"),
            }
        })
        .expect("a disk that can hold the log");
    let below = [disk::add(assembly, log, plain), disk::add(assembly, home, shingled)];
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

/// What a translation is like before it has a disk.
pub struct Drawn {
    bands: Arc<BandTable>,
    settings: PersistentCacheSettings,
    /// Tracks that a write destroys beside its own.
    pub overlap_tracks: u64,
}

/// Draws a translation.
pub fn draw(rng: &mut Rng, seed: u64) -> Drawn {
    let spread = BAND_BLOCKS / 2;
    let lengths: Vec<BlockCount> =
        (0..BANDS).map(|_| BlockCount(BAND_BLOCKS - spread / 2 + rng.below(spread))).collect();
    let bands = Arc::new(BandTable::new(lengths));
    let rewrite_extent = match rng.below(2) {
        0 => RewriteExtent::Band,
        _ => RewriteExtent::FromFirstDirty,
    };
    let (trim, bypass, map_journal) = firmware(seed);
    let mut settings = PersistentCacheSettings {
        trim,
        bypass: Some(bypass),
        map_journal,
        rewrite: RewriteSettings {
            method: RewriteMethod::CopyThenHome,
            extent: rewrite_extent,
            ..RewriteSettings::default()
        },
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
    settings.rewrite.merge_buffer_blocks = merge_buffer(seed, overlap_tracks);
    Drawn { bands, settings, overlap_tracks }
}

impl Drawn {
    /// The same for a disk on which a write destroys so many tracks.
    pub fn on_overlap(mut self, seed: u64, overlap_tracks: u64) -> Drawn {
        self.settings.rewrite.merge_buffer_blocks = merge_buffer(seed, overlap_tracks);
        self.overlap_tracks = overlap_tracks;
        self
    }

    /// The translation over a disk, and what it tells.
    ///
    /// # Errors
    /// When it does not fit.
    pub fn over(&self, disk: &Geometry) -> Result<(PersistentCache, Geometry), LayoutError> {
        PersistentCache::new(self.settings.clone(), Arc::clone(&self.bands), disk)
    }

    /// The fewest conventional tracks that hold the log, on a disk with so many others, so that the
    /// scratch band and all bands lie on tracks that overlap.
    pub fn conventional_tracks(&self, shingled: u64) -> u64 {
        let fits = |conventional: &u64| {
            let part = (*conventional, shingled);
            match self.over(&shingled_disk(&[part], self.overlap_tracks)) {
                Ok(_) => true,
                Err(LayoutError::LogPastConventional { .. }) => false,
                Err(error) => panic!("{error}"),
            }
        };
        let fewest = (1..CONVENTIONAL_TRACKS_MAX).find(fits);
        fewest.expect("a log that a conventional part can hold")
    }

    /// The fewest tracks that overlap and hold the scratch band and all bands.
    pub fn shingled_tracks(&self, conventional: u64) -> u64 {
        let fits = |shingled: &u64| {
            let part = (conventional, *shingled);
            self.over(&shingled_disk(&[part], self.overlap_tracks)).is_ok()
        };
        let fewest = (1..SHINGLED_TRACKS).find(fits);
        fewest.expect("bands that fit")
    }
}

/// A disk of parts, each of so many conventional tracks and so many that overlap upwards.
pub fn shingled_disk(parts: &[(u64, u64)], overlap_tracks: u64) -> Geometry {
    let lengths = parts
        .iter()
        .flat_map(|part| [(part.0, TRACK_BLOCKS.1), (part.1, TRACK_BLOCKS.0)])
        .filter(|(tracks, _)| *tracks > 0);
    let shingles = parts
        .iter()
        .flat_map(|part| [(part.0, Shingling::Apart), (part.1, Shingling::Upwards)])
        .filter(|(tracks, _)| *tracks > 0);
    let tracks = TrackTable::with_shingles(lengths, shingles, overlap_tracks);
    Geometry {
        tracks: Some(Arc::new(tracks.clone())),
        ..Geometry::plain(BlockCount(tracks.blocks()), Media::Shingled)
    }
}

/// Blocks of so many conventional tracks and so many that overlap.
pub fn blocks_of(part: (u64, u64)) -> u64 {
    part.0 * TRACK_BLOCKS.1 + part.1 * TRACK_BLOCKS.0
}
