//! What becomes of everything in hand when nothing can be made durable any more.

use super::life::Life;
use crate::cache::Cache;
use crate::cache::entries::Flag;
use crate::cache::jobs::{Event, JobKind};
use crate::cache::slots::SlotWaiter;
use crate::error::IoError;
use crate::layer::Context;
use crate::ledger::Stage;
use crate::operation::{Operation, Request};

impl Cache {
    /// A request to a cache that cannot make anything durable any more, or that is not up.
    pub(in crate::cache) fn submit_failed(&mut self, request: Request, ctx: &mut Context<'_>) {
        let is_up = self.ledger.stage() == Stage::Running;
        let is_shut = !is_up && !matches!(self.life, Life::Degraded(_));
        let is_readable = request.operation == Operation::Read && !is_shut;
        if is_readable && self.is_newest_below(request.extent, ctx) {
            return self.read_unchanged(request, ctx);
        }
        let error = if is_shut {
            IoError::ShutDown
        } else {
            self.ledger.failure().unwrap_or(IoError::Medium)
        };
        ctx.finish(request.id, Err(error));
    }

    /// Ends whatever waits for something to become durable. True when there was something.
    pub(super) fn fail_all_waiting(&mut self, error: IoError, ctx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while let Some(id) = self.host_writes.turns.pop_front() {
            self.fail_write(id, error, ctx);
            moved = true;
        }
        while let Some(waiter) = self.slots.pop_waiting() {
            self.deny_slot(waiter, error, ctx);
            moved = true;
        }
        while let Some(id) = self.next_waiting() {
            self.jobs.get_mut(id).error.get_or_insert(error);
            match self.jobs.get(id).kind {
                JobKind::FreshWrite => self.end_write(id, ctx),
                JobKind::Destage if self.jobs.get(id).outstanding > 0 => {
                    self.flash_copy_durable(id, ctx);
                }
                JobKind::Destage => self.destage_done(id, ctx),
                JobKind::Flush => self.flush_part_done(id, ctx),
                JobKind::ZoneReset => self.end_reset(id, ctx),
                _ => self.below_done(id, ctx),
            }
            moved = true;
        }
        if moved {
            self.advance_destages(ctx);
            self.set_gauges(ctx);
        }
        moved
    }

    /// A job that waits for a record, a flush or room.
    fn next_waiting(&mut self) -> Option<u32> {
        let failed = self.ledger.next_failed();
        failed.or_else(|| self.destages.batch.freeing.pop_front())
    }

    /// Tells who waits for a slot that none will come: a read does without, a write fails.
    pub(in crate::cache) fn deny_slot(
        &mut self,
        waiter: SlotWaiter,
        error: IoError,
        ctx: &mut Context<'_>,
    ) {
        match waiter {
            SlotWaiter::Entry(id) => {
                self.entries.get_mut(id).clear(Flag::AwaitsSlot);
                self.notify(id, Event::Slotted, Some(error), ctx);
            }
            SlotWaiter::Job(id) => {
                self.jobs.get_mut(id).error.get_or_insert(error);
                self.unblock(id, ctx);
            }
        }
    }
}
