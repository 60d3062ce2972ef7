//! The requests of an array that have not ended.

use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::extent::Extent;
use crate::map::Slab;
use crate::operation::{Cause, Operation, Request, RequestId};
use crate::saved::SavedValue;
use alloc::collections::VecDeque;

/// Who has asked for a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub enum JobOwner {
    /// The node above, which waits for an answer.
    Above,
    /// The layer itself, by a word that it chose.
    Layer(u64),
}

/// A job that has ended.
#[derive(Clone, Copy, Debug)]
pub struct EndedJob {
    /// Who has asked for it.
    pub owner: JobOwner,
    /// The number that it had.
    pub number: u32,
    /// What was asked for.
    pub request: Request,
    /// What has come of it.
    pub result: Result<(), IoError>,
}

#[derive(Clone, Copy, Debug, SavedValue)]
struct Job {
    owner: JobOwner,
    request: Request,
    parts: u32,
    result: Result<(), IoError>,
    /// The last part that writes and has not begun to.
    last_write: Option<u32>,
}

/// Requests, each of which ends when all of its parts have.
#[derive(Debug, Default, SavedValue)]
pub(super) struct Jobs {
    jobs: Slab<Job>,
    ended: VecDeque<u32>,
}

impl Jobs {
    /// Takes a request. Its first part is that it is taken apart: it ends when [`end_part`](Self::end_part) was
    /// called for that and for all parts that it was given.
    pub fn begin(&mut self, request: Request) -> u32 {
        self.add(JobOwner::Above, request)
    }

    /// Takes an operation of the layer's own, which ends in the same way.
    pub fn begin_own(
        &mut self,
        word: u64,
        (operation, cause): (Operation, Cause),
        buffer: BufferSlice,
    ) -> u32 {
        let id = RequestId::new(u32::MAX, u32::MAX);
        let request =
            Request { id, operation, extent: Extent::EMPTY, buffer, cause, has_more: false };
        self.add(JobOwner::Layer(word), request)
    }

    /// Takes blocks of a job, from `first` on, as a job of the layer's own. It is a part of that job, which is to be
    /// told when it has ended.
    pub fn begin_portion(&mut self, word: u64, job: u32, first: u64, blocks: u64) -> u32 {
        self.jobs[job].parts += 1;
        let whole = self.jobs[job].request;
        let extent = Extent::new(whole.extent.start.0 + first, blocks);
        let buffer = match whole.operation.has_data() {
            true => whole.buffer.part(first, blocks),
            false => whole.buffer,
        };
        self.add(JobOwner::Layer(word), Request { extent, buffer, ..whole })
    }

    fn add(&mut self, owner: JobOwner, request: Request) -> u32 {
        self.jobs.add(Job { owner, request, parts: 1, result: Ok(()), last_write: None })
    }

    /// The request of a job.
    pub fn request(&self, job: u32) -> Request {
        self.jobs[job].request
    }

    /// A job has so many parts more.
    pub fn add_parts(&mut self, job: u32, parts: u32) {
        self.jobs[job].parts += parts;
    }

    /// A part of a job has ended.
    pub fn end_part(&mut self, job: u32, result: Result<(), IoError>) {
        self.jobs[job].parts -= 1;
        if let Err(error) = result {
            self.fail(job, error);
        }
        if self.jobs[job].parts == 0 {
            // Its number names no other one before somebody has taken it.
            self.ended.push_back(job);
        }
    }

    /// The next job that has ended.
    pub fn next_ended(&mut self) -> Option<EndedJob> {
        let number = self.ended.pop_front()?;
        let Job { owner, request, result, .. } = self.jobs.take(number);
        Some(EndedJob { owner, number, request, result })
    }

    /// A job comes to nothing in part. It ends with the first error.
    pub fn fail(&mut self, job: u32, error: IoError) {
        let entry = &mut self.jobs[job];
        entry.result = entry.result.and(Err(error));
    }

    /// A part is the last of its job that is to write: the one that was so before, if it has not begun to.
    pub fn writes_last(&mut self, job: u32, task: u32) -> Option<u32> {
        self.jobs[job].last_write.replace(task)
    }

    /// A part of a job has begun to write.
    pub fn has_begun_to_write(&mut self, job: u32, task: u32) {
        let last = &mut self.jobs[job].last_write;
        if *last == Some(task) {
            *last = None;
        }
    }

    /// True when some job has ended that nobody has taken.
    pub fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// True when no request is in hand.
    pub fn are_over(&self) -> bool {
        self.jobs.is_empty()
    }
}
