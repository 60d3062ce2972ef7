//! What the journal says, and what waits for it: answers, flushes, room in the log.

use super::records::Entry;
use super::{Durable, LOST_BLOCKS_TAKEN, Stage};
use crate::durability::{DataRef, FlushTicket, JournalEvent, LayerKind, Lsn};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::lifecycle::{OpenError, Start, Uuid};
use crate::operation::{Completion, Operation};
use crate::planted::PlantedBug;
use crate::translation::persistent_cache::PersistentCache;
use crate::translation::timers::Timer;
use crate::units::BlockCount;
use alloc::vec::Vec;

/// Records that a rewrite and the writing of a table may still append, beside those of writes.
const RECORDS_IN_RESERVE: u64 = 3;

/// The name of the disk's member in a set.
fn member_of(set: Uuid) -> Uuid {
    set.member(LayerKind::PersistentCache as u16)
}

impl PersistentCache {
    /// The durable half; only called where there is one.
    pub(in crate::translation) fn durable(&mut self) -> &mut Durable {
        self.durable.as_mut().expect("a durable translation")
    }

    pub(in crate::translation) fn open_durably(&mut self, start: Start, ctx: &mut Context<'_>) {
        match start {
            Start::Format(set) => {
                let empty = self.encode_checkpoint();
                let journal = &mut self.durable().journal;
                journal.format(set, member_of(set), empty, ctx);
            }
            Start::Recover(set) => {
                let expected = set.map(|set| (set, member_of(set)));
                self.durable().journal.open(expected, ctx);
            }
        }
        self.settle(ctx);
    }

    pub(in crate::translation) fn close_durably(&mut self, ctx: &mut Context<'_>) {
        if let Some(error) = self.durable().failure() {
            return ctx.closed(Err(error));
        }
        self.durable().stage = Stage::Closing;
        let checkpoint = self.encode_checkpoint();
        self.durable().journal.close(checkpoint, ctx);
        self.settle(ctx);
    }

    /// An operation of the journal has finished.
    pub(in crate::translation) fn complete_for_journal(
        &mut self,
        completion: Completion,
        ctx: &mut Context<'_>,
    ) {
        self.durable().journal.complete(completion, ctx);
        self.settle(ctx);
    }

    /// Sends off what was appended and takes what the journal says; false when it said nothing.
    pub(in crate::translation) fn settle_durably(&mut self, ctx: &mut Context<'_>) -> bool {
        self.advance_tables(ctx);
        self.durable().journal.commit(ctx);
        let mut heard = false;
        while let Some(event) = self.durable().journal.next_event() {
            // The journal repeats its failure, so that nobody waits who has begun to since.
            heard |= !(self.durable().has_failed && matches!(event, JournalEvent::Failed(_)));
            self.handle_journal_event(event, ctx);
        }
        if let Some(at) = self.durable().journal.new_mark_alarm(ctx) {
            self.set_timer(Timer::Mark, at, ctx);
        }
        heard
    }

    /// Writes down that the last flush is done, when nothing was written for a while. A rewrite has
    /// records of its own, which say so too, and a mark would cost it two seeks.
    pub(in crate::translation) fn mark_last_flush(&mut self, ctx: &mut Context<'_>) {
        let is_idle = self.rewrite.is_none() && self.queue.is_empty() && self.writes_in_flight == 0;
        let journal = &mut self.durable().journal;
        let has_room = journal.has_room() && journal.room() > RECORDS_IN_RESERVE + 1;
        journal.mark_if_idle(is_idle && has_room, ctx);
    }

    fn handle_journal_event(&mut self, event: JournalEvent, ctx: &mut Context<'_>) {
        match event {
            JournalEvent::Recovered(recovery) => match self.take_back(&recovery, ctx) {
                Ok(()) => {
                    let checkpoint = self.encode_checkpoint();
                    self.durable().journal.begin(checkpoint, ctx);
                }
                Err(error) => ctx.opened(Err(error)),
            },
            JournalEvent::Opened => {
                let lost = self.lost_blocks();
                self.durable().stage = Stage::Running;
                self.durable().lost_since = lost;
                let position = self.log.superseded_before();
                self.log.release(position);
                ctx.opened(Ok(()));
            }
            JournalEvent::Refused(error) => ctx.opened(Err(error)),
            JournalEvent::Written(lsn) => {
                while let Some(job) = self.durable().answers.pop_up_to(lsn) {
                    self.finish(job, ctx);
                }
            }
            JournalEvent::Flushed { ticket, .. } => self.flushed(ticket, ctx),
            JournalEvent::Checkpointed { .. } => {
                let durable = self.durable.as_mut().expect("a durable translation");
                durable.lost_since -= durable.checkpoint_forgets;
                self.log.release(durable.checkpoint_release);
            }
            JournalEvent::Closed => ctx.closed(Ok(())),
            JournalEvent::Failed(error) => self.journal_failed(error, ctx),
        }
    }

    fn flushed(&mut self, done: FlushTicket, ctx: &mut Context<'_>) {
        let durable = self.durable.as_mut().expect("a durable translation");
        while let Some((ticket, position)) = durable.releases.front().copied()
            && ticket <= done
        {
            durable.releases.pop_front();
            self.log.release(position);
        }
        if durable.room_flush.is_some_and(|ticket| ticket <= done) {
            durable.room_flush = None;
        }
        while let Some((ticket, job)) = self.durable().flushes.front().copied()
            && ticket <= done
        {
            self.durable().flushes.pop_front();
            self.finish(job, ctx);
        }
        self.table_flushed(done, ctx);
        self.rewrite_flushed(done, ctx);
    }

    /// Nothing becomes durable any more: what waits for it fails.
    fn journal_failed(&mut self, error: IoError, ctx: &mut Context<'_>) {
        let stage = self.durable().stage;
        self.durable().has_failed = true;
        match stage {
            Stage::Opening => return ctx.opened(Err(OpenError::Io(error))),
            Stage::Closing => return ctx.closed(Err(error)),
            Stage::Running => {}
        }
        let mut jobs = Vec::new();
        let durable = self.durable();
        durable.room_flush = None;
        durable.releases.clear();
        while let Some(job) = durable.answers.pop() {
            jobs.push(job);
        }
        jobs.extend(durable.flushes.drain(..).map(|(_, job)| job));
        for job in jobs {
            self.jobs[job as usize].result = Err(error);
            self.finish(job, ctx);
        }
        self.table_write_failed(ctx);
        self.rewrite_lost_its_journal(error, ctx);
    }

    /// Appends a record.
    pub(super) fn record(
        &mut self,
        entry: &Entry,
        data: Option<DataRef<'_>>,
        ctx: &mut Context<'_>,
    ) -> Lsn {
        let (kind, payload) = entry.encode();
        let durable = self.durable();
        let lsn = durable.journal.append(kind, payload.bytes(), data, ctx);
        durable.last_record = lsn;
        lsn
    }

    /// Begins a flush. What superseded slots before it, slots of writes in flight excepted, is
    /// durable when it is done.
    pub(super) fn flush_durably(&mut self, ctx: &mut Context<'_>) -> FlushTicket {
        let position = self.recorded_before();
        let durable = self.durable();
        let ticket = durable.journal.flush(ctx);
        durable.unflushed_blocks = 0;
        match durable.releases.back_mut() {
            Some((last, release)) if *last == ticket => *release = position.max(*release),
            _ => durable.releases.push_back((ticket, position)),
        }
        ticket
    }

    /// The position before which every slot is superseded by what is recorded.
    fn recorded_before(&mut self) -> u64 {
        let position = self.log.superseded_before();
        let in_flight = self.durable().superseding.iter().copied().min();
        in_flight.map_or(position, |lowest| lowest.min(position))
    }

    /// A flush of the host: answered when every record before it is durable.
    pub(in crate::translation) fn flush_for(&mut self, job: u32, ctx: &mut Context<'_>) {
        if let Some(error) = self.durable().failure() {
            self.jobs[job as usize].result = Err(error);
            return self.finish(job, ctx);
        }
        let ticket = self.flush_durably(ctx);
        self.durable().flushes.push_back((ticket, job));
    }

    /// Begins a flush for writes that wait for slots. When it would free none, they wait for the
    /// end of a write in flight first.
    pub(in crate::translation) fn flush_for_slots(&mut self, ctx: &mut Context<'_>) {
        if self.recorded_before() > self.log.released() {
            self.flush_for_room(ctx);
        }
    }

    /// Begins a flush for writes that wait, unless one is on its way.
    pub(super) fn flush_for_room(&mut self, ctx: &mut Context<'_>) {
        let durable = self.durable();
        if durable.room_flush.is_none() && durable.failure().is_none() {
            let ticket = self.flush_durably(ctx);
            self.durable().room_flush = Some(ticket);
        }
    }

    /// Answers a job of which nothing is in flight any more, now or when the journal allows it.
    pub(in crate::translation) fn conclude(&mut self, job: u32, ctx: &mut Context<'_>) {
        let entry = &self.jobs[job as usize];
        let operation = entry.request.operation;
        let changes = matches!(operation, Operation::Write { .. } | Operation::Zero { .. });
        let failure = self.durable.as_ref().and_then(|durable| durable.failure());
        if self.durable.is_none() || !changes || entry.result.is_err() {
            return self.finish(job, ctx);
        }
        if let Some(error) = failure {
            self.jobs[job as usize].result = Err(error);
            return self.finish(job, ctx);
        }
        if operation.is_durable() && !ctx.is_planted(PlantedBug::FuaAsPlain) {
            let ticket = self.flush_durably(ctx);
            self.durable().flushes.push_back((ticket, job));
        } else {
            let durable = self.durable();
            durable.answers.push(durable.last_record, job);
        }
    }

    /// True when no write may begin: the journal has no room, or a checkpoint waits for the writes
    /// in flight to end.
    pub(in crate::translation) fn holds_writes(&self) -> bool {
        let Some(durable) = &self.durable else {
            return false;
        };
        let journal = &durable.journal;
        let no_room = journal.wants_checkpoint() || !journal.has_room() || self.journal_is_full();
        no_room || self.may_lose_too_much(durable)
    }

    /// True when the journal has no more room than for what is under way: a write, or a rewrite that
    /// goes on with another stretch, must wait for a checkpoint.
    pub(in crate::translation) fn journal_is_full(&self) -> bool {
        self.durable.as_ref().is_some_and(|durable| {
            let due = u64::from(self.writes_in_flight) + RECORDS_IN_RESERVE;
            durable.journal.room() <= due
        })
    }

    /// True when so much is lost, or would be if all writes in flight failed, that another write
    /// waits: for the end of those, or for a checkpoint that forgets what was lost and is there
    /// again.
    fn may_lose_too_much(&self, durable: &Durable) -> bool {
        durable.lost_since + durable.in_flight_blocks > LOST_BLOCKS_TAKEN
            && (self.writes_in_flight > 0 || durable.lost_since > self.lost_blocks())
    }

    pub(super) fn lost_blocks(&self) -> u64 {
        self.lost.ranges().map(|range| range.blocks.0).sum()
    }

    /// A write of so many blocks begins.
    pub(in crate::translation) fn begin_write(&mut self, blocks: BlockCount) {
        self.writes_in_flight += 1;
        if let Some(durable) = &mut self.durable {
            durable.in_flight_blocks += blocks.0;
        }
    }

    /// A write of so many blocks has ended, well or not.
    pub(in crate::translation) fn end_write(&mut self, blocks: BlockCount) {
        self.writes_in_flight -= 1;
        if let Some(durable) = &mut self.durable {
            durable.in_flight_blocks -= blocks.0;
        }
    }

    /// Begins a checkpoint if one is due and no write is in flight.
    pub(in crate::translation) fn checkpoint_when_due(&mut self, ctx: &mut Context<'_>) {
        if self.writes_in_flight > 0 {
            return;
        }
        let due = self.durable.as_ref().is_some_and(|durable| {
            let forgets = self.may_lose_too_much(durable) && !durable.journal.is_checkpointing();
            (durable.journal.wants_checkpoint() || forgets) && durable.is_running()
        });
        if due {
            let release = self.log.superseded_before();
            let checkpoint = self.encode_checkpoint();
            let lost = self.lost_blocks();
            let durable = self.durable();
            durable.checkpoint_release = release;
            durable.checkpoint_forgets = durable.lost_since - lost;
            durable.journal.checkpoint(checkpoint, ctx);
        }
    }

    /// Says that the write of `extent` failed.
    pub(super) fn record_lost(&mut self, extent: Extent, ctx: &mut Context<'_>) {
        self.record(&Entry::Lost(extent), None, ctx);
        let lost = self.lost_blocks();
        let durable = self.durable();
        durable.lost_since += extent.blocks.0;
        if lost > LOST_BLOCKS_TAKEN {
            durable.failed.get_or_insert(IoError::Medium);
        }
    }
}
