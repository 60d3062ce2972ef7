//! LRU stack distances and the hit ratios that follow from them.

use super::access::Access;
use super::accesses::{LruPoint, Reuse};
use super::histogram::Histogram;

/// Distances of the accesses, reads and writes apart.
#[derive(Default)]
pub(super) struct ReuseCounts {
    directions: [Direction; 2],
}

#[derive(Default)]
struct Direction {
    distances: Histogram,
    cold: u64,
    /// Accesses there were, sampled or not.
    accesses: u64,
}

impl Direction {
    /// Accesses that a cache of so many blocks hits. A sample that has met too many or too few accesses is set right at the
    /// smallest distance: what is over or missing are accesses to a few hot blocks (SHARDS-adj of the SHARDS paper).
    fn hits(&self, cache_blocks: u64) -> f64 {
        let missing = self.accesses as f64 - (self.distances.count() + self.cold) as f64;
        let hits = self.distances.at_most(cache_blocks) + missing;
        hits.clamp(0.0, self.accesses as f64)
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
        self.directions[access.direction()]
            .distances
            .add(distance, weight);
    }

    /// Counts a first access.
    pub(super) fn cold(&mut self, access: &Access, weight: u64) {
        self.directions[access.direction()].cold += weight;
    }

    /// Sums up for a trace with so many distinct blocks.
    pub(super) fn finish(&self, blocks: u64) -> Reuse {
        let [reads, writes] = &self.directions;
        let sizes = sizes(blocks);
        Reuse {
            distance_blocks: reads.distances.merged(&writes.distances).distribution(),
            cold_accesses: reads.cold + writes.cold,
            lru: sizes.into_iter().map(|size| self.point(size)).collect(),
            lru_at_1_percent: self.point((blocks / 100).max(1)),
            lru_at_10_percent: self.point((blocks / 10).max(1)),
        }
    }

    fn point(&self, cache_blocks: u64) -> LruPoint {
        let [reads, writes] = &self.directions;
        let percent = |hits: f64, accesses: u64| match accesses {
            0 => 0.0,
            _ => 100.0 * hits / accesses as f64,
        };
        let missed = |direction: &Direction| match direction.accesses {
            0 => 0.0,
            accesses => 100.0 - percent(direction.hits(cache_blocks), accesses),
        };
        let (read_hits, write_hits) = (reads.hits(cache_blocks), writes.hits(cache_blocks));
        LruPoint {
            cache_blocks,
            hit_percent: percent(read_hits + write_hits, reads.accesses + writes.accesses),
            read_hit_percent: percent(read_hits, reads.accesses),
            write_hit_percent: percent(write_hits, writes.accesses),
            read_miss_percent: missed(reads),
            write_miss_percent: missed(writes),
        }
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
