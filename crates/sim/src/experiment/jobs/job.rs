//! A run of a sweep as a line of JSON that says all that it depends on.

use super::job_error::JobError;
use crate::experiment::combined::QUEUE_DEPTH;
use crate::experiment::experiment::Experiment;
use crate::experiment::finished::hex;
use imbrex_stack::ConfigError;
use imbrex_traces::synthetic::PATH_PREFIX;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::path::Path;

/// What a job calls its form.
pub const JOB_SCHEMA: &str = "imbrex.job/1";

/// One run of a sweep: an experiment of one workload and one stack, all of whose settings are worked out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// [`JOB_SCHEMA`].
    pub schema: String,
    /// The name of the job: SHA-256 of what it depends on, see [`id_of`](Self::id_of).
    pub id: String,
    /// The build that planned it. Only the same build makes it.
    pub program: String,
    /// The workload as reports name it.
    pub workload: String,
    /// Requests of the trace that it replays, every round counted.
    pub requests: u64,
    /// The files that it reads.
    pub inputs: Vec<Input>,
    /// The values of the swept keys, which name the run.
    pub parameters: BTreeMap<String, Value>,
    /// The experiment that makes the run.
    pub experiment: Map<String, Value>,
}

/// A file that a job reads: a trace, a recipe or a drive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Where it was when the job was planned.
    pub path: String,
    /// SHA-256 of the file as it is stored, in hexadecimal.
    pub sha256: String,
}

impl Job {
    /// The name that a job must have: SHA-256 of its canonical JSON without `id` and `workload`, in which each input is its
    /// SHA-256 alone, and stands for its path wherever the experiment names it. Canonical JSON has its keys in the order of
    /// their code points and no space between its parts.
    pub fn id_of(&self) -> String {
        let mut experiment = Value::Object(self.experiment.clone());
        for_each_text(&mut experiment, &mut |text| self.replace_path(text));
        let inputs: Vec<&str> = self.inputs.iter().map(|input| &*input.sha256).collect();
        let of = serde_json::json!({
            "schema": self.schema, "program": self.program, "requests": self.requests, "inputs": inputs,
            "parameters": self.parameters, "experiment": experiment,
        });
        let mut text = String::new();
        write_canonical(&of, &mut text);
        hex(Sha256::new_with_prefix(text))
    }

    /// The experiment that makes the run.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn experiment(&self) -> Result<Experiment, ConfigError> {
        let table = serde_json::from_value(Value::Object(self.experiment.clone()));
        let table: toml::Table = table.map_err(|error| self.wrong(error))?;
        let text = toml::to_string(&table).map_err(|error| self.wrong(error))?;
        Experiment::parse(&self.file(), &text, Path::new(""))
    }

    /// What errors name as the file of its experiment.
    fn file(&self) -> String {
        format!("job {}", self.id)
    }

    /// What is wrong with its experiment.
    pub(super) fn wrong(&self, words: impl Display) -> ConfigError {
        ConfigError::words(format!("{}: {words}", self.file()))
    }

    /// The name of the system.
    pub fn system(&self) -> &str {
        self.experiment.get("stack").and_then(Value::as_str).unwrap_or_default()
    }

    /// The workload with the way it is replayed, apart from what is swept: what runs have in common that stand on one page.
    pub(super) fn load(&self) -> String {
        let mut workload = self.experiment.get("workload").cloned().unwrap_or_default();
        if let (true, Value::Object(table)) =
            (self.parameters.contains_key(QUEUE_DEPTH), &mut workload)
        {
            table.remove("queue_depth");
        }
        workload.to_string()
    }

    /// The root seed.
    pub fn seed(&self) -> u64 {
        self.experiment.get("seed").and_then(Value::as_u64).unwrap_or_default()
    }

    /// The system with its swept settings, as reports name a run.
    pub fn label(&self) -> String {
        imbrex_report::label(self.system(), &self.parameters)
    }

    /// The workload, and the system with its swept settings.
    pub fn name(&self) -> String {
        format!("{}, {}", self.workload, self.label())
    }

    /// What a path is in the text of which the name is made: the SHA-256 of what is there.
    fn replace_path(&self, text: &mut String) {
        for input in &self.inputs {
            let (prefix, path) = match text.strip_prefix(PATH_PREFIX) {
                Some(path) => (PATH_PREFIX, path),
                None => ("", text.as_str()),
            };
            let Some(scale) = path.strip_prefix(input.path.as_str()) else {
                continue;
            };
            if scale.is_empty() || (!prefix.is_empty() && scale.starts_with('/')) {
                *text = format!("{prefix}sha256:{}{scale}", input.sha256);
                return;
            }
        }
    }
}

fn for_each_text(value: &mut Value, change: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(values) => values.iter_mut().for_each(|value| for_each_text(value, change)),
        Value::Object(values) => {
            values.values_mut().for_each(|value| for_each_text(value, change));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(values) => {
            let sorted: BTreeMap<&String, &Value> = values.iter().collect();
            text.push('{');
            for (at, (key, value)) in sorted.into_iter().enumerate() {
                text.push_str(if at > 0 { "," } else { "" });
                let _ = write!(text, "{}:", Value::String(key.clone()));
                write_canonical(value, text);
            }
            text.push('}');
        }
        Value::Array(values) => {
            text.push('[');
            for (at, value) in values.iter().enumerate() {
                text.push_str(if at > 0 { "," } else { "" });
                write_canonical(value, text);
            }
            text.push(']');
        }
        // Writing to a string cannot fail.
        plain => _ = write!(text, "{plain}"),
    }
}

/// The jobs of a text with a job in each line, which came from `path`; with `lines` only those of these numbers, from 0.
///
/// # Errors
/// A line that is none, that was changed since it was planned, or that another build than `program` has planned.
pub fn read_jobs(
    path: &str,
    text: &str,
    program: &str,
    mut wanted: impl FnMut(usize) -> bool,
) -> Result<Vec<Job>, JobError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let jobs = lines.enumerate().filter(|(number, _)| wanted(*number)).map(|(_, (at, line))| {
        let line_number = at + 1;
        let wrong =
            |reason: String| JobError::Line { path: path.to_string(), line: line_number, reason };
        let job: Job = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        if job.schema != JOB_SCHEMA {
            return Err(wrong(format!("schema `{}` is not {JOB_SCHEMA}", job.schema)));
        }
        if job.program != program {
            let (theirs, ours) = (job.program, program.to_string());
            return Err(JobError::OtherBuild {
                path: path.to_string(),
                line: line_number,
                theirs,
                ours,
            });
        }
        let id = job.id_of();
        match job.id == id {
            true => Ok(job),
            false => Err(wrong(format!(
                "the job is named {}, and what it says has the name {id}: it was changed",
                job.id
            ))),
        }
    });
    jobs.collect()
}

/// A job for tests.
#[cfg(test)]
pub(super) fn test_job() -> Job {
    let experiment = serde_json::json!({
        "seed": 1, "stack": "lru", "workload": {"path": "/a/x.csv"},
        "node": [{"name": "disk", "drive": "/a/d.toml"}, {"name": "x", "path": "/a/x.csv.more"}],
    });
    let Value::Object(experiment) = experiment else { unreachable!() };
    let input = |path: &str, sha256: &str| Input { path: path.into(), sha256: sha256.into() };
    Job {
        schema: JOB_SCHEMA.into(),
        id: String::new(),
        program: "0.1.0 abc".into(),
        workload: "/a/x.csv".into(),
        requests: 10,
        inputs: vec![input("/a/d.toml", "11"), input("/a/x.csv", "22")],
        parameters: BTreeMap::from([("cache.capacity".into(), "1%".into())]),
        experiment,
    }
}

#[cfg(test)]
mod tests {
    use super::test_job as job;
    use super::*;

    #[test]
    fn the_name_of_a_job_is_of_contents_and_not_of_places() {
        // SHA-256 of the text in which a person has worked the paths out by hand.
        let canonical = r#"{"experiment":{"node":[{"drive":"sha256:11","name":"disk"},{"name":"x","path":"/a/x.csv.more"}],"seed":1,"stack":"lru","workload":{"path":"sha256:22"}},"inputs":["11","22"],"parameters":{"cache.capacity":"1%"},"program":"0.1.0 abc","requests":10,"schema":"imbrex.job/1"}"#;
        let first = job();
        assert_eq!(first.id_of(), hex(Sha256::new_with_prefix(canonical)));
        let mut moved = job();
        moved.workload = "/b/x.csv".into();
        moved.inputs[1].path = "/b/x.csv".into();
        moved.experiment["workload"]["path"] = "/b/x.csv".into();
        assert_eq!(moved.id_of(), first.id_of());
        let mut changed = job();
        changed.inputs[1].sha256 = "23".into();
        assert_ne!(changed.id_of(), first.id_of());
        assert_eq!(first.name(), "/a/x.csv, lru capacity=1%");
    }

    #[test]
    fn a_recipe_in_a_file_is_its_content_too() {
        let mut of_recipe = job();
        of_recipe.inputs[1].path = "/a/r.toml".into();
        for (path, expected) in [
            ("synthetic:/a/r.toml", "synthetic:sha256:22"),
            ("synthetic:/a/r.toml/4", "synthetic:sha256:22/4"),
            ("synthetic:wdev-like/4", "synthetic:wdev-like/4"),
            ("/a/r.toml/4", "/a/r.toml/4"),
        ] {
            let mut text = path.to_string();
            of_recipe.replace_path(&mut text);
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn a_line_that_was_changed_is_refused() {
        let mut whole = job();
        whole.id = whole.id_of();
        let line = serde_json::to_string(&whole).unwrap();
        let read = |text: &str| read_jobs("jobs.jsonl", text, "0.1.0 abc", |_| true);
        assert_eq!(read(&format!("{line}\n\n{line}\n")).unwrap(), [whole.clone(), whole]);
        for (text, expected) in [
            (line.replace("\"1%\"", "\"2%\""), "line 1: the job is named "),
            (line.replace("job/1", "job/2"), "line 1: schema `imbrex.job/2` is not imbrex.job/1"),
            (line.replace("0.1.0 abc", "0.2.0 abc"), "line 1: the job is of imbrex 0.2.0 abc"),
            (format!("{line}\n{}", &line[..40]), "line 2: EOF while parsing"),
            (line.replace("\"requests\"", "\"asked\""), "line 1: unknown field `asked`"),
        ] {
            let error = read(&text).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("accepted: "), "{error}");
        }
    }
}
