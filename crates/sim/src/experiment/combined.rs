//! Combined workloads: one made of several traces, one for each of several seeds, one for each swept value.

use super::experiment::{Experiment, WorkloadConfig};
use super::kept::Kept;
use super::run::kind_of;
use super::sweep::{Point, points};
use super::workload::Workload;
use imbrex_drives::toml_error::nearest;
use imbrex_report::CombinedSource;
use imbrex_stack::ConfigError;
use imbrex_traces::ReadOptions;
use imbrex_traces::combine::{Combination, Combined, Order, Place};
use imbrex_traces::synthetic::PATH_PREFIX;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the swept keys of combined workloads begin with.
const PREFIX: &str = "workload.";

/// What follows it.
const KEYS: [&str; 4] = ["burst_requests", "order", "place", "seed"];

/// The swept key of how workloads are replayed, combined or not.
pub(super) const QUEUE_DEPTH: &str = "workload.queue_depth";

/// Workloads that differ in their seed at most.
const SEEDS_MAX: u32 = 1000;

/// True for a swept key that is one of workloads.
pub(super) fn is_workload_key(key: &str) -> bool {
    key.starts_with(PREFIX)
}

/// What a combination was made of, for reports. Every run has the values of swept keys in its parameters.
pub(super) fn told(
    combined: &Combined,
    swept: &BTreeMap<String, serde_json::Value>,
) -> imbrex_report::Combination {
    let value = serde_json::to_value(combined.combination()).expect("keys are texts");
    let mut parameters: BTreeMap<String, serde_json::Value> =
        serde_json::from_value(value).expect("a table");
    // The sources have a list of their own.
    parameters.remove("traces");
    parameters
        .retain(|key, value| !value.is_null() && !swept.contains_key(&format!("{PREFIX}{key}")));
    let sources = combined.sources().iter().map(|source| CombinedSource {
        path: source.path.clone(),
        kind: kind_of(source.kind),
        sha256: source.sha256.clone(),
    });
    imbrex_report::Combination { parameters, sources: sources.collect() }
}

impl Experiment {
    /// Makes a workload with `seeds` so many workloads.
    ///
    /// # Errors
    /// When the number is impossible, or the workload is not combined or has a seed.
    pub(super) fn expand_seeds(&mut self) -> Result<(), ConfigError> {
        let mut expanded = Vec::new();
        for config in std::mem::take(&mut self.workload) {
            let Some(seeds) = config.seeds else {
                expanded.push(config);
                continue;
            };
            let wrong = |reason: &str| {
                let name = config.name();
                let file = &self.file;
                Err(ConfigError::words(format!(
                    "{file}: [[workload]] `{name}`: seeds = {seeds}: {reason}"
                )))
            };
            if !(1..=SEEDS_MAX).contains(&seeds) {
                return wrong(&format!("accepted: 1 to {SEEDS_MAX}"));
            }
            let Some(combine) = &config.combine else {
                return wrong("nothing is drawn; accepted: together with `combine`");
            };
            if combine.seed.is_some() || self.sweep.contains_key("workload.seed") {
                return wrong("the seed is stated or swept; accepted: one of them");
            }
            for seed in 1..=seeds {
                expanded.push(WorkloadConfig {
                    name: Some(format!("{}-{seed}", config.name())),
                    seeds: None,
                    combine: Some(Combination { seed: Some(seed.into()), ..combine.clone() }),
                    ..config.clone()
                });
            }
        }
        self.workload = expanded;
        Ok(())
    }

    /// Finds what is wrong with combined workloads and their swept keys before any of them is made.
    pub(super) fn check_combined(&self) -> Result<(), ConfigError> {
        for config in &self.workload {
            config.check_combined().map_err(|reason| {
                let name = config.name();
                ConfigError::words(format!("{}: [[workload]] `{name}`: {reason}", self.file))
            })?;
        }
        for (keys, values) in &self.sweep {
            let mut parts = keys.split(',').map(str::trim);
            if !parts.any(is_workload_key) {
                continue;
            }
            let wrong = |reason: String| {
                let file = &self.file;
                Err(ConfigError::words(format!("{file}: [sweep] {keys}: {reason}")))
            };
            if keys == QUEUE_DEPTH {
                self.check_depths(values).or_else(wrong)?;
                continue;
            }
            let key = keys.strip_prefix(PREFIX).unwrap_or(keys);
            if !KEYS.contains(&key) {
                let hint = nearest(key, KEYS)
                    .map_or(String::new(), |near| format!("; did you mean `{PREFIX}{near}`?"));
                return wrong(format!(
                    "is no key of a combined workload{hint}; accepted: {PREFIX}{}, {QUEUE_DEPTH}, each by itself",
                    KEYS.join(&format!(", {PREFIX}"))
                ));
            }
            if self.workload.iter().all(|config| config.combine.is_none()) {
                return wrong(
                    "no workload is combined; accepted: a [[workload]] with `combine`".to_string(),
                );
            }
            let mut scratch = Combination::of(Vec::new());
            for value in values {
                set(&mut scratch, key, value).or_else(wrong)?;
            }
        }
        Ok(())
    }

    /// Finds what is wrong with swept depths of the queue.
    fn check_depths(&self, values: &[toml::Value]) -> Result<(), String> {
        if let Some(wrong) = values.iter().find(|value| depth_of(value).is_none()) {
            return Err(format!("{wrong}; accepted: whole numbers from 1 to {}", u32::MAX));
        }
        let states_own = |config: &&WorkloadConfig| {
            config.queue_depth.is_some()
                || config.open_loop_speed.is_some()
                || config.streams.is_some()
        };
        self.workload.iter().find(states_own).map_or(Ok(()), |config| {
            Err(format!(
                "workload `{}` states how it is replayed; accepted: workloads without queue_depth, \
                 open_loop_speed and streams",
                config.name()
            ))
        })
    }

    /// The ways in which a workload is replayed: one for each swept depth of the queue.
    pub(super) fn replays_of(&self, config: &WorkloadConfig) -> Vec<(WorkloadConfig, Point)> {
        let Some(depths) = self.sweep.get(QUEUE_DEPTH) else {
            return vec![(config.clone(), Point::new())];
        };
        let at_depth = |depth: &toml::Value| {
            let config = WorkloadConfig { queue_depth: depth_of(depth), ..config.clone() };
            (config, Point::from([(QUEUE_DEPTH.to_string(), depth.clone())]))
        };
        depths.iter().map(at_depth).collect()
    }

    /// The swept keys of combined workloads.
    fn workload_sweep(&self) -> BTreeMap<String, Vec<toml::Value>> {
        let mut sweep = self.sweep.clone();
        sweep.retain(|key, _| is_workload_key(key) && key != QUEUE_DEPTH);
        sweep
    }
}

/// A depth of the queue.
fn depth_of(value: &toml::Value) -> Option<u32> {
    let depth = value.as_integer().and_then(|depth| u32::try_from(depth).ok());
    depth.filter(|depth| *depth > 0)
}

/// A workload with the swept values that it was given.
pub(super) struct SweptWorkload {
    pub(super) workload: Workload,
    pub(super) point: Point,
}

impl WorkloadConfig {
    fn check_combined(&self) -> Result<(), String> {
        let Some(combine) = &self.combine else {
            return match self.path.is_empty() {
                true => {
                    Err("there is neither `path` nor `combine`; accepted: one of them".to_string())
                }
                false => Ok(()),
            };
        };
        let of_a_trace = [
            ("path", !self.path.is_empty()),
            ("format", self.format.is_some()),
            ("columns", self.columns.is_some()),
        ];
        if let Some((key, _)) = of_a_trace.iter().find(|(_, given)| *given) {
            return Err(format!(
                "`{key}` and `combine`; accepted: `{key}` of one of the traces that are combined"
            ));
        }
        let is_recipe = |path: &str| path.starts_with(PATH_PREFIX);
        match self.scale {
            Some(scale) if !combine.traces.iter().any(|trace| is_recipe(&trace.path)) => {
                Err(format!("scale = {scale}: only a `{PATH_PREFIX}` trace can be scaled"))
            }
            _ => Ok(()),
        }
    }

    /// The workload at every point of the swept keys; one without any unless it is combined. First passes of `known`
    /// combinations are shared.
    ///
    /// # Errors
    /// When a trace cannot be read, or the combination is impossible.
    pub(super) fn swept(
        &self,
        of: &Experiment,
        known: &mut Vec<Arc<Combined>>,
    ) -> Result<Vec<SweptWorkload>, ConfigError> {
        let Some(base) = &self.combine else {
            return Ok(vec![SweptWorkload { workload: self.workload(of)?, point: Point::new() }]);
        };
        let mut base = base.clone();
        for trace in &mut base.traces {
            trace.path = self.resolved(&trace.path, of)?;
        }
        let mut swept: Vec<SweptWorkload> = Vec::new();
        for point in points(&of.workload_sweep()) {
            let (combination, own) = at(&base, &point);
            if swept.iter().any(|other| other.point == own) {
                continue;
            }
            let combined = Combined::beside(combination, known).map_err(|error| {
                let name = self.name();
                ConfigError::words(format!("{}: [[workload]] `{name}`: {error}", of.file))
            })?;
            let combined = Arc::new(combined);
            known.push(Arc::clone(&combined));
            swept.push(SweptWorkload {
                workload: Workload {
                    path: format!("{} ({})", self.name(), combined.combination().label()),
                    options: ReadOptions::default(),
                    limit: self.limit,
                    repeat: self.repeat.unwrap_or(1),
                    new_blocks: self.new_blocks,
                    warm_up: self.warm_up,
                    combined: Some(combined),
                    kept: Kept::default(),
                },
                point: own,
            });
        }
        Ok(swept)
    }

    /// The path of a trace of a combination, with the scale of the workload unless it states its own.
    fn resolved(&self, path: &str, of: &Experiment) -> Result<String, ConfigError> {
        let Some(recipe) = path.strip_prefix(PATH_PREFIX) else {
            return Ok(of.path_of(path));
        };
        let (name, own) = match recipe.rsplit_once('/') {
            Some((name, scale)) if scale.parse::<f64>().is_ok() => (name, Some(scale.to_string())),
            _ => (recipe, None),
        };
        let name = match name.ends_with(".toml") {
            true => of.path_of(name),
            false => name.to_string(),
        };
        let shared = self.scale.filter(|&scale| scale != 1.0);
        Ok(match own.or_else(|| shared.map(|scale| scale.to_string())) {
            Some(scale) => format!("{PATH_PREFIX}{name}/{scale}"),
            None => format!("{PATH_PREFIX}{name}"),
        })
    }
}

/// A combination at a point, and the part of the point that it takes: what belongs to another order or another placement
/// than the swept one is left out.
fn at(base: &Combination, point: &Point) -> (Combination, Point) {
    let (mut combination, mut own) = (base.clone(), point.clone());
    for (key, value) in point {
        set(&mut combination, &key[PREFIX.len()..], value).expect("checked when it was read");
    }
    let is_swept = |key: &str| point.contains_key(&format!("{PREFIX}{key}"));
    if is_swept("order") && combination.order != Order::Bursts {
        combination.burst_requests = None;
        own.remove("workload.burst_requests");
    }
    if is_swept("place") {
        if combination.place != Place::Concatenate {
            combination.align = None;
        }
        if combination.place != Place::Pack {
            combination.blocks = None;
        }
    }
    (combination, own)
}

/// Gives a key of a combination a value; the error says what is accepted.
fn set(combination: &mut Combination, key: &str, value: &toml::Value) -> Result<(), String> {
    fn read<T: DeserializeOwned>(value: &toml::Value) -> Result<T, String> {
        let read = value.clone().try_into();
        read.map_err(|error: toml::de::Error| format!("{value}: {}", error.message().trim()))
    }
    match key {
        "burst_requests" => combination.burst_requests = Some(read(value)?),
        "order" => combination.order = read(value)?,
        "place" => combination.place = read(value)?,
        "seed" => combination.seed = Some(read(value)?),
        _ => unreachable!("one of KEYS"),
    }
    Ok(())
}
