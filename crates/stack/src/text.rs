//! The text of a stack: its nodes with the line of each key, and nodes that are repeated.

use super::config::{ConfigError, NODES_MAX, StackConfig};
use super::kinds::NodeConfig;
use imbrex_drives::keys::KeyError;
use imbrex_drives::quantity::Size;
use imbrex_drives::toml_error::{TomlError, explain, from_toml, listed};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};

/// The key of how often a node is repeated.
const TIMES: &str = "times";
/// The key of its name.
const NAME: &str = "name";
/// What stands for the number of a node that is repeated.
const NUMBER: &str = "{}";

/// A stack before its nodes are read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StackText {
    name: String,
    #[serde(default)]
    description: String,
    size: Option<Size>,
    node: Vec<toml::Table>,
    draw: Option<toml::Table>,
}

/// Reads the text of a stack, which came from `file`.
///
/// # Errors
/// With the line and the key that are wrong.
pub(crate) fn read_stack(file: &str, text: &str) -> Result<StackConfig, ConfigError> {
    let read: StackText = from_toml(file, text)?;
    if let Some(draw) = &read.draw {
        let line = line_of_table(text, "draw");
        let keys = listed(draw.keys());
        let message = format!(
            "[draw] of {keys}: `imbrex crashtest` alone draws keys; accepted: no such table"
        );
        return Err(TomlError { file: file.to_owned(), line, message }.into());
    }
    read.config(file, text)
}

/// Reads the text of a stack, which came from `file`, and the table of what is drawn.
///
/// # Errors
/// With the line and the key that are wrong.
pub(crate) fn read_drawn(
    file: &str,
    text: &str,
) -> Result<(StackConfig, toml::Table), ConfigError> {
    let mut read: StackText = from_toml(file, text)?;
    let draw = read.draw.take().unwrap_or_default();
    Ok((read.config(file, text)?, draw))
}

impl StackText {
    /// The stack with its nodes.
    fn config(self, file: &str, text: &str) -> Result<StackConfig, ConfigError> {
        let StackText { name, description, size, node, .. } = self;
        let nodes = read_nodes(file, text, node)?;
        Ok(StackConfig { size, ..StackConfig::of_nodes(name, description, nodes) })
    }
}

/// The line on which a table of a text that is TOML begins, from 1.
fn line_of_table(text: &str, name: &str) -> usize {
    let tables = DeTable::parse(text).ok();
    let found = tables.as_ref().and_then(|tables| {
        let mut keys = tables.get_ref().keys();
        keys.find(|key| key.get_ref() == name).map(|key| key.span().start)
    });
    1 + found.map_or(0, |at| text[..at].matches('\n').count())
}

/// Reads the nodes of a text, which came from `file`: its tables `node`.
///
/// # Errors
/// With the line and the key that are wrong.
pub fn read_nodes(
    file: &str,
    text: &str,
    nodes: Vec<toml::Table>,
) -> Result<Vec<NodeConfig>, ConfigError> {
    let lines = lines_of_nodes(text);
    let nodes = repeated(nodes).map_err(|(at, error)| lines[at].error(file, None, error))?;
    let read = nodes.into_iter().map(|(at, keys)| {
        let name = keys.get(NAME).and_then(toml::Value::as_str).map(str::to_owned);
        let given = keys.clone();
        NodeConfig::read(keys).map_err(|error| {
            let node = name.as_deref().map(|name| (name, &given));
            ConfigError::from(lines[at].error(file, node, error))
        })
    });
    read.collect()
}

/// Where a node stands in a text.
struct NodeLines {
    /// The line on which it begins, from 1.
    first: usize,
    /// The lines of its keys.
    of_keys: BTreeMap<String, usize>,
}

impl NodeLines {
    /// An error about a node, of which the name and the keys are told where they are known.
    fn error(
        &self,
        file: &str,
        node: Option<(&str, &toml::Table)>,
        KeyError { key, message }: KeyError,
    ) -> TomlError {
        let line = key.as_ref().and_then(|key| self.of_keys.get(key)).unwrap_or(&self.first);
        let message = explain(&message);
        let message = match (node, &key) {
            (Some((node, _)), Some(key)) if message.starts_with(&format!("{key} = ")) => {
                format!("{node}.{message}")
            }
            (Some((node, keys)), Some(key)) if !message.contains(&format!("`{key}`")) => {
                match keys.get(key) {
                    Some(value) => format!("{node}.{key} = {value}: {message}"),
                    None => format!("{node}.{key}: {message}"),
                }
            }
            (Some((node, _)), _) => format!("{node}: {message}"),
            (None, _) => message,
        };
        TomlError { file: file.to_owned(), line: *line, message }
    }
}

/// The lines of the nodes of a text that is TOML.
fn lines_of_nodes(text: &str) -> Vec<NodeLines> {
    // Found once, because a text may have as many keys as lines.
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let line = |at: usize| 1 + ends.partition_point(|end| *end < at);
    let Ok(stack) = DeTable::parse(text) else {
        return vec![];
    };
    let nodes = stack.get_ref().get("node").and_then(|nodes| nodes.get_ref().as_array());
    let nodes = nodes.into_iter().flat_map(|nodes| nodes.iter());
    let lines = nodes.map(|node| NodeLines {
        first: line(node.span().start),
        of_keys: match node.get_ref() {
            DeValue::Table(keys) => {
                keys.keys().map(|key| (key.get_ref().to_string(), line(key.span().start))).collect()
            }
            _ => BTreeMap::new(),
        },
    });
    lines.collect()
}

/// The nodes with those that have `times` in the place of each: `{}` in its texts is the number, from 0.
/// In a list of another node a name with `{}` is all the names that it has become. With each node is its
/// place in the text.
fn repeated(nodes: Vec<toml::Table>) -> Result<Vec<(usize, toml::Table)>, (usize, KeyError)> {
    let mut all = Vec::new();
    let mut made: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (at, mut keys) in nodes.into_iter().enumerate() {
        let Some(times) = keys.remove(TIMES) else {
            let keys = with_names(keys, &made).map_err(|error| (at, error))?;
            all.push((at, keys));
            continue;
        };
        let accepted = 1..=NODES_MAX as i64;
        let Some(times) = times.as_integer().filter(|times| accepted.contains(times)) else {
            let words = format!("{TIMES} = {times}; accepted: 1 to {NODES_MAX}");
            return Err((at, KeyError::of(TIMES, words)));
        };
        for number in 0..times {
            let mut copy = keys.clone();
            copy.iter_mut().for_each(|(_, value)| put_number(value, number));
            let name = |keys: &toml::Table| Some(keys.get(NAME)?.as_str()?.to_owned());
            if let (Some(pattern), Some(name)) = (name(&keys), name(&copy)) {
                made.entry(pattern).or_default().push(name);
            }
            all.push((at, copy));
        }
    }
    Ok(all)
}

fn put_number(value: &mut toml::Value, number: i64) {
    match value {
        toml::Value::String(text) => *text = text.replace(NUMBER, &number.to_string()),
        toml::Value::Array(list) => list.iter_mut().for_each(|value| put_number(value, number)),
        toml::Value::Table(keys) => keys.iter_mut().for_each(|(_, it)| put_number(it, number)),
        _ => {}
    }
}

/// A node that is not repeated, with all names in its lists.
fn with_names(
    keys: toml::Table,
    made: &BTreeMap<String, Vec<String>>,
) -> Result<toml::Table, KeyError> {
    let named = keys.into_iter().map(|(key, value)| {
        let value = all_named(value, made).map_err(|text| {
            let words = format!(
                "\"{text}\" is no name of nodes that are repeated before it; accepted: `{NUMBER}` in a \
                 node with `{TIMES}`, and in lists of others the name of such a node"
            );
            KeyError::of(&key, words)
        })?;
        Ok((key, value))
    });
    named.collect()
}

fn all_named(
    value: toml::Value,
    made: &BTreeMap<String, Vec<String>>,
) -> Result<toml::Value, String> {
    Ok(match value {
        toml::Value::String(text) if text.contains(NUMBER) => return Err(text),
        toml::Value::Array(list) => {
            let mut all = Vec::new();
            for value in list {
                match value.as_str().and_then(|text| made.get(text)) {
                    Some(names) => all.extend(names.iter().cloned().map(toml::Value::String)),
                    None => all.push(all_named(value, made)?),
                }
            }
            toml::Value::Array(all)
        }
        toml::Value::Table(keys) => {
            let named = keys.into_iter().map(|(key, it)| Ok((key, all_named(it, made)?)));
            toml::Value::Table(named.collect::<Result<_, String>>()?)
        }
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use crate::StackConfig;

    const DISKS: &str = "name = 's'\n[[node]]\nname = 'disk-{}'\nkind = 'disk'\ntimes = 3\n\
                         drive = 'cmr-500gb-7200'\n";

    fn read(nodes: &str) -> Result<StackConfig, String> {
        let text = format!("{DISKS}{nodes}");
        StackConfig::from_text("s.toml", &text, &[]).map_err(|error| error.to_string())
    }

    fn names(config: &StackConfig) -> Vec<&str> {
        config.node.iter().map(|node| node.name()).collect()
    }

    #[test]
    fn a_node_is_repeated_and_a_list_names_all_of_it() {
        let config =
            read("[[node]]\nname = 'all'\nkind = 'stripe'\nbelow = ['disk-{}']\n").unwrap();
        assert_eq!(names(&config), ["disk-0", "disk-1", "disk-2", "all"]);
        assert_eq!(config.top().below(), ["disk-0", "disk-1", "disk-2"]);
        // Whoever reads the stack later knows the names alone.
        let text = toml::to_string(&config).unwrap();
        assert!(!text.contains("times") && !text.contains("{}"), "{text}");
        assert_eq!(names(&StackConfig::from_image(&text).unwrap()), names(&config));
    }

    #[test]
    fn repeated_nodes_stand_on_repeated_nodes_of_the_same_number() {
        let nodes = "[[node]]\nname = 'part-{}'\nkind = 'slice'\ntimes = 2\nbelow = 'disk-{}'\n\
                     offset = '0'\nsize = '1GiB'\n\
                     [[node]]\nname = 'all'\nkind = 'span'\nbelow = ['part-{}', 'disk-2']\n";
        let config = read(nodes).unwrap();
        assert_eq!(config.node("part-1").unwrap().below(), ["disk-1"]);
        assert_eq!(config.top().below(), ["part-0", "part-1", "disk-2"]);
    }

    #[test]
    fn what_cannot_be_repeated_is_an_error_with_its_line() {
        let all = "[[node]]\nname = 'all'\nkind = 'span'\nbelow = ['disk-{}']\n";
        for (nodes, expected) in [
            ("[[node]]\nname = 'x'\ntimes = 0\n", "s.toml:9: times = 0; accepted: 1 to 256"),
            (
                "[[node]]\nname = 'x'\ntimes = 'two'\n",
                "s.toml:9: times = \"two\"; accepted: 1 to 256",
            ),
            (
                "[[node]]\nname = 'x'\nkind = 'slice'\nbelow = 'disk-{}'\n",
                "s.toml:10: \"disk-{}\" is",
            ),
            (
                "[[node]]\nname = 'x'\nkind = 'span'\nbelow = ['disc-{}']\n",
                "\"disc-{}\" is no name",
            ),
            (
                "[[node]]\nname = 'x'\nkind = 'disk'\ntimes = 2\ndrive = 'nvram'\n",
                "two nodes are named `x`",
            ),
            (
                "[[node]]\nname = 'x'\nkind = 'slice'\nbelow = ['disk-0']\noffset = '0'\nsize = '1GiB'\n",
                "s.toml:10: x.below",
            ),
            (
                "[[node]]\nname = 'c'\nkind = 'write-back-cache'\npolicy = 'lru'\ncapacity = '1GiB'\n\
                 below = { flash = ['disk-{}'], backing = 'disk-0' }\n",
                "flash is a list; accepted: the name of one node",
            ),
        ] {
            let error = read(&format!("{nodes}{all}")).unwrap_err();
            assert!(error.contains(expected), "{nodes}: {error}");
        }
    }

    #[test]
    fn an_error_names_the_line_the_node_the_key_and_the_value() {
        let nodes = "[[node]]\nname = 't'\nkind = 'persistent-cache'\nbelow = 'disk-0'\n\
                     # Not this line.\nentries = 'many'\npersistent_cache = '1GiB'\n";
        let error = read(nodes).unwrap_err();
        assert!(error.starts_with("s.toml:12: t.entries = \"many\": "), "{error}");
        let error = read("[[node]]\nname = 't'\nkind = 'spam'\n").unwrap_err();
        assert!(
            error.starts_with("s.toml:9: t.kind = \"spam\"; did you mean \"span\"?"),
            "{error}"
        );
        let error = read("[[node]]\nname = 't'\nkind = 'span'\nbelo = []\n").unwrap_err();
        assert!(error.starts_with("s.toml:10: t: unknown field `belo`"), "{error}");
        assert!(error.ends_with("did you mean `below`?"), "{error}");
        let error = read("[[node]]\nname = 't'\nkind = 'span'\n").unwrap_err();
        assert!(error.starts_with("s.toml:7: t: missing field `below`"), "{error}");
    }

    #[test]
    fn ports_are_written_as_images_have_them() {
        for (name, expected) in [
            ("hwsr", "below = \"translation\"\ncopies = \"cache\"\nlog = \"log\"\n"),
            ("hwsr", "disk = \"disk\"\ncopies = \"cache\"\n"),
            ("pore", "flash = \"ssd\"\nbacking = \"translation\"\n"),
        ] {
            let text = toml::to_string(&StackConfig::load(name, &[]).unwrap()).unwrap();
            assert!(text.contains(expected), "{name}: {text}");
        }
    }
}
