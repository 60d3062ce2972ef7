//! Arguments of `place`.

use clap::Args;
use std::path::PathBuf;

/// Arguments of `place`.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// A report of a run of the stack: what `--json` prints, or `report.json` of `--out`
    pub report: PathBuf,
    /// The run, where the report has several: its system with its swept settings, as the table names it
    #[arg(long, value_name = "LABEL")]
    pub run: Option<String>,
}
