//! Where on a disk was written, and when.

use crate::time_buckets::{Buckets, halve};
use serde::{Deserialize, Serialize};

/// Address span of a row of a heat map at the start: 1 MiB in blocks.
const ROW_BLOCKS_START: u64 = 256;

const NS_PER_S: f64 = 1e9;

/// Blocks written to home bands, by address and time; the rows span the addresses written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeatMap {
    /// Number of address bins (rows).
    pub lba_bins: u32,
    /// Number of time bins (columns).
    pub time_bins: u32,
    /// First block of the lowest address bin.
    pub lba_first_block: u64,
    /// Blocks of 4 KiB an address bin spans.
    pub lba_bin_blocks: u64,
    /// Seconds a time bin spans.
    pub time_bin_s: f64,
    /// Blocks written, row by row, lowest address first; a full counter stays at 4294967295.
    pub blocks: Vec<u32>,
}

impl HeatMap {
    /// Blocks written in each time bin, whatever the address.
    pub fn blocks_by_time(&self) -> Vec<u64> {
        let mut sums = vec![0; self.time_bins as usize];
        for row in self.blocks.chunks_exact(sums.len().max(1)) {
            for (sum, blocks) in sums.iter_mut().zip(row) {
                *sum += u64::from(*blocks);
            }
        }
        sums
    }
}

/// Blocks written, by address and time.
///
/// The rows adapt to the addresses written as the columns do to time: they start at 1 MiB each and
/// double until the map spans everything seen, so a small workload on a large disk fills the map.
#[derive(Clone, Debug)]
pub struct HeatMapRecorder {
    buckets: Buckets,
    rows: usize,
    row_blocks: u64,
    /// First block of row 0, a multiple of `row_blocks`.
    first_block: u64,
    /// Lowest block written and the end of the highest write; empty before the first.
    span: Option<(u64, u64)>,
    /// Row by row.
    blocks: Vec<u32>,
}

impl HeatMapRecorder {
    /// An empty map of at most `lba_bins` x `time_bins` bins, `time_bins` even.
    pub fn new(lba_bins: usize, time_bins: usize) -> HeatMapRecorder {
        assert!(lba_bins >= 2, "an unaligned row needs a neighbour");
        HeatMapRecorder {
            buckets: Buckets::new(time_bins),
            rows: lba_bins,
            row_blocks: ROW_BLOCKS_START,
            first_block: 0,
            span: None,
            blocks: vec![0; lba_bins * time_bins],
        }
    }

    /// An empty map of as many bins.
    pub fn emptied(&self) -> HeatMapRecorder {
        HeatMapRecorder::new(self.rows, self.buckets.count)
    }

    /// Counts a write of `blocks` blocks from block `start`, each in its address bin.
    pub fn add(&mut self, at_ns: u64, start: u64, blocks: u64) {
        if blocks == 0 {
            return;
        }
        self.reach(at_ns);
        self.cover(start, start + blocks);
        let column = self.buckets.index(at_ns);
        let mut at = start;
        while at < start + blocks {
            let row = (at - self.first_block) / self.row_blocks;
            let row_end = self.first_block + (row + 1) * self.row_blocks;
            let part = row_end.min(start + blocks) - at;
            let cell = &mut self.blocks[row as usize * self.buckets.count + column];
            *cell = cell.saturating_add(u32::try_from(part).unwrap_or(u32::MAX));
            at += part;
        }
    }

    /// The map of a run that ended at `end_ns`, cut to the addresses written. What was written at
    /// the end or later counts in the last column.
    pub fn heat_map(&mut self, end_ns: u64) -> HeatMap {
        self.reach(end_ns.saturating_sub(1));
        let columns = self.buckets.used(end_ns);
        let rows = match self.span {
            None => 0,
            Some((_, end)) => (end - self.first_block).div_ceil(self.row_blocks) as usize,
        };
        let mut blocks = Vec::with_capacity(rows * columns);
        for row in self.blocks.chunks_exact(self.buckets.count).take(rows) {
            blocks.extend_from_slice(&row[..columns - 1]);
            blocks.push(row[columns - 1..].iter().fold(0, |a, b| u32::saturating_add(a, *b)));
        }
        HeatMap {
            lba_bins: rows as u32,
            time_bins: columns as u32,
            lba_first_block: self.first_block,
            lba_bin_blocks: self.row_blocks,
            time_bin_s: self.buckets.width_ns as f64 / NS_PER_S,
            blocks,
        }
    }

    fn reach(&mut self, at_ns: u64) {
        while !self.buckets.reach(at_ns) {
            for row in self.blocks.chunks_exact_mut(self.buckets.count) {
                halve(row, u32::saturating_add);
            }
            self.buckets.width_ns *= 2;
        }
    }

    /// Moves and widens the rows until they hold `start..end` beside everything written so far.
    fn cover(&mut self, start: u64, end: u64) {
        let (low, high) = match self.span {
            Some((low, high)) => (low.min(start), high.max(end)),
            None => (start, end),
        };
        if self.span == Some((low, high)) {
            return;
        }
        let mut row_blocks = self.row_blocks;
        let fits = |row_blocks: u64| {
            let first_block = low / row_blocks * row_blocks;
            (high - first_block).div_ceil(row_blocks) <= self.rows as u64
        };
        while !fits(row_blocks) {
            row_blocks *= 2;
        }
        let first_block = low / row_blocks * row_blocks;
        if self.span.is_some() && (row_blocks, first_block) != (self.row_blocks, self.first_block) {
            self.regroup(first_block, row_blocks);
        }
        self.first_block = first_block;
        self.row_blocks = row_blocks;
        self.span = Some((low, high));
    }

    /// Adds each present row to the row it belongs to in the new layout. Happens at most a few
    /// dozen times in a run, so a second table does no harm.
    fn regroup(&mut self, first_block: u64, row_blocks: u64) {
        let columns = self.buckets.count;
        let mut blocks = vec![0u32; self.blocks.len()];
        for (i, row) in self.blocks.chunks_exact(columns).enumerate() {
            let row_start = self.first_block + i as u64 * self.row_blocks;
            // Rows beyond the highest write are empty and may have no place in the new layout.
            if self.span.is_none_or(|(_, high)| row_start >= high) {
                break;
            }
            let to = (row_start - first_block) / row_blocks;
            let target = &mut blocks[to as usize * columns..][..columns];
            for (sum, value) in target.iter_mut().zip(row) {
                *sum = sum.saturating_add(*value);
            }
        }
        self.blocks = blocks;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_heat_map_splits_writes_over_address_bins_and_doubles_in_time() {
        let mut map = HeatMapRecorder::new(4, 2);
        map.add(0, 200, 100);
        map.add(MS, 1023, 1);
        map.add(3 * MS, 0, 1);
        let map = map.heat_map(4 * MS);
        assert_eq!((map.lba_bins, map.time_bins), (4, 2));
        assert_eq!((map.lba_first_block, map.lba_bin_blocks, map.time_bin_s), (0, 256, 0.002));
        assert_eq!(map.blocks, [56, 1, 44, 0, 0, 0, 1, 0]);
    }

    #[test]
    fn a_heat_map_spans_what_was_written_and_loses_nothing() {
        let mut map = HeatMapRecorder::new(6, 2);
        let mut state = 7u64;
        let (mut total, mut low, mut high) = (0, u64::MAX, 0);
        for i in 1..40u64 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let start = (1 << 30) + (state >> 33) % (i * i * 100);
            map.add(i, start, i);
            total += i;
            low = low.min(start);
            high = high.max(start + i);
            let seen = map.heat_map(MS);
            assert_eq!(seen.blocks.iter().map(|n| u64::from(*n)).sum::<u64>(), total);
            let last_row =
                seen.lba_first_block + u64::from(seen.lba_bins - 1) * seen.lba_bin_blocks;
            assert!(
                (seen.lba_first_block..seen.lba_first_block + seen.lba_bin_blocks).contains(&low)
            );
            assert!((last_row..last_row + seen.lba_bin_blocks).contains(&(high - 1)));
        }
    }

    #[test]
    fn nothing_recorded_is_an_empty_map() {
        assert!(HeatMapRecorder::new(2, 2).heat_map(0).blocks.is_empty());
    }
}
