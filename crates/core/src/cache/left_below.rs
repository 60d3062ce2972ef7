//! What went around a buffer and no flush below has covered yet.

use crate::saved::SavedValue;
use alloc::vec::Vec;

/// Counts what is left below by whoever goes around, so that a flush of the host goes below only where
/// something there needs it.
#[derive(Debug, Default, SavedValue)]
pub(super) struct LeftBelow {
    /// Zeroings and writes around the buffer that have ended.
    writes: u64,
    /// So many of the first of them are durable.
    flushed: u64,
    /// Flushes on their way, by job, with how many writes each covers.
    flushes: Vec<(u32, u64)>,
}

impl LeftBelow {
    /// A zeroing or a write around the buffer has ended.
    pub fn add(&mut self) {
        self.writes += 1;
    }

    /// A flush of the host begins; true when it must go below too. That another one is on its way there
    /// does not spare it: both are answered for what was written before them.
    pub fn begin_flush(&mut self, job: u32) -> bool {
        let needs_flush = self.writes > self.flushed;
        if needs_flush {
            self.flushes.push((job, self.writes));
        }
        needs_flush
    }

    /// A flush of the host has ended.
    pub fn end_flush(&mut self, job: u32, has_failed: bool) {
        let Some(at) = self.flushes.iter().position(|(known, _)| *known == job) else {
            return;
        };
        let (_, covered) = self.flushes.swap_remove(at);
        if !has_failed {
            self.flushed = self.flushed.max(covered);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_goes_below_until_one_has_covered_what_is_there() {
        let mut left = LeftBelow::default();
        assert!(!left.begin_flush(1), "nothing is there");
        left.add();
        assert!(left.begin_flush(1) && left.begin_flush(2), "neither has ended");
        left.add();
        left.end_flush(1, false);
        assert!(left.begin_flush(3), "a write has come behind them");
        left.end_flush(2, false);
        left.end_flush(3, true);
        assert!(left.begin_flush(4), "that has failed");
        left.end_flush(4, false);
        assert!(!left.begin_flush(5));
    }
}
