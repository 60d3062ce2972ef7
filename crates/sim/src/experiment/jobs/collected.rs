//! The results of jobs in one table and on one page.

use super::folder::{JobFolder, JobOutcome};
use super::job::Job;
use imbrex_report::{Columns, FailedRun, Report, ResultsTable, Run, SweepPage, Workload};

/// Workloads that a page has room for.
const PAGE_WORKLOADS_MAX: usize = 12;
/// Runs that it has room for.
const PAGE_RUNS_MAX: usize = 3000;

/// What was found of some jobs.
#[derive(Debug)]
pub struct Collected {
    /// A row for each job that was made, in their order, with why it failed as the last column.
    pub table: Columns,
    /// The page of the sweep; it has the jobs that failed, and those that are not made.
    pub page: SweepPage,
    /// Files of results that are not in order, each with what is wrong.
    pub damaged: Vec<String>,
}

/// Collects what came of jobs, which a page calls `title`.
pub fn collect(title: &str, jobs: &[Job], folder: &JobFolder) -> Collected {
    let keys = jobs.iter().flat_map(|job| job.parameters.keys().cloned()).collect();
    let mut table = ResultsTable::new(&[], keys, true);
    let mut page = SweepPage {
        title: title.to_string(),
        jobs: jobs.len(),
        failed: vec![],
        missing: vec![],
        workloads: vec![],
        not_shown: (0, 0),
        reload_after_s: None,
    };
    let (mut shown, mut others) = (0, Vec::new());
    for job in jobs {
        match folder.outcome(job) {
            Some(JobOutcome::Made(made)) => {
                let (run, workload) = *made;
                table.run(&[], &workload, job.seed(), &run);
                if shown == PAGE_RUNS_MAX || !show(&mut page, job.seed(), run, workload) {
                    page.not_shown.1 += 1;
                    if !others.contains(&&job.workload) {
                        others.push(&job.workload);
                    }
                } else {
                    shown += 1;
                }
            }
            Some(JobOutcome::Failed(error)) => {
                table.failed(&FailedRun {
                    workload: &job.workload,
                    seed: job.seed(),
                    system: job.system(),
                    parameters: &job.parameters,
                    error: &error,
                });
                page.failed.push((job.name(), error));
            }
            None => page.missing.push(job.name()),
        }
    }
    page.not_shown.0 = others.len();
    Collected { table: table.finish(), page, damaged: folder.damaged() }
}

/// Gives a run to the page; says whether it has room for its workload.
fn show(page: &mut SweepPage, seed: u64, run: Run, workload: Workload) -> bool {
    let known = page.workloads.iter().position(|report| report.workload.path == workload.path);
    let at = known.unwrap_or(page.workloads.len());
    if at == PAGE_WORKLOADS_MAX {
        return false;
    }
    if known.is_none() {
        page.workloads.push(Report::new(seed, workload));
    }
    page.workloads[at].runs.push(run);
    true
}
