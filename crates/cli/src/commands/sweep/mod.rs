//! `imbrex sweep`: the runs of an experiment as jobs, on one machine and on many.

mod collect;
mod parquet_table;
mod plan;
mod run;

use crate::args::{JobsArgs, SweepCommand};
use crate::caller::Caller;
use crate::commit::program;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use imbrex_sim::experiment::{Job, JobError, JobFolder, read_jobs};

/// Does one of the parts.
pub fn run(command: &SweepCommand, caller: &Caller) -> Result<ExitCode, Failure> {
    match command {
        SweepCommand::Plan(args) => plan::run(args, caller)?,
        SweepCommand::Run(args) => return run::run(args, caller),
        SweepCommand::RunJob(args) => return run::run_job(args, caller),
        SweepCommand::Collect(args) => return collect::run(args, caller),
    }
    Ok(ExitCode::SUCCESS)
}

/// Those jobs of the file of which the numbers, from 0, are wanted.
fn jobs_of(args: &JobsArgs, wanted: impl FnMut(usize) -> bool) -> Result<Vec<Job>, Failure> {
    let path = args.file.display().to_string();
    let text = std::fs::read_to_string(&args.file)
        .map_err(|error| JobError::Read { path: path.clone(), error })?;
    Ok(read_jobs(&path, &text, &program(), wanted)?)
}

/// The folder of the results.
fn folder_of(args: &JobsArgs) -> Result<JobFolder, Failure> {
    Ok(JobFolder::open(&args.out, &program())?)
}
