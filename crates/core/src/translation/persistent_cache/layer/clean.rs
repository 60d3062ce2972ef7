//! When bands are cleaned, and who is served meanwhile: what the [cleaner](super::super::cleaner)
//! decides, done.

use super::{PersistentCache, Timer};
use crate::counters::Counter;
use crate::layer::Context;
use crate::map::BandId;
use crate::operation::Operation;
use crate::translation::persistent_cache::conduct::ZeroOrder;
use crate::translation::persistent_cache::rewrite::Reason;
use crate::translation::persistent_cache::settings::UpdateMethod;

impl PersistentCache {
    /// True when a rewrite, where there is one, may do its next step.
    pub(super) fn may_continue(&self, ctx: &Context<'_>) -> bool {
        self.cleaner.may_continue(self.rewriter.current(), ctx.host_is_done())
    }

    /// Begins to rewrite the next band if there is time for it.
    pub(super) fn clean_when_idle(&mut self, ctx: &mut Context<'_>) {
        if !self.cleaner.is_idle_time() || ctx.host_is_done() || ctx.is_read_only() {
            return;
        }
        if !self.may_begin_another() {
            return;
        }
        while self.rewriter.current().is_none() {
            let Some(band) = self.idle_victim(ctx) else {
                return;
            };
            self.start_rewrite(band, Reason::Idle, ctx);
            self.begin_rewrite_when_drained(ctx);
        }
    }

    /// True when the ledger has room for the records of a rewrite that no write waits for.
    fn may_begin_another(&self) -> bool {
        self.ledger.is_running() && !self.ledger_holds_writes()
    }

    /// The band to be cleaned next; none when the log holds nothing.
    fn idle_victim(&mut self, ctx: &mut Context<'_>) -> Option<BandId> {
        if let Some(salvage) = self.blocks.salvage {
            return Some(salvage.band);
        }
        let holds = self.log_holds(ctx);
        let (log, shape, zones) = (&mut self.blocks.log, &self.shape, self.zones.as_ref());
        let end_of = |band| match zones {
            Some(zones) => zones.written_end(band),
            None => shape.bands.extent_of(band).blocks.0,
        };
        let victim = self.cleaner.policy.idle_victim(log, holds, shape, end_of);
        self.gauge_use(ctx);
        victim
    }

    /// Begins the next band when both resources are not yet free enough, and serves a request when
    /// it is its turn.
    pub(super) fn clean_for_room(&mut self, ctx: &mut Context<'_>) {
        if self.rewriter.current().is_none() {
            // Without a share to reach one band is enough, and slots are freed as they are needed.
            if !self.cleaner.policy.cleans_beyond_need() || ctx.is_read_only() {
                return self.end_blocking(ctx);
            }
            let holds = self.log_holds(ctx);
            self.blocks.log.free_superseded(holds);
            self.gauge_use(ctx);
            if self.ledger.failure().is_some() {
                return self.end_blocking(ctx);
            }
            if !self.may_begin_another() {
                return;
            }
            let log = &mut self.blocks.log;
            let Some(band) = self.cleaner.policy.victim_for_room(log, &self.shape) else {
                return self.end_blocking(ctx);
            };
            self.start_rewrite(band, Reason::Share, ctx);
            self.begin_rewrite_when_drained(ctx);
        }
        if self.cleaner.holds_requests() {
            self.serve_held(ctx);
            let writes_wait = !self.writes.queue.is_empty();
            if let Some(end) = self.cleaner.end_of_slice(writes_wait, ctx.now()) {
                self.alarms.set(Timer::Slice, end, ctx);
            }
        }
    }

    /// Cleaning has come to its end: what waited for its turn goes on as usual.
    pub(super) fn end_blocking(&mut self, ctx: &mut Context<'_>) {
        if let Some(blocked) = self.cleaner.blocked_for(ctx.now()) {
            ctx.count(Counter::BlockingNs, blocked.0);
        }
        self.requests.grant_again(self.cleaner.end_blocking());
    }

    /// Serves the first request that can be, if it is the turn of one.
    fn serve_held(&mut self, ctx: &mut Context<'_>) {
        let mut writes_wait = !self.writes.queue.is_empty();
        let mut at = 0;
        while self.cleaner.is_turn(ctx.now()) {
            let Some(job) = self.cleaner.held(at) else {
                return;
            };
            if !self.can_be_tried(job, writes_wait) {
                writes_wait = true;
                at += 1;
                continue;
            }
            self.cleaner.remove_held(at);
            writes_wait |= !self.try_to_serve(job, ctx);
        }
    }

    /// True when a request that waits for its turn may be tried.
    fn can_be_tried(&self, job: u32, writes_wait: bool) -> bool {
        match self.requests.get(job).request.operation {
            Operation::Read => true,
            operation if operation.is_zone_command() => true,
            // It answers for every write before it.
            Operation::Flush => !writes_wait,
            Operation::Zero { .. } if self.zeroes_at_once() => true,
            _ => !writes_wait || self.needs_no_room(job),
        }
    }

    fn zeroes_at_once(&self) -> bool {
        self.shape.conduct.zero_order == ZeroOrder::AtOnce
    }

    /// Serves a request whose turn it is; false when it is a write without room, which waits then.
    fn try_to_serve(&mut self, job: u32, ctx: &mut Context<'_>) -> bool {
        let operation = self.requests.get(job).request.operation;
        match operation {
            Operation::Read => {
                self.cleaner.take_turn(job);
                self.start_read(job, ctx);
            }
            Operation::Flush => {
                self.cleaner.take_turn(job);
                self.flush(job, ctx);
            }
            Operation::Zero { .. } if self.zeroes_at_once() => {
                self.cleaner.take_turn(job);
                self.zero_at_once(job, ctx);
            }
            operation if operation.is_zone_command() => {
                self.cleaner.take_turn(job);
                self.zone_command(job, ctx);
            }
            _ if self.proceed_with(job, ctx) => {
                self.cleaner.take_turn(job);
                self.all_issued(job, ctx);
            }
            _ => {
                self.writes.queue.push_back(job);
                return false;
            }
        }
        true
    }

    /// True when a write takes no new slot: it is in place, its zone takes all of it home, or it is in the log and
    /// updated there.
    fn needs_no_room(&self, job: u32) -> bool {
        let request = self.requests.get(job).request;
        if !matches!(request.operation, Operation::Write { .. }) {
            return false;
        }
        if request.extent.end() <= self.shape.in_place_end {
            return true;
        }
        let (band, offset) = self.shape.band_and_offset(request.extent.start);
        let is_in_one_band = self.shape.bands.extent_of(band).covers(request.extent);
        let zones = self.zones.as_ref();
        if is_in_one_band && zones.is_some_and(|zones| zones.takes_home(band, offset)) {
            return true;
        }
        let mapped = self.blocks.log.map().pieces(request.extent);
        self.shape.settings.update == UpdateMethod::InPlace
            && mapped.map(|piece| piece.extent.blocks.0).sum::<u64>() == request.extent.blocks.0
    }
}
