//! Transactions of the log: what the [firmware](super::super::transaction) takes in before it
//! writes.

use super::PersistentCache;
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Area, Context};
use crate::operation::{Cause, Operation};
use crate::translation::persistent_cache::conduct::Progress;
use crate::translation::persistent_cache::disks::LOG;
use crate::translation::persistent_cache::firmware::RecordOf;
use crate::translation::persistent_cache::requests::Part;
use crate::translation::persistent_cache::transaction::Takes;

impl PersistentCache {
    /// The first blocks of a run that may go to the log now; `None` when it has to wait. A forced
    /// write goes to the medium by itself.
    pub(super) fn take_into_transaction(
        &mut self,
        job: u32,
        run: Extent,
        ctx: &mut Context<'_>,
    ) -> Option<Extent> {
        if self.requests.get(job).request.operation.is_durable() {
            return Some(run);
        }
        match self.firmware.takes(run.blocks) {
            Takes::Now(blocks) => Some(Extent { start: run.start, blocks }),
            Takes::Later => None,
            Takes::AfterCommit => {
                self.commit(ctx);
                None
            }
        }
    }

    /// Writes a full transaction: its data, then its record.
    fn commit(&mut self, ctx: &mut Context<'_>) {
        self.firmware.begin_commit();
        match self.shape.conduct.progress {
            Progress::Notes => {
                let log = Area { port: LOG, ..Area::EMPTY };
                let nothing = (log, BufferSlice::EMPTY);
                self.issue(Part::Commit, Operation::Flush, nothing, Cause::Host, ctx);
            }
            // Its journal writes the record.
            Progress::Records => self.make_up_record(RecordOf::Transaction, ctx),
        }
    }

    /// The data of a transaction is on the medium, or is lost.
    pub(super) fn flushed_for_commit(
        &mut self,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        match result {
            Ok(()) => self.make_up_record(RecordOf::Transaction, ctx),
            Err(_) => self.end_commit(result),
        }
    }

    /// Has the journal make a transaction durable.
    pub(super) fn flush_for_commit(&mut self, ctx: &mut Context<'_>) {
        if self.ledger.failure().is_some() {
            return self.end_commit(Ok(()));
        }
        let ticket = self.flush_ledger(ctx);
        match self.ledger.is_flushed(ticket) {
            true => self.end_commit(Ok(())),
            false => self.firmware.transaction.await_flush(ticket),
        }
    }

    /// A transaction is written, or has failed: the next one takes data.
    pub(super) fn end_commit(&mut self, result: Result<(), IoError>) {
        self.firmware.end_of_record();
        self.firmware.transaction.end_commit(result);
    }
}
