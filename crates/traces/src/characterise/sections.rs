//! The sections of a characterisation beside its plain figures. Each part of the gatherer fills one.

use serde::Serialize;

use super::accesses::{AdjacentAccesses, Popularity, Reuse};
use super::arrivals::{Activity, Gaps, LoadSeries};
use super::method::Methods;
use super::requests::{Randomness, RequestSizes, Shares};
use super::verdicts::Verdict;
use super::working_set::WorkingSetSeries;
use imbrex_drives::HeatMap;

/// What is known of a trace beside its plain figures. Sections that need times are `None` where the trace has none.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Sections {
    /// What was counted exactly and what was estimated, with the error.
    pub methods: Methods,
    /// Reads, writes and updates as shares of requests, of accesses and of distinct blocks.
    pub shares: Shares,
    /// Sizes of the requests, per direction.
    pub request_sizes: RequestSizes,
    /// Random and sequential requests.
    pub randomness: Randomness,
    /// How often blocks are written, and how much of the traffic goes to few blocks.
    pub popularity: Popularity,
    /// LRU stack distances and the hit ratios that follow.
    pub reuse: Reuse,
    /// What a block's access meets there, and how long after.
    pub adjacent_accesses: AdjacentAccesses,
    /// Request rates: mean, peaks, active periods.
    pub activity: Option<Activity>,
    /// Requests and bytes over time.
    pub load: Option<LoadSeries>,
    /// Times between arrivals, and idle gaps.
    pub gaps: Option<Gaps>,
    /// Distinct blocks over time.
    pub working_set: Option<WorkingSetSeries>,
    /// Blocks read and written, by address and time.
    pub heat: Option<Heat>,
    /// Which kind of drive the workload suits, from the trace alone.
    pub verdicts: Vec<Verdict>,
}

/// Blocks of 4 KiB by address and time; devices lie on top of each other, by the address within each.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Heat {
    /// Blocks read, counted each time.
    pub read: HeatMap,
    /// Blocks written, counted each time.
    pub write: HeatMap,
}

/// A point of a curve or a bar of a histogram with its lower and upper bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bin {
    /// Least value in the bin.
    pub from: u64,
    /// Greatest value in the bin.
    pub to: u64,
    /// How many values were in it. Of a sample: an estimate for the whole trace.
    pub count: u64,
}

/// A distribution of whole numbers. Percentiles are the least value that at least so many per cent of the values do not
/// exceed; above 64 they are rounded down by less than 1.6 % (`maximum` and `mean` are not rounded).
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Distribution {
    /// Number of values. Of a sample: an estimate for the whole trace.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Greatest value.
    pub maximum: u64,
    /// 25 % are at most this.
    pub p25: u64,
    /// Half are at most this.
    pub p50: u64,
    /// 75 % are at most this.
    pub p75: u64,
    /// 90 % are at most this.
    pub p90: u64,
    /// 95 % are at most this.
    pub p95: u64,
    /// 99 % are at most this.
    pub p99: u64,
    /// 99.9 % are at most this.
    pub p999: u64,
    /// Bars with at least one value, four to a doubling, ascending.
    pub histogram: Vec<Bin>,
}
