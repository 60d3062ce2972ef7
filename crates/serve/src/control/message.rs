//! Requests and answers of a control socket as lines of JSON.

use super::rate;
use imbrex_core::command::{CommandKind, Fault, Rate};
use imbrex_core::extent::Extent;
use imbrex_core::units::Duration;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// The longest delay of `slow`: an hour.
const SLOW_MS_MAX: u64 = 3_600_000;
/// Keys that every request may have.
const COMMON_KEYS: [&str; 3] = ["id", "node", "command"];
/// The commands and the further keys that each may have.
pub(super) const COMMANDS: [(&str, &[&str]); 13] = [
    ("status", &[]),
    ("fail", &["force"]),
    ("replace", &["path"]),
    ("rebuild", &["rate"]),
    ("scrub", &["rate"]),
    ("off", &[]),
    ("on", &[]),
    ("fail-reads", &["blocks"]),
    ("fail-writes", &["blocks"]),
    ("slow", &["ms"]),
    ("hang", &[]),
    ("corrupt", &["blocks"]),
    ("heal", &[]),
];
/// Bytes of a wrong value that an error repeats.
const VALUE_BYTES_MAX: usize = 100;

/// What a client asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Request {
    /// Names the command among those under way.
    pub id: u64,
    /// The name of the node; `None` for the device, which has a status.
    pub node: Option<String>,
    pub asked: Asked,
}

/// What a node is asked to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    Kind(CommandKind),
    /// A new disk: at the path, or where the server keeps them.
    Replace(Option<PathBuf>),
}

impl Asked {
    /// The word of the command.
    pub fn name(&self) -> &'static str {
        match self {
            Asked::Replace(_) => "replace",
            Asked::Kind(kind) => match kind {
                CommandKind::Status => "status",
                CommandKind::TakeOut | CommandKind::Fail => "fail",
                CommandKind::Rebuild(_) => "rebuild",
                CommandKind::Scrub(_) => "scrub",
                CommandKind::Switch { is_on: false } => "off",
                CommandKind::Switch { is_on: true } => "on",
                CommandKind::Fault(fault) => match fault {
                    Fault::FailReads(_) => "fail-reads",
                    Fault::FailWrites(_) => "fail-writes",
                    Fault::Slow(_) => "slow",
                    Fault::Hang => "hang",
                    Fault::Corrupt(_) => "corrupt",
                    Fault::None => "heal",
                },
            },
        }
    }
}

impl Request {
    /// The command and whom it is for.
    pub fn words(&self) -> String {
        let command = self.asked.name();
        match &self.node {
            Some(node) => format!("`{command}` of node `{node}`"),
            None => format!("`{command}`"),
        }
    }
}

/// The request of a line. Commands that are `offered` are accepted.
///
/// # Errors
/// What is wrong with it and what is accepted, with the id if there is one.
pub(super) fn parse(line: &[u8], offered: &[&str]) -> Result<Request, (Option<u64>, String)> {
    let object = match serde_json::from_slice(line) {
        Ok(Value::Object(object)) => object,
        Ok(_) => {
            let words = "the request is no JSON object; accepted: one such as {\"id\": 1, \
                         \"node\": \"disk\", \"command\": \"status\"}";
            return Err((None, words.into()));
        }
        Err(error) => return Err((None, format!("the request is no JSON: {error}"))),
    };
    let Some(id) = object.get("id").and_then(Value::as_u64) else {
        return Err((None, wrong(&object, "id", "a whole number from 0")));
    };
    let request = fields(&object, offered).map(|(node, asked)| Request { id, node, asked });
    request.map_err(|words| (Some(id), words))
}

fn fields(
    object: &Map<String, Value>,
    offered: &[&str],
) -> Result<(Option<String>, Asked), String> {
    let word = object.get("command").and_then(Value::as_str);
    let known = COMMANDS.iter().find(|(name, _)| Some(*name) == word);
    // One that nobody takes here is refused with what is accepted, once it is known what is asked.
    let known = known.ok_or_else(|| wrong(object, "command", &offered.join(", ")));
    let node = given(object, "node").map(|node| node.as_str().map(str::to_owned));
    let node = match (node, &known) {
        (Some(Some(node)), _) => Some(node),
        (None, Ok(("status", _))) => None,
        _ => return Err(wrong(object, "node", "the name of a node, as text")),
    };
    let (word, keys) = known?;
    let accepted = || COMMON_KEYS.iter().chain(*keys);
    if let Some(key) = object.keys().find(|key| !accepted().any(|it| it == key)) {
        let accepted: Vec<&str> = accepted().copied().collect();
        return Err(format!(
            "`{word}` has no key {}; accepted: {}",
            cut(&format!("{key:?}")),
            accepted.join(", ")
        ));
    }
    let asked = match *word {
        "replace" => return Ok((node, Asked::Replace(path(object)?))),
        "status" => CommandKind::Status,
        "fail" if is_forced(object)? => CommandKind::Fail,
        "fail" => CommandKind::TakeOut,
        "rebuild" => CommandKind::Rebuild(rate(object)?),
        "scrub" => CommandKind::Scrub(rate(object)?),
        "off" => CommandKind::Switch { is_on: false },
        "on" => CommandKind::Switch { is_on: true },
        "fail-reads" => CommandKind::Fault(Fault::FailReads(blocks(object)?)),
        "fail-writes" => CommandKind::Fault(Fault::FailWrites(blocks(object)?)),
        "slow" => CommandKind::Fault(Fault::Slow(delay(object)?)),
        "hang" => CommandKind::Fault(Fault::Hang),
        "corrupt" => match blocks(object)? {
            Some(extent) => CommandKind::Fault(Fault::Corrupt(extent)),
            None => return Err(wrong(object, "blocks", BLOCKS)),
        },
        _ => CommandKind::Fault(Fault::None),
    };
    Ok((node, Asked::Kind(asked)))
}

const BLOCKS: &str = "[FROM, TO], blocks of the disk of 4096 bytes, TO not counted and above FROM";

/// The value of a key; absent is the same as null.
fn given<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    object.get(key).filter(|value| !value.is_null())
}

fn path(object: &Map<String, Value>) -> Result<Option<PathBuf>, String> {
    let Some(value) = given(object, "path") else {
        return Ok(None);
    };
    let path = value.as_str().filter(|path| !path.is_empty() && !path.contains('\0'));
    let path = path.ok_or_else(|| wrong(object, "path", "the path of a file, as text"))?;
    Ok(Some(path.into()))
}

fn is_forced(object: &Map<String, Value>) -> Result<bool, String> {
    let value = given(object, "force").map(|value| value.as_bool().ok_or(()));
    let value = value.transpose().map_err(|()| wrong(object, "force", "true, false"))?;
    Ok(value.unwrap_or(false))
}

fn rate(object: &Map<String, Value>) -> Result<Option<Rate>, String> {
    let accepted = "text such as \"50MiB/s\"";
    let text = given(object, "rate").map(|value| value.as_str().ok_or(()));
    let text = text.transpose();
    let text = text.map_err(|()| wrong(object, "rate", accepted))?;
    text.map(|text| rate::parse(cut(text))).transpose()
}

fn blocks(object: &Map<String, Value>) -> Result<Option<Extent>, String> {
    let Some(value) = given(object, "blocks") else {
        return Ok(None);
    };
    let pair = value.as_array().map(Vec::as_slice);
    let Some([from, to]) = pair else {
        return Err(wrong(object, "blocks", BLOCKS));
    };
    match (from.as_u64(), to.as_u64()) {
        (Some(from), Some(to)) if from < to => Ok(Some(Extent::new(from, to - from))),
        _ => Err(wrong(object, "blocks", BLOCKS)),
    }
}

fn delay(object: &Map<String, Value>) -> Result<Duration, String> {
    let ms = given(object, "ms").and_then(Value::as_u64);
    match ms {
        Some(ms) if ms <= SLOW_MS_MAX => Ok(Duration::from_ms(ms)),
        _ => {
            let accepted = format!("milliseconds, a whole number from 0 to {SLOW_MS_MAX}");
            Err(wrong(object, "ms", &accepted))
        }
    }
}

/// What is said of a key that is missing or has a value that is not accepted.
fn wrong(object: &Map<String, Value>, key: &str, accepted: &str) -> String {
    match object.get(key) {
        None => format!("`{key}` is missing; accepted: {accepted}"),
        Some(value) => format!("`{key}` is {}; accepted: {accepted}", cut(&value.to_string())),
    }
}

/// The beginning of a text that may be long.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(VALUE_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// How far a command has come, in blocks.
pub(super) fn progress(id: u64, done: u64, total: u64) -> String {
    json!({"id": id, "progress": {"done": done, "total": total}}).to_string()
}

/// A command has ended well.
pub(super) fn ok(id: u64, told: &Value) -> String {
    json!({"id": id, "ok": told}).to_string()
}

/// A command has come to nothing.
pub(super) fn error(id: Option<u64>, words: &str) -> String {
    json!({"id": id, "error": words}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Request, (Option<u64>, String)> {
        parse(line.as_bytes(), &COMMANDS.map(|(name, _)| name))
    }

    #[test]
    fn every_command_is_understood_by_the_name_it_has() {
        for (name, keys) in COMMANDS {
            let more = match keys {
                ["path"] => r#", "path": "/a/b""#,
                ["rate"] => r#", "rate": "2MiB/s""#,
                ["blocks"] => r#", "blocks": [3, 9]"#,
                ["ms"] => r#", "ms": 20"#,
                ["force"] => r#", "force": true"#,
                _ => "",
            };
            let line = format!(r#"{{"id": 7, "node": "d", "command": "{name}"{more}}}"#);
            let request = parsed(&line).expect(name);
            assert_eq!((request.id, request.node.as_deref()), (7, Some("d")));
            assert_eq!(request.asked.name(), name);
        }
        let line = r#"{"id": 0, "node": "d", "command": "corrupt", "blocks": [3, 9]}"#;
        let corrupt = CommandKind::Fault(Fault::Corrupt(Extent::new(3, 6)));
        assert_eq!(parsed(line).map(|it| it.asked), Ok(Asked::Kind(corrupt)));
        for line in
            [r#"{"id": 0, "command": "status"}"#, r#"{"id": 0, "node": null, "command": "status"}"#]
        {
            let device = parsed(line).map(|it| (it.node, it.asked));
            assert_eq!(device, Ok((None, Asked::Kind(CommandKind::Status))));
        }
        for (force, kind) in [
            ("", CommandKind::TakeOut),
            (r#", "force": null"#, CommandKind::TakeOut),
            (r#", "force": false"#, CommandKind::TakeOut),
            (r#", "force": true"#, CommandKind::Fail),
        ] {
            let line = format!(r#"{{"id": 0, "node": "d", "command": "fail"{force}}}"#);
            assert_eq!(parsed(&line).map(|it| it.asked), Ok(Asked::Kind(kind)), "{line}");
        }
        let line = r#"{"id": 0, "node": "a", "command": "scrub", "rate": null}"#;
        let scrub = Asked::Kind(CommandKind::Scrub(None));
        assert_eq!(parsed(line).map(|it| it.asked), Ok(scrub));
    }

    #[test]
    fn a_wrong_request_is_told_its_field_and_what_is_accepted() {
        for (line, id, words) in [
            ("", None, "no JSON"),
            ("[1]", None, "no JSON object"),
            ("{}", None, "`id` is missing"),
            (r#"{"id": -1}"#, None, "`id` is -1"),
            (r#"{"id": 1}"#, Some(1), "`node` is missing"),
            (r#"{"id": 1, "node": 2}"#, Some(1), "`node` is 2"),
            (r#"{"id": 1, "node": 2, "command": "status"}"#, Some(1), "`node` is 2"),
            (r#"{"id": 1, "command": "fail"}"#, Some(1), "`node` is missing"),
            (r#"{"id": 1, "node": "d"}"#, Some(1), "`command` is missing"),
            (r#"{"id": 1, "node": "d", "command": "stop"}"#, Some(1), "fail-reads"),
            (
                r#"{"id": 1, "node": "d", "command": "fail", "rate": "1B/s"}"#,
                Some(1),
                r#"`fail` has no key "rate"; accepted: id, node, command, force"#,
            ),
            (
                r#"{"id": 1, "node": "d", "command": "fail", "force": 1}"#,
                Some(1),
                "`force` is 1; accepted: true, false",
            ),
            (
                r#"{"id": 1, "node": "d", "command": "rebuild", "rate": "fast"}"#,
                Some(1),
                "\"50MiB/s\"",
            ),
            (r#"{"id": 1, "node": "d", "command": "rebuild", "rate": 3}"#, Some(1), "`rate` is 3"),
            (r#"{"id": 1, "node": "d", "command": "corrupt"}"#, Some(1), "missing"),
            (
                r#"{"id": 1, "node": "d", "command": "corrupt", "blocks": [4, 4]}"#,
                Some(1),
                "`blocks` is [4,4]",
            ),
            (
                r#"{"id": 1, "node": "d", "command": "slow", "ms": 3600001}"#,
                Some(1),
                "from 0 to 3600000",
            ),
            (r#"{"id": 1, "node": "d", "command": "replace", "path": ""}"#, Some(1), "`path` is"),
        ] {
            let (found, error) = parsed(line).expect_err(line);
            assert_eq!(found, id, "{line}");
            assert!(error.contains(words), "{line}: {error}");
        }
    }
}
