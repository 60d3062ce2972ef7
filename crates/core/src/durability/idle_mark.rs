//! The mark of the last flush: a journal block without records, written when nothing else is.
//!
//! A journal block says which blocks before it are durable. The newest blocks therefore have no
//! later one that speaks for them, and when one of them is damaged recovery takes it for a write
//! that a power cut tore: what a flush had covered is rolled back. A mark speaks for them. It needs no flush
//! of its own, for it is lost only together with the power, and then nothing is worse than without
//! it.

use super::ids::Lsn;
use crate::saved::SavedValue;
use crate::units::{Duration, Instant};

/// Time without a journal block and without the end of a flush after which a mark is written. It
/// is long beside the gaps within a busy stretch of requests, and short beside the time in which a
/// medium decays.
const MARK_AFTER: Duration = Duration::from_ms(100);

/// What is known of the need for a mark.
#[derive(Clone, Copy, Default, Debug, SavedValue)]
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

    /// True when records before `durable` are there, which are durable, and nothing on the member
    /// says so.
    pub fn is_wanted(&self, durable: Lsn) -> bool {
        durable.min(self.records_end) > self.vouched
    }

    /// When the layer is to be woken for the mark, if it does not know yet.
    pub fn new_alarm(&mut self, now: Instant) -> Option<Instant> {
        if core::mem::replace(&mut self.has_alarm, true) {
            return None;
        }
        // A mark that was due and not allowed waits as long again.
        let due = self.busy_at + MARK_AFTER;
        Some(if due > now { due } else { now + MARK_AFTER })
    }

    /// The alarm has gone off. True when the journal was idle for long enough.
    pub fn end_alarm(&mut self, now: Instant) -> bool {
        self.has_alarm = false;
        self.busy_at + MARK_AFTER <= now
    }

    /// True when the layer will be woken for the mark.
    pub fn has_alarm(&self) -> bool {
        self.has_alarm
    }
}
