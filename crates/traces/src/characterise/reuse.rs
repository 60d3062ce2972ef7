//! LRU stack distances and the hit ratios that follow from them.

use super::access::Access;
use super::accesses::{LruPoint, Reuse};
use super::histogram::Histogram;

/// Distances up to this have a counter each: as many as there are blocks before any is sampled, so hit ratios are exact until
/// then.
const COUNTERS_MAX: usize = 1 << 21;

/// Distances of the accesses, reads and writes apart.
#[derive(Default)]
pub(super) struct ReuseCounts {
    directions: [Direction; 2],
}

#[derive(Default)]
struct Direction {
    /// How often each distance was met, that of 1 first. It grows to the greatest.
    counters: Vec<u64>,
    /// Distances beyond the counters.
    beyond: Histogram,
    cold: u64,
    /// Accesses there were, sampled or not.
    accesses: u64,
}

impl Direction {
    /// Counts a distance.
    #[inline]
    fn add(&mut self, distance: u64, weight: u64) {
        let place = distance as usize - 1;
        if place >= COUNTERS_MAX {
            self.beyond.add(distance, weight);
            return;
        }
        if place >= self.counters.len() {
            self.counters.resize(place + 1, 0);
        }
        self.counters[place] += weight;
    }

    /// The distances, in cells.
    fn distances(&self) -> Histogram {
        let mut all = self.beyond.clone();
        for (distance, &count) in (1..).zip(&self.counters) {
            if count > 0 {
                all.add(distance, count);
            }
        }
        all
    }

    fn summed(&self) -> Summed<'_> {
        let mut sum = 0;
        let sums = self.counters.iter().map(|count| {
            sum += count;
            sum
        });
        Summed { at_most: sums.collect(), direction: self }
    }
}

/// A direction with the sums of its counters.
struct Summed<'a> {
    /// Accesses at distances of at most 1, 2 and so on.
    at_most: Vec<u64>,
    direction: &'a Direction,
}

impl Summed<'_> {
    /// Accesses that a cache of so many blocks hits. A sample that has met too many or too few accesses is set right at the
    /// smallest distance: what is over or missing are accesses to a few hot blocks (SHARDS-adj of the SHARDS paper).
    fn hits(&self, cache_blocks: u64) -> f64 {
        let Direction { beyond, cold, accesses, .. } = self.direction;
        let counted = self.at_most.last().copied().unwrap_or(0);
        let missing = *accesses as f64 - (counted + beyond.count() + cold) as f64;
        let sums = &self.at_most[..self.at_most.len().min(cache_blocks as usize)];
        let near = sums.last().copied().unwrap_or(0) as f64;
        let hits = near + beyond.at_most(cache_blocks) + missing;
        hits.clamp(0.0, *accesses as f64)
    }
}

impl ReuseCounts {
    /// Counts the accesses of a request before any of them is sampled.
    pub(super) fn expect(&mut self, access: &Access) {
        self.directions[access.direction()].accesses += access.blocks;
    }

    /// Counts an access at a distance.
    #[inline]
    pub(super) fn again(&mut self, access: &Access, distance: u64, weight: u64) {
        self.directions[access.direction()].add(distance, weight);
    }

    /// Counts a first access.
    pub(super) fn cold(&mut self, access: &Access, weight: u64) {
        self.directions[access.direction()].cold += weight;
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
    let (read_hits, write_hits) = (reads.hits(cache_blocks), writes.hits(cache_blocks));
    let (read, written) = (reads.direction.accesses, writes.direction.accesses);
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
