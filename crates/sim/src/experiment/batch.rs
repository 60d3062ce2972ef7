//! Several stacks on one workload, and the report of their runs.

use super::execute::make_runs;
use super::footprints::Footprints;
use super::request_logs::RequestLogs;
use super::run::{Case, RunError, RunFiles, Task, report_of};
use super::tasks::Watch;
use super::workload::Workload;
use crate::analysis::bound::{CELLS_DEFAULT, Limits};
use crate::progress::Progress;
use imbrex_report::Report;
use imbrex_stack::ConfigError;

/// Cases over one workload.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The workload.
    pub workload: Workload,
    /// The root seed.
    pub seed: u64,
    /// What to run.
    pub cases: Vec<Case>,
    /// Runs at the same time.
    pub jobs: usize,
}

impl Batch {
    /// Runs every case and returns the report, its runs in the order of the cases whatever the
    /// number of jobs. `progress` hears of every finished run.
    ///
    /// # Errors
    /// The first error in the order of the cases.
    pub fn run(&self, progress: Progress<'_>) -> Result<Report, RunError> {
        self.run_with(&RunFiles::default(), &Watch::to_the_end(progress))
    }

    /// The same, with other files. A log of requests has those of all runs, and what was there is replaced when all
    /// are made. A state is that of one run. Of a batch that is stopped the report has what is finished and names the
    /// rest, and nothing is logged.
    ///
    /// # Errors
    /// Those of [`run`](Self::run), when a file cannot be read or written, and when it is stopped before any run is made.
    pub fn run_with(&self, files: &RunFiles<'_>, watch: &Watch<'_>) -> Result<Report, RunError> {
        let logs = files.request_log.map(|sink| RequestLogs::new(sink, self.cases.len()));
        let task = |(number, case)| {
            let request_log = logs.as_ref().map(|logs| logs.of_run(number));
            let files = RunFiles { request_log, ..*files };
            Task { files, ..Task::new(&self.workload, self.seed, case) }
        };
        let tasks: Vec<Task<'_>> = self.cases.iter().enumerate().map(task).collect();
        let made = make_runs(&tasks, self.jobs, watch);
        let is_left = |(task, made): &(&Task<'_>, &Option<_>)| made.is_none().then(|| task.name());
        let left: Vec<String> = tasks.iter().zip(&made).filter_map(|it| is_left(&it)).collect();
        let made: Vec<_> = made.into_iter().flatten().collect::<Result<_, _>>()?;
        if made.is_empty() && !left.is_empty() {
            return Err(RunError::Stopped { left: left.len() });
        }
        let mut report = report_of(self.seed, made)?;
        if !left.is_empty() {
            report.left = left;
            return Ok(report);
        }
        let finished = logs.map_or(Ok(()), RequestLogs::finish);
        finished.map_err(|error| RunError::of_log(files.request_log, error))?;
        Ok(report)
    }

    /// For each case the least number of band rewrites that any policy needs on the workload; none for
    /// a stack of which none holds.
    ///
    /// # Errors
    /// The first error in the order of the cases, or why no bound holds when none does for any.
    pub fn rewrite_bounds(&self) -> Result<Vec<Option<u64>>, RunError> {
        let footprints = Footprints::default();
        let _passes = self.workload.kept.want(self.cases.len());
        let mut known: Vec<((String, Limits), u64)> = Vec::new();
        let mut unbounded = Vec::new();
        let bounds = self.cases.iter().map(|case| {
            let task = Task::new(&self.workload, self.seed, case);
            let bounded = match task.bounded(&footprints)? {
                Ok(bounded) => bounded,
                Err(why) => {
                    unbounded.push(format!("{}: {why}", case.config.name));
                    return Ok(None);
                }
            };
            let key = bounded.key();
            if let Some((_, bound)) = known.iter().find(|(other, _)| *other == key) {
                return Ok(Some(*bound));
            }
            let bound = task.rewrites_bound(&bounded, CELLS_DEFAULT)?;
            known.push((key, bound));
            Ok(Some(bound))
        });
        let bounds = bounds.collect::<Result<Vec<Option<u64>>, RunError>>()?;
        if unbounded.len() == bounds.len() {
            let words = format!("no bound holds: {}", unbounded.join("; "));
            return Err(ConfigError::words(words).into());
        }
        Ok(bounds)
    }
}
