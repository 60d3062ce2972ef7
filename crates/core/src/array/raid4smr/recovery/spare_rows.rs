//! The rows of the spare band row after a crash in a collection, where the data disk is missing.
//!
//! Their slots are in the parity alone, and the homes may be in it beside them or not. The checksums of the slots
//! tell.

use super::doubt::ROWS_MAX;
use crate::array::raid4smr::contents::Contents;
use crate::array::{Columns, Rows};
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::operation::{Cause, Operation};
use crate::units::BlockCount;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// What is known of a row.
#[derive(Clone, Debug, Default)]
pub struct SpareRow {
    /// What its slot may have.
    pub sums: Vec<u32>,
    /// The homes that are perhaps in the parity, all of them or none.
    pub homes: Columns,
}

/// Rows whose parity is to be that of their slot alone.
#[derive(Debug, Default)]
pub struct SpareRows {
    rows: BTreeMap<u64, SpareRow>,
    now: Vec<SpareRow>,
    extent: Extent,
    /// What was read: the homes, and behind them the parity.
    buffers: Vec<BufferSlice>,
}

impl SpareRows {
    /// Adds a row.
    pub fn add(&mut self, row: u64, known: SpareRow) {
        self.rows.insert(row, known);
    }

    /// Reads the next rows. Returns how many operations have begun; none when all are done.
    pub fn read_more(
        &mut self,
        word: u64,
        contents: &Contents,
        rows: &mut Rows,
        ctx: &mut Context<'_>,
    ) -> u32 {
        self.release(ctx);
        let Some((first, known)) = self.rows.pop_first() else { return 0 };
        self.now = Vec::from([known]);
        let mut end = first + 1;
        while end - first < ROWS_MAX
            && let Some(known) = self.rows.remove(&end)
        {
            self.now.push(known);
            end += 1;
        }
        self.extent = Extent::new(first, end - first);
        let mut issued = 0;
        for column in (0..contents.data()).chain([contents.parity()]) {
            let buffer = ctx.allocate(BlockCount(end - first));
            self.buffers.push(buffer);
            let operation = (Operation::Read, Cause::Parity);
            issued += rows.issue(word, column, operation, self.extent, buffer, contents, ctx);
        }
        issued
    }

    /// Writes as parity what the slots have. Returns how many operations have begun.
    ///
    /// # Errors
    /// When a slot has nothing that is known.
    pub fn write(
        &mut self,
        word: u64,
        contents: &Contents,
        rows: &mut Rows,
        ctx: &mut Context<'_>,
    ) -> Result<u32, IoError> {
        let parity = *self.buffers.last().expect("rows that were read");
        let mut sums = Vec::new();
        for (at, known) in (0..).zip(&self.now) {
            let slot = parity.part(at, 1);
            for takes_out in [false, true] {
                if takes_out {
                    known
                        .homes
                        .iter()
                        .for_each(|home| ctx.xor(self.buffers[home].part(at, 1), slot));
                }
                sums.clear();
                ctx.checksum(slot, &mut sums);
                if known.sums.contains(&sums[0]) {
                    break;
                }
            }
            if !known.sums.contains(&sums[0]) {
                return Err(IoError::Lost);
            }
        }
        let operation = (Operation::WRITE, Cause::Parity);
        Ok(rows.issue(word, contents.parity(), operation, self.extent, parity, contents, ctx))
    }

    /// Gives its memory back.
    pub fn release(&mut self, ctx: &mut Context<'_>) {
        self.buffers.drain(..).for_each(|buffer| ctx.release(buffer));
    }
}
