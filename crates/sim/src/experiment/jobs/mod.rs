//! Sweeps as jobs: each run is a line of JSON that any process on any machine can make, and a folder that they share is
//! all that they need to work together.

mod claims;
mod collected;
mod crew;
mod folder;
mod job;
mod job_error;
mod plan;

pub use collected::{Collected, collect};
pub use crew::{Crew, CrewTally};
pub use folder::JobFolder;
pub use job::{Input, JOB_SCHEMA, Job, read_jobs};
pub use job_error::{JOBS_MAX, JobError};
