//! Rows whose members are compared, and made right where they are not.

use super::operations::Owner;
use super::plan::{Method, Segment};
use super::scrubbed::Scrubbed;
use super::task::{Step, Task, Work};
use super::{Columns, Members, Redundancy, RowMap, Rows};
use crate::counters::Counter;
use crate::extent::Extent;
use crate::layer::Context;
use crate::notice::Notice;
use crate::operation::{Cause, Operation};
use alloc::vec::Vec;

impl Rows {
    /// Compares the members in some rows: what fails its checksum, or cannot be read, is written again from
    /// the others. After a crash that is what was perhaps being written, so one of the copies becomes what
    /// all have. The end comes with the word.
    pub fn start_scrub<M: RowMap>(
        &mut self,
        word: u64,
        rows: Extent,
        is_after_crash: bool,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        let found = Scrubbed::default();
        let task = self.new_task(Work::Scrub { word, is_after_crash, found }, rows);
        self.tasks[task].cause = Cause::Scrub;
        self.lock_or_wait(task, map, ctx);
    }

    /// All that could be read of rows that are compared is there.
    pub(super) fn compare<M: RowMap>(
        &mut self,
        task: u32,
        is_after_crash: bool,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        if map.redundancy() == Redundancy::Parity {
            return self.compare_sums(task, map, ctx);
        }
        let entry = &mut self.tasks[task];
        entry.error = None;
        let sums = ReadSums::of(entry, &self.members, ctx);
        let mut found = Scrubbed::default();
        let rows = entry.rows;
        ctx.count(Counter::ComparedBlocks, rows.blocks.0);
        entry.segments.clear();
        for row in rows.start.0..rows.end().0 {
            // One that has come back meanwhile was not read.
            let was_read = entry.written[(row - rows.start.0) as usize];
            let present = self.members.with_row(row).and(was_read);
            let Some(good) =
                sums.good(row, present.without(entry.bad.at(row)), is_after_crash, map)
            else {
                if !is_after_crash {
                    tell_found(&self.members, present, (row, false), map, ctx);
                }
                found.wrong += u64::from(present.len());
                found.unreadable += u64::from(map.list_unreadable(0, Extent::new(row, 1), ctx));
                continue;
            };
            if is_after_crash {
                let data = entry.part(entry.old[good.source], Extent::new(row, 1));
                map.wrote(0, Extent::new(row, 1), data, ctx);
            }
            let wrong = present.without(good.columns);
            if !is_after_crash {
                tell_found(&self.members, wrong, (row, true), map, ctx);
            }
            found.wrong += u64::from(wrong.len());
            found.repaired += u64::from(wrong.len());
            for column in wrong.iter() {
                entry.make_new(column, ctx);
                let one = Extent::new(row, 1);
                ctx.copy(
                    entry.part(entry.old[good.source], one),
                    entry.part(entry.new[column], one),
                );
            }
            if !wrong.is_empty() {
                entry.segments.push(Segment {
                    rows: Extent::new(row, 1),
                    parity: 0,
                    written: wrong,
                    read: Columns::NONE,
                    method: Method::None,
                });
            }
        }
        if !is_after_crash {
            ctx.count(Counter::RepairedBlocks, found.repaired);
        }
        if let Work::Scrub { found: of_task, .. } = &mut self.tasks[task].work {
            *of_task = found;
        }
        self.begin_writing(task, map, ctx);
    }

    /// Plans what is read to compare rows: the block of every member that has it.
    pub(super) fn read_to_compare<M: RowMap>(&mut self, task: u32, map: &M, ctx: &mut Context<'_>) {
        let rows = self.tasks[task].rows;
        self.tasks[task].written.resize(rows.blocks.0 as usize, Columns::NONE);
        for column in 0..self.members.columns() {
            let mut row = rows.start.0;
            while row < rows.end().0 {
                let alike = self.members.alike_from(row).min(rows.end().0 - row);
                let alike = alike.min(map.alike_from(row));
                let run = Extent::new(row, alike);
                row += alike;
                if !self.members.with_row(run.start.0).and(columns_of(map, run.start.0)).has(column)
                {
                    continue;
                }
                self.tasks[task].make_old(column, ctx);
                let entry = &mut self.tasks[task];
                for read in
                    &mut entry.written[(run.start.0 - rows.start.0) as usize..][..alike as usize]
                {
                    *read = read.or(Columns::of(column));
                }
                let buffer = entry.part(entry.old[column], run);
                let to = (column, self.members.port(column));
                let operation = (Operation::Read, Cause::Scrub);
                let owner = Owner::Task(task);
                let issued = self.operations.issue(owner, to, operation, run, buffer, map, ctx);
                self.tasks[task].outstanding += issued;
            }
        }
        self.tasks[task].step = Step::Reading;
    }
}

/// The columns whose blocks of a row are what they must be.
pub(super) fn columns_of<M: RowMap>(map: &M, row: u64) -> Columns {
    let held = map.held(row);
    match map.redundancy() {
        Redundancy::Parity if !held.is_empty() => held.or(Columns::of(map.parity_of(row))),
        _ => held,
    }
}

/// Says of blocks of a row that they were wrong, and whether they are written again.
pub(super) fn tell_found<M: RowMap>(
    members: &Members,
    columns: Columns,
    (row, is_repaired): (u64, bool),
    map: &M,
    ctx: &mut Context<'_>,
) {
    for column in columns.iter() {
        let member = members.port(column).0;
        let block = map.place_of(column, row).0.0;
        ctx.notice(Notice::ScrubFound { member, block, is_repaired });
    }
}

/// The block of a row that all members must have.
struct Good {
    /// A column that has it.
    source: usize,
    /// All columns that have it.
    columns: Columns,
}

/// The checksums of what was read of each column.
struct ReadSums {
    first: u64,
    by_column: Vec<Vec<u32>>,
}

impl ReadSums {
    fn of(task: &Task, members: &Members, ctx: &Context<'_>) -> ReadSums {
        let of_column = |column: usize| {
            let mut sums = Vec::new();
            if task.old[column].blocks > 0 {
                ctx.checksum(task.old[column], &mut sums);
            }
            sums
        };
        let by_column = (0..members.columns()).map(of_column).collect();
        ReadSums { first: task.rows.start.0, by_column }
    }

    fn sum(&self, column: usize, row: u64) -> u32 {
        self.by_column[column].get((row - self.first) as usize).copied().unwrap_or_default()
    }

    /// Which copy of a row is right, of those that could be read. None when none is.
    fn good<M: RowMap>(
        &self,
        row: u64,
        readable: Columns,
        is_after_crash: bool,
        map: &M,
    ) -> Option<Good> {
        let is_right = |column: &usize| map.is_right(row, self.sum(*column, row));
        let right = readable.iter().find(is_right);
        // Of what was perhaps being written no checksum is known.
        let source = right.or(readable.iter().next().filter(|_| is_after_crash))?;
        let sum = self.sum(source, row);
        let same = readable.iter().filter(|column| self.sum(*column, row) == sum);
        let columns = same.fold(Columns::NONE, |all, column| all.or(Columns::of(column)));
        Some(Good { source, columns })
    }
}
