//! Segment layouts over small shingled disks.

use super::{BufferBound, DURABILITY, JOURNAL_PAGES, Kind, REQUESTS};
use imbrex_core::disk::{Geometry, Media, Shingling, TrackTable};
use imbrex_core::read_cache::{OnWrite, ReadCacheSettings};
use imbrex_core::translation::ChecksumSettings;
use imbrex_core::translation::segment::{
    Holds, Journaling, RegionLayout, RewriteReach, SegmentAreas, SegmentPorts, SegmentSettings,
    Segments, TrackLength,
};
use imbrex_core::units::BlockCount;
use std::sync::Arc;

/// Blocks of the tracks, of which some are no multiple of a block.
const TRACK_BLOCKS: u64 = 7;
/// Tracks of a region.
const REGION_TRACKS: u64 = 6;
/// Blocks of 4 KiB of a block.
const BLOCK: u64 = 2;
/// Pairs of regions.
const PAIRS: u64 = 3;

/// A layout of a writer of so many tracks.
pub fn settings(kappa: u64, layout: RegionLayout) -> SegmentSettings {
    SegmentSettings {
        track: TrackLength::OfDisk,
        block: BlockCount(BLOCK),
        region_tracks: REGION_TRACKS,
        kappa,
        layout,
        rewrite: RewriteReach::Cascade,
        valid: Holds::All,
        journal: Journaling::Slots,
        checksums: None,
        offered: None,
        ports: SegmentPorts::default(),
    }
}

pub fn wave(kappa: u64) -> SegmentSettings {
    settings(kappa, RegionLayout::Wave)
}

pub fn unjournaled(settings: SegmentSettings) -> SegmentSettings {
    SegmentSettings { journal: Journaling::Off, ..settings }
}

pub fn touched(settings: SegmentSettings) -> SegmentSettings {
    SegmentSettings { valid: Holds::Touched, ..settings }
}

pub fn whole(settings: SegmentSettings) -> SegmentSettings {
    SegmentSettings { rewrite: RewriteReach::Whole, ..settings }
}

pub fn durably(settings: SegmentSettings) -> SegmentSettings {
    SegmentSettings { journal: Journaling::Durable(DURABILITY), ..settings }
}

/// With checksums, of which so many pages are kept in memory.
pub fn summed(pages: u64, settings: SegmentSettings) -> SegmentSettings {
    let memory_bytes = pages * 4 * settings.segment_blocks();
    SegmentSettings { checksums: Some(ChecksumSettings { memory_bytes }), ..durably(settings) }
}

/// The journal on a node of its own.
pub fn apart(settings: SegmentSettings) -> SegmentSettings {
    SegmentSettings { ports: SegmentPorts { journal: true, ..settings.ports }, ..settings }
}

/// A layout that offers less than its last segment would hold.
pub fn cut(settings: SegmentSettings) -> SegmentSettings {
    SegmentSettings { offered: Some(BlockCount(100)), ..settings }
}

/// Blocks of the areas: with tables for more segments than the regions have.
fn areas(settings: &SegmentSettings) -> u64 {
    SegmentAreas::new(settings, BlockCount(1000)).blocks().0
}

/// Tracks that do not overlap in front, then pairs of regions as a wave needs them.
fn disk(settings: &SegmentSettings) -> Geometry {
    let pair = 2 * REGION_TRACKS + 2 * settings.kappa;
    let front = match settings.ports.journal {
        true => 0,
        false => areas(settings).div_ceil(TRACK_BLOCKS),
    };
    let mut shingles = vec![(front, Shingling::Apart)];
    for _ in 0..PAIRS {
        match settings.layout {
            RegionLayout::Wave => shingles.extend([
                (pair - REGION_TRACKS, Shingling::Upwards),
                (REGION_TRACKS, Shingling::Downwards),
            ]),
            RegionLayout::Conventional => shingles.push((pair, Shingling::Upwards)),
        }
    }
    let tracks = front + PAIRS * pair;
    let table = TrackTable::with_shingles([(tracks, TRACK_BLOCKS)], shingles, settings.kappa - 1);
    Geometry {
        tracks: Some(Arc::new(table.clone())),
        is_blank: true,
        ..Geometry::plain(BlockCount(table.blocks()), Media::Shingled)
    }
}

/// A layout beside a read cache that keeps what rewrites have read.
pub fn segments_with_copies(settings: SegmentSettings) -> Kind {
    let ports = SegmentPorts { copies: true, ..settings.ports };
    segments(SegmentSettings { ports, ..settings })
}

pub fn segments(settings: SegmentSettings) -> Kind {
    // With the page of its table, and that page being read.
    let pages = if settings.checksums.is_some() { 2 } else { 0 };
    let segment = REGION_TRACKS * BLOCK + pages;
    let is_durable = settings.journal.has_notes();
    let journal = if is_durable { DURABILITY.ring_blocks + JOURNAL_PAGES } else { 0 };
    let buffers = BufferBound {
        blocks: (REQUESTS + 4) * segment + journal,
        because: "a request rewrites one segment at a time, and what could not be written home stays in \
                  memory; a durable one writes its journal and the pages of a checkpoint beside",
    };
    let mut disks = vec![disk(&settings)];
    if settings.ports.journal {
        let blocks = BlockCount(areas(&settings));
        disks.insert(0, Geometry::plain(blocks, Media::SolidState));
    }
    let copies = ReadCacheSettings {
        block: settings.block,
        capacity_blocks: 20,
        on_write: OnWrite::Update,
        fill_from_rewrite: true,
    };
    if settings.ports.copies {
        disks.insert(0, Geometry::plain(copies.flash_blocks(), Media::SolidState));
    }
    let store = settings.ports.copies.then_some((0, copies));
    let loses_on_failure = !is_durable;
    let kind = Kind::new(disks, is_durable, buffers, move |below| {
        let below: Vec<&Geometry> = below.iter().collect();
        Segments::new(settings.clone(), &below).expect("a layout")
    });
    Kind { loses_on_failure, store, ..kind }
}
