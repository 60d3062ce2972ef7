//! Job files: sections, lines and what is wrong with them.

use super::job::{Job, JobError};
use super::known_options::known_options;
use super::options::Draft;
use imbrex_drives::toml_error::nearest;

/// What is wrong with a job file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct JobFileError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The option, its value and what is accepted.
    pub what: String,
}

/// Which logs a job writes.
#[derive(Clone, PartialEq, Debug)]
pub struct LogSettings {
    /// Start of the names of latency logs.
    pub latency: Option<String>,
    /// Start of the names of bandwidth logs.
    pub bandwidth: Option<String>,
    /// Start of the names of logs of requests a second.
    pub requests: Option<String>,
    /// Span an entry is the mean of, ms; 0 for an entry for each request.
    pub average_ms: u64,
    /// The largest value of the span instead of the mean.
    pub largest: bool,
    /// With the offset of each request.
    pub offsets: bool,
    /// A file for each clone, instead of one for all.
    pub per_job: bool,
}

impl LogSettings {
    /// True when anything is logged.
    pub fn any(&self) -> bool {
        self.latency.is_some() || self.bandwidth.is_some() || self.requests.is_some()
    }
}

/// What fio's output says of a job beside what it did.
#[derive(Clone, PartialEq, Debug)]
pub struct JobReport {
    /// Options of its section that have a value, as they were given.
    pub options: Vec<(String, String)>,
    /// Printed with the results.
    pub description: Option<String>,
    /// The I/O engine a real fio would use.
    pub engine: String,
    /// `iodepth` as it was given, also where the engine makes one request at a time.
    pub iodepth: u32,
    /// Percentiles to report.
    pub percentiles: Vec<f64>,
    /// Logs.
    pub logs: LogSettings,
}

/// A job file.
#[derive(Clone, PartialEq, Debug)]
pub struct JobFile {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// One for each job.
    pub reports: Vec<JobReport>,
    /// Options of `[global]` that have a value, as they were given.
    pub global: Vec<(String, String)>,
    /// Where the run differs from a real one in a way that a reader should know.
    pub notes: Vec<String>,
}

/// One line of a section.
pub(super) struct Line<'a> {
    pub option: &'a str,
    /// `None` without `=`.
    pub value: Option<&'a str>,
}

impl JobFile {
    /// Reads a job file for a device of `device_bytes`. `file` is its name for errors.
    ///
    /// # Errors
    /// At the first line that has no meaning here.
    pub fn parse(file: &str, text: &str, device_bytes: u64) -> Result<JobFile, JobFileError> {
        let at = |line: usize, what: String| JobFileError {
            file: file.to_string(),
            line,
            what,
        };
        let mut parsed = JobFile {
            jobs: Vec::new(),
            reports: Vec::new(),
            global: Vec::new(),
            notes: Vec::new(),
        };
        let mut defaults = Draft::new(device_bytes);
        let mut section: Option<(usize, Draft)> = None;
        let mut in_global = false;
        let mut filename: Option<String> = None;
        let finish = |section: Option<(usize, Draft)>, parsed: &mut JobFile| match section {
            None => Ok(()),
            Some((line, draft)) => {
                let (job, report) = draft
                    .finish(&mut parsed.notes)
                    .map_err(|what| at(line, what))?;
                job.check(device_bytes).map_err(|error: JobError| {
                    let JobError {
                        option,
                        value,
                        accepted,
                        job,
                    } = error;
                    at(
                        line,
                        format!("job `{job}`: {option}={value}: accepted: {accepted}"),
                    )
                })?;
                parsed.jobs.push(job);
                parsed.reports.push(report);
                Ok(())
            }
        };
        for (index, whole) in text.lines().enumerate() {
            let number = index + 1;
            let line = whole
                .find([';', '#'])
                .map_or(whole, |at| &whole[..at])
                .trim();
            if line.is_empty() {
                continue;
            }
            if let Some(rest) = line.strip_prefix('[') {
                let name = rest.strip_suffix(']').filter(|name| !name.is_empty());
                let name = name.ok_or_else(|| {
                    at(
                        number,
                        format!("`{line}`: accepted: a section such as [job1]"),
                    )
                })?;
                finish(section.take(), &mut parsed)?;
                in_global = name == "global";
                if !in_global {
                    section = Some((number, defaults.job(name)));
                }
                continue;
            }
            let (option, value) = match line.split_once('=') {
                Some((option, value)) => (option.trim(), Some(value.trim())),
                None => (line, None),
            };
            let parsed_line = Line { option, value };
            let draft = match (in_global, &mut section) {
                (true, _) => &mut defaults,
                (false, Some((_, draft))) => draft,
                (false, None) => {
                    let what =
                        format!("`{line}` before the first section; accepted: [global] or [JOB]");
                    return Err(at(number, what));
                }
            };
            check_words(&parsed_line).map_err(|what| at(number, what))?;
            draft
                .apply(&parsed_line)
                .map_err(|problem| at(number, problem.words(&parsed_line)))?;
            if option == "filename"
                && let Some(value) = value
                && filename.get_or_insert_with(|| value.to_string()) != value
            {
                let first = filename.unwrap_or_default();
                let what = format!(
                    "filename={value}: accepted: one name for all jobs (`{first}` before), because one \
                     drive takes its place"
                );
                return Err(at(number, what));
            }
            if in_global && let Some(value) = value {
                parsed.global.push((option.to_string(), value.to_string()));
            }
        }
        finish(section.take(), &mut parsed)?;
        if parsed.jobs.is_empty() {
            return Err(at(
                text.lines().count().max(1),
                "no job; accepted: a section such as [job1] beside [global]".to_string(),
            ));
        }
        let threads: u32 = parsed.jobs.iter().map(|job| job.numjobs).sum();
        if filename.is_none() && threads > 1 {
            parsed.notes.push(
                "no `filename`: all jobs work on the one drive, as with `fio --filename=DEVICE`, not each \
                 on a file of its own"
                    .to_string(),
            );
        }
        Ok(parsed)
    }
}

/// What fio's files may say and this reader does not follow.
fn check_words(line: &Line<'_>) -> Result<(), String> {
    if line.option == "include" || line.option.starts_with("include ") {
        return Err(format!(
            "{}: refused: accepted: the included lines themselves",
            line.option
        ));
    }
    let has_variable = |text: &str| text.contains("${") || text.contains("$(");
    let keyword = ["$pagesize", "$mb_memory", "$ncpus", "$jobname", "$jobnum"];
    // The drive takes the place of a file whatever its name.
    let value = line
        .value
        .filter(|_| line.option != "filename")
        .unwrap_or_default();
    if has_variable(value) || keyword.iter().any(|word| value.contains(word)) {
        return Err(format!(
            "{}={value}: refused: accepted: a value without variables",
            line.option
        ));
    }
    Ok(())
}

/// Why a line has no meaning here.
pub(super) enum Problem {
    /// The value is not accepted; says what is.
    Value(String),
    /// fio knows the option, but it has no meaning here; says why.
    Refused(&'static str),
    /// Not known.
    Unknown,
}

impl From<String> for Problem {
    fn from(accepted: String) -> Problem {
        Problem::Value(accepted)
    }
}

impl Problem {
    fn words(self, line: &Line<'_>) -> String {
        let shown = match line.value {
            Some(value) => format!("{}={value}", line.option),
            None => line.option.to_string(),
        };
        match self {
            Problem::Value(accepted) => format!("{shown}: accepted: {accepted}"),
            Problem::Refused(why) => format!(
                "{shown}: refused: {why}; accepted: a job without `{}`",
                line.option
            ),
            Problem::Unknown => {
                let near = nearest(line.option, known_options());
                let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                format!(
                    "{shown}: not an option that is known here{hint} (accepted: those of docs/fio.md)"
                )
            }
        }
    }
}
