//! Distributions of any number of values in constant memory.

use super::sections::{Bin, Distribution};

/// Cells to a doubling; a power of two.
const CELLS: u64 = 64;
const CELL_BITS: u32 = CELLS.trailing_zeros();

/// Counts of whole numbers: each below 64 by itself, above in cells of 1/64 of a power of two, so that a value is known to
/// within 1.6 %.
#[derive(Clone)]
pub(super) struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    maximum: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; cell_of(u64::MAX) + 1], count: 0, sum: 0, maximum: 0 }
    }
}

#[inline]
fn cell_of(value: u64) -> usize {
    if value < CELLS {
        return value as usize;
    }
    let above = value.ilog2() - CELL_BITS;
    (u64::from(above) * CELLS + (value >> above)) as usize
}

/// The least and the greatest value of a cell.
fn range_of(cell: usize) -> (u64, u64) {
    let cell = cell as u64;
    if cell < CELLS {
        return (cell, cell);
    }
    let above = (cell / CELLS - 1) as u32;
    let from = (cell % CELLS + CELLS) << above;
    (from, from + ((1 << above) - 1))
}

impl Histogram {
    /// Counts a value that stands for `weight` values.
    #[inline]
    pub(super) fn add(&mut self, value: u64, weight: u64) {
        self.counts[cell_of(value)] += weight;
        self.count += weight;
        self.sum += u128::from(value) * u128::from(weight);
        self.maximum = self.maximum.max(value);
    }

    /// Number of values.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Number of values that are at most `value`; a cell is taken to be evenly filled.
    pub(super) fn at_most(&self, value: u64) -> f64 {
        if value >= self.maximum {
            return self.count as f64;
        }
        let cell = cell_of(value);
        let below: u64 = self.counts[..cell].iter().sum();
        let (from, to) = range_of(cell);
        let part = ((value - from) as f64 + 1.0) / ((to - from) as f64 + 1.0);
        below as f64 + self.counts[cell] as f64 * part
    }

    /// The values of both.
    pub(super) fn merged(&self, other: &Self) -> Self {
        let cells = self.counts.iter().zip(&other.counts);
        Self {
            counts: cells.map(|(a, b)| a + b).collect(),
            count: self.count + other.count,
            sum: self.sum + other.sum,
            maximum: self.maximum.max(other.maximum),
        }
    }

    /// What is told of it.
    pub(super) fn distribution(&self) -> Distribution {
        let at = |per_mille: u64| self.percentile(per_mille);
        Distribution {
            count: self.count,
            mean: match self.count {
                0 => 0.0,
                count => self.sum as f64 / count as f64,
            },
            maximum: self.maximum,
            p25: at(250),
            p50: at(500),
            p75: at(750),
            p90: at(900),
            p95: at(950),
            p99: at(990),
            p999: at(999),
            histogram: self.bins(),
        }
    }

    /// The least value of the cell that at least so many of a thousand values do not exceed.
    fn percentile(&self, per_mille: u64) -> u64 {
        let wanted = (u128::from(self.count) * u128::from(per_mille)).div_ceil(1000);
        let mut below = 0u128;
        for (cell, &count) in self.counts.iter().enumerate() {
            below += u128::from(count);
            if count > 0 && below >= wanted {
                return range_of(cell).0;
            }
        }
        0
    }

    /// Bars, four to a doubling, without the empty ones.
    pub(super) fn bins(&self) -> Vec<Bin> {
        let mut bins: Vec<Bin> = Vec::new();
        for (cell, &count) in self.counts.iter().enumerate() {
            if count == 0 {
                continue;
            }
            let (from, to) = bar_of(range_of(cell).0);
            match bins.last_mut() {
                Some(last) if last.from == from => last.count += count,
                _ => bins.push(Bin { from, to, count }),
            }
        }
        bins
    }
}

/// The bar a value is in: below 4 its own, above one of the four quarters of a doubling.
pub(super) fn bar_of(value: u64) -> (u64, u64) {
    if value < 4 {
        return (value, value);
    }
    let above = value.ilog2() - 2;
    let from = (value >> above) << above;
    (from, from + ((1 << above) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_holds_its_values_and_is_narrow() {
        for value in (0..3000).chain([u64::MAX, u64::MAX / 3, 1 << 40, (1 << 40) - 1]) {
            let (from, to) = range_of(cell_of(value));
            assert!((from..=to).contains(&value), "{value}: {from}..={to}");
            assert!((value - from) as f64 <= value as f64 / 64.0, "{value} {from}");
            let (from, to) = bar_of(value);
            assert!((from..=to).contains(&value), "{value}: {from}..={to}");
        }
        for cell in 1..cell_of(u64::MAX) {
            assert_eq!(range_of(cell).0, range_of(cell - 1).1 + 1);
        }
    }

    #[test]
    fn percentiles_are_those_counted_by_hand() {
        let mut histogram = Histogram::default();
        for value in 1..=40 {
            histogram.add(value, 1);
        }
        histogram.add(50, 60);
        let found = histogram.distribution();
        assert_eq!((found.count, found.maximum, found.mean), (100, 50, 38.2));
        assert_eq!((found.p25, found.p50, found.p999), (25, 50, 50));
        assert_eq!(histogram.at_most(40), 40.0);
        let bar = Bin { from: 48, to: 55, count: 60 };
        assert_eq!(found.histogram.last(), Some(&bar));
    }

    #[test]
    fn nothing_counted_is_all_zero() {
        assert_eq!(Histogram::default().distribution(), Distribution::default());
    }
}
