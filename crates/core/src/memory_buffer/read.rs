//! Reads: from memory, from a copy, or from below.

use super::blocks::{NONE, State, Valid, next_such};
use super::settings::PartialRead;
use super::tasks::{Job, JobKind, Owner, Step, Task, Tasks};
use super::{MemoryBuffer, TagKind, tag};
use crate::buffer::BufferSlice;
use crate::counters::Counter;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Issue};
use crate::operation::{Cause, CopyOperation, Operation, Request};
use crate::planted::PlantedBug;
use crate::units::BlockCount;
use core::ops::Range;

impl MemoryBuffer {
    /// Decides a read.
    pub(super) fn read(&mut self, request: Request, ctx: &mut Context<'_>) {
        let job = self.jobs.add(Job::new(request, JobKind::Read));
        let fills = self.settings.partial_read == PartialRead::Memory && !ctx.is_read_only();
        for (block, first, count) in self.pieces(request.extent) {
            ctx.count(Counter::BlockReads, 1);
            let found = self.blocks.find(block);
            let mut task = Task::new(Owner::Job(job), block, found.unwrap_or(NONE), first, count);
            if let Some(entry) = found {
                self.replacement.touch(entry);
                if self.blocks.has_all(entry, Valid::Decided, first..first + count) {
                    ctx.count(Counter::HitBlockReads, 1);
                } else {
                    ctx.count(Counter::PartialReads, 1);
                    task.fills = fills;
                    if fills {
                        let all = 0..self.blocks.parts_of(block);
                        self.blocks.set(entry, Valid::Decided, all, true);
                    }
                }
            }
            self.add_to_job(job, task);
        }
    }

    /// The parts that a task asks for and memory does not have, from the first to the last.
    fn missing(&self, task: Task) -> Option<Range<u64>> {
        let asked = task.first..task.first + task.count;
        if task.entry == NONE {
            return Some(asked);
        }
        let lacks = |part: &u64| !self.blocks.has(task.entry, Valid::InFact, *part);
        let first = asked.clone().find(lacks)?;
        let last = asked.rev().find(lacks)?;
        Some(first..last + 1)
    }

    /// The next run of parts that a task asks for and memory does not have.
    fn next_missing(&self, task: Task, from: u64) -> Option<Range<u64>> {
        next_such(from..task.first + task.count, |part| {
            task.entry == NONE || !self.blocks.has(task.entry, Valid::InFact, part)
        })
    }

    /// The entry that a read reads once something has failed. What was to come into memory may not have
    /// come, and what had left may be back. An entry that still waits to leave has the data.
    fn entry_after_failure(&mut self, task: Task) -> u32 {
        let known = Some(task.entry).filter(|entry| *entry != NONE);
        let found = known.filter(|entry| {
            let it = self.blocks.entry(*entry);
            it.state != State::Unused && it.block == task.block && it.slot.blocks > 0
        });
        let found = found.or_else(|| {
            let found = self.blocks.find(task.block);
            found.filter(|entry| self.blocks.entry(*entry).slot.blocks > 0)
        });
        found.unwrap_or(NONE)
    }

    /// All blocks of a read are free: what memory lacks is asked for.
    pub(super) fn run_read(&mut self, job: u32, ctx: &mut Context<'_>) {
        self.jobs[job].left = 1;
        let Job { request, tasks, .. } = self.jobs[job];
        let mut run: Option<Extent> = None;
        let mut next = Tasks::first(tasks);
        while let Some(task) = next {
            next = self.tasks.next_of_owner(task);
            if self.failure().is_some() {
                self.tasks[task].entry = self.entry_after_failure(self.tasks[task]);
            }
            let it = self.tasks[task];
            let Some(missing) = self.missing(it) else {
                continue;
            };
            if it.fills && it.entry != NONE {
                self.ask_for_whole(task, CopyOperation::Find, TagKind::Read, ctx);
                self.jobs[job].left += 1;
                continue;
            }
            let extent = self.parts_at(it.block, missing.start, missing.end - missing.start);
            if self.ports.copies.is_none() {
                let is_all_missing = self.next_missing(it, missing.start) == Some(missing);
                self.jobs[job].has_read_more |= !is_all_missing;
                run = self.join_run(job, run, extent, ctx);
                continue;
            }
            let find = match ctx.is_read_only() {
                true => CopyOperation::Find,
                false => CopyOperation::FindOrReserve,
            };
            let offset = extent.start.0 - request.extent.start.0;
            let data = request.buffer.part(offset, extent.blocks.0);
            self.tasks[task].step = Step::Asked;
            self.jobs[job].left += 1;
            self.issue_copy(find, extent, data, tag(TagKind::Read, task), ctx);
        }
        self.read_run(job, run, ctx);
        self.read_part_done(job, Ok(()), ctx);
    }

    /// Lengthens a run by what adjoins it, or reads it and begins another one.
    fn join_run(
        &mut self,
        job: u32,
        run: Option<Extent>,
        extent: Extent,
        ctx: &mut Context<'_>,
    ) -> Option<Extent> {
        match run {
            Some(run) if run.end() == extent.start => {
                Some(Extent::between(run.start, extent.end()))
            }
            before => {
                self.read_run(job, before, ctx);
                Some(extent)
            }
        }
    }

    /// Reads blocks straight into the buffer of the request.
    fn read_run(&mut self, job: u32, run: Option<Extent>, ctx: &mut Context<'_>) {
        let Some(extent) = run else {
            return;
        };
        let it = &mut self.jobs[job];
        it.left += 1;
        let offset = extent.start.0 - it.request.extent.start.0;
        ctx.issue(Issue {
            port: self.ports.below,
            operation: Operation::Read,
            extent,
            buffer: it.request.buffer.part(offset, extent.blocks.0),
            cause: Cause::Host,
            tag: tag(TagKind::ReadRun, job),
        });
    }

    pub(super) fn read_run_done(
        &mut self,
        job: u32,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        self.read_part_done(job, result, ctx);
    }

    /// Asks the store of copies for a whole block, or reads it below where there is none.
    pub(super) fn ask_for_whole(
        &mut self,
        task: u32,
        what: CopyOperation,
        kind: TagKind,
        ctx: &mut Context<'_>,
    ) {
        let extent = self.extent_of(self.tasks[task].block);
        let temp = ctx.allocate(extent.blocks);
        self.tasks[task].temp = temp;
        if self.ports.copies.is_none() {
            return self.read_whole(task, kind, ctx);
        }
        self.tasks[task].step = Step::Asked;
        self.issue_copy(what, extent, temp, tag(kind, task), ctx);
    }

    /// Reads a whole block below.
    pub(super) fn read_whole(&mut self, task: u32, kind: TagKind, ctx: &mut Context<'_>) {
        let extent = self.extent_of(self.tasks[task].block);
        let it = &mut self.tasks[task];
        it.step = Step::ReadBelow;
        if it.temp.blocks == 0 {
            it.temp = ctx.allocate(BlockCount(extent.blocks.0));
        }
        ctx.issue(Issue {
            port: self.ports.below,
            operation: Operation::Read,
            extent,
            buffer: it.temp,
            cause: match kind {
                TagKind::Fill => Cause::Destage,
                _ => Cause::Host,
            },
            tag: tag(kind, task),
        });
    }

    /// Something that a block of a read has asked for is there, or is not.
    pub(super) fn read_step_done(
        &mut self,
        task: u32,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let it = self.tasks[task];
        let Owner::Job(job) = it.owner else { unreachable!("a batch does not read") };
        match (it.step, result) {
            (Step::Asked, Err(_)) => self.read_whole(task, TagKind::Read, ctx),
            (_, Err(error)) => {
                self.tasks[task].step = Step::Failed;
                self.jobs[job].has_read_more = true;
                if self.ports.copies.is_some() && !it.fills && !ctx.is_read_only() {
                    let whole = self.extent_of(it.block);
                    let tag = tag(TagKind::Dropped, 0);
                    self.issue_copy(CopyOperation::Drop, whole, BufferSlice::EMPTY, tag, ctx);
                }
                self.read_part_done(job, Err(error), ctx);
            }
            (_, Ok(())) => self.read_part_done(job, Ok(()), ctx),
        }
    }

    fn read_part_done(&mut self, job: u32, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        let it = &mut self.jobs[job];
        it.left -= 1;
        it.result = it.result.and(result);
        match it.result {
            _ if it.left > 0 => {}
            Err(IoError::Medium) if it.has_read_more => self.read_less(job, ctx),
            _ => self.deliver(job, ctx),
        }
    }

    /// What could not be read may be what nobody has asked for, or what memory has: what is asked for and
    /// memory lacks is read without the rest.
    fn read_less(&mut self, job: u32, ctx: &mut Context<'_>) {
        let it = &mut self.jobs[job];
        (it.has_read_more, it.left, it.result) = (false, 1, Ok(()));
        let mut run = None;
        let mut next = Tasks::first(it.tasks);
        while let Some(task) = next {
            next = self.tasks.next_of_owner(task);
            let it = &mut self.tasks[task];
            match it.step {
                Step::Asked | Step::ReadBelow => continue,
                Step::Begun => {}
                Step::Failed => {
                    (it.step, it.fills) = (Step::Begun, false);
                    ctx.release(core::mem::take(&mut it.temp));
                }
            }
            let (it, mut from) = (*it, it.first);
            while let Some(parts) = self.next_missing(it, from) {
                from = parts.end;
                let extent = self.parts_at(it.block, parts.start, parts.end - parts.start);
                run = self.join_run(job, run, extent, ctx);
            }
        }
        self.read_run(job, run, ctx);
        self.read_part_done(job, Ok(()), ctx);
    }

    /// All is there: the buffer of the request is filled, and it is answered. What came from below is
    /// offered to the store of copies, and the blocks are free.
    fn deliver(&mut self, job: u32, ctx: &mut Context<'_>) {
        let Job { request, tasks, result, .. } = self.jobs[job];
        let mut next = Tasks::first(tasks);
        while let Some(task) = next {
            next = self.tasks.next_of_owner(task);
            if self.tasks[task].step != Step::Failed {
                self.deliver_block(task, request, ctx);
            }
        }
        ctx.finish(request.id, result);
        let mut next = Tasks::first(tasks);
        while let Some(task) = next {
            next = self.tasks.next_of_owner(task);
            self.pass_to_store(task, ctx);
            self.finish_task(task);
        }
        self.jobs.remove(job);
    }

    fn deliver_block(&mut self, task: u32, request: Request, ctx: &mut Context<'_>) {
        let it = self.tasks[task];
        let asked = self.parts_at(it.block, it.first, it.count);
        let offset = asked.start.0 - request.extent.start.0;
        let target = request.buffer.part(offset, it.count);
        if it.temp.blocks > 0 {
            match it.fills && it.entry != NONE {
                true => self.fill_up(it.entry, it.temp, ctx),
                false => ctx.copy(it.temp.part(it.first, it.count), target),
            }
        }
        if it.entry == NONE {
            return;
        }
        let slot = self.blocks.entry(it.entry).slot;
        let end = it.first + it.count;
        let mut from = it.first;
        while let Some(run) = self.blocks.next_run(it.entry, from..end, true) {
            let blocks = run.end - run.start;
            let part = target.part(run.start - it.first, blocks);
            ctx.copy(slot.part(run.start, blocks), part);
            from = run.end;
        }
    }

    /// Gives an entry the parts that it lacks.
    pub(super) fn fill_up(&mut self, entry: u32, whole: BufferSlice, ctx: &mut Context<'_>) {
        let slot = self.blocks.entry(entry).slot;
        let end = u64::from(whole.blocks);
        let mut from = 0;
        if ctx.is_planted(PlantedBug::FillOverWritten) {
            ctx.copy(whole, slot.part(0, end));
        } else {
            while let Some(run) = self.blocks.next_run(entry, from..end, false) {
                let blocks = run.end - run.start;
                ctx.copy(whole.part(run.start, blocks), slot.part(run.start, blocks));
                from = run.end;
            }
        }
        self.blocks.set(entry, Valid::InFact, 0..end, true);
    }

    /// A whole block that a read has brought from below becomes a copy, if a copy was reserved for it.
    fn pass_to_store(&mut self, task: u32, ctx: &mut Context<'_>) {
        let it = self.tasks[task];
        if it.temp.blocks == 0 {
            return;
        }
        let is_failed = it.step == Step::Failed;
        if it.fills || is_failed || self.ports.copies.is_none() || ctx.is_read_only() {
            return ctx.release(it.temp);
        }
        let lent = self.lent.add(it.temp);
        let extent = self.extent_of(it.block);
        let tag = tag(TagKind::Stored, lent);
        self.issue_copy(CopyOperation::Store, extent, it.temp, tag, ctx);
    }
}
