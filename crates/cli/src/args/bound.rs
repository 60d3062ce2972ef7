//! Arguments of `bound`.

use super::QuietArgs;
use super::placed_trace::PlacedTraceArgs;
use clap::Args;
use clap::builder::RangedU64ValueParser;
use imbrex_sim::analysis::bound::{CELLS_DEFAULT, CELLS_MAX};

/// Arguments of `bound`.
#[derive(Debug, Args)]
pub struct BoundArgs {
    /// The trace.
    #[command(flatten)]
    pub placed: PlacedTraceArgs,
    /// The stack whose bands, log and cache are meant, as for `compare`
    #[arg(long, value_name = "NAME", default_value = "pore")]
    pub system: String,
    /// Size of the cache, such as `2%` of the touched bands or 40GiB; short for --set cache.capacity
    #[arg(long, value_name = "SIZE|SHARE")]
    pub cache: Option<String>,
    /// Size of the log, such as `1/256 of touched bands` or 20GiB; short for --set
    /// translation.persistent_cache
    #[arg(long, value_name = "SIZE|SHARE")]
    pub log: Option<String>,
    /// Leave reads out, as a write-only comparison does; the footprint is then that of the writes
    #[arg(long)]
    pub write_only: bool,
    /// Every band of which something is held at the end must be rewritten then
    #[arg(long)]
    pub drained: bool,
    /// Cells of time at most; more give a higher bound and take longer
    #[arg(
        long,
        value_name = "N",
        default_value_t = CELLS_DEFAULT,
        value_parser = RangedU64ValueParser::<u32>::new().range(1..=u64::from(CELLS_MAX))
    )]
    pub cells: u32,
    /// Set a key of a node
    #[arg(long, value_name = "NODE.KEY=VALUE")]
    pub set: Vec<String>,
    /// Size of the device, such as 64GiB; the size of the drive when absent
    #[arg(long)]
    pub size: Option<String>,
    /// Divide capacity, persistent-cache bytes and entries of the drives by this
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub drive_scale: u64,
    /// Seed of a random band layout
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON document with what proves the bounds
    #[arg(long)]
    pub json: bool,
    /// Whether progress is told.
    #[command(flatten)]
    pub quiet: QuietArgs,
}
