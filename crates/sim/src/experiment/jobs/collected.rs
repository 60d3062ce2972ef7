//! The results of jobs in one table.

use super::folder::{JobFolder, JobOutcome};
use super::job::Job;
use imbrex_report::{Columns, FailedRun, ResultsTable};

/// What was found of some jobs.
#[derive(Debug)]
pub struct Collected {
    /// A row for each job that was made, in their order, with why it failed as the last column.
    pub table: Columns,
    /// Jobs that failed: their names, and why.
    pub failed: Vec<(String, String)>,
    /// Names of the jobs that are not made.
    pub missing: Vec<String>,
    /// Files of results that are not in order, each with what is wrong.
    pub damaged: Vec<String>,
}

/// Collects what came of jobs.
pub fn collect(jobs: &[Job], folder: &JobFolder) -> Collected {
    let keys = jobs.iter().flat_map(|job| job.parameters.keys().cloned()).collect();
    let mut table = ResultsTable::new(&[], keys, true);
    let (mut failed, mut missing) = (Vec::new(), Vec::new());
    for job in jobs {
        match folder.outcome(job) {
            Some(JobOutcome::Made(made)) => {
                let (run, workload) = *made;
                table.run(&[], &workload, job.seed(), &run);
            }
            Some(JobOutcome::Failed(error)) => {
                table.failed(&FailedRun {
                    workload: &job.workload,
                    seed: job.seed(),
                    system: job.system(),
                    parameters: &job.parameters,
                    error: &error,
                });
                failed.push((job.name(), error));
            }
            None => missing.push(job.name()),
        }
    }
    Collected { table: table.finish(), failed, missing, damaged: folder.damaged() }
}
