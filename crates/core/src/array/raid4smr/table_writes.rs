//! Tables of checksums on their way to the disks.

use super::contents::Contents;
use super::row_sums::RowSums;
use super::word::Word;
use crate::array::Rows;
use crate::error::IoError;
use crate::layer::Context;
use crate::operation::{Cause, Operation};
use crate::units::BlockCount;
use alloc::vec::Vec;

/// Writes in flight at most.
const WRITES_MAX: u32 = 16;

/// For whom tables are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Behind {
    /// The array comes up.
    Opening,
    /// A checkpoint is made.
    Checkpoint,
    /// A collection, by its number.
    Collection(u64),
}

/// Tables that are being written, for one purpose at a time.
#[derive(Debug, Default)]
pub struct TableWrites {
    behind: Option<Behind>,
    /// Those that are not on their way yet.
    left: Vec<u64>,
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
        ctx: &mut Context<'_>,
    ) -> Option<(Behind, Result<(), IoError>)> {
        self.behind?;
        while self.outstanding < WRITES_MAX
            && let Some(table) = self.left.last().copied()
            && let Some(sums) = &mut contents.sums
            && sums.hold_to_write(table)
        {
            self.left.pop();
            self.outstanding += 1;
            write(table, rows, contents, ctx);
        }
        if self.outstanding > 0 || !self.left.is_empty() {
            return None;
        }
        let behind = self.behind.take()?;
        Some((behind, self.error.take().map_or(Ok(()), Err)))
    }

    /// A table was written, or could not be.
    pub fn ended(&mut self, table: u64, result: Result<(), IoError>, sums: &mut RowSums) {
        sums.write_ended(table, result.is_err());
        self.outstanding -= 1;
        self.error = self.error.or(result.err());
    }
}

fn write(table: u64, rows: &mut Rows, contents: &mut Contents, ctx: &mut Context<'_>) {
    let column = contents.data();
    let Some(sums) = &mut contents.sums else { return };
    let of_table = sums.row_of(table);
    let block = ctx.allocate(BlockCount(1));
    sums.seal(table, block, ctx);
    let operation = (Operation::WRITE, Cause::Metadata);
    let job = rows.jobs.begin_own(Word::TableWritten(table).number(), operation, block);
    let task = rows.new_write(job);
    rows.set_rows(task, of_table);
    rows.put(task, column, of_table.start.0, Some(block), ctx);
    ctx.release(block);
    rows.start(task, None, contents, ctx);
    rows.jobs.end_part(job, Ok(()));
}
