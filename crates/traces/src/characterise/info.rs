//! The characteristics of a trace.

use serde::Serialize;

use super::sections::Sections;
use crate::record::SourceKind;
use crate::tally::ReadCounts;

/// One direction of a trace.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DirectionInfo {
    /// Number of requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their 4 KiB blocks, counted each time.
    pub blocks: u64,
    /// Mean size, bytes.
    pub mean_bytes: f64,
    /// Median size (the lower one of two), bytes.
    pub median_bytes: u64,
    /// Distinct bytes, in units of 512-byte sectors.
    pub unique_bytes: u64,
    /// Distinct 4 KiB blocks.
    pub unique_blocks: u64,
}

/// The characteristics of a trace, as `imbrex trace info` prints them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceInfo {
    /// File, or name of the recipe.
    pub path: String,
    /// What it was taken for, and why.
    pub detected: String,
    /// Captured, recorded or synthetic.
    pub kind: SourceKind,
    /// What it is, for people.
    pub label: String,
    /// SHA-256 of the file as stored, if it was asked for.
    pub sha256: Option<String>,
    /// All requests.
    pub requests: u64,
    /// Reads.
    pub read: DirectionInfo,
    /// Writes, writes of zeroes among them.
    pub write: DirectionInfo,
    /// Trims.
    pub trims: u64,
    /// Flushes.
    pub flushes: u64,
    /// Requests with forced unit access.
    pub fua: u64,
    /// Writes among reads and writes, per cent.
    pub write_percent: f64,
    /// Writes to at least one block written before.
    pub updates: u64,
    /// The same as a share of the writes, per cent.
    pub update_percent: f64,
    /// Distinct blocks written at least once, per cent of the distinct blocks accessed.
    pub written_blocks_percent: f64,
    /// Distinct blocks written at least twice, per cent of the distinct blocks accessed.
    pub updated_blocks_percent: f64,
    /// Distinct bytes read or written, in units of 512-byte sectors.
    pub unique_bytes: u64,
    /// Distinct blocks read or written.
    pub unique_blocks: u64,
    /// End of the highest range read or written.
    pub footprint_bytes: u64,
    /// Size of the 18 MiB bands that writes touch.
    pub written_band_bytes: u64,
    /// Size of the 18 MiB bands that reads or writes touch.
    pub accessed_band_bytes: u64,
    /// Reads and writes that do not start where the one before on the same device ended, per cent of those that have one
    /// before.
    pub random_percent: f64,
    /// Number of devices.
    pub devices: u64,
    /// Time of the last request after the first, seconds; `None` if the trace has no times.
    pub duration_s: Option<f64>,
    /// Lines, skipped lines by reason, time inversions, unaligned requests.
    pub counts: ReadCounts,
    /// Everything else; in JSON each section is a key beside those above.
    #[serde(flatten)]
    pub sections: Sections,
}
