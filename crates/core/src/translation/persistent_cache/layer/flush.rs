//! Flushes of the host.

use super::{PersistentCache, Timer};
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::layer::{Area, Context};
use crate::ledger::When;
use crate::operation::{Cause, Operation};
use crate::translation::persistent_cache::conduct::{FlushOrder, Progress};
use crate::translation::persistent_cache::disks::LOG;
use crate::translation::persistent_cache::firmware::{FlushNeeds, RecordOf};
use crate::translation::persistent_cache::requests::Part;
use crate::units::BlockCount;

impl PersistentCache {
    /// Serves a flush, behind the writes that wait for room where the drive does so.
    pub(super) fn flush_in_turn(&mut self, job: u32, ctx: &mut Context<'_>) {
        let waits = self.shape.conduct.flush_order == FlushOrder::BehindWrites
            && !self.writes.queue.is_empty();
        match waits {
            true => self.writes.queue.push_back(job),
            false => self.flush(job, ctx),
        }
    }

    /// Serves a flush.
    pub(super) fn flush(&mut self, job: u32, ctx: &mut Context<'_>) {
        if let Some(error) = self.firmware.transaction.take_failure() {
            return self.fail(job, error, ctx);
        }
        match (self.firmware.begin_flush(), self.shape.conduct.progress) {
            (FlushNeeds::Nothing, _) => self.flush_now(job, false, ctx),
            (FlushNeeds::Record, Progress::Notes) => self.flush_now(job, true, ctx),
            // Its journal writes the record.
            (FlushNeeds::Record, Progress::Records) => {
                self.make_up_record(RecordOf::Flush(job), ctx);
            }
        }
    }

    /// Has the ledger flush; where it has nothing to flush, the disk does.
    fn flush_now(&mut self, job: u32, is_recorded: bool, ctx: &mut Context<'_>) {
        if let Some(error) = self.ledger.failure() {
            return self.fail(job, error, ctx);
        }
        if self.answer_when_flushed(job, ctx) == When::Later {
            return;
        }
        let cause = self.requests.get(job).request.cause;
        let home = self.shape.layout.home_port();
        let other = Some(home).filter(|port| *port != LOG);
        for port in [LOG].into_iter().chain(other) {
            let whole_disk = Area { port, ..Area::EMPTY };
            let nothing = (whole_disk, BufferSlice::EMPTY);
            let part = Part::Flush { job, is_recorded };
            self.issue(part, Operation::Flush, nothing, cause, ctx);
        }
        self.all_issued(job, ctx);
    }

    /// A flush below has finished. Where two disks are flushed, what comes after waits for both. Its
    /// part of the job ends when its record has been issued.
    pub(super) fn flushed_below(
        &mut self,
        job: u32,
        is_recorded: bool,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        if self.requests.get(job).outstanding > 1 {
            return self.part_done(job, result, ctx);
        }
        let result = self.requests.get(job).result.and(result);
        match (is_recorded, result) {
            (true, Ok(())) => return self.make_up_record(RecordOf::Flush(job), ctx),
            (true, Err(_)) => self.firmware.end_of_record(),
            (false, _) => {}
        }
        self.part_done(job, result, ctx);
    }

    /// Gives the firmware its time for a record.
    pub(super) fn make_up_record(&mut self, of: RecordOf, ctx: &mut Context<'_>) {
        match self.firmware.make_up_record(of, ctx.now()) {
            None => self.record_is_made_up(of, ctx),
            Some(at) if self.firmware.makes_up_one() => self.alarms.set(Timer::Record, at, ctx),
            Some(_) => {}
        }
    }

    /// The firmware has taken its time for the oldest record, and for others of the same age.
    pub(super) fn end_of_flush_overhead(&mut self, ctx: &mut Context<'_>) {
        while let Some(of) = self.firmware.next_made_up(ctx.now()) {
            self.record_is_made_up(of, ctx);
        }
        if let Some(at) = self.firmware.made_up_at() {
            self.alarms.set(Timer::Record, at, ctx);
        }
    }

    fn record_is_made_up(&mut self, of: RecordOf, ctx: &mut Context<'_>) {
        match (self.shape.conduct.progress, of) {
            (Progress::Records, RecordOf::Flush(job)) => {
                self.firmware.end_of_record();
                self.flush_now(job, false, ctx);
            }
            (Progress::Records, RecordOf::Transaction) => self.flush_for_commit(ctx),
            (Progress::Notes, RecordOf::Flush(job)) => {
                self.write_record(of, ctx);
                self.part_done(job, Ok(()), ctx);
            }
            (Progress::Notes, RecordOf::Transaction) => self.write_record(of, ctx),
        }
    }

    /// Writes the page of the map that the newest address belongs to. Pages of addresses far apart
    /// lie at any angle of their track.
    fn write_record(&mut self, of: RecordOf, ctx: &mut Context<'_>) {
        let track = self.shape.layout.areas().metadata;
        let newest = self.firmware.newest().0;
        let pages = u128::from(track.extent.blocks.0);
        let page = u128::from(newest) * pages / u128::from(self.shape.bands.blocks().0);
        let buffer = ctx.allocate(BlockCount(1));
        ctx.fill_metadata(buffer, &newest.to_le_bytes());
        let part = Part::Record { of, buffer };
        let place = (track.part(page as u64, 1), buffer);
        self.issue(part, Operation::WRITE_DURABLE, place, Cause::Metadata, ctx);
    }

    /// A record is written.
    pub(super) fn record_written(
        &mut self,
        of: RecordOf,
        buffer: BufferSlice,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        ctx.release(buffer);
        match of {
            RecordOf::Flush(job) => {
                self.firmware.end_of_record();
                self.part_done(job, result, ctx);
            }
            RecordOf::Transaction => self.end_commit(result),
        }
    }
}
