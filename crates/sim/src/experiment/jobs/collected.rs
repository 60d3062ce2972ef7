//! The results of jobs in one table and on one page.

use super::folder::{JobFolder, JobOutcome};
use super::job::Job;
use imbrex_report::{Columns, FailedRun, Report, ResultsTable, Run, SweepPage, Workload};
use std::collections::BTreeSet;

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
    let mut shown = Shown::default();
    for job in jobs {
        match folder.outcome(job) {
            Some(JobOutcome::Made(made)) => {
                let (run, workload) = *made;
                table.run(&[], &workload, job.seed(), &run);
                shown.add(job, run, workload, &mut page);
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
    page.not_shown.0 = shown.others.len();
    Collected { table: table.finish(), page, damaged: folder.damaged() }
}

/// What a page has and has no room for.
#[derive(Default)]
struct Shown {
    runs: usize,
    /// The loads of the reports of the page, and those that are not on it.
    loads: Vec<String>,
    others: BTreeSet<String>,
}

impl Shown {
    /// Gives a run to the page, among those of the same load, if there is room.
    fn add(&mut self, job: &Job, run: Run, workload: Workload, page: &mut SweepPage) {
        let load = job.load();
        let known = self.loads.iter().position(|it| *it == load);
        let at = known.unwrap_or(self.loads.len());
        if self.runs == PAGE_RUNS_MAX || at == PAGE_WORKLOADS_MAX {
            page.not_shown.1 += 1;
            self.others.insert(load);
            return;
        }
        if known.is_none() {
            self.loads.push(load);
            page.workloads.push(Report::new(job.seed(), workload));
        }
        page.workloads[at].runs.push(run);
        self.runs += 1;
    }
}
