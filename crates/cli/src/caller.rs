//! Who called a command, and gets its answer.

use crate::commands::console;
use crate::failure::Failure;
use imbrex_report::RequestTable;
use imbrex_serve::signals::set_on_signals;
use imbrex_stack::BroughtPolicies;
use imbrex_traces::{ReadOptions, StopReading};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A shell, or a program that this one is a part of and that wants the answer for itself.
#[derive(Debug)]
pub struct Caller {
    stop: Arc<AtomicBool>,
    /// What a program is told; none of a shell, which has standard output and standard error.
    told: Option<RefCell<Told>>,
    /// What a program brings with it.
    brought: Brought,
}

/// What a program gives a command beside its words.
#[derive(Debug, Default)]
pub struct Brought {
    /// Policies of caches for simulations, by the names that stacks have for them.
    pub policies: BroughtPolicies,
    /// Whether it wants a row for each request of a comparison.
    pub wants_requests: bool,
}

/// What a command tells a program.
#[derive(Debug, Default)]
pub struct Told {
    /// What a shell finds on standard output.
    pub answer: String,
    /// What a shell finds on standard error, a remark an entry.
    pub remarks: Vec<String>,
    /// A row for each request of a comparison, where a program wants them and all runs have ended.
    pub requests: Option<RequestTable>,
}

impl Caller {
    /// A shell: it reads standard output, and stops commands by signals.
    pub fn shell() -> Caller {
        Caller { stop: Arc::default(), told: None, brought: Brought::default() }
    }

    /// A program, which sets `stop` to end a command before its time.
    pub fn program(stop: Arc<AtomicBool>, brought: Brought) -> Caller {
        Caller { stop, told: Some(RefCell::default()), brought }
    }

    /// The policies that a program brings with it; a shell has none.
    pub(crate) fn policies(&self) -> &BroughtPolicies {
        &self.brought.policies
    }

    /// Whether the caller wants a row for each request of a comparison.
    pub(crate) fn wants_requests(&self) -> bool {
        self.brought.wants_requests
    }

    /// Gives the requests of a comparison.
    pub(crate) fn give_requests(&self, requests: RequestTable) {
        if let Some(told) = &self.told {
            told.borrow_mut().requests = Some(requests);
        }
    }

    /// Answers.
    pub(crate) fn emit(&self, text: &str) {
        match &self.told {
            Some(told) => told.borrow_mut().answer.push_str(text),
            None => console::emit(text),
        }
    }

    /// Says something beside the answer.
    pub(crate) fn remark(&self, text: &str) {
        match &self.told {
            Some(told) => told.borrow_mut().remarks.push(text.to_string()),
            None => console::write_remark(text),
        }
    }

    /// Says beside the answer what went wrong though the command goes on.
    pub(crate) fn complain(&self, text: &str) {
        match &self.told {
            Some(told) => told.borrow_mut().remarks.push(text.to_string()),
            None => console::complain(text),
        }
    }

    /// Whether the caller is a shell.
    pub(crate) fn is_shell(&self) -> bool {
        self.told.is_none()
    }

    /// What is set when the command is to end: by a signal, where a shell called.
    ///
    /// # Errors
    /// When the system does not let signals be caught.
    pub(crate) fn stop(&self) -> Result<&Arc<AtomicBool>, Failure> {
        if self.is_shell() {
            set_on_signals(&self.stop, |_| Ok(()))?;
        }
        Ok(&self.stop)
    }

    /// How a trace is read that the caller may want no more of. A shell ends the process instead, unless the command
    /// has asked for [`stop`](Self::stop).
    pub(crate) fn reading(&self, options: ReadOptions) -> ReadOptions {
        ReadOptions { stop: StopReading::when(&self.stop), ..options }
    }

    /// What a program was told. A shell has heard it already.
    pub fn told(self) -> Told {
        self.told.map(RefCell::into_inner).unwrap_or_default()
    }
}
