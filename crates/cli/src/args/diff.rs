//! Arguments of `diff`.

use clap::Args;
use std::path::PathBuf;

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// A report: `report.json`, or the folder of `--out`
    pub before: PathBuf,
    /// Another one
    pub after: PathBuf,
    /// Write a page with both beside each other into this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}
