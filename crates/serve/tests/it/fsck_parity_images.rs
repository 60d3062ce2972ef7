//! Members of a parity array, written by hand as the page of the format draws them.

use crate::fsck_images::{Area, Blocks, SET, on_files, words};
use imbrex_core::array::raid4smr::{
    BandSource, FirstWrite, HomeBands, Placement, Raid4SmrLayout, Raid4SmrSettings, Raid4SmrShape,
    SlotOrder,
};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::durability::block::{BlockKind, Header};
use imbrex_core::durability::membership::{Listed, Membership};
use imbrex_core::durability::superblock::FEATURE_MIRRORED;
use imbrex_core::durability::{DurabilitySettings, LayerKind};
use imbrex_core::translation::{NOTHING, ZERO_SUM};
use imbrex_core::units::BlockCount;
use imbrex_serve::fsck::Shape;
use std::path::Path;

pub const HOMES: usize = 2;
/// Rows of a band.
pub const BAND: u64 = 4;
/// Blocks of a ring, with the two that list its copies.
const RING: u64 = 400;
pub const NAMES: [&str; HOMES + 2] = ["home-0", "home-1", "data", "parity"];
pub const DATA: usize = HOMES;
pub const PARITY: usize = HOMES + 1;

/// Where an array of so many blocks has everything.
pub fn shape_of(blocks: u64) -> Raid4SmrShape {
    let settings = Raid4SmrSettings {
        homes: HOMES,
        spares: 0,
        bands: BandSource::Assumed,
        track_blocks: BAND,
        band_tracks: 1,
        placement: Placement::Append,
        first_write: FirstWrite::Rule,
        collect_at: None,
        slots: SlotOrder::Lowest,
        data_capacity: None,
        offered: None,
    };
    let band_rows = blocks.div_ceil(BAND * HOMES as u64) + 1;
    let home = Geometry::plain(BlockCount(band_rows * BAND), Media::Shingled);
    let bands = HomeBands::new(&settings, &[&home; HOMES]).expect("bands");
    let durability = DurabilitySettings { ring_blocks: RING, unflushed_blocks_max: 16 };
    let slots = blocks + 4;
    let layout = Raid4SmrLayout::new(&durability, HOMES, &bands, slots);
    Raid4SmrShape { layout, bands, slots, appends: true }
}

/// The area of the journal of such an array.
pub fn area_of(shape: &Raid4SmrShape) -> Area {
    let copies = shape.layout.copies(HOMES, &[BlockCount(10_000); 2]);
    let checkpoint = copies[0].checkpoint_blocks;
    let area = Area { checkpoint, ring: RING - 2, features: FEATURE_MIRRORED };
    assert_eq!(area.blocks(), shape.layout.journal_blocks);
    area
}

/// The array as it is built up.
struct Array<'a> {
    shape: &'a Raid4SmrShape,
    disks: Vec<Blocks>,
    /// By column which rows are held.
    held: Vec<Vec<bool>>,
}

impl Array<'_> {
    /// Puts a block into a row of a column, which is held from then on; returns its checksum.
    fn put(&mut self, column: usize, row: u64, bytes: &[u8]) -> u32 {
        let at = self.place(column, row);
        self.disks[column].block(at).copy_from_slice(bytes);
        self.held[column][row as usize] = true;
        crc32c::crc32c(bytes)
    }

    fn place(&self, column: usize, row: u64) -> u64 {
        if column < HOMES { row } else { self.shape.layout.first_block() + row }
    }

    /// The parity of each row is the sum of what is held.
    fn sum_up(&mut self) {
        for row in 0..self.shape.slots.max(self.shape.bands.rows()) {
            let mut sum = vec![0; 4096];
            for column in 0..PARITY {
                if self.held[column].get(row as usize) == Some(&true) {
                    let at = self.place(column, row);
                    let block = self.disks[column].block(at);
                    sum.iter_mut().zip(block).for_each(|(sum, byte)| *sum ^= *byte);
                }
            }
            let at = self.place(PARITY, row);
            self.disks[PARITY].block(at).copy_from_slice(&sum);
        }
    }

    /// Tables with the checksums of all that is held, on the data disk and on the parity disk.
    fn put_tables(&mut self) {
        let layout = self.shape.layout;
        for table in 0..layout.tables().blocks.0 {
            let rows = table * layout.table_rows..(table + 1) * layout.table_rows;
            let mut payload: Vec<u8> = Vec::new();
            for (row, column) in rows.flat_map(|row| (0..PARITY).map(move |column| (row, column))) {
                let is_held = self.held[column].get(row as usize) == Some(&true);
                let at = self.place(column, row);
                let word = match is_held {
                    true => crc32c::crc32c(self.disks[column].block(at)) ^ ZERO_SUM,
                    false => NOTHING,
                };
                payload.extend(word.to_le_bytes());
            }
            let header = Header {
                kind: BlockKind::ChecksumTable,
                member: SET,
                address: layout.tables().start.0 + table,
                generation: 0,
                sequence: 0,
                mark: 1,
            };
            self.disks[DATA].seal(header, &payload);
            self.disks[PARITY].seal(header, &payload);
        }
    }
}

/// A place is on this home, in this row of its band row.
fn home_of(place: u64) -> (usize, u64) {
    ((place % HOMES as u64) as usize, place / HOMES as u64)
}

/// The members of an array with such blocks, at least 12. Places are those of the blocks. By the checkpoint each third
/// block is in a slot, and band row 0 lies in place 1 of the homes, of which place 0 is spare. The records say that it
/// was collected, that the last block but one was written, and that the last one and a new block 0 were being
/// written: the one is there, but for its parity, and the other is not.
pub fn array(data: &Blocks) -> Vec<Blocks> {
    let blocks = (data.0.len() / 4096) as u64;
    let block = |at: u64| data.clone().block(at).to_vec();
    let shape = shape_of(blocks);
    let area = area_of(&shape);
    let (rows, slots) = (shape.bands.rows(), shape.slots);
    let of_band_row = BAND * HOMES as u64;
    let long = shape.layout.first_block() + slots.max(rows);
    let lengths = [rows, rows, long, long];
    let disks = lengths.map(Blocks::new).to_vec();
    let held =
        vec![vec![false; rows as usize], vec![false; rows as usize], vec![false; slots as usize]];
    let mut array = Array { shape: &shape, disks, held };
    let mut places_in_slots = Vec::new();
    // Two places of the last blocks are given by the records.
    let before = blocks - 2;
    for place in 0..before {
        let (home, row) = home_of(place);
        let is_in_slot = place % 3 == 2;
        let at_home = if is_in_slot { vec![0x55; 4096] } else { block(place) };
        array.put(home, BAND + row, &at_home);
        if is_in_slot {
            let slot = places_in_slots.len() as u64;
            array.put(DATA, slot, &block(place));
            places_in_slots.push((place, slot));
        }
    }
    let used = places_in_slots.len() as u64 + 1;
    // It was used, and is free.
    array.put(DATA, used - 1, &[0x99; 4096]);
    let mut checkpoint = vec![HOMES as u8 + 2];
    (0..4).for_each(|column| checkpoint.extend(member(column, 0, 0)));
    checkpoint.extend(words(&[5, before, 1, 0, before, 0, 2, 0, before, used, 1, used - 1]));
    checkpoint.extend(words(&[places_in_slots.len() as u64]));
    places_in_slots.iter().for_each(|(place, slot)| checkpoint.extend(words(&[*place, *slot])));
    let band_rows = rows / BAND - 1;
    checkpoint.extend(words(&[0]));
    (1..=band_rows).for_each(|at| checkpoint.extend(words(&[at])));
    (0..band_rows * HOMES as u64).for_each(|_| checkpoint.extend(words(&[BAND])));
    array.held.iter().for_each(|held| checkpoint.extend(bits(held)));
    // All tables were written, no block is unreadable, and no region was missed.
    let tables = shape.layout.tables().blocks.0;
    checkpoint.extend(bits(&vec![true; tables as usize]));
    checkpoint.extend(words(&[0, region_rows(rows)]));
    checkpoint.extend(bits(&vec![false; (rows.max(slots) + tables) as usize]));

    for place in 0..of_band_row {
        let (home, row) = home_of(place);
        array.put(home, row, &block(place));
    }
    let settled_write = {
        let (home, row) = home_of(before);
        let sum = u64::from(array.put(home, BAND + row, &block(before)));
        (2, words(&[5, 0, sum, before, 105, before]), None, vec![])
    };
    let last = before + 1;
    let (home, row) = home_of(last);
    let (row, sum) = (BAND + row, array.put(home, BAND + row, &block(last)));
    let free = used + 1;
    array.sum_up();
    array.put_tables();
    // The log has the one, and nothing of the other.
    let log = shape.layout.log().start.0;
    let at = array.place(PARITY, row);
    let parity = array.disks[PARITY].block(at).to_vec();
    array.disks[PARITY].block(log).copy_from_slice(&block(last));
    array.disks[PARITY].block(log + 1).copy_from_slice(&parity);
    let of_parity = u64::from(crc32c::crc32c(&parity));
    let there = words(&[6, 1, log, row, 1, of_parity, u64::from(sum), last, 106, last]);
    let not_there = words(&[7, 1, log + 2, free, 1, 77, 1 << 32 | 77, 0, 200, 0, free]);
    // The parity was not written.
    array.disks[PARITY].block(at).fill(0x77);
    let journal = [
        vec![settled_write, (5, words(&[0, 0]), None, vec![])],
        vec![
            (3, words(&[6]), None, vec![]),
            (6, [words(&[0]), vec![0xff; of_band_row.div_ceil(8) as usize]].concat(), None, vec![]),
            (7, words(&[0, 0, 104]), None, vec![]),
        ],
        vec![(2, there, None, vec![]), (2, not_there, None, vec![])],
    ];
    let mut disks = array.disks;
    for (copy, disk) in disks.iter_mut().skip(DATA).enumerate() {
        let number = copy as u16 + 1 + DATA as u16;
        let name = SET.member(number);
        disk.journal(area, (LayerKind::Array, name), &checkpoint, &journal);
        for address in [2, area.blocks() - 3] {
            let copies = [3, 4].map(|number| Listed { number, is_in: true }).to_vec();
            let membership = Membership { changes: 6, copies };
            membership.seal_into(name, copy, address, disk.block(address));
        }
    }
    disks
}

/// A member in a checkpoint or a record.
pub fn member(column: u8, state: u8, rows: u64) -> Vec<u8> {
    [vec![column, column, column + 1, 0, state], rows.to_le_bytes().to_vec()].concat()
}

/// Rows of a region: a sixteenth of so many rows of short bands is less than one.
fn region_rows(rows: u64) -> u64 {
    assert!(rows < 32, "longer regions must be worked out by hand");
    1
}

/// All bits as the page says.
fn bits(set: &[bool]) -> Vec<u8> {
    let word = |bits: &[bool]| {
        bits.iter().enumerate().fold(0, |word, (at, bit)| word | u64::from(*bit) << at)
    };
    let all: Vec<u64> = set.chunks(64).map(word).collect();
    words(&[vec![(all.len() as u64) << 1 | 1], all].concat())
}

/// The array on its disks; what is `None` is not there.
pub fn array_on(dir: &Path, disks: &[Option<&Blocks>], blocks: u64) -> Shape {
    Shape::Raid4Smr {
        below: on_files(dir, &NAMES, disks, false),
        blocks,
        shape: Box::new(shape_of(blocks)),
    }
}
