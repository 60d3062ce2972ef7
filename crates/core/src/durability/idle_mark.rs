//! The mark of the last flush: a journal block without records, written when nothing else is.
//!
//! A journal block says which blocks before it are durable. The newest blocks therefore have no
//! later one that speaks for them, and when one of them is damaged recovery takes it for a write
//! that a power cut tore: what a flush had covered is rolled back. A mark speaks for them. It needs no flush
//! of its own, for it is lost only together with the power, and then nothing is worse than without
//! it.

use super::journal::{Journal, Lsn};
use crate::layer::Context;
use crate::planted::PlantedBug;
use crate::units::{Duration, Instant};

/// Time without a journal block and without the end of a flush after which a mark is written. It
/// is long beside the gaps within a busy stretch of requests, and short beside the time in which a
/// medium decays.
const MARK_AFTER: Duration = Duration::from_ms(100);

/// What is known of the need for a mark.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct IdleMark {
    /// Something on the member says that every journal block before this one is durable: the mark
    /// of the newest block, or a checkpoint that replaces them.
    vouched: Lsn,
    /// The end of the newest block with records.
    records_end: Lsn,
    /// When the newest block was sent, or a flush has ended after it.
    busy_at: Instant,
    /// The layer will be woken for the mark.
    has_alarm: bool,
}

impl IdleMark {
    /// Nothing before `next` needs a mark.
    pub fn start_at(&mut self, next: Lsn) {
        self.vouched = next;
        self.records_end = next;
    }

    /// A checkpoint replaces every block before `from`.
    pub fn checkpointed(&mut self, from: Lsn) {
        self.vouched = self.vouched.max(from);
    }

    /// A block that says `mark`, and has records or not, is sent as the one before `next`.
    pub fn block_sent(&mut self, mark: Lsn, next: Lsn, has_records: bool, now: Instant) {
        self.vouched = self.vouched.max(mark);
        self.busy_at = now;
        if has_records {
            self.records_end = next;
        }
    }

    /// A flush has ended.
    pub fn flushed(&mut self, now: Instant) {
        self.busy_at = now;
    }

    /// True when records are durable and nothing on the member says so.
    fn is_wanted(&self, durable: Lsn) -> bool {
        durable.min(self.records_end) > self.vouched
    }
}

impl Journal {
    /// When the layer must call [`mark_if_idle`](Self::mark_if_idle), if it does not know yet.
    pub fn new_mark_alarm(&mut self, ctx: &Context<'_>) -> Option<Instant> {
        if self.idle_mark.has_alarm || !self.wants_mark(ctx) {
            return None;
        }
        self.idle_mark.has_alarm = true;
        // A mark that was due and not allowed waits as long again.
        let due = self.idle_mark.busy_at + MARK_AFTER;
        Some(if due > ctx.now() {
            due
        } else {
            ctx.now() + MARK_AFTER
        })
    }

    /// The alarm has gone off: writes the mark, unless the journal was busy meanwhile. The layer
    /// allows it when nothing under way may need the room in the ring. It asks for a
    /// [new alarm](Self::new_mark_alarm) afterwards.
    pub fn mark_if_idle(&mut self, is_allowed: bool, ctx: &mut Context<'_>) {
        self.idle_mark.has_alarm = false;
        let is_idle = self.idle_mark.busy_at + MARK_AFTER <= ctx.now();
        let is_free = !self.is_writing() && !self.is_checkpointing();
        if is_idle && is_free && is_allowed && self.wants_mark(ctx) {
            let mark = self.vouchable(ctx);
            self.send_block(mark, ctx);
        }
    }

    fn wants_mark(&self, ctx: &Context<'_>) -> bool {
        self.is_running()
            && !ctx.is_read_only()
            && self.failure().is_none()
            && self.idle_mark.is_wanted(self.vouchable(ctx))
    }

    /// Every block before it is durable.
    fn vouchable(&self, ctx: &Context<'_>) -> Lsn {
        match ctx.is_planted(PlantedBug::IdleMarkAhead) {
            true => self.next,
            false => self.durable,
        }
    }
}
