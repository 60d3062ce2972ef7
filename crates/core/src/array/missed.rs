//! What members that are away have missed.

use super::RegionShape;
use super::bits::Bits;
use crate::extent::Extent;
use crate::saved::SavedValue;
use crate::state::{StateError, StateReader, StateWriter};
use core::ops::Range;

/// The regions that were written while a member was out. It need not be told which: one that comes back gets
/// all of them anew, which is what it has missed and perhaps more.
#[derive(Debug, SavedValue)]
pub struct Missed {
    shape: RegionShape,
    regions: Bits,
}

impl Missed {
    /// Nothing was written.
    pub fn new(shape: RegionShape) -> Missed {
        Missed { shape, regions: Bits::default() }
    }

    /// A region was written, or is about to be.
    pub fn add(&mut self, region: u64) {
        self.regions.set(region, true);
    }

    /// Rows were written, or are about to be.
    pub fn add_rows(&mut self, rows: Extent) {
        if !rows.is_empty() {
            self.shape.regions_of(rows).for_each(|region| self.add(region));
        }
    }

    /// All members have everything.
    pub fn clear(&mut self) {
        self.regions = Bits::default();
    }

    /// True of a row that a member which was away may not have.
    pub fn has(&self, row: u64) -> bool {
        self.regions.get(self.shape.region_of(row))
    }

    /// The first row from this one on that such a member may not have.
    pub fn next_row(&self, row: u64) -> Option<u64> {
        let mut at = row;
        while at < self.shape.rows() {
            if self.has(at) {
                return Some(at);
            }
            at = self.shape.end_of_region(at);
        }
        None
    }

    /// How many of some rows such a member may not have.
    pub fn count(&self, rows: Range<u64>) -> u64 {
        let (mut at, mut count) = (rows.start, 0);
        while at < rows.end {
            let end = self.shape.end_of_region(at).min(rows.end);
            count += if self.has(at) { end - at } else { 0 };
            at = end;
        }
        count
    }

    /// The end of the rows from this one on that all were written, or all were not.
    pub fn end_of_run(&self, row: u64) -> u64 {
        self.shape.end_of_region(row)
    }

    /// Rows of the regions that were written.
    pub fn region_rows(&self) -> u64 {
        self.regions().count() as u64 * self.shape.region_rows
    }

    /// The end of the rows from this one on that such a member may not have.
    pub fn end_of_missed(&self, row: u64) -> u64 {
        let mut end = self.end_of_run(row);
        while end < self.shape.rows() && self.has(end) {
            end = self.end_of_run(end);
        }
        end
    }

    /// Adds the regions to a checkpoint.
    pub fn put(&self, words: &mut StateWriter) {
        words.put_u64(self.shape.region_rows);
        self.regions.put(words);
    }

    /// Takes the regions back from a checkpoint.
    ///
    /// # Errors
    /// When they are others.
    pub fn take(&mut self, words: &mut StateReader<'_>) -> Result<(), StateError> {
        if words.take_u64()? != self.shape.region_rows {
            return Err(StateError::new("other regions"));
        }
        self.regions = Bits::take(self.shape.regions, words)?;
        Ok(())
    }

    /// The regions, in ascending order.
    pub fn regions(&self) -> impl Iterator<Item = u64> + '_ {
        core::iter::successors(self.regions.next_set(0), |at| self.regions.next_set(at + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_the_tables_of_a_region_are_missed_together() {
        let mut missed = Missed::new(RegionShape::new(40, 10));
        assert_eq!(missed.next_row(0), None);
        missed.add(2);
        assert_eq!((missed.next_row(0), missed.next_row(3)), (Some(2), Some(24)));
        assert_eq!((missed.next_row(30), missed.next_row(34)), (Some(30), None));
        // A row of its table and its ten rows; two rows of it were given already.
        assert_eq!((missed.count(0..44), missed.count(26..44)), (11, 8));
        assert_eq!((missed.count(2..25), missed.count(34..44), missed.count(5..5)), (2, 0, 0));
        assert!(missed.has(2) && missed.has(24) && !missed.has(23) && !missed.has(34));
        assert_eq!((missed.end_of_run(24), missed.regions().collect::<Vec<_>>()), (34, [2].into()));
    }
}
