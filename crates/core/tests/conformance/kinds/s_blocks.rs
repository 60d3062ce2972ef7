//! Translations by S-blocks.

use super::{BufferBound, CONVENTIONAL_TRACK_BLOCKS, DURABILITY, JOURNAL_PAGES, Kind, REQUESTS};
use imbrex_core::disk::{Geometry, Media, TrackTable};
use imbrex_core::translation::{
    ChecksumSettings, GcOrder, MILLION, Prefill, RingSize, SBlockSettings, SBlocks, SpareSlots,
    TrackSource,
};
use imbrex_core::units::BlockCount;
use std::sync::Arc;

/// Blocks of a block, and of an S-block.
const S_BLOCK: (u64, u64) = (2, 8);

/// Regions of six S-blocks and two spare slots.
pub fn s_block(ring: RingSize) -> SBlockSettings {
    SBlockSettings {
        block: BlockCount(S_BLOCK.0),
        track: TrackSource::Dense(BlockCount(12)),
        region_tracks: S_BLOCK.1 / S_BLOCK.0,
        guard_tracks: 0,
        spare_ppm: MILLION / 3,
        wanted: Some(BlockCount(12 * S_BLOCK.1)),
        ring,
        ..SBlockSettings::new()
    }
}

pub fn invalidate_first(settings: SBlockSettings) -> SBlockSettings {
    SBlockSettings { gc_order: GcOrder::InvalidateFirst, ..settings }
}

pub fn spare_inside(settings: SBlockSettings) -> SBlockSettings {
    SBlockSettings { slots: SpareSlots::Inside, prefill: Prefill::None, ..settings }
}

pub fn on_tracks(settings: SBlockSettings) -> SBlockSettings {
    SBlockSettings { track: TrackSource::Disk, ..settings }
}

pub fn durable_s_block(settings: SBlockSettings) -> SBlockSettings {
    SBlockSettings { durability: Some(DURABILITY), prefill: Prefill::None, ..settings }
}

/// With checksums, and so many pages of their tables in memory.
pub fn s_block_summed(pages: u64, settings: SBlockSettings) -> SBlockSettings {
    SBlockSettings {
        checksums: Some(ChecksumSettings { memory_bytes: pages * 4 * S_BLOCK.1 }),
        ..durable_s_block(settings)
    }
}

pub fn plain_disk() -> Geometry {
    Geometry::plain(BlockCount(900), Media::Conventional)
}

/// A disk of tracks that do not overlap, then of tracks of two lengths that do.
pub fn overlapping(overlap_tracks: u64) -> Geometry {
    let runs = [(30, CONVENTIONAL_TRACK_BLOCKS), (40, 13), (60, 9)];
    let conventional = BlockCount(30 * CONVENTIONAL_TRACK_BLOCKS);
    let tracks = TrackTable::new(runs, conventional, overlap_tracks);
    Geometry {
        tracks: Some(Arc::new(tracks.clone())),
        ..Geometry::plain(BlockCount(tracks.blocks()), Media::Shingled)
    }
}

pub fn s_blocks(settings: SBlockSettings, disk: Geometry) -> Kind {
    let is_durable = settings.durability.is_some();
    let journal = DURABILITY.ring_blocks + JOURNAL_PAGES;
    let tables = settings.checksums.map_or(0, |_| 4 * 2 + 3 * REQUESTS);
    let buffers = BufferBound {
        blocks: 4 * S_BLOCK.1 + REQUESTS * 8 + tables + if is_durable { journal } else { 0 },
        because: "four S-blocks are written at a time, each with its table and after the older one; a \
                  request waits for the tables of at most three; zeroes for a ring are as long as the \
                  request; a durable one writes its journal and the pages of a checkpoint beside",
    };
    Kind::new(vec![disk], is_durable, buffers, move |below| {
        SBlocks::new(settings.clone(), &below[0], None).expect("a layout")
    })
}
