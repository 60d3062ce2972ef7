//! What a power cut may still undo: changes of the map whose records are not durable yet. Until they
//! are, the slots of the log that they freed, the scratch copy of a band and the blocks that a failed
//! write has lost still count.

use crate::durability::{FlushTicket, Lsn};
use crate::saved::SavedValue;
use alloc::collections::VecDeque;

/// Records that are not durable yet, and what waits until they are.
#[derive(Debug, Default, SavedValue)]
pub(super) struct Undo {
    /// Flushes in flight, and the log position before which slots are free when they are done.
    releases: VecDeque<(FlushTicket, u64)>,
    checkpoint: Option<CheckpointInFlight>,
    /// Blocks that are lost by the newest checkpoint or by any record since: a power cut may undo
    /// the writes that have taken their place.
    lost_since: u64,
    /// The newest zero.
    pub zeroed_at: Option<Lsn>,
    /// The end of the last band rewrite.
    pub home_at: Option<Lsn>,
    /// The flush that a band rewrite waits for.
    rewrite_waits: Option<FlushTicket>,
}

/// What a checkpoint changes when it is done.
#[derive(Clone, Copy, Debug, SavedValue)]
struct CheckpointInFlight {
    /// The log position before which slots are free.
    release: u64,
    /// How many blocks fewer are lost since.
    forgets: u64,
}

impl Undo {
    /// When a flush is done, the slots before a position are free.
    pub fn release_after(&mut self, ticket: FlushTicket, position: u64) {
        match self.releases.back_mut() {
            Some((last, release)) if *last == ticket => *release = position.max(*release),
            _ => self.releases.push_back((ticket, position)),
        }
    }

    /// The next position before which slots are free because a flush is done.
    pub fn next_release(&mut self, is_done: impl Fn(FlushTicket) -> bool) -> Option<u64> {
        self.releases.front().filter(|(ticket, _)| is_done(*ticket))?;
        self.releases.pop_front().map(|(_, position)| position)
    }

    /// Nothing becomes durable any more.
    pub fn forget_releases(&mut self) {
        self.releases.clear();
    }

    /// A checkpoint begins: when it is done, the slots before a position are free, and of all
    /// blocks that were lost only `lost` blocks are.
    pub fn checkpoint_begins(&mut self, position: u64, lost: u64) {
        let before = self
            .checkpoint
            .replace(CheckpointInFlight { release: position, forgets: self.lost_since - lost });
        assert!(before.is_none(), "two checkpoints at once");
    }

    /// True from the begin of a checkpoint until it is known to be done. The journal may have ended it
    /// before.
    pub fn awaits_checkpoint(&self) -> bool {
        self.checkpoint.is_some()
    }

    /// The checkpoint is durable; returns the position before which slots are free.
    pub fn checkpoint_done(&mut self) -> u64 {
        let done = self.checkpoint.take().expect("a checkpoint has begun");
        self.lost_since -= done.forgets;
        done.release
    }

    /// The layer has come up with so many lost blocks.
    pub fn opened(&mut self, lost: u64) {
        self.lost_since = lost;
    }

    /// A write of so many blocks has failed.
    pub fn lose(&mut self, blocks: u64) {
        self.lost_since += blocks;
    }

    /// Blocks that are lost now or may be after a power cut.
    pub fn lost_since(&self) -> u64 {
        self.lost_since
    }

    /// A band rewrite waits for a flush.
    pub fn rewrite_awaits(&mut self, ticket: FlushTicket) {
        self.rewrite_waits = Some(ticket);
    }

    /// True when the flush that a band rewrite has waited for is done; nothing waits for it then.
    pub fn rewrite_goes_on(&mut self, is_done: impl Fn(FlushTicket) -> bool) -> bool {
        self.rewrite_waits.take_if(|ticket| is_done(*ticket)).is_some()
    }

    /// Whatever a band rewrite has waited for, it does no longer; true when it did.
    pub fn end_of_waiting(&mut self) -> bool {
        self.rewrite_waits.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_free_when_their_flush_is_done() {
        let mut undo = Undo::default();
        undo.release_after(FlushTicket(1), 10);
        undo.release_after(FlushTicket(2), 30);
        undo.release_after(FlushTicket(2), 20);
        let done = |last: u64| move |ticket: FlushTicket| ticket.0 <= last;
        assert_eq!(undo.next_release(done(0)), None);
        assert_eq!(undo.next_release(done(1)), Some(10));
        assert_eq!(undo.next_release(done(1)), None);
        assert_eq!(undo.next_release(done(2)), Some(30), "the later of both");
        assert_eq!(undo.next_release(done(9)), None);
    }

    #[test]
    fn a_checkpoint_forgets_what_was_lost_and_is_there_again() {
        let mut undo = Undo::default();
        undo.opened(5);
        undo.lose(7);
        undo.checkpoint_begins(100, 4);
        undo.lose(1);
        assert_eq!(undo.lost_since(), 13, "the checkpoint is not durable yet");
        assert_eq!(undo.checkpoint_done(), 100);
        assert_eq!(undo.lost_since(), 5);
    }
}
