//! Blocks that leave: they go down in batches of one segment.

use super::batches::{Batch, Stage};
use super::blocks::{NONE, Valid};
use super::tasks::{List, Owner, Step, Task, Tasks};
use super::{MemoryBuffer, TagKind, Token, tag};
use crate::buffer::BufferSlice;
use crate::counters::Counter;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Issue};
use crate::ledger::When;
use crate::operation::{Cause, CopyOperation, Operation};
use crate::planted::PlantedBug;
use crate::units::BlockCount;

/// Longest write of a batch in blocks of 4 KiB, where a block is not longer: 4 MiB.
const RUN_BLOCKS_MAX: u64 = 1024;

impl MemoryBuffer {
    /// Decides who leaves now, for a write or for none.
    pub(super) fn evict(&mut self, job: Option<u32>, ctx: &mut Context<'_>) {
        let mut victims = core::mem::take(&mut self.batches.victims);
        victims.clear();
        self.replacement.victims(&mut victims);
        victims.sort_unstable_by_key(|entry| self.blocks.entry(*entry).block);
        ctx.count(Counter::Evictions, 1);
        ctx.count(Counter::EvictedBlocks, victims.len() as u64);
        ctx.count(Counter::Destages, 1);
        self.batches.serial += 1;
        let batch = self.batches.slab.add(Batch {
            tasks: List::EMPTY,
            job,
            blocked: victims.len() as u32,
            left: 0,
            stage: Stage::Waiting,
            error: None,
            serial: self.batches.serial,
        });
        self.batches.order.push_back(batch);
        for entry in &victims {
            if !self.blocks.is_whole(*entry, Valid::Decided) {
                ctx.count(Counter::FillBlocksRead, 1);
            }
            self.replacement.remove(*entry);
            self.blocks.unlink(*entry);
            let block = self.blocks.entry(*entry).block;
            let parts = self.blocks.parts_of(block);
            let task = Task::new(Owner::Batch(batch), block, *entry, 0, parts);
            let it = &mut self.batches.slab[batch];
            let (task, is_first) = self.tasks.add(task, &mut it.tasks);
            if is_first {
                self.ready.push_back(task);
            }
        }
        self.batches.victims = victims;
    }

    /// Begins the batches whose turn has come. True when there was one.
    pub(super) fn start_batches(&mut self, ctx: &mut Context<'_>) -> bool {
        let mut has_started = false;
        while let Some(batch) = self.batches.next_to_start() {
            has_started = true;
            if self.failure().is_some() {
                self.take_back(batch, ctx);
                continue;
            }
            let it = &mut self.batches.slab[batch];
            (it.stage, it.left) = (Stage::Filling, 1);
            let mut next = Tasks::first(it.tasks);
            while let Some(task) = next {
                next = self.tasks.next_of_owner(task);
                let entry = self.tasks[task].entry;
                if !self.blocks.is_whole(entry, Valid::InFact) {
                    self.batches.slab[batch].left += 1;
                    self.ask_for_whole(task, CopyOperation::Peek, TagKind::Fill, ctx);
                }
            }
            self.fill_done(batch, ctx);
        }
        // They go down in the order of the decisions: a node that counts sees them in that order.
        while let Some(batch) = self.batches.next_to_write() {
            has_started = true;
            self.write_batch(batch, ctx);
        }
        has_started
    }

    /// What a block lacks is there, or is not. A block that is bad below stops nothing: what memory has
    /// leaves without the parts around it, and the node below leaves those as they are.
    pub(super) fn fill_step_done(
        &mut self,
        task: u32,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let it = self.tasks[task];
        let Owner::Batch(batch) = it.owner else {
            unreachable!("a request fills no block that leaves")
        };
        match (it.step, result) {
            (Step::Asked, Err(_)) => return self.read_whole(task, TagKind::Fill, ctx),
            (_, Err(IoError::Medium)) => {}
            (_, Err(error)) => self.batches.slab[batch].error = Some(error),
            (_, Ok(())) => self.fill_up(it.entry, it.temp, ctx),
        }
        ctx.release(it.temp);
        self.tasks[task].temp = BufferSlice::EMPTY;
        self.fill_done(batch, ctx);
    }

    fn fill_done(&mut self, batch: u32, ctx: &mut Context<'_>) {
        let it = &mut self.batches.slab[batch];
        it.left -= 1;
        if it.left > 0 {
            return;
        }
        if let Some(error) = it.error {
            return self.end_batch(batch, Err(error), ctx);
        }
        if self.log.is_none() {
            it.stage = Stage::Ready;
            return;
        }
        (it.stage, it.left) = (Stage::Logging, 1);
        let mut next = Tasks::first(it.tasks);
        while let Some(task) = next {
            next = self.tasks.next_of_owner(task);
            self.batches.slab[batch].left += 1;
            self.tasks[task].left = 1;
            self.log_task(task);
            self.batch_part_logged(task, Ok(()), ctx);
        }
        self.batch_logged(batch, Ok(()), ctx);
    }

    /// A block of a batch is in the log, or a part of it.
    pub(super) fn batch_part_logged(
        &mut self,
        task: u32,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let it = &mut self.tasks[task];
        it.left -= 1;
        let Owner::Batch(batch) = it.owner else { unreachable!("a block of a batch") };
        if it.left == 0 {
            let result = result.and(self.record_task(task, ctx));
            self.batch_logged(batch, result, ctx);
        }
    }

    fn batch_logged(&mut self, batch: u32, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        let it = &mut self.batches.slab[batch];
        it.left -= 1;
        it.error = it.error.or(result.err());
        if it.left > 0 {
            return;
        }
        let log = self.ports.log.expect("a log");
        let error = it.error;
        match self.failure().or(error) {
            Some(error) => self.end_batch(batch, Err(error), ctx),
            None if self.ledger.answer_when_flushed(log, Token::Batch(batch), ctx) == When::Now => {
                self.batch_flushed(batch);
            }
            None => {}
        }
    }

    /// What a batch has is durable in the log, or will never be.
    pub(super) fn batch_flushed(&mut self, batch: u32) {
        self.batches.slab[batch].stage = Stage::Ready;
    }

    /// Hands a batch down: the last write says that it is the last.
    fn write_batch(&mut self, batch: u32, ctx: &mut Context<'_>) {
        if let Some(error) = self.failure() {
            return self.end_batch(batch, Err(error), ctx);
        }
        self.batches.slab[batch].stage = Stage::Writing;
        let mut run: Option<(u32, Extent)> = None;
        let mut next = Tasks::first(self.batches.slab[batch].tasks);
        while let Some(task) = next {
            next = self.tasks.next_of_owner(task);
            let block = self.tasks[task].block;
            self.drop_copy(self.extent_of(block), ctx);
            let mut from = 0;
            while let Some(parts) = self.next_to_write(task, from) {
                from = parts.end;
                let extent = self.parts_at(block, parts.start, parts.end - parts.start);
                self.note_going_down(block, parts);
                run = match run {
                    Some((first, run))
                        if run.end() == extent.start
                            && run.blocks.0 + extent.blocks.0 <= RUN_BLOCKS_MAX =>
                    {
                        Some((first, Extent::between(run.start, extent.end())))
                    }
                    before => {
                        if let Some(run) = before {
                            self.write_run(batch, run, true, ctx);
                        }
                        Some((task, extent))
                    }
                };
            }
        }
        match run {
            Some(run) => self.write_run(batch, run, false, ctx),
            None => self.end_batch(batch, Ok(()), ctx),
        }
    }

    /// A copy is older from now on, and the node below tells nobody.
    pub(super) fn drop_copy(&mut self, extent: Extent, ctx: &mut Context<'_>) {
        if self.ports.drops_copies {
            let nobody = tag(TagKind::Dropped, 0);
            self.issue_copy(CopyOperation::Drop, extent, BufferSlice::EMPTY, nobody, ctx);
        }
    }

    fn write_run(
        &mut self,
        batch: u32,
        (first, extent): (u32, Extent),
        has_more: bool,
        ctx: &mut Context<'_>,
    ) {
        let alone = self.extent_of(self.tasks[first].block);
        let slot = self.slot_of(first);
        let buffer = match alone.covers(extent) {
            true => slot.part(extent.start.0 - alone.start.0, extent.blocks.0),
            false => self.gather(batch, first, extent, ctx),
        };
        self.batches.slab[batch].left += 1;
        let issue = Issue {
            port: self.ports.below,
            operation: Operation::WRITE,
            extent,
            buffer,
            cause: Cause::Destage,
            tag: tag(TagKind::Destage, batch),
        };
        match has_more {
            true => ctx.issue_in_batch(issue),
            false => ctx.issue(issue),
        }
    }

    fn slot_of(&mut self, task: u32) -> BufferSlice {
        let entry = self.tasks[task].entry;
        self.blocks.entry(entry).slot
    }

    /// The blocks of a run in one buffer.
    fn gather(
        &mut self,
        batch: u32,
        first: u32,
        extent: Extent,
        ctx: &mut Context<'_>,
    ) -> BufferSlice {
        let buffer = ctx.allocate(BlockCount(extent.blocks.0));
        self.batches.runs.push((batch, buffer));
        let mut next = Some(first);
        while let Some(task) = next {
            next = self.tasks.next_of_owner(task);
            let whole = self.extent_of(self.tasks[task].block);
            let Some(part) = whole.intersection(extent) else {
                break;
            };
            let from = part.start.0 - whole.start.0;
            let data = self.slot_of(task).part(from, part.blocks.0);
            let at = part.start.0 - extent.start.0;
            ctx.copy(data, buffer.part(at, part.blocks.0));
        }
        buffer
    }

    pub(super) fn destage_write_done(
        &mut self,
        batch: u32,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let it = &mut self.batches.slab[batch];
        it.left -= 1;
        it.error = it.error.or(result.err());
        if it.left == 0 {
            let result = it.error.map_or(Ok(()), Err);
            self.end_batch(batch, result, ctx);
        }
    }

    /// A batch is below, or could not get there.
    fn end_batch(&mut self, batch: u32, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        let runs = &mut self.batches.runs;
        while let Some(at) = runs.iter().position(|(other, _)| *other == batch) {
            ctx.release(runs.swap_remove(at).1);
        }
        if let Err(error) = result {
            self.fail(error, ctx);
            return self.take_back(batch, ctx);
        }
        let mut next = Tasks::first(self.forget_batch(batch));
        while let Some(task) = next {
            next = self.tasks.next_of_owner(task);
            self.note_destaged(task);
            let entry = self.tasks[task].entry;
            let slot = self.blocks.free(entry);
            self.reuse(slot, ctx);
            self.finish_task(task);
        }
    }

    fn forget_batch(&mut self, batch: u32) -> List {
        let order = &mut self.batches.order;
        let at = order.iter().position(|other| *other == batch);
        order.remove(at.expect("a batch in order"));
        self.batches.slab.take(batch).tasks
    }

    /// Memory is free: who has waited longest has it.
    fn reuse(&mut self, slot: BufferSlice, ctx: &mut Context<'_>) {
        if slot.blocks == 0 {
            return;
        }
        if let Some(entry) = self.memory.give_back(slot, ctx) {
            let it = self.blocks.entry(entry);
            it.slot = slot;
            let writer = core::mem::replace(&mut it.writer, NONE);
            if writer != NONE {
                self.ready.push_back(writer);
            }
        }
    }

    /// The blocks of a batch are in memory again, as far as there is nothing newer.
    fn take_back(&mut self, batch: u32, ctx: &mut Context<'_>) {
        let mut next = Tasks::first(self.forget_batch(batch));
        while let Some(task) = next {
            next = self.tasks.next_of_owner(task);
            let Task { entry, block, .. } = self.tasks[task];
            let has_data = !self.blocks.is_empty(entry, Valid::InFact)
                && !ctx.is_planted(PlantedBug::FailedDestageDropped);
            match self.blocks.find(block) {
                _ if !has_data => {
                    let slot = self.blocks.free(entry);
                    self.reuse(slot, ctx);
                }
                None => {
                    self.blocks.link(entry);
                    self.replacement.insert(entry, self.segment_of(block));
                }
                Some(newer) => {
                    self.merge(entry, newer, ctx);
                    let slot = self.blocks.free(entry);
                    self.reuse(slot, ctx);
                }
            }
            self.finish_task(task);
        }
    }

    /// Moves what an entry has to a newer one of the same block, where that has nothing.
    fn merge(&mut self, from: u32, to: u32, ctx: &mut Context<'_>) {
        if self.blocks.entry(to).slot.blocks == 0 {
            return self.blocks.take_over(from, to);
        }
        let source = self.blocks.entry(from).slot;
        let target = self.blocks.entry(to).slot;
        let block = self.blocks.entry(from).block;
        let end = self.blocks.parts_of(block);
        for part in 0..end {
            let is_there = self.blocks.has(from, Valid::InFact, part);
            if is_there && !self.blocks.has(to, Valid::InFact, part) {
                ctx.copy(source.part(part, 1), target.part(part, 1));
                self.blocks.set(to, Valid::InFact, part..part + 1, true);
                self.blocks.set(to, Valid::Decided, part..part + 1, true);
            }
        }
    }

    /// A write has failed that had made an entry: nobody shall find it.
    pub(super) fn forget_if_empty(&mut self, entry: u32) {
        let is_there = self.blocks.entry(entry).state == super::blocks::State::Resident;
        if is_there && self.blocks.is_empty(entry, Valid::InFact) {
            self.replacement.remove(entry);
            let slot = self.blocks.free(entry);
            if slot.blocks > 0 {
                self.memory.keep(slot);
            }
        }
    }
}
