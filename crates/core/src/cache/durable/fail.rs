//! What becomes of everything in hand when nothing can be made durable any more.

use super::{Cache, Life};
use crate::cache::entries::Flag;
use crate::cache::jobs::{Event, JobKind};
use crate::cache::slots::SlotWaiter;
use crate::error::IoError;
use crate::layer::Context;
use crate::lifecycle::OpenError;

impl Cache {
    /// Ends whatever waits for something to become durable. True when there was something.
    pub(super) fn fail_everything(&mut self, error: IoError, ctx: &mut Context<'_>) -> bool {
        match self.durable().life {
            Life::Opening(_) => {
                self.durable().life = Life::Shut;
                ctx.opened(Err(OpenError::Io(error)));
                return true;
            }
            Life::Closing(_) => {
                self.durable().life = Life::Shut;
                ctx.closed(Err(error));
                return true;
            }
            Life::Shut | Life::Running | Life::Degraded(_) => {}
        }
        let mut moved = false;
        while let Some(id) = self.durable().gate.pop_front() {
            self.fail_write(id, error, ctx);
            moved = true;
        }
        while let Some(waiter) = self.slots.pop_waiting() {
            self.starve(waiter, error, ctx);
            moved = true;
        }
        while let Some(id) = self.next_waiting() {
            self.jobs.get_mut(id).error.get_or_insert(error);
            match self.jobs.get(id).kind {
                JobKind::FlashWrite => self.end_write(id, ctx),
                JobKind::Destage if self.jobs.get(id).outstanding > 0 => {
                    self.copy_durable(id, ctx);
                }
                JobKind::Destage => self.destage_done(id, ctx),
                JobKind::Flush => self.flush_part_done(id, ctx),
                _ => self.below_done(id, ctx),
            }
            moved = true;
        }
        if moved {
            self.pump_destages(ctx);
            self.set_gauges(ctx);
        }
        moved
    }

    /// A job that waits for a record, a flush or room.
    fn next_waiting(&mut self) -> Option<u32> {
        let durable = self.durable();
        let batch = &mut durable.batch;
        durable
            .after_written
            .pop()
            .or_else(|| durable.after_flushed.pop_front().map(|(_, id)| id))
            .or_else(|| durable.after_backing.pop_front().map(|(_, id)| id))
            .or_else(|| batch.written.pop())
            .or_else(|| batch.riding.pop())
            .or_else(|| batch.freeing.pop_front())
    }

    /// Tells who waits for a slot that none will come: a read does without, a write fails.
    pub(in crate::cache) fn starve(
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
