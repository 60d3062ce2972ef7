//! What the ledger says, slots that become free, and what is written home again at a start.

use super::jobs::{Aim, Purpose, Work};
use super::{Segments, Token};
use crate::buffer::BufferSlice;
use crate::durability::{LayerKind, Recovery};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Issue};
use crate::ledger::{LedgerEvent, Stage as Life, When};
use crate::lifecycle::{OpenError, Start};
use crate::operation::{Cause, Operation};
use crate::translation::segment::codec::{self, DONE, KEPT};
use crate::translation::segment::rewrite::Stage;
use crate::translation::segment::slots::Noted;
use alloc::vec::Vec;

impl Segments {
    pub(super) fn open_ledger(&mut self, start: Start, ctx: &mut Context<'_>) {
        let port = self.shape.settings.ports.journal_port();
        let number = ctx.member_number(port);
        let number = number.unwrap_or(LayerKind::Segments as u16);
        self.ledger.open(start, number, ctx);
    }

    pub(super) fn map(&self) -> Vec<u8> {
        let blank = self.sums.as_ref().map(|sums| sums.blank);
        codec::encode_map(&self.identity(), blank, self.slots.noted())
    }

    /// Takes what the ledger says; false when it said nothing new.
    pub(super) fn take_ledger_events(&mut self, ctx: &mut Context<'_>) -> bool {
        if self.ledger.is_silent() {
            return false;
        }
        self.ledger.commit(ctx);
        let mut has_heard = false;
        while let Some(event) = self.ledger.next_event() {
            has_heard |= !matches!(event, LedgerEvent::Failed { is_first: false, .. });
            self.take_event(event, ctx);
        }
        has_heard
    }

    fn take_event(&mut self, event: LedgerEvent<Token>, ctx: &mut Context<'_>) {
        match event {
            LedgerEvent::Blank => self.format_tables(ctx),
            LedgerEvent::Recovered(recovery) => self.recover(&recovery, ctx),
            LedgerEvent::Opened => {
                self.know_member();
                ctx.opened(Ok(()));
            }
            LedgerEvent::Refused(error) => ctx.opened(Err(error)),
            LedgerEvent::Flushed { token: Token::Slot(job), .. } => {
                // A planted bug does not wait for it.
                if self.jobs.get(job).rewrite.stage == Stage::Flushing {
                    self.begin_home(job, ctx);
                }
            }
            LedgerEvent::Flushed { token: Token::Home, .. } => {
                self.slots.flushes_left -= 1;
                if self.slots.flushes_left == 0 {
                    self.home_is_durable(ctx);
                }
            }
            LedgerEvent::PlacesFree => {
                self.slots.places_free(self.ledger.durable_before());
                self.give_slots(ctx);
            }
            LedgerEvent::Checkpointed => self.give_slots(ctx),
            LedgerEvent::Drain => self.is_draining = true,
            LedgerEvent::Closed(result) => ctx.closed(result),
            LedgerEvent::Failed { error, .. } => self.ledger_failed(error, ctx),
            // Maps are handed over whole.
            LedgerEvent::PieceWanted => {}
            LedgerEvent::Written | LedgerEvent::CopyAdmitted(_) | LedgerEvent::CopyOut(_) => {}
        }
    }

    /// Makes durable what is home, when somebody waits for slots or the ledger goes down.
    pub(super) fn make_slots_free(&mut self, ctx: &mut Context<'_>) {
        let is_wanted = self.is_draining || self.slots.is_short() || !self.slots.waiting.is_empty();
        if is_wanted
            && self.slots.flushing.is_empty()
            && !self.slots.home.is_empty()
            && self.ledger.failure().is_none()
        {
            core::mem::swap(&mut self.slots.flushing, &mut self.slots.home);
            self.flush_home(ctx);
        }
        let is_held = self.slots.has_held();
        if is_held && (self.slots.is_short() || !self.slots.waiting.is_empty()) {
            self.ledger.flush_for_itself(ctx);
        }
    }

    /// Flushes what is home: the disk, and the node of the tables where they are beside it.
    fn flush_home(&mut self, ctx: &mut Context<'_>) {
        let ports = self.shape.settings.ports;
        let (disk, beside) = (ports.disk_port(), ports.journal_port());
        let beside = Some(beside).filter(|port| *port != disk && self.sums.is_some());
        for port in [Some(disk), beside].into_iter().flatten() {
            // Slots are flushed by a journaled ledger alone, and that never answers at once.
            let when = self.ledger.answer_when_flushed(port, Token::Home, ctx);
            assert_eq!(when, When::Later, "a flush that nobody waits for");
            self.slots.flushes_left += 1;
        }
    }

    /// Pages of checksums bear the name of the member of the journal.
    fn know_member(&mut self) {
        let member = self.ledger.member();
        if let Some(sums) = &mut self.sums {
            sums.member = member;
        }
    }

    /// What the flushed slots were noted for is durable: their notes end.
    fn home_is_durable(&mut self, ctx: &mut Context<'_>) {
        while let Some(slot) = self.slots.flushing.pop() {
            self.slot_is_done(slot, ctx);
        }
        self.give_slots(ctx);
    }

    fn slot_is_done(&mut self, slot: u32, ctx: &mut Context<'_>) {
        let payload = u64::from(slot).to_le_bytes();
        let record = self.ledger.record(DONE, &payload, ctx);
        self.ledger.release_reserved(1);
        self.slots.clear(slot, record, self.ledger.durable_before());
    }

    /// The planted bug: a note ends before what it is about is durable.
    pub(super) fn free_slots_early(&mut self, ctx: &mut Context<'_>) {
        while let Some(slot) = self.slots.home.pop() {
            if self.shape.settings.journal.has_notes() {
                self.slot_is_done(slot, ctx);
            }
        }
    }

    /// At the end of every event: what was recorded goes to the disk.
    pub(super) fn end_event(&mut self, ctx: &mut Context<'_>) {
        if self.is_draining && self.jobs.is_empty() && self.is_all_durable() {
            self.is_draining = false;
            self.ledger.close(self.map(), ctx);
        } else if self.ledger.stage() == Life::Running && self.ledger.wants_checkpoint() {
            self.ledger.checkpoint(self.map(), ctx);
        }
        self.ledger.commit(ctx);
        self.ledger.begin_flushes(ctx);
        if let Some(at) = self.ledger.new_mark_alarm(ctx) {
            ctx.wake_at(at);
        }
    }

    fn is_all_durable(&self) -> bool {
        let is_failed = self.ledger.failure().is_some();
        is_failed || self.slots.home.is_empty() && self.slots.flushing.is_empty()
    }

    /// Nothing becomes durable any more. What waits ends; what is noted stays so, for the next start.
    fn ledger_failed(&mut self, error: IoError, ctx: &mut Context<'_>) {
        while let Some(token) = self.ledger.next_failed() {
            match token {
                Token::Slot(job) if self.jobs.get(job).rewrite.stage == Stage::Flushing => {
                    self.jobs.get_mut(job).failure = Some(error);
                    self.end_rewrite(job, ctx);
                }
                _ => {}
            }
        }
        self.end_waiting(error, ctx);
    }

    /// Takes back what was noted and not done, in order, and writes it home again.
    fn recover(&mut self, recovery: &Recovery, ctx: &mut Context<'_>) {
        self.know_member();
        let noted = match self.noted_in(recovery) {
            Ok(noted) => noted,
            Err(error) => {
                self.ledger.give_up();
                return ctx.opened(Err(error));
            }
        };
        self.redo = noted.into();
        match self.redo.is_empty() {
            true => self.ledger.begin(self.map(), ctx),
            false => self.redo_next(ctx),
        }
    }

    /// What was noted and not done, in order.
    fn noted_in(&mut self, recovery: &Recovery) -> Result<Vec<(u32, Noted)>, OpenError> {
        let identity = self.identity();
        let has_sums = self.sums.is_some();
        let (blank, mut noted) = codec::decode_map(&recovery.checkpoint, &identity, has_sums)?;
        if let Some(sums) = &mut self.sums {
            sums.blank = blank;
        }
        let mut torn = Vec::new();
        let damaged = || OpenError::damaged("journal", "a record that says nothing that can be");
        for record in &recovery.records {
            let words = codec::words(&record.payload);
            let slot = *words.first().ok_or_else(damaged)? as u32;
            match record.kind {
                KEPT => {
                    let blocks = record.checksums.len();
                    let is_intact = (0..blocks).all(|block| record.intact.block(block));
                    if !is_intact {
                        torn.push(slot);
                    }
                }
                DONE => noted.retain(|(known, _)| *known != slot),
                kind => {
                    let what = codec::decode(kind, &words, &identity).ok_or_else(damaged)?;
                    // What is torn was not durable, so nothing of it went home.
                    if !torn.contains(&slot) {
                        noted.push(what);
                    }
                    torn.retain(|known| *known != slot);
                }
            }
        }
        Ok(noted)
    }

    fn redo_next(&mut self, ctx: &mut Context<'_>) {
        let Some((slot, noted)) = self.redo.pop_front() else {
            let nothing = (Extent::EMPTY, BufferSlice::EMPTY);
            let aim = Aim::of(Purpose::Redone, 0);
            return self.issue(aim, Operation::Flush, nothing, Cause::Metadata, ctx);
        };
        let layout = &self.shape.layout;
        let (blocks, parts) = (layout.blocks_of_segment(), layout.segment_blocks());
        let job = self.jobs.add(Work::Redo);
        let rewrite = &mut self.jobs.get_mut(job).rewrite;
        match noted {
            Noted::Zero { segment, segments } => {
                rewrite.begin(segment, blocks as usize, parts as usize);
                rewrite.zeroed = segments;
                self.begin_home(job, ctx);
            }
            Noted::Rewrite { segment, written } => {
                rewrite.begin(segment, blocks as usize, parts as usize);
                rewrite.written.extend_from_slice(&written);
                rewrite.slot = Some(slot);
                rewrite.stage = Stage::Journaling;
                rewrite.buffer = ctx.allocate(self.shape.areas.rewrite_blocks());
                self.expect_pages(job);
                let (extent, buffer) = self.in_slot(job);
                ctx.issue(Issue {
                    port: self.shape.settings.ports.journal_port(),
                    operation: Operation::Read,
                    extent,
                    buffer,
                    cause: Cause::Metadata,
                    tag: Aim::of(Purpose::Slot, job).tag(),
                });
            }
        }
    }

    /// The tables of a new layout are blank.
    pub(super) fn tables_formatted(&mut self, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        match result {
            Ok(()) => self.ledger.begin(self.map(), ctx),
            Err(error) => self.refuse_to_open(error, ctx),
        }
    }

    /// One is home again.
    pub(super) fn redone(&mut self, job: u32, failure: Option<IoError>, ctx: &mut Context<'_>) {
        self.jobs.remove(job);
        match failure {
            None => self.redo_next(ctx),
            Some(error) => self.refuse_to_open(error, ctx),
        }
    }

    fn refuse_to_open(&mut self, error: IoError, ctx: &mut Context<'_>) {
        self.redo.clear();
        self.ledger.give_up();
        ctx.opened(Err(OpenError::Io(error)));
    }

    /// All is home again and durable: nothing is noted any more.
    pub(super) fn all_redone(&mut self, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        match result {
            Ok(()) => self.ledger.begin(self.map(), ctx),
            Err(error) => self.refuse_to_open(error, ctx),
        }
    }
}
