//! What happens at the end of every event: whatever can go on now does.

use super::life::{Checkpointing, Closing, Life};
use crate::buffer::BufferSlice;
use crate::cache::Cache;
use crate::cache::jobs::JobKind;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Issue, Port};
use crate::ledger::{LedgerEvent, Stage, When};
use crate::operation::{Cause, Completion, Operation, Tag};
use crate::planted::PlantedBug;
use crate::units::BlockCount;

/// Tags with this bit belong to write-intent pages, and not to a job.
const INTENT_BIT: u64 = 1 << 61;

/// An operation on the write-intent pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum IntentOperation {
    /// Writes the newest page.
    Write,
    /// Reads a page, by its number, when the cache comes up.
    Read(u64),
}

impl IntentOperation {
    fn tag(self) -> Tag {
        Tag(INTENT_BIT
            | match self {
                IntentOperation::Write => 0,
                IntentOperation::Read(page) => 1 + page,
            })
    }

    fn from_tag(tag: Tag) -> Option<IntentOperation> {
        if tag.0 & INTENT_BIT == 0 {
            return None;
        }
        Some(match tag.0 & !INTENT_BIT {
            0 => IntentOperation::Write,
            page => IntentOperation::Read(page - 1),
        })
    }
}

impl Cache {
    /// Takes the completion of an operation on the write-intent pages; false when it belongs to a
    /// job.
    #[inline]
    pub(in crate::cache) fn intent_operation_done(
        &mut self,
        completion: Completion,
        ctx: &mut Context<'_>,
    ) -> bool {
        let operation = IntentOperation::from_tag(completion.tag);
        match operation {
            None => return false,
            Some(IntentOperation::Read(page)) => self.intent_read(page, completion.result, ctx),
            Some(IntentOperation::Write) => self.intent_written(completion.result, ctx),
        }
        true
    }

    fn intent_written(&mut self, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        let page = core::mem::replace(&mut self.intent.page, BufferSlice::EMPTY);
        ctx.release(page);
        match (result, self.ledger.flushes_of(Cache::BACKING)) {
            (Err(error), _) => self.ledger.fail(error),
            (Ok(()), Some(flushes)) => self.intent.written(flushes),
            (Ok(()), None) => {}
        }
    }

    /// Lets everything go on that can.
    #[inline]
    pub(in crate::cache) fn advance(&mut self, ctx: &mut Context<'_>) {
        match self.ledger.is_volatile() {
            // Nothing waits for the end of an event but who gets no slot.
            true if self.destages.failure.is_none() => {}
            true => self.deny_slots_when_stuck(ctx),
            false => self.advance_until_still(ctx),
        }
    }

    fn advance_until_still(&mut self, ctx: &mut Context<'_>) {
        loop {
            let mut moved = self.take_ledger_events(ctx);
            let is_slot_awaited = self.slots.is_awaited();
            if let Some(error) = self.ledger.failure() {
                moved |= self.fail_all_waiting(error, ctx);
            } else {
                moved |= self.write_intents(ctx);
                moved |= self.answer_written(ctx);
                moved |= self.issue_writes_in_turn(ctx);
                moved |= self.free_below(ctx);
                moved |= self.slots.is_awaited() && self.evict_excess(ctx);
                moved |= self.flush_batch_if_needed();
                moved |= self.flush_flash_if_needed(is_slot_awaited, ctx);
                moved |= self.checkpoint_if_wanted(ctx);
                moved |= self.open_or_close_further(ctx);
            }
            if !moved {
                break;
            }
        }
        if self.ledger.failure().is_none() {
            self.ledger.commit(ctx);
        }
        self.ledger.begin_flushes(ctx);
        if self.is_still() {
            self.deny_slots_when_stuck(ctx);
        }
        if let Some(at) = self.ledger.new_mark_alarm(ctx) {
            ctx.wake_at(at);
        }
    }

    /// True when nothing is under way that could set something else going, operations of jobs
    /// apart.
    fn is_still(&mut self) -> bool {
        self.ledger.is_idle()
            && self.intent.is_settled()
            && self.is_batch_empty()
            && !self.table.has_quarantined()
            && self.checkpointing == Checkpointing::No
    }

    /// Writes down that the last flush is done, when nothing was written for a while.
    pub(in crate::cache) fn mark_last_flush(&mut self, ctx: &mut Context<'_>) {
        let has_room = self.ledger.has_spare_room(1);
        self.ledger.mark_if_idle(has_room, ctx);
    }

    fn issue_for_intent(
        &mut self,
        what: IntentOperation,
        operation: Operation,
        address: u64,
        buffer: BufferSlice,
        ctx: &mut Context<'_>,
    ) {
        ctx.issue(Issue {
            port: Cache::BACKING,
            operation,
            extent: Extent::new(address, 1),
            buffer,
            cause: Cause::Metadata,
            tag: what.tag(),
        });
    }

    /// Reads a write-intent page into a buffer of its own.
    pub(super) fn read_intent(&mut self, page: u64, buffer: BufferSlice, ctx: &mut Context<'_>) {
        let address = self.intent.address(page);
        let what = IntentOperation::Read(page);
        self.issue_for_intent(what, Operation::Read, address, buffer, ctx);
    }

    /// Writes the next write-intent page when there is something to say.
    fn write_intents(&mut self, ctx: &mut Context<'_>) -> bool {
        let flushes = self.ledger.flushes_of(Cache::BACKING);
        if !flushes.is_some_and(|flushes| self.intent.advance(flushes)) {
            return false;
        }
        let page = ctx.allocate(BlockCount(1));
        ctx.fill_metadata(page, &self.intent.newest_block());
        self.intent.page = page;
        let address = self.intent.newest_address();
        self.issue_for_intent(IntentOperation::Write, Operation::WRITE, address, page, ctx);
        true
    }

    /// Takes out what the ledger has to say. True when there was something.
    pub(in crate::cache) fn take_ledger_events(&mut self, ctx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while let Some(event) = self.ledger.next_event() {
            moved = true;
            match event {
                LedgerEvent::Blank => self.begin_format(),
                LedgerEvent::Recovered(recovery) => self.journal_read(Ok(*recovery), ctx),
                LedgerEvent::Refused(error) => self.journal_read(Err(error), ctx),
                LedgerEvent::Opened => self.opened(ctx),
                LedgerEvent::Flushed { port, token } => self.flushed(port, token, ctx),
                LedgerEvent::PlacesFree => self.empty_quarantine(ctx),
                LedgerEvent::PieceWanted => {
                    let piece = self.table.next_piece();
                    self.ledger.take_piece(piece, ctx);
                }
                LedgerEvent::Checkpointed => {
                    self.table.end_checkpoint();
                    self.checkpointing = Checkpointing::No;
                    let generation = self.ledger.generation();
                    self.intent.confirm(generation, false);
                }
                LedgerEvent::Drain => {
                    self.life = Life::Closing(Closing::Draining);
                    self.destages.batch.is_urgent = true;
                }
                LedgerEvent::Closed(result) => self.ledger_closed(result, ctx),
                // What is written is answered later, and a failure ends what waits.
                LedgerEvent::Written | LedgerEvent::Failed { .. } => {}
                // There is one copy of the journal.
                LedgerEvent::CopyAdmitted(_) | LedgerEvent::CopyOut(_) => {}
            }
        }
        moved
    }

    /// A port was flushed for a job.
    fn flushed(&mut self, port: Port, id: u32, ctx: &mut Context<'_>) {
        match (self.jobs.get(id).kind, port) {
            (JobKind::Destage | JobKind::BackingWrite, Cache::BACKING) => {
                self.destages.batch.freeing.push_back(id);
            }
            _ => self.record_durable(id, ctx),
        }
    }

    /// The records of a job are written, or durable where it was forced; or a port is flushed for
    /// it.
    fn record_durable(&mut self, id: u32, ctx: &mut Context<'_>) {
        match self.jobs.get(id).kind {
            JobKind::FreshWrite => self.end_write(id, ctx),
            JobKind::BackingWrite => self.below_done(id, ctx),
            JobKind::Destage => self.flash_copy_durable(id, ctx),
            JobKind::ZoneReset => self.reset_zone(id, ctx),
            _ => self.flush_part_done(id, ctx),
        }
    }

    /// Goes on with the jobs whose records have been written.
    fn answer_written(&mut self, ctx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while let Some(id) = self.ledger.next_written() {
            moved = true;
            let is_forced = self.jobs.get(id).operation.is_durable();
            let needs_flush = is_forced && !ctx.is_planted(PlantedBug::FuaAsPlain);
            let flash = Cache::FLASH;
            if !needs_flush || self.ledger.answer_when_flushed(flash, id, ctx) == When::Now {
                self.record_durable(id, ctx);
            }
        }
        moved
    }

    /// Flushes the flash when nobody else does and somebody needs it: those who wait for a slot of
    /// the quarantine, or recovery, which must not have to read too much.
    fn flush_flash_if_needed(&mut self, is_slot_awaited: bool, ctx: &mut Context<'_>) -> bool {
        let slots = is_slot_awaited && self.table.has_quarantined();
        let needed = slots || self.ledger.has_too_much_unflushed();
        needed && self.ledger.flush_for_itself(ctx).is_some()
    }

    /// Begins a checkpoint when the ledger wants one, or goes on with it.
    fn checkpoint_if_wanted(&mut self, ctx: &mut Context<'_>) -> bool {
        match self.checkpointing {
            Checkpointing::No
                if self.ledger.wants_checkpoint() || self.table.has_many_changes() =>
            {
                if self.ledger.stage() != Stage::Running {
                    return false;
                }
                self.checkpointing = Checkpointing::Announced;
                self.intent.announce(self.ledger.next_generation());
                true
            }
            Checkpointing::Announced if self.intent.is_settled() => {
                self.checkpointing = Checkpointing::Writing;
                if ctx.is_planted(PlantedBug::ChangeLeftOut) {
                    self.table.leave_out_newest_change();
                }
                let ledger = &self.ledger;
                let next = self.table.begin_checkpoint(|bytes| ledger.has_place_for_part(bytes));
                self.ledger.checkpoint_in_pieces(next.bytes, next.is_part, ctx);
                true
            }
            _ => false,
        }
    }
}
