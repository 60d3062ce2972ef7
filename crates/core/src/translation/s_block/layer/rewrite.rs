//! Rewrites: an S-block is put together, written at the head and recorded; then room is made.

use super::SBlocks;
use super::ring::runs;
use crate::buffer::BufferSlice;
use crate::counters::Counter;
use crate::durability::Lsn;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::operation::{Cause, CopyOperation, Operation};
use crate::planted::PlantedBug;
use crate::translation::s_block::records::Entry as Record;
use crate::translation::s_block::region::Room;
use crate::translation::s_block::rewrite::{Job, Source, Step};
use crate::translation::s_block::settings::{Fill, GcOrder};
use crate::translation::s_block::work::{Held, Kind, OldPart, Op};

impl SBlocks {
    /// Does what can be done in a region now; true when it must be looked at again after the next
    /// event though none of its operations is on its way.
    pub(super) fn work(&mut self, region: u32, ctx: &mut Context<'_>) -> bool {
        loop {
            let place = &self.places[region as usize];
            if let Some(write) = place.write {
                match self.step(region, write, ctx) {
                    Progress::Done => continue,
                    Progress::OnItsWay => return false,
                    Progress::Waits => return true,
                }
            }
            if let Some(job) = place.job {
                match self.next_of_job(region, job, ctx) {
                    true => continue,
                    false => return true,
                }
            }
            let Some(task) = place.queue.front().copied() else {
                return false;
            };
            let progress = match (self.ledger.failure(), self.tasks[task].kind) {
                (Some(error), _) => {
                    self.next_task(region);
                    self.task_done(task, Err(error), ctx);
                    Progress::Done
                }
                (None, Kind::Ring) => self.begin_ring_write(region, task, ctx),
                (None, _) if self.places[region as usize].ring_writes > 0 => Progress::OnItsWay,
                (None, Kind::Trim) => self.trim(region, task, ctx),
                (None, Kind::Rewrite) => {
                    self.next_task(region);
                    self.begin_job(region, self.tasks[task].segment, Some(task));
                    Progress::Done
                }
            };
            match progress {
                Progress::Done => {}
                Progress::OnItsWay => return false,
                Progress::Waits => return true,
            }
        }
    }

    pub(super) fn next_task(&mut self, region: u32) {
        self.places[region as usize].queue.pop_front();
    }

    pub(super) fn begin_job(&mut self, region: u32, segment: u16, task: Option<u32>) {
        self.places[region as usize].job =
            Some(Job { task, segment, is_written: false, is_counted: false });
    }

    /// Begins the next write of a job, or ends the job; false when it has to wait.
    fn next_of_job(&mut self, region: u32, mut job: Job, ctx: &mut Context<'_>) -> bool {
        let leaving = match (self.settings.gc_order, job.is_written) {
            (GcOrder::InvalidateFirst, false) => Some(job.segment),
            _ => None,
        };
        let waits = self.settings.gc_order == GcOrder::InvalidateFirst && job.is_written;
        if !job.is_counted && !waits {
            self.count_room(region, leaving, ctx);
            job.is_counted = true;
            self.places[region as usize].job = Some(job);
        }
        let room = match waits {
            true => Room::There,
            false => self.places[region as usize].region.make_room(leaving),
        };
        let (segment, is_move) = match room {
            Room::Move(segment) => (segment, true),
            Room::There if job.is_written => {
                self.places[region as usize].job = None;
                return true;
            }
            Room::There => (job.segment, false),
        };
        let Some(write) = self.writes.begin(region, segment, is_move) else {
            return false;
        };
        self.places[region as usize].write = Some(write);
        true
    }

    /// Counts the S-blocks that will be moved, all at the moment that decides it.
    fn count_room(&self, region: u32, leaving: Option<u16>, ctx: &mut Context<'_>) {
        let region = &self.places[region as usize].region;
        let Some(moves) = region.moves_to_come(leaving) else {
            return;
        };
        let blocks = self.layout.segment / self.layout.block;
        ctx.count(Counter::GcRuns, 1);
        ctx.count(Counter::GcMigrations, moves);
        ctx.count(Counter::SegmentsRewritten, moves);
        ctx.count(Counter::RewriteBlocksRead, moves * blocks);
        ctx.count(Counter::RewriteBlocksWritten, moves * blocks);
    }

    /// Takes the writing of an S-block on.
    fn step(&mut self, region: u32, index: u8, ctx: &mut Context<'_>) -> Progress {
        let write = &self.writes[index];
        if write.left > 0 {
            return Progress::OnItsWay;
        }
        if let Some(error) = write.error.or(self.ledger.failure()) {
            self.writes[index].error = Some(error);
            return self.end_write(region, index, ctx);
        }
        match self.writes[index].step {
            Step::Begins => self.begin_write(index, ctx),
            Step::Peeks => {
                self.check_copies(index, ctx);
                self.read_old(index, ctx)
            }
            Step::ReadsOld => self.read_ring(index, ctx),
            Step::ReadsRing => {
                self.writes[index].step = Step::Merges;
                Progress::Done
            }
            Step::Merges => self.merge(index, ctx),
            Step::WaitsForHead => self.write_head(index, ctx),
            Step::Writes => {
                let ticket = match ctx.is_planted(PlantedBug::SBlockRecordedUnflushed) {
                    true => crate::durability::FlushTicket(0),
                    false => self.ledger.flush(ctx),
                };
                self.writes[index].step = Step::Flushes(ticket);
                Progress::Done
            }
            Step::Flushes(ticket) if !self.ledger.is_flushed(ticket) => Progress::Waits,
            Step::Flushes(_) => {
                self.record_write(index, ctx);
                Progress::Done
            }
            Step::Ends => self.end_write(region, index, ctx),
        }
    }

    /// An operation of the present step has ended.
    pub(super) fn step_done(&mut self, region: u32, result: Result<(), IoError>) {
        let index = self.places[region as usize].write.expect("a write");
        let write = &mut self.writes[index];
        write.left -= 1;
        write.error = write.error.or(result.err());
        self.list(region);
    }

    /// A copy was looked for.
    pub(super) fn peeked(&mut self, region: u32, block: u32, result: Result<(), IoError>) {
        let index = self.places[region as usize].write.expect("a write");
        let write = &mut self.writes[index];
        write.left -= 1;
        if result.is_err() {
            write.sources[block as usize] = Source::Old;
        }
        self.list(region);
    }

    /// A store of copies has given a part of the buffer back.
    pub(super) fn stored(&mut self, region: u32) {
        let index = self.places[region as usize].write.expect("a write");
        self.writes[index].stored -= 1;
        self.list(region);
    }

    /// Decides what comes from where.
    fn begin_write(&mut self, index: u8, ctx: &mut Context<'_>) -> Progress {
        let (segment, block) = (self.layout.segment as usize, self.layout.block as usize);
        let blocks = segment / block;
        let write = &mut self.writes[index];
        write.dirty.resize(segment, false);
        write.sources.resize(blocks, Source::Old);
        write.buffer = ctx.allocate(crate::units::BlockCount(segment as u64));
        if !write.is_move {
            self.mark_dirty(index);
            let write = &mut self.writes[index];
            let mut destaged = 0;
            for (source, dirty) in write.sources.iter_mut().zip(write.dirty.chunks(block)) {
                destaged += u64::from(dirty.contains(&true));
                if !dirty.contains(&false) {
                    *source = Source::Requests;
                }
            }
            ctx.count(Counter::SegmentsRewritten, 1);
            ctx.count(Counter::DestagedBlocks, destaged);
            ctx.count(Counter::RewriteBlocksWritten, blocks as u64 - destaged);
        }
        self.begin_words(index, ctx);
        let write = &self.writes[index];
        let has_store = self.settings.fill == Fill::Flash && self.store(ctx).is_some();
        if has_store && !write.is_move && self.has_home_to_compare(index) {
            self.peek(index, ctx);
        }
        self.writes[index].step = Step::Peeks;
        Progress::Done
    }

    /// Marks what the requests and the ring bring.
    fn mark_dirty(&mut self, index: u8) {
        let write = &mut self.writes[index];
        let place = &self.places[write.region as usize];
        let segment = self.layout.segment;
        if let Some(task) = place.job.and_then(|job| job.task) {
            for part in &self.tasks[task].parts {
                let from = (part.extent.start.0 % segment) as usize;
                write.dirty[from..from + part.extent.blocks.0 as usize].fill(true);
            }
        }
        let Some(ring) = &place.ring else {
            return;
        };
        let blocks = (segment / self.layout.block) as u32;
        let first = u32::from(write.segment) * blocks;
        for (_, slot) in ring.places_of(first, first + blocks) {
            let from = u64::from(slot.block - first) * self.layout.block;
            for part in 0..self.layout.block {
                if slot.valid >> part & 1 == 1 {
                    write.dirty[(from + part) as usize] = true;
                }
            }
        }
    }

    /// The blocks of the S-block as the node above knows them.
    pub(super) fn told(&self, index: u8) -> u64 {
        let write = &self.writes[index];
        let first = self.layout.places[write.region as usize].first_segment;
        u64::from(first + u32::from(write.segment)) * self.layout.segment
    }

    /// Asks the store of copies for what is missing.
    fn peek(&mut self, index: u8, ctx: &mut Context<'_>) {
        let (told, block) = (self.told(index), self.layout.block);
        for at in 0..self.writes[index].sources.len() as u64 {
            let write = &mut self.writes[index];
            if write.sources[at as usize] != Source::Old {
                continue;
            }
            write.sources[at as usize] = Source::Copy;
            write.left += 1;
            let (region, buffer) = (write.region, write.buffer.part(at * block, block));
            let op = Op::Peek { region, block: at as u32 };
            let what = (Extent::new(told + at * block, block), buffer);
            let peek = Operation::Copy(CopyOperation::Peek);
            self.issue(op, peek, what, Cause::Destage, ctx);
        }
    }

    /// Reads what comes from the older S-block; where there is none, it is zeroes.
    fn read_old(&mut self, index: u8, ctx: &mut Context<'_>) -> Progress {
        let write = &self.writes[index];
        let (region, is_move) = (write.region, write.is_move);
        let slot = self.places[region as usize].region.slot_of(write.segment);
        let block = self.layout.block;
        let blocks = write.sources.len() as u64;
        let mut at = 0;
        while at < blocks {
            let write = &mut self.writes[index];
            let rest = &write.sources[at as usize..];
            let run = rest.iter().take_while(|source| **source == Source::Old);
            let run = run.count() as u64;
            if run > 0 {
                let buffer = write.buffer.part(at * block, run * block);
                match slot {
                    None => ctx.zero(buffer),
                    Some(slot) => {
                        write.left += 1;
                        if !is_move {
                            ctx.count(Counter::RewriteBlocksRead, run);
                        }
                        let there = self.layout.position(region, slot).start.0 + at * block;
                        let there = Extent::new(there, run * block);
                        let part = OldPart { region, there, from: at * block, is_again: false };
                        let what = (there, buffer);
                        let cause = self.cause(index);
                        self.issue(Op::Old(part), Operation::Read, what, cause, ctx);
                    }
                }
            }
            at += run.max(1);
        }
        self.writes[index].step = Step::ReadsOld;
        Progress::Done
    }

    pub(super) fn cause(&self, index: u8) -> Cause {
        match self.writes[index].is_move {
            true => Cause::Cleaning,
            false => Cause::Destage,
        }
    }

    /// Reads the blocks that wait in the ring over the older ones.
    fn read_ring(&mut self, index: u8, ctx: &mut Context<'_>) -> Progress {
        let write = &self.writes[index];
        let (region, buffer) = (write.region, write.buffer);
        let block = self.layout.block;
        let blocks = (self.layout.segment / block) as u32;
        let first = u32::from(write.segment) * blocks;
        self.writes[index].step = Step::ReadsRing;
        let is_left_out = ctx.is_planted(PlantedBug::SBlockRingLeftOut);
        if self.writes[index].is_move || is_left_out {
            return Progress::Done;
        }
        let places = self.places[region as usize].ring.as_ref().map_or(0, |ring| ring.places());
        for at in 0..places {
            let ring = self.places[region as usize].ring.as_ref().expect("a ring");
            let slot = *ring.slot(at);
            if slot.valid == 0 || !(first..first + blocks).contains(&slot.block) {
                continue;
            }
            let start = self.layout.ring_place(region, at).start.0;
            let offset = u64::from(slot.block - first) * block;
            self.take_ring_words(index, at, offset);
            for (from, parts) in runs(slot.valid) {
                self.writes[index].left += 1;
                let there = Extent::new(start + from, parts);
                let part = OldPart { region, there, from: offset + from, is_again: false };
                let what = (there, buffer.part(offset + from, parts));
                self.issue(Op::Old(part), Operation::Read, what, Cause::Destage, ctx);
            }
        }
        Progress::Done
    }

    /// Puts in what the requests bring, when no store of copies has their buffers any more.
    fn merge(&mut self, index: u8, ctx: &mut Context<'_>) -> Progress {
        let write = &self.writes[index];
        let (region, buffer) = (write.region, write.buffer);
        let job = self.places[region as usize].job;
        let task = job.and_then(|job| job.task).filter(|_| !write.is_move);
        if let Some(task) = task {
            let parts = core::mem::take(&mut self.tasks[task].parts);
            let is_held = |request: u32| self.requests[request].copies > 0;
            let waits = parts.iter().any(|part| is_held(part.request));
            if !waits {
                for part in &parts {
                    let request = self.requests[part.request].request;
                    let from = part.extent.start.0 % self.layout.segment;
                    let target = buffer.part(from, part.extent.blocks.0);
                    match request.operation {
                        Operation::Write { .. } => {
                            let from = part.extent.start.0 - request.extent.start.0;
                            ctx.copy(request.buffer.part(from, part.extent.blocks.0), target);
                        }
                        _ => ctx.zero(target),
                    }
                    self.set_words(index, (from, part.extent.blocks.0), None);
                }
            }
            self.tasks[task].parts = parts;
            if waits {
                return Progress::Waits;
            }
        }
        if task.is_none() {
            self.tell_ring_blocks(index, ctx);
        }
        self.store_reads(index, ctx);
        self.writes[index].step = Step::WaitsForHead;
        Progress::Done
    }

    /// Writes the S-block when the head and what that destroys are free, and its record has room.
    fn write_head(&mut self, index: u8, ctx: &mut Context<'_>) -> Progress {
        let region = self.writes[index].region;
        if self.writes[index].stored > 0 {
            return Progress::OnItsWay;
        }
        let place = &self.places[region as usize];
        let is_free =
            place.region.may_write_head() || ctx.is_planted(PlantedBug::SBlockReadsIgnored);
        if !is_free {
            self.ledger_frees_places(ctx);
            return Progress::Waits;
        }
        if !self.ledger.reserve(1) {
            return Progress::Waits;
        }
        let position = self.places[region as usize].region.head();
        let write = &mut self.writes[index];
        (write.step, write.left) = (Step::Writes, 1);
        (write.position, write.has_room) = (position, true);
        self.write_table(index, ctx);
        let operation = match self.is_forced(index) {
            true => Operation::WRITE_DURABLE,
            false => Operation::WRITE,
        };
        let what = (self.layout.position(region, position), self.writes[index].buffer);
        let op = Op::Rewrite { region };
        self.issue(op, operation, what, self.cause(index), ctx);
        Progress::OnItsWay
    }

    /// Without a journal what is forced is forced below.
    fn is_forced(&self, index: u8) -> bool {
        let write = &self.writes[index];
        let job = self.places[write.region as usize].job;
        let task = job.and_then(|job| job.task).filter(|_| !write.is_move);
        let is_durable = |request: u32| self.requests[request].request.operation.is_durable();
        self.life.in_place
            && task.is_some_and(|task| {
                let mut parts = self.tasks[task].parts.iter();
                parts.any(|part| is_durable(part.request))
            })
    }

    /// The S-block is there: the map says so from now on.
    fn record_write(&mut self, index: u8, ctx: &mut Context<'_>) {
        let write = &mut self.writes[index];
        let (region, segment, position) = (write.region, write.segment, write.position);
        let is_move = write.is_move;
        write.step = Step::Ends;
        if core::mem::take(&mut write.has_room) {
            self.ledger.release_reserved(1);
        }
        let used = self.places[region as usize].region.log().1;
        let record = Record::Appended {
            is_move,
            region,
            segment,
            position,
            used,
            table: self.table_is_written(index),
        };
        let until = self.record(&record, ctx);
        let place = &mut self.places[region as usize];
        let old = place.region.append(segment, position);
        place.region.drop_surplus();
        if let Some(old) = old {
            self.free_later(region, Held::Position(old), until, ctx);
        }
        if is_move {
            return;
        }
        let blocks = (self.layout.segment / self.layout.block) as u32;
        let first = u32::from(segment) * blocks;
        self.forget_ring(region, (first, first + blocks), until, ctx);
        let mut job = self.places[region as usize].job.expect("a job");
        (job.is_written, job.is_counted) = (true, false);
        if self.settings.gc_order == GcOrder::RoomFirst {
            self.count_room(region, None, ctx);
            job.is_counted = true;
        }
        let task = job.task.take();
        self.places[region as usize].job = Some(job);
        if let Some(task) = task {
            self.task_done(task, Ok(()), ctx);
        }
    }

    /// The writing of an S-block has ended or failed.
    fn end_write(&mut self, region: u32, index: u8, ctx: &mut Context<'_>) -> Progress {
        let write = &mut self.writes[index];
        if write.stored > 0 {
            return Progress::OnItsWay;
        }
        let (error, buffer) = (write.error, write.buffer);
        write.buffer = BufferSlice::EMPTY;
        let pages = core::mem::take(&mut write.sums.pages);
        if core::mem::take(&mut write.has_room) {
            self.ledger.release_reserved(1);
        }
        ctx.release(buffer);
        ctx.release(pages);
        self.writes.end(index);
        self.places[region as usize].write = None;
        let job = self.places[region as usize].job;
        let Some((error, job)) = error.zip(job) else {
            return Progress::Done;
        };
        // The older S-block is where it was.
        self.places[region as usize].job = None;
        if job.is_written {
            return Progress::Done;
        }
        let task = match job.task {
            Some(task) => Some(task),
            // The write that found the ring full cannot have its place.
            None => self.places[region as usize].queue.pop_front(),
        };
        if let Some(task) = task {
            self.task_done(task, Err(error), ctx);
        }
        Progress::Done
    }

    /// Forgets whole S-blocks.
    fn trim(&mut self, region: u32, task: u32, ctx: &mut Context<'_>) -> Progress {
        if !self.ledger.reserve(1) {
            return Progress::Waits;
        }
        self.ledger.release_reserved(1);
        self.next_task(region);
        let part = self.tasks[task].parts[0];
        let first = self.tasks[task].segment;
        let count = (part.extent.blocks.0 / self.layout.segment) as u16;
        let record = Record::Trimmed { region, first, count };
        let until = self.record(&record, ctx);
        for segment in first..first + count {
            let old = self.places[region as usize].region.forget(segment);
            if let Some(old) = old {
                self.free_later(region, Held::Position(old), until, ctx);
            }
        }
        let blocks = (self.layout.segment / self.layout.block) as u32;
        let (from, to) = (u32::from(first) * blocks, u32::from(first + count) * blocks);
        self.forget_ring(region, (from, to), until, ctx);
        self.task_done(task, Ok(()), ctx);
        Progress::Done
    }

    /// A position or a place is free when every record before `until` is durable.
    pub(super) fn free_later(
        &mut self,
        region: u32,
        held: Held,
        until: Lsn,
        ctx: &mut Context<'_>,
    ) {
        if ctx.is_planted(PlantedBug::OldLocationReusedEarly) {
            return;
        }
        self.hold(region, held);
        let durable_before = self.ledger.durable_before();
        if let Some((region, held)) = self.quarantine.hold((region, held), until, durable_before) {
            self.release(region, held);
        }
    }
}

/// What became of an attempt to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// It went on.
    Done,
    /// Operations of the region are on their way.
    OnItsWay,
    /// Something else has to happen first.
    Waits,
}
