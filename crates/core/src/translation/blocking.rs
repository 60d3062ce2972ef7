//! Cleaning for want of room: how long it goes on once it has begun, and which requests are served
//! meanwhile.
//!
//! Without a slice a request is served as soon as it can be. With one the drive alternates: it
//! cleans for at most a slice between two requests that can be served, one at a time, and those
//! that arrive meanwhile wait (Idler, IEEE TC 2020: up to 2 s per request, writes longer than
//! reads). A write without room is overtaken by requests that need none.

use super::persistent_cache::PersistentCache;
use super::rewrite::Reason;
use super::settings::UpdateMethod;
use super::timers::Timer;
use crate::layer::Context;
use crate::operation::Operation;
use crate::units::{Duration, Instant};
use alloc::collections::VecDeque;

/// A clean for want of room that is going on.
#[derive(Debug, Default)]
pub(super) struct Blocking {
    is_on: bool,
    /// Requests that wait for the end of a slice, in the order of arrival.
    held: VecDeque<u32>,
    /// The request that is being served between two slices.
    serving: Option<u32>,
    /// Since when nothing but cleaning has been done.
    since: Instant,
}

impl Blocking {
    /// True while a request is being served and cleaning stands still.
    pub fn is_serving(&self) -> bool {
        self.serving.is_some()
    }
}

impl PersistentCache {
    /// A write has no room.
    pub(super) fn begin_blocking(&mut self, ctx: &Context<'_>) {
        if !self.blocking.is_on {
            self.blocking.is_on = true;
            self.blocking.since = ctx.now();
        }
    }

    /// The longest cleaning between two requests, while there is such a limit.
    fn slice(&self) -> Option<Duration> {
        self.settings.blocking.slice.filter(|_| self.blocking.is_on)
    }

    /// True when a request that has just been granted must wait for its turn.
    pub(super) fn holds_requests(&self) -> bool {
        self.slice().is_some()
    }

    /// Puts a request behind those that wait for their turn.
    pub(super) fn hold_request(&mut self, job: u32) {
        self.blocking.held.push_back(job);
    }

    /// True when a request may be served now.
    pub(super) fn is_turn(&self, ctx: &Context<'_>) -> bool {
        let is_over = |slice| self.blocking.since + slice <= ctx.now();
        self.slice()
            .is_none_or(|slice| !self.blocking.is_serving() && is_over(slice))
    }

    /// A request that waited for its turn has been sent off.
    pub(super) fn take_turn(&mut self, job: u32) {
        if self.slice().is_some() {
            self.blocking.serving = Some(job);
        }
    }

    /// The request has been answered, or waits for the rewrite itself.
    pub(super) fn end_turn(&mut self, job: u32, ctx: &Context<'_>) {
        if self.blocking.serving == Some(job) {
            self.blocking.serving = None;
            self.blocking.since = ctx.now();
        }
    }

    /// Begins the next band when both resources are not yet free enough, and serves a request when
    /// it is its turn.
    pub(super) fn go_on_blocking(&mut self, ctx: &mut Context<'_>) {
        if self.rewrite.is_none() {
            // Without a share to reach one band is enough, and slots are freed as they are needed.
            if self.settings.blocking.low_permille >= 1000 || ctx.is_read_only() {
                return self.end_blocking();
            }
            let holds = self.holds_now(ctx);
            self.log.free_superseded(holds);
            self.gauge_use(ctx);
            let has_failed = self
                .durable
                .as_ref()
                .is_some_and(|it| it.failure().is_some());
            if !has_failed && !self.may_begin_another() {
                return;
            }
            let oldest = match !has_failed && self.is_above_low() {
                true => self.log.oldest_live(),
                false => None,
            };
            match oldest {
                Some(lba) => {
                    self.start_rewrite(self.bands.band_of(lba), Reason::Share, ctx);
                    self.begin_rewrite_when_drained(ctx);
                }
                None => return self.end_blocking(),
            }
        }
        if let Some(slice) = self.slice() {
            self.serve_held(ctx);
            let waits = !self.blocking.held.is_empty() || !self.queue.is_empty();
            if waits && !self.blocking.is_serving() {
                let end = self.blocking.since + slice;
                if end > ctx.now() {
                    self.set_timer(Timer::Slice, end, ctx);
                }
            }
        }
    }

    /// True while cleaning for want of room goes on.
    pub(super) fn is_blocking(&self) -> bool {
        self.blocking.is_on
    }

    /// Cleaning has come to its end: what waited for its turn goes on as usual.
    pub(super) fn end_blocking(&mut self) {
        self.blocking.is_on = false;
        self.blocking.serving = None;
        self.granted.append(&mut self.blocking.held);
    }

    /// True when more of the slots or of the entries are in use than cleaning leaves.
    fn is_above_low(&self) -> bool {
        let low = u128::from(self.settings.blocking.low_permille);
        let is_above = |used: u64, of: u64| u128::from(used) * 1000 > u128::from(of) * low;
        let entries_max = self.settings.entries_max;
        is_above(self.log.used(), self.settings.log_blocks.0)
            || entries_max.is_some_and(|max| is_above(self.log.map().entries(), max))
    }

    /// Serves the first request that can be, if it is the turn of one.
    fn serve_held(&mut self, ctx: &mut Context<'_>) {
        let mut writes_wait = !self.queue.is_empty();
        let mut at = 0;
        while at < self.blocking.held.len() && self.is_turn(ctx) {
            let job = self.blocking.held[at];
            let can_be_tried = match self.jobs[job as usize].request.operation {
                Operation::Read => true,
                operation if operation.is_zone_command() => true,
                // It answers for every write before it.
                Operation::Flush => !writes_wait,
                Operation::Zero { .. } if self.durable.is_none() => true,
                _ => !writes_wait || self.needs_no_room(job),
            };
            if !can_be_tried {
                writes_wait = true;
                at += 1;
                continue;
            }
            self.blocking.held.remove(at);
            let operation = self.jobs[job as usize].request.operation;
            match operation {
                Operation::Read => {
                    self.take_turn(job);
                    self.start_read(job, ctx);
                }
                Operation::Flush => {
                    self.take_turn(job);
                    self.flush(job, ctx);
                }
                Operation::Zero { .. } if self.durable.is_none() => {
                    self.take_turn(job);
                    self.zero(job, ctx);
                }
                operation if operation.is_zone_command() => {
                    self.take_turn(job);
                    self.zone_command(job, ctx);
                }
                _ if self.proceed_with(job, ctx) => {
                    self.take_turn(job);
                    self.all_issued(job, ctx);
                }
                _ => {
                    self.queue.push_back(job);
                    writes_wait = true;
                }
            }
        }
    }

    /// True when a write takes no new slot: its zone takes all of it home, or it is in the log and
    /// updated there.
    fn needs_no_room(&self, job: u32) -> bool {
        let request = self.jobs[job as usize].request;
        if matches!(request.operation, Operation::Write { .. }) && self.goes_home(request.extent) {
            return true;
        }
        let mapped = self.log.map().pieces(request.extent);
        self.settings.update == UpdateMethod::InPlace
            && matches!(request.operation, Operation::Write { .. })
            && mapped.map(|piece| piece.extent.blocks.0).sum::<u64>() == request.extent.blocks.0
    }
}
