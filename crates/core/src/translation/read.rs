//! Reads: put together from the log, the bands and zeroed ranges.

use super::durable::Check;
use super::persistent_cache::{Part, PersistentCache};
use super::rewrite::Phase;
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::map::{BandId, Piece};
use crate::operation::{Cause, Operation};
use crate::planted::PlantedBug;
use crate::units::Lba;
use alloc::vec::Vec;

/// Where a run of blocks is read from.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadPiece {
    extent: Extent,
    source: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    /// The log, from this position.
    Log(u64),
    /// The home blocks of a band.
    Home(BandId),
    Zeroes,
}

impl PersistentCache {
    /// Issues a read, or puts it aside while the band it needs is being rewritten.
    pub(super) fn start_read(&mut self, job: u32, ctx: &mut Context<'_>) {
        let request = self.jobs[job as usize].request;
        if self.lost.pieces(request.extent).next().is_some() {
            self.jobs[job as usize].result = Err(IoError::Medium);
            return self.all_issued(job, ctx);
        }
        self.plan_read(request.extent);
        let rewrite = self.rewrite.filter(|rewrite| !rewrite.serves_reads);
        let rewrite = rewrite.filter(|_| self.zones.is_none());
        let under_rewrite = rewrite.map(|rewrite| rewrite.band);
        let waits = |piece: &ReadPiece| match piece.source {
            Source::Home(band) => Some(band) == under_rewrite,
            _ => false,
        };
        if self.read_plan.iter().any(waits) {
            self.waiting_reads.push(job);
            self.press_rewrite();
            self.end_turn(job, ctx);
            return;
        }
        if self.zones.is_some()
            && self
                .read_plan
                .iter()
                .any(|piece| self.is_being_written(piece))
        {
            self.waiting_reads.push(job);
            return;
        }
        let plan = core::mem::take(&mut self.read_plan);
        for piece in &plan {
            let offset = piece.extent.start.offset_from(request.extent.start);
            let buffer = request.buffer.part(offset, piece.extent.blocks.0);
            match piece.source {
                Source::Zeroes => ctx.zero(buffer),
                Source::Log(position) => {
                    let slots = self.log_extent(position, piece.extent.blocks.0);
                    let part = match self.durable {
                        None => Part::Read { job, home: None },
                        Some(_) => Part::CheckedRead {
                            job,
                            check: Check::Slots(position),
                            buffer,
                        },
                    };
                    self.hold(job, position);
                    self.issue(part, Operation::Read, slots, buffer, request.cause, ctx);
                }
                Source::Home(band) => {
                    let piece = match self.zones {
                        Some(_) => self.read_merged(band, piece.extent, buffer, ctx),
                        None => piece.extent,
                    };
                    if piece.is_empty() {
                        continue;
                    }
                    self.read_home(job, band, piece, request.cause, ctx);
                }
            }
        }
        self.read_plan = plan;
        self.all_issued(job, ctx);
    }

    /// True when a read would need blocks of a zone that a rewrite is writing home at this moment.
    fn is_being_written(&self, piece: &ReadPiece) -> bool {
        let (Source::Home(band), Some(rewrite)) = (piece.source, self.rewrite) else {
            return false;
        };
        let start = self.bands.extent_of(band).start.0 + rewrite.from;
        band == rewrite.band
            && rewrite.phase == Phase::WritingHome
            && rewrite.steps_in_flight > 0
            && piece.extent.overlaps(Extent::new(start, rewrite.blocks))
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
        let Some(rewrite) = self
            .rewrite
            .filter(|rewrite| rewrite.band == band && rewrite.phase == Phase::WritingHome)
        else {
            return extent;
        };
        let start = self.bands.extent_of(band).start.0 + rewrite.from;
        let merged = Extent::new(start, rewrite.blocks);
        let Some(held) = extent.intersection(merged) else {
            return extent;
        };
        let from = rewrite.buffer.part(held.start.0 - start, held.blocks.0);
        ctx.copy(
            from,
            buffer.part(held.start.offset_from(extent.start), held.blocks.0),
        );
        Extent::between(extent.start, held.start)
    }

    /// Reads home blocks of one band. What the scratch band alone holds, of a rewrite that has
    /// failed or one in idle time, comes from there.
    fn read_home(
        &mut self,
        job: u32,
        band: BandId,
        extent: Extent,
        cause: Cause,
        ctx: &mut Context<'_>,
    ) {
        let request = self.jobs[job as usize].request;
        let band_start = self.bands.extent_of(band).start;
        let mut next = extent.start;
        while next < extent.end() {
            let offset = next.offset_from(band_start);
            let left = extent.end().0 - next.0;
            let source = match ctx.is_planted(PlantedBug::ScratchCopyNotRead) {
                true => self.layout.home(band, offset, left),
                false => self.home_source(band, offset, left),
            };
            let first = next.offset_from(request.extent.start);
            let buffer = request.buffer.part(first, source.blocks.0);
            let home = Some(band);
            self.home_reads.push(band);
            let part = match self.durable {
                None => Part::Read { job, home },
                Some(_) => Part::CheckedRead {
                    job,
                    check: Check::Home(band, offset),
                    buffer,
                },
            };
            self.issue(part, Operation::Read, source, buffer, cause, ctx);
            next = next + source.blocks;
        }
    }

    /// Where the first of `blocks` home blocks of a band are read from, as many as adjoin there.
    fn home_source(&self, band: BandId, offset: u64, blocks: u64) -> Extent {
        match self.salvage {
            Some(salvage) if salvage.band == band && offset < salvage.end() => {
                match offset.checked_sub(salvage.from) {
                    Some(at) => {
                        let held = blocks.min(salvage.blocks - at);
                        self.layout.scratch(salvage.place, salvage.at + at, held)
                    }
                    None => {
                        let before = blocks.min(salvage.from - offset);
                        self.layout.home(band, offset, before)
                    }
                }
            }
            _ => self.layout.home(band, offset, blocks),
        }
    }

    fn plan_read(&mut self, extent: Extent) {
        self.read_plan.clear();
        let mut plan = core::mem::take(&mut self.read_plan);
        let mut next = extent.start;
        for piece in self.log.map().pieces(extent) {
            self.plan_unmapped(Extent::between(next, piece.extent.start), &mut plan);
            next = piece.extent.end();
            if let Some(last) = plan.last_mut()
                && let Source::Log(position) = last.source
                && self.log.adjoin(
                    &Piece {
                        extent: last.extent,
                        position,
                    },
                    &piece,
                )
            {
                last.extent = Extent::between(last.extent.start, next);
                continue;
            }
            plan.push(ReadPiece {
                extent: piece.extent,
                source: Source::Log(piece.position),
            });
        }
        self.plan_unmapped(Extent::between(next, extent.end()), &mut plan);
        self.read_plan = plan;
    }

    fn plan_unmapped(&self, extent: Extent, plan: &mut Vec<ReadPiece>) {
        if extent.is_empty() {
            return;
        }
        let mut next = extent.start;
        for zeroed in self.zeroed.pieces(extent) {
            self.plan_home(next, zeroed.start, plan);
            plan.push(ReadPiece {
                extent: zeroed,
                source: Source::Zeroes,
            });
            next = zeroed.end();
        }
        self.plan_home(next, extent.end(), plan);
    }

    /// Plans reads of the blocks from `next` to `end` at home, one for each band.
    fn plan_home(&self, mut next: Lba, end: Lba, plan: &mut Vec<ReadPiece>) {
        while next < end {
            let band = self.bands.band_of(next);
            let mut stop = end.min(self.bands.extent_of(band).end());
            if self.durable.is_some() || self.zones.is_some() {
                let readable = match self.zones {
                    Some(_) => self.home_end(band),
                    None => self.readable_end(band),
                };
                if readable <= next {
                    plan.push(ReadPiece {
                        extent: Extent::between(next, stop),
                        source: Source::Zeroes,
                    });
                    next = stop;
                    continue;
                }
                stop = stop.min(readable);
            }
            plan.push(ReadPiece {
                extent: Extent::between(next, stop),
                source: Source::Home(band),
            });
            next = stop;
        }
    }

    /// Keeps the slots from `position` on from being used again until the job is answered.
    fn hold(&mut self, job: u32, position: u64) {
        let entry = &mut self.jobs[job as usize];
        match &mut entry.hold {
            None => {
                entry.hold = Some(position);
                self.holds.push(position);
            }
            Some(held) if position < *held => {
                let index = self.holds.iter().position(|hold| hold == held);
                self.holds[index.expect("a hold that was taken")] = position;
                *held = position;
            }
            Some(_) => {}
        }
    }

    /// Where the slots from `position` to `end` lie on the disk, as far as the ring does not begin
    /// anew.
    pub(super) fn log_extent_to(&self, position: u64, end: u64) -> Extent {
        let to_wrap = self.settings.log_blocks.0 - self.log.slot(position);
        self.log_extent(position, to_wrap.min(end - position))
    }

    /// Where the slots of positions in the log lie on the disk.
    pub(super) fn log_extent(&self, position: u64, blocks: u64) -> Extent {
        let start = self.layout.areas().persistent_cache.start.0;
        Extent::new(start + self.log.slot(position), blocks)
    }
}
