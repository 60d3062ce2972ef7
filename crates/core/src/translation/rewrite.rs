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
//!
//! A drive that has memory for a part of a band only goes through this from `Reading` on once for
//! each [stretch](super::stretch) of it.
//!
//! A rewrite in [idle time](super::idle) is made of chunks, and pauses between two of them when a
//! request arrives. Reads of its band are served meanwhile: from home as long as home is whole,
//! then from the scratch band.

use super::persistent_cache::PersistentCache;
use super::settings::{RewriteExtent, RewriteMethod};
use super::stretch::Salvage;
use super::timers::Timer;
use crate::buffer::BufferSlice;
use crate::counters::Counter;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::map::BandId;
use crate::operation::{Cause, Operation};
use crate::planted::PlantedBug;
use crate::units::{BlockCount, Duration, Instant};
use alloc::vec::Vec;

/// First word of a metadata record: "imbrexPC", little-endian.
const NOTE_MAGIC: u64 = u64::from_le_bytes(*b"imbrexPC");
/// Bytes of a metadata record: ten words and a checksum.
const NOTE_BYTES: usize = 10 * 8 + 4;

/// The end of an operation that is not a step of a phase.
pub(super) const NO_STEP: u64 = u64::MAX;

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

/// Why a rewrite has begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reason {
    /// A write has no room.
    Room,
    /// A write has had none, and not enough is free yet.
    Share,
    /// No request has come for a while.
    Idle,
}

/// A rewrite in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rewrite {
    pub band: BandId,
    pub phase: Phase,
    /// Nobody waits for it: it goes on only while no request is being served.
    pub is_idle: bool,
    /// It goes on though a request has arrived.
    pub is_finishing: bool,
    /// Nothing of it is in flight, and something has to happen before it goes on.
    pub is_paused: bool,
    reason: Reason,
    /// Reads of its band are served while it runs.
    pub serves_reads: bool,
    /// The firmware has taken its time.
    is_overhead_over: bool,
    /// When it last began or went on, and how long it had run before.
    since: Instant,
    ran: Duration,
    /// Brings home what only the scratch band holds, and merges nothing.
    pub is_restore: bool,
    /// The blocks of the band that are in memory: these from this offset.
    pub from: u64,
    pub blocks: u64,
    /// Of these, how many are written home; the rest is carried on to the next stretch.
    pub home_blocks: u64,
    /// Of these, how many were carried on from the stretch before.
    pub carried: u64,
    /// The offset that the rewrite ends at.
    pub end_of_rewrite: u64,
    /// The offset from which there is nothing at home.
    pub written_end: u64,
    /// The place in the scratch band of the stretch.
    pub place: usize,
    /// The stretch is in the scratch band already.
    pub is_in_scratch: bool,
    /// Blocks of the log that were merged.
    pub merged: u64,
    /// Steps of the present phase: blocks to move, or runs of the log to gather. Those before
    /// `next` have been sent off.
    pub next: u64,
    pub end: u64,
    /// Positions before it are merged; later ones were appended meanwhile and stay in the log.
    pub gathered_before: u64,
    /// The lowest log position that is still to be read.
    pub hold: Option<u64>,
    pub outstanding: u32,
    /// Of these, steps of the present phase.
    pub steps_in_flight: u32,
    /// The later of two chunks has ended before the earlier: a third might reach the tracks that
    /// the earlier one destroys.
    pub is_out_of_order: bool,
    result: Result<(), IoError>,
    /// As long as the longest stretch, so that every rewrite uses the same memory.
    pub buffer: BufferSlice,
    note: BufferSlice,
}

impl Rewrite {
    /// True before anything was read.
    pub fn is_draining(&self) -> bool {
        matches!(self.phase, Phase::Draining | Phase::Overhead)
    }

    /// True while no write may begin: the rewrite waits for those in flight to end.
    pub fn holds_writes(&self) -> bool {
        self.is_draining() && !self.is_idle
    }

    /// True when nothing is left of the band behind what is in memory.
    pub fn is_last_stretch(&self) -> bool {
        self.from + self.blocks == self.end_of_rewrite
    }

    /// Of the blocks of the stretch, those that home has.
    pub fn blocks_at_home(&self) -> u64 {
        let end = self.from + self.blocks;
        self.written_end.clamp(self.from, end) - self.from
    }

    /// True when the rewrite will take a block of its band at this position out of the log.
    pub fn drops(&self, position: u64) -> bool {
        !self.is_restore && position < self.gathered_before
    }
}

impl PersistentCache {
    /// Begins to rewrite a band; first of all the one that only the scratch band holds, if any.
    pub(super) fn start_rewrite(&mut self, band: BandId, reason: Reason, ctx: &mut Context<'_>) {
        let band = self.salvage.map_or(band, |salvage| salvage.band);
        self.rewrite = Some(Rewrite {
            band,
            phase: Phase::Draining,
            is_idle: reason == Reason::Idle,
            is_finishing: false,
            is_paused: false,
            reason,
            serves_reads: (reason == Reason::Idle || self.settings.blocking.slice.is_some())
                && self.settings.rewrite == RewriteMethod::CopyThenHome,
            is_overhead_over: self.settings.rewrite_overhead == Duration::ZERO,
            since: ctx.now(),
            ran: Duration::ZERO,
            is_restore: self.salvage.is_some(),
            from: 0,
            blocks: 0,
            home_blocks: 0,
            carried: 0,
            end_of_rewrite: 0,
            written_end: 0,
            place: 0,
            is_in_scratch: false,
            merged: 0,
            next: 0,
            end: 0,
            gathered_before: 0,
            hold: None,
            outstanding: 0,
            steps_in_flight: 0,
            is_out_of_order: false,
            result: Ok(()),
            buffer: BufferSlice::EMPTY,
            note: BufferSlice::EMPTY,
        });
    }

    /// The rewrite; only called while there is one.
    pub(super) fn rewriting(&self) -> Rewrite {
        self.rewrite.expect("a rewrite in progress")
    }

    /// Reads the band once nothing that matters to it is in flight. True when the rewrite turned
    /// out to be needless.
    pub(super) fn begin_rewrite_when_drained(&mut self, ctx: &mut Context<'_>) -> bool {
        let Some(rewrite) = &self.rewrite else {
            return false;
        };
        if rewrite.phase != Phase::Draining || rewrite.is_paused {
            return false;
        }
        if !self.may_go_on(ctx) {
            self.interrupt_rewrite(ctx);
            return false;
        }
        if self
            .durable
            .as_ref()
            .is_some_and(|it| it.failure().is_some())
        {
            let rewrite = self.rewriting();
            self.give_up_rewrite(&rewrite, ctx);
            self.resume_reads(ctx);
            return false;
        }
        let band = self.rewriting().band;
        let busy = self.writes_in_flight > 0 || self.home_reads.contains(&band);
        if busy || self.rewrite_must_wait(band, ctx) {
            return false;
        }
        let rewrite = self.rewrite.as_mut().expect("a rewrite in progress");
        if !rewrite.is_overhead_over {
            rewrite.phase = Phase::Overhead;
            let end = ctx.now() + self.settings.rewrite_overhead;
            self.set_timer(Timer::Overhead, end, ctx);
            return false;
        }
        !self.read_band(ctx)
    }

    /// The firmware has taken its time.
    pub(super) fn end_of_overhead(&mut self) {
        if let Some(rewrite) = &mut self.rewrite
            && rewrite.phase == Phase::Overhead
        {
            rewrite.phase = Phase::Draining;
            rewrite.is_overhead_over = true;
        }
    }

    /// Nothing of the rewrite is in flight and it has to wait.
    pub(super) fn pause(&mut self, ctx: &mut Context<'_>) {
        let rewrite = self.rewrite.as_mut().expect("a rewrite in progress");
        rewrite.is_paused = true;
        rewrite.ran += ctx.now().since(rewrite.since);
    }

    /// Lets a paused rewrite go on if it may; false when there is none.
    pub(super) fn resume_rewrite(&mut self, ctx: &mut Context<'_>) -> bool {
        if !self.rewrite.is_some_and(|rewrite| rewrite.is_paused) || !self.may_go_on(ctx) {
            return false;
        }
        let rewrite = self.rewrite.as_mut().expect("a rewrite in progress");
        rewrite.is_paused = false;
        rewrite.since = ctx.now();
        if !rewrite.is_draining() {
            self.go_on(ctx);
        }
        self.rewrite.is_none_or(|rewrite| !rewrite.is_paused)
    }

    /// Decides what is merged and reads the band; false when there is nothing to merge any more.
    fn read_band(&mut self, ctx: &mut Context<'_>) -> bool {
        let mut rewrite = self.rewriting();
        let whole = self.bands.extent_of(rewrite.band);
        match self.salvage {
            Some(salvage) => {
                rewrite.from = salvage.from;
                rewrite.end_of_rewrite = salvage.end_of_rewrite;
                rewrite.written_end = salvage.end_of_rewrite;
                rewrite.place = salvage.place;
                rewrite.is_in_scratch = true;
            }
            None => {
                let Some(lowest) = self.log.map().pieces(whole).next() else {
                    self.end_rewrite();
                    self.resume_reads(ctx);
                    return false;
                };
                let lowest = lowest.extent.start.offset_from(whole.start);
                rewrite.from = match self.settings.rewrite_extent {
                    RewriteExtent::Band => 0,
                    RewriteExtent::FromFirstDirty | RewriteExtent::FromFirstDirtyToWritten => {
                        let from = self.layout.track_start(rewrite.band, lowest);
                        self.rewrite_from(rewrite.band, from)
                    }
                };
                self.find_end_of_rewrite(&mut rewrite);
                rewrite.gathered_before = self.log.tail();
                self.to_gather.clear();
                self.to_gather.extend(self.log.map().pieces(whole));
            }
        }
        rewrite.buffer = ctx.allocate(self.layout.rewrite_blocks());
        if self.durable.is_none() {
            rewrite.note = ctx.allocate(BlockCount(1));
        }
        self.rewrite = Some(rewrite);
        self.begin_stretch(ctx);
        true
    }

    /// An operation of the rewrite has finished.
    pub(super) fn rewrite_part_done(
        &mut self,
        end: u64,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let rewrite = self.rewrite.as_mut().expect("a rewrite in progress");
        rewrite.outstanding -= 1;
        rewrite.steps_in_flight -= u32::from(end != NO_STEP);
        rewrite.is_out_of_order = rewrite.steps_in_flight > 0 && end == rewrite.next;
        rewrite.result = rewrite.result.and(result);
        if self.zones.is_some() && self.rewriting().phase == Phase::WritingHome {
            self.resume_reads(ctx);
        }
        let rewrite = self.rewriting();
        match rewrite.result {
            Ok(()) => self.go_on(ctx),
            Err(error) if rewrite.outstanding == 0 => self.fail_rewrite(error, ctx),
            Err(_) => {}
        }
    }

    /// The present phase is done: the next one begins, unless reads that go where it writes are
    /// in flight.
    pub(super) fn end_phase(&mut self, ctx: &mut Context<'_>) {
        let rewrite = self.rewriting();
        let copies = self.settings.rewrite == RewriteMethod::CopyThenHome;
        let durably = self.durable.is_some();
        // The scratch band may hold the only copy of a band whose record will never be durable.
        if let Some(error) = self.durable.as_ref().and_then(|durable| durable.failure()) {
            return self.fail_rewrite(error, ctx);
        }
        match rewrite.phase {
            Phase::Draining | Phase::Overhead => unreachable!("nothing is in flight yet"),
            Phase::Reading => {
                if !rewrite.is_in_scratch {
                    ctx.count(Counter::BandBlocksRead, rewrite.end);
                }
                match (durably, rewrite.is_in_scratch) {
                    (true, _) => self.band_read_durably(ctx),
                    (false, true) => self.write_home(ctx),
                    (false, false) => self.gather(ctx),
                }
            }
            Phase::Gathering => {
                let hold = self.lowest_to_gather();
                self.rewrite.as_mut().expect("a rewrite in progress").hold = hold;
                // What the scratch band held last may still be being read, but not where a later
                // stretch goes: its reads ended before the one between was written home.
                let covered = self.scratch_band.filter(|_| rewrite.carried == 0);
                let reads_of_zone = self.zones.is_some() && self.home_reads.contains(&rewrite.band);
                if reads_of_zone
                    || copies && covered.is_some_and(|band| self.home_reads.contains(&band))
                {
                    self.pause(ctx);
                } else if durably {
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
            // From here on the band is read from the scratch band, with the new checksums.
            Phase::FlushingScratch | Phase::NotingScratch
                if !(durably && rewrite.phase == Phase::NotingScratch)
                    && self.home_reads.contains(&rewrite.band) =>
            {
                self.pause(ctx);
            }
            Phase::FlushingScratch => self.scratch_flushed(ctx),
            Phase::NotingScratch => {
                if !durably {
                    self.salvage = Some(Salvage::of(&rewrite));
                }
                self.scratch_band = Some(rewrite.band);
                self.write_home(ctx);
            }
            Phase::WritingHome => {
                ctx.count(Counter::BandBlocksWritten, rewrite.home_blocks);
                if durably {
                    return self.flush_for_rewrite(Phase::FlushingHome, ctx);
                }
                self.salvage = self.salvage.and_then(|it| it.without(rewrite.home_blocks));
                if copies {
                    self.write_note(Note::HomeComplete, Phase::NotingHome, ctx);
                } else {
                    self.end_stretch(ctx);
                }
            }
            Phase::FlushingHome if !rewrite.is_last_stretch() && self.journal_is_full() => {
                self.pause(ctx);
            }
            Phase::FlushingHome | Phase::NotingHome => self.end_stretch(ctx),
        }
    }

    /// Puts what the log holds of the band over what was read of it, all reads at once, so that
    /// the disk may choose their order. Zeroed ranges go home as zeroes: nothing of what was
    /// zeroed is left on the disk then.
    pub(super) fn gather(&mut self, ctx: &mut Context<'_>) {
        let rewrite = self.enter(Phase::Gathering, self.gathered.len() as u64);
        self.expect_gathered(&rewrite);
        let band = self.bands.extent_of(rewrite.band);
        let start = band.start.0 + rewrite.from;
        let at_home = rewrite.blocks_at_home().max(rewrite.carried);
        ctx.zero(rewrite.buffer.part(at_home, rewrite.blocks - at_home));
        let mut zeroes = Vec::new();
        self.zeroes_of_rewrite(Extent::new(start, rewrite.blocks), &mut zeroes);
        for zeroed in zeroes {
            let part = rewrite.buffer.part(zeroed.start.0 - start, zeroed.blocks.0);
            ctx.zero(part);
        }
        self.go_on(ctx);
    }

    fn write_scratch(&mut self, ctx: &mut Context<'_>) {
        self.enter(Phase::WritingScratch, self.rewriting().blocks);
        self.go_on(ctx);
    }

    pub(super) fn write_home(&mut self, ctx: &mut Context<'_>) {
        let rewrite = self.rewriting();
        if rewrite.home_blocks == 0 {
            return self.end_stretch(ctx);
        }
        if self.durable.is_none() {
            let band = self.bands.extent_of(rewrite.band);
            let end = band.start + BlockCount(rewrite.end_of_rewrite);
            if self.zones.is_none() && end < band.end() {
                self.zero_all_but_the_log(Extent::between(end, band.end()));
            }
            self.raise_write_pointer(rewrite.band, rewrite.end_of_rewrite);
        }
        let mut blocks = rewrite.home_blocks;
        let is_all = rewrite.carried == 0 && rewrite.is_last_stretch();
        if ctx.is_planted(PlantedBug::OverlapNotRestored) && is_all {
            blocks = self.blocks_to_last_dirty_track(&rewrite);
        }
        self.enter(Phase::WritingHome, blocks);
        self.go_on(ctx);
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
        let rewrite = self.enter(phase, 0);
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

    /// Begins a phase of so many steps.
    pub(super) fn enter(&mut self, phase: Phase, steps: u64) -> Rewrite {
        let rewrite = self.rewrite.as_mut().expect("a rewrite in progress");
        (rewrite.phase, rewrite.next, rewrite.end) = (phase, 0, steps);
        *rewrite
    }

    /// The band is whole at home: what was merged leaves the log.
    pub(super) fn complete_rewrite(&mut self, ctx: &mut Context<'_>) {
        let rewrite = self.rewriting();
        if self.durable.is_some() {
            self.record_home(&rewrite, ctx);
        }
        self.salvage = None;
        if !rewrite.is_restore {
            ctx.count(Counter::PersistentCacheMergedBlocks, rewrite.merged);
            ctx.count(Counter::BandsRewritten, 1);
            let ran = rewrite.ran + ctx.now().since(rewrite.since);
            ctx.count(Counter::BandRewriteNs, ran.0);
            let band = self.bands.extent_of(rewrite.band);
            let mut before = rewrite.gathered_before;
            if ctx.is_planted(PlantedBug::RemapIgnoresOverwrite) {
                before = u64::MAX;
            }
            self.log.supersede_before(band, before, &mut self.gathered);
            self.zone_rewritten(rewrite.band, ctx);
        }
        self.release_buffers(&rewrite, ctx);
        self.end_rewrite();
        self.resume_reads(ctx);
    }

    /// Leaves everything in the log and fails the write that waits for room. If the band was being
    /// written, its good copy is the one in the scratch band.
    pub(super) fn fail_rewrite(&mut self, error: IoError, ctx: &mut Context<'_>) {
        let rewrite = self.rewriting();
        self.give_up_rewrite(&rewrite, ctx);
        self.end_blocking();
        self.idle_clock.has_failed = true;
        if rewrite.reason == Reason::Room
            && let Some(job) = self.queue.pop_front()
        {
            self.jobs[job as usize].result = Err(error);
            self.all_issued(job, ctx);
        }
        self.resume_reads(ctx);
    }

    /// Forgets a rewrite of which nothing is in flight. Its entries stay in the log.
    pub(super) fn give_up_rewrite(&mut self, rewrite: &Rewrite, ctx: &mut Context<'_>) {
        self.release_buffers(rewrite, ctx);
        self.end_rewrite();
    }

    fn release_buffers(&mut self, rewrite: &Rewrite, ctx: &mut Context<'_>) {
        self.end_work(ctx);
        ctx.release(rewrite.buffer);
        ctx.release(rewrite.note);
    }

    pub(super) fn end_rewrite(&mut self) {
        self.rewrite = None;
        self.gathered.clear();
        self.to_gather.clear();
    }

    /// Reads that waited for the band find it whole.
    pub(super) fn resume_reads(&mut self, ctx: &mut Context<'_>) {
        let mut reads = core::mem::take(&mut self.waiting_reads);
        for job in reads.drain(..) {
            match self.jobs[job as usize].request.operation {
                Operation::Read => self.start_read(job, ctx),
                _ => self.zone_command(job, ctx),
            }
        }
        reads.append(&mut self.waiting_reads);
        self.waiting_reads = reads;
    }
}
