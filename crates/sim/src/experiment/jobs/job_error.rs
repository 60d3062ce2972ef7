//! What can be wrong with the jobs of a sweep.

/// Jobs of a sweep at most: more are days of runs even on many machines, and too many files for a folder.
pub const JOBS_MAX: usize = 100_000;

/// What is wrong with a job.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The file of the jobs cannot be read.
    #[error("{path}: {error}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// A line is no job.
    #[error("{path}: line {line}: {reason}; accepted: a line that `imbrex sweep plan` has written")]
    Line {
        /// The file.
        path: String,
        /// From 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// Another build planned it.
    #[error(
        "{path}: line {line}: the job is of imbrex {theirs}, and this is {ours}; accepted: that build, or a plan \
         of this one"
    )]
    OtherBuild {
        /// The file.
        path: String,
        /// From 1.
        line: usize,
        /// The build that planned it.
        theirs: String,
        /// This build.
        ours: String,
    },
    /// The folder is that of another build.
    #[error(
        "{folder}: the folder is of imbrex {theirs}, and this is {ours}; accepted: that build, or another folder"
    )]
    OtherFolder {
        /// The folder.
        folder: String,
        /// The build whose jobs are in it.
        theirs: String,
        /// This build.
        ours: String,
    },
    /// A file is another one than that of the plan.
    #[error(
        "{path}: the file has changed since the sweep was planned: its SHA-256 is {found}, and was {planned}; \
         accepted: the file as it was, or a new plan"
    )]
    Changed {
        /// The file.
        path: String,
        /// Its SHA-256 in the plan.
        planned: String,
        /// Its SHA-256 now.
        found: String,
    },
    /// A result cannot be written.
    #[error("{words}")]
    Write {
        /// The file, and what the system said.
        words: String,
    },
    /// A sweep has too many jobs.
    #[error("{file}: the sweep has {jobs} jobs; accepted: at most {JOBS_MAX}")]
    TooMany {
        /// The experiment.
        file: String,
        /// How many.
        jobs: usize,
    },
    /// An experiment runs no stack.
    #[error(
        "{file}: the experiment runs no stack, so there is nothing to plan; accepted: one with systems, which \
         `imbrex run` makes in one go otherwise"
    )]
    NoRuns {
        /// The experiment.
        file: String,
    },
    /// A trace that is read once cannot be sent to others.
    #[error("{file}: workload `-`: standard input can be read once; accepted: a trace in a file")]
    Stream {
        /// The experiment.
        file: String,
    },
}
