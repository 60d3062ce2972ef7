//! Writes that go straight home: long sequential streams, and what belongs into a zone. At a band's
//! write pointer only.
//!
//! Writing a track destroys the next ones, so a write may go home only where nothing above it in
//! its band is live. The *write pointer* of a band is the number of blocks from its start that
//! may hold data at home; a fresh band has 0, a rewritten one its length, and zeroing the end of a
//! band lowers it. What lies above it is unwritten or zeroed, or in the log, which no write home
//! can harm.

use super::PersistentCache;
use crate::counters::Counter;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::ledger::WrittenData;
use crate::map::BandId;
use crate::planted::PlantedBug;
use crate::translation::persistent_cache::records::Entry;
use crate::translation::persistent_cache::requests::{DataWrite, Part};
use crate::translation::persistent_cache::writes::FirstBlocks;
use crate::translation::persistent_cache::zones::Belongs;

impl PersistentCache {
    /// Writes the first blocks of the rest of a job straight home if its stream is long enough and
    /// the band allows it; `None` when they belong into the log.
    pub(super) fn try_bypass(
        &mut self,
        job: u32,
        rest: Extent,
        ctx: &mut Context<'_>,
    ) -> Option<FirstBlocks> {
        let bypass = self.shape.settings.bypass?;
        let entry = self.requests.get(job);
        if entry.progress < entry.around_from {
            return None;
        }
        if entry.request.extent.blocks < bypass.min_blocks {
            return None;
        }
        let (band, offset) = self.shape.band_and_offset(rest.start);
        let pointer = self.blocks.pointer(band)?;
        let under_rewrite = self.rewriter.band() == Some(band) || self.blocks.is_salvaged(band);
        let over_live = offset < pointer && ctx.is_planted(PlantedBug::BypassOverLiveData);
        if (offset != pointer && !over_live) || under_rewrite {
            return None;
        }
        // A read of what was never written there must not find it destroyed.
        if self.reads.is_read_at_home(band) {
            return Some(FirstBlocks::Waits);
        }
        self.write_at_pointer(job, rest, ctx)
    }

    /// Writes the first blocks of the rest of a job home if their zone takes them there; `None`
    /// when they belong into the log.
    pub(super) fn write_to_zone(
        &mut self,
        job: u32,
        rest: Extent,
        ctx: &mut Context<'_>,
    ) -> Option<FirstBlocks> {
        let (band, offset) = self.shape.band_and_offset(rest.start);
        match self.zones().place(band, offset) {
            Belongs::InLog => None,
            Belongs::AtPointer => self.write_at_pointer(job, rest, ctx),
            Belongs::Anywhere => {
                let extent = self.up_to_next_band(rest);
                Some(self.write_conventionally(job, extent, ctx))
            }
        }
    }

    /// Writes the first blocks of the rest of a job, which lie where every write goes home.
    pub(super) fn write_in_place(
        &mut self,
        job: u32,
        rest: Extent,
        ctx: &mut Context<'_>,
    ) -> FirstBlocks {
        let mut extent = Extent::between(rest.start, rest.end().min(self.shape.in_place_end));
        let zeroes = self.requests.get(job).zeroes.blocks;
        if zeroes > 0 {
            extent.blocks.0 = extent.blocks.0.min(u64::from(zeroes));
        }
        ctx.count(Counter::InPlaceBlocks, extent.blocks.0);
        self.write_conventionally(job, extent, ctx)
    }

    /// Writes blocks of a job home, over whatever is there.
    fn write_conventionally(
        &mut self,
        job: u32,
        extent: Extent,
        ctx: &mut Context<'_>,
    ) -> FirstBlocks {
        self.blocks.zeroed.remove(extent);
        self.blocks.lost.remove(extent);
        let home = self.shape.home_of(extent);
        let entry = self.requests.get(job);
        let (request, buffer) = (entry.request, entry.payload_of(extent));
        let operation = self.shape.conduct.data_operation(request.operation);
        let part = Part::Conventional { job, extent };
        self.issue(part, operation, (home, buffer), request.cause, ctx);
        FirstBlocks::Issued(extent.blocks)
    }

    /// Writes the first blocks of the rest of a job home, at the write pointer of their band; `None`
    /// when they belong into the log.
    ///
    /// One such write is in flight in a band at a time: a disk may execute two in either order,
    /// and the lower one would destroy the upper.
    fn write_at_pointer(
        &mut self,
        job: u32,
        rest: Extent,
        ctx: &mut Context<'_>,
    ) -> Option<FirstBlocks> {
        let (band, offset) = self.shape.band_and_offset(rest.start);
        if self.writes.is_bypassing(band) {
            return Some(FirstBlocks::Waits);
        }
        if !self.may_bypass(band, ctx) {
            return None;
        }
        let conduct = self.shape.conduct;
        let whole = self.shape.bands.extent_of(band);
        let mut extent = Extent::between(rest.start, rest.end().min(whole.end()));
        extent.blocks.0 = extent.blocks.0.min(conduct.bypass_run_max);
        if self.blocks.pointer(band) == Some(0) && !conduct.pointers_bound_reads {
            self.blocks.zero_all_but_the_log(whole);
        }
        let supersedes = self.blocks.lowest_position(extent);
        self.blocks.send_home(extent);
        let end = offset + extent.blocks.0;
        self.blocks.raise_pointer(band, end);
        if let Some(zones) = &mut self.zones {
            zones.advance(band, end);
        }
        self.writes.begin_bypass(band);
        self.writes.begin(extent.blocks, supersedes);
        ctx.count(Counter::BypassedBlocks, extent.blocks.0);
        ctx.count(Counter::BandBlocksWritten, extent.blocks.0);
        let entry = self.requests.get(job);
        let (request, buffer) = (entry.request, entry.data_of(extent));
        let write = DataWrite { job, extent, buffer, supersedes };
        let home = self.shape.layout.home(band, offset, extent.blocks.0);
        let operation = conduct.data_operation(request.operation);
        let part = Part::Bypass(write);
        self.issue(part, operation, (home, buffer), request.cause, ctx);
        Some(FirstBlocks::Issued(extent.blocks))
    }

    /// True when the bypass may write to the band now, as far as the ledger and the checksums go.
    fn may_bypass(&mut self, band: BandId, ctx: &Context<'_>) -> bool {
        // The data below a pointer that a trim has lowered is still good if the trim is undone.
        let trims_early = ctx.is_planted(PlantedBug::TrimReusedEarly);
        if self.is_unsure(self.undo.zeroed_at) && !trims_early {
            return false;
        }
        let is_begun = self.blocks.pointer(band).is_some_and(|pointer| pointer > 0);
        let writes_below = ctx.is_planted(PlantedBug::BypassOverLiveData);
        self.checksums.open_band(band, is_begun, writes_below)
    }

    /// A write of the bypass has finished.
    pub(super) fn written_home(
        &mut self,
        write: &DataWrite,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        self.writes.end(write.extent.blocks);
        let (band, offset) = self.shape.band_and_offset(write.extent.start);
        self.writes.end_bypass(band);
        match result {
            Ok(()) => {
                let home = self.shape.layout.home(band, offset, write.extent.blocks.0);
                let entry = Entry::Bypass { lba: write.extent.start };
                let (kind, payload) = entry.encode();
                let data = WrittenData { place: home.extent, buffer: write.buffer };
                let (_, sums) = self.ledger.record_write(kind, payload.bytes(), data, ctx);
                self.checksums.append_home(band, offset, sums);
                self.flush_when_much_is_unflushed(ctx);
                self.writes.end_of_superseding(write.supersedes);
            }
            Err(_) => {
                self.blocks.lose(write.extent);
                if self.shape.conduct.verifies {
                    // Nothing of it can be verified, so the pointer goes back.
                    self.blocks.lower_pointer(band, offset);
                    self.checksums.open.truncate(band, offset);
                }
                self.data_write_failed(write, ctx);
            }
        }
        self.part_done(write.job, result, ctx);
    }
}
