//! What was counted exactly and what from a sample.

use serde::Serialize;

/// How a group of figures was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Method {
    /// `exact`, or the sketch with its parameters, for people.
    pub method: String,
    /// One in so many of the address space was looked at; 1 is all of it.
    pub sampled_one_in: u64,
    /// Standard error of the figures that are estimated, per cent of their value; 0 if exact.
    pub standard_error_percent: f64,
}

/// How each group of figures was found.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Methods {
    /// Distinct blocks and bytes, updates, written and updated shares, bands.
    pub distinct: Method,
    /// What is kept for each block: popularity, reuse, adjacent accesses, working set. The error is that of the estimated
    /// number of distinct blocks.
    pub blocks: Method,
    /// Everything else: counts, sizes, times, randomness. Always exact.
    pub requests: Method,
}

impl Default for Method {
    /// Exact: nothing was left out.
    fn default() -> Self {
        Self {
            method: "exact".to_owned(),
            sampled_one_in: 1,
            standard_error_percent: 0.0,
        }
    }
}
