//! The band rewrite: merges all that the log holds of a band into it. One at a time.
//!
//! ```text
//! Draining -> Overhead -> Reading -> Gathering -> WritingScratch -> NotingScratch
//!          -> WritingHome -> NotingHome
//! ```
//!
//! The old content of the band, with the log, stays good until the merged copy in the scratch band
//! is complete and noted; the scratch band stays good until the band is. The in-place method goes
//! from `Gathering` to `WritingHome` and ends there.

use super::persistent_cache::{Part, PersistentCache};
use super::settings::{RewriteExtent, RewriteMethod};
use super::timers::Timer;
use crate::buffer::BufferSlice;
use crate::counters::Counter;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::map::{BandId, Piece};
use crate::operation::{Cause, Operation};
use crate::planted::PlantedBug;
use crate::units::{Duration, Instant};
use alloc::vec::Vec;

/// First word of a metadata record: "imbrexPC", little-endian.
const NOTE_MAGIC: u64 = u64::from_le_bytes(*b"imbrexPC");
/// Bytes of a metadata record: ten words and a checksum.
const NOTE_BYTES: usize = 10 * 8 + 4;

/// What a metadata record says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
enum Note {
    /// The scratch band holds the band from its offset on.
    ScratchComplete = 1,
    /// The band is complete at home.
    HomeComplete = 2,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Waits for the writes in flight, and for the reads of the band.
    Draining,
    /// Waits as long as the firmware takes.
    Overhead,
    Reading,
    Gathering,
    WritingScratch,
    /// Waits until the scratch copy is durable, where that takes a flush.
    FlushingScratch,
    NotingScratch,
    WritingHome,
    /// Waits until the band is durable at home, where that takes a flush.
    FlushingHome,
    NotingHome,
}

/// A rewrite in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rewrite {
    pub band: BandId,
    pub phase: Phase,
    started: Instant,
    /// Brings home what only the scratch band holds, and merges nothing.
    pub is_restore: bool,
    /// The blocks of the band that are rewritten: these from this offset.
    pub from: u64,
    pub blocks: u64,
    /// Positions before it are merged; later ones were appended meanwhile and stay in the log.
    pub gathered_before: u64,
    /// The lowest log position that is still to be read.
    pub hold: Option<u64>,
    pub outstanding: u32,
    result: Result<(), IoError>,
    /// As long as the longest band, so that every rewrite uses the same memory.
    pub buffer: BufferSlice,
    note: BufferSlice,
}

/// A band whose last rewrite failed while it was written home: from an offset on, the scratch band
/// alone holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Salvage {
    pub band: BandId,
    pub from: u64,
    pub blocks: u64,
}

impl Rewrite {
    /// True before anything was read: no write may begin.
    pub fn is_draining(&self) -> bool {
        matches!(self.phase, Phase::Draining | Phase::Overhead)
    }

    /// True when the rewrite will take a block of its band at this position out of the log.
    pub fn drops(&self, position: u64) -> bool {
        !self.is_restore && position < self.gathered_before
    }
}

impl PersistentCache {
    /// Begins to rewrite a band; first of all the one that only the scratch band holds, if any.
    pub(super) fn start_rewrite(&mut self, band: BandId, ctx: &mut Context<'_>) {
        let band = self.salvage.map_or(band, |salvage| salvage.band);
        self.rewrite = Some(Rewrite {
            band,
            phase: Phase::Draining,
            started: ctx.now(),
            is_restore: self.salvage.is_some(),
            from: 0,
            blocks: 0,
            gathered_before: 0,
            hold: None,
            outstanding: 0,
            result: Ok(()),
            buffer: BufferSlice::EMPTY,
            note: BufferSlice::EMPTY,
        });
    }

    /// Reads the band once nothing that matters to it is in flight. True when the rewrite turned
    /// out to be needless.
    pub(super) fn begin_rewrite_when_drained(&mut self, ctx: &mut Context<'_>) -> bool {
        let Some(rewrite) = &mut self.rewrite else {
            return false;
        };
        let busy = self.writes_in_flight > 0 || self.home_reads.contains(&rewrite.band);
        if rewrite.phase != Phase::Draining || busy {
            return false;
        }
        let band = rewrite.band;
        if self.rewrite_must_wait(band, ctx) {
            return false;
        }
        let rewrite = self.rewrite.as_mut().expect("a rewrite in progress");
        if self.settings.rewrite_overhead > Duration::ZERO {
            rewrite.phase = Phase::Overhead;
            let end = ctx.now() + self.settings.rewrite_overhead;
            self.set_timer(Timer::Overhead, end, ctx);
            return false;
        }
        !self.read_band(ctx)
    }

    /// The firmware has taken its time.
    pub(super) fn end_of_overhead(&mut self, ctx: &mut Context<'_>) {
        if self
            .rewrite
            .is_some_and(|rewrite| rewrite.phase == Phase::Overhead)
        {
            self.read_band(ctx);
        }
    }

    /// Decides what is merged and reads the band; false when there is nothing to merge any more.
    fn read_band(&mut self, ctx: &mut Context<'_>) -> bool {
        let mut rewrite = self.rewrite.expect("a rewrite in progress");
        let whole = self.bands.extent_of(rewrite.band);
        self.gathered.clear();
        let source = match self.salvage {
            Some(salvage) => {
                (rewrite.from, rewrite.blocks) = (salvage.from, salvage.blocks);
                Extent::new(self.layout.areas().scratch.start.0, salvage.blocks)
            }
            None => {
                self.gathered.extend(self.log.map().pieces(whole));
                let Some(lowest) = self.gathered.first() else {
                    self.end_rewrite();
                    self.resume_reads(ctx);
                    return false;
                };
                let lowest = lowest.extent.start.offset_from(whole.start);
                rewrite.from = match self.settings.rewrite_extent {
                    RewriteExtent::Band => 0,
                    RewriteExtent::FromFirstDirty => {
                        let from = self.layout.track_start(rewrite.band, lowest);
                        self.rewrite_from(rewrite.band, from)
                    }
                };
                rewrite.blocks = whole.blocks.0 - rewrite.from;
                self.gathered.sort_unstable_by_key(|piece| piece.position);
                if ctx.is_planted(PlantedBug::RemapIgnoresOverwrite) && self.gathered.len() > 1 {
                    // As if the newest entry had come after the gather; the drop takes it too.
                    self.gathered.pop();
                }
                let log = &self.log;
                self.gathered.dedup_by(|second, first| {
                    let adjoin = log.adjoin(first, second);
                    if adjoin {
                        first.extent = Extent::between(first.extent.start, second.extent.end());
                    }
                    adjoin
                });
                rewrite.gathered_before = self.log.tail();
                rewrite.hold = self.gathered.first().map(|piece| piece.position);
                self.layout.home(rewrite.band, rewrite.from, rewrite.blocks)
            }
        };
        rewrite.buffer = ctx.allocate(self.bands.largest());
        rewrite.phase = Phase::Reading;
        if self.durable.is_some() {
            self.rewrite = Some(rewrite);
            self.read_band_durably(&rewrite, source, ctx);
            return true;
        }
        rewrite.note = ctx.allocate(crate::units::BlockCount(1));
        self.rewrite = Some(rewrite);
        let buffer = rewrite.buffer.part(0, rewrite.blocks);
        self.issue_for_rewrite(Operation::Read, source, buffer, Cause::Cleaning, ctx);
        true
    }

    pub(super) fn issue_for_rewrite(
        &mut self,
        operation: Operation,
        extent: Extent,
        buffer: BufferSlice,
        cause: Cause,
        ctx: &mut Context<'_>,
    ) {
        self.rewrite
            .as_mut()
            .expect("a rewrite in progress")
            .outstanding += 1;
        self.issue(Part::Rewrite, operation, extent, buffer, cause, ctx);
    }

    /// An operation of the rewrite has finished; the last one of its phase begins the next phase.
    pub(super) fn rewrite_part_done(&mut self, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        let rewrite = self.rewrite.as_mut().expect("a rewrite in progress");
        rewrite.outstanding -= 1;
        rewrite.result = rewrite.result.and(result);
        if rewrite.outstanding > 0 {
            return;
        }
        if let Err(error) = rewrite.result {
            return self.fail_rewrite(error, ctx);
        }
        let is_restore = rewrite.is_restore;
        let copies = self.settings.rewrite == RewriteMethod::CopyThenHome;
        let durably = self.durable.is_some();
        match rewrite.phase {
            Phase::Draining | Phase::Overhead => unreachable!("nothing is in flight yet"),
            Phase::FlushingScratch | Phase::FlushingHome => {
                unreachable!("the journal's flush is its own")
            }
            Phase::Reading if durably => {
                if !is_restore {
                    ctx.count(Counter::BandBlocksRead, rewrite.blocks);
                }
                self.band_read_durably(ctx);
            }
            Phase::Reading if is_restore => self.write_home(ctx),
            Phase::Reading => {
                ctx.count(Counter::BandBlocksRead, rewrite.blocks);
                self.gather(ctx);
            }
            Phase::Gathering => {
                rewrite.hold = None;
                if durably {
                    self.write_scratch_durably(ctx);
                } else if copies {
                    self.write_scratch(ctx);
                } else {
                    self.write_home(ctx);
                }
            }
            Phase::WritingScratch => {
                ctx.count(Counter::ScratchBlocksWritten, rewrite.blocks);
                if durably {
                    return self.flush_for_rewrite(Phase::FlushingScratch, ctx);
                }
                self.write_note(Note::ScratchComplete, Phase::NotingScratch, ctx);
            }
            Phase::NotingScratch => self.write_home(ctx),
            Phase::WritingHome => {
                ctx.count(Counter::BandBlocksWritten, rewrite.blocks);
                if durably {
                    self.flush_for_rewrite(Phase::FlushingHome, ctx);
                } else if copies {
                    self.write_note(Note::HomeComplete, Phase::NotingHome, ctx);
                } else {
                    self.complete_rewrite(ctx);
                }
            }
            Phase::NotingHome => self.complete_rewrite(ctx),
        }
    }

    /// Puts what the log holds of the band over what was read of it, all reads at once, so that
    /// the disk may choose their order. Zeroed ranges go home as zeroes: nothing of what was
    /// zeroed is left on the disk then.
    pub(super) fn gather(&mut self, ctx: &mut Context<'_>) {
        let rewrite = self.enter(Phase::Gathering);
        self.expect_gathered(&rewrite);
        let band = self.bands.extent_of(rewrite.band);
        let start = band.start.0 + rewrite.from;
        let mut zeroes = Vec::new();
        self.zeroes_of_rewrite(Extent::new(start, rewrite.blocks), &mut zeroes);
        for zeroed in zeroes {
            let part = rewrite.buffer.part(zeroed.start.0 - start, zeroed.blocks.0);
            ctx.zero(part);
        }
        let gathered = core::mem::take(&mut self.gathered);
        // Writes that came one after another in address order are one run of slots.
        let adjoin = |a: &Piece, b: &Piece| {
            a.extent.end() == b.extent.start && a.position + a.extent.blocks.0 == b.position
        };
        for run in gathered.chunk_by(adjoin) {
            let (first, last) = (run[0], run[run.len() - 1]);
            let mut next = first.position;
            let end = last.position + last.extent.blocks.0;
            while next < end {
                let slots = self.log_extent_to(next, end);
                let skipped = next - first.position;
                let from = first.extent.start.0 + skipped - start;
                let part = rewrite.buffer.part(from, slots.blocks.0);
                self.issue_for_rewrite(Operation::Read, slots, part, Cause::Cleaning, ctx);
                next += slots.blocks.0;
            }
        }
        self.gathered = gathered;
    }

    fn write_scratch(&mut self, ctx: &mut Context<'_>) {
        let rewrite = self.enter(Phase::WritingScratch);
        let scratch = Extent::new(self.layout.areas().scratch.start.0, rewrite.blocks);
        let buffer = rewrite.buffer.part(0, rewrite.blocks);
        self.issue_for_rewrite(
            Operation::WRITE_DURABLE,
            scratch,
            buffer,
            Cause::Cleaning,
            ctx,
        );
    }

    pub(super) fn write_home(&mut self, ctx: &mut Context<'_>) {
        let rewrite = self.enter(Phase::WritingHome);
        let operation = if self.durable.is_some() {
            Operation::WRITE
        } else {
            self.raise_write_pointer(rewrite.band);
            Operation::WRITE_DURABLE
        };
        let mut blocks = rewrite.blocks;
        if ctx.is_planted(PlantedBug::OverlapNotRestored) {
            blocks = self.blocks_to_last_dirty_track(&rewrite);
        }
        let home = self.layout.home(rewrite.band, rewrite.from, blocks);
        let buffer = rewrite.buffer.part(0, blocks);
        self.issue_for_rewrite(operation, home, buffer, Cause::Cleaning, ctx);
    }

    /// Blocks up to the end of the last track with a merged block.
    fn blocks_to_last_dirty_track(&self, rewrite: &Rewrite) -> u64 {
        let start = self.bands.extent_of(rewrite.band).start;
        let last = self.gathered.iter().map(|piece| piece.extent.end()).max();
        last.map_or(rewrite.blocks, |end| {
            let track_end = self
                .layout
                .track_end(rewrite.band, end.offset_from(start) - 1);
            rewrite.blocks.min(track_end - rewrite.from)
        })
    }

    /// Records how far the rewrite has come, in the next block of the metadata track.
    fn write_note(&mut self, note: Note, phase: Phase, ctx: &mut Context<'_>) {
        let rewrite = self.enter(phase);
        let words = [
            NOTE_MAGIC,
            self.notes,
            note as u64,
            u64::from(rewrite.band.0),
            rewrite.from,
            rewrite.blocks,
            rewrite.gathered_before,
            self.log.head(),
            self.log.tail(),
            self.settings.log_blocks.0,
        ];
        let mut record = [0; NOTE_BYTES];
        for (bytes, word) in record.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        let sum = crc32c::crc32c(&record[..NOTE_BYTES - 4]);
        record[NOTE_BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
        ctx.fill_metadata(rewrite.note, &record);
        let track = self.layout.areas().metadata;
        let place = Extent::new(track.start.0 + self.notes % track.blocks.0, 1);
        self.notes += 1;
        let durable = Operation::WRITE_DURABLE;
        self.issue_for_rewrite(durable, place, rewrite.note, Cause::Metadata, ctx);
    }

    pub(super) fn enter(&mut self, phase: Phase) -> Rewrite {
        let rewrite = self.rewrite.as_mut().expect("a rewrite in progress");
        rewrite.phase = phase;
        *rewrite
    }

    /// The band is whole at home: what was merged leaves the log.
    pub(super) fn complete_rewrite(&mut self, ctx: &mut Context<'_>) {
        let rewrite = self.rewrite.expect("a rewrite in progress");
        if self.durable.is_some() {
            self.record_home(&rewrite, ctx);
        }
        if rewrite.is_restore {
            self.salvage = None;
        } else {
            let merged: u64 = self.gathered.iter().map(|g| g.extent.blocks.0).sum();
            ctx.count(Counter::PersistentCacheMergedBlocks, merged);
            ctx.count(Counter::BandsRewritten, 1);
            ctx.count(Counter::BandRewriteNs, ctx.now().since(rewrite.started).0);
            let band = self.bands.extent_of(rewrite.band);
            let mut before = rewrite.gathered_before;
            if ctx.is_planted(PlantedBug::RemapIgnoresOverwrite) {
                before = u64::MAX;
            }
            self.log.supersede_before(band, before, &mut self.gathered);
        }
        self.release_buffers(&rewrite, ctx);
        self.end_rewrite();
        self.resume_reads(ctx);
    }

    /// Leaves everything in the log and fails the write that waits for room. If the band was being
    /// written, its good copy is the one in the scratch band.
    pub(super) fn fail_rewrite(&mut self, error: IoError, ctx: &mut Context<'_>) {
        let rewrite = self.rewrite.expect("a rewrite in progress");
        let copies = self.settings.rewrite == RewriteMethod::CopyThenHome;
        if copies && rewrite.phase == Phase::WritingHome && self.durable.is_none() {
            self.salvage = Some(Salvage {
                band: rewrite.band,
                from: rewrite.from,
                blocks: rewrite.blocks,
            });
        }
        self.release_buffers(&rewrite, ctx);
        self.end_rewrite();
        if let Some(job) = self.queue.pop_front() {
            self.jobs[job as usize].result = Err(error);
            self.all_issued(job, ctx);
        }
        self.resume_reads(ctx);
    }

    fn release_buffers(&mut self, rewrite: &Rewrite, ctx: &mut Context<'_>) {
        self.end_work(ctx);
        ctx.release(rewrite.buffer);
        ctx.release(rewrite.note);
    }

    fn end_rewrite(&mut self) {
        self.rewrite = None;
        self.gathered.clear();
    }

    /// Reads that waited for the band find it whole.
    fn resume_reads(&mut self, ctx: &mut Context<'_>) {
        let mut reads = core::mem::take(&mut self.waiting_reads);
        for job in reads.drain(..) {
            self.start_read(job, ctx);
        }
        self.waiting_reads = reads;
    }
}
