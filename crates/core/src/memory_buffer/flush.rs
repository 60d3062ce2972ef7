//! Flushes, and failures after which there are none.

use super::blocks::NONE;
use super::state::Closing;
use super::tasks::{Job, JobKind};
use super::{MemoryBuffer, TagKind, Token, tag};
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Issue};
use crate::ledger::When;
use crate::operation::{Cause, Operation, Request};

impl MemoryBuffer {
    /// Why writes and flushes fail, if they do.
    pub(super) fn failure(&self) -> Option<IoError> {
        self.life.failure.or(self.ledger.failure())
    }

    /// From now on writes and flushes fail. What waits for memory, for the log or for a flush ends.
    pub(super) fn fail(&mut self, error: IoError, ctx: &mut Context<'_>) {
        self.life.failure.get_or_insert(error);
        self.ledger.fail(error);
        while let Some(entry) = self.memory.next_in_vain() {
            let writer = core::mem::replace(&mut self.blocks.entry(entry).writer, NONE);
            if writer != NONE {
                self.ready.push_back(writer);
            }
        }
        let error = self.failure().unwrap_or(error);
        while let Some((job, _)) = self.life.flushes.pop() {
            self.answer(job, Err(error), ctx);
        }
        self.give_up_log(error, ctx);
    }

    /// A flush of the host.
    pub(super) fn flush(&mut self, request: Request, ctx: &mut Context<'_>) {
        if let Some(error) = self.failure() {
            return ctx.finish(request.id, Err(error));
        }
        let job = self.jobs.add(Job::new(request, JobKind::Flush));
        let Some(log) = self.ports.log else {
            return match self.settings.destages_on_flush() {
                true => self.destage_for(job, ctx),
                // Memory keeps nothing that a flush could ask for.
                false => self.life.flushes.push((job, 0)),
            };
        };
        if self.ledger.answer_when_flushed(log, Token::Job(job), ctx) == When::Now {
            self.answer(job, Ok(()), ctx);
        }
    }

    /// Everything leaves; when it is below, a flush there is the answer to a request.
    pub(super) fn destage_for(&mut self, job: u32, ctx: &mut Context<'_>) {
        self.jobs[job].kind = JobKind::Flush;
        while self.blocks.residents() > 0 {
            self.evict(None, ctx);
        }
        self.life.flushes.push((job, self.batches.newest()));
    }

    /// Flushes below for those whose batches are there: one flush at a time, so that nobody counts on
    /// one that began when another had failed already. True when it has begun.
    pub(super) fn flush_below(&mut self, ctx: &mut Context<'_>) -> bool {
        if !self.life.flushing.is_empty() {
            return false;
        }
        let (waiting, batches) = (&mut self.life.flushes, &self.batches);
        for (job, _) in waiting.extract_if(.., |(_, serial)| batches.have_ended(*serial)) {
            self.life.flushing.push(job);
        }
        let begins = !self.life.flushing.is_empty();
        if begins {
            self.issue_flush_below(ctx);
        }
        begins
    }

    pub(super) fn flush_done(&mut self, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        if let Err(error) = result
            && self.settings.persistence.is_some()
        {
            // What went down before may never be durable, and nobody has it any more.
            self.fail(error, ctx);
        }
        if self.life.closing == Closing::Flushing {
            return self.last_flush_done(result);
        }
        while let Some(job) = self.life.flushing.pop() {
            self.answer(job, result, ctx);
        }
    }

    pub(super) fn issue_flush_below(&mut self, ctx: &mut Context<'_>) {
        ctx.issue(Issue {
            port: self.ports.below,
            operation: Operation::Flush,
            extent: Extent::EMPTY,
            buffer: BufferSlice::EMPTY,
            cause: Cause::Host,
            tag: tag(TagKind::Flush, 0),
        });
    }
}
