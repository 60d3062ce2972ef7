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
/// A band row is about to be written to the spare one, from whose parity its homes are taken.
pub const RECORD_BEGUN: u8 = 5;
/// What the homes will have in the spare band row, a part of it.
pub const RECORD_HELD: u8 = 6;
/// A band row lies where the spare one was. The held parts before it hold.
pub const RECORD_COLLECTED: u8 = 7;
/// A write has failed: its blocks are where they were before.
pub const RECORD_UNDONE: u8 = 8;
/// What slots in rows of the spare band row have, a part of it.
pub const RECORD_SLOTS: u8 = 9;
/// Nothing of the homes is in the parity of the spare band row any more.
pub const RECORD_CLEARED: u8 = 10;
/// The homes have what they will have there, and their parity is about to change.
pub const RECORD_ADDING: u8 = 11;

/// Every kind of record and its name.
pub const RECORD_KINDS: [(u8, &str); 11] = [
    (RECORD_MEMBER, "member"),
    (RECORD_WRITE, "write"),
    (RECORD_SETTLED, "settled"),
    (RECORD_ZEROED, "zeroed"),
    (RECORD_BEGUN, "begun"),
    (RECORD_HELD, "held"),
    (RECORD_COLLECTED, "collected"),
    (RECORD_UNDONE, "undone"),
    (RECORD_SLOTS, "slots"),
    (RECORD_CLEARED, "cleared"),
    (RECORD_ADDING, "adding"),
];

/// Blocks of one write record at most, and rows.
pub const WRITE_BLOCKS_MAX: u64 = 64;
/// Bytes of bits in one record at most.
const HELD_BYTES_MAX: usize = 3968;

const _: () = assert!(8 * (8 + 6 * WRITE_BLOCKS_MAX as usize) < RECORD_BYTES_MAX);
/// Checksums in one record at most.
const SLOT_SUMS_MAX: usize = 960;

const _: () = assert!(8 + HELD_BYTES_MAX < RECORD_BYTES_MAX - 8);
const _: () = assert!(8 + 4 * SLOT_SUMS_MAX < RECORD_BYTES_MAX - 8);

/// Records of the collection of a band row with so many rows of so many homes.
pub const fn collection_records(rows: u64, homes: u64) -> u64 {
    let held = (rows * homes).div_ceil(8 * HELD_BYTES_MAX as u64);
    let slots = rows.div_ceil(SLOT_SUMS_MAX as u64);
    // That it begins, has cleared the parity, is about to change it, what is durable, and where the band row lies.
    5 + held + slots
}

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

/// What the log on the parity disk has of a write: the new blocks of some of its rows in their order, and behind them
/// the new parity of these rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Logged {
    /// The block of the parity disk where it begins.
    pub at: u64,
    /// The first row of the write.
    pub first_row: u64,
    /// A bit for each row from that one on: whether it is in the log.
    pub rows: u64,
    /// The checksums of the new parity.
    pub parity_sums: Vec<u32>,
}

impl Logged {
    /// True when a row is in the log.
    pub fn has(&self, row: u64) -> bool {
        self.index_of(row).is_some()
    }

    /// The rows in the log.
    pub fn all_rows(&self) -> impl Iterator<Item = u64> + Clone + use<> {
        let (first, rows) = (self.first_row, self.rows);
        (0..64).filter(move |at| rows >> at & 1 == 1).map(move |at| first.saturating_add(at))
    }

    /// Which of the rows in the log a row is.
    pub fn index_of(&self, row: u64) -> Option<usize> {
        let at = row.checked_sub(self.first_row).filter(|at| *at < 64)?;
        let before = self.rows & ((1 << at) - 1);
        (self.rows >> at & 1 == 1).then_some(before.count_ones() as usize)
    }
}

/// Blocks that are written together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// Which write it is, in the order of the records.
    pub number: u64,
    /// What the log has of it.
    pub logged: Option<Logged>,
    /// Its blocks.
    pub blocks: Vec<WrittenBlock>,
}

const TO_SLOT: u64 = 1 << 32;

impl Written {
    /// The payload of its record.
    pub fn payload(&self) -> Vec<u8> {
        let mut words = StateWriter::default();
        words.put_u64(self.number);
        words.put_u64(self.logged.as_ref().map_or(0, |it| it.parity_sums.len() as u64));
        if let Some(Logged { at, first_row, rows, parity_sums }) = &self.logged {
            [*at, *first_row, *rows].into_iter().for_each(|word| words.put_u64(word));
            parity_sums.iter().for_each(|sum| words.put_u64(u64::from(*sum)));
        }
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
        let logged = match words.take_u64()? {
            0 => None,
            rows_logged => {
                let (at, first_row) = (words.take_u64()?, words.take_u64()?);
                let rows = words.take_u64()?;
                if u64::from(rows.count_ones()) != rows_logged {
                    return Err(StateError::new("other rows in the log than it says"));
                }
                let sums = (0..rows_logged).map(|_| Ok(words.take_u64()? as u32));
                let parity_sums = sums.collect::<Result<_, StateError>>()?;
                Some(Logged { at, first_row, rows, parity_sums })
            }
        };
        let mut blocks = Vec::new();
        while !words.is_at_end() {
            let word = words.take_u64()?;
            let (block, stamp) = (words.take_u64()?, words.take_u64()?);
            let place = words.take_u64()?;
            let slot = if word & TO_SLOT != 0 { Some(words.take_u64()?) } else { None };
            blocks.push(WrittenBlock { block, stamp, place, slot, sum: word as u32 });
        }
        Ok(Written { number, logged, blocks })
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
    /// For places of the band row, from its `first` one on, a bit that says whether there will be something.
    Held {
        first: u64,
        bits: Vec<u8>,
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
    /// For rows of the spare band row, from its `first` one on, the checksum of the slot; it says nothing where
    /// there is none.
    Slots {
        first: u64,
        sums: Vec<u32>,
    },
    Cleared,
    Adding,
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
            Said::Held { first, bits } => {
                let mut bytes = numbers(&[*first]);
                bytes.extend(bits);
                (RECORD_HELD, bytes)
            }
            Said::Collected { band_row, to, stamp } => {
                (RECORD_COLLECTED, numbers(&[*band_row, *to, *stamp]))
            }
            Said::Undone { number } => (RECORD_UNDONE, numbers(&[*number])),
            Said::Slots { first, sums } => {
                let mut bytes = numbers(&[*first]);
                sums.iter().for_each(|sum| bytes.extend(sum.to_le_bytes()));
                (RECORD_SLOTS, bytes)
            }
            Said::Cleared => (RECORD_CLEARED, Vec::new()),
            Said::Adding => (RECORD_ADDING, Vec::new()),
        }
    }

    /// What the slots in rows of the spare band row have, from its `first` one on.
    pub fn slots(first: u64, sums: &[u32]) -> impl Iterator<Item = Said> + '_ {
        let firsts = (first..).step_by(SLOT_SUMS_MAX);
        let some = firsts.zip(sums.chunks(SLOT_SUMS_MAX));
        some.map(|(first, sums)| Said::Slots { first, sums: sums.to_vec() })
    }

    /// The places of a band row of which it says that there will be something.
    pub fn places_held(&self) -> impl Iterator<Item = u64> + '_ {
        let (first, bits) = match self {
            Said::Held { first, bits } => (*first, &bits[..]),
            _ => (0, &[][..]),
        };
        let all = (first..).zip(0..8 * bits.len());
        all.filter(|(_, at)| bits[at / 8] >> (at % 8) & 1 == 1).map(|(place, _)| place)
    }

    /// The number of a write that has failed.
    pub fn undone(&self) -> Option<u64> {
        match self {
            Said::Undone { number } => Some(*number),
            _ => None,
        }
    }

    /// What the homes will have in a band row, place by place.
    pub fn held(held: &[bool]) -> impl Iterator<Item = Said> + '_ {
        let of_record = 8 * HELD_BYTES_MAX;
        held.chunks(of_record).enumerate().map(move |(at, places)| {
            let byte = |places: &[bool]| {
                let bits = places.iter().enumerate();
                bits.fold(0, |byte, (bit, held)| byte | u8::from(*held) << bit)
            };
            let bits = places.chunks(8).map(byte).collect();
            Said::Held { first: (at * of_record) as u64, bits }
        })
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
                let first = words.take_u64()?;
                return Ok(Said::Held { first, bits: payload[8..].to_vec() });
            }
            RECORD_COLLECTED => {
                let (band_row, to) = (words.take_u64()?, words.take_u64()?);
                Said::Collected { band_row, to, stamp: words.take_u64()? }
            }
            RECORD_UNDONE => Said::Undone { number: words.take_u64()? },
            RECORD_SLOTS => {
                let first = words.take_u64()?;
                let sums = payload[8..].chunks_exact(4);
                if !sums.remainder().is_empty() {
                    return Err(StateError::new("a part of a checksum"));
                }
                let sum = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("4 bytes"));
                return Ok(Said::Slots { first, sums: sums.map(sum).collect() });
            }
            RECORD_CLEARED => Said::Cleared,
            RECORD_ADDING => Said::Adding,
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
        let logged =
            Logged { at: 900, first_row: 7, rows: 0b1101, parity_sums: Vec::from([1, !0, 3]) };
        assert_eq!(
            [6, 7, 8, 9, 71].map(|row| logged.index_of(row)),
            [None, Some(0), None, Some(1), None]
        );
        assert!(logged.has(10) && !logged.has(11));
        for said in [
            Said::Write(Written { number: 4, logged: None, blocks: blocks.clone() }),
            Said::Write(Written { number: 5, logged: Some(logged), blocks }),
            Said::Settled { before: 1 << 40 },
            Said::Zeroed { stamp: 1, first: 3, blocks: 8 },
            Said::Begun { band_row: 1, to: 2 },
            Said::Held { first: 8, bits: Vec::from([0b1001, 0, 255]) },
            Said::Collected { band_row: 1, to: 2, stamp: 77 },
            Said::Undone { number: 9 },
            Said::Slots { first: 3, sums: Vec::from([1, !0]) },
            Said::Cleared,
            Said::Adding,
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
            // Of bits there may be fewer, and of nothing nothing can be cut.
            if payload.pop().is_some() {
                let is_cut = Said::of(&replayed(payload)).is_err();
                assert!(is_cut || kind == RECORD_HELD, "{kind}");
            }
        }
    }

    #[test]
    fn bits_have_places() {
        let places = 8 * HELD_BYTES_MAX + 9;
        let held: Vec<bool> = (0..places).map(|at| at % 5 == 0 || at > 31_000).collect();
        let said: Vec<Said> = Said::held(&held).collect();
        assert_eq!((said.len(), collection_records(10, 1)), (2, 5 + 1 + 1));
        let mut found = Vec::new();
        for it in &said {
            found.extend(it.places_held());
        }
        let expected = (0..).zip(&held).filter(|(_, held)| **held).map(|(at, _)| at);
        assert!(found.into_iter().eq(expected));
    }
}
