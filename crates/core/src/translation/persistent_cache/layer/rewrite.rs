//! The band rewrite, step by step: what the [rewriter](super::super::rewriter) decides, done.

use super::{PersistentCache, Timer};
use crate::buffer::BufferSlice;
use crate::counters::Counter;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Area, Context};
use crate::map::BandId;
use crate::operation::{Cause, Operation};
use crate::planted::PlantedBug;
use crate::translation::persistent_cache::conduct::Progress;
use crate::translation::persistent_cache::firmware::Note;
use crate::translation::persistent_cache::requests::Part;
use crate::translation::persistent_cache::rewrite::{Phase, Reason, Rewrite};
use crate::translation::persistent_cache::salvage::Salvage;
use crate::translation::persistent_cache::settings::RewriteMethod;
use crate::units::BlockCount;

impl PersistentCache {
    /// Begins to rewrite a band; first of all the one that only the scratch band holds, if any.
    pub(super) fn start_rewrite(&mut self, band: BandId, reason: Reason, ctx: &Context<'_>) {
        let salvage = self.blocks.salvage;
        self.rewriter.start(band, reason, salvage, &self.shape, ctx.now());
    }

    /// Reads the band once nothing that matters to it is in flight. True when the rewrite turned
    /// out to be needless.
    pub(super) fn begin_rewrite_when_drained(&mut self, ctx: &mut Context<'_>) -> bool {
        let Some(rewrite) = self.rewriter.current() else {
            return false;
        };
        let band = rewrite.band;
        if rewrite.phase != Phase::Draining || rewrite.pace.is_paused {
            return false;
        }
        if !self.may_continue(ctx) {
            self.interrupt_rewrite(ctx);
            return false;
        }
        if self.ledger.failure().is_some() {
            self.give_up_rewrite(ctx);
            self.resume_reads(ctx);
            return false;
        }
        let is_busy = self.writes.in_flight() > 0 || self.reads.is_read_at_home(band);
        if is_busy || self.rewrite_must_wait(band, ctx) {
            return false;
        }
        let rewrite = self.rewriter.get_mut();
        if !rewrite.pace.is_overhead_over {
            rewrite.phase = Phase::Overhead;
            let end = ctx.now() + self.shape.settings.rewrite.overhead;
            self.alarms.set(Timer::Overhead, end, ctx);
            return false;
        }
        let zones = self.zones.as_deref();
        if !self.rewriter.decide(&self.shape, &self.blocks, zones) {
            self.rewriter.end();
            self.resume_reads(ctx);
            return true;
        }
        let rewrite = self.rewriter.get_mut();
        rewrite.buffer = ctx.allocate(self.shape.layout.rewrite_blocks());
        if self.shape.conduct.progress == Progress::Notes {
            rewrite.note = ctx.allocate(BlockCount(1));
        }
        self.begin_stretch(ctx);
        false
    }

    /// Reads what the present stretch needs beside what was carried on to it.
    fn begin_stretch(&mut self, ctx: &mut Context<'_>) {
        let salvage = self.blocks.salvage;
        self.rewriter.measure_stretch(&self.shape, salvage);
        if !self.rewriter.get().is_restore {
            let forgets = ctx.is_planted(PlantedBug::RemapIgnoresOverwrite);
            self.rewriter.list_what_is_gathered(&self.shape, forgets);
        }
        if self.shape.conduct.verifies {
            return self.read_with_checksums(ctx);
        }
        let held = self.rewriter.get().stretch;
        let to_read = held.blocks_at_home().saturating_sub(held.carried);
        if self.shape.conduct.trusts_log {
            self.rewriter.leave_unread(&self.shape, to_read);
        }
        self.rewriter.enter(Phase::Reading, to_read);
        self.gather_beside(ctx);
        self.continue_rewrite(ctx);
    }

    /// Begins to read what the log holds of the stretch while home is being read, where that is asked for.
    pub(super) fn gather_beside(&mut self, ctx: &mut Context<'_>) {
        let is_beside = self.rewriter.gathers_beside(&self.shape);
        self.rewriter.get_mut().is_gathered_beside = is_beside;
        if !is_beside {
            return;
        }
        if self.rewriter.get().beside == BufferSlice::EMPTY {
            let beside = ctx.allocate(self.shape.layout.rewrite_blocks());
            self.rewriter.get_mut().beside = beside;
        }
        let mut at = 0;
        for index in 0..self.rewriter.gathered().len() {
            let step = self.rewriter.step_beside(index, at, &self.shape);
            at += self.rewriter.gathered()[index].extent.blocks.0;
            for place in step.pieces.into_iter().filter(|(area, _)| !area.extent.is_empty()) {
                self.rewriter.get_mut().steps.sent_beside();
                let part = Part::Rewrite { end: None };
                self.issue(part, Operation::Read, place, Cause::Cleaning, ctx);
            }
        }
    }

    /// Sends off what may be sent of the present phase. When all of it is done, the next phase
    /// begins; when the rest has to wait, the rewrite is paused.
    pub(super) fn continue_rewrite(&mut self, ctx: &mut Context<'_>) {
        let may_continue = self.may_continue(ctx);
        if may_continue {
            self.send_steps(ctx);
        }
        if self.rewriter.get().steps.outstanding > 0 {
            return;
        }
        match may_continue {
            true => self.end_phase(ctx),
            false => self.interrupt_rewrite(ctx),
        }
    }

    /// Sends off what may be sent of the present phase.
    pub(super) fn send_steps(&mut self, ctx: &mut Context<'_>) {
        let salvage = self.blocks.salvage;
        while let Some(step) = self.rewriter.next_step(&self.shape, salvage) {
            let operation = match step.is_write {
                true => self.shape.conduct.copy_operation(),
                false => Operation::Read,
            };
            for place in step.pieces {
                if !place.0.extent.is_empty() {
                    self.issue_for_rewrite(operation, place, Cause::Cleaning, ctx);
                }
            }
        }
    }

    /// Issues an operation of the rewrite.
    pub(super) fn issue_for_rewrite(
        &mut self,
        operation: Operation,
        place: (Area, BufferSlice),
        cause: Cause,
        ctx: &mut Context<'_>,
    ) {
        let end = Some(self.rewriter.get_mut().steps.sent());
        self.issue(Part::Rewrite { end }, operation, place, cause, ctx);
    }

    /// An operation of the rewrite has finished.
    pub(super) fn rewrite_part_done(
        &mut self,
        end: Option<u64>,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let rewrite = self.rewriter.get_mut();
        rewrite.steps.done(end, result);
        if self.zones.is_some() && rewrite.phase == Phase::WritingHome {
            self.resume_reads(ctx);
        }
        let steps = self.rewriter.get().steps;
        match steps.result {
            Ok(()) => self.continue_rewrite(ctx),
            Err(error) if steps.outstanding == 0 => self.fail_rewrite(error, ctx),
            Err(_) => {}
        }
    }

    /// The present phase is done: the next one begins, unless reads that go where it writes are
    /// in flight.
    fn end_phase(&mut self, ctx: &mut Context<'_>) {
        let rewrite = *self.rewriter.get();
        // The scratch band may hold the only copy of a band whose record will never be durable.
        if let Some(error) = self.ledger.failure() {
            return self.fail_rewrite(error, ctx);
        }
        match rewrite.phase {
            Phase::Draining | Phase::Overhead => unreachable!("nothing is in flight yet"),
            Phase::Reading => self.end_of_reading(&rewrite, ctx),
            Phase::Gathering => self.end_of_gather(&rewrite, ctx),
            Phase::WritingScratch => {
                ctx.count(Counter::ScratchBlocksWritten, rewrite.stretch.blocks);
                match self.shape.conduct.progress {
                    Progress::Records => self.flush_for_rewrite(Phase::FlushingScratch, ctx),
                    Progress::Notes => {
                        self.write_note(Note::ScratchComplete, Phase::NotingScratch, ctx);
                    }
                }
            }
            // From here on the band is read from the scratch band, with the new checksums.
            Phase::FlushingScratch if self.reads.is_read_at_home(rewrite.band) => self.pause(ctx),
            Phase::FlushingScratch => self.scratch_flushed(ctx),
            Phase::NotingScratch => match self.shape.conduct.progress {
                Progress::Notes if self.reads.is_read_at_home(rewrite.band) => self.pause(ctx),
                Progress::Notes => {
                    self.blocks.salvage = Some(Salvage::of(&rewrite));
                    self.write_home_behind_scratch(ctx);
                }
                Progress::Records => self.write_home_behind_scratch(ctx),
            },
            Phase::WritingHome => self.end_of_writing_home(&rewrite, ctx),
            Phase::FlushingHome if !rewrite.stretch.is_last() && self.journal_is_full() => {
                self.pause(ctx);
            }
            Phase::FlushingHome | Phase::NotingHome => self.end_stretch(ctx),
        }
    }

    fn end_of_reading(&mut self, rewrite: &Rewrite, ctx: &mut Context<'_>) {
        let is_in_scratch = rewrite.stretch.is_in_scratch;
        if !is_in_scratch {
            ctx.count(Counter::BandBlocksRead, self.rewriter.blocks_read());
        }
        if self.shape.conduct.verifies
            && let Err(error) = self.take_old_checksums(rewrite, ctx)
        {
            return self.fail_rewrite(error, ctx);
        }
        match is_in_scratch {
            true => self.write_home(ctx),
            false => self.gather(ctx),
        }
    }

    /// Puts what the log holds of the band over what was read of it, all reads at once, so that
    /// the disk may choose their order. Zeroed ranges go home as zeroes: nothing of what was
    /// zeroed is left on the disk then.
    pub(super) fn gather(&mut self, ctx: &mut Context<'_>) {
        let is_beside = self.rewriter.get().is_gathered_beside;
        let steps = if is_beside { 0 } else { self.rewriter.gathered().len() as u64 };
        self.rewriter.enter(Phase::Gathering, steps);
        self.expect_merged();
        let rewrite = self.rewriter.get();
        let held = rewrite.stretch;
        let start = self.shape.bands.extent_of(rewrite.band).start.0 + held.from;
        let at_home = held.blocks_at_home().max(held.carried);
        ctx.zero(rewrite.buffer.part(at_home, held.blocks - at_home));
        for zeroed in self.rewriter.zeroed(Extent::new(start, held.blocks)) {
            let part = rewrite.buffer.part(zeroed.start.0 - start, zeroed.blocks.0);
            ctx.zero(part);
        }
        if is_beside {
            for (from, to) in self.rewriter.moves_from_beside(&self.shape) {
                ctx.copy(from, to);
            }
        }
        self.continue_rewrite(ctx);
    }

    fn end_of_gather(&mut self, rewrite: &Rewrite, ctx: &mut Context<'_>) {
        self.rewriter.end_of_gather();
        let copies = self.shape.settings.rewrite.method == RewriteMethod::CopyThenHome;
        // What the scratch band held last may still be being read, but not where a later
        // stretch goes: its reads ended before the one between was written home.
        let covered = self.rewriter.scratch_band;
        let covered = covered.filter(|_| copies && rewrite.stretch.carried == 0);
        let is_read = |band| self.reads.is_read_at_home(band);
        let needs_no_copy = copies && self.log_covers_stretch(rewrite);
        let is_next_home = self.zones.is_some() || needs_no_copy;
        if (is_next_home && is_read(rewrite.band)) || covered.is_some_and(is_read) {
            return self.pause(ctx);
        }
        if needs_no_copy {
            // The log holds what was carried on too.
            self.blocks.salvage = None;
        }
        if !copies || needs_no_copy {
            return self.write_home(ctx);
        }
        match self.shape.conduct.verifies {
            true => self.write_scratch_and_table(ctx),
            false => {
                self.rewriter.enter(Phase::WritingScratch, rewrite.stretch.blocks);
                self.continue_rewrite(ctx);
            }
        }
    }

    /// True when the log is the second copy of the stretch and all that is carried with it.
    fn log_covers_stretch(&self, rewrite: &Rewrite) -> bool {
        let held = &rewrite.stretch;
        let start = self.shape.bands.extent_of(rewrite.band).start.0 + held.from;
        let extent = Extent::new(start, held.blocks);
        self.shape.conduct.trusts_log && self.blocks.log_covers(extent, rewrite.gathered_before)
    }

    fn write_home_behind_scratch(&mut self, ctx: &mut Context<'_>) {
        self.rewriter.scratch_band = self.rewriter.band();
        self.write_home(ctx);
    }

    pub(super) fn write_home(&mut self, ctx: &mut Context<'_>) {
        let rewrite = *self.rewriter.get();
        let held = rewrite.stretch;
        if held.home_blocks == 0 {
            return self.end_stretch(ctx);
        }
        if self.shape.conduct.progress == Progress::Notes {
            let band = self.shape.bands.extent_of(rewrite.band);
            let end = band.start + BlockCount(held.end_of_rewrite);
            if !self.shape.conduct.pointers_bound_reads && end < band.end() {
                self.blocks.zero_all_but_the_log(Extent::between(end, band.end()));
            }
            self.blocks.raise_pointer(rewrite.band, held.end_of_rewrite);
        }
        let mut blocks = held.home_blocks;
        let is_all = held.carried == 0 && held.is_last();
        if ctx.is_planted(PlantedBug::OverlapNotRestored) && is_all {
            blocks = self.rewriter.blocks_to_last_dirty_track(&self.shape);
        }
        self.rewriter.enter(Phase::WritingHome, blocks);
        self.continue_rewrite(ctx);
    }

    fn end_of_writing_home(&mut self, rewrite: &Rewrite, ctx: &mut Context<'_>) {
        let written = rewrite.stretch.home_blocks;
        ctx.count(Counter::BandBlocksWritten, written);
        if self.shape.conduct.progress == Progress::Records {
            return self.flush_for_rewrite(Phase::FlushingHome, ctx);
        }
        self.blocks.salvage = self.blocks.salvage.and_then(|it| it.without(written));
        match self.shape.settings.rewrite.method {
            RewriteMethod::CopyThenHome => {
                self.write_note(Note::HomeComplete, Phase::NotingHome, ctx);
            }
            RewriteMethod::InPlace => self.end_stretch(ctx),
        }
    }

    /// Notes how far the rewrite has come, in the next block of the metadata track.
    fn write_note(&mut self, note: Note, phase: Phase, ctx: &mut Context<'_>) {
        self.rewriter.enter(phase, 0);
        let rewrite = self.rewriter.get();
        let (buffer, log) = (rewrite.note, &self.blocks.log);
        let words = [
            u64::from(rewrite.band.0),
            rewrite.stretch.from,
            rewrite.stretch.blocks,
            rewrite.gathered_before,
            log.head(),
            log.tail(),
            self.shape.settings.log_blocks.0,
        ];
        let track = self.shape.layout.areas().metadata;
        let block = self.firmware.note_block(track.extent.blocks.0);
        ctx.fill_metadata(buffer, &self.firmware.write_note(note, words));
        let place = (track.part(block, 1), buffer);
        self.issue_for_rewrite(Operation::WRITE_DURABLE, place, Cause::Metadata, ctx);
    }

    /// The stretch is home: the next one begins, or the band is whole.
    pub(super) fn end_stretch(&mut self, ctx: &mut Context<'_>) {
        let rewrite = self.rewriter.get_mut();
        if rewrite.stretch.is_last() {
            return self.complete_rewrite(ctx);
        }
        let home_blocks = rewrite.stretch.home_blocks;
        rewrite.stretch.carry_on();
        let carried = rewrite.stretch.carried;
        if home_blocks > 0 {
            let behind = rewrite.buffer.part(home_blocks, carried);
            ctx.copy(behind, rewrite.buffer.part(0, carried));
        }
        if ctx.is_planted(PlantedBug::OverlapNotRestored) {
            // Nothing destroyed them, one might think.
            (rewrite.stretch.from, rewrite.stretch.carried) = (rewrite.stretch.from + carried, 0);
            self.blocks.salvage = None;
        }
        self.begin_stretch(ctx);
    }

    /// The band is whole at home: what was merged leaves the log.
    fn complete_rewrite(&mut self, ctx: &mut Context<'_>) {
        let rewrite = *self.rewriter.get();
        self.record_home(&rewrite, ctx);
        self.blocks.salvage = None;
        if !rewrite.is_restore {
            ctx.count(Counter::PersistentCacheMergedBlocks, rewrite.merged);
            ctx.count(Counter::BandsRewritten, 1);
            ctx.count(Counter::BandRewriteNs, rewrite.pace.ran(ctx.now()).0);
            let cleaned = match rewrite.pace.is_idle {
                true => Counter::IdleCleanings,
                false => Counter::BlockingCleanings,
            };
            ctx.count(cleaned, 1);
            let before = match ctx.is_planted(PlantedBug::RemapIgnoresOverwrite) {
                true => u64::MAX,
                false => rewrite.gathered_before,
            };
            let band = self.shape.bands.extent_of(rewrite.band);
            self.rewriter.take_out_of_log(band, before, &mut self.blocks);
            self.zone_rewritten(rewrite.band, ctx);
        }
        self.give_up_rewrite(ctx);
        self.resume_reads(ctx);
    }

    /// Leaves everything in the log and fails the write that waits for room. If the band was being
    /// written, its good copy is the one in the scratch band.
    pub(super) fn fail_rewrite(&mut self, error: IoError, ctx: &mut Context<'_>) {
        let reason = self.rewriter.get().reason;
        self.give_up_rewrite(ctx);
        self.end_blocking(ctx);
        self.cleaner.rewrite_failed();
        if reason == Reason::Room
            && let Some(job) = self.writes.queue.pop_front()
        {
            self.requests.get_mut(job).result = Err(error);
            self.all_issued(job, ctx);
        }
        self.resume_reads(ctx);
    }

    /// Forgets a rewrite of which nothing is in flight, and gives its memory back.
    fn give_up_rewrite(&mut self, ctx: &mut Context<'_>) {
        self.undo.end_of_waiting();
        ctx.release(core::mem::take(&mut self.copy_check.pages));
        let rewrite = self.rewriter.get();
        ctx.release(rewrite.buffer);
        ctx.release(rewrite.note);
        ctx.release(rewrite.beside);
        self.rewriter.end();
    }

    /// Nothing of the rewrite is in flight and it has to wait.
    fn pause(&mut self, ctx: &Context<'_>) {
        self.rewriter.get_mut().pace.pause(ctx.now());
    }

    /// Lets a paused rewrite go on if it may; false when there is none.
    pub(super) fn resume_rewrite(&mut self, ctx: &mut Context<'_>) -> bool {
        let is_paused = |it: &PersistentCache| it.rewriter.current().map(|it| it.pace.is_paused);
        if is_paused(self) != Some(true) || !self.may_continue(ctx) {
            return false;
        }
        let rewrite = self.rewriter.get_mut();
        rewrite.pace.resume(ctx.now());
        if !rewrite.is_draining() {
            self.continue_rewrite(ctx);
        }
        is_paused(self) != Some(true)
    }

    /// A rewrite in idle time has to stop and nothing of it is in flight.
    fn interrupt_rewrite(&mut self, ctx: &mut Context<'_>) {
        let rewrite = self.rewriter.get();
        if rewrite.pace.is_idle && !rewrite.is_draining() {
            ctx.count(Counter::IdleCleaningsCut, 1);
        }
        // Half of the band is in the memory of the drive alone.
        let must_resume = self.shape.settings.rewrite.method == RewriteMethod::InPlace
            && (rewrite.phase == Phase::WritingHome || rewrite.stretch.carried > 0);
        if self.cleaner.policy.resumes() || must_resume || !rewrite.pace.is_idle {
            return self.pause(ctx);
        }
        self.give_up_rewrite(ctx);
        self.resume_reads(ctx);
    }

    /// Requests that waited for the band find it whole.
    fn resume_reads(&mut self, ctx: &mut Context<'_>) {
        let mut waiting = core::mem::take(&mut self.reads.waiting);
        for job in waiting.drain(..) {
            match self.requests.get(job).request.operation {
                Operation::Read => self.start_read(job, ctx),
                _ => self.zone_command(job, ctx),
            }
        }
        waiting.append(&mut self.reads.waiting);
        self.reads.waiting = waiting;
    }
}
