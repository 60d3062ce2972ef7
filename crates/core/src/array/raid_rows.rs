//! Rows of RAID levels 1, 4 and 5 (Patterson, Gibson and Katz, "A Case for Redundant Arrays of Inexpensive
//! Disks", SIGMOD 1988), block by block as Le's thesis has them (section 6.1).

use super::{ArrayError, Columns, Level, Redundancy, RowMap};
use crate::buffer::BufferSlice;
use crate::extent::Extent;
use crate::layer::Context;
use crate::units::{BlockCount, Lba};

/// Where the blocks of a RAID array lie. Every block of every row is held: members are zeroes at first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RaidRows {
    level: Level,
    columns: u64,
    rows: u64,
}

impl RaidRows {
    /// Rows over members with so many blocks each: as many as the smallest has.
    ///
    /// # Errors
    /// When there are too few or too many.
    pub fn new(
        level: Level,
        members: impl ExactSizeIterator<Item = BlockCount>,
    ) -> Result<RaidRows, ArrayError> {
        let columns = members.len();
        let (least, most) = level.members();
        if !(least..=most).contains(&columns) {
            return Err(ArrayError::Members { found: columns, level });
        }
        let rows = members.min().unwrap_or_default().0;
        Ok(RaidRows { level, columns: columns as u64, rows })
    }

    /// Blocks of a member that are in rows.
    pub fn used(&self) -> BlockCount {
        BlockCount(self.rows)
    }

    /// Blocks of a row that are the host's.
    pub fn data_columns(&self) -> u64 {
        match self.level {
            Level::Raid1 => 1,
            Level::Raid4 | Level::Raid5 => self.columns - 1,
        }
    }

    /// Blocks that the host has.
    pub fn blocks(&self) -> BlockCount {
        BlockCount(self.rows * self.data_columns())
    }

    /// The column and the row of a block. Of copies the column is the first.
    #[inline]
    pub fn place(&self, block: u64) -> (usize, u64) {
        let data = self.data_columns();
        let (index, row) = (block % data, block / data);
        let behind_parity = self.level == Level::Raid5 && index >= row % self.columns;
        ((index + u64::from(behind_parity)) as usize, row)
    }
}

impl RowMap for RaidRows {
    fn columns(&self) -> usize {
        self.columns as usize
    }

    fn redundancy(&self) -> Redundancy {
        match self.level {
            Level::Raid1 => Redundancy::Copies,
            Level::Raid4 | Level::Raid5 => Redundancy::Parity,
        }
    }

    fn rows_of(&self, _column: usize) -> u64 {
        self.rows
    }

    fn parity_of(&self, row: u64) -> usize {
        match self.level {
            Level::Raid1 => 0,
            Level::Raid4 => self.columns as usize - 1,
            Level::Raid5 => (row % self.columns) as usize,
        }
    }

    fn held(&self, row: u64) -> Columns {
        let all = Columns::first(self.columns as usize);
        match self.level {
            Level::Raid1 => all,
            Level::Raid4 | Level::Raid5 => all.without(Columns::of(self.parity_of(row))),
        }
    }

    fn alike_from(&self, _row: u64) -> u64 {
        u64::MAX
    }

    fn place_of(&self, _column: usize, row: u64) -> (Lba, u64) {
        (Lba(row), u64::MAX)
    }

    fn next_held(&self, _column: usize, row: u64) -> Option<u64> {
        (row < self.rows).then_some(row)
    }

    fn end_of_held(&self, _column: usize) -> u64 {
        self.rows
    }

    fn wrote(&mut self, _: usize, _: Extent, _: BufferSlice, _: &Context<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(level: Level, members: usize) -> RaidRows {
        let members = core::iter::repeat_n(BlockCount(8), members);
        RaidRows::new(level, members).expect("so many members")
    }

    #[test]
    fn parity_goes_round_in_level_5_and_stays_in_level_4() {
        // Worked by hand: four members, three data blocks a row.
        let five = rows(Level::Raid5, 4);
        let places: Vec<_> = (0..12).map(|block| five.place(block)).collect();
        let expected = [1, 2, 3, 0, 2, 3, 0, 1, 3, 0, 1, 2];
        let expected = expected.iter().enumerate().map(|(at, column)| (*column, at as u64 / 3));
        assert_eq!(places, expected.collect::<Vec<_>>());
        assert_eq!((0..5).map(|row| five.parity_of(row)).collect::<Vec<_>>(), [0, 1, 2, 3, 0]);
        let four = rows(Level::Raid4, 4);
        assert_eq!([four.place(0), four.place(4), four.place(8)], [(0, 0), (1, 1), (2, 2)]);
        assert_eq!(four.parity_of(7), 3);
        assert_eq!(four.blocks(), BlockCount(24));
        let one = rows(Level::Raid1, 3);
        assert_eq!((one.place(5), one.blocks()), ((0, 5), BlockCount(8)));
    }
}
