//! Which blocks of some rows could not be read, or were not what they must be.

use super::Columns;
use crate::extent::Extent;
use crate::saved::SavedValue;
use alloc::vec::Vec;

/// For rows from a first one on the columns that cannot give their block. It takes no memory where there are
/// none.
#[derive(Debug, Default, SavedValue)]
pub struct BadRows {
    first: u64,
    rows: Vec<Columns>,
}

impl BadRows {
    /// None, of rows from `first` on.
    pub fn clear(&mut self, first: u64) {
        self.first = first;
        self.rows.clear();
    }

    /// True when there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The columns that cannot give their block of a row.
    #[inline]
    pub fn at(&self, row: u64) -> Columns {
        let at = row.checked_sub(self.first).and_then(|at| self.rows.get(at as usize));
        at.copied().unwrap_or(Columns::NONE)
    }

    /// A column cannot give its blocks of some rows.
    pub fn add(&mut self, column: usize, rows: Extent) {
        let (first, end) = (rows.start.0 - self.first, rows.end().0 - self.first);
        if self.rows.len() < end as usize {
            self.rows.resize(end as usize, Columns::NONE);
        }
        for bad in &mut self.rows[first as usize..end as usize] {
            *bad = bad.or(Columns::of(column));
        }
    }

    /// For how many rows from this one on the same columns cannot give their block.
    pub fn alike_from(&self, row: u64) -> u64 {
        if self.is_empty() {
            return u64::MAX;
        }
        let here = self.at(row);
        let end = self.first + self.rows.len() as u64;
        let other = (row + 1..end).find(|other| self.at(*other) != here);
        match other {
            Some(other) => other - row,
            None if row < end => end - row,
            None => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_alike_end_where_others_begin() {
        let mut bad = BadRows::default();
        bad.clear(10);
        assert_eq!((bad.at(12), bad.alike_from(10)), (Columns::NONE, u64::MAX));
        bad.add(1, Extent::new(12, 2));
        bad.add(0, Extent::new(13, 1));
        assert_eq!(bad.at(13), Columns::first(2));
        let alike: Vec<u64> = (10..15).map(|row| bad.alike_from(row)).collect();
        assert_eq!(alike, [2, 1, 1, 1, u64::MAX]);
    }
}
