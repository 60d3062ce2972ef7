//! The sequential bypass: a long stream goes straight home, at a band's write pointer only.
//!
//! Writing a track destroys the next ones, so a write may go home only where nothing above it in
//! its band is live. The *write pointer* of a band is the number of blocks from its start that
//! may hold data at home; a fresh band has 0, a rewritten one its length, and zeroing the end of a
//! band lowers it. What lies above it is unwritten or zeroed, or in the log, which no write home
//! can harm.

use super::durable::DATA_BLOCKS_MAX;
use super::persistent_cache::{Part, PersistentCache};
use super::write::Progress;
use crate::counters::Counter;
use crate::extent::Extent;
use crate::layer::Context;
use crate::planted::PlantedBug;
use crate::units::{BlockCount, Lba};

/// Streams followed at once.
const STREAMS_MAX: usize = 16;

/// The most recent sequential streams of writes.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams {
    streams: [Stream; STREAMS_MAX],
    clock: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    next: Lba,
    blocks: u64,
    used: u64,
}

impl Streams {
    /// Follows none of them any further.
    pub fn forget(&mut self) {
        self.streams = Default::default();
    }

    /// Takes note of a write and returns by how many blocks its stream had come before it: none
    /// when it continues no stream.
    pub fn follow(&mut self, extent: Extent) -> u64 {
        self.clock += 1;
        let continued = self
            .streams
            .iter_mut()
            .find(|stream| stream.blocks > 0 && stream.next == extent.start);
        let (stream, before) = match continued {
            Some(stream) => {
                let before = stream.blocks;
                (stream, before)
            }
            None => {
                let oldest = self.streams.iter_mut().min_by_key(|stream| stream.used);
                (oldest.expect("there are streams"), 0)
            }
        };
        *stream = Stream {
            next: extent.end(),
            blocks: before + extent.blocks.0,
            used: self.clock,
        };
        before
    }
}

impl PersistentCache {
    /// Writes the first blocks of the rest of a job straight home if its stream is long enough and
    /// the band allows it; `None` when they belong into the log.
    ///
    /// One such write is in flight in a band at a time: a disk may execute two in either order,
    /// and the lower one would destroy the upper.
    pub(super) fn try_bypass(
        &mut self,
        job: u32,
        rest: Extent,
        ctx: &mut Context<'_>,
    ) -> Option<Progress> {
        if !self.settings.bypass {
            return None;
        }
        let entry = self.jobs[job as usize];
        if entry.stream_blocks + entry.progress < self.settings.bypass_after_blocks.0 {
            return None;
        }
        let band = self.bands.band_of(rest.start);
        let whole = self.bands.extent_of(band);
        let offset = rest.start.offset_from(whole.start);
        let pointer = u64::from(self.write_pointers[band.0 as usize]);
        let under_rewrite = self.rewrite.as_ref().is_some_and(|r| r.band == band)
            || self.salvage.is_some_and(|salvage| salvage.band == band);
        let over_live = offset < pointer && ctx.is_planted(PlantedBug::BypassOverLiveData);
        if (offset != pointer && !over_live) || under_rewrite {
            return None;
        }
        // A read of what was never written there must not find it destroyed.
        if self.home_reads.contains(&band) {
            return Some(Progress::Waits);
        }
        self.write_at_pointer(job, rest, ctx)
    }

    /// Writes the first blocks of the rest of a job home, at the write pointer of their band; `None`
    /// when they belong into the log.
    pub(super) fn write_at_pointer(
        &mut self,
        job: u32,
        rest: Extent,
        ctx: &mut Context<'_>,
    ) -> Option<Progress> {
        let entry = self.jobs[job as usize];
        let band = self.bands.band_of(rest.start);
        let whole = self.bands.extent_of(band);
        let offset = rest.start.offset_from(whole.start);
        let pointer = u64::from(self.write_pointers[band.0 as usize]);
        if self.bypassing.contains(&band) {
            return Some(Progress::Waits);
        }
        if !self.may_bypass(band, ctx) {
            return None;
        }
        let mut extent = Extent::between(rest.start, rest.end().min(whole.end()));
        if self.durable.is_some() {
            extent.blocks = extent.blocks.min(BlockCount(DATA_BLOCKS_MAX));
        } else if pointer == 0 && self.zones.is_none() {
            self.zero_all_but_the_log(whole);
        }
        let supersedes = self.begin_to_supersede(extent);
        self.log.supersede(extent);
        self.zeroed.remove(extent);
        self.lost.remove(extent);
        let end = (offset + extent.blocks.0) as u32;
        let pointer = &mut self.write_pointers[band.0 as usize];
        *pointer = end.max(*pointer);
        if let Some(zones) = &mut self.zones {
            zones.advance(band, u64::from(end));
        }
        self.bypassing.push(band);
        self.begin_write(extent.blocks);
        ctx.count(Counter::BypassedBlocks, extent.blocks.0);
        ctx.count(Counter::BandBlocksWritten, extent.blocks.0);
        let home = self.layout.home(band, offset, extent.blocks.0);
        let first = extent.start.offset_from(entry.request.extent.start);
        let buffer = entry.request.buffer.part(first, extent.blocks.0);
        let part = Part::Bypass {
            job,
            extent,
            supersedes,
        };
        let request = entry.request;
        self.begin_bypass((band, offset), buffer, ctx);
        let operation = self.data_operation(request.operation);
        self.issue(part, operation, home, buffer, request.cause, ctx);
        Some(Progress::Issued(extent.blocks))
    }

    /// A write home destroys what follows it in a band and was never written: it reads as zeroes
    /// from now on without being read.
    pub(super) fn zero_all_but_the_log(&mut self, band: Extent) {
        self.zeroed.insert(band);
        for piece in self.log.map().pieces(band) {
            self.zeroed.remove(piece.extent);
        }
        for lost in self.lost.pieces(band) {
            self.zeroed.remove(lost);
        }
    }

    /// A zeroed range that reaches the end of a band leaves nothing live from its start on.
    pub(super) fn lower_write_pointers(&mut self, zeroed: Extent) {
        if self.write_pointers.is_empty() {
            return;
        }
        let busy = self.rewrite.as_ref().map(|rewrite| rewrite.band);
        let last = Lba(zeroed.end().0 - 1);
        for band in self.bands.band_of(zeroed.start).0..=self.bands.band_of(last).0 {
            let band = crate::map::BandId(band);
            let whole = self.bands.extent_of(band);
            if zeroed.end() >= whole.end() && Some(band) != busy {
                let offset = zeroed.start.0.saturating_sub(whole.start.0) as u32;
                let pointer = &mut self.write_pointers[band.0 as usize];
                *pointer = offset.min(*pointer);
            }
        }
    }

    /// A band rewritten up to `end` may hold data everywhere before.
    pub(super) fn raise_write_pointer(&mut self, band: crate::map::BandId, end: u64) {
        if let Some(pointer) = self.write_pointers.get_mut(band.0 as usize) {
            *pointer = (*pointer).max(end as u32);
        }
    }
}
