//! How a buffer goes down, and what its ledger tells it.

use super::state::Closing;
use super::{MemoryBuffer, Token};
use crate::error::IoError;
use crate::layer::Context;
use crate::ledger::LedgerEvent;

impl MemoryBuffer {
    pub(super) fn begin_closing(&mut self) {
        match self.settings.destages_on_flush() && self.failure().is_none() {
            true => self.life.closing = Closing::Destaging,
            false => self.ledger.begin_close(),
        }
    }

    /// What is left for the end of an event.
    pub(super) fn end_event(&mut self, ctx: &mut Context<'_>) {
        match self.life.closing {
            Closing::Destaging => self.close_destaging(ctx),
            Closing::Draining if self.is_idle() && self.ledger.is_idle() => {
                self.life.closing = Closing::Closed;
                let map = self.log_map();
                self.ledger.close(map, ctx);
            }
            _ => {}
        }
        if self.ledger.wants_checkpoint() && self.life.closing == Closing::No {
            let map = self.log_map();
            self.ledger.checkpoint(map, ctx);
        }
        if self.ledger.has_too_much_unflushed() {
            self.ledger.flush_for_itself(ctx);
        }
        self.ledger.commit(ctx);
        self.ledger.begin_flushes(ctx);
        if let Some(at) = self.ledger.new_mark_alarm(ctx) {
            ctx.wake_at(at);
        }
        self.take_ledger_events(ctx);
    }

    fn close_destaging(&mut self, ctx: &mut Context<'_>) {
        while self.failure().is_none() && self.blocks.residents() > 0 {
            self.evict(None, ctx);
        }
        while let Some(task) = self.ready.pop_front() {
            self.begin_task(task, ctx);
        }
        self.start_batches(ctx);
        if !self.is_idle() {
            return;
        }
        self.life.closing = Closing::Flushing;
        match self.failure() {
            Some(error) => ctx.closed(Err(error)),
            None => self.issue_flush_below(ctx),
        }
    }

    pub(super) fn last_flush_done(&mut self, result: Result<(), IoError>) {
        self.life.failure = self.life.failure.or(result.err());
        self.ledger.begin_close();
    }

    /// Takes out what the ledger has to say. True when it said something.
    pub(super) fn take_ledger_events(&mut self, ctx: &mut Context<'_>) -> bool {
        let mut has_said = false;
        while let Some(event) = self.ledger.next_event() {
            has_said = true;
            match event {
                LedgerEvent::Blank => {
                    let map = self.log_map();
                    self.ledger.begin(map, ctx);
                }
                LedgerEvent::Recovered(recovery) => self.recover(&recovery, ctx),
                LedgerEvent::Opened => ctx.opened(Ok(())),
                LedgerEvent::Refused(error) => ctx.opened(Err(error)),
                LedgerEvent::Written => {
                    while let Some(token) = self.ledger.next_written() {
                        self.answer_token(token, Ok(()), ctx);
                    }
                }
                LedgerEvent::Flushed { token, .. } => self.answer_token(token, Ok(()), ctx),
                LedgerEvent::PlacesFree => self.free_places(),
                // Maps are handed over whole.
                LedgerEvent::PieceWanted | LedgerEvent::Checkpointed => {}
                LedgerEvent::Drain => self.life.closing = Closing::Draining,
                LedgerEvent::Closed(result) => {
                    let failure = self.life.failure.map_or(Ok(()), Err);
                    ctx.closed(failure.and(result));
                }
                LedgerEvent::Failed { error, .. } => {
                    self.fail_ledger(error, ctx);
                }
                LedgerEvent::CopyAdmitted(_) | LedgerEvent::CopyOut(_) => {}
            }
        }
        has_said
    }

    fn fail_ledger(&mut self, error: IoError, ctx: &mut Context<'_>) {
        if self.life.failure.is_none() {
            self.fail(error, ctx);
        }
        while let Some(token) = self.ledger.next_failed() {
            self.answer_token(token, Err(error), ctx);
        }
    }

    fn answer_token(&mut self, token: Token, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        match token {
            Token::Job(job) => self.answer(job, result, ctx),
            Token::Zero => self.end_zero(result, ctx),
            // A batch that may not go down finds out by itself.
            Token::Batch(batch) => self.batch_flushed(batch),
            Token::Clean => self.flushed_below(result, ctx),
        }
    }
}
