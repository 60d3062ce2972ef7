//! What an array layer says of its rows.

use super::Columns;
use super::bad_rows::BadRows;
use super::plan::Segment;
use crate::buffer::BufferSlice;
use crate::extent::Extent;
use crate::layer::Context;
use crate::units::Lba;
use alloc::vec::Vec;

/// How a row survives the loss of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Redundancy {
    /// Every column has a copy of the same block.
    Copies,
    /// One column has the sum of the others without carry.
    Parity,
}

/// What the rows of an array are made of. A block that is not *held* counts as zeroes in its row, whatever
/// lies there.
pub trait RowMap {
    /// How many columns there are.
    fn columns(&self) -> usize;

    /// How a row survives the loss of a column.
    fn redundancy(&self) -> Redundancy;

    /// Rows of which a column has a block: the first ones.
    fn rows_of(&self, column: usize) -> u64;

    /// The column with the parity of a row. Of copies it is no column that is written apart.
    fn parity_of(&self, row: u64) -> usize;

    /// The end of the rows that work which begins in one may have to do with: tables of checksums, which other work
    /// waits for, are worked on by themselves.
    fn end_of_part(&self, _row: u64) -> u64 {
        u64::MAX
    }

    /// True of rows whose writes the layer notes, where it does that.
    fn is_noted(&self, _rows: Extent) -> bool {
        true
    }

    /// The columns beside parity whose blocks of a row are held.
    fn held(&self, row: u64) -> Columns;

    /// For how many rows from this one on the same columns make up for any one of them.
    fn alike_from(&self, _row: u64) -> u64 {
        1
    }

    /// Where the block of a column lies on its member, and how many rows from there on lie one behind the
    /// other.
    fn place_of(&self, column: usize, row: u64) -> (Lba, u64);

    /// A spare has the place of a column from now on.
    fn spare_stepped_in(&mut self, _column: usize, _is_spare: bool) {}

    /// The first row from `row` on of which a member that is rebuilt must have the block.
    fn next_held(&self, column: usize, row: u64) -> Option<u64>;

    /// The zone of a column that must be emptied before rows from this one on are written anew.
    fn zone_from(&self, _column: usize, _row: u64) -> Option<Extent> {
        None
    }

    /// The end of what a member that is rebuilt must have, as far as is known.
    fn end_of_held(&self, column: usize) -> u64;

    /// The blocks of a column were written, with what is in `data`: they are held from now on.
    fn wrote(&mut self, column: usize, rows: Extent, data: BufferSlice, ctx: &Context<'_>);

    /// A write of some rows has failed: what their blocks are nobody knows.
    fn is_unsure(&mut self, _rows: Extent) {}

    /// Holds in memory what the blocks of rows must be, until [`release_sums`](Self::release_sums). False when that
    /// must be read first.
    fn hold_sums(&mut self, _rows: Extent) -> bool {
        true
    }

    /// What was held of rows may leave the memory.
    fn release_sums(&mut self, _rows: Extent) {}

    /// Blocks of a column were read: calls `wrong` with the row of each that is not what it must be.
    fn find_wrong(
        &mut self,
        _column: usize,
        _rows: Extent,
        _data: BufferSlice,
        _ctx: &Context<'_>,
        _wrong: &mut dyn FnMut(u64),
    ) {
    }

    /// True when the block of a row of copies is what it must be by its checksum, or nobody knows.
    fn is_right(&self, _row: u64, _sum: u32) -> bool {
        true
    }

    /// A block is wrong, and what it must be is known. True where it is to be written again in its place; otherwise the
    /// layer takes care of it.
    fn repairs_in_place(&mut self, _column: usize, _row: u64) -> bool {
        true
    }

    /// True of a block that was [listed](Self::list_unreadable) since it was asked for.
    fn is_lost(&self, _column: usize, _row: u64) -> bool {
        false
    }

    /// Blocks of a column that is rebuilt cannot be found any more. False when nobody would remember that.
    fn list_unreadable(&mut self, _column: usize, _rows: Extent, _ctx: &mut Context<'_>) -> bool {
        false
    }

    /// The parity of rows is to change for work of the layer's own: how, without what is `bad`. The rows are its alone
    /// by now.
    fn plan_own(&self, _rows: Extent, _bad: &BadRows, _segments: &mut Vec<Segment>) {}

    /// The parity of rows has changed for work of the layer's own: what it has prepared for them holds from now
    /// on.
    fn settled(&mut self, _rows: Extent) {}
}
