//! Response times in constant memory.

use hdrhistogram::Histogram;
use std::borrow::Cow;

use super::report::LatencyCdf;
use super::response_times::ResponseTimes;
use super::series::round_significant;

/// Longest latency told apart from longer ones: a day, in nanoseconds.
const LATENCY_NS_MAX: u64 = 24 * 3600 * 1_000_000_000;

/// Two points of a distribution differ by at least this in the decimal logarithm of the tail.
const CDF_STEP_DECADES: f64 = 0.01;

const NS_PER_MS: f64 = 1e6;

/// Latencies of completed requests: exact count, mean and maximum, percentiles to 3 significant
/// digits. Recording allocates nothing.
#[derive(Clone)]
pub struct LatencyHistogram {
    histogram: Histogram<u64>,
    sum_ns: u128,
    max_ns: u64,
    /// The latency that was recorded last, and how often in a row: it is in none of the above yet. Requests that
    /// find their blocks in flash mostly take as long as the one before.
    last_ns: u64,
    last_count: u64,
}

impl LatencyHistogram {
    /// An empty histogram, about 300 KB.
    pub fn new() -> LatencyHistogram {
        let histogram = Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)
            .expect("the bounds are constants that the histogram accepts");
        LatencyHistogram { histogram, sum_ns: 0, max_ns: 0, last_ns: 0, last_count: 0 }
    }

    /// Records one latency in nanoseconds. Percentiles treat more than a day as a day.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        if latency_ns != self.last_ns {
            self.settle();
            self.last_ns = latency_ns;
        }
        self.last_count += 1;
    }

    /// Takes in the latency that was recorded last.
    fn settle(&mut self) {
        let (latency_ns, count) = (self.last_ns, std::mem::take(&mut self.last_count));
        self.take_in(latency_ns, count);
    }

    fn take_in(&mut self, latency_ns: u64, count: u64) {
        if count > 0 {
            self.histogram.saturating_record_n(latency_ns, count);
            self.sum_ns += u128::from(latency_ns) * u128::from(count);
            self.max_ns = self.max_ns.max(latency_ns);
        }
    }

    /// The same one, in which everything is taken in.
    fn settled(&self) -> Cow<'_, LatencyHistogram> {
        match self.last_count {
            0 => Cow::Borrowed(self),
            _ => {
                let mut settled = self.clone();
                settled.settle();
                Cow::Owned(settled)
            }
        }
    }

    /// Adds every latency that `other` has recorded.
    pub fn add(&mut self, other: &LatencyHistogram) {
        self.histogram.add(&other.histogram).expect("both have the same bounds");
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.take_in(other.last_ns, other.last_count);
    }

    /// Number of latencies recorded.
    pub fn count(&self) -> u64 {
        self.histogram.len() + self.last_count
    }

    /// Mean, percentiles and maximum in milliseconds; all none before the first record.
    pub fn response_times(&self) -> ResponseTimes {
        let count = self.count();
        if count == 0 {
            return ResponseTimes::default();
        }
        let all = self.settled();
        let quantile = |q| Some(all.quantile_ns(q) as f64 / NS_PER_MS);
        ResponseTimes {
            mean: Some(all.sum_ns as f64 / count as f64 / NS_PER_MS),
            p50: quantile(0.5),
            p99: quantile(0.99),
            p99_9: quantile(0.999),
            p99_99: quantile(0.9999),
            max: Some(all.max_ns as f64 / NS_PER_MS),
        }
    }

    /// The distribution as at most a few hundred points, evenly spaced in the logarithm of the tail.
    pub fn cdf(&self) -> LatencyCdf {
        let count = self.count();
        let mut cdf = LatencyCdf::default();
        let mut seen = 0;
        let mut last_decades = f64::NEG_INFINITY;
        let all = self.settled();
        for step in all.histogram.iter_recorded() {
            seen += step.count_since_last_iteration();
            let value_ns = step.value_iterated_to().min(all.max_ns);
            let tail = (count - seen) as f64 / count as f64;
            let decades = -tail.log10();
            if seen < count && decades - last_decades < CDF_STEP_DECADES {
                continue;
            }
            last_decades = decades;
            cdf.ms.push(round_significant(value_ns as f64 / NS_PER_MS));
            cdf.tail.push(round_significant(tail));
        }
        cdf
    }

    /// The histogram reports the end of a bucket, which may lie beyond the largest value recorded.
    fn quantile_ns(&self, quantile: f64) -> u64 {
        self.histogram.value_at_quantile(quantile).min(self.max_ns)
    }
}

impl Default for LatencyHistogram {
    fn default() -> LatencyHistogram {
        LatencyHistogram::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_thousandth_and_mean_and_maximum_exact() {
        let mut latencies = LatencyHistogram::new();
        for i in 1..=10_000u64 {
            latencies.record(i * 1_000_003);
        }
        let times = latencies.response_times();
        let near = |value: Option<f64>, exact: f64| {
            let value = value.unwrap();
            assert!((value - exact).abs() <= exact * 1e-3, "{value} against {exact}");
        };
        near(times.p50, 5_000.0 * 1.000003);
        near(times.p99, 9_900.0 * 1.000003);
        near(times.p99_9, 9_990.0 * 1.000003);
        assert_eq!(times.mean, Some(5000.5 * 1_000_003.0 / 1e6));
        assert_eq!(times.max, Some(10_000.030));
    }

    #[test]
    fn an_empty_histogram_has_no_times_and_no_points() {
        let latencies = LatencyHistogram::new();
        assert_eq!(latencies.response_times(), ResponseTimes::default());
        assert!(latencies.cdf().ms.is_empty());
    }

    #[test]
    fn latencies_count_in_any_order_and_at_any_time() {
        let (mut in_turn, mut in_rows) = (LatencyHistogram::new(), LatencyHistogram::new());
        for _ in 0..3 {
            [0, 5_000, 80_000_000].into_iter().for_each(|latency| in_turn.record(latency));
        }
        for latency in [0, 5_000, 80_000_000] {
            [latency; 3].into_iter().for_each(|latency| in_rows.record(latency));
            assert_eq!(in_rows.response_times().max, Some(latency as f64 / 1e6));
        }
        let mut both = LatencyHistogram::new();
        both.add(&in_turn);
        both.add(&in_rows);
        for other in [&in_rows, &both] {
            assert_eq!(other.response_times(), in_turn.response_times());
            assert_eq!(other.cdf(), in_turn.cdf());
        }
        assert_eq!([in_turn.count(), in_rows.count(), both.count()], [9, 9, 18]);
    }

    #[test]
    fn more_than_a_day_keeps_its_exact_maximum() {
        let mut latencies = LatencyHistogram::new();
        latencies.record(3 * LATENCY_NS_MAX);
        assert_eq!(latencies.response_times().max, Some(3.0 * LATENCY_NS_MAX as f64 / 1e6));
    }

    #[test]
    fn the_distribution_is_bounded_falls_and_ends_at_zero() {
        let mut latencies = LatencyHistogram::new();
        let mut state = 1u64;
        for _ in 0..200_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            latencies.record(1000 + (state >> 33));
        }
        let cdf = latencies.cdf();
        assert!((50..1000).contains(&cdf.ms.len()), "{} points", cdf.ms.len());
        assert!(cdf.ms.is_sorted() && cdf.tail.is_sorted_by(|a, b| a > b));
        assert_eq!(cdf.tail.last(), Some(&0.0));
    }
}
