//! Rows of which every member has the same blocks, and what these must be.

use super::layout::Raid1Layout;
use super::records::UNREADABLE_MAX;
use crate::array::status::first_runs;
use crate::array::sums::Sums;
use crate::array::{Columns, Redundancy, RowMap};
use crate::buffer::BufferSlice;
use crate::extent::Extent;
use crate::layer::Context;
use crate::saved::Saved;
use crate::units::{BLOCK_BYTES, Lba};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// Blocks of which the runs are looked for when somebody asks.
const UNREADABLE_LISTED_MAX: usize = 1024;

/// The rows of an array of copies.
#[derive(Debug, Saved)]
pub struct Copies {
    columns: usize,
    rows: u64,
    /// The block of a member in which the first row lies.
    first_block: u64,
    /// What the blocks must be; none where nothing is kept.
    pub sums: Option<Sums>,
    /// Rows of which no member has the block.
    pub unreadable: BTreeSet<u64>,
    /// Those of them that are not recorded yet.
    newly_unreadable: Vec<u64>,
    scratch: Vec<u32>,
}

impl Copies {
    /// So many rows from the first block of each member on.
    pub fn volatile(columns: usize, rows: u64) -> Copies {
        Copies {
            columns,
            rows,
            first_block: 0,
            sums: None,
            unreadable: BTreeSet::new(),
            newly_unreadable: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// The rows of a layout, with tables of which so many bytes are in memory.
    pub fn durable(columns: usize, layout: &Raid1Layout, memory_bytes: u64) -> Copies {
        let first_block = layout.journal_blocks;
        let sums = Sums::new(layout.shape, first_block, memory_bytes);
        Copies { first_block, sums: Some(sums), ..Copies::volatile(columns, layout.shape.rows()) }
    }

    /// The row of a block of the host.
    pub fn row_of(&self, block: u64) -> u64 {
        self.table_rows() + block
    }

    fn table_rows(&self) -> u64 {
        self.sums.as_ref().map_or(0, |sums| sums.shape().table_rows())
    }

    /// The rows of some that are no tables.
    fn data_of(&self, rows: Extent) -> Option<Extent> {
        let tables = self.table_rows();
        let (start, end) = (rows.start.0.max(tables), rows.end().0);
        (start < end).then(|| Extent::new(start, end - start))
    }

    /// The first runs of blocks of the host that are unreadable, of a long one the beginning.
    pub fn unreadable_runs(&self) -> Vec<(u64, u64)> {
        let rows = self.unreadable.range(self.table_rows()..).take(UNREADABLE_LISTED_MAX);
        first_runs(rows.map(|row| row - self.table_rows()))
    }

    /// The rows that were found to be unreadable since the last call.
    pub fn take_newly_unreadable(&mut self) -> Vec<u64> {
        core::mem::take(&mut self.newly_unreadable)
    }

    /// Rows were written: those of them that were unreadable are not any more. Returns them.
    pub fn take_readable(&mut self, rows: Extent) -> Vec<u64> {
        let range = rows.start.0..rows.end().0;
        let found: Vec<u64> = self.unreadable.range(range).copied().collect();
        found.iter().for_each(|row| {
            self.unreadable.remove(row);
        });
        found
    }
}

impl RowMap for Copies {
    fn columns(&self) -> usize {
        self.columns
    }

    fn redundancy(&self) -> Redundancy {
        Redundancy::Copies
    }

    fn rows_of(&self, _column: usize) -> u64 {
        self.rows
    }

    fn parity_of(&self, _row: u64) -> usize {
        0
    }

    fn end_of_part(&self, row: u64) -> u64 {
        let tables = self.table_rows();
        if row < tables { tables } else { self.rows }
    }

    fn held(&self, _row: u64) -> Columns {
        Columns::first(self.columns)
    }

    fn alike_from(&self, _row: u64) -> u64 {
        u64::MAX
    }

    fn place_of(&self, _column: usize, row: u64) -> (Lba, u64) {
        (Lba(self.first_block + row), u64::MAX)
    }

    fn next_held(&self, _column: usize, row: u64) -> Option<u64> {
        (row < self.rows).then_some(row)
    }

    fn end_of_held(&self, _column: usize) -> u64 {
        self.rows
    }

    fn wrote(&mut self, column: usize, rows: Extent, data: BufferSlice, ctx: &Context<'_>) {
        // The same goes to every column.
        if column == 0
            && let (Some(of_data), Some(sums)) = (self.data_of(rows), &mut self.sums)
        {
            let skipped = of_data.start.0 - rows.start.0;
            sums.set(of_data, data.part(skipped, of_data.blocks.0), ctx);
        }
    }

    fn is_unsure(&mut self, rows: Extent) {
        if let (Some(of_data), Some(sums)) = (self.data_of(rows), &mut self.sums) {
            sums.forget(of_data);
        }
    }

    fn hold_sums(&mut self, rows: Extent) -> bool {
        let of_data = self.data_of(rows);
        match (&mut self.sums, of_data) {
            (Some(sums), Some(rows)) => sums.hold(sums.shape().regions_of(rows)),
            _ => true,
        }
    }

    fn release_sums(&mut self, rows: Extent) {
        if let (Some(rows), Some(sums)) = (self.data_of(rows), &mut self.sums) {
            for region in sums.shape().regions_of(rows) {
                sums.release(region);
            }
        }
    }

    fn find_wrong(
        &mut self,
        _column: usize,
        rows: Extent,
        data: BufferSlice,
        ctx: &Context<'_>,
        wrong: &mut dyn FnMut(u64),
    ) {
        let Some(sums) = &self.sums else { return };
        let tables = sums.shape().table_rows();
        let in_tables = tables.saturating_sub(rows.start.0).min(rows.blocks.0);
        if in_tables > 0
            && let Some(bytes) = ctx.metadata(data.part(0, in_tables))
        {
            for (row, page) in (rows.start.0..).zip(bytes.chunks_exact(BLOCK_BYTES as usize)) {
                if !sums.is_page(row, page, ctx) {
                    wrong(row);
                }
            }
        }
        self.scratch.clear();
        ctx.checksum(data, &mut self.scratch);
        for (row, sum) in (rows.start.0..).zip(&self.scratch).skip(in_tables as usize) {
            if !sums.is_right(row, *sum) || self.unreadable.contains(&row) {
                wrong(row);
            }
        }
    }

    fn is_right(&self, row: u64, sum: u32) -> bool {
        match &self.sums {
            Some(sums) if row >= sums.shape().table_rows() => sums.is_right(row, sum),
            _ => true,
        }
    }

    fn list_unreadable(&mut self, _column: usize, rows: Extent, _ctx: &mut Context<'_>) -> bool {
        let is_kept = self.sums.is_some() && self.data_of(rows) == Some(rows);
        if !is_kept || self.unreadable.len() + rows.blocks.0 as usize > UNREADABLE_MAX {
            return false;
        }
        for row in rows.start.0..rows.end().0 {
            if self.unreadable.insert(row) {
                self.newly_unreadable.push(row);
            }
        }
        true
    }
}
