//! Making runs, several at a time, for somebody who is told of each and may stop them.

use super::run::{Footprints, RunError, Task};
use crate::report::{self, Run};
use imbrex_traces::{TraceError, TraceReader, TraceRecord};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Never set.
static NEVER: AtomicBool = AtomicBool::new(false);

/// Who waits for runs.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Hears of every finished run: how many of how many are done, the workload and the system with
    /// its settings.
    pub progress: &'a (dyn Fn(&str) + Sync),
    /// Once it is set no run begins, and those under way are given up.
    pub stop: &'a AtomicBool,
}

impl<'a> Watch<'a> {
    /// Somebody who hears of the runs and waits for the last.
    pub fn to_the_end(progress: &'a (dyn Fn(&str) + Sync)) -> Watch<'a> {
        Watch {
            progress,
            stop: &NEVER,
        }
    }

    /// Nobody: the runs are made in silence.
    pub fn nobody() -> Watch<'static> {
        Watch::to_the_end(&|_| {})
    }

    /// Whether the runs are to stop.
    pub(super) fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// What a run has found, or none of one that was not made to its end.
pub(super) type Made = Option<(Run, report::Workload)>;

/// Makes every run, `jobs` at a time, and gives the results in the order of the tasks.
///
/// # Errors
/// The first error in the order of the tasks.
pub(super) fn run_tasks(
    tasks: &[Task<'_>],
    jobs: usize,
    watch: &Watch<'_>,
) -> Result<Vec<Made>, RunError> {
    let footprints = Footprints::default();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Vec<OnceLock<Result<Made, RunError>>> =
        tasks.iter().map(|_| OnceLock::new()).collect();
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, tasks.len().max(1)) {
            scope.spawn(|| {
                while !watch.stops() {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(task) = tasks.get(index) else {
                        return;
                    };
                    let result = task.run(&footprints, watch.stop);
                    // What was stopped ended in the middle, or could not tell.
                    if watch.stops() {
                        return;
                    }
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    (watch.progress)(&format!("{done} of {}: {}", tasks.len(), task.name()));
                    let _ = results[index].set(result.map(Some));
                }
            });
        }
    });
    results
        .into_iter()
        .map(|result| result.into_inner().unwrap_or(Ok(None)))
        .collect()
}

impl Task<'_> {
    /// The workload, and the system with its swept settings.
    pub(super) fn name(&self) -> String {
        let (system, parameters) = (&self.case.config.name, &self.case.parameters);
        format!(
            "{}, {}",
            self.workload.path,
            report::label(system, parameters)
        )
    }
}

/// The records of a trace until the runs are stopped.
pub(super) struct Until<'a> {
    /// The trace.
    pub records: TraceReader,
    /// Ends it.
    pub stop: &'a AtomicBool,
}

impl Iterator for Until<'_> {
    type Item = Result<TraceRecord, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.stop.load(Ordering::Relaxed) {
            false => self.records.next(),
            true => None,
        }
    }
}
