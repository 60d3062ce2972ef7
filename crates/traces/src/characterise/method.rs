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
        Self { method: "exact".to_owned(), sampled_one_in: 1, standard_error_percent: 0.0 }
    }
}

impl Method {
    /// A spatially hashed sample: one in `weight` of `what` was kept.
    pub(super) fn sample(what: &str, weight: u64, standard_error_percent: f64) -> Self {
        Self {
            method: format!("hash sample of {what} at rate 1/{weight} (SHARDS)"),
            sampled_one_in: weight,
            standard_error_percent,
        }
    }

    /// The method and its error, for people.
    pub(super) fn described(&self) -> String {
        if self.sampled_one_in == 1 {
            return self.method.clone();
        }
        let error = self.standard_error_percent;
        format!("{}, standard error {error:.2} %", self.method)
    }
}
