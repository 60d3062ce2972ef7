//! Response times as a report tells them.

use serde::{Deserialize, Serialize};

/// Response times in milliseconds; all null when nothing completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResponseTimes {
    /// Exact mean.
    pub mean: Option<f64>,
    /// Median, to 3 significant digits as the other percentiles.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p99_9: Option<f64>,
    /// 99.99th percentile.
    #[serde(default)]
    pub p99_99: Option<f64>,
    /// Exact maximum.
    pub max: Option<f64>,
}
