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
    /// What its slot may have, the newest first. The newest that can be is the right one: where a home got what the
    /// slot has, that and the homes together can be what the slot had before.
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
        for (at, known) in (0..).zip(&self.now) {
            let slot = parity.part(at, 1);
            let as_it_is = sum_of(slot, ctx);
            self.add_homes(at, known.homes, slot, ctx);
            let without_homes = sum_of(slot, ctx);
            let is_either = |sum: &&u32| **sum == as_it_is || **sum == without_homes;
            let sum = *known.sums.iter().find(is_either).ok_or(IoError::Lost)?;
            if sum == as_it_is {
                self.add_homes(at, known.homes, slot, ctx);
            }
        }
        let operation = (Operation::WRITE, Cause::Parity);
        Ok(rows.issue(word, contents.parity(), operation, self.extent, parity, contents, ctx))
    }

    /// Adds the homes of a row to a block, or takes them out where they are in it.
    fn add_homes(&self, at: u64, homes: Columns, to: BufferSlice, ctx: &mut Context<'_>) {
        homes.iter().for_each(|home| ctx.xor(self.buffers[home].part(at, 1), to));
    }

    /// Gives its memory back.
    pub fn release(&mut self, ctx: &mut Context<'_>) {
        self.buffers.drain(..).for_each(|buffer| ctx.release(buffer));
    }
}

fn sum_of(block: BufferSlice, ctx: &Context<'_>) -> u32 {
    let mut sums = Vec::new();
    ctx.checksum(block, &mut sums);
    sums[0]
}
