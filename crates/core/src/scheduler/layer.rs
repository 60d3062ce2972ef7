//! Hands requests down one after another.

use super::dispatches::{Dispatch, DispatchLog};
use super::policy::{Choice, Policy, Why};
use super::waiting::{Waiting, put_off_cleaning, ready};
use crate::buffer::BufferSlice;
use crate::command::{CommandId, OnReplacement};
use crate::counters::{Counter, Gauge};
use crate::error::IoError;
use crate::extent::Extent;
use crate::flush_failure::FlushFailure;
use crate::layer::{Context, Issue, Layer, Port};
use crate::map::{ExtentLocks, Slab};
use crate::operation::{Cause, Completion, Operation, Request, RequestId, Tag};
use crate::planted::PlantedBug;
use crate::saved::{Saved, SavedValue};
use crate::units::{Duration, Lba};
use alloc::vec::Vec;

/// What a scheduler does.
#[derive(Clone, Debug, Saved)]
pub struct SchedulerSettings {
    /// Which request goes next.
    pub policy: Policy,
    /// One that has waited for so long, and that no older one blocks, goes before all younger ones.
    #[saved(keep)]
    pub max_wait: Option<Duration>,
    /// Where cleaning goes last: how long a request of it waits at most while others go.
    #[saved(keep)]
    pub clean_wait: Option<Duration>,
    /// Requests that the disk has at a time, flushes apart; at least 1.
    #[saved(keep)]
    pub device_depth: u32,
}

/// A request on its way.
#[derive(Clone, Copy, Debug, SavedValue)]
struct Passed {
    request: RequestId,
    operation: Operation,
    extent: Extent,
    buffer: BufferSlice,
    cause: Cause,
}

/// The queue of a disk on the host's side.
///
/// A flush goes down at once and holds back nobody: it makes durable what was answered before it, and nothing else.
#[derive(Debug, Saved)]
pub struct Scheduler {
    settings: SchedulerSettings,
    passed: Slab<Passed>,
    /// In the order in which they came.
    waiting: Vec<Waiting>,
    /// Who waits for whom: what only reads is shared.
    order: ExtentLocks<u32>,
    /// Requests at the disk, flushes apart.
    in_flight: u32,
    /// Where the last request that went to the disk has ended.
    head: Lba,
    /// The disk tells of a flush that has failed once.
    failure: FlushFailure,
    #[saved(keep)]
    log: DispatchLog,
}

impl Scheduler {
    /// The disk.
    pub const BELOW: Port = Port(0);

    /// Nothing waiting, the head at the first block. What is known of flushes that have failed is shared with the slices
    /// above.
    pub fn new(settings: SchedulerSettings, failure: &FlushFailure) -> Scheduler {
        Scheduler {
            settings,
            passed: Slab::default(),
            waiting: Vec::new(),
            order: ExtentLocks::default(),
            in_flight: 0,
            head: Lba(0),
            failure: failure.clone(),
            log: DispatchLog::default(),
        }
    }

    /// What it hands down, for whoever watches it.
    pub fn dispatches(&self) -> DispatchLog {
        self.log.clone()
    }

    fn issue(&mut self, number: u32, passed: Passed, ctx: &mut Context<'_>) {
        let Passed { operation, extent, buffer, cause, .. } = passed;
        let tag = Tag(u64::from(number));
        ctx.issue(Issue { port: Scheduler::BELOW, operation, extent, buffer, cause, tag });
    }

    /// Hands requests down, as many as the disk may have.
    fn dispatch(&mut self, ctx: &mut Context<'_>) {
        while self.in_flight < self.settings.device_depth
            && let Some(Choice { place, why }) = self.choose(ctx)
        {
            let request = self.waiting.remove(place);
            if why != Why::Age {
                self.settings.policy.dispatched(&request);
            }
            count(place, why, ctx);
            self.head = request.extent.end();
            self.in_flight += 1;
            let passed = self.passed[request.number];
            self.tell(&request, passed.cause, why, ctx);
            self.issue(request.number, passed, ctx);
        }
    }

    /// Tells whoever wants to know of a request that goes to the disk.
    fn tell(&mut self, request: &Waiting, cause: Cause, why: Why, ctx: &mut Context<'_>) {
        let Waiting { arrived, extent, is_read, .. } = *request;
        let dispatched = ctx.now();
        self.log.note(Dispatch { arrived, dispatched, extent, is_read, cause, why });
        ctx.gauge_longest(Gauge::LongestWaitNs, dispatched.since(arrived));
    }

    fn choose(&mut self, ctx: &Context<'_>) -> Option<Choice> {
        let now = ctx.now();
        if let Some(clean_wait) = self.settings.clean_wait {
            // One that has waited for as long as any may is not put off either.
            let wait = self.settings.max_wait.map_or(clean_wait, |most| most.min(clean_wait));
            put_off_cleaning(&mut self.waiting, wait, now);
        }
        // No younger one has waited for longer.
        let oldest = ready(&self.waiting).next();
        if let (Some((place, it)), Some(max_wait)) = (oldest, self.settings.max_wait)
            && now.since(it.arrived) >= max_wait
        {
            return Some(Choice { place, why: Why::Age });
        }
        self.settings.policy.choose(&self.waiting, self.head, now)
    }
}

/// Counts that the request at a place goes next.
fn count(place: usize, why: Why, ctx: &mut Context<'_>) {
    ctx.count(Counter::Dispatched, 1);
    let counts = [
        (Counter::Reordered, place > 0),
        (Counter::ForcedByAge, why == Why::Age),
        (Counter::Sweeps, matches!(why, Why::Wrap | Why::Switch | Why::Quota)),
        (Counter::Switches, matches!(why, Why::Switch | Why::Quota)),
        (Counter::QuotaSwitches, why == Why::Quota),
    ];
    for (counter, is_so) in counts {
        if is_so {
            ctx.count(counter, 1);
        }
    }
}

impl Layer for Scheduler {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        if ctx.is_lost(Scheduler::BELOW) {
            return ctx.finish(request.id, Err(IoError::Lost));
        }
        if let Some(error) = self.failure.of(request.operation) {
            return ctx.finish(request.id, Err(error));
        }
        let Request { id, operation, extent, buffer, cause, .. } = request;
        let passed = Passed { request: id, operation, extent, buffer, cause };
        let number = self.passed.add(passed);
        if operation == Operation::Flush {
            return self.issue(number, passed, ctx);
        }
        let is_read = matches!(operation, Operation::Read | Operation::ZoneReport);
        let is_blocked = match is_read {
            _ if ctx.is_planted(PlantedBug::SchedulerIgnoresOrder) => false,
            true => !self.order.lock_shared(number, extent),
            false => !self.order.lock(number, extent),
        };
        if is_blocked {
            ctx.count(Counter::Conflicts, 1);
        }
        self.waiting.push(Waiting {
            number,
            extent,
            arrived: ctx.now(),
            is_read,
            is_blocked,
            is_cleaning: cause == Cause::Cleaning,
            is_put_off: false,
        });
        self.dispatch(ctx);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        let number = completion.tag.0 as u32;
        let passed = self.passed.take(number);
        let mut result = completion.result;
        if passed.operation == Operation::Flush {
            result = self.failure.flush_ended(result);
        } else {
            self.in_flight -= 1;
            let waiting = &mut self.waiting;
            self.order.unlock(number, |granted| {
                let granted = waiting.iter_mut().find(|it| it.number == granted);
                granted.into_iter().for_each(|it| it.is_blocked = false);
            });
        }
        ctx.finish(passed.request, result);
        self.dispatch(ctx);
    }

    fn lost(&mut self, _port: Port, ctx: &mut Context<'_>) {
        for waiting in self.waiting.drain(..) {
            let passed = self.passed.take(waiting.number);
            ctx.finish(passed.request, Err(IoError::Lost));
        }
        self.order = ExtentLocks::default();
        ctx.lose();
    }

    fn on_replacement(&self) -> OnReplacement {
        OnReplacement::PassesOn
    }

    fn replaced(&mut self, _port: Port, _command: CommandId, _ctx: &mut Context<'_>) {
        self.failure.forget();
    }

    fn saved(&mut self) -> Option<&mut dyn Saved> {
        Some(self)
    }
}
