//! How the rows of an array are cut into regions.

use crate::checksums::pages_of;
use crate::extent::Extent;
use crate::saved::SavedValue;

/// Rows in regions: first the tables of checksums of all regions, then what the regions hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub struct RegionShape {
    /// Rows of a region; the last one may have fewer.
    pub region_rows: u64,
    /// Rows of the table of a region: pages of checksums.
    pub pages: u64,
    /// How many regions there are.
    pub regions: u64,
    /// Rows of all regions, without the tables.
    pub data_rows: u64,
}

impl RegionShape {
    /// The shape for so many rows of data.
    pub fn new(data_rows: u64, region_rows: u64) -> RegionShape {
        let regions = data_rows.div_ceil(region_rows);
        RegionShape { region_rows, pages: pages_of(region_rows), regions, data_rows }
    }

    /// Regions of so many rows that have no tables, or are tables themselves.
    pub fn without_tables(rows: u64, region_rows: u64) -> RegionShape {
        let regions = rows.div_ceil(region_rows);
        RegionShape { region_rows, pages: 0, regions, data_rows: rows }
    }

    /// Rows of all tables, which come first.
    pub fn table_rows(&self) -> u64 {
        self.regions * self.pages
    }

    /// All rows.
    pub fn rows(&self) -> u64 {
        self.table_rows() + self.data_rows
    }

    /// The region of a row: the one that it is in, or whose table it holds.
    pub fn region_of(&self, row: u64) -> u64 {
        match row.checked_sub(self.table_rows()) {
            None => row / self.pages,
            Some(data) => data / self.region_rows,
        }
    }

    /// The end of the rows from this one on that belong to its region.
    pub fn end_of_region(&self, row: u64) -> u64 {
        let region = self.region_of(row);
        match row < self.table_rows() {
            true => self.table_of(region).end().0,
            false => self.rows_of(region).end().0,
        }
    }

    /// The rows that a region holds.
    pub fn rows_of(&self, region: u64) -> Extent {
        let first = region * self.region_rows;
        let rows = self.region_rows.min(self.data_rows - first);
        Extent::new(self.table_rows() + first, rows)
    }

    /// The rows of the table of a region.
    pub fn table_of(&self, region: u64) -> Extent {
        Extent::new(region * self.pages, self.pages)
    }

    /// The first and the last region of rows of data.
    pub fn regions_of(&self, rows: Extent) -> core::ops::RangeInclusive<u64> {
        self.region_of(rows.start.0)..=self.region_of(rows.end().0 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_of_a_region_or_of_its_table() {
        // Worked by hand: 2,500 rows in regions of 1,200, each with two pages of 1,008 checksums.
        let shape = RegionShape::new(2500, 1200);
        assert_eq!((shape.regions, shape.pages, shape.table_rows(), shape.rows()), (3, 2, 6, 2506));
        assert_eq!(
            [0, 1, 2, 5, 6, 1205, 1206, 2505].map(|row| shape.region_of(row)),
            [0, 0, 1, 2, 0, 0, 1, 2]
        );
        assert_eq!(shape.rows_of(2), Extent::new(2406, 100));
        assert_eq!((shape.end_of_region(2), shape.end_of_region(2406)), (4, 2506));
        assert_eq!(shape.regions_of(Extent::new(1205, 2)), 0..=1);
    }
}
