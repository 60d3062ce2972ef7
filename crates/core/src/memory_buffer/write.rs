//! Writes: into memory, or past it where there is none.

use super::blocks::{NONE, Valid};
use super::tasks::{Job, JobKind, Owner, Task, Tasks};
use super::{MemoryBuffer, TagKind, Token, tag};
use crate::counters::Counter;
use crate::error::IoError;
use crate::layer::{Context, Issue};
use crate::ledger::When;
use crate::operation::{Cause, CopyOperation, Operation, Request};
use crate::planted::PlantedBug;

impl MemoryBuffer {
    /// Decides a write: each of its blocks is in memory from now on.
    pub(super) fn write(&mut self, request: Request, ctx: &mut Context<'_>) {
        let job = self.jobs.add(Job::new(request, JobKind::Write));
        for (block, first, count) in self.pieces(request.extent) {
            ctx.count(Counter::BlockWrites, 1);
            let entry = match self.blocks.find(block) {
                Some(entry) => {
                    ctx.count(Counter::HitBlockWrites, 1);
                    self.replacement.touch(entry);
                    entry
                }
                None => self.insert(job, block, ctx),
            };
            let parts = first..first + count;
            self.blocks.set(entry, Valid::Decided, parts, true);
            let task = Task::new(Owner::Job(job), block, entry, first, count);
            let it = &mut self.jobs[job];
            it.left += 1;
            let (task, is_first) = self.tasks.add(task, &mut it.tasks);
            if is_first {
                self.ready.push_back(task);
            }
        }
    }

    /// Takes a block into memory, for which others leave.
    fn insert(&mut self, job: u32, block: u64, ctx: &mut Context<'_>) -> u32 {
        while self.blocks.residents() >= self.settings.capacity_blocks {
            self.evict(Some(job), ctx);
        }
        let entry = self.blocks.add(block);
        self.replacement.insert(entry, self.segment_of(block));
        if let Some(slot) = self.memory.take(entry, ctx) {
            self.blocks.entry(entry).slot = slot;
        }
        entry
    }

    /// The turn of a block of a write has come, or it has memory now.
    pub(super) fn run_write(&mut self, task: u32, ctx: &mut Context<'_>) {
        let it = self.tasks[task];
        if let Some(error) = self.failure() {
            return self.end_write(task, Err(error), ctx);
        }
        let entry = self.blocks.entry(it.entry);
        if entry.slot.blocks == 0 {
            entry.writer = task;
            return;
        }
        let (slot, Owner::Job(job)) = (entry.slot, it.owner) else {
            unreachable!("a batch does not write")
        };
        let request = self.jobs[job].request;
        let extent = self.parts_at(it.block, it.first, it.count);
        let offset = extent.start.0 - request.extent.start.0;
        let data = request.buffer.part(offset, it.count);
        let slot = slot.part(it.first, it.count);
        ctx.copy(data, slot);
        let parts = it.first..it.first + it.count;
        self.blocks.set(it.entry, Valid::InFact, parts, true);
        self.tasks[task].left = 1;
        if self.ports.copies.is_some() {
            self.tasks[task].left += 1;
            let tag = tag(TagKind::Overwritten, task);
            self.issue_copy(CopyOperation::Overwritten, extent, slot, tag, ctx);
        }
        self.log_task(task);
        self.write_part_done(task, Ok(()), ctx);
    }

    /// One of the things that the block of a write waits for has happened.
    pub(super) fn write_part_done(
        &mut self,
        task: u32,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let it = &mut self.tasks[task];
        it.left -= 1;
        if it.left == 0 {
            let result = result.and(self.record_task(task, ctx));
            self.end_write(task, result, ctx);
        }
    }

    fn end_write(&mut self, task: u32, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        let Task { owner, entry, .. } = self.tasks[task];
        if result.is_err() {
            self.forget_if_empty(entry);
        }
        self.finish_task(task);
        let Owner::Job(job) = owner else { unreachable!("a batch does not write") };
        let it = &mut self.jobs[job];
        it.left -= 1;
        it.result = it.result.and(result);
        if it.left == 0 {
            self.written(job, ctx);
        }
    }

    /// All blocks of a write are done.
    fn written(&mut self, job: u32, ctx: &mut Context<'_>) {
        let Job { request, result, .. } = self.jobs[job];
        if result.is_err() {
            return self.answer(job, result, ctx);
        }
        let is_forced = request.operation.is_durable() && !ctx.is_planted(PlantedBug::FuaAsPlain);
        if is_forced && self.settings.destages_on_flush() {
            return self.destage_for(job, ctx);
        }
        let when = match self.ports.log {
            Some(log) if is_forced => self.ledger.answer_when_flushed(log, Token::Job(job), ctx),
            _ => self.ledger.answer_when_written(Token::Job(job)),
        };
        if when == When::Now {
            self.answer(job, Ok(()), ctx);
        }
    }

    /// The end of a request.
    pub(super) fn answer(&mut self, job: u32, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        let job = self.jobs.take(job);
        ctx.finish(job.request.id, result);
    }

    /// Decides a write where there is no memory.
    pub(super) fn write_around(&mut self, request: Request, ctx: &mut Context<'_>) {
        let job = self.jobs.add(Job::new(request, JobKind::Around));
        for (block, first, count) in self.pieces(request.extent) {
            ctx.count(Counter::BlockWrites, 1);
            self.add_to_job(job, Task::new(Owner::Job(job), block, NONE, first, count));
        }
    }

    /// Adds a task to a request that begins when all of its blocks are free.
    pub(super) fn add_to_job(&mut self, job: u32, task: Task) {
        let it = &mut self.jobs[job];
        it.blocked += 1;
        let (task, is_first) = self.tasks.add(task, &mut it.tasks);
        if is_first {
            self.ready.push_back(task);
        }
    }

    pub(super) fn run_around(&mut self, job: u32, ctx: &mut Context<'_>) {
        let Job { request, tasks, .. } = self.jobs[job];
        self.jobs[job].left = 1;
        let mut next = Tasks::first(tasks).filter(|_| self.ports.copies.is_some());
        while let Some(task) = next {
            let it = self.tasks[task];
            let extent = self.parts_at(it.block, it.first, it.count);
            let offset = extent.start.0 - request.extent.start.0;
            let data = request.buffer.part(offset, it.count);
            self.jobs[job].left += 1;
            let tag = tag(TagKind::AroundOverwritten, job);
            // Nobody keeps the data for now. Where the node below tells the store nothing, this does.
            let what = match self.ports.drops_copies {
                true => CopyOperation::Destaged,
                false => CopyOperation::Overwritten,
            };
            self.issue_copy(what, extent, data, tag, ctx);
            next = self.tasks.next_of_owner(task);
        }
        self.around_step_done(job, Ok(()), ctx);
    }

    pub(super) fn around_step_done(
        &mut self,
        job: u32,
        _result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let it = &mut self.jobs[job];
        it.left -= 1;
        if it.left > 0 {
            return;
        }
        let request = it.request;
        ctx.issue(Issue {
            port: self.ports.below,
            operation: request.operation,
            extent: request.extent,
            buffer: request.buffer,
            cause: Cause::Host,
            tag: tag(TagKind::Around, job),
        });
    }

    pub(super) fn around_done(
        &mut self,
        job: u32,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        debug_assert!(matches!(self.jobs[job].request.operation, Operation::Write { .. }));
        let mut next = Tasks::first(self.jobs[job].tasks).filter(|_| result.is_err());
        while let Some(task) = next {
            next = self.tasks.next_of_owner(task);
            // It has the data that did not get there.
            self.drop_copy(self.extent_of(self.tasks[task].block), ctx);
        }
        self.end_job_tasks(job);
        self.answer(job, result, ctx);
    }

    /// The blocks of a request are free for those behind it.
    pub(super) fn end_job_tasks(&mut self, job: u32) {
        let mut next = Tasks::first(self.jobs[job].tasks);
        while let Some(task) = next {
            next = self.tasks.next_of_owner(task);
            self.finish_task(task);
        }
    }
}
