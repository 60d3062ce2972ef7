//! What stood in rows when writes were noted, as far as the records tell.

use crate::array::raid4smr::contents::Contents;
use crate::array::{Columns, RowMap};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// What stands in rows that the records speak of.
#[derive(Debug, Default)]
pub struct Standing {
    rows: BTreeMap<u64, Columns>,
    /// Places that the homes will have in the spare band row.
    pub collecting: Vec<u64>,
}

impl Standing {
    fn of(&self, row: u64, contents: &Contents) -> Columns {
        self.rows.get(&row).copied().unwrap_or_else(|| contents.held(row))
    }

    /// A write puts blocks by column into rows. True when something stood in one of them.
    pub fn write(&mut self, blocks: &[(usize, u64)], contents: &Contents) -> bool {
        let stood = blocks.iter().any(|(_, row)| !self.of(*row, contents).is_empty());
        for (column, row) in blocks {
            let all = self.of(*row, contents).or(Columns::of(*column));
            self.rows.insert(*row, all);
        }
        stood
    }

    /// A collection to a band of the homes is done.
    pub fn collected(&mut self, to: u64, contents: &Contents) {
        let (band_blocks, homes) = (contents.bands().band_blocks(), contents.data());
        let first = to * band_blocks;
        for row in first..first + band_blocks {
            let slot = self.of(row, contents).and(Columns::of(homes));
            self.rows.insert(row, slot);
        }
        let places = core::mem::take(&mut self.collecting).into_iter();
        for place in places.filter(|place| *place < band_blocks * homes as u64) {
            let (row, home) = (first + place / homes as u64, (place % homes as u64) as usize);
            let all = self.of(row, contents).or(Columns::of(home));
            self.rows.insert(row, all);
        }
    }
}
