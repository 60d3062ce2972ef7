//! The records of a durable RAID 4SMR. All are little-endian words of 8 bytes.

use super::directory::Place;
use crate::array::member_record::RECORD_MEMBER;
use crate::durability::{RECORD_BYTES_MAX, Replayed};
use crate::lifecycle::OpenError;
use crate::state::{StateError, StateReader, StateWriter};
use alloc::vec::Vec;

/// Blocks are about to be written, or are being.
pub const RECORD_WRITE: u8 = 2;
/// All writes with a smaller number are durable on the members.
pub const RECORD_SETTLED: u8 = 3;
/// Blocks read as zeroes from now on.
pub const RECORD_ZEROED: u8 = 4;
/// A band row is about to be written to the spare one, whose parity changes.
pub const RECORD_BEGUN: u8 = 5;
/// What the homes will have in the spare band row, a part of it.
pub const RECORD_HELD: u8 = 6;
/// A band row lies where the spare one was. The held parts before it hold.
pub const RECORD_COLLECTED: u8 = 7;
/// A write has failed: its blocks are where they were before.
pub const RECORD_UNDONE: u8 = 8;

/// Every kind of record and its name.
pub const RECORD_KINDS: [(u8, &str); 8] = [
    (RECORD_MEMBER, "member"),
    (RECORD_WRITE, "write"),
    (RECORD_SETTLED, "settled"),
    (RECORD_ZEROED, "zeroed"),
    (RECORD_BEGUN, "begun"),
    (RECORD_HELD, "held"),
    (RECORD_COLLECTED, "collected"),
    (RECORD_UNDONE, "undone"),
];

/// Blocks of one write record at most.
pub const WRITE_BLOCKS_MAX: u64 = 64;
/// Runs in one record at most.
pub const NUMBERS_MAX: usize = 100;

const _: () = assert!(8 * (4 + 5 * WRITE_BLOCKS_MAX as usize) < RECORD_BYTES_MAX);
const _: () = assert!(8 * (4 + 2 * NUMBERS_MAX) < RECORD_BYTES_MAX);

/// A block of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrittenBlock {
    /// The block of the host.
    pub block: u64,
    /// Which change of a block it is, in the order in which they were asked for. Of one block the last one holds,
    /// whatever the order of the records.
    pub stamp: u64,
    /// Its place.
    pub place: Place,
    /// The slot that it is written to; none of one that goes home.
    pub slot: Option<u64>,
    /// Its checksum.
    pub sum: u32,
}

/// Blocks that are written together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// Which write it is, in the order of the records.
    pub number: u64,
    /// Its blocks.
    pub blocks: Vec<WrittenBlock>,
}

const TO_SLOT: u64 = 1 << 32;

impl Written {
    /// The payload of its record.
    pub fn payload(&self) -> Vec<u8> {
        let mut words = StateWriter::default();
        words.put_u64(self.number);
        for it in &self.blocks {
            words.put_u64(u64::from(it.sum) | if it.slot.is_some() { TO_SLOT } else { 0 });
            [it.block, it.stamp, it.place].into_iter().for_each(|word| words.put_u64(word));
            if let Some(slot) = it.slot {
                words.put_u64(slot);
            }
        }
        words.into_bytes()
    }

    fn take(bytes: &[u8]) -> Result<Written, StateError> {
        let mut words = StateReader::new(bytes);
        let number = words.take_u64()?;
        let mut blocks = Vec::new();
        while !words.is_at_end() {
            let word = words.take_u64()?;
            let (block, stamp) = (words.take_u64()?, words.take_u64()?);
            let place = words.take_u64()?;
            let slot = if word & TO_SLOT != 0 { Some(words.take_u64()?) } else { None };
            blocks.push(WrittenBlock { block, stamp, place, slot, sum: word as u32 });
        }
        Ok(Written { number, blocks })
    }
}

/// What a record says, beside those of members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    Write(Written),
    Settled {
        before: u64,
    },
    Zeroed {
        stamp: u64,
        first: u64,
        blocks: u64,
    },
    Begun {
        band_row: u64,
        to: u64,
    },
    /// Runs of places of the band row, from its first one.
    Held {
        runs: Vec<(u64, u64)>,
    },
    /// Blocks of the band row that were changed before this stamp, or by it, are at home.
    Collected {
        band_row: u64,
        to: u64,
        stamp: u64,
    },
    Undone {
        number: u64,
    },
}

impl Said {
    /// The kind of its record and the payload.
    pub fn record(&self) -> (u8, Vec<u8>) {
        let numbers = |numbers: &[u64]| {
            let mut words = StateWriter::default();
            numbers.iter().for_each(|number| words.put_u64(*number));
            words.into_bytes()
        };
        match self {
            Said::Write(written) => (RECORD_WRITE, written.payload()),
            Said::Settled { before } => (RECORD_SETTLED, numbers(&[*before])),
            Said::Zeroed { stamp, first, blocks } => {
                (RECORD_ZEROED, numbers(&[*stamp, *first, *blocks]))
            }
            Said::Begun { band_row, to } => (RECORD_BEGUN, numbers(&[*band_row, *to])),
            Said::Held { runs } => {
                let all: Vec<u64> =
                    runs.iter().flat_map(|(start, length)| [*start, *length]).collect();
                (RECORD_HELD, numbers(&all))
            }
            Said::Collected { band_row, to, stamp } => {
                (RECORD_COLLECTED, numbers(&[*band_row, *to, *stamp]))
            }
            Said::Undone { number } => (RECORD_UNDONE, numbers(&[*number])),
        }
    }

    /// The number of a write that has failed.
    pub fn undone(&self) -> Option<u64> {
        match self {
            Said::Undone { number } => Some(*number),
            _ => None,
        }
    }

    /// What a record says.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn of(record: &Replayed) -> Result<Said, OpenError> {
        let found = Said::take(record.kind, &record.payload);
        found.map_err(|_| OpenError::damaged("record", "its kind or its length is not known"))
    }

    fn take(kind: u8, payload: &[u8]) -> Result<Said, StateError> {
        let mut words = StateReader::new(payload);
        let said = match kind {
            RECORD_WRITE => return Ok(Said::Write(Written::take(payload)?)),
            RECORD_SETTLED => Said::Settled { before: words.take_u64()? },
            RECORD_ZEROED => {
                let stamp = words.take_u64()?;
                Said::Zeroed { stamp, first: words.take_u64()?, blocks: words.take_u64()? }
            }
            RECORD_BEGUN => Said::Begun { band_row: words.take_u64()?, to: words.take_u64()? },
            RECORD_HELD => {
                let mut runs = Vec::new();
                while !words.is_at_end() {
                    runs.push((words.take_u64()?, words.take_u64()?));
                }
                Said::Held { runs }
            }
            RECORD_COLLECTED => {
                let (band_row, to) = (words.take_u64()?, words.take_u64()?);
                Said::Collected { band_row, to, stamp: words.take_u64()? }
            }
            RECORD_UNDONE => Said::Undone { number: words.take_u64()? },
            _ => return Err(StateError::new("an unknown kind")),
        };
        match words.is_at_end() {
            true => Ok(said),
            false => Err(StateError::new("a record that is too long")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durability::Intact;

    #[test]
    fn what_was_said_comes_back() {
        let block =
            |block, slot| WrittenBlock { block, stamp: 2 * block, place: block + 7, slot, sum: !0 };
        let blocks = Vec::from([block(5, None), block(6, Some(3)), block(7, Some(9))]);
        for said in [
            Said::Write(Written { number: 4, blocks }),
            Said::Settled { before: 1 << 40 },
            Said::Zeroed { stamp: 1, first: 3, blocks: 8 },
            Said::Begun { band_row: 1, to: 2 },
            Said::Held { runs: Vec::from([(0, 4), (9, 1)]) },
            Said::Collected { band_row: 1, to: 2, stamp: 77 },
            Said::Undone { number: 9 },
        ] {
            let (kind, mut payload) = said.record();
            let replayed = |payload| Replayed {
                kind,
                payload,
                data: None,
                checksums: Vec::new(),
                intact: Intact::All,
            };
            assert_eq!(Said::of(&replayed(payload.clone())), Ok(said));
            payload.pop();
            assert!(Said::of(&replayed(payload)).is_err());
        }
    }
}
