//! Tables of checksums on their way to the disks.

use super::contents::Contents;
use super::notes::{Notes, TOKEN_TABLES};
use super::row_sums::RowSums;
use super::word::Word;
use crate::array::Rows;
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::layer::Context;
use crate::ledger::When;
use crate::operation::{Cause, Operation};
use crate::saved::SavedValue;
use crate::units::BlockCount;
use alloc::vec::Vec;

/// Writes in flight at most.
const WRITES_MAX: u32 = 16;

/// For whom tables are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub enum Behind {
    /// The array comes up.
    Opening,
    /// A checkpoint is made.
    Checkpoint,
    /// A collection, by its number.
    Collection(u64),
}

/// Tables that are being written, for one purpose at a time. A table has words of writes that only records tell of. It
/// goes out behind these: where one of its two copies were written and the record lost, nobody would know that the copies
/// differ.
#[derive(Debug, Default, SavedValue)]
pub struct TableWrites {
    behind: Option<Behind>,
    /// Those that are not on their way yet.
    left: Vec<u64>,
    /// Those that go out when all is durable that was recorded before.
    sealed: Vec<(u64, BufferSlice)>,
    awaits_records: bool,
    outstanding: u32,
    error: Option<IoError>,
}

impl TableWrites {
    /// Has tables written.
    pub fn begin(&mut self, behind: Behind, tables: Vec<u64>) {
        debug_assert!(self.behind.is_none(), "tables are written already");
        (self.behind, self.left, self.error) = (Some(behind), tables, None);
    }

    /// Begins to write those that are in memory. Returns for whom all are written, and whether they are.
    pub fn go_on(
        &mut self,
        rows: &mut Rows,
        contents: &mut Contents,
        notes: &mut Notes,
        ctx: &mut Context<'_>,
    ) -> Option<(Behind, Result<(), IoError>)> {
        let behind = self.behind?;
        if let Some(error) = notes.failure().filter(|_| behind != Behind::Opening) {
            self.fail(error, contents, ctx);
        }
        while !self.awaits_records
            && self.outstanding < WRITES_MAX
            && let Some(table) = self.left.last().copied()
            && let Some(sums) = &mut contents.sums
            && sums.hold_to_write(table)
        {
            self.left.pop();
            self.outstanding += 1;
            let block = ctx.allocate(BlockCount(1));
            sums.seal(table, block, ctx);
            self.sealed.push((table, block));
        }
        if !self.sealed.is_empty() && !self.awaits_records {
            self.awaits_records = true;
            // When the array comes up, the records are what was read.
            if behind == Behind::Opening || notes.when_durable(TOKEN_TABLES, ctx) == When::Now {
                self.records_are_durable(rows, contents, ctx);
            }
        }
        if self.outstanding > 0 || !self.left.is_empty() {
            return None;
        }
        self.behind = None;
        Some((behind, self.error.take().map_or(Ok(()), Err)))
    }

    /// All is durable that was recorded before the tables were sealed.
    pub fn records_are_durable(
        &mut self,
        rows: &mut Rows,
        contents: &mut Contents,
        ctx: &mut Context<'_>,
    ) {
        self.awaits_records = false;
        for (table, block) in self.sealed.drain(..) {
            write(table, block, rows, contents, ctx);
        }
    }

    /// Nothing can be recorded any more: what waits for records is not written.
    pub fn fail(&mut self, error: IoError, contents: &mut Contents, ctx: &mut Context<'_>) {
        self.awaits_records = false;
        if self.behind.is_none() {
            return;
        }
        self.error = self.error.or(Some(error));
        self.left.clear();
        for (table, block) in self.sealed.drain(..) {
            ctx.release(block);
            self.outstanding -= 1;
            contents.sums.iter_mut().for_each(|sums| sums.write_ended(table, true));
        }
    }

    /// A table was written, or could not be.
    pub fn ended(&mut self, table: u64, result: Result<(), IoError>, sums: &mut RowSums) {
        sums.write_ended(table, result.is_err());
        self.outstanding -= 1;
        self.error = self.error.or(result.err());
    }
}

fn write(
    table: u64,
    block: BufferSlice,
    rows: &mut Rows,
    contents: &mut Contents,
    ctx: &mut Context<'_>,
) {
    let column = contents.data();
    let Some(sums) = &contents.sums else { return };
    let of_table = sums.row_of(table);
    let operation = (Operation::WRITE, Cause::Metadata);
    let job = rows.jobs.begin_own(Word::TableWritten(table).number(), operation, block);
    let task = rows.new_write(job);
    rows.set_rows(task, of_table);
    rows.put(task, column, of_table.start.0, Some(block), ctx);
    ctx.release(block);
    rows.start(task, None, contents, ctx);
    rows.jobs.end_part(job, Ok(()));
}
