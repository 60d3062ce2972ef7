//! Jobs of fio in virtual time.
//!
//! A [`Job`] is a job of fio as plain data, a [`Session`] a stack on which jobs run one after
//! another, an [`Outcome`] what they did, in fio's measures.

mod engine;
mod job;
mod offsets;
mod outcome;
mod session;
mod spread;

pub use job::{
    Access, BlockSizes, Direction, Distribution, IN_FLIGHT_MAX, Job, JobError, Mix, RateLimit,
    Sequencer, Stride, Think,
};
pub use outcome::{DirectionOutcome, JobOutcome, Outcome, Sample};
pub use session::{Session, SessionError};
pub use spread::{Latencies, PERCENTILES, Spread};
