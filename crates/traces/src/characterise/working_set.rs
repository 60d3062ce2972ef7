//! Distinct blocks over time.

use serde::Serialize;

/// Distinct blocks in windows of equal length, at most 512. Windows double when there are too many.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct WorkingSetSeries {
    /// Length of a window, seconds.
    pub window_s: f64,
    /// Distinct blocks accessed in each window.
    pub blocks: Vec<u64>,
    /// Distinct blocks accessed from the start to the end of each window.
    pub cumulative_blocks: Vec<u64>,
    /// Distinct blocks written from the start to the end of each window.
    pub cumulative_written_blocks: Vec<u64>,
}
