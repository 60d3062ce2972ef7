//! From an experiment to the cases it runs.

use super::combined::is_workload_key;
use super::experiment::Experiment;
use super::known::text_of;
use super::member_movement::MovementConfig;
use imbrex_drives::toml_error::listed;
use imbrex_stack::{ConfigError, Setting, StackConfig, check_brought, check_taken};
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

/// Swept values as reports hold them.
pub fn parameters<'a>(
    point: impl IntoIterator<Item = (&'a String, &'a toml::Value)>,
) -> BTreeMap<String, serde_json::Value> {
    let json = |value| serde_json::to_value(value).expect("TOML values are JSON");
    point.into_iter().map(|(key, value)| (key.clone(), json(value))).collect()
}

/// A stack before anything is set in it.
pub struct BaseStack {
    /// The file or the name that it came from, for errors.
    pub file: String,
    /// The stack.
    pub config: StackConfig,
    /// What is set in this stack alone. It is told beside its name.
    pub own: Vec<Setting>,
}

/// Stacks to be run at every combination of values of some keys.
pub struct Sweep<'a> {
    /// The combinations. Each key is that of a node, or several with commas between them.
    pub points: Vec<Point>,
    /// Where they are stated, for errors.
    pub origin: String,
    /// True of a key that is swept and of no node.
    pub is_of_no_node: &'a dyn Fn(&str) -> bool,
    /// What to call it when no stack has a key.
    pub nobody: &'a str,
}

impl Sweep<'_> {
    /// Every stack with its file at every point, a stack at a time, with those of the swept keys whose node it
    /// has. A stack that lacks the node of a swept key runs once for all values of it. The swept settings go
    /// over those of the one stack, and these over `settings`.
    ///
    /// # Errors
    /// When a setting or a swept key is wrong, or of no stack.
    pub fn stacks(
        &self,
        bases: &[BaseStack],
        settings: &[Setting],
    ) -> Result<Vec<(StackConfig, Point)>, ConfigError> {
        let mut stacks: Vec<(StackConfig, Point)> = Vec::new();
        for BaseStack { file, config: base, own: of_it } in bases {
            let first = stacks.len();
            for point in &self.points {
                let mut all = [settings, of_it].concat();
                for (key, value) in point {
                    all.extend(self.settings_of(key, value)?);
                }
                let config = base.clone().with(file, &all)?;
                let key_of = |it: &Setting| (format!("{}.{}", it.node, it.key), it.value.clone());
                let mut own: Point = of_it.iter().map(key_of).collect();
                for (key, value) in point {
                    let mut swept = self.settings_of(key, value)?.into_iter();
                    if swept.any(|setting| config.takes(&setting))
                        || keys_of(key).any(self.is_of_no_node)
                    {
                        own.insert(key.clone(), value.clone());
                    }
                }
                if !stacks[first..].iter().any(|(_, point)| *point == own) {
                    stacks.push((config, own));
                }
            }
        }
        for BaseStack { config, own, .. } in bases {
            let nobody = format!("no stack `{}`", config.name);
            own.iter().try_for_each(|it| check_taken(it, [config].into_iter(), &nobody))?;
        }
        let mut given = settings.to_vec();
        for (key, value) in self.points.first().into_iter().flatten() {
            given.extend(self.settings_of(key, value)?);
        }
        for setting in &given {
            check_taken(setting, stacks.iter().map(|(config, _)| config), self.nobody)?;
        }
        Ok(stacks)
    }

    /// The settings of nodes of a swept key.
    fn settings_of(&self, keys: &str, value: &toml::Value) -> Result<Vec<Setting>, ConfigError> {
        keys_of(keys)
            .filter(|key| !(self.is_of_no_node)(key))
            .map(|key| Setting::of(key, value.clone(), &self.origin))
            .collect()
    }
}

/// The keys of a swept key.
fn keys_of(keys: &str) -> impl Iterator<Item = &str> {
    keys.split(',').map(str::trim)
}

/// A stack with the swept settings that it was given.
#[derive(Clone, Debug)]
pub struct SweptStack {
    /// The stack.
    pub config: StackConfig,
    /// Those of the swept keys whose node the stack has.
    pub point: Point,
    /// The model by which movement of its disks is counted.
    pub movement: Option<MovementConfig>,
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

    /// The key of `[movement]` that a swept key stands for, if the experiment has that table.
    fn movement_key<'a>(&self, key: &'a str) -> Option<&'a str> {
        self.movement.as_ref()?;
        key.strip_prefix("movement.")
    }

    /// `[movement]` with the values of a point; none without the table.
    fn movement_at(&self, point: &Point) -> Result<Option<MovementConfig>, ConfigError> {
        let Some(mut table) = self.movement.clone() else {
            return Ok(None);
        };
        for (keys, value) in point {
            for key in keys.split(',').map(str::trim) {
                let Some(key) = self.movement_key(key) else {
                    continue;
                };
                let of_disk = key.strip_prefix("models.").and_then(|disk| {
                    let empty = || toml::Value::Table(toml::Table::new());
                    Some((disk, table.entry("models").or_insert_with(empty).as_table_mut()?))
                });
                match of_disk {
                    Some((disk, models)) => models.insert(disk.to_string(), value.clone()),
                    None => table.insert(key.to_string(), value.clone()),
                };
            }
        }
        let config = MovementConfig::parse(table);
        let wrong = |words| ConfigError::words(format!("{}: [movement]: {words}", self.file));
        config.map(Some).map_err(wrong)
    }

    /// Every stack at every point, a stack at a time. A stack that lacks the node of a swept key
    /// runs once for all values of it. `more` settings go over those of the file, and under the
    /// swept ones.
    ///
    /// # Errors
    /// When a stack, a setting or a swept key is wrong.
    pub fn stacks(&self, more: &[Setting]) -> Result<Vec<SweptStack>, ConfigError> {
        let sweep = Sweep {
            points: points(&self.stack_sweep()),
            origin: format!("{}: [sweep]", self.file),
            is_of_no_node: &|key| self.movement_key(key).is_some(),
            nobody: "no stack of the experiment",
        };
        let mut swept = sweep.stacks(&self.base_stacks()?, &self.settings(more)?)?;
        for (config, _) in &mut swept {
            config.bring(&self.brought)?;
        }
        check_brought(&self.brought, swept.iter().map(|(config, _)| config))?;
        let with_movement = |(config, point): (StackConfig, Point)| -> Result<_, ConfigError> {
            Ok(SweptStack { movement: self.movement_at(&point)?, config, point })
        };
        let stacks: Result<Vec<_>, ConfigError> = swept.into_iter().map(with_movement).collect();
        let stacks = stacks?;
        self.check_models(&stacks)?;
        Ok(stacks)
    }

    /// Finds models of `[movement]` for disks that no stack has.
    fn check_models(&self, stacks: &[SweptStack]) -> Result<(), ConfigError> {
        let configs = stacks.iter().map(|stack| &stack.config);
        let mut disks: Vec<&str> = Vec::new();
        for node in configs.flat_map(|config| &config.node) {
            if node.disk().is_some() && !disks.contains(&node.name()) {
                disks.push(node.name());
            }
        }
        let movements = stacks.iter().filter_map(|stack| stack.movement.as_ref());
        let mut named = movements.flat_map(|movement| movement.models.keys());
        match named.find(|name| !disks.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(ConfigError::words(format!(
                "{}: [movement]: models: `{name}` is no disk of a stack of the experiment; accepted: {}",
                self.file,
                listed(disks)
            ))),
        }
    }

    /// The stacks as their files state them, but for the size of the device, each with its file.
    fn base_stacks(&self) -> Result<Vec<BaseStack>, ConfigError> {
        let mut stacks = Vec::new();
        for name in self.system_names() {
            let name = match name.ends_with(".toml") {
                true => self.path_of(&name),
                false => name,
            };
            let config = StackConfig::load(&name, &[])?;
            stacks.push(BaseStack { file: name, config, own: vec![] });
        }
        if !self.node.is_empty() {
            let name = self.stack.as_ref().unwrap_or(&self.name).clone();
            let config = StackConfig::of_nodes(name, self.title.clone(), self.node.clone());
            let config = config.with(&self.file, &[])?;
            stacks.push(BaseStack { file: self.file.clone(), config, own: vec![] });
        }
        for stack in &mut stacks {
            stack.config.size = self.size.or(stack.config.size);
        }
        Ok(stacks)
    }
}
