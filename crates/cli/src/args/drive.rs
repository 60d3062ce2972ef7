//! Arguments of the commands about drives.

use super::QuietArgs;
use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What to do with a drive model.
#[derive(Debug, Subcommand)]
pub enum DriveCommand {
    /// Measure drive models and print what was published of real drives beside them
    Bench(BenchArgs),
    /// Estimate the parameters of a drive-managed disk from fio's latency logs of it
    Fit(FitArgs),
    /// Run a job file of fio in virtual time and print what fio would
    Fio(FioArgs),
    /// Print the file of a drive of the library, to start one's own from
    Show {
        /// Name in the library; `imbrex systems` lists them
        #[arg(value_name = "DRIVE")]
        drive: String,
    },
}

/// Arguments of `drive bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Drives of the library, or paths of drive files
    #[arg(value_name = "DRIVE", required_unless_present = "all")]
    pub drives: Vec<String>,
    /// Everything that was published, of every drive
    #[arg(long, conflicts_with = "drives")]
    pub all: bool,
    /// Measure less, on smaller drives: minutes become seconds, and figures rougher
    #[arg(long)]
    pub quick: bool,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Measurements at the same time; the number of processors when absent
    #[arg(long, value_name = "N")]
    pub jobs: Option<std::num::NonZeroUsize>,
    /// Folder with the validation traces of DiskSim (disksim_validate_*.trace, compressed or not), for
    /// the rows that replay them
    #[arg(long, value_name = "DIR")]
    pub traces: Option<PathBuf>,
    /// Instead, say by how much each row moves when an estimated number of the drive is a tenth
    /// smaller or larger
    #[arg(long, conflicts_with = "html")]
    pub sensitivity: bool,
    /// Instead, say which rows turn or move when an estimated value is one of those that the comment
    /// beside it names: the ends of its range, another mechanism
    #[arg(long, conflicts_with_all = ["html", "sensitivity"])]
    pub alternatives: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Whether progress is told.
    #[command(flatten)]
    pub quiet: QuietArgs,
    /// Write a page with drawings to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Arguments of `drive fit`.
#[derive(Debug, Args)]
pub struct FitArgs {
    /// Latency logs of fio with offsets (write_lat_log, log_offset=1): of random reads, of random small
    /// writes, of random large writes; docs/fit.md has the jobs
    #[arg(value_name = "LOG", required = true)]
    pub logs: Vec<String>,
    /// Size of the drive, such as 8001563222016B; the end of the random reads when absent
    #[arg(long, value_name = "SIZE")]
    pub capacity: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Whether progress is told.
    #[command(flatten)]
    pub quiet: QuietArgs,
}

/// Arguments of `drive fio`.
#[derive(Debug, Args)]
pub struct FioArgs {
    /// A drive of the library, a ready-made stack, or a TOML file of either
    pub drive: String,
    /// The job file; the drive takes the place of its `filename` (docs/fio.md lists the options)
    #[arg(value_name = "JOB.fio")]
    pub job: PathBuf,
    /// Seed of every random choice but those of jobs, which have fio's `randseed`
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Size of the device, such as 64GiB; the size of the drive when absent
    #[arg(long)]
    pub size: Option<String>,
    /// Divide capacity, persistent-cache bytes and entries of the drives by this
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub scale: u64,
    /// Set a key of a node
    #[arg(long, value_name = "NODE.KEY=VALUE")]
    pub set: Vec<String>,
    /// Print one JSON document in the layout of fio's `--output-format=json`
    #[arg(long)]
    pub json: bool,
    /// Whether progress is told.
    #[command(flatten)]
    pub quiet: QuietArgs,
}
