//! Making jobs: threads of this process, beside other processes that make jobs of the same folder.

use super::claims::{Owner, Taken};
use super::folder::{JobFolder, JobOutcome};
use super::job::Job;
use super::job_error::JobError;
use super::plan::Hashes;
use crate::experiment::execute::prepare;
use crate::experiment::footprints::Footprints;
use crate::experiment::kept::{Kept, Wanted};
use crate::experiment::run::{RunError, Task};
use crate::experiment::tasks::Watch;
use crate::progress::Pieces;
use imbrex_report::{Figures, Run, Workload};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How soon a job is looked at again that another process is making.
const LOOKED_AFTER: Duration = Duration::from_millis(200);

/// How jobs are made.
#[derive(Clone, Copy, Debug)]
pub struct Crew<'a> {
    /// Where results are.
    pub folder: &'a JobFolder,
    /// Jobs at the same time.
    pub threads: usize,
    /// Whether it waits for jobs that other processes make, to make those of which the owner goes away.
    pub waits: bool,
    /// Whether jobs are made again that failed before.
    pub retries_failed: bool,
}

/// What came of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrewTally {
    /// Jobs whose results were there at the beginning.
    pub before: usize,
    /// Jobs that this process has made, those that failed among them.
    pub made: usize,
    /// Those of them that failed.
    pub failed: usize,
    /// Jobs that other processes have made meanwhile.
    pub by_others: usize,
    /// Jobs of other processes for which nobody has waited.
    pub elsewhere: usize,
    /// Jobs that nobody has made, because this process was stopped.
    pub left: usize,
}

/// What the threads of a crew share.
struct Work<'a> {
    crew: Crew<'a>,
    watch: &'a Watch<'a>,
    owner: Owner,
    pieces: Pieces<'a>,
    footprints: Footprints,
    hashes: Mutex<Hashes>,
    made: AtomicUsize,
    failed: AtomicUsize,
    by_others: AtomicUsize,
    /// Why the work cannot go on.
    error: Mutex<Option<RunError>>,
    has_error: AtomicBool,
}

/// A job to be made, and the records that it shares with others.
struct Todo<'a> {
    job: &'a Job,
    kept: Kept,
    /// The records are in memory until the last job of their workload is made.
    pass: Mutex<Option<Wanted>>,
}

/// What came of looking at a job.
enum Looked {
    /// Its result is there.
    Ended,
    /// Another process makes it.
    Elsewhere,
    /// The work was stopped.
    Stopped,
}

impl Crew<'_> {
    /// Makes those of some jobs that nobody has made and nobody is making, the longest first. A job that fails has its error
    /// as its result.
    ///
    /// # Errors
    /// When a file that a job reads is not that of the plan, and when a result cannot be written.
    pub fn run(&self, jobs: &[Job], watch: &Watch<'_>) -> Result<CrewTally, RunError> {
        let (todo, before) = self.todo(jobs);
        let work = Work {
            crew: *self,
            watch,
            owner: self.folder.owner()?,
            pieces: Pieces::begin(watch.progress, before, jobs.len()),
            footprints: Footprints::default(),
            hashes: Mutex::default(),
            made: AtomicUsize::new(0),
            failed: AtomicUsize::new(0),
            by_others: AtomicUsize::new(0),
            error: Mutex::default(),
            has_error: AtomicBool::new(false),
        };
        let mut left: Vec<&Todo<'_>> = todo.iter().collect();
        loop {
            left = work.round(&left);
            if left.is_empty() || !self.waits || work.stops() {
                break;
            }
            std::thread::sleep(LOOKED_AFTER);
        }
        if let Some(error) = work.error.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let is_stopped = watch.stops();
        Ok(CrewTally {
            before,
            made: work.made.into_inner(),
            failed: work.failed.into_inner(),
            by_others: work.by_others.into_inner(),
            elsewhere: if is_stopped { 0 } else { left.len() },
            left: if is_stopped { left.len() } else { 0 },
        })
    }

    /// The jobs that are not made, the longest first, and how many are made.
    fn todo<'a>(&self, jobs: &'a [Job]) -> (Vec<Todo<'a>>, usize) {
        let mut kept: BTreeMap<String, Kept> = BTreeMap::new();
        let is_made = |job: &&Job| match self.folder.outcome(job) {
            Some(JobOutcome::Failed(_)) if self.retries_failed => {
                self.folder.forget(job);
                false
            }
            outcome => outcome.is_some(),
        };
        let mut todo: Vec<&Job> = jobs.iter().filter(|job| !is_made(job)).collect();
        let before = jobs.len() - todo.len();
        todo.sort_by_key(|job| Reverse(job.requests));
        let todo = todo.into_iter().map(|job| {
            let workload = job.experiment.get("workload").map(ToString::to_string);
            let kept = kept.entry(workload.unwrap_or_default()).or_default().clone();
            let pass = Mutex::new(Some(kept.want(1)));
            Todo { job, kept, pass }
        });
        (todo.collect(), before)
    }
}

impl Work<'_> {
    fn stops(&self) -> bool {
        self.watch.stops() || self.has_error.load(Ordering::Relaxed)
    }

    /// Goes through jobs once, and gives those whose results are not there after it.
    fn round<'a>(&self, todo: &[&'a Todo<'a>]) -> Vec<&'a Todo<'a>> {
        let next = AtomicUsize::new(0);
        let left = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..self.crew.threads.clamp(1, todo.len().max(1)) {
                scope.spawn(|| {
                    while let Some(job) = todo.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let looked = match self.stops() {
                            true => Looked::Stopped,
                            false => self.look_at(job),
                        };
                        match looked {
                            Looked::Ended => self.pieces.end(&job.job.name()),
                            Looked::Elsewhere | Looked::Stopped => {
                                left.lock().unwrap_or_else(PoisonError::into_inner).push(*job);
                            }
                        }
                    }
                });
            }
        });
        left.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn look_at(&self, todo: &Todo<'_>) -> Looked {
        let looked = self.take_and_make(todo);
        looked.unwrap_or_else(|error| {
            let mut first = self.error.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(error);
            self.has_error.store(true, Ordering::Relaxed);
            Looked::Stopped
        })
    }

    /// Makes a job unless somebody makes it or has made it.
    fn take_and_make(&self, todo: &Todo<'_>) -> Result<Looked, RunError> {
        let (folder, job) = (self.crew.folder, todo.job);
        // It ends with this look: of what others make, nobody knows whether the records are needed here at all.
        let _pass = todo.pass.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _claim = match folder.take(&self.owner, job)? {
            Taken::Ours(claim) => claim,
            Taken::Theirs => return Ok(Looked::Elsewhere),
        };
        // Whoever had it before may have ended in between.
        if folder.outcome(job).is_some() {
            self.by_others.fetch_add(1, Ordering::Relaxed);
            return Ok(Looked::Ended);
        }
        self.check_inputs(job)?;
        let made = catch_unwind(AssertUnwindSafe(|| self.make(todo)));
        let outcome = match made {
            // What was stopped means nothing.
            _ if self.watch.stops() => return Ok(Looked::Stopped),
            Ok(Ok(run)) => JobOutcome::Made(Box::new(run)),
            Ok(Err(error)) => JobOutcome::Failed(error.to_string()),
            Err(panic) => JobOutcome::Failed(words_of_panic(&*panic)),
        };
        let outcome = folder.keep(job, outcome)?;
        self.made.fetch_add(1, Ordering::Relaxed);
        let has_failed = matches!(outcome, JobOutcome::Failed(_));
        self.failed.fetch_add(has_failed.into(), Ordering::Relaxed);
        Ok(Looked::Ended)
    }

    /// Refuses files that are not those of the plan.
    fn check_inputs(&self, job: &Job) -> Result<(), RunError> {
        let mut hashes = self.hashes.lock().unwrap_or_else(PoisonError::into_inner);
        for input in &job.inputs {
            let found = hashes.of(&input.path)?;
            if found != input.sha256 {
                return Err(JobError::Changed {
                    path: input.path.clone(),
                    planned: input.sha256.clone(),
                    found: found.to_string(),
                }
                .into());
            }
        }
        Ok(())
    }

    /// Makes the run of a job.
    fn make(&self, todo: &Todo<'_>) -> Result<(Run, Workload), RunError> {
        let experiment = todo.job.experiment()?;
        let stop = self.watch.stop;
        let mut prepared = prepare(&experiment, &[], None, stop)?;
        let [of] = &mut prepared.workloads[..] else {
            return Err(todo
                .job
                .wrong(format_args!("{} workloads", prepared.workloads.len()))
                .into());
        };
        let ([workload], [(_, case)]) = (&mut of.swept[..], &mut of.cases[..]) else {
            return Err(todo.job.wrong(format_args!("{} runs", of.cases.len())).into());
        };
        workload.kept = todo.kept.clone();
        case.parameters.clone_from(&todo.job.parameters);
        let task = Task::new(workload, prepared.seed, case);
        let (run, told) = task.run(&self.footprints, stop)?;
        // They would be most of the bytes, and no table of a sweep has them.
        Ok((Run { figures: Figures::default(), ..run }, told))
    }
}

/// What a defect of the program has said.
fn words_of_panic(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("a defect of imbrex: {}", text.unwrap_or("it said nothing"))
}
