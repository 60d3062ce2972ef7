//! The folder that all who make the jobs of a sweep share.

use super::claims::{Owner, Taken, own_file};
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

/// Why a run is no result.
const NO_NUMBER: &str = "a defect of imbrex: its report has a number that is none";

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

    /// Writes what came of a job, whole or not at all. Gives what was written: a run with a number that is none would not
    /// come back, and has failed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn keep(&self, job: &Job, outcome: JobOutcome) -> Result<JobOutcome, JobError> {
        for outcome in [outcome, JobOutcome::Failed(NO_NUMBER.to_string())] {
            self.runs.write(&job.id, &job.name(), &outcome);
            if let Some(words) = self.runs.refused() {
                return Err(JobError::Write { words });
            }
            if self.runs.has(&job.id) {
                return Ok(outcome);
            }
        }
        unreachable!("words come back as they are")
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
    let (partial, mut file) = own_file(path.parent().unwrap_or(Path::new("")), "partial")?;
    writeln!(file, "{text}")?;
    let linked = fs::hard_link(&partial, path);
    fs::remove_file(&partial)?;
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::jobs::job::test_job;
    use imbrex_report::{ReplayMode, WorkloadKind};

    fn made(io_time_s: f64) -> JobOutcome {
        let mut run = Run::new("lru", ReplayMode::Untimed);
        run.costs.io_time_s.total = io_time_s;
        let text = r#"{"path":"t","kind":"captured","requests":1,"sha256":null,"format":null,"skipped_lines":{}}"#;
        let workload: Workload = serde_json::from_str(text).unwrap();
        assert_eq!(workload.kind, WorkloadKind::Captured);
        JobOutcome::Made(Box::new((run, workload)))
    }

    #[test]
    fn a_run_that_would_not_come_back_has_failed_and_is_no_job_to_be_made_for_ever() {
        let at = tempfile::tempdir().unwrap();
        let folder = JobFolder::open(at.path(), "test").unwrap();
        let job = test_job();
        assert!(folder.outcome(&job).is_none());
        let kept = folder.keep(&job, made(f64::NAN)).unwrap();
        assert!(matches!(kept, JobOutcome::Failed(_)));
        assert!(
            matches!(folder.outcome(&job), Some(JobOutcome::Failed(words)) if words == NO_NUMBER)
        );
        folder.forget(&job);
        assert!(folder.outcome(&job).is_none());
        let kept = folder.keep(&job, made(1.5)).unwrap();
        assert!(matches!(kept, JobOutcome::Made(_)));
        assert!(matches!(folder.outcome(&job), Some(JobOutcome::Made(_))));
    }

    #[test]
    fn a_folder_of_another_build_is_refused_and_stays() {
        let at = tempfile::tempdir().unwrap();
        drop(JobFolder::open(at.path(), "first").unwrap());
        let words = JobFolder::open(at.path(), "second").unwrap_err().to_string();
        assert!(words.contains("of imbrex first, and this is second"), "{words}");
        assert_eq!(fs::read_dir(at.path()).unwrap().count(), 1, "the mark alone");
        drop(JobFolder::open(at.path(), "first").unwrap());
    }
}
