//! Why a command failed.

use imbrex_core::error::BroughtFailure;
use imbrex_sim::experiment::RunError;
use imbrex_traces::TraceError;
use std::error::Error;
use std::fmt;

/// Why a command failed, in words for the user.
pub type Failure = Box<dyn Error>;

/// The command was called wrongly: an option, or several together, cannot be. The parser of the command line finds
/// most of that; what it cannot know of is found later, and ends with the same status.
#[derive(Debug)]
struct Usage(String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Usage {}

/// A failure of whoever called the command: words that name the option and what is accepted.
pub fn usage(words: impl fmt::Display) -> Failure {
    Box::new(Usage(words.to_string()))
}

/// A failure of a part that is told by which option it was asked, and names that first in what it says of it.
pub fn usage_if_option(error: impl Into<Failure>) -> Failure {
    let error = error.into();
    match error.to_string() {
        words if words.starts_with("--") => usage(words),
        _ => error,
    }
}

/// What is wrong with a trace, where a command failed because of one.
pub fn trace_error(failure: &Failure) -> Option<&TraceError> {
    match failure.downcast_ref() {
        Some(RunError::Trace(error)) => Some(error),
        _ => failure.downcast_ref(),
    }
}

/// Why code of a program has failed that it brought with it, where a command failed because of that.
pub fn brought_failure(failure: &Failure) -> Option<&BroughtFailure> {
    match failure.downcast_ref() {
        Some(RunError::Brought { failure, .. }) => Some(failure),
        _ => None,
    }
}

/// Whether a command failed because somebody stopped it before anything was finished.
pub fn is_stopped(failure: &Failure) -> bool {
    matches!(failure.downcast_ref(), Some(RunError::Stopped { .. }))
        || matches!(trace_error(failure), Some(TraceError::Stopped { .. }))
}

/// Whether a failure is that of whoever called the command.
pub fn is_usage(failure: &Failure) -> bool {
    failure.is::<Usage>() || matches!(trace_error(failure), Some(TraceError::Option { .. }))
}
