//! How a request is taken in, begun and answered.

use super::PersistentCache;
use crate::counters::Counter;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::ledger::When;
use crate::operation::{Operation, Request};
use crate::planted::PlantedBug;
use crate::translation::persistent_cache::cleaning_policy::Arrival;
use crate::translation::persistent_cache::conduct::ZeroOrder;
use crate::translation::persistent_cache::streams::NEVER;

impl PersistentCache {
    /// Takes in a request: a band rewrite in idle time stops at its next chunk, or finishes.
    pub(super) fn take_in(&mut self, request: Request, ctx: &mut Context<'_>) -> u32 {
        self.cleaner.request_arrived();
        if self.alarms.request_arrived() {
            self.stop_idle_rewrite();
        }
        let job = self.requests.add(request);
        if let (Some(classifier), Operation::Write { .. }) =
            (&mut self.writes.classifier, request.operation)
        {
            let is_sequential = classifier.follow(request.extent);
            self.requests.get_mut(job).around_from = if is_sequential { 0 } else { NEVER };
            let class = match is_sequential {
                true => Counter::SequentialRequests,
                false => Counter::RandomRequests,
            };
            ctx.count(class, 1);
        }
        if let Some(streams) = &mut self.writes.streams {
            match request.operation {
                Operation::Write { .. } => {
                    let is_forced = request.operation.is_durable();
                    let from = streams.follow(request.extent, is_forced);
                    self.requests.get_mut(job).around_from = from;
                }
                Operation::Flush => streams.flush(),
                _ => {}
            }
        }
        job
    }

    fn stop_idle_rewrite(&mut self) {
        let Some(rewrite) = self.rewriter.current() else {
            return;
        };
        if !rewrite.pace.is_idle || rewrite.is_draining() || rewrite.pace.is_paused {
            return;
        }
        let (shape, rewriter) = (&self.shape, &self.rewriter);
        let arrival = self.cleaner.policy.on_arrival(|idle| rewriter.rest(shape, idle));
        let rewrite = self.rewriter.get_mut();
        rewrite.pace.is_finishing = arrival == Arrival::Finishes;
        if arrival == Arrival::StopsAtOnce {
            rewrite.take_back_chunks(self.shape.chunk_blocks);
        }
    }

    /// Begins every job that has its lock, lets the writes proceed and bands be cleaned, and hears
    /// what the ledger has to say, until nothing can go on.
    pub(super) fn advance(&mut self, ctx: &mut Context<'_>) {
        loop {
            while let Some(job) = self.requests.next_granted() {
                match self.cleaner.holds_requests() {
                    true => self.cleaner.hold_request(job),
                    false => self.begin(job, ctx),
                }
            }
            self.proceed_with_writes(ctx);
            if self.cleaner.is_blocking() {
                self.clean_for_room(ctx);
            }
            self.clean_when_idle(ctx);
            let has_resumed = self.resume_rewrite(ctx);
            let has_heard = self.take_ledger_events(ctx);
            if !self.requests.has_granted() && !has_heard && !has_resumed {
                self.cleaner.tell(self.rewriter.current(), ctx);
                return;
            }
        }
    }

    fn begin(&mut self, job: u32, ctx: &mut Context<'_>) {
        match self.requests.get(job).request.operation {
            Operation::Flush => self.flush_in_turn(job, ctx),
            Operation::Read => self.start_read(job, ctx),
            Operation::Write { .. } => self.writes.queue.push_back(job),
            Operation::Zero { .. } if self.shape.conduct.zero_order == ZeroOrder::BehindWrites => {
                self.writes.queue.push_back(job);
            }
            Operation::Zero { .. } => self.zero_at_once(job, ctx),
            _ => self.zone_command(job, ctx),
        }
    }

    /// Makes the blocks of a job read as zeroes. Moves no data: the map is all that changes.
    pub(super) fn zero_at_once(&mut self, job: u32, ctx: &mut Context<'_>) {
        let extent = self.requests.get(job).request.extent;
        self.blocks.zero(extent);
        self.rewriter.leave_out(&self.shape, extent);
        match self.zones.is_some() {
            true => self.zero_in_zones(extent),
            false => {
                let busy = self.rewriter.band();
                self.blocks.lower_pointers(&self.shape, extent, busy);
                if self.shape.conduct.frees_tails {
                    self.blocks.free_tails(&self.shape, extent, busy);
                    let holds = self.log_holds(ctx);
                    self.blocks.log.free_superseded(holds);
                }
            }
        }
        self.finish(job, ctx);
    }

    /// Zeroes move the write pointer they start at, as a write would.
    fn zero_in_zones(&mut self, extent: Extent) {
        let zones = self.zones.as_mut().expect("a host-aware disk");
        for band in self.shape.bands_of(extent) {
            let whole = self.shape.bands.extent_of(band);
            let start = extent.start.max(whole.start);
            let end = extent.end().min(whole.end()).offset_from(whole.start);
            if zones.moves_pointer(band, start.offset_from(whole.start)) {
                zones.advance(band, end);
                self.blocks.set_pointer(band, end);
            }
        }
    }

    /// Says that nothing more will be issued for a job; answers it when nothing is in flight.
    pub(super) fn all_issued(&mut self, job: u32, ctx: &mut Context<'_>) {
        if self.requests.all_issued(job) {
            self.conclude(job, ctx);
        }
    }

    /// An operation of a job has finished.
    pub(super) fn part_done(
        &mut self,
        job: u32,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        if self.requests.part_done(job, result) {
            self.conclude(job, ctx);
        }
    }

    /// Answers a job of which nothing is in flight any more, now or when the ledger allows it.
    fn conclude(&mut self, job: u32, ctx: &mut Context<'_>) {
        let entry = self.requests.get(job);
        let operation = entry.request.operation;
        let changes = matches!(operation, Operation::Write { .. } | Operation::Zero { .. });
        if !changes || entry.result.is_err() {
            return self.finish(job, ctx);
        }
        if let Some(error) = self.ledger.failure() {
            return self.fail(job, error, ctx);
        }
        let when = match operation.is_durable() && !ctx.is_planted(PlantedBug::FuaAsPlain) {
            true => self.answer_when_flushed(job, ctx),
            false => self.ledger.answer_when_written(job),
        };
        if when == When::Now {
            self.finish(job, ctx);
        }
    }

    /// Answers a job with an error.
    pub(super) fn fail(&mut self, job: u32, error: IoError, ctx: &mut Context<'_>) {
        self.requests.get_mut(job).result = Err(error);
        self.finish(job, ctx);
    }

    /// Answers a job, and lets those go on that waited for its lock.
    pub(super) fn finish(&mut self, job: u32, ctx: &mut Context<'_>) {
        let entry = self.requests.remove(job);
        ctx.release(entry.zeroes);
        if let Some(position) = entry.hold {
            self.reads.release(position);
        }
        if self.cleaner.is_blocking() {
            ctx.count(Counter::ServedInBlocking, 1);
        }
        self.cleaner.end_turn(job, ctx.now());
        self.alarms.request_answered(ctx);
        ctx.finish(entry.request.id, entry.result);
    }
}
