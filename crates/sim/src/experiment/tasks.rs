//! Making runs, several at a time, for somebody who is told of each and may stop them.

use super::finished::FinishedRuns;
use super::run::{RunError, Task};
use super::workload::NEVER;
use crate::progress::{Pieces, Progress};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Who waits for runs.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Hears of every run that ended well: the workload and the system with its settings; and in the same
    /// way of what is looked at in a trace.
    pub progress: Progress<'a>,
    /// Once it is set no run begins, and those under way are given up.
    pub stop: &'a AtomicBool,
    /// Where runs are written when they end, and read back.
    pub finished: Option<&'a FinishedRuns>,
}

impl<'a> Watch<'a> {
    /// Somebody who hears of the runs and waits for the last.
    pub fn to_the_end(progress: Progress<'a>) -> Watch<'a> {
        Watch { progress, stop: &NEVER, finished: None }
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

/// Makes all that has a name here, `jobs` at a time. `make` gets the number of one and what stops it.
/// What is in `made` was made before, each by its number, and is not made again. Gives in the order of the
/// names what became of each, and none of one that was not made to its end because all were stopped.
pub(super) fn make_all<T: Send + Sync>(
    names: &[String],
    made: Vec<(usize, T)>,
    jobs: usize,
    watch: &Watch<'_>,
    make: impl Fn(usize, &AtomicBool) -> Result<T, RunError> + Sync,
) -> Vec<Option<Result<T, RunError>>> {
    let next = AtomicUsize::new(0);
    let results: Vec<OnceLock<Result<T, RunError>>> =
        names.iter().map(|_| OnceLock::new()).collect();
    let pieces = Pieces::begin(watch.progress, made.len(), names.len());
    for (index, done) in made {
        let _ = results[index].set(Ok(done));
    }
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, names.len().max(1)) {
            scope.spawn(|| {
                while !watch.stops() {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(name) = names.get(index) else {
                        return;
                    };
                    if results[index].get().is_some() {
                        continue;
                    }
                    let result = make(index, watch.stop);
                    // What was stopped ended in the middle, or could not tell.
                    if watch.stops() {
                        return;
                    }
                    if result.is_ok() {
                        pieces.end(name);
                    }
                    let _ = results[index].set(result);
                }
            });
        }
    });
    results.into_iter().map(OnceLock::into_inner).collect()
}

impl Task<'_> {
    /// The workload, and the system with its swept settings.
    pub(super) fn name(&self) -> String {
        let (system, parameters) = (&self.case.config.name, &self.case.parameters);
        format!("{}, {}", self.workload.path, imbrex_report::label(system, parameters))
    }
}
