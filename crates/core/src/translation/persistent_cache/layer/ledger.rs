//! What the ledger says, and what waits for it: answers, flushes, room in the log.

use super::{PersistentCache, Timer};
use crate::durability::{FlushTicket, Lsn};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Layer};
use crate::ledger::{LedgerEvent, When};
use crate::translation::persistent_cache::checkpoint::encode_checkpoint;
use crate::translation::persistent_cache::records::Entry;
use crate::translation::persistent_cache::recovery::Recovering;
use alloc::vec::Vec;

/// Records that a rewrite and the writing of a table may still append, beside those of writes.
const RECORDS_IN_RESERVE: u64 = 3;

impl PersistentCache {
    /// Sends off what was recorded and takes what the ledger says; false when it said nothing.
    #[inline]
    pub(super) fn take_ledger_events(&mut self, ctx: &mut Context<'_>) -> bool {
        !self.ledger.is_silent() && self.take_all_events(ctx)
    }

    fn take_all_events(&mut self, ctx: &mut Context<'_>) -> bool {
        self.advance_tables(ctx);
        self.ledger.commit(ctx);
        let mut has_heard = false;
        while let Some(event) = self.ledger.next_event() {
            // The ledger repeats its failure, so that nobody waits who has begun to since.
            let is_repeated = matches!(event, LedgerEvent::Failed { is_first: false, .. });
            has_heard |= !is_repeated;
            self.take_event(event, ctx);
        }
        if let Some(at) = self.ledger.new_mark_alarm(ctx) {
            self.alarms.set(Timer::Mark, at, ctx);
        }
        has_heard
    }

    fn take_event(&mut self, event: LedgerEvent<u32>, ctx: &mut Context<'_>) {
        match event {
            LedgerEvent::Blank => {
                let map = self.encode_map();
                self.ledger.begin(map, ctx);
            }
            LedgerEvent::Recovered(recovery) => {
                let recovered = Recovering::new(&self.shape, &mut self.blocks, &mut self.checksums)
                    .take_back(&recovery, ctx);
                match recovered {
                    Ok(may_take_writes) => {
                        self.rewriter.scratch_band = self.blocks.salvage.map(|it| it.band);
                        if !may_take_writes {
                            self.ledger.refuse_writes(IoError::Medium);
                        }
                        let map = self.encode_map();
                        self.ledger.begin(map, ctx);
                    }
                    Err(error) => {
                        self.ledger.give_up();
                        ctx.opened(Err(error));
                    }
                }
            }
            LedgerEvent::Opened => self.opened(ctx),
            LedgerEvent::Refused(_) if self.awaiting_format.is_some() => {
                self.lost(PersistentCache::LOG, ctx)
            }
            LedgerEvent::Refused(error) => ctx.opened(Err(error)),
            LedgerEvent::Written => {
                while let Some(job) = self.ledger.next_written() {
                    self.finish(job, ctx);
                }
            }
            LedgerEvent::Flushed { token, .. } => self.finish(token, ctx),
            LedgerEvent::PlacesFree => self.flushes_done(ctx),
            LedgerEvent::Checkpointed => {
                let position = self.undo.checkpoint_done();
                self.blocks.log.release(position);
            }
            LedgerEvent::Drain => match self.mover.is_moving() {
                true => self.mover.closes = true,
                false => self.close_ledger(ctx),
            },
            LedgerEvent::Closed(result) => ctx.closed(result),
            LedgerEvent::Failed { error, .. } => self.ledger_failed(error, ctx),
            // Maps are handed over whole.
            LedgerEvent::PieceWanted => {}
            // There is one copy of the journal.
            LedgerEvent::CopyAdmitted(_) | LedgerEvent::CopyOut(_) => {}
        }
    }

    /// Writes the last map.
    pub(super) fn close_ledger(&mut self, ctx: &mut Context<'_>) {
        let map = self.encode_map();
        self.ledger.close(map, ctx);
    }

    fn opened(&mut self, ctx: &mut Context<'_>) {
        self.checksums.member = self.ledger.member();
        self.undo.opened(self.blocks.lost_blocks());
        let position = self.blocks.log.superseded_before();
        self.blocks.log.release(position);
        match self.awaiting_format.take() {
            // A new disk was formatted.
            Some(waiting) => waiting.into_iter().for_each(|request| self.submit(request, ctx)),
            None => ctx.opened(Ok(())),
        }
    }

    /// Flushes are done, and whoever has asked for them was answered: slots are free, and a table
    /// and a rewrite that waited go on.
    fn flushes_done(&mut self, ctx: &mut Context<'_>) {
        let ledger = &self.ledger;
        let is_flushed = |ticket| ledger.is_flushed(ticket);
        while let Some(position) = self.undo.next_release(is_flushed) {
            self.blocks.log.release(position);
        }
        self.table_flushed(ctx);
        let ledger = &self.ledger;
        let transaction = &mut self.firmware.transaction;
        if transaction.is_flushed(|ticket| ledger.is_flushed(ticket)) {
            self.end_commit(Ok(()));
        }
        let ledger = &self.ledger;
        if self.undo.rewrite_goes_on(|ticket| ledger.is_flushed(ticket)) {
            self.continue_rewrite(ctx);
        }
    }

    /// Nothing becomes durable any more: what waits for it fails.
    fn ledger_failed(&mut self, error: IoError, ctx: &mut Context<'_>) {
        self.undo.forget_releases();
        while let Some(job) = self.ledger.next_failed() {
            self.fail(job, error, ctx);
        }
        self.table_loses_its_flush(ctx);
        if self.firmware.transaction.is_flushed(|_| true) {
            self.end_commit(Ok(()));
        }
        if self.undo.end_of_waiting() {
            self.fail_rewrite(error, ctx);
        }
    }

    /// Writes down that the last flush is done, when nothing was written for a while. A rewrite has
    /// records of its own, which say so too, and a mark would cost it two seeks.
    pub(super) fn mark_last_flush(&mut self, ctx: &mut Context<'_>) {
        let is_idle = self.rewriter.current().is_none()
            && self.writes.queue.is_empty()
            && self.writes.in_flight() == 0;
        let has_room = self.ledger.has_room() && self.ledger.room() > RECORDS_IN_RESERVE + 1;
        self.ledger.mark_if_idle(is_idle && has_room, ctx);
    }

    /// Appends a record that speaks of no data; returns its place.
    pub(super) fn record(&mut self, entry: &Entry, ctx: &mut Context<'_>) -> Lsn {
        let (kind, payload) = entry.encode();
        self.ledger.record(kind, payload.bytes(), ctx)
    }

    /// Says that the write of `extent` failed.
    pub(super) fn record_lost(&mut self, extent: Extent, ctx: &mut Context<'_>) {
        self.record(&Entry::Lost(extent), ctx);
        self.undo.lose(extent.blocks.0);
        if self.blocks.lost_blocks() > self.shape.conduct.lost_blocks_max {
            self.ledger.refuse_writes(IoError::Medium);
        }
    }

    /// True when a record is there that a power cut could still undo.
    pub(super) fn is_unsure(&self, record: Option<Lsn>) -> bool {
        record.is_some_and(|record| !self.ledger.is_durable(record))
    }

    /// Answers a job when everything recorded and written so far is durable.
    pub(super) fn answer_when_flushed(&mut self, job: u32, ctx: &mut Context<'_>) -> When {
        let ticket = self.flush_ledger(ctx);
        self.ledger.answer_after_flush(ticket, job)
    }

    /// Begins a flush. What superseded slots before it, slots of writes in flight excepted, is
    /// durable when it is done.
    pub(super) fn flush_ledger(&mut self, ctx: &mut Context<'_>) -> FlushTicket {
        let position = self.recorded_before();
        let ticket = self.ledger.flush(ctx);
        if !self.ledger.is_flushed(ticket) {
            self.undo.release_after(ticket, position);
        }
        ticket
    }

    /// The position before which every slot is superseded by what is recorded.
    fn recorded_before(&mut self) -> u64 {
        let position = self.blocks.log.superseded_before();
        self.writes.recorded_before(position)
    }

    /// Begins a flush when recovery would have to read too much.
    pub(super) fn flush_when_much_is_unflushed(&mut self, ctx: &mut Context<'_>) {
        if self.ledger.has_too_much_unflushed() {
            self.flush_ledger(ctx);
        }
    }

    /// Begins a flush for writes that wait for slots. When it would free none, they wait for the
    /// end of a write in flight first.
    pub(super) fn flush_for_slots(&mut self, ctx: &mut Context<'_>) {
        if self.recorded_before() > self.blocks.log.released() {
            self.flush_for_room(ctx);
        }
    }

    /// Begins a flush for writes that wait, unless one is on its way.
    pub(super) fn flush_for_room(&mut self, ctx: &mut Context<'_>) {
        let position = self.recorded_before();
        if let Some(ticket) = self.ledger.flush_for_itself(ctx) {
            self.undo.release_after(ticket, position);
        }
    }

    /// True when no write may begin: the ledger has no room, or a checkpoint waits for the writes
    /// in flight to end.
    #[inline]
    pub(super) fn ledger_holds_writes(&self) -> bool {
        self.ledger.wants_checkpoint()
            || !self.ledger.has_room()
            || self.journal_is_full()
            || self.may_lose_too_much()
    }

    /// True when the journal has no more room than for what is under way: a write, or a rewrite that
    /// goes on with another stretch, must wait for a checkpoint.
    #[inline]
    pub(super) fn journal_is_full(&self) -> bool {
        self.records_to_spare() == 0
    }

    /// Records beyond those of what is under way that the journal has room for.
    pub(super) fn records_to_spare(&self) -> u64 {
        let kept = u64::from(self.writes.in_flight()) + RECORDS_IN_RESERVE;
        self.ledger.room().saturating_sub(kept)
    }

    /// True when so much is lost, or would be if all writes in flight failed, that another write
    /// waits: for the end of those, or for a checkpoint that forgets what was lost and is there
    /// again.
    #[inline]
    fn may_lose_too_much(&self) -> bool {
        let lost = self.undo.lost_since();
        lost + self.writes.blocks_in_flight() > self.shape.conduct.lost_blocks_max
            && (self.writes.in_flight() > 0 || lost > self.blocks.lost_blocks())
    }

    /// Begins a checkpoint if one is due and no write is in flight.
    pub(super) fn checkpoint_when_due(&mut self, ctx: &mut Context<'_>) {
        if self.writes.in_flight() > 0 || self.undo.awaits_checkpoint() {
            return;
        }
        let is_due = self.ledger.wants_checkpoint() || self.may_lose_too_much();
        if !is_due || !self.ledger.is_running() {
            return;
        }
        let position = self.blocks.log.superseded_before();
        self.undo.checkpoint_begins(position, self.blocks.lost_blocks());
        if !self.ledger.checkpoint_by_records(ctx) {
            let map = self.encode_map();
            self.ledger.checkpoint(map, ctx);
        }
    }

    /// The map with every record so far in it. No write is in flight.
    fn encode_map(&self) -> Vec<u8> {
        let in_flight = self.writes.in_flight();
        assert_eq!(in_flight, 0, "a checkpoint of a write in flight");
        encode_checkpoint(&self.shape, &self.blocks, &self.checksums)
    }
}
