//! Shares, sizes and randomness of requests.

use serde::Serialize;

use super::sections::Bin;

/// Reads, writes and updates as shares, in per cent. An update writes a block that was written before in the trace.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Shares {
    /// By request, of the reads and writes.
    pub of_requests: Share,
    /// By 4 KiB block, of the blocks read and written, each counted each time.
    pub of_accesses: Share,
    /// By distinct 4 KiB block, of the blocks accessed. A block may be read as well as written, so reads and writes may
    /// sum to more than 100.
    pub of_distinct_blocks: Share,
    /// Update coverage: distinct bytes of blocks written at least twice, of the distinct bytes of blocks written, per cent
    /// (Li et al., ACM ToS 2023; in whole blocks here).
    pub update_coverage_percent: f64,
}

/// Three shares of one whole, in per cent.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Share {
    /// That are read.
    pub read_percent: f64,
    /// That are written.
    pub write_percent: f64,
    /// That are updated: a request is an update if at least one of its blocks is.
    pub update_percent: f64,
}

/// Sizes of the requests in bytes, per direction.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct RequestSizes {
    /// Reads, ascending. Bars of one size each (`from` = `to`) as long as there are few sizes.
    pub read: Vec<Bin>,
    /// Writes, likewise.
    pub write: Vec<Bin>,
}

/// Random and sequential requests. Reads and writes share one window for each device.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Randomness {
    /// Random requests per cent of the reads and writes: the least distance of the offset to those of the last 32 requests
    /// to the device exceeds 128 KiB (Li et al., ACM ToS 2023), and it starts where none of them ended. The first request of
    /// a device has none before and does not count, neither as random nor among all.
    pub random_percent: f64,
    /// The same of the reads alone.
    pub random_reads_percent: f64,
    /// The same of the writes alone.
    pub random_writes_percent: f64,
    /// Reads that start where one of the last 32 requests to the device ended, per cent of the reads.
    pub sequential_reads_percent: f64,
    /// Writes that start where one of the last 32 requests to the device ended, per cent of the writes.
    pub sequential_writes_percent: f64,
    /// Bytes of those writes, per cent of the bytes written.
    pub sequential_write_bytes_percent: f64,
}
