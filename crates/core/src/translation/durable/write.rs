//! Writes: which checksums they have and what is recorded when their data has been written.

use super::records::Entry;
use crate::buffer::BufferSlice;
use crate::durability::DataRef;
use crate::extent::Extent;
use crate::layer::Context;
use crate::planted::PlantedBug;
use crate::translation::persistent_cache::{PersistentCache, remove_one};
use crate::units::Lba;

/// Of a write that supersedes nothing.
pub(in crate::translation) const SUPERSEDES_NOTHING: u64 = u64::MAX;

impl PersistentCache {
    /// Lets slots be used again too early: planted bugs.
    pub(in crate::translation) fn release_early(&mut self, ctx: &Context<'_>) {
        let Some(durable) = &self.durable else {
            return;
        };
        let trims = ctx.is_planted(PlantedBug::TrimReusedEarly);
        let any = ctx.is_planted(PlantedBug::OldLocationReusedEarly);
        if any || (trims && durable.is_unsure(durable.zeroed_at)) {
            let position = self.log.superseded_before();
            self.log.release(position);
        }
    }

    /// The lowest log position that a write of `extent`, about to begin, supersedes; its slot and
    /// those behind it are not free before the record of the write is durable.
    pub(in crate::translation) fn begin_to_supersede(&mut self, extent: Extent) -> u64 {
        let Some(durable) = &mut self.durable else {
            return SUPERSEDES_NOTHING;
        };
        let positions = self.log.map().pieces(extent).map(|piece| piece.position);
        let lowest = positions.min().unwrap_or(SUPERSEDES_NOTHING);
        if lowest != SUPERSEDES_NOTHING {
            durable.superseding.push(lowest);
        }
        lowest
    }

    /// The record of a write is appended, or that of its failure.
    pub(super) fn end_of_superseding(&mut self, lowest: u64) {
        if lowest != SUPERSEDES_NOTHING {
            remove_one(&mut self.durable().superseding, lowest);
        }
    }

    /// Keeps the checksums of blocks that are about to be written to the log.
    pub(in crate::translation) fn keep_slot_sums(
        &mut self,
        position: u64,
        buffer: BufferSlice,
        ctx: &Context<'_>,
    ) {
        let slot = self.log.slot(position) as usize;
        let durable = self.durable();
        durable.sums.clear();
        ctx.checksum(buffer, &mut durable.sums);
        let end = slot + durable.sums.len();
        durable.slot_sums[slot..end].copy_from_slice(&durable.sums);
    }

    /// A write to the log has succeeded.
    pub(in crate::translation) fn record_append(
        &mut self,
        extent: Extent,
        position: u64,
        supersedes: u64,
        ctx: &mut Context<'_>,
    ) {
        let slots = self.log_extent(position, extent.blocks.0);
        let from = self.log.slot(position) as usize;
        let to = from + extent.blocks.0 as usize;
        let mut sums = core::mem::take(&mut self.durable().sums);
        sums.clear();
        sums.extend_from_slice(&self.durable().slot_sums[from..to]);
        let entry = Entry::Append {
            lba: extent.start,
            position,
        };
        self.record_data(&entry, slots, &sums, ctx);
        self.durable().sums = sums;
        self.end_of_superseding(supersedes);
    }

    /// Appends the record of data that was written.
    pub(super) fn record_data(
        &mut self,
        entry: &Entry,
        extent: Extent,
        checksums: &[u32],
        ctx: &mut Context<'_>,
    ) {
        let data = DataRef { extent, checksums };
        self.record(entry, Some(data), ctx);
        let durable = self.durable();
        durable.unflushed_blocks += extent.blocks.0;
        if durable.unflushed_blocks >= durable.unflushed_blocks_max {
            self.flush_durably(ctx);
        }
    }

    /// A write to the log or of the bypass has failed, and [`lose`](Self::lose) took note.
    pub(in crate::translation) fn record_failed_write(
        &mut self,
        extent: Extent,
        supersedes: u64,
        ctx: &mut Context<'_>,
    ) {
        self.record_lost(extent, ctx);
        self.end_of_superseding(supersedes);
    }

    /// The blocks of a band, from its start, that may be read at home.
    pub(in crate::translation) fn readable_blocks(&self, band: crate::map::BandId) -> u64 {
        u64::from(self.write_pointers[band.0 as usize])
    }

    /// The first address of a band that reads as zeroes whatever lies at home.
    pub(in crate::translation) fn readable_end(&self, band: crate::map::BandId) -> Lba {
        let start = self.bands.extent_of(band).start;
        Lba(start.0 + self.readable_blocks(band))
    }
}
