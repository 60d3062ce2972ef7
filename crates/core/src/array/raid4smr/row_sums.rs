//! What the blocks of rows must be: of each row a word for every home and for the slot. The tables lie in rows of their
//! own behind all others, which only the data disk has, so that the parity disk has a copy of them.

use super::layout::Raid4SmrLayout;
use crate::array::bits::Bits;
use crate::array::sums::Sums;
use crate::buffer::BufferSlice;
use crate::checksums::{NOTHING, word_of};
use crate::extent::Extent;
use crate::layer::Context;
use crate::lifecycle::Uuid;
use crate::saved::SavedValue;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

/// The checksums of the blocks of rows. A table is one block, and has the words of some rows.
#[derive(Debug, SavedValue)]
pub struct RowSums {
    tables: Sums,
    /// Words of a row, and rows of a table.
    row_words: u64,
    table_rows: u64,
    /// The rows in which the tables lie.
    rows: Extent,
    /// Tables that were written once; of others nothing is known.
    written: Bits,
    /// Tables with words that the disks do not have, and whether they are held in memory for that.
    changed: BTreeMap<u64, bool>,
    /// Words of tables that are not in memory, in the order in which they were set.
    to_set: BTreeMap<u64, Vec<(u64, u32)>>,
    scratch: Vec<u32>,
}

impl RowSums {
    /// Nothing known of rows before `first_row`, which is the first of the tables.
    pub fn new(layout: &Raid4SmrLayout, first_row: u64, memory_bytes: u64) -> RowSums {
        let shape = layout.table_shape();
        RowSums {
            tables: Sums::new(shape, layout.tables().start.0, memory_bytes),
            row_words: layout.row_words,
            table_rows: layout.table_rows,
            rows: Extent::new(first_row, shape.regions),
            written: Bits::default(),
            changed: BTreeMap::new(),
            to_set: BTreeMap::new(),
            scratch: Vec::new(),
        }
    }

    /// The set is known: tables of another one are not taken.
    pub fn of_set(&mut self, set: Uuid) {
        self.tables.of_set(set);
    }

    /// The rows of the tables.
    pub fn rows(&self) -> Extent {
        self.rows
    }

    /// The row of a table.
    pub fn row_of(&self, table: u64) -> Extent {
        Extent::new(self.rows.start.0 + table, 1)
    }

    /// Which tables were written once.
    pub fn written(&self) -> &Bits {
        &self.written
    }

    /// Tables were written once, as a checkpoint says.
    pub fn restore_written(&mut self, written: Bits) {
        self.written = written;
    }

    /// The table in a row was written.
    pub fn wrote(&mut self, row: u64) {
        self.written.set(row - self.rows.start.0, true);
    }

    /// No disk can give the table in a row any more.
    pub fn lost(&mut self, row: u64) {
        if let Some(table) = row.checked_sub(self.rows.start.0) {
            self.written.set(table, false);
        }
    }

    /// The tables of rows were written.
    pub fn wrote_all(&mut self, rows: Extent) {
        self.tables_of(rows).for_each(|table| self.written.set(table, true));
    }

    /// The tables of rows are to be written, whatever they say.
    pub fn change_all(&mut self, rows: Extent) {
        self.tables_of(rows).for_each(|table| self.change(table));
    }

    /// The tables of rows.
    pub fn tables_of(&self, rows: Extent) -> RangeInclusive<u64> {
        rows.start.0 / self.table_rows..=(rows.end().0 - 1) / self.table_rows
    }

    /// The tables of rows, of those that have some.
    fn tables_of_some(&self, rows: Extent) -> Option<RangeInclusive<u64>> {
        let end = rows.end().0.min(self.rows.start.0);
        (rows.start.0 < end).then(|| self.tables_of(Extent::new(rows.start.0, end - rows.start.0)))
    }

    /// Holds the tables of rows in memory until [`release`](Self::release). False while one is being read.
    pub fn hold(&mut self, rows: Extent) -> bool {
        self.tables_of_some(rows).is_none_or(|tables| self.tables.hold(tables))
    }

    /// The tables of rows may leave the memory.
    pub fn release(&mut self, rows: Extent) {
        self.tables_of_some(rows)
            .into_iter()
            .flatten()
            .for_each(|table| self.tables.release(table));
    }

    fn index_of(&self, column: usize, row: u64) -> u64 {
        self.tables.shape().table_rows() + row * self.row_words + column as u64
    }

    /// A table has words that the disks do not have.
    fn change(&mut self, table: u64) {
        if !self.changed.contains_key(&table) {
            let is_held = self.tables.hold_known(table);
            self.changed.insert(table, is_held);
        }
    }

    fn set_word(&mut self, column: usize, row: u64, word: u32) {
        let (table, index) = (row / self.table_rows, self.index_of(column, row));
        self.change(table);
        match self.tables.is_known(table) {
            true => self.tables.set_word(index, word),
            false => self.to_set.entry(table).or_default().push((index, word)),
        }
    }

    /// The block of a row has a checksum from now on.
    pub fn set(&mut self, column: usize, row: u64, sum: u32) {
        self.set_word(column, row, word_of(sum));
    }

    /// Blocks of rows are what is in a buffer from now on.
    pub fn set_all(&mut self, column: usize, rows: Extent, data: BufferSlice, ctx: &Context<'_>) {
        let mut sums = core::mem::take(&mut self.scratch);
        sums.clear();
        ctx.checksum(data, &mut sums);
        for (row, sum) in (rows.start.0..).zip(&sums) {
            self.set(column, row, *sum);
        }
        self.scratch = sums;
    }

    /// Nobody knows what the blocks of rows are.
    pub fn forget(&mut self, rows: Extent) {
        for row in rows.start.0..rows.end().0.min(self.rows.start.0) {
            (0..self.row_words as usize).for_each(|column| self.set_word(column, row, NOTHING));
        }
    }

    /// Of the homes in rows the disks have what was set last.
    pub fn forget_unset_homes(&mut self, rows: Extent) {
        let homes = self.row_words - 1;
        let first = self.index_of(0, rows.start.0);
        let end = self.index_of(0, rows.end().0);
        for table in self.tables_of(rows) {
            if let Some(words) = self.to_set.get_mut(&table) {
                let is_home = |index: u64| (index - first) % self.row_words < homes;
                words.retain(|(index, _)| !((first..end).contains(index) && is_home(*index)));
            }
        }
    }

    /// The next table that must be read, and whether it was ever written. Its table is settled in the end.
    pub fn next_wanted(&mut self) -> Option<(u64, bool)> {
        let table = self.tables.next_wanted()?;
        Some((table, self.written.get(table)))
    }

    /// A table was read.
    pub fn take(&mut self, table: u64, block: BufferSlice, ctx: &Context<'_>) {
        self.tables.take(table, block, ctx);
    }

    /// What is known of a table is all that can be known, beside what was set meanwhile.
    pub fn settle(&mut self, table: u64) {
        self.tables.settle(table);
        for (index, word) in self.to_set.remove(&table).unwrap_or_default() {
            self.tables.set_word(index, word);
        }
        if let Some(is_held) = self.changed.get_mut(&table) {
            *is_held = *is_held || self.tables.hold_known(table);
        }
    }

    /// The tables with words that the disks do not have, of some rows or of all.
    pub fn changed(&self, rows: Option<Extent>) -> Vec<u64> {
        let tables = rows.map_or(0..=u64::MAX, |rows| self.tables_of(rows));
        self.changed.range(tables).map(|(table, _)| *table).collect()
    }

    /// Holds a table in memory that is to be written. False while it is being read.
    pub fn hold_to_write(&mut self, table: u64) -> bool {
        match self.changed.get(&table) {
            Some(true) => true,
            Some(false) if self.tables.hold(table..=table) => {
                self.changed.insert(table, true);
                true
            }
            _ => false,
        }
    }

    /// Puts a table that is held into a buffer. What is set from now on changes it anew.
    pub fn seal(&mut self, table: u64, block: BufferSlice, ctx: &mut Context<'_>) {
        self.tables.seal(table, block, ctx);
        self.changed.remove(&table);
    }

    /// A table was written, or could not be.
    pub fn write_ended(&mut self, table: u64, has_failed: bool) {
        if has_failed {
            self.change(table);
        }
        self.tables.release(table);
    }

    /// True of a block that may lie in a row of the tables.
    pub fn is_table(&self, row: u64, block: &[u8], ctx: &Context<'_>) -> bool {
        self.tables.is_page(row - self.rows.start.0, block, ctx)
    }

    /// True when a block with a checksum is what a row must have, or nobody knows. The table is held.
    pub fn is_right(&self, column: usize, row: u64, sum: u32) -> bool {
        self.tables.is_right(self.index_of(column, row), sum)
    }
}
