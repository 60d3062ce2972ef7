//! Arguments of the commands that run experiment files.

use super::OutputArgs;
use clap::Args;

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The experiment
    #[arg(value_name = "FILE.toml")]
    pub file: std::path::PathBuf,
    /// Set a key of a node in every stack that has the node
    #[arg(long, value_name = "NODE.KEY=VALUE")]
    pub set: Vec<String>,
    /// Divide requests and footprint of synthetic workloads by this, instead of what the file says
    #[arg(long, value_name = "N")]
    pub scale: Option<f64>,
    /// Go on where the same command was stopped or killed: runs that it had finished are not made again
    #[arg(long)]
    pub resume: bool,
    /// The output; files go to results/NAME unless --out says otherwise.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `reproduce`.
#[derive(Debug, Args)]
pub struct ReproduceArgs {
    /// The paper; all of them when absent
    pub paper: Option<String>,
    /// One figure or table of it, such as `fig16`
    pub figure: Option<String>,
    /// Divide requests and footprint of synthetic workloads by this; 1 for full size
    #[arg(long, value_name = "N")]
    pub scale: Option<f64>,
    /// Divide the loads and leave out the numbers that need full size, and our own policy, which has no paper: the papers in minutes
    #[arg(long, conflicts_with = "scale")]
    pub quick: bool,
    /// Go on where the same command was stopped or killed: runs that it had finished are not made again
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// The output.
    #[command(flatten)]
    pub output: OutputArgs,
}
