//! The band rewrite: merges all that the log holds of a band into it. One at a time.
//!
//! ```text
//! Draining -> Overhead -> Reading -> Gathering -> WritingScratch -> FlushingScratch -> NotingScratch
//!          -> WritingHome -> FlushingHome -> NotingHome
//! ```
//!
//! The old content of the band, with the log, stays good until the merged copy in the scratch band
//! is complete and noted; the scratch band stays good until the band is. The in-place method goes
//! from `Gathering` to `WritingHome` and ends there. A rewrite that writes notes forces its writes and
//! skips the two phases that flush.
//!
//! With `gather = "beside"` the log is read in `Reading` too, and `Gathering` only puts it over what was read at home.
//!
//! A drive that has memory for a part of a band only goes through this from `Reading` on once for
//! each [stretch](super::stretch) of it.
//!
//! A rewrite in idle time is made of chunks, and pauses between two of them when a request arrives.
//! Reads of its band are served meanwhile: from home as long as home is whole, then from the scratch
//! band.

use super::settings::{IdleCleaning, RewriteMethod};
use super::shape::Shape;
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::map::BandId;
use crate::saved::SavedValue;
use crate::units::{Duration, Instant};

/// What an access takes beside its transfer: a seek within one area and half a revolution at 5400
/// to 7200 rpm. *Estimated*; used only to judge whether a band is nearly finished.
pub(super) const ACCESS: Duration = Duration::from_ms(12);

/// How far a rewrite has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) enum Phase {
    /// Waits for the writes in flight, and for the reads of the band.
    Draining,
    /// Waits as long as the firmware takes.
    Overhead,
    Reading,
    Gathering,
    WritingScratch,
    /// Waits until the scratch copy is durable, where that takes a flush.
    FlushingScratch,
    NotingScratch,
    WritingHome,
    /// Waits until the band is durable at home, where that takes a flush.
    FlushingHome,
    NotingHome,
}

/// Why a rewrite has begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) enum Reason {
    /// A write has no room.
    Room,
    /// A write has had none, and not enough is free yet.
    Share,
    /// No request has come for a while.
    Idle,
}

/// Whether a rewrite may go on, and how long it has taken.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct Pace {
    /// Nobody waits for it: it goes on only while no request is being served.
    pub is_idle: bool,
    /// It goes on though a request has arrived.
    pub is_finishing: bool,
    /// Nothing of it is in flight, and something has to happen before it goes on.
    pub is_paused: bool,
    /// The firmware has taken its time.
    pub is_overhead_over: bool,
    /// When it last began or went on ...
    since: Instant,
    /// ... and how long it had run before.
    ran: Duration,
}

impl Pace {
    /// Nothing of the rewrite is in flight and it has to wait.
    pub fn pause(&mut self, now: Instant) {
        self.is_paused = true;
        self.ran += now.since(self.since);
    }

    /// The rewrite goes on.
    pub fn resume(&mut self, now: Instant) {
        self.is_paused = false;
        self.since = now;
    }

    /// How long it has run until now; it is not paused.
    pub fn ran(&self, now: Instant) -> Duration {
        self.ran + now.since(self.since)
    }
}

/// The part of the band that is in memory, and what is to become of it. Offsets are in the band.
#[derive(Clone, Copy, Default, Debug, SavedValue)]
pub(super) struct Held {
    /// The blocks in memory: these from this offset.
    pub from: u64,
    pub blocks: u64,
    /// Of these, how many are written home; the rest is carried on to the next stretch.
    pub home_blocks: u64,
    /// Of these, how many were carried on from the stretch before.
    pub carried: u64,
    /// The offset that the rewrite ends at.
    pub end_of_rewrite: u64,
    /// The offset from which there is nothing at home.
    pub written_end: u64,
    /// The place in the scratch band of the stretch.
    pub place: usize,
    /// The stretch is in the scratch band already.
    pub is_in_scratch: bool,
}

impl Held {
    /// True when nothing is left of the band behind what is in memory.
    pub fn is_last(&self) -> bool {
        self.from + self.blocks == self.end_of_rewrite
    }

    /// Of the blocks in memory, those that home has.
    pub fn blocks_at_home(&self) -> u64 {
        let end = self.from + self.blocks;
        self.written_end.clamp(self.from, end) - self.from
    }
}

/// The steps of the present phase: blocks to move, or runs of the log to gather.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct Steps {
    /// Those before it have been sent off.
    pub next: u64,
    pub end: u64,
    /// Operations of the rewrite that are in flight.
    pub outstanding: u32,
    /// Of these, steps of the present phase.
    pub in_flight: u32,
    /// The later of two chunks has ended before the earlier: a third might reach the tracks that
    /// the earlier one destroys.
    pub is_out_of_order: bool,
    pub result: Result<(), IoError>,
}

impl Steps {
    /// An operation has been issued that ends the steps before `next`.
    pub fn sent(&mut self) -> u64 {
        self.outstanding += 1;
        self.in_flight += 1;
        self.next
    }

    /// An operation has been issued that is no step of the present phase.
    pub fn sent_beside(&mut self) {
        self.outstanding += 1;
    }

    /// An operation has finished: one of the steps that end at `end`, or none of them.
    pub fn done(&mut self, end: Option<u64>, result: Result<(), IoError>) {
        self.outstanding -= 1;
        self.in_flight -= u32::from(end.is_some());
        self.is_out_of_order = self.in_flight > 0 && end == Some(self.next);
        self.result = self.result.and(result);
    }
}

/// A rewrite in progress.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct Rewrite {
    pub band: BandId,
    pub phase: Phase,
    pub reason: Reason,
    pub pace: Pace,
    /// Reads of its band are served while it runs.
    pub serves_reads: bool,
    /// Brings home what only the scratch band holds, and merges nothing.
    pub is_restore: bool,
    pub stretch: Held,
    pub steps: Steps,
    /// Blocks of the log that were merged.
    pub merged: u64,
    /// Positions before it are merged; later ones were appended meanwhile and stay in the log.
    pub gathered_before: u64,
    /// The lowest log position that is still to be read.
    pub hold: Option<u64>,
    /// As long as the longest stretch, so that every rewrite uses the same memory.
    pub buffer: BufferSlice,
    pub note: BufferSlice,
    /// What the log holds of the present stretch, where it is read beside home; as long as `buffer`.
    pub beside: BufferSlice,
    /// It is read, or being read.
    pub is_gathered_beside: bool,
}

impl Rewrite {
    /// A rewrite of which nothing has been read.
    pub fn new(
        band: BandId,
        reason: Reason,
        is_restore: bool,
        shape: &Shape,
        now: Instant,
    ) -> Rewrite {
        let settings = &shape.settings;
        let is_idle = reason == Reason::Idle;
        Rewrite {
            band,
            phase: Phase::Draining,
            reason,
            pace: Pace {
                is_idle,
                is_finishing: false,
                is_paused: false,
                is_overhead_over: settings.rewrite.overhead == Duration::ZERO,
                since: now,
                ran: Duration::ZERO,
            },
            serves_reads: (is_idle || settings.blocking.slice.is_some())
                && settings.rewrite.method == RewriteMethod::CopyThenHome,
            is_restore,
            stretch: Held::default(),
            steps: Steps {
                next: 0,
                end: 0,
                outstanding: 0,
                in_flight: 0,
                is_out_of_order: false,
                result: Ok(()),
            },
            merged: 0,
            gathered_before: 0,
            hold: None,
            buffer: BufferSlice::EMPTY,
            note: BufferSlice::EMPTY,
            beside: BufferSlice::EMPTY,
            is_gathered_beside: false,
        }
    }

    /// True before anything was read.
    pub fn is_draining(&self) -> bool {
        matches!(self.phase, Phase::Draining | Phase::Overhead)
    }

    /// True when the rewrite will take a block of its band at this position out of the log.
    pub fn drops(&self, position: u64) -> bool {
        !self.is_restore && position < self.gathered_before
    }

    /// The chunks in flight count as not done.
    pub fn take_back_chunks(&mut self, chunk_blocks: u64) {
        let steps = &mut self.steps;
        let in_flight = u64::from(steps.in_flight);
        steps.next = match self.phase {
            Phase::Gathering => steps.next.saturating_sub(in_flight),
            _ => steps.next.div_ceil(chunk_blocks).saturating_sub(in_flight) * chunk_blocks,
        };
    }

    /// An estimate of what is left of a rewrite whose reading has begun and that gathers so many
    /// runs of the log.
    pub fn rest(&self, shape: &Shape, idle: &IdleCleaning, runs_to_gather: u64) -> Duration {
        let chunks = |blocks: u64| blocks.div_ceil(shape.chunk_blocks);
        let held = &self.stretch;
        let left = self.steps.end - self.steps.next;
        let band = chunks(held.blocks);
        let copies = shape.settings.rewrite.method == RewriteMethod::CopyThenHome;
        // What follows the gather: with a scratch copy two writes and two notes.
        let (writes, accesses) = match copies && !held.is_in_scratch {
            true => (2, 4),
            false => (1, 2),
        };
        let (here, accesses) = match self.phase {
            Phase::Draining | Phase::Overhead | Phase::Reading => {
                (chunks(left) + writes * band, runs_to_gather + accesses)
            }
            Phase::Gathering => (writes * band, left.min(runs_to_gather) + accesses),
            Phase::WritingScratch => (chunks(left) + band, 3),
            Phase::FlushingScratch | Phase::NotingScratch => (band, 2),
            Phase::WritingHome => (chunks(left), 1),
            Phase::FlushingHome | Phase::NotingHome => (0, 0),
        };
        // The stretches that follow are read and written, without what is gathered for them.
        let behind = held.end_of_rewrite - held.from - held.blocks;
        let moves = if copies { 3 } else { 2 };
        let chunks = here + moves * chunks(behind);
        Duration(chunks * idle.chunk_time.0 + accesses * ACCESS.0)
    }
}
