//! What a collection reads of a home, and which blocks of that no member can give.

use crate::extent::Extent;
use crate::saved::SavedValue;
use alloc::vec::Vec;

/// Reads in flight at most.
const READS_MAX: u32 = 32;

/// Neighbouring blocks that are read.
#[derive(Clone, Copy, Debug, SavedValue)]
pub struct Run {
    pub column: usize,
    pub rows: Extent,
    /// Where the first of them goes: the place in the band of a block of the home, the number of a slot of the data disk.
    pub at: u64,
    /// It is read from the data disk for the home.
    pub is_slot: bool,
}

/// What is read of a home, and then of the data disk for it. Where a run fails, all is read once more, block by block, so
/// that those are known which cannot be read.
#[derive(Debug, Default, SavedValue)]
pub struct HomeReads {
    runs: Vec<Run>,
    asked: usize,
    are_single: bool,
    /// The runs that could not be read, by their numbers; of one that is not single one at least, whichever.
    failed: Vec<usize>,
}

impl HomeReads {
    /// Nothing is read.
    pub fn clear(&mut self) {
        self.runs.clear();
        self.failed.clear();
        (self.asked, self.are_single) = (0, false);
    }

    /// Adds a block.
    pub fn add(&mut self, (column, row, at): (usize, u64, u64), is_slot: bool) {
        match self.runs.last_mut() {
            Some(last)
                if last.column == column
                    && last.is_slot == is_slot
                    && last.rows.end().0 == row
                    && last.at + last.rows.blocks.0 == at =>
            {
                last.rows.blocks.0 += 1;
            }
            _ => self.runs.push(Run { column, rows: Extent::new(row, 1), at, is_slot }),
        }
    }

    /// The next run to be read, while so many are in flight. None when there are enough of them, or no more.
    pub fn next(&mut self, in_flight: u32) -> Option<Run> {
        // Of what is read one by one it is known what has failed.
        let most = if self.are_single { 1 } else { READS_MAX };
        let goes_on = self.are_single || self.failed.is_empty();
        if in_flight >= most || !goes_on {
            return None;
        }
        let run = *self.runs.get(self.asked)?;
        self.asked += 1;
        Some(run)
    }

    /// The run that was asked for last could not be read; or one of several, where they are not single.
    pub fn one_has_failed(&mut self) {
        self.failed.push(self.asked - 1);
    }

    /// All that was asked for has ended. True when everything is to be read once more, block by block.
    pub fn begin_singly(&mut self) -> bool {
        if self.are_single || self.failed.is_empty() {
            return false;
        }
        let single = |run: &Run| {
            let Run { column, rows, at, is_slot } = *run;
            let part = move |index| Run {
                column,
                rows: Extent::new(rows.start.0 + index, 1),
                at: at + index,
                is_slot,
            };
            (0..rows.blocks.0).map(part)
        };
        self.runs = self.runs.iter().flat_map(single).collect();
        self.failed.clear();
        (self.asked, self.are_single) = (0, true);
        true
    }

    /// The blocks that no member can give.
    pub fn lost(&self) -> impl Iterator<Item = Run> + '_ {
        self.failed.iter().map(|index| self.runs[*index])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(reads: &mut HomeReads) -> Vec<(u64, u64, bool)> {
        let runs = core::iter::from_fn(|| reads.next(0));
        runs.map(|run| (run.rows.start.0, run.rows.blocks.0, run.is_slot)).collect()
    }

    #[test]
    fn blocks_of_a_run_that_fails_are_read_one_by_one() {
        let mut reads = HomeReads::default();
        for row in [10, 11, 12, 14] {
            reads.add((0, row, row - 10), false);
        }
        // A slot with the next number is not of the same run, wherever the home ends.
        reads.add((3, 15, 5), true);
        reads.add((3, 16, 6), true);
        assert_eq!(all(&mut reads), [(10, 3, false), (14, 1, false), (15, 2, true)]);
        assert!(!reads.begin_singly(), "nothing has failed");
        reads.one_has_failed();
        assert!(reads.begin_singly());
        assert!(reads.next(1).is_none(), "one at a time");
        let mut rows = Vec::new();
        while let Some(run) = reads.next(0) {
            rows.push(run.rows.start.0);
            if [12, 16].contains(&run.rows.start.0) {
                reads.one_has_failed();
            }
        }
        assert_eq!(rows, [10, 11, 12, 14, 15, 16]);
        assert!(!reads.begin_singly(), "they are single");
        let lost: Vec<_> = reads.lost().map(|run| (run.at, run.is_slot)).collect();
        assert_eq!(lost, [(2, false), (6, true)]);
        reads.clear();
        assert!(reads.next(0).is_none() && reads.lost().next().is_none());
    }
}
