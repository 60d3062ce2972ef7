//! The records of a durable translation in its journal.
//!
//! Each is a row of little-endian words. The data of a record, where it has data, is a run of
//! blocks that was written before it, with a checksum for each block.

use super::table::Table;
use crate::durability::block::{Field, field};
use crate::extent::Extent;
use crate::map::BandId;
use crate::units::Lba;

/// Blocks were appended to the log; the data is their slots.
pub const APPEND: u8 = 1;
/// Blocks read as zeroes from now on.
pub const ZERO: u8 = 2;
/// The scratch band holds a band from an offset on; before it, and in its new table, the band is
/// complete as well.
pub const SCRATCH: u8 = 3;
/// A band is complete at home: what was gathered of it leaves the log, and the scratch band is
/// free.
pub const HOME: u8 = 4;
/// Blocks were written straight home, at the write pointer of their band; the data is where they
/// lie.
pub const BYPASS: u8 = 5;
/// The checksums of a band that was written by the bypass are in a table.
pub const TABLE: u8 = 6;
/// A write of blocks failed: they are unreadable until they are written again.
pub const LOST: u8 = 7;
/// A place of the scratch band holds a stretch of a band: before it, and in its new table, the band
/// is complete; behind it home is as it was.
pub const STRETCH: u8 = 8;

/// How a record is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordLayout {
    /// Its number.
    pub kind: u8,
    /// Its name in the format's page.
    pub name: &'static str,
    /// The fields of its payload, in order and without gaps; offsets from the start of the
    /// payload.
    pub fields: &'static [Field],
    /// True when it speaks of data.
    pub has_data: bool,
}

/// Every kind of record.
pub const RECORDS: [RecordLayout; 8] = [
    layout(APPEND, "append", &APPEND_FIELDS, true),
    layout(ZERO, "zero", &EXTENT_FIELDS, false),
    layout(SCRATCH, "scratch", &SCRATCH_FIELDS, false),
    layout(HOME, "home", &HOME_FIELDS, false),
    layout(BYPASS, "bypass", &BYPASS_FIELDS, true),
    layout(TABLE, "table", &TABLE_FIELDS, false),
    layout(LOST, "lost", &EXTENT_FIELDS, false),
    layout(STRETCH, "stretch", &STRETCH_FIELDS, false),
];

/// Every kind of record, and its name in the format's page.
pub const RECORD_KINDS: [(u8, &str); RECORDS.len()] = {
    let mut kinds = [(0, ""); RECORDS.len()];
    let mut at = 0;
    while at < kinds.len() {
        kinds[at] = (RECORDS[at].kind, RECORDS[at].name);
        at += 1;
    }
    kinds
};

const APPEND_FIELDS: [Field; 2] = [field("lba", 0, 8), field("position", 8, 8)];
const EXTENT_FIELDS: [Field; 2] = [field("lba", 0, 8), field("blocks", 8, 8)];
const SCRATCH_FIELDS: [Field; 4] =
    [field("band", 0, 8), field("from", 8, 8), field("blocks", 16, 8), field("table", 24, 8)];
const STRETCH_FIELDS: [Field; 5] = [
    field("band", 0, 8),
    field("from", 8, 8),
    field("blocks", 16, 8),
    field("table", 24, 8),
    field("place", 32, 8),
];
const HOME_FIELDS: [Field; 3] =
    [field("band", 0, 8), field("gathered_before", 8, 8), field("table", 16, 8)];
const BYPASS_FIELDS: [Field; 1] = [field("lba", 0, 8)];
const TABLE_FIELDS: [Field; 2] = [field("band", 0, 8), field("table", 8, 8)];

const fn layout(
    kind: u8,
    name: &'static str,
    fields: &'static [Field],
    has_data: bool,
) -> RecordLayout {
    RecordLayout { kind, name, fields, has_data }
}

/// Most words of a payload.
const WORDS_MAX: usize = 5;

/// What a record says beside its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Entry {
    Append {
        lba: Lba,
        position: u64,
    },
    Zero(Extent),
    Scratch {
        band: BandId,
        from: u64,
        blocks: u64,
        table: Table,
        /// The first block of its place on the disk, where a band is rewritten in stretches.
        place: Option<u64>,
    },
    Home {
        band: BandId,
        gathered_before: u64,
        table: Table,
    },
    Bypass {
        lba: Lba,
    },
    Table {
        band: BandId,
        table: Table,
    },
    Lost(Extent),
}

/// The bytes of a payload.
pub(super) struct Payload {
    bytes: [u8; WORDS_MAX * 8],
    length: usize,
}

impl Payload {
    fn new(words: &[u64]) -> Payload {
        let mut bytes = [0; WORDS_MAX * 8];
        for (target, word) in bytes.chunks_exact_mut(8).zip(words) {
            target.copy_from_slice(&word.to_le_bytes());
        }
        let length = words.len() * 8;
        Payload { bytes, length }
    }

    /// All of them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Entry {
    /// The kind and the payload.
    pub fn encode(&self) -> (u8, Payload) {
        let extent = |extent: &Extent| Payload::new(&[extent.start.0, extent.blocks.0]);
        match self {
            Entry::Append { lba, position } => (APPEND, Payload::new(&[lba.0, *position])),
            Entry::Zero(zeroed) => (ZERO, extent(zeroed)),
            Entry::Scratch { band, from, blocks, table, place } => {
                let words = [u64::from(band.0), *from, *blocks, table.word()];
                match place {
                    None => (SCRATCH, Payload::new(&words)),
                    Some(place) => {
                        let [band, from, blocks, table] = words;
                        (STRETCH, Payload::new(&[band, from, blocks, table, *place]))
                    }
                }
            }
            Entry::Home { band, gathered_before, table } => {
                let words = [u64::from(band.0), *gathered_before, table.word()];
                (HOME, Payload::new(&words))
            }
            Entry::Bypass { lba } => (BYPASS, Payload::new(&[lba.0])),
            Entry::Table { band, table } => {
                (TABLE, Payload::new(&[u64::from(band.0), table.word()]))
            }
            Entry::Lost(lost) => (LOST, extent(lost)),
        }
    }

    /// Takes a record apart; `None` when it is none of ours.
    pub fn decode(kind: u8, payload: &[u8]) -> Option<Entry> {
        let layout = RECORDS.iter().find(|layout| layout.kind == kind)?;
        if payload.len() != layout.fields.len() * 8 {
            return None;
        }
        let mut words = [0; WORDS_MAX];
        for (word, bytes) in words.iter_mut().zip(payload.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        }
        let band = || u32::try_from(words[0]).ok().map(BandId);
        let extent = || {
            words[0].checked_add(words[1])?;
            (words[1] > 0).then(|| Extent::new(words[0], words[1]))
        };
        Some(match kind {
            APPEND => Entry::Append { lba: Lba(words[0]), position: words[1] },
            ZERO => Entry::Zero(extent()?),
            SCRATCH | STRETCH => Entry::Scratch {
                band: band()?,
                from: words[1],
                blocks: words[2],
                table: Table::from_word(words[3]),
                place: (kind == STRETCH).then_some(words[4]),
            },
            HOME => Entry::Home {
                band: band()?,
                gathered_before: words[1],
                table: Table::from_word(words[2]),
            },
            BYPASS => Entry::Bypass { lba: Lba(words[0]) },
            TABLE => Entry::Table { band: band()?, table: Table::from_word(words[1]) },
            _ => Entry::Lost(extent()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_comes_back_and_fills_its_fields() {
        let table = Table::from_word(5);
        let entries = [
            Entry::Append { lba: Lba(7), position: 1 << 40 },
            Entry::Zero(Extent::new(3, 4)),
            Entry::Scratch { band: BandId(2), from: 8, blocks: 9, table, place: None },
            Entry::Home { band: BandId(3), gathered_before: 11, table },
            Entry::Bypass { lba: Lba(12) },
            Entry::Table { band: BandId(4), table },
            Entry::Lost(Extent::new(5, 6)),
            Entry::Scratch { band: BandId(2), from: 8, blocks: 9, table, place: Some(1 << 40) },
        ];
        for (entry, layout) in entries.iter().zip(RECORDS) {
            let (kind, payload) = entry.encode();
            assert_eq!(kind, layout.kind, "{}", layout.name);
            let mut next = 0;
            for field in layout.fields {
                assert_eq!(field.offset, next, "{}", field.name);
                next += field.bytes;
            }
            assert_eq!(payload.bytes().len(), next, "{}", layout.name);
            assert_eq!(Entry::decode(kind, payload.bytes()), Some(*entry));
            assert_eq!(Entry::decode(kind, &payload.bytes()[1..]), None);
        }
        assert_eq!(Entry::decode(99, &[]), None);
    }
}
