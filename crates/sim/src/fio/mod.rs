//! Jobs of fio in virtual time.
//!
//! A [`Job`] is a job of fio as plain data, a [`Session`] a stack on which jobs run one after
//! another, an [`Outcome`] what they did, in fio's measures. A [`JobFile`] is what a user writes;
//! [`document`], [`summary`] and [`log_files`] print what fio would.

mod closed_loop;
mod engine;
mod job;
mod job_check;
mod json;
mod known_options;
mod logs;
mod offsets;
mod options;
mod outcome;
mod parse;
mod queue;
mod session;
mod spread;
mod text;
mod units;
mod values;
mod zoned;

pub use job::{
    Access, BlockSizes, Direction, Distribution, IN_FLIGHT_MAX, Job, JobError, Mix, RateLimit,
    Sequencer, Stride, Think, ZonedAccess,
};
pub use json::{Json, Setting, document};
pub use known_options::{
    ASYNCHRONOUS, OPTIONS, REFUSED, SYNCHRONOUS, WITH_ONE_VALUE, WITHOUT_EFFECT, ZBD_OPTIONS,
    ZONE_OPTIONS,
};
pub use logs::{files as log_files, names as log_names};
pub use outcome::{DirectionOutcome, JobOutcome, Outcome, Sample};
pub use parse::{JobFile, JobFileError, JobReport, LogSettings};
pub use session::{Session, SessionError};
pub use spread::{Latencies, PERCENTILES, Spread};
pub use text::summary;
