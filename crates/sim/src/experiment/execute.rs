//! Running experiments, several at a time, without making the same run twice.

use super::areas::lay_out;
use super::config::{ConfigError, Setting};
use super::events::check_events;
use super::experiment::{Analysis, DirectWriteConfig, Experiment};
use super::observers::check_series;
use super::run::{Case, RunError, Task, kind_of, report_of};
use super::tasks::{Watch, run_tasks};
use super::workload::Workload;
use crate::analysis::DirectWrite;
use crate::replay::{Fit, place};
use crate::report::{self, FormTable, Report, Run, WorkloadKind};
use imbrex_core::operation::Operation;
use imbrex_core::units::BlockCount;
use imbrex_traces::{BlockRule, Characterise};
use std::collections::BTreeMap;

/// What an experiment found.
#[derive(Debug)]
pub struct Outcome {
    /// One for each workload, in the order of the file. Of an experiment that was stopped those are left
    /// out of which no run was finished, and the others have the runs that were.
    pub workloads: Vec<WorkloadOutcome>,
    /// Whether the experiment has several workloads.
    pub has_several: bool,
    /// What was not run to its end because the runs were stopped: workload, and system with its settings.
    pub left: Vec<String>,
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
struct Prepared {
    seed: u64,
    workloads: Vec<PreparedWorkload>,
    form: Option<FormTable>,
}

/// A workload of an experiment.
struct PreparedWorkload {
    /// One, or one for each point of the swept keys of a combined workload.
    swept: Vec<Workload>,
    /// The runs, each with the number of its workload in `swept`.
    cases: Vec<(usize, Case)>,
}

impl PreparedWorkload {
    /// The runs to be made.
    fn tasks(&self, seed: u64) -> impl Iterator<Item = Task<'_>> {
        self.cases.iter().map(move |(workload, case)| Task {
            workload: &self.swept[*workload],
            seed,
            case,
        })
    }
}

/// Runs experiments, `jobs` runs at a time, until the last is made or `watch` stops them. Runs that
/// several of them share are made once. Settings of `more` go over those of the files; `seed` replaces
/// theirs.
///
/// # Errors
/// The first error in the order of the experiments.
pub fn execute(
    experiments: &[Experiment],
    more: &[Setting],
    seed: Option<u64>,
    jobs: usize,
    watch: &Watch<'_>,
) -> Result<Vec<Outcome>, RunError> {
    let prepared = experiments
        .iter()
        .map(|experiment| prepare(experiment, more, seed))
        .collect::<Result<Vec<_>, _>>()?;
    let mut tasks: Vec<Task<'_>> = Vec::new();
    let mut index_of: BTreeMap<String, usize> = BTreeMap::new();
    for experiment in &prepared {
        for workload in &experiment.workloads {
            for task in workload.tasks(experiment.seed) {
                index_of.entry(key_of(&task)).or_insert_with(|| {
                    tasks.push(task);
                    tasks.len() - 1
                });
            }
        }
    }
    let results = run_tasks(&tasks, jobs, watch)?;
    let made = |task: &Task<'_>| results[index_of[&key_of(task)]].as_ref();
    let outcomes = experiments.iter().zip(&prepared);
    outcomes
        .map(|(experiment, prepared)| outcome_of(experiment, prepared, &made, watch))
        .collect()
}

/// What an experiment found in the runs that were made.
fn outcome_of<'a>(
    experiment: &Experiment,
    prepared: &Prepared,
    made: &dyn Fn(&Task<'_>) -> Option<&'a (Run, report::Workload)>,
    watch: &Watch<'_>,
) -> Result<Outcome, RunError> {
    let (mut workloads, mut left) = (Vec::new(), Vec::new());
    for (config, of) in experiment.workload.iter().zip(&prepared.workloads) {
        let workload = &of.swept[0];
        let mut runs = Vec::new();
        for task in of.tasks(prepared.seed) {
            match made(&task) {
                Some((run, source)) => runs.push(with_parameters(run, task.case, source)),
                None => left.push(task.name()),
            }
        }
        let (kind, found) = match &experiment.analysis {
            None if runs.is_empty() && watch.stops() => continue,
            None => {
                let report = report_of(prepared.seed, runs)?;
                (report.workload.kind, Found::Runs(Box::new(report)))
            }
            Some(_) if watch.stops() => {
                left.push(workload.path.clone());
                continue;
            }
            Some(analysis) => analyse(experiment, analysis, workload, prepared.seed)?,
        };
        workloads.push(WorkloadOutcome {
            name: config.name(),
            path: workload.path.clone(),
            kind,
            scale: config.factor(),
            found,
        });
    }
    workloads.extend(prepared.form.as_ref().map(|table| WorkloadOutcome {
        name: table.form.to_string(),
        path: table.title.to_string(),
        kind: WorkloadKind::ClosedForm,
        scale: 1.0,
        found: Found::Form(table.clone()),
    }));
    let of_forms = usize::from(prepared.form.is_some());
    Ok(Outcome {
        workloads,
        has_several: prepared.workloads.len() + of_forms > 1,
        left,
    })
}

fn prepare(
    experiment: &Experiment,
    more: &[Setting],
    seed: Option<u64>,
) -> Result<Prepared, RunError> {
    let form = experiment.closed_form;
    let form = form.map(|form| form.table(experiment, more)).transpose()?;
    let stacks = match experiment.analysis.is_some() || form.is_some() {
        false => experiment.stacks(more)?,
        true => vec![],
    };
    check_series(&experiment.series, stacks.iter().map(|stack| &stack.config))
        .map_err(|error| ConfigError::words(format!("{}: {error}", experiment.file)))?;
    check_events(
        &experiment.file,
        &experiment.event,
        stacks.iter().map(|stack| &stack.config),
    )?;
    // As the paper did: a write-only experiment replays no reads, in any of the stacks.
    let drop_reads = stacks.iter().any(|stack| stack.config.is_write_only());
    let mut workloads = Vec::new();
    let mut known = Vec::new();
    for config in &experiment.workload {
        let swept = config.swept(experiment, &mut known)?;
        let replays = swept
            .iter()
            .map(|swept| config.replay(experiment, &swept.workload, drop_reads))
            .collect::<Result<Vec<_>, _>>()?;
        let mut cases = Vec::new();
        for stack in &stacks {
            for (workload, (swept, replay)) in swept.iter().zip(&replays).enumerate() {
                let case = Case {
                    config: stack.config.clone(),
                    parameters: parameters(stack.point.iter().chain(&swept.point)),
                    replay: *replay,
                    series: experiment.series.clone(),
                    events: experiment.event.clone(),
                    windows: config.windows.clone(),
                    movement: stack.movement,
                    drive_scale: 1,
                    drive_scale_option: None,
                };
                cases.push((workload, case));
            }
        }
        workloads.push(PreparedWorkload {
            swept: swept.into_iter().map(|swept| swept.workload).collect(),
            cases,
        });
    }
    Ok(Prepared {
        seed: seed.unwrap_or(experiment.seed),
        workloads,
        form,
    })
}

/// Swept values as reports hold them.
fn parameters<'a>(
    point: impl Iterator<Item = (&'a String, &'a toml::Value)>,
) -> BTreeMap<String, serde_json::Value> {
    let json = |value| serde_json::to_value(value).expect("TOML values are JSON");
    point
        .map(|(key, value)| (key.clone(), json(value)))
        .collect()
}

/// All that a run depends on.
fn key_of(task: &Task<'_>) -> String {
    let config = serde_json::to_string(&task.case.config).expect("settings have only string keys");
    format!(
        "{:?} {} {:?} {:?} {:?} {config}",
        task.workload,
        task.seed,
        task.case.replay,
        task.case.series,
        (&task.case.events, &task.case.windows, task.case.movement)
    )
}

fn with_parameters(run: &Run, case: &Case, source: &report::Workload) -> (Run, report::Workload) {
    let mut run = run.clone();
    run.parameters.clone_from(&case.parameters);
    (run, source.clone())
}

fn analyse(
    experiment: &Experiment,
    analysis: &Analysis,
    workload: &Workload,
    seed: u64,
) -> Result<(WorkloadKind, Found), RunError> {
    let kind = kind_of(workload.records()?.source().kind);
    let found = match analysis {
        Analysis::Characteristics => {
            let mut records = workload.records()?;
            let mut characterise = Characterise::new(BlockRule::default());
            for record in records.by_ref().take(workload.limit_records()) {
                characterise.add(&record?);
            }
            serde_json::to_value(characterise.finish(&records)).expect("keys are strings")
        }
        Analysis::DirectWrite(config) => {
            let size_bytes = match experiment.size {
                Some(size) => size.bytes(),
                None => workload.span_bytes()?,
            };
            config.estimate(workload, size_bytes, seed)?
        }
        Analysis::Movement(movement) => movement.count(workload)?,
    };
    Ok((kind, Found::Trace(found)))
}

impl DirectWriteConfig {
    /// The estimate for a trace on a device of `size_bytes`.
    fn estimate(
        &self,
        workload: &Workload,
        size_bytes: u64,
        seed: u64,
    ) -> Result<serde_json::Value, RunError> {
        let device = BlockCount::from_bytes_floor(size_bytes);
        let bands = lay_out(self.bands, device, seed)?;
        let footprint = workload.footprint(&bands, device, Fit::Refuse, true)?;
        let log_bytes = footprint.bytes_of(self.persistent_cache);
        let mut estimate = DirectWrite::new(&bands, BlockCount::from_bytes_floor(log_bytes));
        for record in workload.records()?.take(workload.limit_records()) {
            let record = record?;
            match place(&record, device, Fit::Refuse) {
                Some((Operation::Write { .. }, extent)) => estimate.write(extent),
                Some(_) => {}
                None => {
                    return Err(ConfigError::words(format!(
                        "{}: a request at offset {} ends beyond the device of {size_bytes} bytes; set a \
                         larger `size`",
                        workload.path, record.offset_bytes
                    ))
                    .into());
                }
            }
        }
        Ok(serde_json::json!({
            "footprint_bytes": footprint.touched_bytes,
            "fills": estimate.fills(),
            "band_bytes_written": estimate.band_bytes_written(),
            "write_amplification": estimate.write_amplification(),
        }))
    }
}
