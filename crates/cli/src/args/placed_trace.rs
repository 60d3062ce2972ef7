//! A trace and where its records go on a device: the same flags for commands that are about one trace.

use super::trace::named;
use super::{FitArg, ReadArgs};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use imbrex_traces::BlockRule;

/// A trace and where its records go on a device.
#[derive(Debug, Args)]
pub struct PlacedTraceArgs {
    /// Trace file (any known format and compression), or `synthetic:RECIPE[/SCALE]`
    pub trace: String,
    /// How to read it.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Stop after this many records
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub limit: Option<u64>,
    /// What to do with addresses beyond the device
    #[arg(long, value_enum)]
    pub fit: Option<FitArg>,
    /// Which blocks of 4 KiB a request has: cover (all it touches) or size (as many as its size fills)
    #[arg(long, value_name = "RULE", default_value = "cover", value_parser = named::<BlockRule>)]
    pub blocks: BlockRule,
}
