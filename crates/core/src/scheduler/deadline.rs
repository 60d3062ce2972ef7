//! Batches in the order of addresses, and limits to what reads and writes wait: as Linux's mq-deadline has them.

use super::policy::{Choice, Why};
use super::waiting::{Waiting, lowest, ready};
use crate::saved::SavedValue;
use crate::units::{Duration, Instant, Lba};

/// Requests of a batch (mq-deadline's `fifo_batch`).
const BATCH: u32 = 16;
/// When a read is due (`read_expire`).
const READ_DUE: Duration = Duration::from_ms(500);
/// When a write is due (`write_expire`).
const WRITE_DUE: Duration = Duration::from_ms(5000);
/// Batches of reads that go before a batch of writes which waits (`writes_starved`).
const WRITES_STARVED: u32 = 2;

/// Batches of reads and batches of writes, each upwards from the head. A batch begins with the oldest request where that
/// is due, or where none is ahead.
#[derive(Clone, Debug, Default, SavedValue)]
pub struct Deadline {
    /// The batch that goes on is one of reads.
    reads: bool,
    /// Requests that it may have still.
    left: u32,
    /// Batches of reads since writes wait.
    starved: u32,
}

impl Deadline {
    /// Chooses among those that wait, in the order in which they came.
    pub fn choose(&mut self, all: &[Waiting], head: Lba, now: Instant) -> Option<Choice> {
        let of_kind = |reads: bool| ready(all).filter(move |(_, it)| it.is_read == reads);
        let ahead = |reads: bool| lowest(of_kind(reads).filter(|(_, it)| it.is_ahead(head)));
        if self.left > 0
            && let Some(place) = ahead(self.reads)
        {
            self.left -= 1;
            return Some(Choice { place, why: Why::Next });
        }
        let (has_reads, has_writes) =
            (of_kind(true).next().is_some(), of_kind(false).next().is_some());
        self.reads = has_reads && (!has_writes || self.starved < WRITES_STARVED);
        self.starved = if self.reads && has_writes { self.starved + 1 } else { 0 };
        self.left = BATCH - 1;
        let (oldest, request) = of_kind(self.reads).next()?;
        let due = if self.reads { READ_DUE } else { WRITE_DUE };
        if now >= request.arrived + due {
            return Some(Choice { place: oldest, why: Why::Age });
        }
        let next = ahead(self.reads).map(|place| Choice { place, why: Why::Next });
        next.or(Some(Choice { place: oldest, why: Why::Wrap }))
    }
}
