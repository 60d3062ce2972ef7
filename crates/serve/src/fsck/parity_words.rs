//! Checksums of blocks of a parity array that its records say.

use imbrex_core::translation::{NOTHING, ZERO_SUM};
use std::collections::BTreeMap;

/// Words that the records say, which the tables may not have yet: by column and row. Of some nothing is known.
#[derive(Clone, Debug, Default)]
pub(super) struct NewWords(BTreeMap<(usize, u64), u32>);

impl NewWords {
    /// A block has a checksum, or nobody knows which.
    pub fn set(&mut self, column: usize, row: u64, sum: Option<u32>) {
        let word = sum.map_or(NOTHING, |sum| match sum ^ ZERO_SUM {
            word if word >= NOTHING => word - 2,
            word => word,
        });
        self.0.insert((column, row), word);
    }

    /// The word of a block, if the records say one.
    pub fn of(&self, column: usize, row: u64) -> Option<u32> {
        self.0.get(&(column, row)).copied()
    }

    /// The tables have what homes have in rows.
    pub fn forget_homes(&mut self, data: usize, (start, end): (u64, u64)) {
        self.0.retain(|(column, row), _| *column == data || !(start..end).contains(row));
    }
}
