//! The records of a parity array: what each of them says.

use super::array_member::MEMBER;
use super::journal::JournalRecord;
use super::words::Words;

/// A block of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WrittenBlock {
    /// The block of the array.
    pub block: u64,
    /// Which change of a block it is: of one block the last one holds.
    pub stamp: u64,
    pub place: u64,
    /// The slot that it is written to; none of one that goes home.
    pub slot: Option<u64>,
    pub sum: u32,
}

/// What the log on the parity disk has of a write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Logged {
    /// The block of the parity disk where it begins.
    pub at: u64,
    pub first_row: u64,
    /// A bit for each row from that one on.
    pub rows: u64,
    /// The checksums of the new parity of these rows.
    pub parity_sums: Vec<u32>,
}

impl Logged {
    /// The rows in the log.
    pub fn all_rows(&self) -> impl Iterator<Item = u64> + '_ {
        (0..64).filter(|at| self.rows >> at & 1 == 1).map(|at| self.first_row.saturating_add(at))
    }

    /// Which of the rows in the log a row is.
    pub fn index_of(&self, row: u64) -> Option<u64> {
        let at = row.checked_sub(self.first_row).filter(|at| *at < 64)?;
        let before = self.rows & ((1 << at) - 1);
        (self.rows >> at & 1 == 1).then_some(u64::from(before.count_ones()))
    }
}

/// Blocks that were written together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Write {
    pub number: u64,
    pub logged: Option<Logged>,
    pub blocks: Vec<WrittenBlock>,
}

/// What a record says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Said {
    /// Blocks are about to be written.
    Write(Write),
    /// All writes with a smaller number are durable.
    Settled(u64),
    /// Blocks read as zeroes.
    Zeroed { stamp: u64, first: u64, end: u64 },
    /// The parity of the spare band row is about to change.
    Begun { band_row: u64, to: u64 },
    /// These places of it will have something.
    Held(Vec<u64>),
    /// A band row lies where the spare one was.
    Collected { band_row: u64, to: u64, stamp: u64 },
    /// A write has failed.
    Undone(u64),
    /// What slots in rows of the spare band row have, from its `first` one on.
    Slots { first: u64, sums: Vec<u32> },
    /// The homes are out of the parity of the spare band row.
    Cleared,
    /// The homes have what they will have, and their parity is about to change.
    Adding,
}

/// What numbers of a record there can be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Blocks that the array offers.
    pub offered: u64,
    /// Places of the homes.
    pub places: u64,
    /// Those of a band row.
    pub band_row_places: u64,
    /// Rows of a band row.
    pub band_blocks: u64,
    /// Band rows but the spare one.
    pub band_rows: u64,
    pub slots: u64,
    /// The blocks of the log, from the first one on to the end.
    pub log: (u64, u64),
}

impl Said {
    /// What a record says; nothing of one that speaks of a member.
    pub fn of(record: &JournalRecord, limits: &Limits) -> Result<Option<Said>, String> {
        if record.data.is_some() {
            return Err(record.unknown());
        }
        if record.kind == MEMBER {
            return Ok(None);
        }
        let mut words = Words::new(&record.payload);
        let short = || "its payload ends within what it lists".to_owned();
        let mut next = || words.u64().ok_or_else(short);
        let said = match record.kind {
            WRITE => Said::Write(write(&mut words, limits)?),
            SETTLED => Said::Settled(next()?),
            ZEROED => {
                let (stamp, first, blocks) = (next()?, next()?, next()?);
                let end = first.checked_add(blocks).filter(|end| *end <= limits.offered);
                let end = end.ok_or("it speaks of blocks past the end of the array")?;
                Said::Zeroed { stamp, first, end }
            }
            BEGUN => Said::Begun { band_row: limits.band_row(next()?)?, to: next()? },
            HELD => {
                let first = next()?;
                Said::Held(held(first, &mut words, limits)?)
            }
            COLLECTED => {
                let band_row = limits.band_row(next()?)?;
                Said::Collected { band_row, to: next()?, stamp: next()? }
            }
            UNDONE => Said::Undone(next()?),
            SLOTS => {
                let first = next()?;
                let sums: Vec<u32> = std::iter::from_fn(|| words.u32()).collect();
                let end = first.checked_add(sums.len() as u64);
                if end.is_none_or(|end| end > limits.band_blocks) {
                    return Err("it speaks of rows behind those of a band row".to_owned());
                }
                Said::Slots { first, sums }
            }
            CLEARED => Said::Cleared,
            ADDING => Said::Adding,
            _ => return Err(record.unknown()),
        };
        match words.left() {
            0 => Ok(Some(said)),
            _ => Err("its payload is longer than what it says".to_owned()),
        }
    }
}

impl Limits {
    fn band_row(&self, band_row: u64) -> Result<u64, String> {
        let is_there = band_row < self.band_rows;
        is_there.then_some(band_row).ok_or_else(|| format!("band row {band_row} is not there"))
    }

    /// A block and the place that it has.
    fn block(&self, block: u64) -> Result<u64, String> {
        let is_there = block < self.offered;
        is_there.then_some(block).ok_or_else(|| format!("block {block} lies past the array"))
    }

    /// A place that there is.
    pub fn place(&self, place: u64) -> Result<u64, String> {
        let is_there = place < self.places;
        is_there.then_some(place).ok_or_else(|| format!("place {place} is not there"))
    }

    /// A slot that there is.
    pub fn slot(&self, slot: u64) -> Result<u64, String> {
        let is_there = slot < self.slots;
        is_there.then_some(slot).ok_or_else(|| format!("slot {slot} is not there"))
    }
}

fn write(words: &mut Words<'_>, limits: &Limits) -> Result<Write, String> {
    let short = || "its payload ends within what it lists".to_owned();
    let mut next = || words.u64().ok_or_else(short);
    let number = next()?;
    let rows_logged = next()?;
    let logged = match rows_logged {
        0 => None,
        1..=64 => {
            let (at, first_row, rows) = (next()?, next()?, next()?);
            if u64::from(rows.count_ones()) != rows_logged {
                return Err(format!("it has {rows_logged} rows in the log, and names others"));
            }
            let mut parity_sums = Vec::new();
            for _ in 0..rows_logged {
                let sum = u32::try_from(next()?);
                parity_sums.push(sum.map_err(|_| "a checksum of its parity is none")?);
            }
            Some(Logged { at, first_row, rows, parity_sums })
        }
        _ => return Err(format!("it has {rows_logged} rows in the log, and 64 are the most")),
    };
    let mut blocks = Vec::new();
    while words.left() > 0 {
        let mut next = || words.u64().ok_or_else(short);
        let head = next()?;
        if head >> 33 != 0 {
            return Err("the checksum of a block is none".to_owned());
        }
        let (block, stamp) = (limits.block(next()?)?, next()?);
        let place = limits.place(next()?)?;
        let slot = match head & TO_SLOT {
            0 => None,
            _ => Some(limits.slot(next()?)?),
        };
        blocks.push(WrittenBlock { block, stamp, place, slot, sum: head as u32 });
    }
    if let Some(logged) = &logged {
        // Of each row at least a block is there, and its parity.
        let length = 2 * logged.parity_sums.len() as u64;
        let end = logged.at.checked_add(length);
        if logged.at < limits.log.0 || end.is_none_or(|end| end > limits.log.1) {
            return Err(format!("it is not in the log with block {}", logged.at));
        }
    }
    Ok(Write { number, logged, blocks })
}

/// The places of a band row whose bits are set.
fn held(first: u64, words: &mut Words<'_>, limits: &Limits) -> Result<Vec<u64>, String> {
    let bits = words.take(words.left()).unwrap_or_default();
    let mut places = Vec::new();
    for (byte, bits) in (0..).zip(bits) {
        for bit in (0..8).filter(|bit| bits >> bit & 1 == 1) {
            let place = first.checked_add(8 * byte + bit);
            let place = place.filter(|place| *place < limits.band_row_places);
            places.push(place.ok_or("it speaks of places behind those of a band row")?);
        }
    }
    Ok(places)
}

/// The bit of the first word of a block that has a slot.
const TO_SLOT: u64 = 1 << 32;
/// The kinds of records, beside that of members.
const WRITE: u8 = 2;
const SETTLED: u8 = 3;
const ZEROED: u8 = 4;
const BEGUN: u8 = 5;
const HELD: u8 = 6;
const COLLECTED: u8 = 7;
const UNDONE: u8 = 8;
const SLOTS: u8 = 9;
const CLEARED: u8 = 10;
const ADDING: u8 = 11;
