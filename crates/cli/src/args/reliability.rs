//! Options of `imbrex reliability`.

use super::QuietArgs;
use clap::Args;
use std::path::PathBuf;

/// What to compute.
#[derive(Debug, Args)]
pub struct ReliabilityArgs {
    /// What disks there are, how they fail and how they are repaired
    #[arg(value_name = "FILE.toml")]
    pub file: PathBuf,
    /// Runs to draw, in the place of those of the file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub runs: Option<u64>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Whether progress is told.
    #[command(flatten)]
    pub quiet: QuietArgs,
    /// Write reliability.json and reliability.html into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
