//! What is known of a block's accesses: how often, how far apart, in which order. A request accesses each 4 KiB block it covers
//! once, in ascending order.

use serde::Serialize;

use super::sections::Distribution;

/// How accesses spread over blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Popularity {
    /// The cumulative distributions of Le's thesis (figures 5.1 and 5.2), at log-spaced counts up to the greatest.
    pub cdf: Vec<CdfPoint>,
    /// All accesses.
    pub accesses: Aggregation,
    /// Reads, over the blocks read.
    pub reads: Aggregation,
    /// Writes, over the blocks written.
    pub writes: Aggregation,
    /// Blocks of whose accesses more than 95 % are reads (Li et al., ACM ToS 2023).
    pub read_mostly: Mostly,
    /// Blocks of whose accesses more than 95 % are writes.
    pub write_mostly: Mostly,
}

/// Shares of blocks whose count is at most `times`, per cent. A block written n times is updated n - 1 times; one that is never
/// written is written and updated 0 times.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CdfPoint {
    /// The count x.
    pub times: u64,
    /// Of the blocks accessed, those written at most so often.
    pub accessed_written_percent: f64,
    /// Of the blocks accessed, those updated at most so often.
    pub accessed_updated_percent: f64,
    /// Of the blocks written, those written at most so often.
    pub written_written_percent: f64,
    /// Of the blocks written, those updated at most so often.
    pub written_updated_percent: f64,
}

/// How much of the traffic the most popular blocks take; traffic is counted in block accesses.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Aggregation {
    /// Distinct blocks.
    pub blocks: u64,
    /// Share of the traffic that goes to the most popular 1 % of them (at least one), per cent (Li et al.).
    pub top_1_percent: f64,
    /// To the most popular 10 %.
    pub top_10_percent: f64,
}

/// Blocks that are accessed nearly always in one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Mostly {
    /// Per cent of the distinct blocks accessed.
    pub blocks_percent: f64,
    /// Their share of the accesses in that direction, per cent (Li et al.).
    pub traffic_percent: f64,
}

/// LRU stack distances: the number of distinct blocks accessed since the last access to the same block, that block included.
/// A cache of n blocks with LRU replacement that keeps reads and writes alike hits when the distance is at most n.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Reuse {
    /// Distances of the accesses that have one before to their block, blocks.
    pub distance_blocks: Distribution,
    /// First accesses to a block, which no cache hits.
    pub cold_accesses: u64,
    /// Hit ratios of an LRU cache, at log-spaced sizes up to one that holds everything.
    pub lru: Vec<LruPoint>,
    /// An LRU cache of 1 % of the distinct blocks (at least one block; Li et al., ACM ToS 2023).
    pub lru_at_1_percent: LruPoint,
    /// An LRU cache of 10 % of the distinct blocks.
    pub lru_at_10_percent: LruPoint,
}

/// An LRU cache of one size. Ratios are in per cent of the accesses, of the read accesses, of the write accesses.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct LruPoint {
    /// Size, 4 KiB blocks.
    pub cache_blocks: u64,
    /// Hits of all accesses.
    pub hit_percent: f64,
    /// Hits of the reads.
    pub read_hit_percent: f64,
    /// Hits of the writes.
    pub write_hit_percent: f64,
    /// Misses of the reads (Li et al. give misses).
    pub read_miss_percent: f64,
    /// Misses of the writes.
    pub write_miss_percent: f64,
}

/// Pairs of accesses to the same block with no other access to it between them (Li et al., ACM ToS 2023). Counts alone where the
/// trace has no times.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct AdjacentAccesses {
    /// A read after a write.
    pub read_after_write: Adjacent,
    /// A write after a write.
    pub write_after_write: Adjacent,
    /// A read after a read.
    pub read_after_read: Adjacent,
    /// A write after a read.
    pub write_after_read: Adjacent,
    /// From a write of a block to the next write of it, whatever is read between: the update interval.
    pub update_interval: Adjacent,
}

/// Pairs of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Adjacent {
    /// Number of pairs.
    pub count: u64,
    /// Time between the two, nanoseconds.
    pub time_ns: Option<Distribution>,
}
