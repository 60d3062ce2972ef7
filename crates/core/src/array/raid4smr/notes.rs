//! What a RAID 4SMR notes in its journal, and which of its writes are durable.

use super::records::Said;
use super::redo_log::RedoLog;
use crate::array::keeper::{Keeper, Token};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::ledger::When;
use crate::operation::RequestId;
use crate::planted::PlantedBug;
use crate::saved::Saved;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

/// What the layer waits for, beside answers: that a write is noted, by its number, or a step of a collection.
pub const TOKEN_COLLECTION: u64 = u64::MAX;
/// That the array is up.
pub const TOKEN_OPENED: u64 = u64::MAX - 1;
/// That a member is out.
pub const TOKEN_LOSS: u64 = u64::MAX - 2;
/// That a member has all of its rows.
pub const TOKEN_WHOLE: u64 = u64::MAX - 3;
/// That writes are durable.
pub const TOKEN_SETTLED: u64 = u64::MAX - 4;
/// Of tables of checksums that wait for what was recorded before them.
pub const TOKEN_TABLES: u64 = u64::MAX - 5;

/// The journal of the array, and the writes that it speaks of.
#[derive(Debug, Saved)]
pub struct Notes {
    pub keeper: Keeper,
    /// The number of the next write.
    next: u64,
    /// Writes that were noted and have not ended.
    open: BTreeSet<u64>,
    /// All writes with a smaller number are durable on the members.
    settled: u64,
    /// Numbers that are being recorded so, in their order.
    to_record: VecDeque<u64>,
    /// What rows are about to have, on the parity disk.
    pub log: RedoLog,
    /// Rows of writes that are not in the log and may not be durable: by the first of them the end and the number of
    /// the write. No two overlap.
    unlogged: BTreeMap<u64, (u64, u64)>,
    /// Losses that are not durable yet.
    losses: u32,
    /// Answers that wait for them; whether what is promised must be durable.
    held: Vec<(RequestId, Result<(), IoError>, bool)>,
}

impl Notes {
    /// Nothing noted.
    pub fn new(keeper: Keeper, log: RedoLog) -> Notes {
        Notes {
            keeper,
            next: 0,
            open: BTreeSet::new(),
            settled: 0,
            to_record: VecDeque::new(),
            log,
            unlogged: BTreeMap::new(),
            losses: 0,
            held: Vec::new(),
        }
    }

    /// Takes back the number of the next write.
    pub fn restore(&mut self, next: u64) {
        (self.next, self.settled) = (next, next);
    }

    /// The number of the next write.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// A write begins. Returns its number.
    pub fn begin_write(&mut self) -> u64 {
        self.open.insert(self.next);
        self.next += 1;
        self.next - 1
    }

    /// Of the rows of a write those without a bit are not in the log. They lie one behind the other.
    pub fn left_out_of_log(&mut self, number: u64, rows: Extent, logged: u64) {
        let is_out = |at: &u64| logged >> at & 1 == 0;
        let all = 0..rows.blocks.0;
        if let (Some(first), Some(last)) = (all.clone().find(is_out), all.rev().find(is_out)) {
            let start = rows.start.0;
            self.unlogged.insert(start + first, (start + last + 1, number));
        }
    }

    /// True when rows may have blocks that are not durable and not in the log: these must be durable before other
    /// blocks of the rows are written.
    pub fn must_settle_first(&self, rows: Extent) -> bool {
        let last = self.unlogged.range(..rows.end().0).next_back();
        last.is_some_and(|(_, (end, _))| *end > rows.start.0)
    }

    /// True when a write before a number is neither in the log nor recorded as durable: without a member nobody could
    /// tell after a crash that it is there.
    pub fn is_unrecorded(&self, end: u64) -> bool {
        self.unlogged.values().any(|(_, number)| *number < end)
    }

    /// True when a flush would make writes durable that are not yet.
    pub fn has_to_settle(&self) -> bool {
        self.before_now() > self.settled
    }

    /// A write has ended. Where it has failed that is noted.
    pub fn write_ended(&mut self, number: u64, has_failed: bool, ctx: &mut Context<'_>) {
        self.open.remove(&number);
        if has_failed {
            self.note(&Said::Undone { number }, ctx);
        }
    }

    /// A flush of all members that begins now makes all writes with a smaller number durable.
    pub fn before_now(&self) -> u64 {
        self.open.first().copied().unwrap_or(self.next)
    }

    /// All writes with a smaller number are durable on the members.
    pub fn settle(&mut self, before: u64, ctx: &mut Context<'_>) {
        if before > self.settled {
            self.settled = before;
            self.unlogged.retain(|_, (_, number)| *number >= before);
            self.note(&Said::Settled { before }, ctx);
            if self.when_durable(TOKEN_SETTLED, ctx) == When::Now {
                self.settled_recorded();
            } else {
                self.to_record.push_back(before);
            }
        }
    }

    /// That writes are durable is recorded: after a crash nobody looks for them in the log.
    pub fn settled_recorded(&mut self) {
        let before = self.to_record.pop_front().unwrap_or(self.settled);
        self.log.settle(before);
    }

    /// True when what is noted is kept.
    pub fn keeps(&self) -> bool {
        !self.keeper.copies().is_empty()
    }

    /// Why nothing can be noted any more.
    pub fn failure(&self) -> Option<IoError> {
        self.keeper.ledger.failure()
    }

    /// Notes something.
    pub fn note(&mut self, said: &Said, ctx: &mut Context<'_>) {
        // What is under way comes to its end while the array goes down.
        if self.keeper.ledger.takes_records() {
            let (kind, payload) = said.record();
            self.keeper.ledger.record(kind, &payload, ctx);
        }
    }

    /// A member is out: nothing is answered before that is durable. Of a member with a copy of the journal that holds
    /// the answers itself; homes have none.
    pub fn hold_answers(&mut self, ctx: &mut Context<'_>) {
        if self.when_durable(TOKEN_LOSS, ctx) == When::Later {
            self.losses += 1;
        }
    }

    /// That a member is out is durable, or nothing can be any more.
    pub fn loss_noted(&mut self, ctx: &mut Context<'_>) {
        self.losses = self.losses.saturating_sub(1);
        if self.losses == 0 {
            for (request, result, is_promise) in core::mem::take(&mut self.held) {
                self.answer(request, result, is_promise, ctx);
            }
        }
    }

    /// Nothing can be noted any more: what waits is answered with the error.
    pub fn fail(&mut self, error: IoError, ctx: &mut Context<'_>) {
        self.keeper.fail(error, ctx);
        self.losses = 0;
        let is_ignored = ctx.is_planted(PlantedBug::ArrayLossRecordFailureIgnored);
        for (request, result, _) in core::mem::take(&mut self.held) {
            ctx.finish(request, if is_ignored { result } else { Err(error) });
        }
    }

    /// Answers a request, as soon as nothing has to be durable first.
    pub fn answer(
        &mut self,
        request: RequestId,
        result: Result<(), IoError>,
        is_promise: bool,
        ctx: &mut Context<'_>,
    ) {
        if self.losses > 0 {
            return self.held.push((request, result, is_promise));
        }
        match is_promise && result.is_ok() {
            true => self.keeper.answer_when_durable(request, result, ctx),
            false => self.keeper.answer(request, result, ctx),
        }
    }

    /// The token comes back when all that was noted so far is durable.
    pub fn when_durable(&mut self, token: u64, ctx: &mut Context<'_>) -> When {
        let port = self.keeper.journal_port();
        self.keeper.ledger.answer_when_flushed(port, Token::Layer(token), ctx)
    }
}
