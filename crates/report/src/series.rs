//! Time series in constant memory.
//!
//! A series has a fixed number of [buckets](Buckets).

use super::node_table::Cell;
use imbrex_drives::time_buckets::{Buckets, halve};
use serde::{Deserialize, Serialize};

const NS_PER_S: f64 = 1e9;

/// Values at equal steps of time, the first bucket starting at 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Width of a bucket in seconds; the last one ends at the end of the run and may be half a
    /// bucket longer or shorter.
    pub bucket_s: f64,
    /// One value a bucket.
    pub values: Vec<f64>,
}

impl Series {
    /// Whether there are no values, as of what did not happen.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The rows of a table over time with one value.
    pub fn rows(&self) -> Vec<Vec<Cell>> {
        let row = |(index, value): (usize, &f64)| {
            vec![Cell::Number(index as f64 * self.bucket_s), Cell::Number(*value)]
        };
        self.values.iter().enumerate().map(row).collect()
    }
}

/// Amount per second in each of some buckets of `width_ns` nanoseconds, times `scale`, for a run that ended
/// at `end_ns`. The last bucket ends there: what is in it and in those behind it counts in it, and an end in
/// the first half of a bucket lengthens the one before, or a single request would look like a burst.
pub fn rates(sums: &[u64], width_ns: u64, end_ns: u64, scale: f64) -> Series {
    let buckets = Buckets { width_ns, count: sums.len() };
    let mut used = buckets.used(end_ns);
    if used > 1 && buckets.covered_ns(used - 1, end_ns) < width_ns / 2 {
        used -= 1;
    }
    let rate = |i: usize| {
        let (sum, ns) = match i + 1 == used {
            true => (sums[i..].iter().sum(), end_ns.saturating_sub(i as u64 * width_ns)),
            false => (sums[i], width_ns),
        };
        round_significant(sum as f64 * scale * NS_PER_S / ns.max(1) as f64)
    };
    let values = (0..used).map(rate).collect();
    Series { bucket_s: width_ns as f64 / NS_PER_S, values }
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
        Series { bucket_s: self.buckets.width_ns as f64 / NS_PER_S, values }
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

/// `value` to 6 significant digits: as much as a figure shows, in fewer bytes.
pub(super) fn round_significant(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    round_fast(value)
        .unwrap_or_else(|| format!("{value:.5e}").parse().expect("a formatted number parses"))
}

/// The same for most values, without text: the number of the nearest step of the sixth digit, divided by the steps in 1. Both are
/// whole and exact, so the quotient is the double that is nearest to the decimal number.
fn round_fast(value: f64) -> Option<f64> {
    /// Powers of ten beyond this are not exact.
    const EXACT_MAX: i32 = 22;
    const DIGITS: i32 = 6;
    /// Nearer to the middle between two steps than this, a product may lie on the wrong side of it.
    const DOUBTFUL: f64 = 1e-6;
    let digits_behind = DIGITS - 1 - value.abs().log10().floor() as i32;
    if digits_behind.abs() > EXACT_MAX {
        return None;
    }
    let power = 10f64.powi(digits_behind.abs());
    let exact = if digits_behind >= 0 { value * power } else { value / power };
    let steps = exact.round();
    let is_sure = ((exact - steps).abs() - 0.5).abs() > DOUBTFUL;
    // A logarithm just beside a whole number may have been taken for its neighbour.
    let has_digits = (1e5..=1e6).contains(&steps.abs());
    let rounded = if digits_behind >= 0 { steps / power } else { steps * power };
    (is_sure && has_digits).then_some(rounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

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
    fn nothing_recorded_is_one_empty_bucket() {
        assert_eq!(GaugeSeries::new(8).means(0, 1.0).values, [0.0]);
    }

    #[test]
    fn rounding_keeps_six_digits() {
        assert_eq!(round_significant(123_456_789.0), 123_457_000.0);
        assert_eq!(round_significant(0.000_123_456_78), 0.000_123_457);
        assert_eq!(round_significant(-1.5), -1.5);
    }

    #[test]
    fn rounding_gives_the_double_that_its_text_stands_for() {
        let mut state = 1u64;
        for i in 0..200_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let share = (state >> 11) as f64 / (1u64 << 53) as f64;
            let values =
                [share * 10f64.powi(i % 40 - 20), (state >> 40) as f64 + 0.5, i as f64 / 64.0];
            for value in values {
                let by_text: f64 = format!("{value:.5e}").parse().expect("a number");
                assert_eq!(round_significant(value).to_bits(), by_text.to_bits(), "{value}");
            }
        }
    }
}
