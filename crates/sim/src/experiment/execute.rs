//! Running experiments, several at a time, without making the same run twice.

use super::analyse::{Look, Seen};
use super::events::check_events;
use super::experiment::{Experiment, WorkloadConfig};
use super::footprints::Footprints;
use super::identity::Contents;
use super::kept::Wanted;
use super::run::{Case, RunError, Task, report_of};
use super::sweep::{Point, parameters};
use super::tasks::{Watch, make_all};
use super::workload::{NEVER, Workload};
use imbrex_report::{FormTable, Report, Run, WorkloadKind};
use imbrex_stack::{ConfigError, Setting, check_series};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// What an experiment found.
#[derive(Debug)]
pub struct Outcome {
    /// One for each workload, in the order of the file. Of an experiment that was stopped those are left
    /// out of which no run was finished, and the others have the runs that were.
    pub workloads: Vec<WorkloadOutcome>,
    /// Whether the experiment has several workloads.
    pub has_several: bool,
    /// What was not run to its end because the runs were stopped, and what failed before that.
    pub left: Vec<Left>,
}

/// A run, or a look at a trace, that was not made to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Its number among all that the experiments run; those that share a run have the same.
    pub number: usize,
    /// The workload, and the system with its settings or what is looked at.
    pub name: String,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

/// What an experiment found on one workload.
#[derive(Debug)]
pub struct WorkloadOutcome {
    /// Its name in the experiment.
    pub name: String,
    /// Path with the scale, as reports give it.
    pub path: String,
    /// How it came to be.
    pub kind: WorkloadKind,
    /// By how much requests and footprint were divided.
    pub scale: f64,
    /// The runs.
    pub found: Found,
}

/// Runs of stacks, what was found in the trace, or what was computed.
#[derive(Debug)]
pub enum Found {
    /// A report.
    Runs(Box<Report>),
    /// Named values.
    Trace(serde_json::Value),
    /// Values of a closed form.
    Form(FormTable),
}

/// An experiment with what it needs to run.
pub(super) struct Prepared {
    /// The root seed.
    pub seed: u64,
    /// Its workloads.
    pub workloads: Vec<PreparedWorkload>,
    form: Option<FormTable>,
}

impl Prepared {
    /// The workloads of the experiment, as its file states them and as they are run.
    pub fn workloads_of<'a>(
        &'a self,
        experiment: &'a Experiment,
    ) -> impl Iterator<Item = (&'a WorkloadConfig, &'a PreparedWorkload)> {
        experiment.workload.iter().zip(&self.workloads)
    }
}

/// A workload of an experiment.
pub(super) struct PreparedWorkload {
    /// One, or one for each point of the swept keys of a combined workload.
    pub swept: Vec<Workload>,
    /// The runs, each with the number of its workload in `swept`.
    pub cases: Vec<(usize, Case)>,
}

impl PreparedWorkload {
    /// The runs to be made, or the look to be taken.
    fn work<'a>(&'a self, experiment: &'a Experiment, seed: u64) -> impl Iterator<Item = Work<'a>> {
        let look = experiment.analysis.as_ref().map(|analysis| Look {
            analysis,
            workload: &self.swept[0],
            seed,
            size: experiment.size,
        });
        let tasks = self
            .cases
            .iter()
            .map(move |(workload, case)| Task::new(&self.swept[*workload], seed, case));
        look.map(Work::Look).into_iter().chain(tasks.map(Work::Run))
    }
}

/// What one experiment needs, and another one may need as well.
enum Work<'a> {
    Run(Task<'a>),
    Look(Look<'a>),
}

/// What came of it.
#[derive(Serialize, Deserialize)]
enum Done {
    Run(Box<(Run, imbrex_report::Workload)>),
    Look(Seen),
}

impl Work<'_> {
    fn name(&self) -> String {
        match self {
            Work::Run(task) => task.name(),
            Work::Look(look) => look.name(),
        }
    }

    /// All that it depends on while files stay as they are.
    fn key(&self) -> String {
        match self {
            Work::Run(task) => key_of(task),
            Work::Look(look) => format!("{look:?}"),
        }
    }

    /// All that it depends on, with what is in files; none when that cannot be told, as of standard input and of
    /// files that cannot be read.
    fn words(&self, contents: &mut Contents) -> Option<Vec<String>> {
        let (kind, workload, stack) = match self {
            Work::Run(task) => ("run", task.workload, Some(&task.case.config)),
            Work::Look(look) => ("look", look.workload, None),
        };
        let mut words = vec![kind.to_string(), self.key()];
        if let Work::Run(task) = self {
            if task.case.config.brought_policies().next().is_some() {
                // Nobody knows the code by its name.
                return None;
            }
            // They stand in what is told of a combined workload.
            words.push(format!("{:?}", task.case.parameters));
        }
        words.extend(contents.of_workload(workload)?);
        words.extend(contents.of_drives(stack)?);
        Some(words)
    }

    /// Announces that it reads its workload.
    fn want(&self) -> Option<Wanted> {
        match self {
            Work::Run(task) => Some(task.workload.kept.want(1)),
            Work::Look(_) => None,
        }
    }

    fn make(&self, footprints: &Footprints, stop: &AtomicBool) -> Result<Done, RunError> {
        Ok(match self {
            Work::Run(task) => {
                let run = task.case.config.surround(|| task.run(footprints, stop));
                Done::Run(Box::new(run?))
            }
            Work::Look(look) => Done::Look(look.take(stop)?),
        })
    }
}

/// What became of the work, each piece under all that it depends on.
struct Ended {
    index_of: BTreeMap<String, usize>,
    /// None of what was stopped.
    results: Vec<Option<Result<Done, RunError>>>,
}

impl Ended {
    /// What came of a piece of work, or what to say of it if nothing did.
    fn of(&self, work: &Work<'_>) -> Result<&Done, Left> {
        let number = self.index_of[&work.key()];
        let left = |error: Option<&RunError>| Left {
            number,
            name: work.name(),
            error: error.map(RunError::to_string),
        };
        match &self.results[number] {
            Some(Ok(done)) => Ok(done),
            Some(Err(error)) => Err(left(Some(error))),
            None => Err(left(None)),
        }
    }
}

/// Runs experiments, `jobs` runs at a time, until the last is made or `watch` stops them. Runs that
/// several of them share are made once. Settings of `more` go over those of the files; `seed` replaces
/// theirs.
///
/// # Errors
/// The first error in the order of the experiments; of runs that were stopped it is told by
/// [`Outcome::left`] instead.
pub fn execute(
    experiments: &[Experiment],
    more: &[Setting],
    seed: Option<u64>,
    jobs: usize,
    watch: &Watch<'_>,
) -> Result<Vec<Outcome>, RunError> {
    let prepared = experiments
        .iter()
        .map(|experiment| prepare(experiment, more, seed, watch.stop))
        .collect::<Result<Vec<_>, _>>()?;
    let of_each = || experiments.iter().zip(&prepared);
    let mut all: Vec<Work<'_>> = Vec::new();
    let mut index_of: BTreeMap<String, usize> = BTreeMap::new();
    for (experiment, prepared) in of_each() {
        for (_, workload) in prepared.workloads_of(experiment) {
            for work in workload.work(experiment, prepared.seed) {
                index_of.entry(work.key()).or_insert_with(|| {
                    all.push(work);
                    all.len() - 1
                });
            }
        }
    }
    let footprints = Footprints::default();
    let mut results = make_kept(&all, jobs, watch, &footprints);
    let is_error = |result: &Option<Result<Done, RunError>>| matches!(result, Some(Err(_)));
    if !watch.stops()
        && let Some(at) = results.iter().position(is_error)
        && let Some(Err(error)) = results.swap_remove(at)
    {
        return Err(error);
    }
    let ended = Ended { index_of, results };
    of_each()
        .map(|(experiment, prepared)| outcome_of(experiment, prepared, &ended, &footprints))
        .collect()
}

/// Makes work, `jobs` pieces at a time, and gives in its order what became of each piece, none of what was stopped. Where
/// somebody keeps finished work, what was kept is not made again, and each piece is kept when it ends.
fn make_kept(
    all: &[Work<'_>],
    jobs: usize,
    watch: &Watch<'_>,
    footprints: &Footprints,
) -> Vec<Option<Result<Done, RunError>>> {
    let names: Vec<String> = all.iter().map(Work::name).collect();
    let ids = ids_of(all, watch);
    let (mut made, mut passes) = (Vec::new(), Vec::new());
    for (index, (work, id)) in all.iter().zip(&ids).enumerate() {
        let before = id.as_deref().and_then(|id| watch.finished?.read::<Done>(id));
        // Only those that are made read a workload.
        passes.push(Mutex::new(if before.is_none() { work.want() } else { None }));
        made.extend(before.map(|done| (index, done)));
    }
    if let Some(finished) = watch.finished {
        finished.look_aside(ids.iter().flatten());
    }
    make_all(&names, made, jobs, watch, |index, stop| {
        // The records of a workload are in memory until its last run is made.
        let _pass = passes[index].lock().expect("no holder panics").take();
        let done = all[index].make(footprints, stop)?;
        if let (Some(finished), Some(id)) = (watch.finished, &ids[index])
            // What was stopped means nothing.
            && !watch.stops()
        {
            finished.write(id, &names[index], &done);
        }
        Ok(done)
    })
}

/// What came of a run: the run, and what is told of its workload.
type RunDone = (Run, imbrex_report::Workload);

/// Makes runs, `jobs` at a time, of workloads that are in memory meanwhile. Gives in their order what became of each, and
/// none of one that was stopped.
pub(crate) fn make_runs(
    tasks: &[Task<'_>],
    jobs: usize,
    watch: &Watch<'_>,
) -> Vec<Option<Result<RunDone, RunError>>> {
    let footprints = Footprints::default();
    let all: Vec<Work<'_>> = tasks.iter().copied().map(Work::Run).collect();
    let made = make_kept(&all, jobs, watch, &footprints).into_iter().zip(tasks);
    let run_of = |done: Done, task: &Task<'_>| match (done, watch.finished) {
        (Done::Run(run), None) => Ok(*run),
        // What was kept may be of an equal stack that another file states.
        (Done::Run(run), Some(_)) => task.own(&run, &footprints),
        (Done::Look(_), _) => unreachable!("a run sees no trace"),
    };
    made.map(|(done, task)| done.map(|done| run_of(done?, task))).collect()
}

/// The names under which finished work is kept; none of work that is not.
fn ids_of(all: &[Work<'_>], watch: &Watch<'_>) -> Vec<Option<String>> {
    let mut contents = Contents::default();
    let id = |work: &Work<'_>| Some(watch.finished?.id(&work.words(&mut contents)?));
    all.iter().map(id).collect()
}

/// What an experiment found in the work that was done.
fn outcome_of(
    experiment: &Experiment,
    prepared: &Prepared,
    ended: &Ended,
    footprints: &Footprints,
) -> Result<Outcome, RunError> {
    let (mut workloads, mut left) = (Vec::new(), Vec::new());
    for (config, of) in prepared.workloads_of(experiment) {
        let mut left_of_it: Vec<Left> = Vec::new();
        let (mut runs, mut seen) = (Vec::new(), None);
        for work in of.work(experiment, prepared.seed) {
            match (ended.of(&work), &work) {
                (Ok(Done::Run(run)), Work::Run(task)) => {
                    runs.push(task.own(run, footprints)?);
                }
                (Ok(Done::Look(look)), _) => {
                    seen = Some((look.kind, Found::Trace(look.values.clone())));
                }
                (Ok(Done::Run(_)), Work::Look(_)) => unreachable!("a look sees no run"),
                (Err(it), _) => left_of_it.push(it),
            }
        }
        let found = match seen {
            Some(seen) => Some(seen),
            None if runs.is_empty() && !left_of_it.is_empty() => None,
            None => {
                let mut report = report_of(prepared.seed, runs)?;
                report.left = left_of_it.iter().map(|it| it.name.clone()).collect();
                Some((report.workload.kind, Found::Runs(Box::new(report))))
            }
        };
        left.extend(left_of_it);
        workloads.extend(found.map(|(kind, found)| WorkloadOutcome {
            name: config.name(),
            path: of.swept[0].path.clone(),
            kind,
            scale: config.factor(),
            found,
        }));
    }
    workloads.extend(prepared.form.as_ref().map(|table| WorkloadOutcome {
        name: table.form.to_string(),
        path: table.title.to_string(),
        kind: WorkloadKind::ClosedForm,
        scale: 1.0,
        found: Found::Form(table.clone()),
    }));
    Ok(Outcome { workloads, has_several: experiment.has_several_workloads(), left })
}

/// Works out the runs of an experiment.
pub(super) fn prepare(
    experiment: &Experiment,
    more: &[Setting],
    seed: Option<u64>,
    stop: &AtomicBool,
) -> Result<Prepared, RunError> {
    let form = experiment.closed_form;
    let form = form.map(|form| form.table(experiment, more)).transpose()?;
    let stacks = match experiment.analysis.is_some() || form.is_some() {
        false => experiment.stacks(more)?,
        true => vec![],
    };
    check_series(&experiment.series, stacks.iter().map(|stack| &stack.config))
        .map_err(|error| ConfigError::words(format!("{}: {error}", experiment.file)))?;
    check_events(&experiment.file, &experiment.event, stacks.iter().map(|stack| &stack.config))?;
    // As the paper did: a write-only experiment replays no reads, in any of the stacks.
    let drop_reads = stacks.iter().any(|stack| stack.config.is_write_only());
    let mut workloads = Vec::new();
    let mut known = Vec::new();
    for config in &experiment.workload {
        let swept = config.swept(experiment, &mut known)?;
        let mut replays = Vec::new();
        for (workload, swept) in swept.iter().enumerate() {
            for (config, point) in experiment.replays_of(config) {
                let replay = config.replay(experiment, &swept.workload, drop_reads, stop)?;
                let all: Point = swept.point.clone().into_iter().chain(point).collect();
                replays.push((workload, replay, all));
            }
        }
        let mut cases = Vec::new();
        for stack in &stacks {
            for (workload, replay, point) in &replays {
                let case = Case {
                    config: stack.config.clone(),
                    parameters: parameters(stack.point.iter().chain(point)),
                    replay: *replay,
                    series: experiment.series.clone(),
                    events: experiment.event.clone(),
                    windows: config.windows.clone(),
                    cut_into_windows: config.cut_into_windows,
                    heads: experiment.heads,
                    movement: stack.movement.clone(),
                    drive_scale: 1,
                    drive_scale_option: None,
                };
                cases.push((*workload, case));
            }
        }
        workloads.push(PreparedWorkload {
            swept: swept.into_iter().map(|swept| swept.workload).collect(),
            cases,
        });
    }
    Ok(Prepared { seed: seed.unwrap_or(experiment.seed), workloads, form })
}

/// All that a run depends on. It is the same for a key that is stated and one that is left out, where both mean the
/// same.
pub(super) fn key_of(task: &Task<'_>) -> String {
    let config = task.case.config.without_stated_defaults();
    let config = serde_json::to_string(&config).expect("settings have only string keys");
    format!(
        "{:?} {} {} {:?} {:?} {:?} {config}",
        task.workload,
        task.seed,
        task.case.drive_scale,
        task.case.replay,
        task.case.series,
        (
            &task.case.events,
            &task.case.windows,
            task.case.cut_into_windows,
            &task.case.heads,
            &task.case.movement
        )
    )
}

impl Task<'_> {
    /// What came of a run that is also this one, as this one's file states it.
    fn own(
        &self,
        (run, source): &(Run, imbrex_report::Workload),
        footprints: &Footprints,
    ) -> Result<(Run, imbrex_report::Workload), RunError> {
        let mut run = run.clone();
        run.parameters.clone_from(&self.case.parameters);
        let stated = serde_json::to_value(&self.case.config);
        if run.configuration != stated.expect("settings have only string keys") {
            let (_, _, built) = self.build(&self.options(), footprints, &NEVER)?;
            built.describe.tell_keys(&mut run);
        }
        Ok((run, source.clone()))
    }
}
