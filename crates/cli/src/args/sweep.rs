//! Arguments of `sweep`.

use super::QuietArgs;
use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What to do with a sweep.
#[derive(Debug, Subcommand)]
pub enum SweepCommand {
    /// Write the runs of an experiment as jobs, a line of JSON each, which any machine can make
    Plan(PlanArgs),
    /// Make the jobs that nobody has made, together with whoever works in the same folder
    Run(SweepRunArgs),
    /// Make a few jobs and end: for xargs, GNU parallel, Slurm arrays, Snakemake and Kubernetes
    RunJob(RunJobArgs),
    /// Write the results of all jobs as one table: results.parquet and results.csv
    Collect(CollectArgs),
}

/// Arguments of `sweep plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The experiment, such as one that `compare --print-experiment` has written
    #[arg(value_name = "FILE.toml")]
    pub file: PathBuf,
    /// The file of the jobs
    #[arg(long, value_name = "JOBS.jsonl")]
    pub emit: PathBuf,
    /// Set a key of a node in every stack that has the node
    #[arg(long, value_name = "NODE.KEY=VALUE")]
    pub set: Vec<String>,
    /// Divide requests and footprint of synthetic workloads by this, instead of what the file says
    #[arg(long, value_name = "N")]
    pub scale: Option<f64>,
    /// Seed of every random choice
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print how many jobs there are as one JSON document
    #[arg(long)]
    pub json: bool,
}

/// The jobs, and where their results are.
#[derive(Debug, Args)]
pub struct JobsArgs {
    /// The file of the jobs
    #[arg(value_name = "JOBS.jsonl")]
    pub file: PathBuf,
    /// The folder of the results, on a file system that all machines share which make the jobs
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// Arguments of `sweep run`.
#[derive(Debug, Args)]
pub struct SweepRunArgs {
    /// The jobs.
    #[command(flatten)]
    pub jobs_args: JobsArgs,
    /// Make jobs again that failed
    #[arg(long)]
    pub retry_failed: bool,
    /// Keep a page written of what is made so far, which a browser loads again by itself
    #[arg(long, value_name = "FILE.html")]
    pub page: Option<PathBuf>,
    /// Jobs at the same time; the number of processors when absent
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub jobs: Option<usize>,
    /// Print what was done as one JSON document
    #[arg(long)]
    pub json: bool,
    /// Silence.
    #[command(flatten)]
    pub quiet: QuietArgs,
}

/// Arguments of `sweep run-job`.
#[derive(Debug, Args)]
pub struct RunJobArgs {
    /// The jobs.
    #[command(flatten)]
    pub jobs_args: JobsArgs,
    /// Which jobs of the file, from 0: one such as 7, or a range such as 0-63, which may go beyond the last one
    #[arg(long, value_name = "N[-M]", conflicts_with = "id", required_unless_present = "id")]
    pub index: Option<String>,
    /// Which job, by its name or the beginning of it
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Make jobs again that failed
    #[arg(long)]
    pub retry_failed: bool,
    /// Jobs at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub jobs: usize,
    /// Print what was done as one JSON document
    #[arg(long)]
    pub json: bool,
    /// Silence.
    #[command(flatten)]
    pub quiet: QuietArgs,
}

/// Arguments of `sweep collect`.
#[derive(Debug, Args)]
pub struct CollectArgs {
    /// The jobs.
    #[command(flatten)]
    pub jobs_args: JobsArgs,
    /// Leave out the jobs that are not made, instead of refusing
    #[arg(long)]
    pub partial: bool,
    /// Print what was found as one JSON document
    #[arg(long)]
    pub json: bool,
}
