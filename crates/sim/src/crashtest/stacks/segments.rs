//! Segments that are rewritten in place, under test.

use super::{Assembly, BAND_BLOCKS, BANDS, disk};
use crate::crashtest::subject::Kept;
use imbrex_core::disk::{Geometry, Media, Shingling, TrackTable};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::rng::Rng;
use imbrex_core::stack::NodeId;
use imbrex_core::translation::ChecksumSettings;
use imbrex_core::translation::segment::codec::RECORD_KINDS;
use imbrex_core::translation::segment::{
    Holds, Journaling, RegionLayout, RewriteReach, SegmentAreas, SegmentPorts, SegmentSettings,
    Segments, TrackLength,
};
use imbrex_core::units::BlockCount;
use std::sync::Arc;

/// Blocks of a track.
const TRACK_BLOCKS: u64 = 13;

/// The name of a kind of record on the format's page.
pub fn record_name(kind: u8) -> Option<&'static str> {
    let known = RECORD_KINDS.iter().find(|(known, _)| *known == kind);
    known.map(|(_, name)| *name)
}

/// Adds a layout over a disk of its own, beside a read cache where there is one.
pub fn build(assembly: &mut Assembly, name: &'static str, copies: Option<NodeId>) -> NodeId {
    let store = copies.and_then(|copies| assembly.builder.geometry(copies).copies);
    let mut settings = settings(&mut assembly.rng);
    settings.ports.copies = copies.is_some();
    if let Some(store) = store {
        settings.block = store.block;
    }
    // Some have no checksums, like images of earlier builds.
    let keeps_sums = settings.keeps_sums();
    let disk = shingled_disk(&settings);
    let told = copies.map(|copies| assembly.builder.geometry(copies).clone());
    let below: Vec<&Geometry> = told.iter().chain([&disk]).collect();
    let built = Segments::new(settings, &below);
    let (layer, told) = built.unwrap_or_else(|error| panic!("{error}"));
    let below = disk::add(assembly, name, disk.clone());
    let member = assembly.members.last_mut().expect("a disk was added");
    member.is_trusted = !keeps_sums;
    let (layout, areas) = (layer.layout().clone(), *layer.areas());
    member.kept = Some(Kept::Segments(layer.identity(), layout, areas));
    let ports: Vec<NodeId> = copies.into_iter().chain([below]).collect();
    let node = assembly.builder.layer(Box::new(layer), told, &ports);
    assembly.translations.push(node);
    node
}

fn settings(rng: &mut Rng) -> SegmentSettings {
    SegmentSettings {
        track: TrackLength::OfDisk,
        block: BlockCount(1 + rng.below(3)),
        region_tracks: 3 + rng.below(4),
        kappa: 1 + rng.below(4),
        layout: match rng.below(2) {
            0 => RegionLayout::Wave,
            _ => RegionLayout::Conventional,
        },
        rewrite: match rng.below(4) {
            0 => RewriteReach::Whole,
            _ => RewriteReach::Cascade,
        },
        valid: Holds::All,
        checksums: match rng.below(4) {
            0 => None,
            _ => Some(ChecksumSettings { memory_bytes: rng.below(20) * 40 }),
        },
        offered: Some(BlockCount(BANDS * BAND_BLOCKS)),
        ports: SegmentPorts::default(),
        journal: Journaling::Durable(DurabilitySettings {
            ring_blocks: 12 + rng.below(8),
            unflushed_blocks_max: 8 + rng.below(24),
        }),
    }
}

/// A disk that begins with tracks for the journal, and has as many regions as are needed.
fn shingled_disk(settings: &SegmentSettings) -> Geometry {
    let front = SegmentAreas::new(settings, BlockCount::ZERO).blocks().0.div_ceil(TRACK_BLOCKS);
    let (m, kappa) = (settings.region_tracks, settings.kappa);
    let of_region = TRACK_BLOCKS / settings.block.0 * settings.segment_blocks();
    let pairs = (BANDS * BAND_BLOCKS).div_ceil(of_region).div_ceil(2) + 1;
    let mut shingles = vec![(front, Shingling::Apart)];
    for _ in 0..pairs {
        match settings.layout {
            RegionLayout::Wave => {
                shingles.extend([(m + kappa, Shingling::Upwards), (m, Shingling::Downwards)]);
            }
            RegionLayout::Conventional => shingles.push((2 * (m + kappa), Shingling::Upwards)),
        }
    }
    let tracks = shingles.iter().map(|(tracks, _)| tracks).sum();
    let table = TrackTable::with_shingles([(tracks, TRACK_BLOCKS)], shingles, kappa - 1);
    Geometry {
        tracks: Some(Arc::new(table.clone())),
        is_blank: true,
        ..Geometry::plain(BlockCount(table.blocks()), Media::Shingled)
    }
}
