//! How a request is cut into tasks, and how it is answered.

use super::SBlocks;
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::ledger::When;
use crate::operation::{Cause, CopyOperation, Operation, Request};
use crate::planted::PlantedBug;
use crate::translation::s_block::work::{Batch, Entry, Kind, Op, Part, Task};
use crate::units::Lba;
use alloc::vec::Vec;

impl SBlocks {
    /// Takes a request in, and begins it if nothing stands in its way.
    pub(super) fn take_in(&mut self, request: Request, ctx: &mut Context<'_>) {
        let entry = Entry { request, batch: u32::MAX, left: 1, copies: 0, result: Ok(()) };
        let number = self.requests.add(entry);
        match request.operation {
            Operation::Flush => self.flush(number, ctx),
            Operation::Read => {
                if self.locks.lock(number, request.extent) {
                    self.read(number, ctx);
                }
            }
            _ => self.take_change_in(number, ctx),
        }
    }

    /// Takes in what changes something, with those that come together with it.
    fn take_change_in(&mut self, number: u32, ctx: &mut Context<'_>) {
        let request = self.requests[number].request;
        let batch = match self.batches.open {
            Some(batch) => batch,
            None => self.new_batch(),
        };
        self.batches.open = request.has_more.then_some(batch);
        self.requests[number].batch = batch;
        self.tell_copies(number, ctx);
        let is_granted = self.locks.lock(number, request.extent);
        let entry = &mut self.batches.all[batch];
        entry.requests.push(number);
        entry.waiting += u32::from(!is_granted);
        entry.is_complete = !request.has_more;
        self.begin_batch(batch, ctx);
    }

    fn new_batch(&mut self) -> u32 {
        let batch = self.batches.all.reuse_or(Batch::default);
        let entry = &mut self.batches.all[batch];
        entry.requests.clear();
        entry.waiting = 0;
        batch
    }

    /// Tells the store of copies what is being written.
    fn tell_copies(&mut self, number: u32, ctx: &mut Context<'_>) {
        let Request { operation, extent, buffer, cause, .. } = self.requests[number].request;
        let Operation::Write { .. } = operation else {
            return;
        };
        if self.store(ctx).is_none() {
            return;
        }
        let block = self.layout.block;
        for at in extent.start.0 / block..extent.end().0.div_ceil(block) {
            let whole = Extent::new(at * block, block);
            let part = extent.intersection(whole).expect("a block of the request");
            let data = buffer.part(part.start.0 - extent.start.0, part.blocks.0);
            let what = Operation::Copy(CopyOperation::Destaged);
            let entry = &mut self.requests[number];
            (entry.left, entry.copies) = (entry.left + 1, entry.copies + 1);
            let op = Op::Copy { request: number };
            self.issue(op, what, (part, data), cause, ctx);
        }
    }

    /// Cuts a batch into tasks, when all of it is there and nothing stands in its way.
    fn begin_batch(&mut self, batch: u32, ctx: &mut Context<'_>) {
        if !self.batches.all[batch].is_complete || self.batches.all[batch].waiting > 0 {
            return;
        }
        let requests = core::mem::take(&mut self.batches.all[batch].requests);
        // The last task of a rewrite, which the next part of the same S-block joins.
        let mut last = None;
        for number in &requests {
            self.cut(*number, &mut last);
        }
        let all = self.batches.all[batch].requests.is_empty();
        assert!(all, "a batch grows while it is cut");
        for number in &requests {
            self.part_done(*number, Ok(()), ctx);
        }
        self.batches.all[batch].requests = requests;
        self.batches.all[batch].is_complete = false;
        self.batches.all.remove(batch);
    }

    fn cut(&mut self, number: u32, last: &mut Option<(u32, u16, u32)>) {
        let request = self.requests[number].request;
        let is_zero = matches!(request.operation, Operation::Zero { .. });
        let to_ring = request.cause != Cause::Destage && self.layout.ring_blocks > 0;
        let (segment, block) = (self.layout.segment, self.layout.block);
        let end = request.extent.end();
        let mut start = request.extent.start;
        while start < end {
            let of_segment = start.0 / segment;
            let (region, index) = self.layout.region_of(of_segment as u32);
            let up_to = |boundary: u64| Extent::between(start, end.min(Lba(boundary)));
            let mut part = up_to((of_segment + 1) * segment);
            let kind = match (is_zero && part.blocks.0 == segment, to_ring) {
                (true, _) => Kind::Trim,
                (false, true) => Kind::Ring,
                (false, false) => Kind::Rewrite,
            };
            match kind {
                Kind::Trim => {
                    let place = &self.layout.places[region as usize];
                    let of_region = place.first_segment + u32::from(place.shape.data);
                    let whole = end.0 / segment * segment;
                    part = up_to(whole.min(u64::from(of_region) * segment));
                }
                Kind::Ring => part = up_to((start.0 / block + 1) * block),
                Kind::Rewrite => {}
            }
            start = part.end();
            let part = Part { request: number, extent: part };
            self.requests[number].left += 1;
            match last {
                Some((at, joined, task))
                    if kind == Kind::Rewrite && (*at, *joined) == (region, index) =>
                {
                    self.tasks[*task].parts.push(part);
                }
                _ => {
                    let task = self.new_task(kind, index, part);
                    self.places[region as usize].queue.push_back(task);
                    *last = (kind == Kind::Rewrite).then_some((region, index, task));
                    self.list(region);
                }
            }
        }
    }

    fn new_task(&mut self, kind: Kind, segment: u16, part: Part) -> u32 {
        let task = self.tasks.reuse_or(|| Task { kind, segment, parts: Vec::new() });
        let entry = &mut self.tasks[task];
        (entry.kind, entry.segment) = (kind, segment);
        entry.parts.clear();
        entry.parts.push(part);
        task
    }

    /// The parts of a task are done, or it has failed.
    pub(super) fn task_done(
        &mut self,
        task: u32,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let parts = core::mem::take(&mut self.tasks[task].parts);
        for part in &parts {
            self.part_done(part.request, result, ctx);
        }
        self.tasks[task].parts = parts;
        self.tasks.remove(task);
    }

    /// Something that a request waits for has ended.
    pub(super) fn part_done(
        &mut self,
        number: u32,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let entry = &mut self.requests[number];
        entry.result = entry.result.and(result);
        entry.left -= 1;
        if entry.left > 0 {
            return;
        }
        let operation = entry.request.operation;
        let changes = !matches!(operation, Operation::Read | Operation::Flush);
        if !changes || entry.result.is_err() {
            return self.finish(number, ctx);
        }
        if let Some(error) = self.ledger.failure() {
            self.requests[number].result = Err(error);
            return self.finish(number, ctx);
        }
        let is_forced = operation.is_durable() && !ctx.is_planted(PlantedBug::FuaAsPlain);
        let when = match is_forced {
            true => self.ledger.answer_when_flushed(self.disk(), number, ctx),
            false => self.ledger.answer_when_written(number),
        };
        if when == When::Now {
            self.finish(number, ctx);
        }
    }

    /// Answers a request, and lets those go on that have waited for its blocks.
    pub(super) fn finish(&mut self, number: u32, ctx: &mut Context<'_>) {
        let Entry { request, result, .. } = self.requests[number];
        self.requests.remove(number);
        ctx.finish(request.id, result);
        if request.operation == Operation::Flush {
            return;
        }
        let mut granted = core::mem::take(&mut self.todo.granted);
        self.locks.unlock(number, |key| granted.push(key));
        while let Some(number) = granted.pop() {
            match self.requests[number].request.operation {
                Operation::Read => self.read(number, ctx),
                _ => {
                    let batch = self.requests[number].batch;
                    self.batches.all[batch].waiting -= 1;
                    self.begin_batch(batch, ctx);
                }
            }
        }
        self.todo.granted = granted;
    }

    /// Passes a flush on, or has the ledger flush.
    fn flush(&mut self, number: u32, ctx: &mut Context<'_>) {
        if let Some(error) = self.ledger.failure() {
            self.requests[number].result = Err(error);
            return self.finish(number, ctx);
        }
        if ctx.is_planted(PlantedBug::SmrFlushSkipped) {
            return self.finish(number, ctx);
        }
        if self.ledger.answer_when_flushed(self.disk(), number, ctx) == When::Now {
            let cause = self.requests[number].request.cause;
            let op = Op::Flush { request: number };
            let nothing = (Extent::EMPTY, BufferSlice::EMPTY);
            self.issue(op, Operation::Flush, nothing, cause, ctx);
        }
    }
}
