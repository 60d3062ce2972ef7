//! What a drive writes to its log in one go: it takes data from the host into its memory until a
//! flush comes or the memory set aside for it is full. Then it writes the data and the record of it,
//! and takes no more before both are on the medium.
//!
//! It takes one run of blocks at a time, so the data crosses the interface before the medium takes
//! any of it, not meanwhile. The memory is the write cache of the disk below, which keeps what it
//! was given as long as more comes.

use crate::durability::FlushTicket;
use crate::error::IoError;
use crate::saved::SavedValue;
use crate::units::BlockCount;

/// What a transaction does with a run of blocks that is to go to the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Takes {
    /// It takes so many blocks of it now.
    Now(BlockCount),
    /// It takes none before a run has come over the interface, or before it is written.
    Later,
    /// It is full, and has to be written first.
    AfterCommit,
}

/// The transaction that takes data now.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct Transaction {
    /// Blocks that fit in one; none where the log takes data as it comes.
    room: u64,
    /// Blocks taken since the last record.
    taken: u64,
    /// Of these, those that are on their way to the memory of the disk.
    arriving: u64,
    is_committing: bool,
    /// The flush of the journal that a commit waits for.
    awaits: Option<FlushTicket>,
    /// Why a commit has failed, until a flush of the host says so.
    failure: Option<IoError>,
}

impl Transaction {
    /// An empty one with so much room.
    pub fn new(room: BlockCount) -> Transaction {
        Transaction {
            room: room.0,
            taken: 0,
            arriving: 0,
            is_committing: false,
            awaits: None,
            failure: None,
        }
    }

    /// What becomes of a run while so many records are being written.
    #[inline]
    pub fn takes(&self, run: BlockCount, records_in_flight: u32) -> Takes {
        if self.room == 0 {
            return Takes::Now(run);
        }
        if self.arriving > 0 || self.is_committing || records_in_flight > 0 {
            return Takes::Later;
        }
        match self.room.saturating_sub(self.taken) {
            0 => Takes::AfterCommit,
            left => Takes::Now(BlockCount(run.0.min(left))),
        }
    }

    /// A run is sent to the memory of the disk.
    #[inline]
    pub fn begin_run(&mut self, run: BlockCount) {
        self.taken += run.0;
        self.arriving += run.0;
    }

    /// The run is there, or has failed.
    #[inline]
    pub fn end_run(&mut self, run: BlockCount) {
        self.arriving -= run.0;
    }

    /// True while it takes nothing, for a while that is not for want of room in the log.
    pub fn is_busy(&self) -> bool {
        self.room > 0 && (self.arriving > 0 || self.is_committing)
    }

    /// A record will tell of all that has arrived: the next one begins.
    pub fn close(&mut self) {
        self.taken = self.arriving;
    }

    /// It is being written because it is full.
    pub fn begin_commit(&mut self) {
        self.is_committing = true;
        self.close();
    }

    /// The commit waits for a flush of the journal.
    pub fn await_flush(&mut self, ticket: FlushTicket) {
        self.awaits = Some(ticket);
    }

    /// True when the flush that the commit has waited for is done; it waits for none then.
    pub fn is_flushed(&mut self, is_done: impl Fn(FlushTicket) -> bool) -> bool {
        self.awaits.take_if(|ticket| is_done(*ticket)).is_some()
    }

    /// The data and the record are on the medium, or will never be.
    pub fn end_commit(&mut self, result: Result<(), IoError>) {
        self.is_committing = false;
        self.awaits = None;
        self.failure = self.failure.or(result.err());
    }

    /// Why a commit has failed since the last flush of the host.
    pub fn take_failure(&mut self) -> Option<IoError> {
        self.failure.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: BlockCount = BlockCount(4);

    #[test]
    fn without_room_of_its_own_it_takes_everything_at_once() {
        let mut transaction = Transaction::new(BlockCount::ZERO);
        for _ in 0..3 {
            assert_eq!(transaction.takes(RUN, 1), Takes::Now(RUN));
            transaction.begin_run(RUN);
            assert!(!transaction.is_busy());
        }
    }

    #[test]
    fn runs_come_one_at_a_time_until_it_is_full() {
        let mut transaction = Transaction::new(BlockCount(6));
        assert_eq!(transaction.takes(RUN, 0), Takes::Now(RUN));
        transaction.begin_run(RUN);
        assert!(transaction.is_busy());
        assert_eq!(transaction.takes(RUN, 0), Takes::Later, "one is arriving");
        transaction.end_run(RUN);
        assert_eq!(transaction.takes(RUN, 1), Takes::Later, "a record is written");
        assert_eq!(transaction.takes(RUN, 0), Takes::Now(BlockCount(2)));
        transaction.begin_run(BlockCount(2));
        transaction.end_run(BlockCount(2));
        assert_eq!(transaction.takes(RUN, 0), Takes::AfterCommit);
        transaction.begin_commit();
        assert_eq!(transaction.takes(RUN, 0), Takes::Later);
        transaction.end_commit(Ok(()));
        assert_eq!(transaction.takes(RUN, 0), Takes::Now(RUN));
    }

    #[test]
    fn what_arrives_during_a_flush_belongs_to_the_next_one() {
        let mut transaction = Transaction::new(BlockCount(8));
        transaction.begin_run(RUN);
        transaction.end_run(RUN);
        transaction.begin_run(BlockCount(1));
        transaction.close();
        transaction.end_run(BlockCount(1));
        assert_eq!(transaction.takes(BlockCount(8), 0), Takes::Now(BlockCount(7)));
    }

    #[test]
    fn a_commit_that_fails_is_told_once() {
        let mut transaction = Transaction::new(BlockCount(8));
        transaction.begin_commit();
        transaction.await_flush(FlushTicket(3));
        assert!(!transaction.is_flushed(|ticket| ticket.0 < 3));
        assert!(transaction.is_flushed(|ticket| ticket.0 <= 3));
        transaction.end_commit(Err(IoError::Medium));
        assert_eq!(transaction.takes(RUN, 0), Takes::Now(RUN));
        assert_eq!(transaction.take_failure(), Some(IoError::Medium));
        assert_eq!(transaction.take_failure(), None);
    }
}
