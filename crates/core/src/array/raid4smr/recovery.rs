//! What a RAID 4SMR finds out and mends after a crash, before its journal goes on.
//!
//! Records of the last writes were made before the blocks were written. Where no record says that the members
//! were flushed since, each block is read: one that is not what its record says was not written, and is where
//! it was before. The parity of all rows that were perhaps being written is then the sum of what is there.

use super::contents::Contents;
use super::directory::{Directory, Place};
use super::records::Said;
use crate::array::{Columns, RowMap, Rows};
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::lifecycle::OpenError;
use crate::operation::{Cause, Operation};
use crate::state::StateError;
use crate::units::BlockCount;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

/// Reads in flight at most.
const READS_MAX: usize = 16;
/// Rows whose parity is computed at once.
const ROWS_MAX: u64 = 256;

/// How far it has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Blocks that were perhaps written are read.
    Checking,
    /// The parity of some rows is computed: all of its columns are read.
    Reading,
    /// It is written.
    Writing,
    /// The members are flushed.
    Flushing,
    /// All is as the records say.
    Over,
}

/// Neighbouring blocks that were perhaps written.
#[derive(Clone, Debug)]
struct Check {
    column: usize,
    rows: Extent,
    /// Of each block the record and where in it it stands.
    of: Vec<(usize, usize)>,
    buffer: BufferSlice,
}

/// The recovery of what was perhaps being written.
#[derive(Debug)]
pub struct AfterCrash {
    /// The records in their order.
    said: Vec<Said>,
    /// By record and block whether the block was found to be there.
    is_there: Vec<Vec<bool>>,
    checks: Vec<Check>,
    asked: usize,
    /// Rows whose parity is computed anew.
    rows: BTreeSet<u64>,
    /// Those that are computed now, and a buffer for each column that is read and for the parity.
    now: Extent,
    columns: Columns,
    buffers: Vec<BufferSlice>,
    step: Step,
    outstanding: u32,
    failure: Option<IoError>,
}

impl AfterCrash {
    /// Takes the records behind a checkpoint; there are none where the array went down in good order.
    pub fn new(said: Vec<Said>, directory: &Directory, contents: &Contents) -> AfterCrash {
        let mut after = AfterCrash {
            is_there: said.iter().map(|it| vec![true; blocks_of(it)]).collect(),
            said,
            checks: Vec::new(),
            asked: 0,
            rows: BTreeSet::new(),
            now: Extent::EMPTY,
            columns: Columns::NONE,
            buffers: Vec::new(),
            step: Step::Checking,
            outstanding: 0,
            failure: None,
        };
        after.find_checks(directory, contents);
        after
    }

    /// Finds the blocks of which no record says that they are durable.
    fn find_checks(&mut self, directory: &Directory, contents: &Contents) {
        let settled = self.said.iter().filter_map(|it| match it {
            Said::Settled { before } => Some(*before),
            _ => None,
        });
        let settled = settled.max().unwrap_or_default();
        let mut band_rows = directory.band_rows().to_vec();
        for (record, said) in self.said.iter().enumerate() {
            match said {
                Said::Collected { band_row, to, .. } => {
                    if let Some(at) = band_rows.get_mut(*band_row as usize) {
                        *at = *to;
                    }
                }
                Said::Write(written) if written.number >= settled => {
                    for (at, block) in written.blocks.iter().enumerate() {
                        let band_row = directory.band_row_of(block.place) as usize;
                        let Some(lies) = band_rows.get(band_row) else { continue };
                        let home = lies * contents.bands().band_blocks()
                            + directory.offset_of(block.place);
                        let (column, row) = match block.slot {
                            Some(slot) => (contents.data(), slot),
                            None => (directory.home_of(block.place), home),
                        };
                        if row >= contents.rows_of(column) {
                            continue;
                        }
                        self.rows.insert(row);
                        self.is_there[record][at] = false;
                        add_check(&mut self.checks, (column, row), (record, at));
                    }
                }
                _ => {}
            }
        }
    }

    /// True when blocks were perhaps being written, or a parity was changing.
    pub fn has_doubts(&self) -> bool {
        let begun = self.said.iter().rev().find_map(|said| match said {
            Said::Begun { .. } => Some(true),
            Said::Collected { .. } => Some(false),
            _ => None,
        });
        !self.checks.is_empty() || begun == Some(true)
    }

    /// True when everything is as the records say.
    pub fn is_over(&self) -> bool {
        self.step == Step::Over
    }

    /// Why it cannot come to its end.
    pub fn failure(&self) -> Option<IoError> {
        self.failure
    }

    /// Goes on as far as can be. `word` comes back with each operation.
    ///
    /// # Errors
    /// When the records make no sense.
    pub fn go_on(
        &mut self,
        word: u64,
        directory: &mut Directory,
        contents: &mut Contents,
        rows: &mut Rows,
        ctx: &mut Context<'_>,
    ) -> Result<(), OpenError> {
        loop {
            if self.failure.is_some() || self.outstanding > 0 && self.step != Step::Checking {
                return Ok(());
            }
            match self.step {
                Step::Checking => {
                    self.read_more(word, contents, rows, ctx);
                    if self.outstanding > 0 {
                        return Ok(());
                    }
                    let replayed = self.replay(directory, contents);
                    replayed.map_err(|_| {
                        OpenError::damaged("record", "it speaks of what is not there")
                    })?;
                    self.step = Step::Writing;
                }
                Step::Reading => self.write_parity(word, contents, rows, ctx),
                Step::Writing => {
                    self.release(ctx);
                    self.read_rows(word, contents, rows, ctx);
                }
                Step::Flushing => self.step = Step::Over,
                Step::Over => return Ok(()),
            }
        }
    }

    /// An operation has ended.
    pub fn ended(&mut self, at: usize, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        self.outstanding -= 1;
        if self.step != Step::Checking {
            self.failure = self.failure.or(result.err());
            return;
        }
        let check = &mut self.checks[at];
        let buffer = core::mem::take(&mut check.buffer);
        let mut sums = Vec::new();
        match result {
            Ok(()) => ctx.checksum(buffer, &mut sums),
            Err(IoError::Lost) => self.failure = self.failure.or(Some(IoError::Lost)),
            Err(_) => {}
        }
        ctx.release(buffer);
        for ((record, block), sum) in check.of.iter().zip(sums) {
            if let Said::Write(written) = &self.said[*record] {
                self.is_there[*record][*block] = written.blocks[*block].sum == sum;
            }
        }
    }

    fn read_more(
        &mut self,
        word: u64,
        contents: &Contents,
        rows: &mut Rows,
        ctx: &mut Context<'_>,
    ) {
        while (self.outstanding as usize) < READS_MAX && self.asked < self.checks.len() {
            let at = self.asked;
            self.asked += 1;
            let check = &mut self.checks[at];
            check.buffer = ctx.allocate(check.rows.blocks);
            let (column, of_rows, buffer) = (check.column, check.rows, check.buffer);
            let operation = (Operation::Read, Cause::Metadata);
            let issued =
                rows.issue(word | at as u64, column, operation, of_rows, buffer, contents, ctx);
            debug_assert_eq!(issued, 1, "a check is one run of a member");
            self.outstanding += issued;
        }
    }

    /// Takes the records back in their order, those blocks of them that are there.
    fn replay(
        &mut self,
        directory: &mut Directory,
        contents: &mut Contents,
    ) -> Result<(), StateError> {
        let nonsense = || StateError::new("something that is not there");
        let undone: BTreeSet<u64> = self.said.iter().filter_map(Said::undone).collect();
        let band_blocks = contents.bands().band_blocks();
        let homes = contents.data() as u64;
        // By block the last request that has changed it.
        let mut newest: BTreeMap<u64, u64> = BTreeMap::new();
        let mut is_newest = |block: u64, stamp: u64| {
            let last = newest.entry(block).or_default();
            *last = stamp.max(*last);
            *last == stamp
        };
        // By place the last change that has given it a slot.
        let mut redirected_by: BTreeMap<Place, u64> = BTreeMap::new();
        let mut begun = None;
        let mut held: Vec<(u64, u64)> = Vec::new();
        for (record, said) in self.said.iter().enumerate() {
            match said {
                Said::Write(written) => {
                    let stands = !undone.contains(&written.number);
                    for (at, block) in written.blocks.iter().enumerate() {
                        let is_there = self.is_there[record][at];
                        let applies = is_there && stands && is_newest(block.block, block.stamp);
                        if applies && block.slot.is_some() {
                            redirected_by.insert(block.place, block.stamp);
                        }
                        directory.replay_write((block.block, block.place), block.slot, applies)?;
                        if !is_there {
                            continue;
                        }
                        let (column, row) = match block.slot {
                            Some(slot) => (contents.data(), slot),
                            None => (directory.home_of(block.place), directory.row_of(block.place)),
                        };
                        contents.hold(column, row, true);
                    }
                }
                Said::Zeroed { stamp, first, blocks } => {
                    let end = first.checked_add(*blocks).ok_or_else(nonsense)?;
                    for block in (*first..end).filter(|block| is_newest(*block, *stamp)) {
                        directory.zero(block);
                    }
                }
                Said::Begun { to, .. } => {
                    begun = Some(*to);
                    held = Vec::new();
                }
                Said::Held { runs } => held.extend(runs),
                Said::Collected { band_row, to, stamp } => {
                    let since = |place| redirected_by.get(&place).is_some_and(|by| by > stamp);
                    directory.replay_collected(*band_row, *to, since)?;
                    let rows = Extent::new(to * band_blocks, band_blocks);
                    contents.clear_homes(rows);
                    for (start, length) in &held {
                        let end =
                            start.checked_add(*length).filter(|end| *end <= band_blocks * homes);
                        for at in *start..end.ok_or_else(nonsense)? {
                            contents.hold((at % homes) as usize, rows.start.0 + at / homes, true);
                        }
                    }
                    (begun, held) = (None, Vec::new());
                }
                Said::Settled { .. } | Said::Undone { .. } => {}
            }
        }
        if let Some(to) = begun {
            if to != directory.spare() {
                return Err(nonsense());
            }
            let rows = Extent::new(to * band_blocks, band_blocks);
            contents.clear_homes(rows);
            self.rows.extend(rows.start.0..rows.end().0);
        }
        Ok(())
    }

    /// Reads the next rows whose parity is computed, or flushes the members behind the last.
    fn read_rows(
        &mut self,
        word: u64,
        contents: &Contents,
        rows: &mut Rows,
        ctx: &mut Context<'_>,
    ) {
        while let Some(first) = self.rows.pop_first() {
            let columns = contents.held(first);
            let has_parity = rows.members.is_present(contents.parity());
            if columns.is_empty() || !has_parity {
                continue;
            }
            let mut end = first + 1;
            while end - first < ROWS_MAX
                && self.rows.contains(&end)
                && contents.held(end) == columns
            {
                self.rows.remove(&end);
                end += 1;
            }
            (self.now, self.columns) = (Extent::new(first, end - first), columns);
            self.step = Step::Reading;
            for column in columns.iter() {
                let buffer = ctx.allocate(BlockCount(end - first));
                self.buffers.push(buffer);
                let operation = (Operation::Read, Cause::Parity);
                self.outstanding +=
                    rows.issue(word, column, operation, self.now, buffer, contents, ctx);
            }
            return;
        }
        self.step = Step::Flushing;
        let present = (0..contents.columns()).filter(|column| rows.members.is_present(*column));
        for column in present.collect::<Vec<_>>() {
            let (operation, none) = ((Operation::Flush, Cause::Metadata), BufferSlice::EMPTY);
            self.outstanding +=
                rows.issue(word, column, operation, Extent::EMPTY, none, contents, ctx);
        }
    }

    fn write_parity(
        &mut self,
        word: u64,
        contents: &Contents,
        rows: &mut Rows,
        ctx: &mut Context<'_>,
    ) {
        self.step = Step::Writing;
        let sum = self.buffers[0];
        self.buffers[1..].iter().for_each(|other| ctx.xor(*other, sum));
        let operation = (Operation::WRITE, Cause::Parity);
        self.outstanding +=
            rows.issue(word, contents.parity(), operation, self.now, sum, contents, ctx);
    }

    fn release(&mut self, ctx: &mut Context<'_>) {
        self.buffers.drain(..).for_each(|buffer| ctx.release(buffer));
    }
}

fn blocks_of(said: &Said) -> usize {
    match said {
        Said::Write(written) => written.blocks.len(),
        _ => 0,
    }
}

/// Adds a block to the last run, or begins one.
fn add_check(checks: &mut Vec<Check>, (column, row): (usize, u64), of: (usize, usize)) {
    match checks.last_mut() {
        // A run never crosses what may lie apart on its member.
        Some(last)
            if last.column == column
                && last.rows.end().0 == row
                && last.of[0].0 == of.0
                && last.rows.blocks.0 < ROWS_MAX =>
        {
            last.rows.blocks.0 += 1;
            last.of.push(of);
        }
        _ => {
            let (rows, of) = (Extent::new(row, 1), Vec::from([of]));
            checks.push(Check { column, rows, of, buffer: BufferSlice::EMPTY });
        }
    }
}
