//! The requests of an array that have not ended.

use crate::error::IoError;
use crate::layer::Context;
use crate::map::Slab;
use crate::operation::Request;

#[derive(Clone, Copy, Debug)]
struct Job {
    request: Request,
    parts: u32,
    result: Result<(), IoError>,
    /// The last part that writes and has not begun to.
    last_write: Option<u32>,
}

/// Requests, each of which ends when all of its parts have.
#[derive(Debug, Default)]
pub(super) struct Jobs(Slab<Job>);

impl Jobs {
    /// Takes a request. Its first part is that it is taken apart: it ends when [`end_part`](Self::end_part) was
    /// called for that and for all parts that it was given.
    pub fn begin(&mut self, request: Request) -> u32 {
        self.0.add(Job { request, parts: 1, result: Ok(()), last_write: None })
    }

    /// The request of a job.
    pub fn request(&self, job: u32) -> Request {
        self.0[job].request
    }

    /// A job has so many parts more.
    pub fn add_parts(&mut self, job: u32, parts: u32) {
        self.0[job].parts += parts;
    }

    /// A part of a job has ended.
    pub fn end_part(&mut self, job: u32, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        self.0[job].parts -= 1;
        if let Err(error) = result {
            self.fail(job, error);
        }
        if self.0[job].parts == 0 {
            let Job { request, result, .. } = self.0.take(job);
            ctx.finish(request.id, result);
        }
    }

    /// A job comes to nothing in part. It ends with the first error.
    pub fn fail(&mut self, job: u32, error: IoError) {
        let entry = &mut self.0[job];
        entry.result = entry.result.and(Err(error));
    }

    /// A part is the last of its job that is to write: the one that was so before, if it has not begun to.
    pub fn writes_last(&mut self, job: u32, task: u32) -> Option<u32> {
        self.0[job].last_write.replace(task)
    }

    /// A part of a job has begun to write.
    pub fn has_begun_to_write(&mut self, job: u32, task: u32) {
        let last = &mut self.0[job].last_write;
        if *last == Some(task) {
            *last = None;
        }
    }
}
