//! Whether a recipe for a volume is possible.

use super::volume::Volume;
use std::ops::RangeInclusive;

impl Volume {
    /// What makes the recipe impossible: field, value and what is accepted.
    pub(super) fn problem(&self) -> Option<String> {
        first_outside(&self.percentages(), 0.0..=100.0, "0 to 100")
            .or_else(|| first_outside(&self.at_least_one(), 1.0..=1e15, "1 or more"))
            .or_else(|| first_outside(&self.zero_or_more(), 0.0..=100.0, "0 to 100"))
            .or_else(|| self.footprint_problem())
    }

    fn percentages(&self) -> [(&'static str, f64); 11] {
        let (published, locality) = (&self.published, &self.locality);
        [
            ("published.write_percent", published.write_percent),
            ("locality.written_coverage_percent", locality.written_coverage_percent),
            ("locality.dense_bands_percent", locality.dense_bands_percent),
            ("locality.dense_coverage_percent", locality.dense_coverage_percent),
            ("locality.hot_blocks_percent", locality.hot_blocks_percent),
            ("locality.hot_bands_percent", locality.hot_bands_percent),
            (
                "locality.hot_writes_percent + stream_writes_percent",
                locality.hot_writes_percent + locality.stream_writes_percent,
            ),
            (
                "locality.hot_reads_percent + scan_reads_percent",
                locality.hot_reads_percent + locality.scan_reads_percent,
            ),
            ("locality.active_bands_percent", locality.active_bands_percent),
            ("locality.active_percent", locality.active_percent),
            ("locality.scan_coverage_percent", locality.scan_coverage_percent),
        ]
    }

    fn at_least_one(&self) -> [(&'static str, f64); 12] {
        let (published, locality) = (&self.published, &self.locality);
        [
            ("published.requests", published.requests as f64),
            ("published.band_mib", published.band_mib as f64),
            ("locality.device_to_touched", locality.device_to_touched),
            ("locality.touched_run_bands", locality.touched_run_bands),
            ("locality.extent_blocks", locality.extent_blocks),
            ("locality.hot_item_blocks", locality.hot_item_blocks as f64),
            ("locality.stream_run_blocks", locality.stream_run_blocks),
            ("locality.scatter_run_blocks", locality.scatter_run_blocks),
            ("locality.scan_run_blocks", locality.scan_run_blocks),
            ("locality.burst_runs", locality.burst_runs),
            ("locality.active_turnover_bursts", locality.active_turnover_bursts as f64),
            ("locality.duration_s", locality.duration_s as f64),
        ]
    }

    fn zero_or_more(&self) -> [(&'static str, f64); 4] {
        let locality = &self.locality;
        [
            ("locality.density_skew", locality.density_skew),
            ("locality.hot_zipf", locality.hot_zipf),
            ("locality.hot_replacements", locality.hot_replacements),
            ("locality.band_zipf", locality.band_zipf),
        ]
    }

    /// What is wrong with the bands that are touched and the requests that touch them.
    fn footprint_problem(&self) -> Option<String> {
        let published = &self.published;
        if !(published.written_gib > 0.0
            && published.accessed_gib >= published.written_gib
            && published.accessed_gib < 1e6)
        {
            return Some(format!(
                "published.written_gib is {} and accessed_gib {}; accepted: above 0, and accessed at least written",
                published.written_gib, published.accessed_gib
            ));
        }
        let counts = self.counts();
        let reads = published.requests - counts.writes;
        if counts.writes < counts.written_bands
            || reads < counts.accessed_bands - counts.written_bands
        {
            return Some(format!(
                "published.requests is {}: too few to touch {} written and {} read-only bands",
                published.requests,
                counts.written_bands,
                counts.accessed_bands - counts.written_bands
            ));
        }
        None
    }
}

/// The first of some named values outside what is accepted, in words.
fn first_outside(
    values: &[(&str, f64)],
    accepted: RangeInclusive<f64>,
    words: &str,
) -> Option<String> {
    let outside = values.iter().find(|(_, value)| !accepted.contains(value));
    outside.map(|(name, value)| format!("{name} is {value}; accepted: {words}"))
}
