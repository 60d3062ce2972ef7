//! The blocks of a parity array: where they are, and whether rows are the sums that they must be.

use super::findings::Findings;
use super::kinds::zeroes;
use super::member::BLOCK;
use super::parity_array::ParityArrayState;
use super::parity_disks::ParityDisks;
use super::parity_doubt::Doubts;
use super::parity_sums::ParitySums;
use super::ranges::Ranges;
use super::tables::{self, Holes};
use imbrex_core::lifecycle::Uuid;
use imbrex_core::translation::NOTHING;
use std::rc::Rc;

const DATA: &str = "data";

/// The blocks of an array.
pub(super) struct ParityBlocks {
    state: Rc<ParityArrayState>,
    disks: ParityDisks,
    doubts: Doubts,
    sums: ParitySums,
}

impl ParityBlocks {
    pub fn new(
        state: &Rc<ParityArrayState>,
        disks: ParityDisks,
        doubts: Doubts,
        set: Uuid,
    ) -> ParityBlocks {
        let sums = ParitySums::new(set, state.words.clone());
        ParityBlocks { state: Rc::clone(state), disks, doubts, sums }
    }

    /// Reads the tables of checksums.
    pub fn check_tables(&self, into: &mut Findings) {
        self.sums.check_tables(&self.state, &self.disks, into);
    }

    /// The columns that stand in the parity of a row.
    fn held(&self, row: u64) -> Vec<usize> {
        let columns = 0..self.state.parity();
        columns.filter(|column| self.state.holds(*column, row)).collect()
    }

    /// Reads every row that is in no doubt: compares each block with its checksum, and where all members have theirs
    /// the parity with the sum of what stands in it.
    pub fn check_data(&self, into: &mut Findings) {
        let mut rows = Ranges::default();
        for held in &self.state.held {
            held.runs().for_each(|(start, end)| rows.insert(start, end));
        }
        for (start, end) in self.doubts.rows.runs() {
            rows.remove(start, end);
        }
        let columns = 0..=self.state.parity();
        let mut holes: Vec<Holes<'_>> =
            columns.map(|column| Holes::new(self.disks.member(column))).collect();
        for row in rows.runs().flat_map(|(start, end)| start..end) {
            self.check_row(row, &mut holes, into);
        }
    }

    fn check_row(&self, row: u64, holes: &mut [Holes<'_>], into: &mut Findings) {
        let held = self.held(row);
        let parity = self.state.parity();
        let all = || held.iter().copied().chain([parity]);
        let (mut sum, mut bytes, mut is_whole) = (vec![0; BLOCK], Vec::new(), true);
        for column in all() {
            if !self.disks.has_row(column, row) {
                is_whole = false;
                continue;
            }
            let at = self.disks.place(column, row);
            let word = match column == parity {
                true => NOTHING,
                false => self.sums.word((column, row), &self.state, &self.disks),
            };
            // What is in a hole reads as zeroes, and adds nothing.
            if matches!(word, 0 | NOTHING) && holes[column].has_zeroes(0, at) {
                continue;
            }
            let read = self.disks.read(column, row, &mut bytes);
            if let Err(problem) = read.and_then(|()| tables::compare(word, &bytes)) {
                let words = format!("row {row}, at block {at} of the member: {problem}");
                into.damage(&self.name(column), DATA, words);
                is_whole = false;
                continue;
            }
            add(&bytes, &mut sum);
        }
        if is_whole && sum.iter().any(|byte| *byte != 0) {
            let of = |column: &usize| {
                format!("block {} of {}", self.disks.place(*column, row), self.name(*column))
            };
            let of: Vec<String> = held.iter().map(of).collect();
            let at = self.disks.place(parity, row);
            let words = format!(
                "row {row}, at block {at} of the member: it is not the sum of {}",
                of.join(", ")
            );
            into.damage(&self.name(parity), DATA, words);
        }
    }

    fn name(&self, column: usize) -> String {
        let name = self.disks.member(column).map(|member| member.name().to_owned());
        name.unwrap_or_else(|| self.state.nodes[column].clone())
    }

    /// Reads a block of the array.
    pub fn read(&self, block: u64, into: &mut Vec<u8>) -> Result<(), String> {
        let state = &self.state;
        if block >= state.blocks {
            return Err("it lies past the array".to_owned());
        }
        zeroes(into);
        let place = state.place_of(block).filter(|place| state.live.contains(*place));
        let Some(place) = place else { return Ok(()) };
        let (column, row) = match state.slots.get(&place) {
            Some(slot) => (state.data(), *slot),
            None => state.home_of(place),
        };
        match state.holds(column, row) {
            true => self.add_block(column, row, into)?,
            false if state.unreadable.contains(&place) => {
                return Err("it is listed as unreadable".to_owned());
            }
            false => return Ok(()),
        }
        tables::compare(self.sums.word((column, row), state, &self.disks), into)
    }

    /// Adds a block of a column to a sum. One that is missing is the sum of the others.
    fn add_block(&self, column: usize, row: u64, sum: &mut [u8]) -> Result<(), String> {
        let is_there = |column: usize| {
            let in_log = column == self.state.data() && self.slot_in_log(row).is_some();
            in_log || self.disks.has_row(column, row)
        };
        if is_there(column) {
            return self.add_own(column, row, sum);
        }
        let others = || self.held(row).into_iter().filter(|other| *other != column);
        if let Some(other) = others().find(|other| !is_there(*other)) {
            let names = (self.name(column), self.name(other));
            return Err(format!("neither {} nor {} has row {row}", names.0, names.1));
        }
        self.add_parity(column, row, sum)?;
        others().try_for_each(|other| self.add_own(other, row, sum))
    }

    /// The block of the log that a slot gets at the next start.
    fn slot_in_log(&self, slot: u64) -> Option<u64> {
        self.doubts.fixes.get(&slot)?.slot.map(|(at, _)| at)
    }

    fn add_own(&self, column: usize, row: u64, sum: &mut [u8]) -> Result<(), String> {
        let mut bytes = Vec::new();
        let in_log = (column == self.state.data()).then(|| self.slot_in_log(row)).flatten();
        match in_log {
            Some(at) => self.disks.read_log(at, &mut bytes)?,
            None => self.disks.read(column, row, &mut bytes)?,
        }
        add(&bytes, sum);
        Ok(())
    }

    /// Adds the parity of a row to a sum, for a column that is missing.
    fn add_parity(&self, missing: usize, row: u64, sum: &mut [u8]) -> Result<(), String> {
        let parity = self.state.parity();
        let mut bytes = Vec::new();
        if let Some(fix) = self.doubts.fixes.get(&row) {
            self.disks.sum_of(&fix.parity, row, &mut bytes)?;
            add(&bytes, sum);
            return Ok(());
        }
        if self.doubts.rows.contains(row) || !self.disks.has_row(parity, row) {
            let name = self.name(missing);
            return Err(format!("{name} does not have row {row}, and its parity is not known"));
        }
        self.disks.read(parity, row, &mut bytes)?;
        add(&bytes, sum);
        Ok(())
    }
}

/// Adds a block to a sum, without carry.
fn add(bytes: &[u8], sum: &mut [u8]) {
    sum.iter_mut().zip(bytes).for_each(|(sum, byte)| *sum ^= byte);
}
