//! Zeroes: memory forgets, and the node below does it.
//!
//! A request that zeroes may be as long as the device, so it is not cut into blocks: it begins when
//! nothing else is under way, and what comes meanwhile is decided after it.

use super::blocks::Valid;
use super::state::{Zero, ZeroStep};
use super::{MemoryBuffer, TagKind, Token, tag};
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Issue};
use crate::ledger::When;
use crate::operation::{Cause, CopyOperation, Durability, Operation, Request};

/// Copies that are dropped at once.
const DROPS_MAX: u32 = 64;

impl MemoryBuffer {
    /// A request has come.
    pub(super) fn take(&mut self, request: Request, ctx: &mut Context<'_>) {
        match request.operation {
            Operation::Flush if self.held.is_empty() || !self.settings.destages_on_flush() => {
                self.flush(request, ctx);
            }
            Operation::Read | Operation::Write { .. } if self.held.is_empty() => {
                self.decide(request, ctx);
            }
            Operation::Read
            | Operation::Write { .. }
            | Operation::Zero { .. }
            | Operation::Flush => {
                self.held.queue.push_back(request);
            }
            _ => ctx.finish(request.id, Err(IoError::NotPermitted)),
        }
    }

    fn decide(&mut self, request: Request, ctx: &mut Context<'_>) {
        match (request.operation, self.failure()) {
            (Operation::Read, _) => self.read(request, ctx),
            (Operation::Flush, _) => self.flush(request, ctx),
            (_, Some(error)) => ctx.finish(request.id, Err(error)),
            _ if self.settings.capacity_blocks == 0 => self.write_around(request, ctx),
            _ => self.write(request, ctx),
        }
    }

    /// Lets in what has waited. True when something did.
    pub(super) fn admit_held(&mut self, ctx: &mut Context<'_>) -> bool {
        let mut has_moved = false;
        while self.held.zero.is_none()
            && let Some(request) = self.held.queue.front().copied()
        {
            if !matches!(request.operation, Operation::Zero { .. }) {
                self.held.queue.pop_front();
                self.decide(request, ctx);
            } else if let Some(error) = self.failure() {
                self.held.queue.pop_front();
                ctx.finish(request.id, Err(error));
            } else if self.is_idle() && self.ready.is_empty() && self.ledger.has_spare_room(1) {
                self.held.queue.pop_front();
                self.begin_zero(request, ctx);
            } else {
                return has_moved;
            }
            has_moved = true;
        }
        has_moved
    }

    fn begin_zero(&mut self, request: Request, ctx: &mut Context<'_>) {
        let first = request.extent.start.0 / self.settings.block.0;
        self.held.zero = Some(Zero { request, step: ZeroStep::Dropping(first), left: 1 });
        self.zero_step_done(Ok(()), ctx);
    }

    /// A step of the request that zeroes is done.
    pub(super) fn zero_step_done(&mut self, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        let Some(zero) = &mut self.held.zero else { unreachable!("nothing zeroes") };
        zero.left -= 1;
        if zero.left > 0 {
            return;
        }
        let Zero { request, step, .. } = *zero;
        match (step, result) {
            (ZeroStep::Dropping(next), _) => self.drop_copies(next, request, ctx),
            (ZeroStep::Below, Ok(())) if self.log.is_some() => {
                // What the log still has would otherwise be newer than the zeroes after a power cut.
                self.issue_zero_step(ZeroStep::Flushing, Operation::Flush, Extent::EMPTY, ctx);
            }
            (ZeroStep::Flushing, Err(error)) => {
                self.fail(error, ctx);
                self.end_zero(Err(error), ctx);
            }
            (_, Ok(())) => self.zeroed(request, ctx),
            (_, Err(error)) => self.end_zero(Err(error), ctx),
        }
    }

    fn drop_copies(&mut self, next: u64, request: Request, ctx: &mut Context<'_>) {
        let end = request.extent.end().0.div_ceil(self.settings.block.0);
        if self.ports.copies.is_none() || next == end {
            let operation = match request.operation {
                // A flush follows.
                Operation::Zero { may_unmap, .. } if self.log.is_some() => {
                    Operation::Zero { durability: Durability::Cached, may_unmap }
                }
                operation => operation,
            };
            return self.issue_zero_step(ZeroStep::Below, operation, request.extent, ctx);
        }
        let until = end.min(next + u64::from(DROPS_MAX));
        let zero = self.held.zero.as_mut().expect("a request that zeroes");
        (zero.step, zero.left) = (ZeroStep::Dropping(until), (until - next) as u32);
        for block in next..until {
            let whole = self.extent_of(block);
            let tag = tag(TagKind::Zero, 0);
            self.issue_copy(CopyOperation::Drop, whole, BufferSlice::EMPTY, tag, ctx);
        }
    }

    fn issue_zero_step(
        &mut self,
        step: ZeroStep,
        operation: Operation,
        extent: Extent,
        ctx: &mut Context<'_>,
    ) {
        let zero = self.held.zero.as_mut().expect("a request that zeroes");
        (zero.step, zero.left) = (step, 1);
        ctx.issue(Issue {
            port: self.ports.below,
            operation,
            extent,
            buffer: BufferSlice::EMPTY,
            cause: Cause::Host,
            tag: tag(TagKind::Zero, 0),
        });
    }

    /// The node below has done it: memory and the log forget what they have of it.
    fn zeroed(&mut self, request: Request, ctx: &mut Context<'_>) {
        self.forget(request.extent, ctx);
        if let Some(error) = self.record_zeroed(request.extent, ctx) {
            return self.end_zero(Err(error), ctx);
        }
        let zero = self.held.zero.as_mut().expect("a request that zeroes");
        zero.step = ZeroStep::Recorded;
        let is_forced = request.operation.is_durable();
        let when = match self.ports.log {
            Some(log) if is_forced => self.ledger.answer_when_flushed(log, Token::Zero, ctx),
            _ => self.ledger.answer_when_written(Token::Zero),
        };
        if when == When::Now {
            self.end_zero(Ok(()), ctx);
        }
    }

    pub(super) fn end_zero(&mut self, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        let zero = self.held.zero.take().expect("a request that zeroes");
        ctx.finish(zero.request.id, result);
    }

    /// Memory has nothing of the extent any more.
    fn forget(&mut self, extent: Extent, ctx: &mut Context<'_>) {
        let mut touched = core::mem::take(&mut self.held.touched);
        touched.clear();
        let blocks = self.pieces(extent);
        match extent.blocks.0 / self.settings.block.0 > u64::from(self.blocks.residents()) {
            true => touched.extend(self.replacement.oldest_first()),
            false => touched.extend(blocks.filter_map(|(block, ..)| self.blocks.find(block))),
        }
        for entry in touched.iter().copied() {
            let block = self.blocks.entry(entry).block;
            let whole = self.extent_of(block);
            let Some(inside) = whole.intersection(extent) else {
                continue;
            };
            let first = inside.start.0 - whole.start.0;
            let parts = first..first + inside.blocks.0;
            self.blocks.set(entry, Valid::InFact, parts.clone(), false);
            self.blocks.set(entry, Valid::Decided, parts, false);
            if self.blocks.is_empty(entry, Valid::InFact) {
                self.replacement.remove(entry);
                let slot = self.blocks.free(entry);
                self.memory.give_back(slot, ctx);
            }
        }
        self.held.touched = touched;
    }
}
