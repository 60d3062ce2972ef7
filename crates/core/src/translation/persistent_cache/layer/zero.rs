//! Zeroes in their turn between the writes: a record and no data, unless the set of zeroed ranges is
//! full or the drive has no TRIM.

use super::PersistentCache;
use super::write::Zeroed;
use crate::layer::Context;
use crate::translation::persistent_cache::apply::apply_zero;
use crate::translation::persistent_cache::areas::ZEROED_RANGES_MAX;
use crate::translation::persistent_cache::records::Entry;
use crate::translation::persistent_cache::settings::TrimMethod;
use crate::units::BlockCount;

impl PersistentCache {
    /// Serves a zero for which the journal has room.
    pub(super) fn zero_in_turn(&mut self, job: u32, ctx: &mut Context<'_>) -> Zeroed {
        let extent = self.requests.get(job).request.extent;
        if self.shape.settings.trim == TrimMethod::None {
            return self.zero_as_write(job, ctx);
        }
        // What is zeroed when a band is gathered goes home as zeroes; until that is recorded, the
        // set of zeroed blocks of the band only shrinks.
        if self.rewriter.is_merging(&self.shape, extent) {
            self.rewriter.stop_waiting_for_idle_time();
            return Zeroed::Waits;
        }
        // The write pointer of a band must be what the records before this one say.
        let bands = &self.shape.bands;
        let is_zeroed = |band| bands.extent_of(band).overlaps(extent);
        if self.writes.bypasses_any(is_zeroed) {
            return Zeroed::Waits;
        }
        if self.blocks.zeroed.len() >= ZEROED_RANGES_MAX {
            return self.zero_as_write(job, ctx);
        }
        apply_zero(extent, &self.shape, &mut self.blocks, &mut self.checksums);
        self.rewriter.leave_out(&self.shape, extent);
        let record = self.record(&Entry::Zero(extent), ctx);
        self.undo.zeroed_at = Some(record);
        Zeroed::Done
    }

    /// Makes the zeroes that are written for a job.
    fn zero_as_write(&mut self, job: u32, ctx: &mut Context<'_>) -> Zeroed {
        let extent = self.requests.get(job).request.extent;
        let blocks = extent.blocks.0.min(self.blocks.log.packet_max());
        let zeroes = ctx.allocate(BlockCount(blocks));
        ctx.zero(zeroes);
        self.requests.get_mut(job).zeroes = zeroes;
        Zeroed::AsWrite
    }
}
