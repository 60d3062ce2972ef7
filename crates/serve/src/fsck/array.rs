//! What the journal of a durable array of copies says: who its members are, and what they have.

use super::findings::Findings;
use super::journal::{JournalRecord, JournalState};
use super::member::Member;
use super::words::Words;
use imbrex_core::array::RegionShape;
use std::collections::BTreeSet;

/// What a member has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Has {
    /// All of its rows.
    All,
    /// Nothing: it is out. One that was being rebuilt gets all rows when it is back, others what they have missed.
    Out {
        /// It was being rebuilt.
        is_partial: bool,
    },
    /// Nothing: it is a new disk.
    Blank,
    /// The rows before this one.
    Rebuilt(u64),
    /// Those that nobody has written while it was away, and all before this one.
    Returned(u64),
}

/// A member as the journal has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArrayMember {
    /// The port behind which it is.
    pub port: usize,
    /// The number of its disk in the set.
    pub number: u16,
    /// What it has.
    pub has: Has,
}

impl ArrayMember {
    fn is_out(&self) -> bool {
        matches!(self.has, Has::Out { .. })
    }
}

/// The state of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayState {
    /// The nodes behind the ports.
    pub nodes: Vec<String>,
    /// The members, by column.
    pub members: Vec<ArrayMember>,
    /// How rows are cut into regions.
    pub shape: RegionShape,
    /// Regions that may differ between the members.
    pub marked: BTreeSet<u64>,
    /// Rows that no member has.
    pub unreadable: BTreeSet<u64>,
    /// Regions that a member which was out has missed.
    pub missed: BTreeSet<u64>,
}

impl ArrayState {
    /// What a journal says of an array with so many members. The member is for findings.
    pub(super) fn read(
        journal: &JournalState,
        (nodes, columns): (&[String], usize),
        shape: RegionShape,
        (member, into): (&Member, &mut Findings),
    ) -> Option<ArrayState> {
        let mut state = ArrayState {
            nodes: nodes.to_vec(),
            members: Vec::new(),
            shape,
            marked: BTreeSet::new(),
            unreadable: BTreeSet::new(),
            missed: BTreeSet::new(),
        };
        let checkpoint = |state: &mut ArrayState, bytes: &[u8]| state.checkpoint(bytes, columns);
        let is_known = journal.tell(&mut state, checkpoint, ArrayState::record, (member, into));
        is_known.then_some(state)
    }

    fn checkpoint(&mut self, bytes: &[u8], columns: usize) -> Result<(), String> {
        let short = || "it ends within what it lists".to_owned();
        let (found, mut rest) = bytes.split_first().ok_or_else(short)?;
        if usize::from(*found) != columns {
            return Err(format!("it lists {found} members, and the array has {columns}"));
        }
        for column in 0..columns {
            let (own, behind) = rest.split_at_checked(MEMBER_BYTES).ok_or_else(short)?;
            let (of, member) = self.member(own)?;
            if of != column {
                return Err(format!("it lists member {of} in the place of member {column}"));
            }
            self.members.push(member);
            rest = behind;
        }
        let mut words = Words::new(rest);
        let mut next = || words.u64().ok_or_else(short);
        let (marked, unreadable, regions) = (next()?, next()?, next()?);
        if regions != self.shape.regions {
            let expected = self.shape.regions;
            return Err(format!("it is of {regions} regions, and the array has {expected}"));
        }
        for _ in 0..marked {
            let region = words.u64().ok_or_else(short)?;
            self.marked.insert(self.region(region)?);
        }
        for _ in 0..unreadable {
            let row = words.u64().ok_or_else(short)?;
            self.unreadable.insert(self.row(row)?);
        }
        let bits = words.take(regions.div_ceil(8)).ok_or_else(short)?;
        if words.left() > 0 {
            return Err("there is more behind what it lists".to_owned());
        }
        let is_missed = |region: &u64| bits[(region / 8) as usize] & 1 << (region % 8) != 0;
        self.missed = (0..regions).filter(is_missed).collect();
        Ok(())
    }

    /// A member, and its column.
    fn member(&self, bytes: &[u8]) -> Result<(usize, ArrayMember), String> {
        let [column, port, low, high, state, rows @ ..] = bytes else {
            return Err("a member has fewer bytes than it must".to_owned());
        };
        let rows = <[u8; 8]>::try_from(rows).map_err(|_| "a member has other bytes")?;
        let rows = u64::from_le_bytes(rows);
        let has = match (state, rows) {
            (0, 0) => Has::All,
            (1, partial @ (0 | 1)) => Has::Out { is_partial: partial == 1 },
            (2, 0) => Has::Blank,
            (3, rows) if rows <= self.shape.rows() => Has::Rebuilt(rows),
            (4, rows) if rows <= self.shape.rows() => Has::Returned(rows),
            (state, rows) => return Err(format!("member {column} is {state} with {rows} rows")),
        };
        let port = usize::from(*port);
        if port >= self.nodes.len() {
            return Err(format!("member {column} is behind port {port}, which is not there"));
        }
        let number = u16::from_le_bytes([*low, *high]);
        Ok((usize::from(*column), ArrayMember { port, number, has }))
    }

    fn region(&self, region: u64) -> Result<u64, String> {
        let is_there = region < self.shape.regions;
        is_there.then_some(region).ok_or_else(|| format!("region {region} is not there"))
    }

    fn row(&self, row: u64) -> Result<u64, String> {
        let is_there = (self.shape.table_rows()..self.shape.rows()).contains(&row);
        is_there.then_some(row).ok_or_else(|| format!("row {row} is none of data"))
    }

    fn record(&mut self, record: &JournalRecord) -> Result<(), String> {
        if record.data.is_some() {
            return Err(record.unknown());
        }
        if record.kind == MEMBER {
            return self.member_changed(&record.payload);
        }
        let mut words = Words::new(&record.payload);
        let numbers: Vec<u64> = std::iter::from_fn(|| words.u64()).collect();
        if words.left() > 0 {
            return Err("its payload is not a row of numbers".to_owned());
        }
        for number in numbers {
            match record.kind {
                MARKED => {
                    self.marked.insert(self.region(number)?);
                    if self.members.iter().any(ArrayMember::is_out) {
                        self.missed.insert(number);
                    }
                }
                CLEARED => {
                    self.marked.remove(&self.region(number)?);
                }
                UNREADABLE => {
                    self.unreadable.insert(self.row(number)?);
                }
                READABLE => {
                    self.unreadable.remove(&self.row(number)?);
                }
                _ => return Err(record.unknown()),
            }
        }
        Ok(())
    }

    fn member_changed(&mut self, payload: &[u8]) -> Result<(), String> {
        if payload.len() != MEMBER_BYTES {
            return Err("its payload is not a member".to_owned());
        }
        let (column, member) = self.member(payload)?;
        let known = self.members.get_mut(column);
        *known.ok_or_else(|| format!("member {column} is not there"))? = member;
        if member.is_out() {
            self.missed.extend(&self.marked);
        }
        if self.members.iter().all(|member| member.has == Has::All) {
            self.missed.clear();
        }
        Ok(())
    }

    /// Rows in all.
    pub fn rows(&self) -> u64 {
        self.shape.rows()
    }

    /// True of a row that a member must have.
    pub(super) fn has_row(&self, column: usize, row: u64) -> bool {
        match self.members[column].has {
            Has::All => true,
            Has::Out { .. } | Has::Blank => false,
            Has::Rebuilt(before) => row < before,
            Has::Returned(before) => {
                row < before || !self.missed.contains(&self.shape.region_of(row))
            }
        }
    }

    /// Rows that a member has.
    pub fn rows_of(&self, column: usize) -> u64 {
        match self.members[column].has {
            Has::All => self.rows(),
            Has::Out { .. } | Has::Blank => 0,
            Has::Rebuilt(before) => before,
            Has::Returned(before) => {
                let lacks = |region: &u64| {
                    let both = [self.shape.table_of(*region), self.shape.rows_of(*region)];
                    let lacked = both.iter().map(|rows| {
                        let end = rows.end().0;
                        end - rows.start.0.max(before).min(end)
                    });
                    lacked.sum::<u64>()
                };
                self.rows() - self.missed.iter().map(lacks).sum::<u64>()
            }
        }
    }

    /// What a member has, in words; nothing when it has all.
    pub fn words_of(&self, column: usize) -> Option<String> {
        let (rows, done) = (self.rows(), self.rows_of(column));
        match self.members[column].has {
            Has::All => None,
            Has::Out { is_partial: false } => {
                Some("it is out, and gets what it has missed when it is back".to_owned())
            }
            Has::Out { is_partial: true } => {
                Some("it is out, and gets all rows when it is back".to_owned())
            }
            Has::Blank => Some("it is a new disk that has nothing yet".to_owned()),
            Has::Rebuilt(_) => Some(format!("it is being rebuilt, and has {done} of {rows} rows")),
            Has::Returned(_) => {
                Some(format!("it was away and has come back, and has {done} of {rows} rows"))
            }
        }
    }
}

/// Bytes of a member.
const MEMBER_BYTES: usize = 13;
/// The kinds of records.
const MEMBER: u8 = 1;
const MARKED: u8 = 2;
const CLEARED: u8 = 3;
const UNREADABLE: u8 = 4;
const READABLE: u8 = 5;
