//! Members of an array of copies, written by hand as the page of the format draws them.

use crate::fsck_images::{Area, Blocks, Record, SET, on_files, words};
use imbrex_core::array::raid1::{Raid1Keeping, Raid1Layout};
use imbrex_core::durability::block::{BlockKind, Header};
use imbrex_core::durability::membership::{Listed, Membership};
use imbrex_core::durability::superblock::FEATURE_MIRRORED;
use imbrex_core::durability::{DurabilitySettings, LayerKind};
use imbrex_core::translation::{NOTHING, ZERO_SUM};
use imbrex_core::units::Duration;
use imbrex_serve::fsck::Shape;
use std::path::Path;

pub const ARRAY_AREA: Area = Area { checkpoint: 3, ring: 8, features: FEATURE_MIRRORED };
/// Rows of a region.
const REGION: u64 = 4;
/// How many are members; behind them is a spare.
pub const COLUMNS: usize = 3;
pub const NAMES: [&str; COLUMNS + 1] = ["first", "second", "third", "spare"];
/// Changes of the membership that every copy knows.
pub const CHANGES: u64 = 6;

/// The layout of an array of so many blocks.
pub fn array_layout(blocks: u64) -> Raid1Layout {
    let keeping = Raid1Keeping {
        durability: DurabilitySettings { ring_blocks: 10, unflushed_blocks_max: 16 },
        region_rows: REGION,
        memory_bytes: 1 << 20,
        lost_after: Duration::from_ms(60_000),
    };
    let layout = Raid1Layout::new(&keeping, blocks);
    assert_eq!(layout.journal_blocks, ARRAY_AREA.blocks());
    layout
}

/// A member in a checkpoint or a record: which one, its port, what it has, and up to which row.
pub fn member(column: u8, port: u8, state: u8, rows: u64) -> Vec<u8> {
    [vec![column, port, port + 1, 0, state], rows.to_le_bytes().to_vec()].concat()
}

/// Ten blocks that are nowhere else.
pub fn ten_blocks() -> Blocks {
    let mut data = Blocks::new(10);
    (0..10).for_each(|at| {
        data.fill(at, 900 + at);
    });
    data
}

/// The members and the spare of an array with such blocks. The first member has all rows; the second one
/// has come back and lacks the last two blocks of region 0; the third one is rebuilt, and has nine rows.
/// Region 1 is marked, and its table is older than its blocks. No member has the
/// last block.
pub fn array(data: &Blocks) -> Vec<Blocks> {
    let blocks = (data.0.len() / 4096) as u64;
    let shape = array_layout(blocks).shape;
    let (regions, tables) = (shape.regions, shape.table_rows());
    let rows_of_second = tables + 2;
    let checkpoint = [
        vec![COLUMNS as u8],
        member(0, 0, 0, 0),
        member(1, 1, 4, 1),
        member(2, 2, 3, 7),
        words(&[1, 2, regions, 2, tables + blocks - 2, tables + blocks - 1]),
        bits(&[0], regions),
    ];
    let journal: [Vec<Record>; 3] = [
        vec![(2, words(&[1]), None, vec![]), (1, member(2, 2, 3, tables + 6), None, vec![])],
        vec![(3, words(&[2]), None, vec![]), (5, words(&[tables + blocks - 2]), None, vec![])],
        vec![(1, member(1, 1, 4, rows_of_second), None, vec![])],
    ];
    let number = |index: usize| index as u16 + 1;
    (0..=COLUMNS)
        .map(|index| {
            let first = ARRAY_AREA.blocks();
            let mut disk = Blocks::new(first + shape.rows());
            let name = SET.member(number(index));
            let kind = (LayerKind::Array, name);
            disk.journal(ARRAY_AREA, kind, &checkpoint.concat(), &journal);
            list(&mut disk, index, [CHANGES; 2], &[true; COLUMNS + 1]);
            if index == COLUMNS {
                return disk;
            }
            for region in 0..regions {
                table(&mut disk, region, data, region == 1);
            }
            for block in 0..blocks {
                let row = tables + block;
                let is_there = match index {
                    0 => true,
                    1 => row < rows_of_second || block >= REGION,
                    _ => row < tables + 6,
                };
                let at = first + row;
                match is_there {
                    true => disk.block(at).copy_from_slice(&data.clone().block(block)[..]),
                    false => disk.block(at).fill(0xee),
                }
            }
            disk
        })
        .collect()
}

fn bits(set: &[u64], count: u64) -> Vec<u8> {
    let mut bytes = vec![0; count.div_ceil(8) as usize];
    set.iter().for_each(|at| bytes[*at as usize / 8] |= 1 << (at % 8));
    bytes
}

/// Writes both membership pages of a copy.
pub fn list(disk: &mut Blocks, index: usize, changes: [u64; 2], are_in: &[bool]) {
    let listed = are_in.iter().zip(1..).map(|(is_in, number)| Listed { number, is_in: *is_in });
    let copies: Vec<Listed> = listed.collect();
    for (address, changes) in [2, ARRAY_AREA.blocks() - 3].into_iter().zip(changes) {
        let membership = Membership { changes, copies: copies.clone() };
        let name = SET.member(index as u16 + 1);
        membership.seal_into(name, index, address, disk.block(address));
    }
}

/// Writes the table of a region, whose page is the only one of it.
fn table(disk: &mut Blocks, region: u64, data: &Blocks, is_older: bool) {
    let blocks = (data.0.len() / 4096) as u64;
    let word = |block: u64| match block < blocks {
        true if is_older => 77,
        true => crc32c::crc32c(data.clone().block(block)) ^ ZERO_SUM,
        false => NOTHING,
    };
    let words = (region * REGION..(region + 1) * REGION).map(word);
    let payload: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    let header = Header {
        kind: BlockKind::ChecksumTable,
        member: SET,
        address: ARRAY_AREA.blocks() + region,
        generation: 0,
        sequence: 0,
        mark: 1,
    };
    disk.seal(header, &payload);
}

/// The array on its disks; what is `None` is not there.
pub fn array_on(dir: &Path, disks: &[Option<&Blocks>], blocks: u64, for_repair: bool) -> Shape {
    Shape::Raid1 {
        below: on_files(dir, &NAMES, disks, for_repair),
        columns: COLUMNS,
        layout: Box::new(array_layout(blocks)),
    }
}
