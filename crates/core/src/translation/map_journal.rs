//! How a drive keeps its map of the log over a power cut, as far as that takes time and room: a
//! record for each flush, and a stall every so many records.
//!
//! What a durable translation writes of its map is in its journal; it takes from here the room and
//! the stalls only, which belong to the drive that it stands for.

use super::persistent_cache::{Part, PersistentCache};
use super::timers::Timer;
use crate::buffer::BufferSlice;
use crate::counters::Counter;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::operation::{Cause, Operation};
use crate::units::{BlockCount, Duration, Instant, Lba};
use alloc::collections::VecDeque;

/// What can be set on the map's journal; the default is none.
///
/// A *record* is a flush that follows a write to the log, with all that was written since the last
/// one, or, where nothing flushes, a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MapJournalSettings {
    /// How many records there are from one stall to the next; 0 is no stall.
    pub every_records: u64,
    /// How long the writes wait in a stall at least ...
    pub stall: Duration,
    /// ... and how much longer for each MiB of log that records took since the last stall.
    pub stall_per_mib: Duration,
    /// Slots that a record of a flush takes; 0 is a flush that writes no record.
    pub log_per_flush: BlockCount,
    /// Time the firmware takes for a flush with a record beside its disk operations: a calibrated
    /// parameter of a drive.
    pub flush_overhead: Duration,
}

/// What has happened since the last flush and since the last stall.
#[derive(Clone, Default, Debug)]
pub(super) struct MapJournal {
    /// Flushes with a record since the last stall.
    flushes: u64,
    /// Packets since the last flush or stall.
    packets: u64,
    is_stalled: bool,
    /// The address appended last ...
    newest: Lba,
    /// ... and whether no record tells of it.
    is_unrecorded: bool,
    /// Flushes that are to end with a record.
    in_flight: u32,
    /// Flushes whose record the firmware makes up, and until when.
    delayed: VecDeque<(Instant, u32)>,
    /// Slots to be skipped before anything is appended.
    pub skip: u64,
}

impl MapJournal {
    /// True while writes wait for the map to be written out.
    pub fn is_stalled(&self) -> bool {
        self.is_stalled
    }
}

impl PersistentCache {
    /// A run has been appended.
    #[inline]
    pub(super) fn count_packet(&mut self, extent: Extent) {
        let journal = &mut self.map_journal;
        journal.packets += 1;
        journal.newest = extent.start;
        journal.is_unrecorded = true;
    }

    /// True while writes wait for the map to be written out, which begins when it is due.
    #[inline]
    pub(super) fn stalls(&mut self, ctx: &mut Context<'_>) -> bool {
        let MapJournalSettings {
            every_records: every,
            stall,
            stall_per_mib,
            log_per_flush,
            ..
        } = self.settings.map_journal;
        let journal = &mut self.map_journal;
        if every == 0 || journal.is_stalled || journal.flushes.max(journal.packets) < every {
            return journal.is_stalled;
        }
        let log_bytes = u128::from(journal.flushes) * u128::from(log_per_flush.bytes());
        let growth_ns = (u128::from(stall_per_mib.0) * log_bytes) >> 20;
        let stall = Duration(stall.0 + growth_ns as u64);
        journal.flushes = 0;
        journal.packets = 0;
        if stall == Duration::ZERO {
            return false;
        }
        journal.is_stalled = true;
        ctx.count(Counter::MapStalls, 1);
        ctx.count(Counter::MapStallNs, stall.0);
        self.set_timer(Timer::Stall, ctx.now() + stall, ctx);
        true
    }

    /// The map is on the medium.
    pub(super) fn end_of_stall(&mut self) {
        self.map_journal.is_stalled = false;
    }

    /// A flush has arrived. What is written behind it goes on no stream: a host that flushes each
    /// of its writes writes to the log.
    pub(super) fn flush(&mut self, job: u32, ctx: &mut Context<'_>) {
        let MapJournalSettings { log_per_flush, .. } = self.settings.map_journal;
        let journal = &mut self.map_journal;
        let is_news = core::mem::take(&mut journal.is_unrecorded);
        if is_news {
            journal.flushes += 1;
            journal.packets = 0;
        }
        if log_per_flush == BlockCount::ZERO {
            return self.flush_below(job, false, ctx);
        }
        self.streams.forget();
        // What another flush is about to record is not safe before that record is.
        if !is_news && journal.in_flight == 0 {
            return self.flush_below(job, false, ctx);
        }
        journal.in_flight += 1;
        if is_news {
            journal.skip += log_per_flush.0;
        }
        match self.durable {
            // Its journal writes the record.
            Some(_) => self.make_up_record(job, ctx),
            None => self.flush_below(job, true, ctx),
        }
    }

    fn flush_below(&mut self, job: u32, is_recorded: bool, ctx: &mut Context<'_>) {
        if self.durable.is_some() {
            return self.flush_for(job, ctx);
        }
        let cause = self.jobs[job as usize].request.cause;
        let part = Part::Flush { job, is_recorded };
        let (flush, none) = (Operation::Flush, BufferSlice::EMPTY);
        self.issue(part, flush, Extent::EMPTY, none, cause, ctx);
        self.all_issued(job, ctx);
    }

    /// A flush below has finished. Its part of the job ends when its record has been issued.
    pub(super) fn flushed_below(
        &mut self,
        job: u32,
        is_recorded: bool,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        match (is_recorded, result) {
            (true, Ok(())) => return self.make_up_record(job, ctx),
            (true, Err(_)) => self.map_journal.in_flight -= 1,
            (false, _) => {}
        }
        self.part_done(job, result, ctx);
    }

    /// Gives the firmware its time for a record.
    fn make_up_record(&mut self, job: u32, ctx: &mut Context<'_>) {
        let overhead = self.settings.map_journal.flush_overhead;
        if overhead == Duration::ZERO {
            return self.record_is_made_up(job, ctx);
        }
        let at = ctx.now() + overhead;
        self.map_journal.delayed.push_back((at, job));
        if self.map_journal.delayed.len() == 1 {
            self.set_timer(Timer::Record, at, ctx);
        }
    }

    /// The firmware has taken its time for the oldest record, and for others of the same age.
    pub(super) fn end_of_flush_overhead(&mut self, ctx: &mut Context<'_>) {
        while let Some(&(at, job)) = self.map_journal.delayed.front() {
            if at > ctx.now() {
                return self.set_timer(Timer::Record, at, ctx);
            }
            self.map_journal.delayed.pop_front();
            self.record_is_made_up(job, ctx);
        }
    }

    fn record_is_made_up(&mut self, job: u32, ctx: &mut Context<'_>) {
        if self.durable.is_some() {
            self.map_journal.in_flight -= 1;
            return self.flush_for(job, ctx);
        }
        self.write_record(job, ctx);
        self.part_done(job, Ok(()), ctx);
    }

    /// Writes the page of the map that the newest address belongs to. Pages of addresses far apart
    /// lie at any angle of their track.
    fn write_record(&mut self, job: u32, ctx: &mut Context<'_>) {
        let track = self.layout.areas().metadata;
        let pages = u128::from(track.blocks.0);
        let page =
            u128::from(self.map_journal.newest.0) * pages / u128::from(self.bands.blocks().0);
        let buffer = ctx.allocate(BlockCount(1));
        ctx.fill_metadata(buffer, &self.map_journal.newest.0.to_le_bytes());
        let place = Extent::new(track.start.0 + page as u64, 1);
        let part = Part::Record { job, buffer };
        self.issue(
            part,
            Operation::WRITE_DURABLE,
            place,
            buffer,
            Cause::Metadata,
            ctx,
        );
    }

    /// A record is written.
    pub(super) fn record_written(
        &mut self,
        job: u32,
        buffer: BufferSlice,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        ctx.release(buffer);
        self.map_journal.in_flight -= 1;
        self.part_done(job, result, ctx);
    }
}
