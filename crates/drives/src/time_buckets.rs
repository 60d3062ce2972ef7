//! Time in a fixed number of buckets, for series in constant memory.
//!
//! When time runs past the last bucket, neighbours are merged and the width doubles, so a run of any
//! length fits and equal inputs give equal outputs.

/// Width of a bucket at the start: 1 ms in nanoseconds.
const BUCKET_NS_START: u64 = 1_000_000;

/// Bucket boundaries shared by the kinds of series.
#[derive(Clone, Copy, Debug)]
pub struct Buckets {
    /// Nanoseconds that a bucket spans.
    pub width_ns: u64,
    /// Buckets there are.
    pub count: usize,
}

impl Buckets {
    /// `count` buckets, an even number, each as narrow as it can be.
    pub fn new(count: usize) -> Buckets {
        assert!(count >= 2 && count.is_multiple_of(2), "neighbours merge in pairs");
        Buckets { width_ns: BUCKET_NS_START, count }
    }

    /// Whether the last bucket ends after `at_ns`.
    #[inline]
    pub fn reach(&self, at_ns: u64) -> bool {
        at_ns / self.width_ns < self.count as u64
    }

    /// The bucket of `at_ns`, which must be in reach.
    #[inline]
    pub fn index(&self, at_ns: u64) -> usize {
        (at_ns / self.width_ns) as usize
    }

    /// Buckets that begin before `end_ns`, at least one.
    pub fn used(&self, end_ns: u64) -> usize {
        (end_ns.div_ceil(self.width_ns) as usize).clamp(1, self.count)
    }

    /// Nanoseconds of bucket `index` that lie before `end_ns`.
    pub fn covered_ns(&self, index: usize, end_ns: u64) -> u64 {
        end_ns.saturating_sub(index as u64 * self.width_ns).min(self.width_ns)
    }
}

/// Merges neighbours into the first half and clears the second.
pub fn halve<T: Copy + Default>(values: &mut [T], merge: impl Fn(T, T) -> T) {
    let half = values.len() / 2;
    for i in 0..half {
        values[i] = merge(values[2 * i], values[2 * i + 1]);
    }
    values[half..].fill(T::default());
}
