//! Members of segments, S-blocks and write buffers, written by hand as the pages of the formats draw
//! them.

use crate::fsck_images::{Area, Blocks, Record, words};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::durability::block::{BlockKind, Header, seal};
use imbrex_core::durability::superblock::FEATURE_CHECKSUMS;
use imbrex_core::durability::{DurabilitySettings, LayerKind};
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::Uuid;
use imbrex_core::translation::segment::codec::Identity;
use imbrex_core::translation::segment::{
    Journaling, SegmentAreas, SegmentLayout, SegmentSettings, TrackLength,
};
use imbrex_core::translation::{
    ChecksumSettings, MILLION, NOTHING, RingSize, SBlockLayout, SBlockSettings, SpareSlots,
    TrackSource, ZERO_SUM,
};
use imbrex_core::units::BlockCount;
use imbrex_serve::fsck::{Member, SegmentGeometry, SegmentPlace, SegmentsState, Shape};
use std::path::Path;

const SEGMENTS: Uuid = Uuid([0x35; 16]);
const S_BLOCKS: Uuid = Uuid([0x36; 16]);
const LOG: Uuid = Uuid([0x37; 16]);

/// Blocks of the log.
const LOG_BLOCKS: u64 = 26;
pub const LOG_PLACES: u64 = 12;

/// The areas of their journals.
pub const SEGMENTS_AREA: Area = Area { checkpoint: 1, ring: 8, features: 0 };
pub const S_BLOCKS_AREA: Area = Area { checkpoint: 1, ring: 12, features: 0 };
pub const LOG_AREA: Area = Area { checkpoint: 1, ring: 8, features: 0 };
/// The same of those with tables of checksums.
pub const SUMMED_SEGMENTS_AREA: Area = Area { features: FEATURE_CHECKSUMS, ..SEGMENTS_AREA };
pub const SUMMED_S_BLOCKS_AREA: Area = Area { features: FEATURE_CHECKSUMS, ..S_BLOCKS_AREA };

fn journal_of(area: Area) -> DurabilitySettings {
    DurabilitySettings { ring_blocks: area.ring, ..DurabilitySettings::default() }
}

fn has_sums(area: Area) -> bool {
    area.features & FEATURE_CHECKSUMS != 0
}

/// Two regions of six segments, each of three blocks of two, behind the journal, four slots and the
/// tables, if there are any. The first region begins at block 38, or 65.
pub fn segment_geometry(area: Area) -> SegmentGeometry {
    let (disk, front) = match has_sums(area) {
        true => (BlockCount(140), 65),
        false => (BlockCount(110), 38),
    };
    let settings = SegmentSettings {
        track: TrackLength::Assumed(BlockCount(12)),
        block: BlockCount(2),
        region_tracks: 3,
        kappa: 2,
        journal: Journaling::Durable(journal_of(area)),
        checksums: has_sums(area).then(ChecksumSettings::default),
        ..SegmentSettings::paper()
    };
    let areas = SegmentAreas::new(&settings, disk);
    assert_eq!(areas.journal, Extent::new(0, area.blocks()));
    assert_eq!(areas.blocks().0, front);
    let layout = SegmentLayout::new(&settings, front, disk, None);
    let layout = layout.expect("a layout");
    assert_eq!((layout.segments(), layout.blocks().0), (12, 72));
    SegmentGeometry {
        identity: Identity {
            block: 2,
            region_tracks: 3,
            segments: 12,
            first_block: front,
            kappa: 2,
        },
        layout,
        areas,
    }
}

/// Slots 2 and 0 are noted in the checkpoint; slot 1 is noted and slot 2 is done since; the rewrite
/// from slot 3 never became durable.
pub fn segments() -> Blocks {
    segments_with(SEGMENTS_AREA)
}

/// The same with tables of checksums: those of segments 1 and 7 in the slots, of segment 2 at home, and
/// none of the others, of which nothing is known.
pub fn summed_segments() -> Blocks {
    segments_with(SUMMED_SEGMENTS_AREA)
}

fn segments_with(area: Area) -> Blocks {
    let geometry = segment_geometry(area);
    let slot = |number: u64| geometry.areas.slot(number as u32).start.0;
    let blocks = geometry.layout.end();
    let mut disk = Blocks::new(blocks);
    let mut sums: Vec<u32> = (0..blocks).map(|at| disk.fill(at, at)).collect();
    let tables = geometry.areas.tables;
    (tables.start.0..tables.end().0).for_each(|at| disk.block(at).fill(0));
    if has_sums(area) {
        for (segment, at, kept) in
            [(1, Some(slot(0)), 0b110), (2, None, 0), (7, Some(slot(1)), 0b101)]
        {
            let place =
                |at: u64| geometry.layout.on_disk(geometry.layout.place_of(segment * 6 + at));
            let lies = |inside: u64| match at {
                Some(slot) if kept >> (inside / 2) & 1 == 1 => slot + inside,
                _ => place(inside),
            };
            let words: Vec<u32> = (0..6).map(|at| sums[lies(at) as usize] ^ ZERO_SUM).collect();
            let home = tables.start.0 + segment;
            let page = table_page(SEGMENTS, home, 0, &words);
            let lies_at = at.map_or(home, |slot| slot + 6);
            disk.block(lies_at).copy_from_slice(&page);
            sums[lies_at as usize] = crc32c::crc32c(&page);
        }
    }
    let kept = |slot_of: u64, first: u64, count: u64| -> Record {
        let start = slot(slot_of) + first;
        let sums = sums[start as usize..(start + count) as usize].to_vec();
        (1, words(&[slot_of]), Some(start), sums)
    };
    let mut head = vec![1, 2, 3, 12, geometry.identity.first_block, 2, 2];
    // The pages of the table follow the blocks.
    let mut behind = 2;
    if has_sums(area) {
        head.push(u64::from(NOTHING));
        behind = 3;
    }
    let checkpoint = [head, vec![3, 3, 2, 3, 2], vec![2, 3, 0, 1, 0b110]];
    let journal = [
        vec![kept(1, 0, 2), kept(1, 4, behind), (2, words(&[1, 7, 0b101]), None, vec![])],
        vec![(4, words(&[2]), None, vec![])],
        vec![
            (1, words(&[3]), Some(slot(3)), vec![77, 78]),
            (2, words(&[3, 9, 0b001]), None, vec![]),
        ],
    ];
    disk.journal(area, (LayerKind::Segments, SEGMENTS), &words(&checkpoint.concat()), &journal);
    disk
}

/// A page of a table, the only one of it.
fn table_page(member: Uuid, address: u64, generation: u64, words: &[u32]) -> Vec<u8> {
    let header = Header {
        kind: BlockKind::ChecksumTable,
        member,
        address,
        generation,
        sequence: 0,
        mark: 1,
    };
    let payload: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    seal(&header, &payload)
}

/// Two regions of four S-blocks of three blocks of two, with one spare slot and a ring of four
/// places. The first region begins at block 18, or behind twelve tables.
pub fn s_block_layout(area: Area) -> SBlockLayout {
    let disk = match has_sums(area) {
        true => BlockCount(118),
        false => BlockCount(106),
    };
    let settings = SBlockSettings {
        block: BlockCount(2),
        track: TrackSource::Dense(BlockCount(8)),
        region_tracks: 3,
        spare_ppm: MILLION / 4,
        slots: SpareSlots::Extra,
        ring: RingSize::Blocks(2),
        durability: Some(journal_of(area)),
        checksums: has_sums(area).then(ChecksumSettings::default),
        ..SBlockSettings::new()
    };
    let below = Geometry::plain(disk, Media::Conventional);
    let layout = SBlockLayout::new(&settings, &below).expect("a layout");
    assert_eq!(layout.journal, Extent::new(0, area.blocks()));
    assert_eq!((layout.places.len(), layout.ring_places), (2, 4));
    assert_eq!(layout.end(), disk.0);
    layout
}

fn halves(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn named(region: u32, rest: &[u16]) -> Vec<u8> {
    [region.to_le_bytes().to_vec(), halves(rest)].concat()
}

/// Region 0 begins with two S-blocks and two blocks in its ring, region 1 with nothing.
pub fn s_blocks() -> Blocks {
    s_blocks_with(S_BLOCKS_AREA)
}

/// The same with tables of checksums.
pub fn summed_s_blocks() -> Blocks {
    s_blocks_with(SUMMED_S_BLOCKS_AREA)
}

fn s_blocks_with(area: Area) -> Blocks {
    const NONE: u16 = u16::MAX;
    let layout = s_block_layout(area);
    let rings = [layout.places[0].ring, layout.places[1].ring];
    let mut disk = Blocks::new(layout.end());
    let sums: Vec<u32> = (0..layout.end()).map(|at| disk.fill(at, at)).collect();
    let sum = |at: u64| sums[at as usize];
    // The generation of the table of each position that has one.
    let tables = [(0, 0, 2), (0, 1, 6), (0, 2, 7), (0, 4, 5), (1, 0, 8), (1, 1, 9)];
    let generation = |region: u32, position: u16| -> Vec<u8> {
        let mut known = tables.iter().filter(|_| has_sums(area));
        let known = known.find(|it| (it.0, it.1) == (region, position));
        known.map_or(vec![], |it| u64::to_le_bytes(it.2).to_vec())
    };
    for (region, position, generation) in tables.into_iter().filter(|_| has_sums(area)) {
        let first = layout.position(region, position).start.0;
        let words: Vec<u32> = (first..first + 6).map(|at| sum(at) ^ ZERO_SUM).collect();
        let number = u64::from(layout.position_number(region, position));
        let address = layout.tables.start.0 + number;
        let page = table_page(S_BLOCKS, address, generation, &words);
        disk.block(address).copy_from_slice(&page);
    }
    let tables_of = |generations: [u64; 6]| match has_sums(area) {
        true => words(&generations),
        false => vec![],
    };
    let place = |number: u32, block: u32, parts: u64| -> Vec<u8> {
        let mut bytes = [number.to_le_bytes(), block.to_le_bytes()].concat();
        bytes.extend(parts.to_le_bytes());
        let first = rings[0] + 2 * u64::from(number);
        let there = (0..2).filter(|part| has_sums(area) && parts >> part & 1 == 1);
        there.for_each(|part| bytes.extend(sum(first + part).to_le_bytes()));
        bytes
    };
    let appended = |region: u32, rest: [u16; 3]| -> Vec<u8> {
        [named(region, &rest), generation(region, rest[1])].concat()
    };
    let head: Vec<u8> = [1u32, 2, 2, 6, 4, 8].map(u32::to_le_bytes).concat();
    let regions = [
        halves(&[4, 5, 6, 4, 3, 2]),
        halves(&[0, NONE, NONE, NONE, 1, NONE]),
        tables_of([2, 0, 0, 0, 5, 0]),
        place(1, 4, 0b11),
        place(2, 9, 0b01),
        halves(&[4, 5, 6, 0, 0, 0]),
        halves(&[NONE; 6]),
        tables_of([0; 6]),
    ];
    let ring = |region: usize, block: u32, at: u64, sums: Vec<u32>| -> Record {
        let payload = [(region as u32).to_le_bytes(), block.to_le_bytes()].concat();
        (3, payload, Some(rings[region] + at), sums)
    };
    let journal = [
        vec![
            // S-block 1 takes block 4 out of the ring.
            (1, appended(0, [1, 1, 3]), None, vec![]),
            ring(0, 9, 7, vec![sum(rings[0] + 7)]),
            (1, appended(1, [0, 0, 0]), None, vec![]),
        ],
        vec![
            (2, appended(0, [0, 2, 4]), None, vec![]),
            (1, appended(1, [2, 1, 1]), None, vec![]),
            (4, named(1, &[0, 1]), None, vec![]),
        ],
        // The second part never became durable.
        vec![ring(1, 6, 2, vec![sum(rings[1] + 2), 79])],
    ];
    disk.journal(
        area,
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
    let sums: Vec<u32> = (0..LOG_PLACES).map(|at| log.fill(first + at, 800 + at)).collect();
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
    log.journal(LOG_AREA, (LayerKind::MemoryBuffer, LOG), &checkpoint, &journal);
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
    segments_in(SEGMENTS_AREA, dir, disk, for_repair)
}

/// Segments with tables of checksums on their disk.
pub fn summed_segments_on(dir: &Path, disk: &Blocks, for_repair: bool) -> Shape {
    segments_in(SUMMED_SEGMENTS_AREA, dir, disk, for_repair)
}

fn segments_in(area: Area, dir: &Path, disk: &Blocks, for_repair: bool) -> Shape {
    Shape::Segments {
        disk: open(dir, "segments", disk, for_repair),
        journal: None,
        blocks: 72,
        geometry: Box::new(segment_geometry(area)),
    }
}

/// S-blocks on their disk.
pub fn s_blocks_on(dir: &Path, disk: &Blocks, for_repair: bool) -> Shape {
    s_blocks_in(S_BLOCKS_AREA, dir, disk, for_repair)
}

/// S-blocks with tables of checksums on their disk.
pub fn summed_s_blocks_on(dir: &Path, disk: &Blocks, for_repair: bool) -> Shape {
    s_blocks_in(SUMMED_S_BLOCKS_AREA, dir, disk, for_repair)
}

fn s_blocks_in(area: Area, dir: &Path, disk: &Blocks, for_repair: bool) -> Shape {
    Shape::SBlocks {
        disk: open(dir, "s-blocks", disk, for_repair),
        blocks: 48,
        layout: Box::new(s_block_layout(area)),
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
