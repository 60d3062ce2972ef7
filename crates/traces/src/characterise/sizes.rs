//! Sizes of requests.

use std::collections::BTreeMap;

use super::access::SECTOR_BYTES;
use super::histogram::{Histogram, bar_of};
use super::sections::Bin;

/// Sizes in whole sectors up to 2 MiB have a counter each.
const COUNTERS: u64 = 4096;
/// Other sizes that are kept one by one; later ones are rounded down by less than 1.6 %.
const OTHERS_MAX: usize = 4096;
/// With more sizes than this, a histogram joins them, four bars to a doubling.
const BARS_OF_ONE_SIZE: usize = 256;

/// How often each size was asked for, in one direction.
pub(super) struct Sizes {
    sectors: Vec<u64>,
    others: BTreeMap<u64, u64>,
    rounded: Histogram,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            sectors: vec![0; COUNTERS as usize],
            others: BTreeMap::new(),
            rounded: Histogram::default(),
        }
    }
}

impl Sizes {
    #[inline]
    pub(super) fn add(&mut self, bytes: u64) {
        let sectors = bytes / SECTOR_BYTES;
        if sectors < COUNTERS && bytes.is_multiple_of(SECTOR_BYTES) {
            self.sectors[sectors as usize] += 1;
        } else if let Some(count) = self.others.get_mut(&bytes) {
            *count += 1;
        } else if self.others.len() < OTHERS_MAX {
            self.others.insert(bytes, 1);
        } else {
            self.rounded.add(bytes, 1);
        }
    }

    /// Sizes and their counts, ascending.
    fn all(&self) -> Vec<Bin> {
        let one = |(size, count)| Bin { from: size, to: size, count };
        let sectors = (0..).map(|sectors| sectors * SECTOR_BYTES);
        let counted = sectors.zip(self.sectors.iter().copied()).filter(|size| size.1 > 0);
        let others = self.others.iter().map(|(&size, &count)| (size, count));
        let mut all: Vec<Bin> = counted.chain(others).map(one).collect();
        all.extend(self.rounded.bins());
        all.sort_unstable_by_key(|bin| (bin.from, bin.to));
        all
    }

    /// The bars of the histogram.
    pub(super) fn bins(&self) -> Vec<Bin> {
        let all = self.all();
        if all.len() <= BARS_OF_ONE_SIZE {
            return all;
        }
        let mut joined: Vec<Bin> = Vec::new();
        for bin in all {
            let (from, to) = bar_of(bin.from);
            match joined.last_mut() {
                Some(last) if last.from == from => last.count += bin.count,
                _ => joined.push(Bin { from, to, ..bin }),
            }
        }
        joined
    }

    /// The median size, the lower one of two; 0 of nothing.
    pub(super) fn median(&self, requests: u64) -> u64 {
        let mut below = 0;
        for bin in self.all() {
            below += bin.count;
            if below * 2 >= requests {
                return bin.from;
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_odd_sizes_take_bounded_memory_and_are_all_counted() {
        let mut sizes = Sizes::default();
        for size in 1..100_000 {
            sizes.add(size);
        }
        assert!(sizes.others.len() <= OTHERS_MAX);
        let bins = sizes.bins();
        assert!(bins.len() < BARS_OF_ONE_SIZE);
        assert_eq!(bins.iter().map(|bin| bin.count).sum::<u64>(), 99_999);
        let median = sizes.median(99_999) as f64;
        assert!((median / 50_000.0 - 1.0).abs() < 0.2, "{median}");
    }
}
