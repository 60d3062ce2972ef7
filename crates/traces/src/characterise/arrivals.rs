//! When requests arrive: rates, active periods, gaps. Everything here is exact and takes constant memory.

use serde::Serialize;

use super::sections::Distribution;

/// How intense the load is. The clock starts at the first record. A trace of less than one interval counts as one.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Activity {
    /// Reads and writes per second from the first record to the last. 0 if all arrive at once.
    pub mean_requests_per_s: f64,
    /// Peaks, by the length of the interval in which requests are counted: 1 s, 60 s (that of Li et al., ACM ToS 2023),
    /// 600 s.
    pub peaks: Vec<Peak>,
    /// Intervals of 600 s with at least one read or write (Li et al.).
    pub active_intervals: u64,
    /// Intervals with at least one read.
    pub read_active_intervals: u64,
    /// Intervals with at least one write.
    pub write_active_intervals: u64,
    /// Intervals from the first record to the last.
    pub intervals: u64,
    /// Active intervals per cent of all.
    pub active_percent: f64,
}

/// The fullest interval of one length.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Peak {
    /// Length of the interval, seconds.
    pub interval_s: u64,
    /// Reads and writes per second in the fullest interval.
    pub requests_per_s: f64,
    /// Burstiness ratio: this peak over the mean rate (Li et al.). 0 if there is no mean.
    pub burstiness_ratio: f64,
    /// Most bytes written in an interval.
    pub written_bytes: u64,
}

/// Requests and bytes in windows of equal length, at most 512. Windows double when there are too many.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct LoadSeries {
    /// Length of a window, seconds.
    pub window_s: f64,
    /// Reads in each window.
    pub reads: Vec<u64>,
    /// Writes in each window.
    pub writes: Vec<u64>,
    /// Bytes read in each window.
    pub read_bytes: Vec<u64>,
    /// Bytes written in each window.
    pub written_bytes: Vec<u64>,
}

/// Times between arrivals of records of any kind. What a disk does in them is not known from a trace, so a gap may hold the
/// service of the request before it.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Gaps {
    /// Nanoseconds between a record and the next.
    pub inter_arrival_ns: Distribution,
    /// Gaps of at least 0.1 s, 1 s, 10 s and 60 s.
    pub idle: Vec<Idle>,
    /// Most bytes written between two gaps of at least 1 s: the largest burst.
    pub largest_write_burst_bytes: u64,
}

/// Gaps of at least a length.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Idle {
    /// The length, seconds.
    pub at_least_s: f64,
    /// Number of such gaps.
    pub gaps: u64,
    /// Their sum, seconds.
    pub total_s: f64,
    /// The same per cent of the time from the first record to the last.
    pub time_percent: f64,
}
