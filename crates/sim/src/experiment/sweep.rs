//! From an experiment to the cases it runs.

use super::combined::is_workload_key;
use super::config::{ConfigError, Setting, StackConfig};
use super::experiment::Experiment;
use imbrex_drives::toml_error::{listed, nearest};
use std::collections::BTreeMap;

/// A value for each swept key.
pub type Point = BTreeMap<String, toml::Value>;

/// Every combination of the values of a sweep: the first key (in the order of the alphabet)
/// changes slowest, and values keep their order. One empty point without a sweep.
pub fn points(sweep: &BTreeMap<String, Vec<toml::Value>>) -> Vec<Point> {
    let mut points = vec![Point::new()];
    for (key, values) in sweep {
        points = points
            .iter()
            .flat_map(|point| {
                values.iter().map(|value| {
                    let mut point = point.clone();
                    point.insert(key.clone(), value.clone());
                    point
                })
            })
            .collect();
    }
    points
}

/// A stack with the swept settings that it was given.
#[derive(Clone, Debug)]
pub struct SweptStack {
    /// The stack.
    pub config: StackConfig,
    /// Those of the swept keys whose node the stack has.
    pub point: Point,
}

/// The settings of a swept key, which may be several keys with commas between them.
fn swept_settings(
    keys: &str,
    value: &toml::Value,
    origin: &str,
) -> Result<Vec<Setting>, ConfigError> {
    keys.split(',')
        .map(|key| Setting::of(key.trim(), value.clone(), origin))
        .collect()
}

/// A swept or set value as a person would write it.
pub(super) fn text_of(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl Experiment {
    /// Names or paths of the stacks, in the order in which they are run.
    pub fn system_names(&self) -> Vec<String> {
        let swept = self.sweep.get("system").into_iter().flatten().map(text_of);
        self.systems.iter().cloned().chain(swept).collect()
    }

    /// The sweep of keys of nodes.
    fn stack_sweep(&self) -> BTreeMap<String, Vec<toml::Value>> {
        let mut sweep = self.node_sweep();
        sweep.retain(|key, _| !is_workload_key(key));
        sweep
    }

    /// The sweep without the key `system`, which is a list of stacks by another name.
    pub(super) fn node_sweep(&self) -> BTreeMap<String, Vec<toml::Value>> {
        let mut sweep = self.sweep.clone();
        sweep.remove("system");
        sweep
    }

    /// Every stack at every point, a stack at a time. A stack that lacks the node of a swept key
    /// runs once for all values of it. `more` settings go over those of the file, and under the
    /// swept ones.
    ///
    /// # Errors
    /// When a stack, a setting or a swept key is wrong.
    pub fn stacks(&self, more: &[Setting]) -> Result<Vec<SweptStack>, ConfigError> {
        let settings = self.settings(more)?;
        let points = points(&self.stack_sweep());
        let origin = format!("{}: [sweep]", self.file);
        let mut stacks: Vec<SweptStack> = Vec::new();
        for (file, base) in self.base_stacks()? {
            let first = stacks.len();
            for point in &points {
                let mut all = settings.clone();
                for (key, value) in point {
                    all.extend(swept_settings(key, value, &origin)?);
                }
                let config = base.clone().with(&file, &all)?;
                let mut own = Point::new();
                for (key, value) in point {
                    let mut swept = swept_settings(key, value, &origin)?.into_iter();
                    if swept.any(|setting| config.takes(&setting)) {
                        own.insert(key.clone(), value.clone());
                    }
                }
                if !stacks[first..].iter().any(|stack| stack.point == own) {
                    stacks.push(SweptStack { config, point: own });
                }
            }
        }
        let keys = points.first().into_iter().flatten();
        let mut given = settings.clone();
        for (key, value) in keys {
            given.extend(swept_settings(key, value, &origin)?);
        }
        let configs = || stacks.iter().map(|stack| &stack.config);
        for setting in &given {
            check_taken(setting, configs(), "no stack of the experiment")?;
        }
        Ok(stacks)
    }

    /// The stacks as their files state them, but for the size of the device, each with its file.
    fn base_stacks(&self) -> Result<Vec<(String, StackConfig)>, ConfigError> {
        let mut stacks = Vec::new();
        for name in self.system_names() {
            let name = match name.ends_with(".toml") {
                true => self.path_of(&name),
                false => name,
            };
            stacks.push((name.clone(), StackConfig::load(&name, &[])?));
        }
        if !self.node.is_empty() {
            let config = StackConfig {
                name: self.name.clone(),
                description: self.title.clone(),
                size: None,
                node: self.node.clone(),
            };
            stacks.push((self.file.clone(), config.with(&self.file, &[])?));
        }
        for (_, stack) in &mut stacks {
            stack.size = self.size.or(stack.size);
        }
        Ok(stacks)
    }
}

/// Refuses a setting that none of the stacks takes; `none` says which stacks these are.
///
/// # Errors
/// When no stack has the node, or none has the policy or the kind to which the key belongs.
pub fn check_taken<'a>(
    setting: &Setting,
    stacks: impl Iterator<Item = &'a StackConfig> + Clone,
    none: &str,
) -> Result<(), ConfigError> {
    if stacks.clone().any(|stack| stack.takes(setting)) {
        return Ok(());
    }
    let Setting {
        origin, node, key, ..
    } = setting;
    if let Some(owner) = stacks.clone().find_map(|stack| stack.owner_of(setting)) {
        return Err(ConfigError::words(format!(
            "{origin} {node}.{key}: `{node}.{key}` belongs to policy \"{owner}\"; {none} has a node \
             `{node}` with that policy"
        )));
    }
    if let Some(kind) = stacks.clone().find_map(|stack| stack.kind_of(setting)) {
        return Err(ConfigError::words(format!(
            "{origin} {node}.{key}: `{node}.{key}` belongs to kind \"{kind}\"; {none} has a node \
             `{node}` of that kind"
        )));
    }
    let mut known: Vec<&str> = Vec::new();
    for node in stacks.flat_map(|stack| &stack.node) {
        if !known.contains(&node.name()) {
            known.push(node.name());
        }
    }
    let hint = nearest(node, known.iter().copied())
        .map_or(String::new(), |name| format!("; did you mean `{name}`?"));
    Err(ConfigError::words(format!(
        "{origin} {node}.{key}: {none} has a node `{node}`{hint} (known: {})",
        listed(&known)
    )))
}
