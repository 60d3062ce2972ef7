//! The folder that all who make the jobs of a sweep share.

use super::claims::{Owner, Taken};
use super::job::Job;
use super::job_error::JobError;
use crate::experiment::finished::FinishedRuns;
use imbrex_report::{Run, Workload};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// What the folder calls its form.
const FOLDER_SCHEMA: &str = "imbrex.sweep/1";
/// The file that says of which build the folder is.
const MARK_FILE: &str = "sweep.json";
/// Results, one file each.
const RUNS: &str = "runs";
/// Who is making what.
const CLAIMS: &str = "claims";

/// What came of a job.
#[derive(Serialize, Deserialize)]
pub(super) enum JobOutcome {
    /// The run, without what its figures are drawn from, and what is told of its workload.
    Made(Box<(Run, Workload)>),
    /// Why it failed.
    Failed(String),
}

#[derive(Serialize, Deserialize)]
struct Mark {
    schema: String,
    program: String,
}

/// A folder with the results of jobs. It may be on a file system that several machines share.
#[derive(Debug)]
pub struct JobFolder {
    folder: PathBuf,
    runs: FinishedRuns,
}

impl JobFolder {
    /// Opens a folder for the jobs of the build `program`; it is made if it is not there.
    ///
    /// # Errors
    /// When it cannot be made, or is that of another build.
    pub fn open(folder: &Path, program: &str) -> Result<JobFolder, JobError> {
        let read = |path: &Path, error| JobError::Read { path: path.display().to_string(), error };
        fs::create_dir_all(folder).map_err(|error| read(folder, error))?;
        let mark = folder.join(MARK_FILE);
        make_mark(&mark, program).map_err(|error| read(&mark, error))?;
        let text = fs::read_to_string(&mark).map_err(|error| read(&mark, error))?;
        let found: Option<Mark> = serde_json::from_str(&text).ok();
        let theirs = match found {
            Some(found) if found.schema == FOLDER_SCHEMA && found.program == program => {
                let runs = FinishedRuns::new(&folder.join(RUNS), program, true);
                return Ok(JobFolder { folder: folder.to_path_buf(), runs });
            }
            Some(found) if found.schema == FOLDER_SCHEMA => found.program,
            _ => format!("(unknown: {MARK_FILE} is not in order)"),
        };
        let (folder, ours) = (folder.display().to_string(), program.to_string());
        Err(JobError::OtherFolder { folder, theirs, ours })
    }

    /// What came of a job; none of one that is not made, or whose file is not in order.
    pub(super) fn outcome(&self, job: &Job) -> Option<JobOutcome> {
        self.runs.read(&job.id)
    }

    /// Writes what came of a job, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn keep(&self, job: &Job, outcome: &JobOutcome) -> Result<(), JobError> {
        self.runs.write(&job.id, &job.name(), outcome);
        match self.runs.refused() {
            None => Ok(()),
            Some(words) => Err(JobError::Write { words }),
        }
    }

    /// Forgets what came of a job.
    pub(super) fn forget(&self, job: &Job) {
        self.runs.forget(&job.id);
    }

    /// Files of results that are not in order, each with what is wrong.
    pub(super) fn damaged(&self) -> Vec<String> {
        self.runs.aside().damaged
    }

    /// The part of this process among those who make the jobs.
    pub(super) fn owner(&self) -> Result<Owner, JobError> {
        let claims = self.folder.join(CLAIMS);
        let path = claims.display().to_string();
        Owner::new(&claims).map_err(|error| JobError::Read { path, error })
    }

    /// Takes a job for a process.
    pub(super) fn take(&self, owner: &Owner, job: &Job) -> Result<Taken, JobError> {
        let path = || self.folder.join(CLAIMS).display().to_string();
        owner.take(&job.id).map_err(|error| JobError::Read { path: path(), error })
    }
}

/// Makes the mark of a folder where there is none. Of several who do so at once one makes it.
fn make_mark(path: &Path, program: &str) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let mark = Mark { schema: FOLDER_SCHEMA.to_string(), program: program.to_string() };
    let text = serde_json::to_string(&mark).expect("keys are texts");
    let mut partial = tempfile_beside(path)?;
    writeln!(partial.1, "{text}")?;
    let linked = fs::hard_link(&partial.0, path);
    fs::remove_file(&partial.0)?;
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}

/// A file beside another one that nobody else writes.
fn tempfile_beside(path: &Path) -> io::Result<(PathBuf, fs::File)> {
    for number in 0..1000 {
        let name = format!(".{}-{number}.partial", std::process::id());
        let path = path.with_file_name(name);
        match fs::File::options().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (path, file)),
        }
    }
    Err(io::Error::other("a thousand files of this process are there already"))
}
