//! Settings over the keys of nodes: `--set`, and the points of a sweep.

use super::config::{ConfigError, StackConfig};
use imbrex_drives::toml_error::{listed, nearest};

/// A setting given on the command line or in a sweep: `node.key = value`.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The node.
    pub node: String,
    /// Its key.
    pub key: String,
    /// The value.
    pub value: toml::Value,
    /// Where it was given, for errors: `--set`, or a table of an experiment file.
    pub origin: String,
}

impl Setting {
    /// Reads `node.key=value`. The value is taken as TOML where it is TOML (`true`, `200000`) and
    /// as a string where it is not (`40MiB`, `2 %`).
    ///
    /// # Errors
    /// When there is no `=` or no `.`.
    pub fn parse(text: &str) -> Result<Setting, ConfigError> {
        let wrong = || {
            ConfigError::words(format!(
                "`{text}` is not a setting; write NODE.KEY=VALUE, such as cache.capacity=40MiB"
            ))
        };
        let (path, value) = text.split_once('=').ok_or_else(wrong)?;
        let value = value.trim();
        let parsed = toml::from_str::<toml::Table>(&format!("v = {value}"))
            .ok()
            .and_then(|mut table| table.remove("v"))
            .unwrap_or_else(|| toml::Value::String(value.to_string()));
        Setting::of(path.trim(), parsed, "--set").map_err(|_| wrong())
    }

    /// The setting of `node.key` to a value that was given in `origin`.
    ///
    /// # Errors
    /// When there is no `.`.
    pub fn of(path: &str, value: toml::Value, origin: &str) -> Result<Setting, ConfigError> {
        let (node, key) = path.split_once('.').ok_or_else(|| {
            ConfigError::words(format!(
                "{origin}: `{path}` is not a key of a node; accepted: NODE.KEY, such as cache.capacity"
            ))
        })?;
        Ok(Setting {
            node: node.to_string(),
            key: key.to_string(),
            value,
            origin: origin.to_string(),
        })
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
    let Setting { origin, node, key, .. } = setting;
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
