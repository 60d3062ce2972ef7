//! What a trace is like: one pass over it, in bounded memory.
//!
//! [`Characterise`] hands each record to its parts. A part owns its state and, at the end, fills one or more sections of
//! [`TraceInfo`]. Requests, sizes and times are counted exactly whatever the length of the trace. What is kept for places on
//! the disk is exact as long as it fits ([`Capacity`]) and a spatially hashed sample from then on; [`Methods`] says which.
//! `docs/workloads.md` explains the figures.

mod access;
mod accesses;
mod adjacency;
mod arrivals;
mod blocks;
mod coverage;
mod display;
mod gather;
mod histogram;
mod info;
mod intensity;
mod lru_curve;
mod method;
mod popularity;
mod recent;
mod requests;
mod reuse;
mod sample_groups;
mod sampled;
mod sections;
mod sizes;
mod stack;
mod verdicts;
mod working_set;

pub use accesses::{
    Adjacent, AdjacentAccesses, Aggregation, CdfPoint, LruPoint, Mostly, Popularity, Reuse,
};
pub use arrivals::{Activity, Gaps, Idle, LoadSeries, Peak};
pub use gather::{Capacity, Characterise, characterise};
pub use info::{DirectionInfo, TraceInfo};
pub use lru_curve::{LRU_CURVE_SCHEMA, LruCounts, LruCurve, LruCurvePoint, LruHits, lru_curve};
pub use method::{Method, Methods};
pub use requests::{Randomness, RequestSizes, Share, Shares};
pub use sections::{Bin, Distribution, Heat, Sections};
pub use verdicts::{DriveKind, Suits, Verdict};
pub use working_set::WorkingSetSeries;

/// A quotient; 0 of nothing.
fn ratio(sum: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum as f64 / count as f64 }
}

/// A share in per cent; 0 of nothing.
fn percent(part: u64, whole: u64) -> f64 {
    100.0 * ratio(part, whole)
}
