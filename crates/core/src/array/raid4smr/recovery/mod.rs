//! What a RAID 4SMR finds out and mends after a crash, before its journal goes on.
//!
//! Records of the last writes were made before the blocks were written. Where no record says that the members
//! were flushed since, each block is read: one that is not what its record says was not written, and is where
//! it was before. The parity of all rows that were perhaps being written is then the sum of what is there. Where a
//! member is missing that cannot be known, and they are what the [log](FromLog) says.

mod collecting;
mod doubt;
mod from_log;
mod spare_rows;
mod standing;

use super::contents::Contents;
use super::directory::{Directory, Place};
use super::records::{Said, WrittenBlock};
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
use collecting::Collecting;
use doubt::{Doubt, READS_MAX, ROWS_MAX};
use from_log::{FromLog, Verdict};
use spare_rows::{SpareRow, SpareRows};
use standing::Standing;

/// How far it has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// The log is read.
    ReadingLog,
    /// Blocks that were perhaps written are read.
    Checking,
    /// Rows get what the log says.
    FromLog,
    /// Rows of the spare band row are read, whose slots are missing.
    ReadingSpare,
    /// Their parity is written.
    WritingSpare,
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
    /// The checksum of what was found in the place of one that is not.
    found: Vec<Vec<Option<u32>>>,
    doubts: Vec<Doubt>,
    /// Columns and rows of all blocks that the records speak of.
    recent: Vec<(usize, u64)>,
    /// By record whether its write has waited until it was durable that it comes: something stood in its rows.
    has_waited: Vec<bool>,
    /// What the log says, where a member is missing.
    from_log: Option<FromLog>,
    checks: Vec<Check>,
    asked: usize,
    /// Rows whose parity is computed anew.
    rows: BTreeSet<u64>,
    /// Rows of the homes that have nothing, though a collection was about to put something there.
    uncollected: Extent,
    /// What is known of each of these rows.
    spare: Vec<SpareRow>,
    spare_rows: SpareRows,
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
    pub fn new(
        said: Vec<Said>,
        log: Extent,
        (directory, contents): (&Directory, &Contents),
        rows: &Rows,
    ) -> AfterCrash {
        let mut after = AfterCrash {
            is_there: said.iter().map(|it| vec![true; blocks_of(it)]).collect(),
            found: said.iter().map(|it| vec![None; blocks_of(it)]).collect(),
            said,
            doubts: Vec::new(),
            recent: Vec::new(),
            has_waited: Vec::new(),
            from_log: None,
            checks: Vec::new(),
            asked: 0,
            rows: BTreeSet::new(),
            uncollected: Extent::EMPTY,
            spare: Vec::new(),
            spare_rows: SpareRows::default(),
            now: Extent::EMPTY,
            columns: Columns::NONE,
            buffers: Vec::new(),
            step: Step::Checking,
            outstanding: 0,
            failure: None,
        };
        after.find_doubts(directory, contents);
        let parity = contents.parity();
        let lacks = (0..parity).any(|column| !rows.members.has_all(column));
        match lacks && rows.members.is_present(parity) {
            true => {
                after.from_log = Some(FromLog::new(log, &after.said, &after.doubts));
                after.step = Step::ReadingLog;
            }
            false => after.check_all(rows),
        }
        after
    }

    /// Believes that all was written: a planted bug alone asks for it.
    pub fn compare_nothing(&mut self) {
        self.is_there.iter_mut().for_each(|blocks| blocks.fill(true));
        (self.doubts, self.checks, self.from_log) = (Vec::new(), Vec::new(), None);
        (self.rows, self.step) = (BTreeSet::new(), Step::Checking);
    }

    /// Finds the blocks of which no record says that they are durable.
    fn find_doubts(&mut self, directory: &Directory, contents: &Contents) {
        let settled = self.said.iter().filter_map(|it| match it {
            Said::Settled { before } => Some(*before),
            _ => None,
        });
        let settled = settled.max().unwrap_or_default();
        let mut band_rows = directory.band_rows().to_vec();
        let mut standing = Standing::default();
        self.has_waited = vec![false; self.said.len()];
        for (record, said) in self.said.iter().enumerate() {
            match said {
                Said::Begun { .. } => standing.collecting.clear(),
                Said::Held { .. } => standing.collecting.extend(said.places_held()),
                Said::Collected { band_row, to, .. } => {
                    if let Some(at) = band_rows.get_mut(*band_row as usize)
                        && *to <= directory.band_rows().len() as u64
                    {
                        *at = *to;
                        standing.collected(*to, contents);
                    }
                }
                Said::Write(written) => {
                    let is_settled = written.number < settled;
                    let mut rows = Vec::new();
                    for (at, block) in written.blocks.iter().enumerate() {
                        let band_row = directory.band_row_of(block.place) as usize;
                        let Some(lies) = band_rows.get(band_row) else { continue };
                        let home = lies * contents.bands().band_blocks()
                            + directory.offset_of(block.place);
                        let (column, row) = match block.slot {
                            Some(slot) => (contents.data(), slot),
                            None => (directory.home_of(block.place), home),
                        };
                        let is_slot = column == contents.data();
                        if row >= contents.rows_of(column) || is_slot && row >= contents.slot_rows()
                        {
                            continue;
                        }
                        rows.push((column, row));
                        if !is_settled {
                            self.is_there[record][at] = false;
                            self.doubts.push(Doubt { of: (record, at), column, row });
                        }
                    }
                    self.has_waited[record] = standing.write(&rows, contents);
                    self.recent.extend(rows);
                }
                _ => {}
            }
        }
    }

    /// The columns and the rows of all blocks that were written behind the checkpoint, or were about to be.
    pub fn recent(&self) -> &[(usize, u64)] {
        &self.recent
    }

    /// The bands to which a band row was collected behind the checkpoint, or was about to be.
    pub fn bands_collected_to(&self) -> impl Iterator<Item = u64> + '_ {
        self.said.iter().filter_map(|it| match it {
            Said::Begun { to, .. } => Some(*to),
            _ => None,
        })
    }

    /// Has all doubtful blocks read, and the parity of their rows computed. At most the parity disk is missing.
    fn check_all(&mut self, rows: &Rows) {
        for doubt in &self.doubts {
            self.rows.insert(doubt.row);
            if rows.members.with_row(doubt.row).has(doubt.column) {
                add_check(&mut self.checks, (doubt.column, doubt.row), doubt.of);
            }
        }
    }

    /// The log was read: it says which blocks are there, and which must be read to know that.
    fn believe_log(&mut self, rows: &Rows) {
        let Some(from_log) = &mut self.from_log else { return };
        from_log.sort_out(&self.said, &self.doubts, &self.has_waited);
        for doubt in &self.doubts {
            let (record, at) = doubt.of;
            let is_readable = rows.members.with_row(doubt.row).has(doubt.column);
            let verdict = from_log.verdict(&self.said, doubt);
            if verdict == Verdict::NotInLog {
                self.rows.insert(doubt.row);
            }
            match verdict {
                Verdict::AtHome | Verdict::NotInLog if is_readable => {
                    add_check(&mut self.checks, (doubt.column, doubt.row), doubt.of);
                }
                // The parity of the log has it.
                Verdict::AtHome | Verdict::InSlot => self.is_there[record][at] = true,
                Verdict::NotInLog | Verdict::Nowhere => {}
            }
        }
    }

    /// Which blocks are there is known: so is what their rows get.
    ///
    /// # Errors
    /// When the parity of a row is needed that is known no more: its slot was on a member that is missing, and a
    /// collection was changing it.
    fn decide(&mut self, contents: &Contents, rows: &Rows) -> Result<(), IoError> {
        let Some(from_log) = &mut self.from_log else { return Ok(()) };
        for doubt in from_log.last_at_home() {
            let (record, at) = doubt.of;
            if self.is_there[record][at] {
                continue;
            }
            // What the home had before is there still.
            let is_held = contents.held(doubt.row).has(doubt.column);
            let before = is_held.then(|| found_at(&self.checks, &doubt)).flatten();
            from_log.take_out(&self.said, &doubt, before);
        }
        from_log.leave_out_homes(self.uncollected);
        self.rows.retain(|row| !from_log.has(*row));
        let is_known = |row: &u64| {
            let there = rows.members.with_row(*row);
            contents.held(*row).without(there).is_empty()
        };
        let unknown: Vec<u64> = self.rows.iter().filter(|row| !is_known(row)).copied().collect();
        for row in unknown {
            self.rows.remove(&row);
            let at = row.checked_sub(self.uncollected.start.0);
            let known = at.and_then(|at| self.spare.get(at as usize)).ok_or(IoError::Lost)?;
            self.spare_rows.add(row, known.clone());
        }
        Ok(())
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
            let is_many = matches!(self.step, Step::ReadingLog | Step::Checking | Step::FromLog);
            if self.failure.is_some() || self.outstanding > 0 && !is_many {
                return Ok(());
            }
            match self.step {
                Step::ReadingLog => {
                    let from_log = self.from_log.as_mut().expect("a log");
                    self.outstanding += from_log.read_more(
                        word,
                        (self.outstanding, &self.said),
                        contents.parity(),
                        rows,
                        ctx,
                    );
                    if self.outstanding > 0 {
                        return Ok(());
                    }
                    self.believe_log(rows);
                    self.step = Step::Checking;
                }
                Step::Checking => {
                    self.read_more(word, contents, rows, ctx);
                    if self.outstanding > 0 {
                        return Ok(());
                    }
                    let replayed = self.replay(directory, contents);
                    replayed.map_err(|_| {
                        OpenError::damaged("record", "it speaks of what is not there")
                    })?;
                    self.failure = self.failure.or(self.decide(contents, rows).err());
                    self.step = Step::FromLog;
                }
                Step::FromLog => {
                    if let Some(from_log) = &mut self.from_log {
                        let in_flight = self.outstanding;
                        self.outstanding +=
                            from_log.write_more(word, in_flight, contents, rows, ctx);
                    }
                    if self.outstanding > 0 {
                        return Ok(());
                    }
                    self.step = Step::WritingSpare;
                }
                Step::WritingSpare => {
                    self.outstanding += self.spare_rows.read_more(word, contents, rows, ctx);
                    let has_more = self.outstanding > 0;
                    self.step = if has_more { Step::ReadingSpare } else { Step::Writing };
                }
                Step::ReadingSpare => {
                    self.step = Step::WritingSpare;
                    match self.spare_rows.write(word, contents, rows, ctx) {
                        Ok(issued) => self.outstanding += issued,
                        Err(error) => self.failure = Some(error),
                    }
                }
                Step::Reading => self.write_parity(word, contents, rows, ctx),
                Step::Writing => {
                    self.release(ctx);
                    self.read_rows(word, contents, rows, ctx);
                }
                Step::Flushing => {
                    if let Some(from_log) = &mut self.from_log {
                        from_log.release(ctx);
                        self.spare_rows.release(ctx);
                        let checked = self.checks.drain(..).map(|check| check.buffer);
                        checked.filter(|it| it.blocks > 0).for_each(|it| ctx.release(it));
                    }
                    self.step = Step::Over;
                }
                Step::Over => return Ok(()),
            }
        }
    }

    /// An operation has ended.
    pub fn ended(&mut self, at: usize, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        self.outstanding -= 1;
        if let (Step::ReadingLog, Some(from_log)) = (self.step, &mut self.from_log) {
            if result == Err(IoError::Lost) {
                self.failure = self.failure.or(Some(IoError::Lost));
            }
            return from_log.entry_read(at, result, &self.said, ctx);
        }
        if self.step != Step::Checking {
            self.failure = self.failure.or(result.err());
            return;
        }
        let check = &mut self.checks[at];
        let mut sums = Vec::new();
        match result {
            Ok(()) => ctx.checksum(check.buffer, &mut sums),
            Err(IoError::Lost) => self.failure = self.failure.or(Some(IoError::Lost)),
            Err(_) => {}
        }
        if self.from_log.is_none() || sums.is_empty() {
            ctx.release(core::mem::take(&mut check.buffer));
        }
        for ((record, block), sum) in check.of.iter().zip(sums) {
            if let Said::Write(written) = &self.said[*record] {
                self.is_there[*record][*block] = written.blocks[*block].sum == sum;
                self.found[*record][*block] = Some(sum);
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
        let mut collecting = Collecting::default();
        let mut collected = BTreeSet::new();
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
                        let sum = if is_there { Some(block.sum) } else { self.found[record][at] };
                        let (column, row) = know(block, sum, directory, contents);
                        if is_there {
                            contents.hold(column, row, true);
                        }
                        if is_there && column == contents.data() {
                            collecting.wrote_slot(row, block.sum);
                        }
                    }
                }
                Said::Zeroed { stamp, first, blocks } => {
                    let end = first.checked_add(*blocks).ok_or_else(nonsense)?;
                    for block in (*first..end).filter(|block| is_newest(*block, *stamp)) {
                        directory.zero(block);
                    }
                }
                Said::Begun { .. }
                | Said::Slots { .. }
                | Said::Held { .. }
                | Said::Cleared
                | Said::Adding => collecting.take(said),
                Said::Collected { band_row, to, stamp } => {
                    let since = |place| redirected_by.get(&place).is_some_and(|by| by > stamp);
                    let held = collecting.end();
                    directory.replay_collected((*band_row, *to), &held, since)?;
                    let rows = Extent::new(to * band_blocks, band_blocks);
                    contents.clear_homes(rows);
                    if let Some(sums) = &mut contents.sums {
                        sums.forget_unset_homes(rows);
                        sums.wrote_all(rows);
                    }
                    for at in held {
                        contents.hold((at % homes) as usize, rows.start.0 + at / homes, true);
                    }
                    collected.insert(*band_row);
                }
                Said::Settled { .. } | Said::Undone { .. } => {}
            }
        }
        directory.end_replay()?;
        list_unreadable(&collected, directory, contents);
        if let Some(to) = collecting.to() {
            if to != directory.spare() {
                return Err(nonsense());
            }
            let rows = Extent::new(to * band_blocks, band_blocks);
            self.spare = collecting.spare_rows(rows, contents).ok_or_else(nonsense)?;
            contents.clear_homes(rows);
            // One of the two copies of its tables may have been written.
            contents.sums.iter_mut().for_each(|sums| sums.change_all(rows));
            self.rows.extend(rows.start.0..rows.end().0);
            self.uncollected = rows;
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

/// A block has a checksum, if it is known. Returns its column and its row.
fn know(
    block: &WrittenBlock,
    sum: Option<u32>,
    directory: &Directory,
    contents: &mut Contents,
) -> (usize, u64) {
    let (column, row) = match block.slot {
        Some(slot) => (contents.data(), slot),
        None => (directory.home_of(block.place), directory.row_of(block.place)),
    };
    if let (Some(sums), Some(sum)) = (&mut contents.sums, sum) {
        sums.set(column, row, sum);
    }
    (column, row)
}

/// Of band rows that were collected, places that have data and were left out: no member could give it. What a checkpoint
/// would have said of them is not there yet.
fn list_unreadable(collected: &BTreeSet<u64>, directory: &Directory, contents: &mut Contents) {
    for band_row in collected {
        let places = directory.places_of(*band_row);
        for place in places.start.0..places.end().0 {
            let is_held = || contents.has_home(directory.home_of(place), directory.row_of(place));
            if directory.is_live(place) && directory.slot_of(place).is_none() && !is_held() {
                contents.unreadable.add(place);
            }
        }
    }
}

fn blocks_of(said: &Said) -> usize {
    match said {
        Said::Write(written) => written.blocks.len(),
        _ => 0,
    }
}

/// What was read in the place of a block.
fn found_at(checks: &[Check], doubt: &Doubt) -> Option<BufferSlice> {
    let check = checks.iter().find(|check| check.of.contains(&doubt.of))?;
    let at = check.of.iter().position(|of| *of == doubt.of)?;
    (check.buffer.blocks > 0).then(|| check.buffer.part(at as u64, 1))
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
