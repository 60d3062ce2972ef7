//! The log of everything that reached the members, in the order of the world's events.

use super::medium::{Block, Medium};
use imbrex_core::extent::Extent;
use imbrex_core::operation::Cause;

/// A write as the medium took it, which after a fault may not be the write that was asked for.
#[derive(Clone)]
pub struct LoggedWrite {
    /// The member it went to.
    pub member: usize,
    /// The first block that it really went to.
    pub start: u64,
    /// What was really written; nothing when it was lost.
    pub data: Vec<Block>,
    /// The event of its submission.
    pub submitted: u64,
    /// The event of its completion.
    pub completed: Option<u64>,
    /// Durable at its completion.
    pub durable: bool,
    /// A flush that should have covered it failed, so none ever will.
    pub dropped: bool,
    /// Who wanted it.
    pub cause: Cause,
}

impl LoggedWrite {
    /// Where it went.
    pub fn extent(&self) -> Extent {
        Extent::new(self.start, self.data.len() as u64)
    }
}

/// A flush.
#[derive(Clone, Copy, Debug)]
pub struct LoggedFlush {
    /// The member.
    pub member: usize,
    /// The event of its submission.
    pub issued: u64,
    /// The event of its completion, when it succeeded.
    pub completed: Option<u64>,
}

/// All that happened to the members since their base images.
///
/// Every submission and every completion of a write or a flush is an event and has a number. The
/// *log index* `i` is the moment when events `0..i` have happened.
#[derive(Default)]
pub struct Log {
    /// Events so far.
    pub events: u64,
    /// Writes and zeroings, in the order of submission.
    pub writes: Vec<LoggedWrite>,
    /// Flushes, in the order of submission.
    pub flushes: Vec<LoggedFlush>,
    /// By member, the event before which every completed write was covered by a flush.
    pub(super) covered: Vec<u64>,
}

/// What a power cut at a log index finds of the writes.
pub struct Window {
    /// Every write submitted, in the order of completion, those in flight last.
    pub writes: Vec<usize>,
    /// Those of them, by place in `writes`, that nothing has made durable.
    pub pending: Vec<usize>,
}

impl Log {
    /// The number of an event that happens now.
    pub fn event(&mut self) -> u64 {
        self.events += 1;
        self.events - 1
    }

    /// A flush has succeeded.
    pub fn note_flushed(&mut self, flush: usize) {
        let LoggedFlush { member, issued, .. } = self.flushes[flush];
        if self.covered.len() <= member {
            self.covered.resize(member + 1, 0);
        }
        self.covered[member] = self.covered[member].max(issued);
    }

    /// The event before which every completed write of a member was covered by a flush.
    pub fn covered_by_flush(&self, member: usize) -> u64 {
        self.covered.get(member).copied().unwrap_or(0)
    }

    /// What a power cut at a log index finds.
    pub fn window(&self, index: u64) -> Window {
        let members = self.writes.iter().map(|write| write.member + 1).max();
        // For each member, the issue of the last flush that completed in time: what completed
        // before it is durable.
        let mut covered = vec![0; members.unwrap_or(0)];
        for flush in &self.flushes {
            let in_time = flush.completed.is_some_and(|completed| completed < index);
            if in_time && let Some(covered) = covered.get_mut(flush.member) {
                *covered = flush.issued.max(*covered);
            }
        }
        let before = |write: &LoggedWrite| write.submitted < index && !write.data.is_empty();
        let completed =
            |write: &LoggedWrite| write.completed.filter(|completed| *completed < index);
        let mut writes: Vec<usize> =
            (0..self.writes.len()).filter(|write| before(&self.writes[*write])).collect();
        writes.sort_by_key(|write| {
            let write = &self.writes[*write];
            (completed(write).unwrap_or(u64::MAX), write.submitted)
        });
        let is_pending = |write: &LoggedWrite| match completed(write) {
            None => true,
            Some(completed) => {
                let covered = completed < covered[write.member] && !write.dropped;
                !covered && !write.durable
            }
        };
        let pending =
            (0..writes.len()).filter(|at| is_pending(&self.writes[writes[*at]])).collect();
        Window { writes, pending }
    }

    /// Whether one write must be applied before another: it was complete before the other was
    /// submitted, and the order of the two can be seen on the medium.
    pub fn is_ordered(&self, first: usize, second: usize, media: &[Medium]) -> bool {
        let (first, second) = (&self.writes[first], &self.writes[second]);
        let earlier = first.completed.is_some_and(|completed| completed < second.submitted);
        earlier
            && first.member == second.member
            && media[first.member].conflict(first.extent(), second.extent())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    fn write(submitted: u64, completed: Option<u64>, durable: bool) -> LoggedWrite {
        LoggedWrite {
            member: 0,
            start: submitted,
            data: vec![Rc::new([0; 4096])],
            submitted,
            completed,
            durable,
            dropped: false,
            cause: Cause::Host,
        }
    }

    #[test]
    fn a_flush_covers_what_had_completed_when_it_was_issued() {
        let log = Log {
            events: 9,
            writes: vec![
                write(0, Some(1), false),
                write(2, Some(4), false),
                write(5, Some(6), true),
                write(7, None, false),
            ],
            flushes: vec![LoggedFlush { member: 0, issued: 3, completed: Some(8) }],
            ..Log::default()
        };
        let pending = |index| {
            let window = log.window(index);
            let pending = window.pending.iter().map(|at| window.writes[*at]);
            pending.collect::<Vec<usize>>()
        };
        assert_eq!(pending(3), [0, 1], "before the flush has completed");
        assert_eq!(pending(8), [0, 1, 3], "a forced write is durable by itself");
        assert_eq!(pending(9), [1, 3], "the second came after the flush was issued");
        assert_eq!(log.window(0).writes.len(), 0);
    }

    #[test]
    fn a_failed_flush_drops_what_it_should_have_covered() {
        let mut log = Log {
            events: 6,
            writes: vec![write(0, Some(1), false)],
            flushes: vec![LoggedFlush { member: 0, issued: 4, completed: Some(5) }],
            ..Log::default()
        };
        assert!(log.window(6).pending.is_empty());
        log.writes[0].dropped = true;
        assert_eq!(log.window(6).pending, [0]);
    }
}
