//! The requests that the host has in a stack: which of them waits for another one, and what is answered.

use crate::map::ExtentLocks;
use crate::operation::{Completion, Operation, Request, RequestId};
use crate::saved::SavedValue;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Requests of the host that share a block go through a stack one after another, in the order in which they come.
#[derive(Default, SavedValue)]
pub(crate) struct HostRequests {
    locks: ExtentLocks<RequestId>,
    /// Registered requests that wait for a lock.
    waiting: Vec<Request>,
    /// Those of them that may go on.
    granted: VecDeque<RequestId>,
    answers: VecDeque<Completion>,
    /// Those that have come and have no answer.
    in_flight: u32,
    /// No further one will come.
    pub is_done: bool,
}

impl HostRequests {
    /// A request comes. True when it may go on; one that may not waits here until all those before it on its blocks
    /// have ended.
    #[inline]
    pub fn begin(&mut self, request: Request) -> bool {
        self.in_flight += 1;
        // A flush touches no block and covers only what has completed, so it waits for nothing.
        let may_go_on =
            request.operation == Operation::Flush || self.locks.lock(request.id, request.extent);
        if !may_go_on {
            self.waiting.push(request);
        }
        may_go_on
    }

    /// True when a request waits for another one to end.
    #[inline]
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// A request has ended with an answer. [`next_granted`](Self::next_granted) says who has waited for it alone.
    #[inline]
    pub fn end(&mut self, id: RequestId, answer: Completion) {
        self.in_flight -= 1;
        self.answers.push_back(answer);
        let granted = &mut self.granted;
        self.locks.unlock(id, |id| granted.push_back(id));
    }

    /// A request that has waited and may go on, in the order of coming.
    #[inline]
    pub fn next_granted(&mut self) -> Option<Request> {
        let id = self.granted.pop_front()?;
        let index = self.waiting.iter().position(|waiting| waiting.id == id);
        Some(self.waiting.remove(index.expect("a granted request was waiting")))
    }

    /// A request is answered that does not go on into the stack.
    pub fn answer_at_once(&mut self, answer: Completion) {
        self.answers.push_back(answer);
    }

    /// The next answer.
    #[inline]
    pub fn next_answer(&mut self) -> Option<Completion> {
        self.answers.pop_front()
    }

    /// Answers that were not taken yet.
    #[inline]
    pub fn answers(&self) -> u32 {
        self.answers.len() as u32
    }

    /// Requests that have come and have no answer.
    #[inline]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }
}
