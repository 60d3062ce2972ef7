//! The first half of a rewrite: what it writes is decided, read, and written to a slot.

use super::jobs::{Aim, Purpose, Work};
use super::{Segments, Token};
use crate::buffer::BufferSlice;
use crate::counters::Counter;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Issue};
use crate::ledger::{When, WrittenData};
use crate::operation::{Cause, CopyOperation, Operation, Request};
use crate::planted::PlantedBug;
use crate::translation::segment::codec::{self, KEPT};
use crate::translation::segment::layout::Place;
use crate::translation::segment::rewrite::{Stage, written_blocks};
use crate::translation::segment::slots::Noted;
use crate::units::BLOCK_BYTES;

/// Longest run of a slot that one record speaks of.
const RECORD_BLOCKS_MAX: u64 = 512;
/// Most segments that are zeroed together: 8 GiB at the paper's defaults.
const ZEROED_SEGMENTS_MAX: u64 = 4096;

impl Segments {
    /// Begins the rewrite of the next segment of a job, or ends the job.
    pub(super) fn next_segment(&mut self, job: u32, ctx: &mut Context<'_>) {
        let entry = self.jobs.get_mut(job);
        let failure = self.ledger.failure().filter(|_| entry.work == Work::Write);
        entry.failure = entry.failure.or(failure);
        if entry.rest.is_empty() || failure.is_some() || self.is_lost {
            if self.is_lost {
                entry.failure = entry.failure.or(Some(IoError::Lost));
            }
            return self.end_job(job, ctx);
        }
        let layout = &self.shape.layout;
        let (blocks, parts) = (layout.blocks_of_segment(), layout.segment_blocks());
        let segment = entry.rest.start;
        entry.rewrite.begin(segment, blocks as usize, parts as usize);
        let zeroed = self.zeroed_segments(job);
        self.jobs.get_mut(job).rewrite.zeroed = zeroed;
        match zeroed {
            0 => self.decide(job, ctx),
            segments => self.begin_zeroing(job, segments, ctx),
        }
    }

    /// How many whole segments from the next one on a job zeroes.
    fn zeroed_segments(&self, job: u32) -> u64 {
        let entry = self.jobs.get(job);
        let [request] = entry.requests[..] else {
            return 0;
        };
        if !matches!(request.operation, Operation::Zero { .. }) {
            return 0;
        }
        let of = self.shape.layout.segment_blocks();
        let first = entry.rest.start;
        // The device may end inside of its last segment; what is behind is nobody's.
        let offered = self.shape.settings.offered;
        let ends_device = offered.is_some_and(|blocks| request.extent.end().0 == blocks.0);
        let end = match ends_device {
            true => request.extent.end().0.div_ceil(of),
            false => request.extent.end().0 / of,
        };
        match request.extent.start.0 <= first * of {
            true => end.saturating_sub(first).min(ZEROED_SEGMENTS_MAX),
            false => 0,
        }
    }

    fn begin_zeroing(&mut self, job: u32, segments: u64, ctx: &mut Context<'_>) {
        let first = self.jobs.get(job).rewrite.segment;
        let of = self.shape.layout.segment_blocks();
        let all = Extent::new(first * of, segments * of);
        let device = self.shape.settings.offered.unwrap_or(self.shape.layout.blocks());
        let inside = all.intersection(Extent::new(0, device.0));
        if let Some(inside) = inside {
            self.tell_store(job, CopyOperation::Drop, (inside, BufferSlice::EMPTY), ctx);
        }
        for segment in first..first + segments {
            self.touched.forget(segment);
        }
        let blocks = segments * self.shape.layout.blocks_of_segment();
        ctx.count(Counter::SegmentsRewritten, segments);
        ctx.count(Counter::DestagedBlocks, blocks);
        self.wait_for_slot(job, ctx);
    }

    /// Decides which blocks are written, tells the store of copies what is older from now on, and
    /// reads what is missing.
    fn decide(&mut self, job: u32, ctx: &mut Context<'_>) {
        self.mark_dirty(job);
        let (settings, touched) = (&self.shape.settings, &self.touched);
        let rewrite = &mut self.jobs.get_mut(job).rewrite;
        let segment = rewrite.segment;
        let holds = |block: usize| touched.holds(segment, block as u64);
        let (dirty, written) = (&rewrite.dirty, &mut rewrite.written);
        let (kappa, reach) = (settings.kappa, settings.rewrite);
        written_blocks(dirty, holds, kappa, reach, written);
        if ctx.is_planted(PlantedBug::SegmentTailLeftOut)
            && let Some(last) = written.iter().rposition(|written| *written)
        {
            written[last] = dirty[last];
        }
        let destaged = dirty.iter().filter(|dirty| **dirty).count() as u64;
        let all = written.iter().filter(|written| **written).count() as u64;
        ctx.count(Counter::SegmentsRewritten, 1);
        ctx.count(Counter::DestagedBlocks, destaged);
        ctx.count(Counter::RewriteBlocksWritten, all - destaged);
        rewrite.buffer = ctx.allocate(self.shape.areas.rewrite_blocks());
        self.read_old_sums(job, ctx);
        self.read_missing(job, ctx);
        self.tell_destaged(job, ctx);
        let rewrite = &self.jobs.get(job).rewrite;
        for (block, dirty) in rewrite.dirty.iter().enumerate() {
            if *dirty {
                self.touched.touch(segment, block as u64);
            }
        }
        self.jobs.get_mut(job).rewrite.stage = Stage::Reading;
        self.all_read(job, ctx);
    }

    /// Marks the blocks of the segment that a job writes, and which parts of them it has.
    fn mark_dirty(&mut self, job: u32) {
        let layout = &self.shape.layout;
        let entry = self.jobs.get_mut(job);
        let segment = entry.rewrite.segment;
        let whole = Extent::new(segment * layout.segment_blocks(), layout.segment_blocks());
        for request in &entry.requests {
            let Some(part) = request.extent.intersection(whole) else {
                continue;
            };
            let first = part.start.0 - whole.start.0;
            for at in first..first + part.blocks.0 {
                entry.rewrite.covered[at as usize] = true;
                entry.rewrite.dirty[(at / layout.block()) as usize] = true;
            }
        }
    }

    fn is_covered(&self, job: u32, block: u64) -> bool {
        let rewrite = &self.jobs.get(job).rewrite;
        let (start, length) = (block * self.shape.layout.block(), self.shape.layout.block());
        let parts = &rewrite.covered[start as usize..(start + length) as usize];
        parts.iter().all(|covered| *covered)
    }

    /// The blocks of 4 KiB of a block of the segment of a job that the device has: its last segment may
    /// be cut.
    fn device_extent(&self, segment: u64, block: u64) -> Extent {
        let place = Place { segment, block, offset: 0 };
        Extent::new(self.shape.layout.address_of(place), self.shape.layout.block())
    }

    /// Asks for the blocks that are written and that the requests do not have whole.
    fn read_missing(&mut self, job: u32, ctx: &mut Context<'_>) {
        let device = self.shape.settings.offered.unwrap_or(self.shape.layout.blocks());
        for block in 0..self.shape.layout.blocks_of_segment() {
            let rewrite = &self.jobs.get(job).rewrite;
            if !rewrite.written[block as usize] || self.is_covered(job, block) {
                continue;
            }
            let (segment, buffer) = (rewrite.segment, self.part_of(job, block));
            if !self.touched.holds(segment, block) {
                // Only a part of it is written, and the rest was never.
                ctx.zero(buffer);
                continue;
            }
            self.jobs.get_mut(job).rewrite.left += 1;
            let extent = self.device_extent(segment, block);
            match self.shape.settings.ports.copies_port() {
                Some(port) if extent.end().0 <= device.0 => ctx.issue(Issue {
                    port,
                    operation: Operation::Copy(CopyOperation::Peek),
                    extent,
                    buffer,
                    cause: Cause::Cleaning,
                    tag: Aim { purpose: Purpose::Peek, job, block }.tag(),
                }),
                _ => self.read_need(job, block, ctx),
            }
        }
    }

    /// The part of a rewrite's buffer that is a block.
    pub(super) fn part_of(&self, job: u32, block: u64) -> BufferSlice {
        let length = self.shape.layout.block();
        let rewrite = &self.jobs.get(job).rewrite;
        rewrite.buffer.part(block * length, length)
    }

    /// Where a block of a rewrite's segment lies.
    pub(super) fn home_of(&self, job: u32, block: u64) -> Extent {
        let place = Place { segment: self.jobs.get(job).rewrite.segment, block, offset: 0 };
        let layout = &self.shape.layout;
        Extent::new(layout.on_disk(place), layout.block())
    }

    fn read_need(&mut self, job: u32, block: u64, ctx: &mut Context<'_>) {
        ctx.count(Counter::RewriteBlocksRead, 1);
        self.jobs.get_mut(job).rewrite.from_disk[block as usize] = true;
        let aim = Aim { purpose: Purpose::Need, job, block };
        let data = (self.home_of(job, block), self.part_of(job, block));
        self.issue(aim, Operation::Read, data, Cause::Cleaning, ctx);
    }

    /// A look for a copy is done: what has none is read from the disk.
    pub(super) fn peeked(&mut self, aim: Aim, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        match result {
            Ok(()) => self.one_read(aim.job, None, ctx),
            Err(_) => self.read_need(aim.job, aim.block, ctx),
        }
    }

    pub(super) fn need_read(
        &mut self,
        aim: Aim,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let failure = match self.needs_parts(aim, result) {
            true => None,
            false => result.err(),
        };
        self.one_read(aim.job, failure, ctx);
    }

    /// Gives a store of copies that wants it what was read from the disk, in shingle order, in
    /// whatever order it came.
    fn store_reads(&mut self, job: u32, ctx: &mut Context<'_>) {
        let wants = self.shape.store.is_some_and(|store| store.wants_rewrite_reads);
        for block in 0..self.shape.layout.blocks_of_segment() {
            let rewrite = &self.jobs.get(job).rewrite;
            let at = block as usize;
            if wants && rewrite.from_disk[at] && !rewrite.dirty[at] {
                if self.is_doubtful(job, block, ctx) {
                    continue;
                }
                let rewrite = &self.jobs.get(job).rewrite;
                let extent = self.device_extent(rewrite.segment, block);
                let data = (extent, self.part_of(job, block));
                self.tell_store(job, CopyOperation::Store, data, ctx);
            }
        }
    }

    pub(super) fn one_read(&mut self, job: u32, failure: Option<IoError>, ctx: &mut Context<'_>) {
        let entry = self.jobs.get_mut(job);
        entry.rewrite.left -= 1;
        entry.failure = entry.failure.or(failure);
        self.all_read(job, ctx);
    }

    /// When all is read, the requests' data joins it. A store of copies may be writing that data.
    pub(super) fn all_read(&mut self, job: u32, ctx: &mut Context<'_>) {
        let entry = self.jobs.get(job);
        if entry.rewrite.left > 0 || entry.copies_left > 0 {
            return;
        }
        if self.jobs.get(job).failure.is_some() {
            return self.end_rewrite(job, ctx);
        }
        if self.reads_again(job, ctx) {
            return;
        }
        if self.is_disk_away(job) {
            self.jobs.get_mut(job).failure = Some(IoError::Medium);
            return self.end_rewrite(job, ctx);
        }
        self.store_reads(job, ctx);
        let layout = &self.shape.layout;
        let entry = self.jobs.get(job);
        let whole =
            Extent::new(entry.rewrite.segment * layout.segment_blocks(), layout.segment_blocks());
        for request in &entry.requests {
            if let Some(part) = request.extent.intersection(whole) {
                let to = part.start.0 - whole.start.0;
                let to = entry.rewrite.buffer.part(to, part.blocks.0);
                match data_of(request, part) {
                    Some(from) => ctx.copy(from, to),
                    None => ctx.zero(to),
                }
            }
        }
        self.seal_sums(job, ctx);
        self.wait_for_slot(job, ctx);
    }

    /// Tells the store of copies that what it has of the written blocks is older.
    fn tell_destaged(&mut self, job: u32, ctx: &mut Context<'_>) {
        if self.shape.store.is_none() || ctx.is_planted(PlantedBug::StaleCopyKept) {
            return;
        }
        for block in 0..self.shape.layout.blocks_of_segment() {
            let entry = self.jobs.get(job);
            if !entry.rewrite.dirty[block as usize] {
                continue;
            }
            let extent = self.device_extent(entry.rewrite.segment, block);
            for at in 0..entry.requests.len() {
                let request = self.jobs.get(job).requests[at];
                let Some(part) = request.extent.intersection(extent) else {
                    continue;
                };
                let (what, data) = match data_of(&request, part) {
                    Some(data) => (CopyOperation::Destaged, data),
                    None => (CopyOperation::Drop, BufferSlice::EMPTY),
                };
                self.tell_store(job, what, (part, data), ctx);
            }
        }
    }

    fn tell_store(
        &mut self,
        job: u32,
        what: CopyOperation,
        (extent, buffer): (Extent, BufferSlice),
        ctx: &mut Context<'_>,
    ) {
        let Some(port) = self.shape.settings.ports.copies_port() else {
            return;
        };
        let device = self.shape.settings.offered.unwrap_or(self.shape.layout.blocks());
        if extent.end().0 > device.0 {
            return;
        }
        self.jobs.get_mut(job).copies_left += 1;
        ctx.issue(Issue {
            port,
            operation: Operation::Copy(what),
            extent,
            buffer,
            cause: Cause::Cleaning,
            tag: Aim::of(Purpose::Copy, job).tag(),
        });
    }

    /// All that is needed is in memory. A rewrite that is journaled waits for a slot and for room.
    pub(super) fn wait_for_slot(&mut self, job: u32, ctx: &mut Context<'_>) {
        let is_zeroing = self.jobs.get(job).rewrite.zeroed > 0;
        let needs_slot = match is_zeroing {
            true => self.shape.settings.journal.has_notes(),
            false => self.shape.settings.journal.has_slots(),
        };
        if !needs_slot {
            return self.begin_home(job, ctx);
        }
        self.jobs.get_mut(job).rewrite.stage = Stage::Waiting;
        self.slots.waiting.push_back(job);
        self.give_slots(ctx);
    }

    /// Gives free slots to those that wait, in turn. When nothing more is taken, they end.
    pub(super) fn give_slots(&mut self, ctx: &mut Context<'_>) {
        if let Some(error) = self.ledger.failure() {
            return self.end_waiting(error, ctx);
        }
        while let Some(job) = self.slots.waiting.front().copied() {
            let rewrite = &self.jobs.get(job).rewrite;
            let (span, pages) = (rewrite.span(), &rewrite.sums.pages);
            let runs = (span.end - span.start) * self.shape.layout.block();
            let runs = runs + (pages.end - pages.start);
            // A record for each run, one for the rewrite, one when it is home.
            let records = runs.div_ceil(RECORD_BLOCKS_MAX) + 2;
            if self.slots.is_short() || !self.ledger.reserve(records) {
                return;
            }
            self.slots.waiting.pop_front();
            let rewrite = &mut self.jobs.get_mut(job).rewrite;
            rewrite.slot = self.slots.take();
            rewrite.reserved = records;
            match rewrite.zeroed {
                0 => self.write_slot(job, ctx),
                _ => self.slot_written(job, ctx),
            }
        }
    }

    pub(super) fn end_waiting(&mut self, error: IoError, ctx: &mut Context<'_>) {
        while let Some(job) = self.slots.waiting.pop_front() {
            self.jobs.get_mut(job).failure = Some(error);
            self.end_rewrite(job, ctx);
        }
    }

    /// Where a rewrite's blocks lie in its slot, and its data. Behind them are its pages of checksums.
    pub(super) fn in_slot(&self, job: u32) -> (Extent, BufferSlice) {
        let rewrite = &self.jobs.get(job).rewrite;
        let (span, length) = (rewrite.span(), self.shape.layout.block());
        let slot = self.shape.areas.slot(rewrite.slot.expect("a slot"));
        let (start, blocks) = (span.start * length, (span.end - span.start) * length);
        let blocks = blocks + (rewrite.sums.pages.end - rewrite.sums.pages.start);
        let extent = Extent::new(slot.start.0 + start, blocks);
        (extent, rewrite.buffer.part(start, blocks))
    }

    /// Where the pages of a rewrite lie in its slot; anywhere when it has none.
    pub(super) fn pages_in_slot(&self, job: u32) -> u64 {
        let rewrite = &self.jobs.get(job).rewrite;
        let slot = rewrite.slot.map(|slot| self.shape.areas.slot(slot));
        let behind = rewrite.span().end * self.shape.layout.block();
        slot.map_or(0, |slot| slot.start.0 + behind)
    }

    fn write_slot(&mut self, job: u32, ctx: &mut Context<'_>) {
        self.jobs.get_mut(job).rewrite.stage = Stage::Journaling;
        let (extent, buffer) = self.in_slot(job);
        ctx.count(Counter::JournalBytesWritten, extent.blocks.0 * BLOCK_BYTES);
        // A layer that keeps nothing pays what a durable one pays with its flush.
        let operation = match self.shape.settings.journal.has_notes() {
            true => Operation::WRITE,
            false => Operation::WRITE_DURABLE,
        };
        ctx.issue(Issue {
            port: self.shape.settings.ports.journal_port(),
            operation,
            extent,
            buffer,
            cause: Cause::Metadata,
            tag: Aim::of(Purpose::Slot, job).tag(),
        });
    }

    /// A slot is written, or, of what is written home again, read.
    pub(super) fn slot_done(
        &mut self,
        job: u32,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        if let Err(error) = result {
            self.jobs.get_mut(job).failure = Some(error);
            return self.end_rewrite(job, ctx);
        }
        match self.jobs.get(job).work {
            Work::Redo => {
                self.mend_pages(job, ctx);
                self.begin_home(job, ctx);
            }
            _ => self.slot_written(job, ctx),
        }
    }

    /// Notes what the slot is for; home waits until that is durable.
    fn slot_written(&mut self, job: u32, ctx: &mut Context<'_>) {
        if !self.shape.settings.journal.has_notes() {
            return self.begin_home(job, ctx);
        }
        if let Some(error) = self.ledger.failure() {
            self.jobs.get_mut(job).failure = Some(error);
            return self.end_rewrite(job, ctx);
        }
        let rewrite = &self.jobs.get(job).rewrite;
        let slot = rewrite.slot.expect("a slot");
        let noted = match rewrite.zeroed {
            0 => {
                self.record_kept(job, slot, ctx);
                let rewrite = &self.jobs.get(job).rewrite;
                Noted::Rewrite { segment: rewrite.segment, written: rewrite.written.clone() }
            }
            segments => Noted::Zero { segment: rewrite.segment, segments },
        };
        let kind = codec::encode(slot, &noted, &mut self.payload);
        self.ledger.record(kind, &self.payload, ctx);
        self.slots.note(slot, noted);
        let rewrite = &mut self.jobs.get_mut(job).rewrite;
        let reserved = rewrite.reserved - 1;
        rewrite.reserved = 1;
        rewrite.stage = Stage::Flushing;
        self.ledger.release_reserved(reserved);
        let port = self.shape.settings.ports.journal_port();
        let when = self.ledger.answer_when_flushed(port, Token::Slot(job), ctx);
        if when == When::Now || ctx.is_planted(PlantedBug::SegmentWrittenBeforeSlot) {
            self.begin_home(job, ctx);
        }
    }

    fn record_kept(&mut self, job: u32, slot: u32, ctx: &mut Context<'_>) {
        let (extent, buffer) = self.in_slot(job);
        let mut done = 0;
        while done < extent.blocks.0 {
            let blocks = RECORD_BLOCKS_MAX.min(extent.blocks.0 - done);
            let data = WrittenData {
                place: Extent::new(extent.start.0 + done, blocks),
                buffer: buffer.part(done, blocks),
            };
            let payload = u64::from(slot).to_le_bytes();
            self.ledger.record_write(KEPT, &payload, data, ctx);
            done += blocks;
        }
    }
}

/// The data of a part of a write; none of a zero.
fn data_of(request: &Request, part: Extent) -> Option<BufferSlice> {
    let first = part.start.0 - request.extent.start.0;
    match request.operation {
        Operation::Write { .. } => Some(request.buffer.part(first, part.blocks.0)),
        _ => None,
    }
}
