//! The records of a durable translation by S-blocks, and its checkpoint, as the page of the format
//! (`docs/formats/s-block.md`) draws them. All fields are little-endian.

use super::layout::{Layout, Shape};
use super::region::{NONE, Region};
use super::ring::Ring;
use crate::durability::block::{Field, field};
use crate::lifecycle::OpenError;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// An S-block was rewritten at the head; its blocks in the ring are gone.
pub const REWRITTEN: u8 = 1;
/// An S-block was moved to the head as it was.
pub const MOVED: u8 = 2;
/// Parts of a block were written to the ring; the data of the record says which, and where.
pub const RING: u8 = 3;
/// S-blocks hold nothing any more, nor does the ring of them.
pub const TRIMMED: u8 = 4;

/// The kinds of record with their names on the page.
pub const RECORD_KINDS: [(u8, &str); 4] =
    [(REWRITTEN, "rewritten"), (MOVED, "moved"), (RING, "ring"), (TRIMMED, "trimmed")];

/// The payload of REWRITTEN and MOVED; the last field is there with checksums alone.
pub const APPENDED_FIELDS: [Field; 5] = [
    field("appended_region", 0, 4),
    field("appended_segment", 4, 2),
    field("appended_position", 6, 2),
    field("appended_used", 8, 2),
    field("appended_table", 10, 8),
];
/// The payload of RING.
pub const RING_FIELDS: [Field; 2] = [field("ring_region", 0, 4), field("ring_block", 4, 4)];
/// The payload of TRIMMED.
pub const TRIMMED_FIELDS: [Field; 3] =
    [field("trimmed_region", 0, 4), field("trimmed_first", 4, 2), field("trimmed_count", 6, 2)];
/// The head of a checkpoint.
pub const HEAD_FIELDS: [Field; 6] = [
    field("version", 0, 4),
    field("regions", 4, 4),
    field("block_blocks", 8, 4),
    field("segment_blocks", 12, 4),
    field("ring_places", 16, 4),
    field("segments", 20, 4),
];
/// A region of a checkpoint: its owners, two bytes for each position, and its ring follow. With
/// checksums the tables come between them. The last field is that of a position.
pub const REGION_FIELDS: [Field; 7] = [
    field("region_data", 0, 2),
    field("region_slots", 2, 2),
    field("region_positions", 4, 2),
    field("region_tail", 6, 2),
    field("region_used", 8, 2),
    field("region_ring", 10, 2),
    field("region_table", 12, 8),
];
/// A place of a ring that holds something, the block that came first before the others. With
/// checksums those of the parts that are there follow. The last field is that of a part.
pub const PLACE_FIELDS: [Field; 4] = [
    field("place", 0, 4),
    field("place_block", 4, 4),
    field("place_parts", 8, 8),
    field("place_checksum", 16, 4),
];

const VERSION: u32 = 1;
const HEAD_BYTES: u64 = 24;
const REGION_BYTES: u64 = 12;
const PLACE_BYTES: u64 = 16;

/// Bytes of a checksum, and of the word that names a table of them.
const SUM_BYTES: u64 = 4;
const TABLE_BYTES: u64 = 8;

/// Most bytes of a checkpoint of so many regions of such a shape, each with a ring of so many places
/// for blocks so long.
pub fn checkpoint_bytes_max(
    regions: u64,
    shape: Shape,
    (ring_places, block): (u64, u64),
    has_sums: bool,
) -> u64 {
    let (table, sums) = match has_sums {
        true => (TABLE_BYTES, block * SUM_BYTES),
        false => (0, 0),
    };
    let positions = u64::from(shape.positions()) * (2 + table);
    HEAD_BYTES + regions * (REGION_BYTES + positions + ring_places * (PLACE_BYTES + sums))
}

/// A record without data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// An S-block lies at a position, which was the head; `used` is how long the log was before.
    Appended {
        /// Its blocks in the ring stay there.
        is_move: bool,
        /// The region.
        region: u32,
        /// The S-block, by its number in the region.
        segment: u16,
        /// Where it lies.
        position: u16,
        /// Positions of the log before.
        used: u16,
        /// The table of its checksums, where there are some.
        table: Option<u64>,
    },
    /// S-blocks hold nothing.
    Trimmed {
        /// The region.
        region: u32,
        /// The first of them, by its number in the region.
        first: u16,
        /// How many.
        count: u16,
    },
}

/// The bytes of a payload, and how many there are.
pub type Payload = ([u8; 18], usize);

impl Entry {
    /// The kind and the payload.
    pub fn encode(&self) -> (u8, Payload) {
        let mut bytes = [0; 18];
        let mut length = 0;
        let mut put = |field: &[u8]| {
            bytes[length..length + field.len()].copy_from_slice(field);
            length += field.len();
        };
        let kind = match *self {
            Entry::Appended { is_move, region, segment, position, used, table } => {
                put(&region.to_le_bytes());
                [segment, position, used].iter().for_each(|word| put(&word.to_le_bytes()));
                if let Some(table) = table {
                    put(&table.to_le_bytes());
                }
                match is_move {
                    true => MOVED,
                    false => REWRITTEN,
                }
            }
            Entry::Trimmed { region, first, count } => {
                put(&region.to_le_bytes());
                [first, count].iter().for_each(|word| put(&word.to_le_bytes()));
                TRIMMED
            }
        };
        (kind, (bytes, length))
    }

    /// The payload of a record of the ring.
    pub fn ring_payload(region: u32, block: u32) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&region.to_le_bytes());
        bytes[4..].copy_from_slice(&block.to_le_bytes());
        bytes
    }

    /// The record, or what is wrong with it.
    ///
    /// # Errors
    /// When it is not one of a translation with this layout.
    pub fn decode(kind: u8, payload: &[u8], layout: &Layout) -> Result<Entry, OpenError> {
        let mut reader = Reader(payload);
        let entry = match kind {
            REWRITTEN | MOVED => Entry::Appended {
                is_move: kind == MOVED,
                region: reader.u32()?,
                segment: reader.u16()?,
                position: reader.u16()?,
                used: reader.u16()?,
                table: match layout.has_sums() {
                    true => Some(reader.u64()?),
                    false => None,
                },
            },
            TRIMMED => {
                Entry::Trimmed { region: reader.u32()?, first: reader.u16()?, count: reader.u16()? }
            }
            _ => return Err(damaged(format!("a record of kind {kind}"))),
        };
        let fits = match entry {
            Entry::Appended { region, segment, position, used, .. } => {
                layout.places.get(region as usize).is_some_and(|place| {
                    let shape = place.shape;
                    segment < shape.data && position < shape.positions() && used <= shape.slots
                })
            }
            Entry::Trimmed { region, first, count } => {
                layout.places.get(region as usize).is_some_and(|place| {
                    u32::from(first) + u32::from(count) <= u32::from(place.shape.data)
                })
            }
        };
        match fits {
            true => Ok(entry),
            false => Err(damaged(format!("a record outside the device: {entry:?}"))),
        }
    }
}

/// The region and the block of a record of the ring.
///
/// # Errors
/// When it is not one of a translation with this layout.
pub fn decode_ring(payload: &[u8], layout: &Layout) -> Result<(u32, u32), OpenError> {
    let mut reader = Reader(payload);
    let (region, block) = (reader.u32()?, reader.u32()?);
    let blocks = layout.segment / layout.block;
    let fits = layout
        .places
        .get(region as usize)
        .is_some_and(|place| u64::from(block) < u64::from(place.shape.data) * blocks);
    match fits {
        true => Ok((region, block)),
        false => Err(damaged(format!("block {block} of region {region}"))),
    }
}

pub(super) fn damaged(detail: String) -> OpenError {
    OpenError::Damaged { structure: "map of S-blocks", detail }
}

/// Takes fields out of bytes.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], OpenError> {
        let Some((field, rest)) = self.0.split_first_chunk::<N>() else {
            return Err(damaged("it is too short".into()));
        };
        self.0 = rest;
        Ok(*field)
    }

    fn u16(&mut self) -> Result<u16, OpenError> {
        Ok(u16::from_le_bytes(self.take()?))
    }

    fn u32(&mut self) -> Result<u32, OpenError> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64, OpenError> {
        Ok(u64::from_le_bytes(self.take()?))
    }
}

/// The head of the checkpoint of a layout: what another layout would take for something else.
fn head(layout: &Layout) -> [(&'static str, u32); 6] {
    [
        ("version", VERSION),
        ("regions", layout.places.len() as u32),
        ("block", layout.block as u32),
        ("region_tracks", layout.segment as u32),
        ("ring", layout.ring_places as u32),
        ("size", layout.segments),
    ]
}

/// A region as it is written down.
pub struct RegionState<'a> {
    /// What lies where.
    pub region: &'a Region,
    /// What its ring holds.
    pub ring: Option<&'a Ring>,
    /// The table of each position, where there are checksums.
    pub tables: &'a [u64],
}

/// A place of a ring that is taken back.
pub struct RingPlace {
    /// The region.
    pub region: u32,
    /// The place.
    pub place: u32,
    /// The block in it.
    pub block: u32,
    /// The parts of the block that are there.
    pub parts: u64,
    /// Their checksums, where there are some.
    pub sums: Vec<u32>,
}

/// What a checkpoint holds beside the regions themselves.
#[derive(Default)]
pub struct Found {
    /// What the rings hold.
    pub places: Vec<RingPlace>,
    /// The tables of all positions, where there are checksums.
    pub tables: Vec<u64>,
}

/// The bytes of a checkpoint.
pub fn encode<'r>(layout: &Layout, regions: impl Iterator<Item = RegionState<'r>>) -> Vec<u8> {
    let mut out = Vec::new();
    for (_, word) in head(layout) {
        out.extend_from_slice(&word.to_le_bytes());
    }
    for RegionState { region, ring, tables } in regions {
        let shape = region.shape();
        let (tail, used) = region.log();
        let places = ring.map(Ring::in_order).unwrap_or_default();
        let words = [shape.data, shape.slots, shape.positions(), tail, used];
        let words = words.into_iter().chain([places.len() as u16]);
        let words = words.chain(region.owners().iter().copied());
        words.for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        for table in tables {
            out.extend_from_slice(&table.to_le_bytes());
        }
        for place in places {
            let ring = ring.expect("a ring with places");
            let slot = ring.slot(place);
            out.extend_from_slice(&place.to_le_bytes());
            out.extend_from_slice(&slot.block.to_le_bytes());
            out.extend_from_slice(&slot.valid.to_le_bytes());
            let sums = ring.sums_of(place, slot.valid);
            sums.for_each(|sum| out.extend_from_slice(&sum.to_le_bytes()));
        }
    }
    out
}

/// Takes a checkpoint back.
///
/// # Errors
/// When it is one of another layout, or makes no sense.
pub fn decode<'r>(
    bytes: &[u8],
    layout: &Layout,
    regions: impl Iterator<Item = &'r mut Region>,
) -> Result<Found, OpenError> {
    let mut reader = Reader(bytes);
    let mut found = Found::default();
    for (name, expected) in head(layout) {
        let found = reader.u32()?;
        if found != expected {
            return Err(OpenError::Settings {
                name,
                found: found.into(),
                expected: expected.into(),
            });
        }
    }
    for (number, region) in (0..).zip(regions) {
        let places = take_region(&mut reader, number, region)?;
        if layout.has_sums() {
            for _ in region.owners() {
                found.tables.push(reader.u64()?);
            }
        }
        for _ in 0..places {
            let place = take_place(&mut reader, number, region.shape(), layout)?;
            found.places.push(place);
        }
    }
    match reader.0.is_empty() {
        true => Ok(found),
        false => Err(damaged("it is too long".into())),
    }
}

/// Takes a region back; gives how many places of its ring follow.
fn take_region(
    reader: &mut Reader<'_>,
    number: u32,
    region: &mut Region,
) -> Result<u16, OpenError> {
    let shape = region.shape();
    for (name, expected) in
        [("track", shape.data), ("spare", shape.slots), ("kappa", shape.positions())]
    {
        let found = reader.u16()?;
        if found != expected {
            return Err(OpenError::Settings {
                name,
                found: found.into(),
                expected: expected.into(),
            });
        }
    }
    let (tail, used, places) = (reader.u16()?, reader.u16()?, reader.u16()?);
    let owners = (0..shape.positions()).map(|_| reader.u16());
    let owners = owners.collect::<Result<Vec<u16>, OpenError>>()?;
    let known = |owner: &u16| *owner == NONE || *owner < shape.data;
    if !owners.iter().all(known) || tail >= shape.positions() || used > shape.slots + 1 {
        return Err(damaged(format!("region {number} makes no sense")));
    }
    region.restore(tail, used, &owners);
    match region.is_sound() {
        true => Ok(places),
        false => Err(damaged(format!("region {number} contradicts itself"))),
    }
}

/// Takes a place of a ring back.
fn take_place(
    reader: &mut Reader<'_>,
    region: u32,
    shape: Shape,
    layout: &Layout,
) -> Result<RingPlace, OpenError> {
    let blocks = layout.segment / layout.block;
    let (place, block, parts) = (reader.u32()?, reader.u32()?, reader.u64()?);
    let is_there = u64::from(place) < layout.ring_places
        && u64::from(block) < u64::from(shape.data) * blocks
        && parts != 0
        && (layout.block == 64 || parts >> layout.block == 0);
    if !is_there {
        return Err(damaged(format!("the ring of region {region} makes no sense")));
    }
    let sums = match layout.has_sums() {
        true => (0..parts.count_ones()).map(|_| reader.u32()).collect(),
        false => Ok(Vec::new()),
    };
    Ok(RingPlace { region, place, block, parts, sums: sums? })
}
