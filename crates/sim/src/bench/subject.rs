//! The drive that is measured.

use crate::fio::{Job, JobError, JobOutcome, Outcome, Session, SessionError};
use imbrex_drives::DriveError;
use imbrex_stack::{BuildOptions, ConfigError, Setting, StackConfig};
use std::path::PathBuf;

/// Why a measurement could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// There is no such drive, or its file is not in order.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// The drive cannot be built so.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A job does not fit it.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A job does not fit it.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The model failed a request.
    #[error("job `{job}` on drive `{drive}`: {error}")]
    Io {
        /// The drive.
        drive: String,
        /// The job.
        job: String,
        /// What the drive said.
        error: imbrex_core::error::IoError,
    },
    /// Something that a measurement reads is not in order.
    #[error("{0}")]
    Words(String),
}

/// A drive under measurement.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Name in the library, or path of its file.
    pub drive: String,
    /// Settings over those of the file: an ablation.
    pub settings: Vec<Setting>,
    /// Of every random choice.
    pub seed: u64,
    /// Measure less, on a smaller drive where that leaves the figure as it is.
    pub quick: bool,
    /// Folder with recorded traces that some measurements replay.
    pub traces: Option<PathBuf>,
}

impl Subject {
    /// A drive of the library with other settings, measured quickly.
    #[cfg(test)]
    pub(super) fn quick(drive: &str, settings: &[&str]) -> Subject {
        let settings = settings.iter().map(|text| Setting::parse(text).unwrap());
        Subject {
            drive: drive.to_string(),
            settings: settings.collect(),
            seed: 1,
            quick: true,
            traces: None,
        }
    }

    /// The drive, full size, as it left the factory.
    ///
    /// # Errors
    /// When there is no such drive.
    pub fn session(&self) -> Result<Session, BenchError> {
        self.scaled_session(1)
    }

    /// The drive with capacity, persistent cache and entries divided by `scale`; bands and mechanics
    /// stay.
    ///
    /// # Errors
    /// When there is no such drive, or nothing is left of it.
    pub fn scaled_session(&self, scale: u64) -> Result<Session, BenchError> {
        let config = StackConfig::of_drive(&self.drive, &self.settings)?;
        let options = BuildOptions { scale, ..BuildOptions::simulate(self.seed) };
        Ok(Session::open(&config, &options, &[])?)
    }

    /// Runs jobs that must not fail.
    ///
    /// # Errors
    /// When a job does not fit the drive, or the drive fails one of its requests.
    pub fn run(&self, session: &mut Session, jobs: &[Job]) -> Result<Outcome, BenchError> {
        let outcome = session.run(jobs)?;
        match outcome.error() {
            None => Ok(outcome),
            Some((job, error)) => {
                Err(BenchError::Io { drive: self.drive.clone(), job: job.name.clone(), error })
            }
        }
    }

    /// Runs one job that must not fail.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_one(&self, session: &mut Session, job: &Job) -> Result<JobOutcome, BenchError> {
        let mut outcome = self.run(session, std::slice::from_ref(job))?;
        Ok(outcome.jobs.swap_remove(0))
    }
}
