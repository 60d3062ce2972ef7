//! A translation by S-blocks under test.

use super::{Assembly, BAND_BLOCKS, BANDS, disk};
use crate::crashtest::subject::Kept;
use imbrex_core::disk::{Geometry, Media, TrackTable};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::rng::Rng;
use imbrex_core::stack::NodeId;
use imbrex_core::translation::s_block_records::RECORD_KINDS;
use imbrex_core::translation::{
    ChecksumSettings, GcOrder, MILLION, Prefill, RingSize, SBlockError, SBlockSettings, SBlocks,
    SpareSlots, TrackSource,
};
use imbrex_core::units::BlockCount;
use std::sync::Arc;

/// Tracks of two lengths that overlap: so many, each so long.
const SHINGLED: [(u64, u64); 2] = [(60, 13), (80, 9)];
/// Blocks of a track that does not overlap.
const CONVENTIONAL_TRACK: u64 = 6;
/// Most tracks that do not.
const CONVENTIONAL_TRACKS_MAX: u64 = 400;

/// The name of a kind of record on the format's page.
pub fn record_name(kind: u8) -> Option<&'static str> {
    let known = RECORD_KINDS.iter().find(|(known, _)| *known == kind);
    known.map(|(_, name)| *name)
}

/// Adds a translation over a disk of its own, beside a read cache where there is one.
pub fn build(assembly: &mut Assembly, name: &'static str, copies: Option<NodeId>) -> NodeId {
    let mut settings = settings(&mut assembly.rng);
    let store = copies.and_then(|copies| assembly.builder.geometry(copies).copies);
    if let Some(store) = store {
        settings.block = store.block;
    }
    let has_checksums = settings.checksums.is_some();
    let overlap_tracks = 1 + assembly.rng.below(3);
    let built = (1..CONVENTIONAL_TRACKS_MAX).find_map(|tracks| {
        let below = shingled_disk(tracks, overlap_tracks);
        match SBlocks::new(settings.clone(), &below, store) {
            Ok(built) => Some((built, below)),
            Err(SBlockError::FrontTooSmall { .. }) => None,
            Err(error) => panic!("{error}"),
        }
    });
    let ((layer, told), below) = built.expect("a disk that is large enough");
    let below = disk::add(assembly, name, below);
    let member = assembly.members.last_mut().expect("a disk was added");
    member.is_trusted = !has_checksums;
    member.kept = Some(Kept::SBlocks(layer.layout().clone()));
    let ports: Vec<NodeId> = copies.into_iter().chain([below]).collect();
    let node = assembly.builder.layer(Box::new(layer), told, &ports);
    assembly.translations.push(node);
    node
}

fn settings(rng: &mut Rng) -> SBlockSettings {
    let gc_order = match rng.below(2) {
        0 => GcOrder::RoomFirst,
        _ => GcOrder::InvalidateFirst,
    };
    let slots = match rng.below(2) {
        0 => SpareSlots::Extra,
        _ => SpareSlots::Inside,
    };
    let ring = match rng.below(3) {
        0 => 0,
        _ => 2 + rng.below(5),
    };
    // As images of an older build, or with few or many pages of checksums in memory.
    let checksums = match rng.below(4) {
        0 => None,
        1 => Some(ChecksumSettings { memory_bytes: 1 }),
        _ => Some(ChecksumSettings::default()),
    };
    SBlockSettings {
        block: BlockCount(1 + rng.below(3)),
        track: TrackSource::Disk,
        region_tracks: 2 + rng.below(3),
        guard_tracks: 0,
        spare_ppm: MILLION / 10 * (1 + rng.below(4)),
        slots,
        prefill: Prefill::None,
        gc_order,
        ring: RingSize::Blocks(ring),
        wanted: Some(BlockCount(BANDS * BAND_BLOCKS)),
        durability: Some(DurabilitySettings {
            ring_blocks: 12 + rng.below(8),
            unflushed_blocks_max: 8 + rng.below(24),
        }),
        checksums,
        ..SBlockSettings::new()
    }
}

fn shingled_disk(conventional: u64, overlap_tracks: u64) -> Geometry {
    let runs = [(conventional, CONVENTIONAL_TRACK)].into_iter().chain(SHINGLED);
    let apart = BlockCount(conventional * CONVENTIONAL_TRACK);
    let tracks = TrackTable::new(runs, apart, overlap_tracks);
    Geometry {
        tracks: Some(Arc::new(tracks.clone())),
        ..Geometry::plain(BlockCount(tracks.blocks()), Media::Shingled)
    }
}
