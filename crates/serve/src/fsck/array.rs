//! What the journal of a durable array of copies says: who its members are, and what they have.

use super::array_member::{self, ArrayMember, Has, MEMBER, MembersOf};
use super::findings::Findings;
use super::journal::{JournalRecord, JournalState};
use super::member::Member;
use super::words::Words;
use imbrex_core::array::RegionShape;
use std::collections::BTreeSet;

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
        let (members, mut words) = self.all_members(columns).all(bytes)?;
        self.members = members;
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

    fn all_members(&self, columns: usize) -> MembersOf {
        MembersOf { columns, ports: self.nodes.len(), rows: self.shape.rows() }
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
        let all = self.all_members(self.members.len());
        let member = all.record(payload, &mut self.members)?;
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
        let rows = (self.rows_of(column), self.rows());
        array_member::words_of(self.members[column].has, rows, "what it has missed")
    }
}

/// The kinds of records, beside that of members.
const MARKED: u8 = 2;
const CLEARED: u8 = 3;
const UNREADABLE: u8 = 4;
const READABLE: u8 = 5;
