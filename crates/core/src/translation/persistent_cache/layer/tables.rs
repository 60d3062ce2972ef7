//! The tables of bands that the bypass has filled, on their way to the disk.

use super::PersistentCache;
use crate::error::IoError;
use crate::layer::Context;
use crate::map::BandId;
use crate::operation::{Cause, Operation};
use crate::translation::persistent_cache::open_bands::OpenBand;
use crate::translation::persistent_cache::records::Entry;
use crate::translation::persistent_cache::requests::Part;
use crate::units::BlockCount;

impl PersistentCache {
    /// Begins to write the table of an open band that is full or must go.
    pub(super) fn advance_tables(&mut self, ctx: &mut Context<'_>) {
        if !self.ledger.is_running() || ctx.is_read_only() {
            return;
        }
        let (bands, writes) = (&self.shape.bands, &self.writes);
        let under_rewrite = self.rewriter.band();
        let is_full =
            |open: &OpenBand| open.sums.len() as u64 == bands.extent_of(open.band).blocks.0;
        let is_busy = |band: BandId| under_rewrite == Some(band) || writes.is_bypassing(band);
        let Some(open) = self.checksums.open.due(is_full, is_busy) else {
            return;
        };
        let (band, mut sums) = (open.band, open.sums.clone());
        sums.resize(bands.extent_of(band).blocks.0 as usize, 0);
        let table = self.checksums.next_table(band);
        let pages = ctx.allocate(BlockCount(self.checksums.table_blocks()));
        self.checksums.open.begin_write(band, table, pages);
        let place = self.checksums.seal_table((band, table), &sums, pages, ctx);
        self.issue(Part::Table, Operation::WRITE, place, Cause::Metadata, ctx);
    }

    /// The pages of a table have been written.
    pub(super) fn table_written(&mut self, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        if result.is_err() || self.ledger.failure().is_some() {
            return self.drop_table(ctx);
        }
        let ticket = self.flush_ledger(ctx);
        self.checksums.open.await_flush(ticket);
    }

    /// Flushes are done: when a table has waited for one of them, it counts from now on.
    pub(super) fn table_flushed(&mut self, ctx: &mut Context<'_>) {
        let ledger = &self.ledger;
        let is_flushed = |ticket| ledger.is_flushed(ticket);
        let Some(write) = self.checksums.open.flushed(is_flushed) else {
            return;
        };
        ctx.release(write.pages);
        let (band, table) = (write.band, write.table);
        self.checksums.apply_table(band, table);
        self.record(&Entry::Table { band, table }, ctx);
    }

    /// The flush that a table waits for will not come.
    pub(super) fn table_loses_its_flush(&mut self, ctx: &mut Context<'_>) {
        if self.checksums.open.awaits_flush() {
            self.drop_table(ctx);
        }
    }

    fn drop_table(&mut self, ctx: &mut Context<'_>) {
        let write = self.checksums.open.give_up_write();
        ctx.release(write.pages);
    }
}
