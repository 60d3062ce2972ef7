//! Commands that Python calls.

use crate::policy::{self, PolicyFailure};
use crate::table::Table;
use imbrex_cli::{Brought, Caller, Failure, Told};
use imbrex_report::MemoryUser;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How soon Ctrl-C is noticed.
const NOTICED_WITHIN: Duration = Duration::from_millis(50);

/// How long policies in Python may take to end when they are interrupted.
const POLICIES_END_WITHIN: Duration = Duration::from_secs(2);

/// What came of a command.
#[pyclass(frozen, get_all, module = "imbrex._imbrex")]
pub struct Answer {
    /// What a shell would find on standard output.
    text: String,
    /// What it would find on standard error, a remark an entry.
    remarks: Vec<String>,
    /// Whether Ctrl-C ended the command before its time.
    is_stopped: bool,
    /// Why it failed; none if it did not.
    failure: Option<Py<Failed>>,
    /// A row for each request of a comparison, where they were wanted and all runs have ended.
    requests: Option<Py<Table>>,
}

/// Why a command failed.
#[pyclass(frozen, get_all, module = "imbrex._imbrex")]
pub struct Failed {
    /// `usage`, `trace` or `other`.
    kind: &'static str,
    /// In words, with what would be accepted.
    message: String,
    /// The file, where it is about one.
    file: Option<String>,
    /// The line of the file, from 1.
    line: Option<u64>,
    /// What was found there.
    value: Option<String>,
    /// The exception that a policy in Python has raised, where that is why.
    cause: Option<Py<PyAny>>,
}

impl Failed {
    /// Of what a command says, and a policy in Python beside it.
    fn of_command(failure: &Failure) -> Failed {
        let policy = imbrex_cli::brought_failure(failure);
        let policy = policy.and_then(|failure| failure.downcast_ref::<PolicyFailure>());
        let cause = policy.and_then(|policy| Python::try_attach(|py| policy.cause(py)).flatten());
        Failed { cause, ..Failed::of(failure) }
    }

    /// Of what a command says.
    pub fn of(failure: &Failure) -> Failed {
        let trace = imbrex_cli::trace_error(failure);
        Failed {
            kind: match (imbrex_cli::is_usage(failure), trace) {
                (true, _) => "usage",
                (_, Some(_)) => "trace",
                _ => "other",
            },
            message: failure.to_string(),
            file: trace.and_then(|error| error.path()).map(str::to_string),
            line: trace.and_then(|error| error.line()),
            value: trace.and_then(|error| error.value()).map(str::to_string),
            cause: None,
        }
    }
}

/// Has a command answer. `words` are those of a command line behind the name of the program. Other threads of Python go
/// on meanwhile, and Ctrl-C ends the command, which answers what is finished; a second one does not wait for that. Caches
/// of simulations may have the `policies` by their names.
#[pyfunction]
#[pyo3(signature = (words, policies = vec![], wants_requests = false))]
pub fn answer(
    py: Python<'_>,
    words: Vec<String>,
    policies: Vec<(String, Py<PyAny>)>,
    wants_requests: bool,
) -> PyResult<Answer> {
    // The program that calls has memory of its own in this process.
    MemoryUser::enter();
    let (policies, policy_threads) = policy::brought(policies);
    let brought = Brought { policies, wants_requests };
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, mut ended) = channel();
    let caller_stop = Arc::clone(&stop);
    let command = std::thread::Builder::new().name("imbrex command".into()).spawn(move || {
        let caller = Caller::program(caller_stop, brought);
        let result = imbrex_cli::answer(&words, &caller)
            .map_err(|failure| (Failed::of_command(&failure), imbrex_cli::is_stopped(&failure)));
        let mut told = caller.told();
        let requests = told.requests.take().map(|table| Table::new(table.into_columns()));
        let answer: (Told, _, _) = (told, requests, result);
        // Nobody waits for it behind a second Ctrl-C.
        let _ = sender.send(answer);
    })?;
    loop {
        // Nobody else has it, which only this says to the compiler.
        let answered = &mut ended;
        match py.detach(move || answered.recv_timeout(NOTICED_WITHIN)) {
            Ok((told, requests, result)) => {
                let was_stopped = stop.load(Ordering::Relaxed);
                let failure = match result {
                    // Somebody wanted that.
                    Ok(_) | Err((_, true)) => None,
                    Err((failed, false)) => Some(Py::new(py, failed)?),
                };
                return Ok(Answer {
                    text: told.answer,
                    remarks: told.remarks,
                    is_stopped: was_stopped,
                    failure,
                    requests: requests.transpose()?.map(|table| Py::new(py, table)).transpose()?,
                });
            }
            Err(RecvTimeoutError::Timeout) => match py.check_signals() {
                Err(error)
                    if error.is_instance_of::<PyKeyboardInterrupt>(py)
                        && !stop.swap(true, Ordering::Relaxed) => {}
                Err(error) if !policy_threads.is_empty() => {
                    stop.store(true, Ordering::Relaxed);
                    policy_threads.interrupt(py)?;
                    // The policies are over soon, and what comes of the command nobody wants.
                    let answered = &mut ended;
                    let _ = py.detach(move || answered.recv_timeout(POLICIES_END_WITHIN));
                    return Err(error);
                }
                other => other?,
            },
            Err(RecvTimeoutError::Disconnected) => {
                let panic = command.join().expect_err("it ended without an answer");
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// The options of a command with what each takes: `flag`, `value` or `values`. None of what is no command.
#[pyfunction]
pub fn options(command: Vec<String>) -> Option<Vec<(String, &'static str)>> {
    imbrex_cli::options(&command)
}

/// The whole command line, as the program `imbrex` has it; gives the exit status.
#[pyfunction]
pub fn main(py: Python<'_>, words: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| imbrex_cli::main(words)).0
}
