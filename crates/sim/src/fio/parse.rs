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
        let mut reader = Reader::new(file, device_bytes);
        for (index, line) in text.lines().enumerate() {
            reader.line(index + 1, line)?;
        }
        reader.finish(text.lines().count())
    }
}

/// A job file while its lines are read.
struct Reader<'a> {
    file: &'a str,
    device_bytes: u64,
    parsed: JobFile,
    /// What `[global]` said so far, from which each job starts.
    defaults: Draft,
    /// The job whose section is read, and the line that opened it.
    section: Option<(usize, Draft)>,
    /// The section that is read is `[global]`.
    in_global: bool,
    /// The one name that all jobs may state.
    filename: Option<String>,
}

impl Reader<'_> {
    fn new(file: &str, device_bytes: u64) -> Reader<'_> {
        Reader {
            file,
            device_bytes,
            parsed: JobFile {
                jobs: Vec::new(),
                reports: Vec::new(),
                global: Vec::new(),
                notes: Vec::new(),
            },
            defaults: Draft::new(device_bytes),
            section: None,
            in_global: false,
            filename: None,
        }
    }

    fn error(&self, line: usize, what: String) -> JobFileError {
        JobFileError { file: self.file.to_string(), line, what }
    }

    /// Reads a line, which may be a comment, the start of a section or an option.
    fn line(&mut self, number: usize, whole: &str) -> Result<(), JobFileError> {
        let line = whole.find([';', '#']).map_or(whole, |at| &whole[..at]).trim();
        if line.is_empty() {
            return Ok(());
        }
        match line.strip_prefix('[') {
            Some(rest) => self.begin_section(number, line, rest),
            None => self.option(number, line),
        }
    }

    /// Ends the section before and begins the one of `line`, of which `rest` is behind the bracket.
    fn begin_section(&mut self, number: usize, line: &str, rest: &str) -> Result<(), JobFileError> {
        let Some(name) = rest.strip_suffix(']').filter(|name| !name.is_empty()) else {
            let what = format!("`{line}`: accepted: a section such as [job1]");
            return Err(self.error(number, what));
        };
        self.finish_section()?;
        self.in_global = name == "global";
        if !self.in_global {
            self.section = Some((number, self.defaults.job(name)));
        }
        Ok(())
    }

    /// Adds the job whose section was read, if it was one, to those of the file.
    fn finish_section(&mut self) -> Result<(), JobFileError> {
        let Some((line, draft)) = self.section.take() else {
            return Ok(());
        };
        let (job, report) =
            draft.finish(&mut self.parsed.notes).map_err(|what| self.error(line, what))?;
        job.check(self.device_bytes)
            .map_err(|error: JobError| self.error(line, error.to_string()))?;
        self.parsed.jobs.push(job);
        self.parsed.reports.push(report);
        Ok(())
    }

    /// Applies an option to the section that is read.
    fn option(&mut self, number: usize, text: &str) -> Result<(), JobFileError> {
        let (option, value) = match text.split_once('=') {
            Some((option, value)) => (option.trim(), Some(value.trim())),
            None => (text, None),
        };
        let line = Line { option, value };
        self.apply(text, &line).map_err(|what| self.error(number, what))?;
        if let Some(value) = value {
            if option == "filename" {
                self.check_filename(value).map_err(|what| self.error(number, what))?;
            }
            if self.in_global {
                let entry = (option.to_string(), value.to_string());
                self.parsed.global.push(entry);
            }
        }
        Ok(())
    }

    fn apply(&mut self, text: &str, line: &Line<'_>) -> Result<(), String> {
        let draft = match (self.in_global, &mut self.section) {
            (true, _) => &mut self.defaults,
            (false, Some((_, draft))) => draft,
            (false, None) => {
                return Err(format!(
                    "`{text}` before the first section; accepted: [global] or [JOB]"
                ));
            }
        };
        check_words(line)?;
        draft.apply(line).map_err(|problem| problem.words(line))
    }

    /// Holds all jobs to the first name.
    fn check_filename(&mut self, value: &str) -> Result<(), String> {
        let first = self.filename.get_or_insert_with(|| value.to_string());
        if first == value {
            return Ok(());
        }
        Err(format!(
            "filename={value}: accepted: one name for all jobs (`{first}` before), because one \
             drive takes its place"
        ))
    }

    /// The file, when all its `lines` are read.
    fn finish(mut self, lines: usize) -> Result<JobFile, JobFileError> {
        self.finish_section()?;
        if self.parsed.jobs.is_empty() {
            let what = "no job; accepted: a section such as [job1] beside [global]".to_string();
            return Err(self.error(lines.max(1), what));
        }
        let threads: u32 = self.parsed.jobs.iter().map(|job| job.numjobs).sum();
        if self.filename.is_none() && threads > 1 {
            self.parsed.notes.push(
                "no `filename`: all jobs work on the one drive, as with `fio --filename=DEVICE`, not each \
                 on a file of its own"
                    .to_string(),
            );
        }
        Ok(self.parsed)
    }
}

/// What fio's files may say and this reader does not follow.
fn check_words(line: &Line<'_>) -> Result<(), String> {
    if line.option == "include" || line.option.starts_with("include ") {
        return Err(format!("{}: refused: accepted: the included lines themselves", line.option));
    }
    let has_variable = |text: &str| text.contains("${") || text.contains("$(");
    let keyword = ["$pagesize", "$mb_memory", "$ncpus", "$jobname", "$jobnum"];
    // The drive takes the place of a file whatever its name.
    let value = line.value.filter(|_| line.option != "filename").unwrap_or_default();
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
            Problem::Refused(why) => {
                format!("{shown}: refused: {why}; accepted: a job without `{}`", line.option)
            }
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
