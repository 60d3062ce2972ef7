//! Latencies and rates in constant memory, as fio keeps them.

/// The percentiles that fio reports unless it is told otherwise.
pub const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// Buckets of a power of two, as a power of two: values are told apart to 1/64.
const BITS: u32 = 6;
const BUCKETS: usize = ((64 - BITS as usize) + 1) << BITS;

/// Smallest, largest, mean and deviation of numbers.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// How many numbers.
    pub count: u64,
    /// The smallest; 0 when there is none.
    min: u64,
    /// The largest; 0 when there is none.
    pub max: u64,
    /// Their mean; 0 when there is none.
    pub mean: f64,
    /// Sum of the squared differences from the mean.
    squares: f64,
}

impl Default for Spread {
    fn default() -> Spread {
        Spread { count: 0, min: u64::MAX, max: 0, mean: 0.0, squares: 0.0 }
    }
}

impl Spread {
    /// Adds a number (Welford's method).
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let difference = value as f64 - self.mean;
        self.mean += difference / self.count as f64;
        self.squares += difference * (value as f64 - self.mean);
    }

    /// The smallest number; 0 when there is none.
    pub fn min(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min }
    }

    /// Standard deviation of the numbers as a sample; 0 for fewer than two.
    pub fn deviation(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        (self.squares / (self.count - 1) as f64).sqrt()
    }

    /// Adds the numbers of another.
    pub fn merge(&mut self, other: &Spread) {
        if other.count == 0 {
            return;
        }
        let (a, b) = (self.count as f64, other.count as f64);
        let difference = other.mean - self.mean;
        self.mean += difference * b / (a + b);
        self.squares += other.squares + difference * difference * a * b / (a + b);
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Adds the rate of a job that ran beside: fio sums the figures of the jobs of a group.
    pub fn add_rate(&mut self, other: &Spread) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        self.min += other.min;
        self.max += other.max;
        self.mean += other.mean;
        self.squares += other.squares;
        self.count += other.count;
    }
}

/// The ends of fio's steps of latency in a unit.
pub const STEP_ENDS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// Steps of latency: those of nanoseconds, of microseconds and of milliseconds, up to 2 s, and one
/// for all that is longer.
const STEPS: usize = 3 * STEP_ENDS.len() + 2;

/// Latencies: their spread, and how many fell into each of fio's buckets and steps.
#[derive(Clone)]
pub struct Latencies {
    /// The spread, ns.
    pub spread: Spread,
    buckets: Vec<u64>,
    steps: [u64; STEPS],
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies { spread: Spread::default(), buckets: vec![0; BUCKETS], steps: [0; STEPS] }
    }
}

#[inline]
fn bucket_of(value: u64) -> usize {
    let power = 63 - (value | 1).leading_zeros();
    if power <= BITS {
        return value as usize;
    }
    let shift = power - BITS;
    ((shift as usize + 1) << BITS) + ((value >> shift) as usize & ((1 << BITS) - 1))
}

/// The step of a latency, whose end is past it. A latency below a unit is in the steps of the
/// smaller one.
fn step_of(ns: u64) -> usize {
    let (unit, value) = match ns {
        0..1_000 => (0, ns),
        1_000..1_000_000 => (1, ns / 1_000),
        _ => (2, ns / 1_000_000),
    };
    let step = STEP_ENDS.partition_point(|end| *end <= value);
    unit * STEP_ENDS.len() + step + usize::from(value >= 2000)
}

/// The middle of a bucket.
fn middle_of(bucket: usize) -> u64 {
    if bucket < 2 << BITS {
        return bucket as u64;
    }
    let shift = (bucket >> BITS) as u32 - 1;
    let step = (bucket & ((1 << BITS) - 1)) as u64;
    (1 << (shift + BITS)) + (step << shift) + (1 << (shift - 1))
}

impl Latencies {
    /// Adds a latency.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        self.spread.add(ns);
        self.buckets[bucket_of(ns)] += 1;
        self.steps[step_of(ns)] += 1;
    }

    /// Adds the latencies of another.
    pub fn merge(&mut self, other: &Latencies) {
        self.spread.merge(&other.spread);
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        for (mine, theirs) in self.steps.iter_mut().zip(other.steps) {
            *mine += theirs;
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.spread = Spread::default();
        self.buckets.fill(0);
        self.steps.fill(0);
    }

    /// The latency below which `percent` of them lie, ns, to 1/128; 0 when there is none.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        let wanted = (percent / 100.0 * self.spread.count as f64).max(1.0);
        let mut sum = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            sum += count;
            if *count > 0 && sum as f64 >= wanted {
                return middle_of(bucket);
            }
        }
        0
    }

    /// How many latencies lie in each of fio's steps: of nanoseconds below a microsecond, of
    /// microseconds below a millisecond, and of milliseconds, with one up to 2 s and one for more.
    pub fn steps(&self) -> [&[u64]; 3] {
        let (ns, rest) = self.steps.split_at(STEP_ENDS.len());
        let (us, ms) = rest.split_at(STEP_ENDS.len());
        [ns, us, ms]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_within_a_128th_of_what_falls_into_it() {
        let mut value = 1u64;
        while value < 1 << 62 {
            for near in [value - 1, value, value + value / 3] {
                let middle = middle_of(bucket_of(near));
                assert!(middle.abs_diff(near) <= near / 128 + 1, "{near}: {middle}");
            }
            value = value * 3 / 2 + 1;
        }
        assert!(bucket_of(u64::MAX) < BUCKETS);
    }

    #[test]
    fn a_latency_at_the_end_of_a_step_is_in_the_next() {
        let mut latencies = Latencies::default();
        for ns in [0, 1, 2, 999, 1_000, 99_999, 100_000, 999_999_999, 1_999_999_999, 2_000_000_000]
        {
            latencies.add(ns);
        }
        assert_eq!(
            latencies.steps(),
            [
                &[2, 1, 0, 0, 0, 0, 0, 0, 0, 1][..],
                &[1, 0, 0, 0, 0, 1, 1, 0, 0, 0],
                &[0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1],
            ]
        );
    }

    #[test]
    fn spreads_of_parts_add_up_to_that_of_the_whole() {
        let (mut whole, mut left, mut right) =
            (Spread::default(), Spread::default(), Spread::default());
        for value in 0..1000u64 {
            let value = value * value % 977;
            whole.add(value);
            if value < 300 {
                left.add(value);
            } else {
                right.add(value);
            }
        }
        left.merge(&right);
        assert_eq!((left.count, left.min(), left.max), (whole.count, whole.min(), whole.max));
        assert!((left.mean - whole.mean).abs() < 1e-9);
        assert!((left.deviation() - whole.deviation()).abs() < 1e-9);
        assert_eq!(Spread::default().min(), 0);
    }

    #[test]
    fn percentiles_of_an_even_ramp() {
        let mut latencies = Latencies::default();
        (1..=100_000u64).for_each(|i| latencies.add(i * 1000));
        for percent in [1.0, 50.0, 99.0, 99.99] {
            let exact = percent * 1e6;
            let found = latencies.percentile_ns(percent) as f64;
            assert!((found / exact - 1.0).abs() < 1.0 / 64.0, "{percent}: {found}");
        }
    }
}
