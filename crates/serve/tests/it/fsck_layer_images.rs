//! Members of segments, S-blocks and write buffers, written by hand as the pages of the formats draw
//! them.

use crate::fsck_images::{Area, Blocks, Record, words};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::durability::{DurabilitySettings, LayerKind};
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::Uuid;
use imbrex_core::translation::segment::codec::Identity;
use imbrex_core::translation::segment::{
    Journaling, SegmentAreas, SegmentLayout, SegmentSettings, TrackLength,
};
use imbrex_core::translation::{
    MILLION, RingSize, SBlockLayout, SBlockSettings, SpareSlots, TrackSource,
};
use imbrex_core::units::BlockCount;
use imbrex_serve::fsck::{Member, SegmentGeometry, SegmentPlace, SegmentsState, Shape};
use std::path::Path;

const SEGMENTS: Uuid = Uuid([0x35; 16]);
const S_BLOCKS: Uuid = Uuid([0x36; 16]);
const LOG: Uuid = Uuid([0x37; 16]);

/// Blocks of the disk of segments, of that of S-blocks, and of the log.
const SEGMENTS_DISK: u64 = 110;
const S_BLOCKS_DISK: u64 = 106;
const LOG_BLOCKS: u64 = 26;
pub const LOG_PLACES: u64 = 12;

/// The areas of their journals.
pub const SEGMENTS_AREA: Area = Area {
    checkpoint: 1,
    ring: 8,
};
pub const S_BLOCKS_AREA: Area = Area {
    checkpoint: 1,
    ring: 12,
};
pub const LOG_AREA: Area = Area {
    checkpoint: 1,
    ring: 8,
};

fn journal_of(area: Area) -> DurabilitySettings {
    DurabilitySettings {
        ring_blocks: area.ring,
        ..DurabilitySettings::default()
    }
}

/// Two regions of six segments, each of three blocks of two, behind the journal and four slots.
pub fn segment_geometry() -> SegmentGeometry {
    let settings = SegmentSettings {
        track: TrackLength::Assumed(BlockCount(12)),
        block: BlockCount(2),
        region_tracks: 3,
        kappa: 2,
        journal: Journaling::Durable(journal_of(SEGMENTS_AREA)),
        ..SegmentSettings::paper()
    };
    let areas = SegmentAreas::new(&settings, BlockCount(SEGMENTS_DISK));
    assert_eq!(areas.journal, Extent::new(0, SEGMENTS_AREA.blocks()));
    assert_eq!(areas.blocks().0, 38);
    let layout = SegmentLayout::new(&settings, 38, BlockCount(SEGMENTS_DISK), None);
    let layout = layout.expect("a layout");
    assert_eq!((layout.segments(), layout.blocks().0), (12, 72));
    SegmentGeometry {
        identity: Identity {
            block: 2,
            region_tracks: 3,
            segments: 12,
            first_block: 38,
            kappa: 2,
        },
        layout,
        areas,
    }
}

fn slot(number: u64) -> u64 {
    SEGMENTS_AREA.blocks() + 6 * number
}

/// Slots 2 and 0 are noted in the checkpoint; slot 1 is noted and slot 2 is done since; the rewrite
/// from slot 3 never became durable.
pub fn segments() -> Blocks {
    let mut disk = Blocks::new(SEGMENTS_DISK);
    let sums: Vec<u32> = (0..SEGMENTS_DISK).map(|at| disk.fill(at, at)).collect();
    let kept = |slot_of: u64, first: u64, count: u64| -> Record {
        let start = slot(slot_of) + first;
        let sums = sums[start as usize..(start + count) as usize].to_vec();
        (1, words(&[slot_of]), Some(start), sums)
    };
    let checkpoint = [
        vec![1, 2, 3, 12, 38, 2, 2],
        vec![3, 3, 2, 3, 2],
        vec![2, 3, 0, 1, 0b110],
    ];
    let journal = [
        vec![
            kept(1, 0, 2),
            kept(1, 4, 2),
            (2, words(&[1, 7, 0b101]), None, vec![]),
        ],
        vec![(4, words(&[2]), None, vec![])],
        vec![
            (1, words(&[3]), Some(slot(3)), vec![77, 78]),
            (2, words(&[3, 9, 0b001]), None, vec![]),
        ],
    ];
    disk.journal(
        SEGMENTS_AREA,
        (LayerKind::Segments, SEGMENTS),
        &words(&checkpoint.concat()),
        &journal,
    );
    disk
}

/// Two regions of four S-blocks of three blocks of two, with one spare slot and a ring of four
/// places.
pub fn s_block_layout() -> SBlockLayout {
    let settings = SBlockSettings {
        block: BlockCount(2),
        track: TrackSource::Dense(BlockCount(8)),
        region_tracks: 3,
        spare_ppm: MILLION / 4,
        slots: SpareSlots::Extra,
        ring: RingSize::Blocks(2),
        durability: Some(journal_of(S_BLOCKS_AREA)),
        ..SBlockSettings::new()
    };
    let below = Geometry::plain(BlockCount(S_BLOCKS_DISK), Media::Conventional);
    let layout = SBlockLayout::new(&settings, &below).expect("a layout");
    assert_eq!(layout.journal, Extent::new(0, S_BLOCKS_AREA.blocks()));
    assert_eq!((layout.places.len(), layout.ring_places), (2, 4));
    layout
}

fn halves(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn place(place: u32, block: u32, parts: u64) -> Vec<u8> {
    let numbers = [place.to_le_bytes(), block.to_le_bytes()].concat();
    [numbers, parts.to_le_bytes().to_vec()].concat()
}

fn named(region: u32, rest: &[u16]) -> Vec<u8> {
    [region.to_le_bytes().to_vec(), halves(rest)].concat()
}

/// Region 0 begins with two S-blocks and two blocks in its ring, region 1 with nothing.
pub fn s_blocks() -> Blocks {
    const RINGS: [u64; 2] = [18 + 36, 62 + 36];
    const NONE: u16 = u16::MAX;
    let mut disk = Blocks::new(S_BLOCKS_DISK);
    let sums: Vec<u32> = (0..S_BLOCKS_DISK).map(|at| disk.fill(at, at)).collect();
    let head: Vec<u8> = [1u32, 2, 2, 6, 4, 8].map(u32::to_le_bytes).concat();
    let regions = [
        halves(&[4, 5, 6, 4, 3, 2]),
        halves(&[0, NONE, NONE, NONE, 1, NONE]),
        place(1, 4, 0b11),
        place(2, 9, 0b01),
        halves(&[4, 5, 6, 0, 0, 0]),
        halves(&[NONE; 6]),
    ];
    let ring = |region: usize, block: u32, at: u64, sums: Vec<u32>| -> Record {
        let payload = [(region as u32).to_le_bytes(), block.to_le_bytes()].concat();
        (3, payload, Some(RINGS[region] + at), sums)
    };
    let sum = |at: u64| sums[at as usize];
    let journal = [
        vec![
            // S-block 1 takes block 4 out of the ring.
            (1, named(0, &[1, 1, 3]), None, vec![]),
            ring(0, 9, 7, vec![sum(RINGS[0] + 7)]),
            (1, named(1, &[0, 0, 0]), None, vec![]),
        ],
        vec![
            (2, named(0, &[0, 2, 4]), None, vec![]),
            (1, named(1, &[2, 1, 1]), None, vec![]),
            (4, named(1, &[0, 1]), None, vec![]),
        ],
        // The second part never became durable.
        vec![ring(1, 6, 2, vec![sum(RINGS[1] + 2), 79])],
    ];
    disk.journal(
        S_BLOCKS_AREA,
        (LayerKind::SBlocks, S_BLOCKS),
        &[head, regions.concat()].concat(),
        &journal,
    );
    disk
}

/// The log of a write buffer over a device of 72 blocks.
pub fn log() -> Blocks {
    let first = LOG_AREA.blocks();
    let mut log = Blocks::new(LOG_BLOCKS);
    let sums: Vec<u32> = (0..LOG_PLACES)
        .map(|at| log.fill(first + at, 800 + at))
        .collect();
    let mut checkpoint = words(&[LOG_PLACES, 3]);
    for (lba, place) in [(5u64, 0u32), (6, 1), (9, 4)] {
        checkpoint.extend(lba.to_le_bytes());
        checkpoint.extend(place.to_le_bytes());
        checkpoint.extend(sums[place as usize].to_le_bytes());
    }
    let run = |lba: u64, place: u32, blocks: u32| {
        let places = [place.to_le_bytes(), blocks.to_le_bytes()].concat();
        [lba.to_le_bytes().to_vec(), places].concat()
    };
    let journal = [
        vec![(1, words(&[6]), Some(first + 5), sums[5..7].to_vec())],
        vec![
            // Block 6 has another place by now.
            (2, [run(5, 0, 1), run(6, 1, 1)].concat(), None, vec![]),
            (3, words(&[9, 2]), None, vec![]),
        ],
        // The second block never became durable.
        vec![(1, words(&[20]), Some(first + 8), vec![sums[8], 80])],
    ];
    log.journal(
        LOG_AREA,
        (LayerKind::MemoryBuffer, LOG),
        &checkpoint,
        &journal,
    );
    log
}

fn open(dir: &Path, name: &str, blocks: &Blocks, for_repair: bool) -> Box<Shape> {
    let path = dir.join(name);
    std::fs::write(&path, &blocks.0).expect("a file");
    let member = Member::open(name, &path, for_repair).expect("a member");
    Box::new(Shape::Disk(member))
}

/// Segments on their disk.
pub fn segments_on(dir: &Path, disk: &Blocks, for_repair: bool) -> Shape {
    Shape::Segments {
        disk: open(dir, "segments", disk, for_repair),
        journal: None,
        blocks: 72,
        geometry: Box::new(segment_geometry()),
    }
}

/// S-blocks on their disk.
pub fn s_blocks_on(dir: &Path, disk: &Blocks, for_repair: bool) -> Shape {
    Shape::SBlocks {
        disk: open(dir, "s-blocks", disk, for_repair),
        blocks: 48,
        layout: Box::new(s_block_layout()),
    }
}

/// A buffer over segments, with its log on a disk.
pub fn buffer_on(dir: &Path, log: &Blocks, disk: &Blocks, for_repair: bool) -> Shape {
    Shape::MemoryBuffer {
        log: Some((open(dir, "log", log, for_repair), LOG_PLACES)),
        below: Box::new(segments_on(dir, disk, for_repair)),
        blocks: 72,
    }
}

/// The log of a buffer as segments hold it: each block where the segments have it.
pub fn log_on_segments(log: &Blocks, state: &SegmentsState) -> Blocks {
    let (mut log, mut disk) = (log.clone(), segments());
    for at in 0..LOG_BLOCKS {
        let address = match state.find(at) {
            Some(SegmentPlace::Home(address) | SegmentPlace::Slot(address)) => address,
            other => panic!("block {at} of the log is {other:?}"),
        };
        disk.block(address).copy_from_slice(log.block(at));
    }
    disk
}
