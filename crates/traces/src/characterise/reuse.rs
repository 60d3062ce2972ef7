//! LRU stack distances and the hit ratios that follow from them.

use std::collections::BTreeMap;

use super::accesses::{LruPoint, Reuse};
use super::histogram::Histogram;
use super::sample_groups::Trust;

/// Distances of the accesses, reads (0) and writes (1) apart.
pub(super) struct ReuseCounts {
    directions: [Direction; 2],
    /// Distances up to this have a counter each.
    counters_max: usize,
}

#[derive(Default)]
struct Direction {
    /// How often each distance was met, that of 1 first, as far as it fits. It grows to the greatest.
    counters: Vec<u32>,
    /// What did not fit the counters, by their place.
    carried: BTreeMap<usize, u64>,
    /// Distances beyond the counters.
    beyond: Histogram,
    cold: u64,
    /// Accesses there were, sampled or not.
    accesses: u64,
}

impl Direction {
    /// Counts a distance.
    #[inline]
    fn add(&mut self, distance: u64, weight: u64, counters_max: usize) {
        let place = distance as usize - 1;
        if place >= counters_max {
            self.beyond.add(distance, weight);
            return;
        }
        if place >= self.counters.len() {
            self.counters.resize(place + 1, 0);
        }
        let sum = u64::from(self.counters[place]) + weight;
        self.counters[place] = sum as u32;
        if sum > u64::from(u32::MAX) {
            *self.carried.entry(place).or_default() += sum - u64::from(sum as u32);
        }
    }

    /// How often each distance was met, from 1.
    fn counted(&self) -> impl Iterator<Item = u64> {
        let carried = |place| self.carried.get(&place).copied().unwrap_or(0);
        let counters = self.counters.iter().enumerate();
        counters.map(move |(place, &count)| u64::from(count) + carried(place))
    }

    /// The distances, in cells.
    fn distances(&self) -> Histogram {
        let mut all = self.beyond.clone();
        for (distance, count) in (1..).zip(self.counted()) {
            if count > 0 {
                all.add(distance, count);
            }
        }
        all
    }

    fn summed(&self) -> Summed<'_> {
        let mut sum = 0;
        let sums = self.counted().map(|count| {
            sum += count;
            sum
        });
        Summed { at_most: sums.collect(), direction: self }
    }
}

/// Hits of a cache in one direction.
pub(super) struct Estimate {
    pub(super) hits: u64,
    /// Standard error.
    pub(super) error: f64,
}

/// A direction with the sums of its counters.
struct Summed<'a> {
    /// Accesses at distances of at most 1, 2 and so on.
    at_most: Vec<u64>,
    direction: &'a Direction,
}

impl Summed<'_> {
    /// Accesses that a cache of so many blocks hits, of `expected`. A sample that has met too many or too few accesses is set
    /// right at the smallest distance, by `share` of what is over or missing. All of it are accesses to a few hot blocks where
    /// that is 1 (SHARDS-adj of the SHARDS paper).
    fn hits(&self, cache_blocks: u64, expected: f64, share: f64) -> f64 {
        let Direction { beyond, cold, .. } = self.direction;
        let counted = self.at_most.last().copied().unwrap_or(0);
        let missing = expected - (counted + beyond.count() + cold) as f64;
        let sums = &self.at_most[..self.at_most.len().min(cache_blocks as usize)];
        let near = sums.last().copied().unwrap_or(0) as f64;
        let hits = near + beyond.at_most(cache_blocks) + missing * share;
        hits.clamp(0.0, expected)
    }
}

impl ReuseCounts {
    /// Distances up to `counters_max` are counted each by itself, those beyond in cells.
    pub(super) fn new(counters_max: usize) -> Self {
        Self { directions: Default::default(), counters_max }
    }

    /// Counts the accesses of a request before any of them is sampled.
    pub(super) fn expect(&mut self, direction: usize, accesses: u64) {
        self.directions[direction].accesses += accesses;
    }

    /// Counts an access at a distance.
    #[inline]
    pub(super) fn again(&mut self, direction: usize, distance: u64, weight: u64) {
        self.directions[direction].add(distance, weight, self.counters_max);
    }

    /// Counts a first access.
    pub(super) fn cold(&mut self, direction: usize, weight: u64) {
        self.directions[direction].cold += weight;
    }

    /// All accesses, sampled or not, of reads and writes.
    pub(super) fn accesses(&self) -> [u64; 2] {
        self.directions.each_ref().map(|direction| direction.accesses)
    }

    /// Reads and writes that caches hit which reach to these distances, when `rate` of all accesses were counted. `trust` says
    /// how missing ones of a direction are counted at a distance.
    pub(super) fn hits(
        &self,
        rate: f64,
        distances: &[u64],
        trust: impl Fn(usize, u64) -> Trust,
    ) -> Vec<[Estimate; 2]> {
        let summed = self.directions.each_ref().map(Direction::summed);
        let estimate = |direction: usize, distance: u64| {
            let of = &summed[direction];
            let expected = of.direction.accesses as f64 * rate;
            let Trust { share, error } = trust(direction, distance);
            Estimate {
                hits: (of.hits(distance, expected, share) / rate).round() as u64,
                error: error * (1.0 - rate).sqrt() / rate,
            }
        };
        distances.iter().map(|&at| [estimate(0, at), estimate(1, at)]).collect()
    }

    /// Sums up for a trace with so many distinct blocks.
    pub(super) fn finish(&self, blocks: u64) -> Reuse {
        let [reads, writes] = &self.directions;
        let distances = reads.distances().merged(&writes.distances());
        let summed = [reads.summed(), writes.summed()];
        let point = |size| point(&summed, size);
        Reuse {
            distance_blocks: distances.distribution(),
            cold_accesses: reads.cold + writes.cold,
            lru: sizes(blocks).into_iter().map(point).collect(),
            lru_at_1_percent: point((blocks / 100).max(1)),
            lru_at_10_percent: point((blocks / 10).max(1)),
        }
    }
}

fn point([reads, writes]: &[Summed<'_>; 2], cache_blocks: u64) -> LruPoint {
    let percent = |hits: f64, accesses: u64| match accesses {
        0 => 0.0,
        _ => 100.0 * hits / accesses as f64,
    };
    let missed = |hits: f64, accesses: u64| match accesses {
        0 => 0.0,
        _ => 100.0 - percent(hits, accesses),
    };
    let (read, written) = (reads.direction.accesses, writes.direction.accesses);
    let read_hits = reads.hits(cache_blocks, read as f64, 1.0);
    let write_hits = writes.hits(cache_blocks, written as f64, 1.0);
    LruPoint {
        cache_blocks,
        hit_percent: percent(read_hits + write_hits, read + written),
        read_hit_percent: percent(read_hits, read),
        write_hit_percent: percent(write_hits, written),
        read_miss_percent: missed(read_hits, read),
        write_miss_percent: missed(write_hits, written),
    }
}

/// Powers of two and the halves between them, up to the number of blocks.
fn sizes(blocks: u64) -> Vec<u64> {
    let mut sizes = Vec::new();
    let mut size = 1;
    while size < blocks {
        sizes.push(size);
        let between = size + size / 2;
        if between > size && between < blocks {
            sizes.push(between);
        }
        size *= 2;
    }
    if blocks > 0 {
        sizes.push(blocks);
    }
    sizes
}
