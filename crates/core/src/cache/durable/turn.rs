//! What happens at the end of every event of a durable cache: whatever can go on now does.

use super::checkpoint::Checkpointing;
use super::{Cache, Life, SERVICE_BIT, Service};
use crate::buffer::BufferSlice;
use crate::cache::jobs::JobKind;
use crate::durability::{FlushTicket, JournalEvent, Lsn};
use crate::extent::Extent;
use crate::layer::{Context, Issue, Port};
use crate::operation::{Cause, Completion, Operation, Tag};
use crate::planted::PlantedBug;
use crate::units::BlockCount;

impl Cache {
    /// Takes the completion of an operation that belongs to the journal or to the durable parts;
    /// false when it belongs to a job.
    pub(in crate::cache) fn service_done(
        &mut self,
        completion: Completion,
        ctx: &mut Context<'_>,
    ) -> bool {
        let durable = self.durable();
        if durable.journal.owns(completion.tag) {
            durable.journal.complete(completion, ctx);
            return true;
        }
        if completion.tag.0 & SERVICE_BIT == 0 {
            return false;
        }
        match (Service::from_tag(completion.tag.0), completion.result) {
            (Service::IntentRead(page), result) => self.intent_read(page, result, ctx),
            (service, Err(error)) => {
                let again = ctx.is_planted(PlantedBug::FailedFlushRetried);
                if service == Service::BackingFlush && again {
                    self.issue_backing_flush(ctx);
                } else {
                    self.release_page(service, ctx);
                    let durable = self.durable();
                    durable.failed = durable.failed.or(Some(error));
                }
            }
            (Service::BackingFlush, Ok(())) => self.backing_flushed(ctx),
            (Service::IntentWrite, Ok(())) => {
                self.release_page(Service::IntentWrite, ctx);
                let durable = self.durable();
                durable.intent.written(&mut durable.flushes);
            }
        }
        true
    }

    fn release_page(&mut self, service: Service, ctx: &mut Context<'_>) {
        if service == Service::IntentWrite {
            let page = core::mem::replace(&mut self.durable().page, BufferSlice::EMPTY);
            ctx.release(page);
        }
    }

    /// Lets everything go on that can.
    pub(in crate::cache) fn durable_turn(&mut self, ctx: &mut Context<'_>) {
        loop {
            let mut moved = self.take_journal_events(ctx);
            let awaited = self.slots.is_awaited();
            if let Some(error) = self.durable_failure() {
                moved |= self.fail_everything(error, ctx);
            } else {
                moved |= self.write_intents(ctx);
                moved |= self.end_written(ctx);
                moved |= self.admit_writes(ctx);
                moved |= self.free_below(ctx);
                moved |= self.slots.is_awaited() && self.evict_excess(ctx);
                moved |= self.flush_batch_if_needed();
                moved |= self.durable().flush_if_needed(awaited, ctx);
                moved |= self.durable().checkpoint_if_wanted(ctx);
                moved |= self.go_on_with_life(ctx);
            }
            if !moved {
                break;
            }
        }
        let durable = self.durable();
        if durable.failure().is_none() && durable.journal.is_running() {
            durable.journal.commit(ctx);
        }
        if durable.flushes.begin() {
            self.board_batch();
            self.issue_backing_flush(ctx);
        }
        if self.durable().is_still() {
            self.fail_starved(ctx);
        }
        if let Some(at) = self.durable().journal.new_mark_alarm(ctx) {
            ctx.wake_at(at);
        }
    }

    /// Writes down that the last flush is done, when nothing was written for a while.
    pub(in crate::cache) fn mark_last_flush(&mut self, ctx: &mut Context<'_>) {
        let durable = self.durable();
        let kept = durable.journal.reserve();
        let has_room = durable.journal.has_room_for(durable.reserved + 1, kept);
        durable.journal.mark_if_idle(has_room, ctx);
    }

    fn issue_backing_flush(&mut self, ctx: &mut Context<'_>) {
        let nothing = (Extent::EMPTY, BufferSlice::EMPTY);
        self.issue_service(
            Service::BackingFlush,
            Cache::BACKING,
            Operation::Flush,
            nothing,
            ctx,
        );
    }

    fn issue_service(
        &mut self,
        service: Service,
        port: Port,
        operation: Operation,
        place: (Extent, BufferSlice),
        ctx: &mut Context<'_>,
    ) {
        ctx.issue(Issue {
            port,
            operation,
            extent: place.0,
            buffer: place.1,
            cause: Cause::Metadata,
            tag: Tag(service.tag()),
        });
    }

    /// Reads a write-intent page into a buffer of its own.
    pub(super) fn read_intent(&mut self, page: u64, buffer: BufferSlice, ctx: &mut Context<'_>) {
        let place = Extent::new(self.durable().intent.address(page), 1);
        let service = Service::IntentRead(page);
        self.issue_service(
            service,
            Cache::BACKING,
            Operation::Read,
            (place, buffer),
            ctx,
        );
    }

    /// Writes the next write-intent page when there is something to say.
    fn write_intents(&mut self, ctx: &mut Context<'_>) -> bool {
        let durable = self.durable();
        if !durable.intent.advance(&mut durable.flushes) {
            return false;
        }
        let page = ctx.allocate(BlockCount(1));
        ctx.fill_metadata(page, &durable.intent.newest_block());
        durable.page = page;
        let place = Extent::new(durable.intent.newest_address(), 1);
        let service = Service::IntentWrite;
        self.issue_service(
            service,
            Cache::BACKING,
            Operation::WRITE,
            (place, page),
            ctx,
        );
        true
    }

    fn take_journal_events(&mut self, ctx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while let Some(event) = self.durable().journal.next_event() {
            moved = true;
            match event {
                JournalEvent::Recovered(recovery) => self.journal_read(Ok(*recovery), ctx),
                JournalEvent::Refused(error) => self.journal_read(Err(error), ctx),
                JournalEvent::Opened => self.journal_opened(ctx),
                JournalEvent::Written(last) => self.durable().written = Lsn(last.0 + 1),
                JournalEvent::Flushed { ticket, .. } => self.journal_flushed(ticket, ctx),
                JournalEvent::Checkpointed { .. } => {
                    let durable = self.durable();
                    durable.checkpointing = Checkpointing::No;
                    let generation = durable.journal.generation();
                    durable.intent.confirm(generation, false);
                    self.empty_quarantine(ctx);
                }
                JournalEvent::Closed => self.journal_closed(),
                // The turn finds the failure and ends what waits.
                JournalEvent::Failed(_) => {}
            }
        }
        moved
    }

    fn journal_flushed(&mut self, done: FlushTicket, ctx: &mut Context<'_>) {
        let durable = self.durable();
        if durable.own_flush.is_some_and(|ticket| ticket <= done) {
            durable.own_flush = None;
        }
        while let Some((ticket, id)) = self.durable().after_flushed.front().copied() {
            if ticket > done {
                break;
            }
            self.durable().after_flushed.pop_front();
            self.record_durable(id, ctx);
        }
        self.empty_quarantine(ctx);
    }

    fn record_durable(&mut self, id: u32, ctx: &mut Context<'_>) {
        match self.jobs.get(id).kind {
            JobKind::FlashWrite => self.end_write(id, ctx),
            JobKind::BackingWrite => self.below_done(id, ctx),
            JobKind::Destage => self.copy_durable(id, ctx),
            _ => self.flush_part_done(id, ctx),
        }
    }

    /// Goes on with the jobs whose records have been written.
    fn end_written(&mut self, ctx: &mut Context<'_>) -> bool {
        let mut moved = false;
        loop {
            let durable = self.durable();
            let Some(id) = durable.after_written.pop_up_to(durable.written) else {
                return moved;
            };
            moved = true;
            let forced = self.jobs.get(id).operation.is_durable();
            if forced && !ctx.is_planted(PlantedBug::FuaAsPlain) {
                let durable = self.durable();
                let ticket = durable.flush_journal(ctx);
                durable.after_flushed.push_back((ticket, id));
            } else {
                self.record_durable(id, ctx);
            }
        }
    }

    /// True when the cache serves as it should.
    pub(in crate::cache) fn durable_serves(&self) -> bool {
        let durable = self.durable.as_deref().expect("a durable cache");
        matches!(durable.life, Life::Running) && durable.failure().is_none()
    }
}
