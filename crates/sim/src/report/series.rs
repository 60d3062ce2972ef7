//! Time series in constant memory.
//!
//! A series has a fixed number of buckets. When time runs past the last one, neighbours are merged
//! and the width doubles, so a run of any length fits and equal inputs give equal outputs.

use super::report::{HeatMap, Series};

/// Width of a bucket at the start: 1 ms in nanoseconds.
const BUCKET_NS_START: u64 = 1_000_000;

/// Address span of a row of a heat map at the start: 1 MiB in blocks.
const ROW_BLOCKS_START: u64 = 256;

const NS_PER_S: f64 = 1e9;

/// Bucket boundaries shared by the kinds of series.
#[derive(Clone, Copy, Debug)]
struct Buckets {
    width_ns: u64,
    count: usize,
}

impl Buckets {
    fn new(count: usize) -> Buckets {
        assert!(
            count >= 2 && count.is_multiple_of(2),
            "neighbours merge in pairs"
        );
        Buckets {
            width_ns: BUCKET_NS_START,
            count,
        }
    }

    /// Whether the last bucket ends after `at_ns`.
    fn reach(&self, at_ns: u64) -> bool {
        at_ns / self.width_ns < self.count as u64
    }

    /// The bucket of `at_ns`, which must be in reach.
    fn index(&self, at_ns: u64) -> usize {
        (at_ns / self.width_ns) as usize
    }

    /// Buckets that begin before `end_ns`, at least one.
    fn used(&self, end_ns: u64) -> usize {
        (end_ns.div_ceil(self.width_ns) as usize).clamp(1, self.count)
    }

    /// Nanoseconds of bucket `index` that lie before `end_ns`.
    fn covered_ns(&self, index: usize, end_ns: u64) -> u64 {
        end_ns
            .saturating_sub(index as u64 * self.width_ns)
            .min(self.width_ns)
    }
}

/// Merges neighbours into the first half and clears the second.
fn halve<T: Copy + Default>(values: &mut [T], merge: impl Fn(T, T) -> T) {
    let half = values.len() / 2;
    for i in 0..half {
        values[i] = merge(values[2 * i], values[2 * i + 1]);
    }
    values[half..].fill(T::default());
}

/// Amounts that add up, such as bytes completed.
#[derive(Clone, Debug)]
pub struct SumSeries {
    buckets: Buckets,
    sums: Vec<u64>,
}

impl SumSeries {
    /// An empty series of `buckets` buckets, an even number.
    pub fn new(buckets: usize) -> SumSeries {
        SumSeries {
            buckets: Buckets::new(buckets),
            sums: vec![0; buckets],
        }
    }

    /// Adds `amount` at `at_ns`; instants may come in any order.
    pub fn add(&mut self, at_ns: u64, amount: u64) {
        self.reach(at_ns);
        self.sums[self.buckets.index(at_ns)] += amount;
    }

    /// Amount per second in each bucket, times `scale`, for a run that ended at `end_ns`. The last
    /// bucket ends there: what was added at the end or later counts in it, and an end in the first
    /// half of a bucket lengthens the one before, or a single request would look like a burst.
    pub fn rates(&mut self, end_ns: u64, scale: f64) -> Series {
        self.reach(end_ns.saturating_sub(1));
        let width_ns = self.buckets.width_ns;
        let mut used = self.buckets.used(end_ns);
        if used > 1 && self.buckets.covered_ns(used - 1, end_ns) < width_ns / 2 {
            used -= 1;
        }
        let rate = |i: usize| {
            let (sum, ns) = match i + 1 == used {
                true => (
                    self.sums[i..].iter().sum(),
                    end_ns.saturating_sub(i as u64 * width_ns),
                ),
                false => (self.sums[i], width_ns),
            };
            round_significant(sum as f64 * scale * NS_PER_S / ns.max(1) as f64)
        };
        let values = (0..used).map(rate).collect();
        Series {
            bucket_s: width_ns as f64 / NS_PER_S,
            values,
        }
    }

    fn reach(&mut self, at_ns: u64) {
        while !self.buckets.reach(at_ns) {
            halve(&mut self.sums, |a, b| a + b);
            self.buckets.width_ns *= 2;
        }
    }
}

/// A level that holds until it changes, such as the fill of a cache.
#[derive(Clone, Debug)]
pub struct GaugeSeries {
    buckets: Buckets,
    /// Level times nanoseconds.
    areas: Vec<u128>,
    level: u64,
    since_ns: u64,
}

impl GaugeSeries {
    /// A series of `buckets` buckets, an even number, at level 0 from time 0.
    pub fn new(buckets: usize) -> GaugeSeries {
        GaugeSeries {
            buckets: Buckets::new(buckets),
            areas: vec![0; buckets],
            level: 0,
            since_ns: 0,
        }
    }

    /// The level is `level` from `at_ns` on; instants must not decrease.
    pub fn set(&mut self, at_ns: u64, level: u64) {
        assert!(at_ns >= self.since_ns, "a gauge cannot go back in time");
        self.advance(at_ns);
        self.level = level;
    }

    /// Time-weighted mean level of each bucket, times `scale`, for a run that ended at `end_ns`.
    pub fn means(&mut self, end_ns: u64, scale: f64) -> Series {
        self.advance(end_ns.max(self.since_ns));
        let values = (0..self.buckets.used(end_ns))
            .map(|i| match self.buckets.covered_ns(i, end_ns) {
                0 => 0.0,
                ns => round_significant(self.areas[i] as f64 * scale / ns as f64),
            })
            .collect();
        Series {
            bucket_s: self.buckets.width_ns as f64 / NS_PER_S,
            values,
        }
    }

    fn advance(&mut self, to_ns: u64) {
        while to_ns > self.buckets.width_ns * self.buckets.count as u64 {
            halve(&mut self.areas, |a, b| a + b);
            self.buckets.width_ns *= 2;
        }
        while self.since_ns < to_ns {
            let index = (self.since_ns / self.buckets.width_ns) as usize;
            let bucket_end_ns = (index as u64 + 1) * self.buckets.width_ns;
            let until_ns = bucket_end_ns.min(to_ns);
            self.areas[index] += u128::from(self.level) * u128::from(until_ns - self.since_ns);
            self.since_ns = until_ns;
        }
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
            blocks.push(
                row[columns - 1..]
                    .iter()
                    .fold(0, |a, b| u32::saturating_add(a, *b)),
            );
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

/// `value` to 6 significant digits: as much as a figure shows, in fewer bytes.
pub(super) fn round_significant(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    format!("{value:.5e}")
        .parse()
        .expect("a formatted number parses")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_sum_series_doubles_its_width_and_keeps_the_total() {
        let mut series = SumSeries::new(4);
        for ms in 0..100 {
            series.add(ms * MS, 3);
        }
        let rates = series.rates(100 * MS, 1.0);
        assert_eq!(rates.bucket_s, 0.032);
        assert_eq!(
            rates.values,
            [3000.0, 3000.0, 3000.0],
            "the last bucket covers 36 ms"
        );
    }

    #[test]
    fn a_gauge_weighs_levels_by_time() {
        let mut gauge = GaugeSeries::new(4);
        gauge.set(0, 10);
        gauge.set(MS / 2, 20);
        gauge.set(2 * MS, 0);
        assert_eq!(gauge.means(4 * MS, 1.0).values, [15.0, 20.0, 0.0, 0.0]);
        gauge.set(6 * MS, 40);
        let means = gauge.means(8 * MS, 0.5);
        assert_eq!(means.bucket_s, 0.002);
        assert_eq!(means.values, [8.75, 0.0, 0.0, 20.0]);
    }

    #[test]
    fn a_heat_map_splits_writes_over_address_bins_and_doubles_in_time() {
        let mut map = HeatMapRecorder::new(4, 2);
        map.add(0, 200, 100);
        map.add(MS, 1023, 1);
        map.add(3 * MS, 0, 1);
        let map = map.heat_map(4 * MS);
        assert_eq!((map.lba_bins, map.time_bins), (4, 2));
        assert_eq!(
            (map.lba_first_block, map.lba_bin_blocks, map.time_bin_s),
            (0, 256, 0.002)
        );
        assert_eq!(map.blocks, [56, 1, 44, 0, 0, 0, 1, 0]);
    }

    #[test]
    fn a_heat_map_spans_what_was_written_and_loses_nothing() {
        let mut map = HeatMapRecorder::new(6, 2);
        let mut state = 7u64;
        let (mut total, mut low, mut high) = (0, u64::MAX, 0);
        for i in 1..40u64 {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let start = (1 << 30) + (state >> 33) % (i * i * 100);
            map.add(i, start, i);
            total += i;
            low = low.min(start);
            high = high.max(start + i);
            let seen = map.heat_map(MS);
            assert_eq!(
                seen.blocks.iter().map(|n| u64::from(*n)).sum::<u64>(),
                total
            );
            let last_row =
                seen.lba_first_block + u64::from(seen.lba_bins - 1) * seen.lba_bin_blocks;
            assert!(
                (seen.lba_first_block..seen.lba_first_block + seen.lba_bin_blocks).contains(&low)
            );
            assert!((last_row..last_row + seen.lba_bin_blocks).contains(&(high - 1)));
        }
    }

    #[test]
    fn a_series_covers_the_run_even_if_nothing_happened_late() {
        let mut series = SumSeries::new(4);
        series.add(0, 1);
        let rates = series.rates(16 * MS, 1.0);
        assert_eq!((rates.bucket_s, rates.values.len()), (0.004, 4));
    }

    #[test]
    fn nothing_recorded_is_one_empty_bucket() {
        assert_eq!(SumSeries::new(8).rates(0, 1.0).values, [0.0]);
        assert_eq!(GaugeSeries::new(8).means(0, 1.0).values, [0.0]);
        assert!(HeatMapRecorder::new(2, 2).heat_map(0).blocks.is_empty());
    }

    #[test]
    fn rounding_keeps_six_digits() {
        assert_eq!(round_significant(123_456_789.0), 123_457_000.0);
        assert_eq!(round_significant(0.000_123_456_78), 0.000_123_457);
        assert_eq!(round_significant(-1.5), -1.5);
    }
}
