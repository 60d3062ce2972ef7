//! From an experiment to its jobs.

use super::job::{Input, JOB_SCHEMA, Job};
use super::job_error::{JOBS_MAX, JobError};
use crate::experiment::combined::QUEUE_DEPTH;
use crate::experiment::execute::prepare;
use crate::experiment::experiment::{Experiment, WorkloadConfig};
use crate::experiment::run::{Case, RunError};
use crate::experiment::workload::Workload;
use imbrex_drives::Drive;
use imbrex_report::ReplayMode;
use imbrex_stack::{Setting, StackConfig};
use imbrex_traces::synthetic::PATH_PREFIX;
use imbrex_traces::{ReadOptions, TraceError, stored_sha256};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

impl Experiment {
    /// The runs of the experiment as jobs for the build `program`, in the order in which `imbrex run` makes them. Runs that
    /// depend on the same are one job. `more` settings go over those of the file, and `seed` replaces its seed.
    ///
    /// # Errors
    /// When a stack, a setting or a workload is wrong, a file cannot be read, or the experiment runs no stack.
    pub fn jobs(
        &self,
        more: &[Setting],
        seed: Option<u64>,
        program: &str,
        stop: &AtomicBool,
    ) -> Result<Vec<Job>, RunError> {
        let file = || self.file.clone();
        if self.analysis.is_some() || self.closed_form.is_some() {
            return Err(JobError::NoRuns { file: file() }.into());
        }
        if self.workload.iter().any(|workload| workload.path == "-") {
            return Err(JobError::Stream { file: file() }.into());
        }
        let prepared = prepare(self, more, seed, stop)?;
        let runs = prepared.workloads.iter().map(|workload| workload.cases.len()).sum();
        if runs > JOBS_MAX {
            return Err(JobError::TooMany { file: file(), jobs: runs }.into());
        }
        let mut known = Hashes::default();
        let mut planned = BTreeSet::new();
        let mut jobs = Vec::new();
        for (config, of) in prepared.workloads_of(self) {
            let requests = of
                .swept
                .iter()
                .map(|workload| workload.requests(stop))
                .collect::<Result<Vec<u64>, _>>()?;
            for (at, case) in &of.cases {
                let workload = &of.swept[*at];
                let mut job = Job {
                    schema: JOB_SCHEMA.to_string(),
                    id: String::new(),
                    program: program.to_string(),
                    workload: workload.path.clone(),
                    requests: requests[*at],
                    inputs: known.inputs(workload, case)?,
                    parameters: case.parameters.clone(),
                    experiment: self.experiment_of(config, workload, case, prepared.seed)?,
                };
                job.id = job.id_of();
                if planned.insert(job.id.clone()) {
                    jobs.push(job);
                }
            }
        }
        Ok(jobs)
    }

    /// The experiment of one run, in which all settings are worked out and nothing is swept.
    fn experiment_of(
        &self,
        config: &WorkloadConfig,
        workload: &Workload,
        case: &Case,
        seed: u64,
    ) -> Result<Map<String, Value>, RunError> {
        let stack = &case.config;
        let has_node = |name: &str| stack.node.iter().any(|node| node.name() == name);
        let is_here = |series: &&String| series.split('.').next().is_some_and(has_node);
        let series: Vec<&String> = case.series.iter().filter(is_here).collect();
        let events: Vec<_> = case.events.iter().filter(|it| has_node(&it.node)).collect();
        let movement = case.movement.clone().map(|mut movement| {
            movement.models.retain(|disk, _| has_disk(stack, disk));
            movement
        });
        let nodes: Vec<Value> = stack.node.iter().map(|node| in_place(json(node))).collect();
        let mut of = Map::new();
        of.insert("name".into(), "job".into());
        of.insert("title".into(), stack.description.clone().into());
        of.insert("seed".into(), seed.into());
        of.insert("stack".into(), stack.name.clone().into());
        of.insert("node".into(), nodes.into());
        of.insert("workload".into(), config.table_of(workload, case, self)?.into());
        let mut more = |key: &str, value: Value| {
            let is_empty = match &value {
                Value::Array(values) => values.is_empty(),
                Value::Object(values) => values.is_empty(),
                other => other.is_null(),
            };
            if !is_empty {
                of.insert(key.into(), value);
            }
        };
        more("size", json(stack.size));
        more("movement", json(movement));
        more("heads", json(case.heads));
        more("series", json(series));
        more("event", json(events));
        Ok(without_nulls(of))
    }
}

fn has_disk(stack: &StackConfig, name: &str) -> bool {
    stack.node.iter().any(|node| node.disk().is_some() && node.name() == name)
}

impl WorkloadConfig {
    /// The workload of a run as a table, with the swept values that it was given, in which paths do not depend on where the
    /// experiment lies.
    fn table_of(
        &self,
        workload: &Workload,
        case: &Case,
        of: &Experiment,
    ) -> Result<Map<String, Value>, RunError> {
        let mut config = self.clone();
        // Another stack of the experiment may be the reason.
        config.drop_reads = case.replay.drop_reads;
        if let (true, ReplayMode::ClosedLoop { depth }) =
            (case.parameters.contains_key(QUEUE_DEPTH), case.replay.mode)
        {
            config.queue_depth = Some(depth);
        }
        match &workload.combined {
            // Its paths have their scales.
            Some(combined) => {
                let mut combination = combined.combination().clone();
                for source in &mut combination.traces {
                    source.path = path_in_place(&source.path, |path| path.to_string())?;
                }
                config.name = Some(self.name());
                (config.combine, config.scale) = (Some(combination), None);
            }
            None => config.path = path_in_place(&config.path, |path| of.path_of(path))?,
        }
        match json(config) {
            Value::Object(table) => Ok(table),
            _ => unreachable!("a table"),
        }
    }
}

/// A trace, or a recipe in a file, by an absolute path; `place` says where the file is.
fn path_in_place(path: &str, place: impl Fn(&str) -> String) -> Result<String, RunError> {
    let (prefix, name) = match path.strip_prefix(PATH_PREFIX) {
        Some(recipe) if !recipe_name(recipe).ends_with(".toml") => return Ok(path.to_string()),
        Some(recipe) => (PATH_PREFIX, recipe),
        None => ("", path),
    };
    Ok(format!("{prefix}{}", absolute(&place(name))?))
}

/// A recipe without its scale.
fn recipe_name(recipe: &str) -> &str {
    match recipe.rsplit_once('/') {
        Some((name, scale)) if scale.parse::<f64>().is_ok() => name,
        _ => recipe,
    }
}

/// A node whose drive does not depend on where one stands.
fn in_place(mut node: Value) -> Value {
    if let Some(Value::String(drive)) = node.get_mut("drive")
        && Drive::is_in_file(drive)
        && let Ok(path) = absolute(drive)
    {
        *drive = path;
    }
    node
}

fn absolute(path: &str) -> Result<String, RunError> {
    let error = |error| JobError::Read { path: path.to_string(), error };
    Ok(std::path::absolute(path).map_err(error)?.display().to_string())
}

fn json(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("keys are texts")
}

/// A table as TOML has it, in which what is not stated is not there.
fn without_nulls(table: Map<String, Value>) -> Map<String, Value> {
    let value = |(key, value): (String, Value)| match value {
        Value::Null => None,
        Value::Object(table) => Some((key, Value::Object(without_nulls(table)))),
        Value::Array(values) => {
            let of_each = |value: Value| match value {
                Value::Object(table) => Value::Object(without_nulls(table)),
                other => other,
            };
            Some((key, values.into_iter().map(of_each).collect()))
        }
        plain => Some((key, plain)),
    };
    table.into_iter().filter_map(value).collect()
}

/// The SHA-256 of files, each of which is read once.
#[derive(Default)]
pub(super) struct Hashes {
    known: BTreeMap<String, String>,
}

impl Hashes {
    /// That of a file as it is stored.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(&mut self, path: &str) -> Result<&str, TraceError> {
        if !self.known.contains_key(path) {
            let sha256 = stored_sha256(path, &ReadOptions::default())?;
            self.known.insert(path.to_string(), sha256);
        }
        Ok(&self.known[path])
    }

    /// The files that a run reads.
    fn inputs(&mut self, workload: &Workload, case: &Case) -> Result<Vec<Input>, RunError> {
        let mut paths = BTreeSet::new();
        let mut add = |path: &str| -> Result<(), RunError> {
            let path = match path.strip_prefix(PATH_PREFIX).map(recipe_name) {
                None => path,
                Some(recipe) if recipe.ends_with(".toml") => recipe,
                Some(_) => return Ok(()),
            };
            paths.insert(absolute(path)?);
            Ok(())
        };
        match &workload.combined {
            Some(combined) => combined.sources().iter().try_for_each(|it| add(&it.path))?,
            None => add(&workload.path)?,
        }
        for disk in case.config.disks() {
            if let Some(drive) = disk.drive.as_deref().filter(|drive| Drive::is_in_file(drive)) {
                add(drive)?;
            }
        }
        let input = |path: String| -> Result<Input, RunError> {
            let sha256 = self.of(&path)?.to_string();
            Ok(Input { path, sha256 })
        };
        paths.into_iter().map(input).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::execute::key_of;
    use crate::experiment::reproduce::figures;
    use crate::experiment::run::Task;
    use crate::experiment::workload::NEVER;

    /// All that each run depends on.
    fn keys(of: &Experiment) -> Vec<String> {
        let prepared = prepare(of, &[], None, &NEVER).unwrap();
        let workloads = prepared.workloads.iter();
        let keys = workloads.flat_map(|workload| {
            workload.cases.iter().map(|(at, case)| {
                let mut case = case.clone();
                if let Some(movement) = &mut case.movement {
                    // Models of disks that the stack lacks mean nothing to its run.
                    movement.models.retain(|disk, _| has_disk(&case.config, disk));
                }
                let task = Task::new(&workload.swept[*at], prepared.seed, &case);
                format!("{} {}", key_of(&task), workload.swept[*at].path)
            })
        });
        keys.collect()
    }

    #[test]
    fn every_run_of_a_shipped_experiment_is_a_job_that_is_that_run() {
        let mut count = 0;
        for figure in figures(None, None).unwrap() {
            let mut experiment = figure.experiment().unwrap();
            experiment.quicken();
            for workload in &mut experiment.workload {
                workload.limit = workload.limit.map(|limit| limit.min(1000));
            }
            let Ok(jobs) = experiment.jobs(&[], None, "test", &NEVER) else {
                let is_no_run = experiment.analysis.is_some() || experiment.closed_form.is_some();
                assert!(is_no_run, "{}", experiment.name);
                continue;
            };
            let runs = keys(&experiment);
            assert_eq!(jobs.len(), runs.len(), "{}", experiment.name);
            // Of long sweeps some are enough.
            for (job, run) in jobs.iter().zip(&runs).step_by(1 + jobs.len() / 5) {
                let [of_job] = &keys(&job.experiment().unwrap())[..] else {
                    panic!("{} is not one run", job.name());
                };
                assert_eq!(of_job, run, "{}", job.name());
            }
            count += jobs.len();
        }
        assert!(count > 500, "{count} jobs");
    }
}
