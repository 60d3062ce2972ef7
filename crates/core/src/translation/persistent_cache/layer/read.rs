//! Reads: put together from the log, the bands and zeroed ranges. Nothing is handed up whose
//! checksum is not the one that was kept.

use super::PersistentCache;
use crate::buffer::BufferSlice;
use crate::checksums::{Page, PageRead, Verdict};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::map::BandId;
use crate::operation::{Cause, Operation};
use crate::planted::PlantedBug;
use crate::translation::persistent_cache::block_map::{ReadPiece, Source};
use crate::translation::persistent_cache::checksums::{HomeRead, Origin};
use crate::translation::persistent_cache::requests::Part;
use crate::translation::persistent_cache::rewrite::Phase;
use crate::units::BlockCount;

impl PersistentCache {
    /// Issues a read, or puts it aside while the band it needs is being rewritten.
    pub(super) fn start_read(&mut self, job: u32, ctx: &mut Context<'_>) {
        let request = self.requests.get(job).request;
        if self.blocks.lost.pieces(request.extent).next().is_some() {
            self.requests.get_mut(job).result = Err(IoError::Medium);
            return self.all_issued(job, ctx);
        }
        let mut plan = core::mem::take(&mut self.reads.plan);
        self.blocks.look_up(&self.shape, request.extent, &mut plan);
        self.read_as_planned(job, &plan, ctx);
        self.reads.plan = plan;
    }

    fn read_as_planned(&mut self, job: u32, plan: &[ReadPiece], ctx: &mut Context<'_>) {
        if plan.iter().any(|piece| self.is_kept_from_reads(piece)) {
            self.rewriter.stop_waiting_for_idle_time();
            return self.wait_for_rewrite(job, ctx);
        }
        if plan.iter().any(|piece| self.is_being_written(piece)) {
            return self.reads.waiting.push(job);
        }
        for piece in plan {
            let entry = self.requests.get(job);
            let (cause, buffer) = (entry.request.cause, entry.data_of(piece.extent));
            match piece.source {
                Source::Zeroes => ctx.zero(buffer),
                Source::Log(position) => {
                    let slots = self.shape.log_area(position, piece.extent.blocks.0);
                    let origin = Origin::Log(position);
                    self.reads.hold(self.requests.get_mut(job), position);
                    let part = Part::Read { job, origin, buffer };
                    self.issue(part, Operation::Read, (slots, buffer), cause, ctx);
                }
                Source::Home(band) => {
                    let extent = match self.zones {
                        Some(_) => self.read_merged(band, piece.extent, buffer, ctx),
                        None => piece.extent,
                    };
                    self.read_home(job, band, extent, ctx);
                }
            }
        }
        self.all_issued(job, ctx);
    }

    /// Puts a job aside until the band that is being rewritten is whole.
    pub(super) fn wait_for_rewrite(&mut self, job: u32, ctx: &Context<'_>) {
        self.reads.waiting.push(job);
        self.cleaner.end_turn(job, ctx.now());
    }

    /// True when a read needs home blocks of a band whose rewrite serves no reads. A host-aware disk
    /// reads a zone from the memory it is merged in.
    fn is_kept_from_reads(&self, piece: &ReadPiece) -> bool {
        let serves_none = self.rewriter.current().filter(|it| !it.serves_reads);
        let band = serves_none.map(|rewrite| rewrite.band);
        self.zones.is_none() && matches!(piece.source, Source::Home(home) if Some(home) == band)
    }

    /// True when a read would need blocks of a zone that a rewrite is writing home at this moment.
    fn is_being_written(&self, piece: &ReadPiece) -> bool {
        let (Source::Home(band), Some(rewrite)) = (piece.source, self.rewriter.current()) else {
            return false;
        };
        let held = &rewrite.stretch;
        let start = self.shape.bands.extent_of(band).start.0 + held.from;
        self.zones.is_some()
            && band == rewrite.band
            && rewrite.phase == Phase::WritingHome
            && rewrite.steps.in_flight > 0
            && piece.extent.overlaps(Extent::new(start, held.blocks))
    }

    /// Copies what the drive has in its memory of a zone that is being written home, and returns
    /// what is left to be read: it lies before.
    fn read_merged(
        &mut self,
        band: BandId,
        extent: Extent,
        buffer: BufferSlice,
        ctx: &mut Context<'_>,
    ) -> Extent {
        let rewrite = self.rewriter.current();
        let Some(rewrite) = rewrite.filter(|it| it.band == band && it.phase == Phase::WritingHome)
        else {
            return extent;
        };
        let start = self.shape.bands.extent_of(band).start.0 + rewrite.stretch.from;
        let merged = Extent::new(start, rewrite.stretch.blocks);
        let Some(held) = extent.intersection(merged) else {
            return extent;
        };
        let from = rewrite.buffer.part(held.start.0 - start, held.blocks.0);
        let first = held.start.offset_from(extent.start);
        ctx.copy(from, buffer.part(first, held.blocks.0));
        Extent::between(extent.start, held.start)
    }

    /// Reads home blocks of one band. What the scratch band alone holds, of a rewrite that has
    /// failed or one in idle time, comes from there.
    fn read_home(&mut self, job: u32, band: BandId, extent: Extent, ctx: &mut Context<'_>) {
        let band_start = self.shape.bands.extent_of(band).start;
        let mut next = extent.start;
        while next < extent.end() {
            let offset = next.offset_from(band_start);
            let left = extent.end().0 - next.0;
            let source = match ctx.is_planted(PlantedBug::ScratchCopyNotRead) {
                true => self.shape.layout.home(band, offset, left),
                false => self.blocks.home_source(&self.shape, band, offset, left),
            };
            let read = Extent::new(next.0, source.extent.blocks.0);
            let entry = self.requests.get(job);
            let (cause, buffer) = (entry.request.cause, entry.data_of(read));
            self.reads.begin_at_home(band);
            let origin = Origin::Home(band, offset);
            let part = Part::Read { job, origin, buffer };
            self.issue(part, Operation::Read, (source, buffer), cause, ctx);
            next = read.end();
        }
    }

    /// Blocks have been read from the log.
    pub(super) fn read_from_log(
        &mut self,
        job: u32,
        (position, buffer): (u64, BufferSlice),
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let slot = self.shape.slot(position);
        let result = result.and_then(|()| match self.checksums.verify_slots(slot, buffer, ctx) {
            Verdict::Wrong => Err(IoError::Medium),
            Verdict::Right | Verdict::Waits(_) => Ok(()),
        });
        self.part_done(job, result, ctx);
    }

    /// Blocks have been read at home.
    pub(super) fn read_from_home(
        &mut self,
        read: &HomeRead,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let verdict = result.map(|()| self.checksums.verify_home(*read, &self.shape, ctx));
        let result = match verdict {
            Ok(Verdict::Right) => Ok(()),
            Ok(Verdict::Wrong) => Err(IoError::Medium),
            Ok(Verdict::Waits(page)) => {
                if let Some(page) = page {
                    self.read_page(page, ctx);
                }
                return;
            }
            Err(error) => Err(error),
        };
        self.reads.end_at_home(read.band);
        self.part_done(read.job, result, ctx);
    }

    fn read_page(&mut self, page: Page, ctx: &mut Context<'_>) {
        let buffer = ctx.allocate(BlockCount(1));
        let (place, page) = self.checksums.read_page(page, buffer);
        let part = Part::Page(page);
        let read = Operation::Read;
        self.issue(part, read, (place, buffer), Cause::Metadata, ctx);
    }

    /// A page has been read: those that wait for it go on, or fail with it.
    pub(super) fn page_read(
        &mut self,
        page: PageRead,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let taken = result.is_ok() && self.checksums.take_page(&page, ctx);
        ctx.release(page.buffer);
        let result = if taken { Ok(()) } else { Err(IoError::Medium) };
        while let Some(read) = self.checksums.next_waiting(&page) {
            self.read_from_home(&read, result, ctx);
        }
    }
}
