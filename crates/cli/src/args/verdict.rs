//! Arguments of `verdict`.

use super::QuietArgs;
use super::cache_sizes::CacheSizes;
use super::placed_trace::PlacedTraceArgs;
use clap::Args;
use clap::builder::RangedU64ValueParser;
use imbrex_sim::verdict::{CACHE_SIZES_DEFAULT, REQUESTS_MAX_DEFAULT};
use std::path::PathBuf;

/// Arguments of `verdict`.
#[derive(Debug, Args)]
pub struct VerdictArgs {
    /// The trace.
    #[command(flatten)]
    pub placed: PlacedTraceArgs,
    /// A drive to look at, of the library or a drive file; may be given several times. When none is, one
    /// conventional drive and those that clean by themselves
    #[arg(long, value_name = "DRIVE")]
    pub drive: Vec<String>,
    /// Sizes of caches to try, as shares of what is touched or in bytes; the smallest that keeps up ends the search
    #[arg(long, value_name = "SIZES", default_value = CACHE_SIZES_DEFAULT)]
    pub cache: CacheSizes,
    /// Look at the drives alone
    #[arg(long, conflicts_with = "cache")]
    pub no_cache: bool,
    /// Requests of a run at most, however many rounds would fill a log
    #[arg(long, value_name = "N", default_value_t = REQUESTS_MAX_DEFAULT, value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub requests_max: u64,
    /// Seed of every random choice
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Runs at the same time; the number of processors when absent
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub jobs: Option<usize>,
    /// Write verdict.json and verdict.html into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on where the same command was stopped or killed: runs that it had finished are not made again
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Whether progress is told.
    #[command(flatten)]
    pub quiet: QuietArgs,
}
