//! After a crash: what was perhaps being written is made the same on all members, before the first request.

use super::Raid1;
use crate::array::keeper::{Life, Token};
use crate::array::raid1::word::{TOKEN_OPENED, Word};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::ledger::When;

/// Rows that are compared at once.
const CHUNK_ROWS: u64 = 1024;

impl Raid1 {
    /// Goes on with the comparison, if there is one and nothing of it is in flight.
    pub(super) fn compare_on(&mut self, ctx: &mut Context<'_>) {
        let Some(after) = &self.after_crash else { return };
        if after.is_comparing || after.is_flushing {
            return;
        }
        let Some(region) = after.regions.front().copied() else {
            self.after_crash.as_mut().expect("a comparison").is_flushing = true;
            return self.flush_members(Word::AfterCrash, ctx);
        };
        if !self.hold_tables(core::iter::once(region)) {
            return self.read_tables(ctx);
        }
        let rows = self.map.sums.as_ref().expect("tables").shape().rows_of(region);
        let after = self.after_crash.as_mut().expect("a comparison");
        let blocks = CHUNK_ROWS.min(rows.blocks.0 - after.done);
        let chunk = Extent::new(rows.start.0 + after.done, blocks);
        after.done += blocks;
        if after.done == rows.blocks.0 {
            after.regions.pop_front();
            after.done = 0;
        }
        after.is_comparing = true;
        self.rows.start_scrub(Word::AfterCrash.number(), chunk, true, &mut self.map, ctx);
    }

    /// Some rows were compared, or the members were flushed behind all of them.
    pub(super) fn after_crash_ended(&mut self, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        let Some(after) = &mut self.after_crash else { return };
        if !core::mem::take(&mut after.is_comparing) && after.is_flushing {
            // A member that could not be flushed is out. One that is needed must not lose what was chosen.
            self.after_crash = None;
            self.rows.is_resting = self.keeper.ledger.failure().is_some() || ctx.is_read_only();
            self.rows.go_on(&mut self.map, ctx);
            if let Err(error) = result {
                self.refusal = Some(error);
            }
            return self.opened_when_ready(ctx);
        }
        self.compare_on(ctx);
    }

    /// Says that the array is up, when nothing is to be done before.
    pub(super) fn opened_when_ready(&mut self, ctx: &mut Context<'_>) {
        if self.keeper.life != Life::Opening || self.after_crash.is_some() || !self.is_recovered {
            return;
        }
        // That members are not there must be recorded first.
        let token = Token::Layer(TOKEN_OPENED);
        if self.refusal.is_some() || self.keeper.ledger.answer_when_written(token) == When::Now {
            self.end_opening(ctx);
        }
    }

    /// Says that the array is up, or why it is not.
    pub(super) fn end_opening(&mut self, ctx: &mut Context<'_>) {
        let has_all = self.rows.members.have_all(crate::array::Redundancy::Copies);
        let result = match (has_all, self.refusal) {
            (false, _) => Err(IoError::Lost),
            (true, Some(error)) => Err(error),
            (true, None) => Ok(()),
        };
        if result.is_ok() {
            self.keeper.life = Life::Up;
            // A rebuild that an earlier start has begun goes on at once, and not with the first request.
            self.rows.go_on(&mut self.map, ctx);
        }
        ctx.opened(result.map_err(crate::lifecycle::OpenError::Io));
    }
}
