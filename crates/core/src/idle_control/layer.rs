//! Holds requests back, so that the drive below has time of its own.

use super::decision::{Decider, Observed, Regime};
use super::ghost::{Ghost, Used};
use super::log::{Decision, DecisionLog, Told};
use super::sample::Sample;
use super::settings::{
    DecisionSettings, IdleControlSettings, IdlePolicy, IdlerPolicy, OnFlush, TakenSpeed,
};
use super::share::{Idled, ShareSettings};
use super::status::{ControlPhase, ControlStatus, PolicyName};
use crate::activity::Activity;
use crate::buffer::BufferSlice;
use crate::command::{Command, CommandError, CommandId, CommandKind, OnReplacement};
use crate::counters::{Counter, Gauge};
use crate::disk::Geometry;
use crate::error::IoError;
use crate::flush_failure::FlushFailure;
use crate::layer::{Context, Issue, Layer, Port};
use crate::lifecycle::Start;
use crate::map::Slab;
use crate::operation::{Cause, Completion, Operation, Request, Tag};
use crate::saved::{Saved, SavedValue};
use crate::timers::Timers;
use crate::units::{Duration, Instant};
use crate::zone::{ZoneId, next_to_report};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::ops::Range;

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Timer {
    /// The end of a time of work, of a policy that has a fixed one.
    Execution,
    /// The end of an idle period.
    Idle,
    /// The instant at which nothing may be held any longer.
    HoldMax,
    /// The next report of zones, or the end of a period without one.
    Report,
}

const TIMERS: usize = Timer::Report as usize + 1;

/// What requests do that arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
enum Phase {
    /// They go down.
    Execution,
    /// They are held, and the drive has some left from before.
    Draining { idle: Duration },
    /// They are held, and the drive has none.
    Idle { since: Instant },
}

/// A request that the drive has.
#[derive(Clone, Copy, Debug, SavedValue)]
enum Passed {
    /// Of the node above.
    Request {
        request: Request,
        arrived: Instant,
        /// It was held, and released last.
        was_held: bool,
        is_sampled: bool,
    },
    /// A report of zones for the controller itself.
    Report { first: ZoneId, end: ZoneId, buffer: BufferSlice },
}

/// By what is decided.
#[derive(Debug, Saved)]
enum Deciding {
    Equations(Decider),
    Share(#[saved(keep)] ShareSettings),
}

impl Deciding {
    fn new(settings: DecisionSettings) -> Deciding {
        match settings {
            DecisionSettings::Equations(settings) => Deciding::Equations(Decider::new(settings)),
            DecisionSettings::Share(settings) => Deciding::Share(settings),
        }
    }

    fn decide(&mut self, observed: &Observed, idled: &Idled) -> (Regime, Duration) {
        match self {
            Deciding::Equations(decider) => decider.decide(observed),
            Deciding::Share(settings) => match settings.decide(observed, idled) {
                Duration::ZERO => (Regime::Low, Duration::ZERO),
                idle => (Regime::Share, idle),
            },
        }
    }
}

/// How an Idler decides.
#[derive(Debug, Saved)]
struct IdlerState {
    #[saved(keep)]
    settings: IdlerPolicy,
    decider: Deciding,
    ghost: Ghost,
    sample: Sample,
    /// L, as it was decided last.
    decided: Option<Duration>,
    /// Held requests that were released last and have not ended: nothing is sampled before they have.
    released: u32,
    period: Period,
    /// What was cleaned in a second of the idle time that the drive had, in the last period in which it had some.
    cleaned_per_idle_s: Option<Used>,
    /// When requests were held last.
    worked_since: Instant,
    /// A period has ended. What the first report finds out was not cleaned in one.
    has_period: bool,
    is_reporting: bool,
    /// A report is due, and waits for the end of an idle period.
    is_report_due: bool,
}

/// The time since the last report.
#[derive(Clone, Copy, Default, Debug, SavedValue)]
struct Period {
    since: Instant,
    /// Of it, the time in which requests were held.
    held: Duration,
    /// The idle time that the drive had, without what it waits before it cleans.
    cleaning: Duration,
    /// Of the period before: the share of time in which the drive worked, and V_c.
    worked_before: f64,
    cleaned_per_s: Used,
}

/// A controller above a drive that cleans in idle time. It knows nothing of the drive but what a host can know.
#[derive(Debug, Saved)]
pub struct IdleControl {
    #[saved(keep)]
    settings: IdleControlSettings,
    #[saved(keep)]
    below: Geometry,
    passed: Slab<Passed>,
    /// Held requests with when they came, in order.
    held: VecDeque<(Request, Instant)>,
    phase: Phase,
    /// It may hold requests. A command changes that, until the layer is built again.
    is_on: bool,
    /// Since when requests are held.
    held_since: Instant,
    timers: Timers<TIMERS>,
    #[saved(each)]
    idler: Option<Box<IdlerState>>,
    /// What is below tells of a flush that has failed once.
    failure: FlushFailure,
    #[saved(keep)]
    log: DecisionLog,
    /// The layer goes down when its own report has come.
    closes: bool,
}

impl IdleControl {
    /// The drive.
    pub const BELOW: Port = Port(0);

    /// A controller over a drive; it offers what the drive does. What is known of flushes that have failed is shared with
    /// whoever else stands there.
    pub fn new(
        settings: IdleControlSettings,
        below: &Geometry,
        failure: &FlushFailure,
    ) -> IdleControl {
        let idler = match &settings.policy {
            IdlePolicy::Idler(policy) => Some(Box::new(IdlerState {
                decider: Deciding::new(policy.decision),
                ghost: Ghost::new(policy.ghost.clone()),
                sample: Sample::new(policy.samples),
                settings: policy.clone(),
                decided: None,
                released: 0,
                period: Period { worked_before: 1.0, ..Period::default() },
                cleaned_per_idle_s: None,
                worked_since: Instant::ZERO,
                has_period: false,
                is_reporting: false,
                is_report_due: false,
            })),
            IdlePolicy::None | IdlePolicy::AtIc { .. } => None,
        };
        IdleControl {
            settings,
            below: below.clone(),
            passed: Slab::default(),
            held: VecDeque::new(),
            phase: Phase::Execution,
            is_on: true,
            held_since: Instant::ZERO,
            timers: Timers::default(),
            idler,
            failure: failure.clone(),
            log: DecisionLog::default(),
            closes: false,
        }
    }

    /// What it decides, for whoever watches it.
    pub fn decisions(&self) -> DecisionLog {
        self.log.clone()
    }

    fn set(&mut self, timer: Timer, after: Duration, ctx: &mut Context<'_>) {
        let at = Instant(ctx.now().0.saturating_add(after.0));
        self.timers.set(timer as usize, at, ctx);
    }

    /// Hands a request down.
    fn pass(&mut self, request: Request, arrived: Instant, was_held: bool, ctx: &mut Context<'_>) {
        let is_sampled = match &mut self.idler {
            Some(idler) => idler.see(&request, ctx.now(), was_held, &self.log),
            None => false,
        };
        let passed = Passed::Request { request, arrived, was_held, is_sampled };
        let tag = Tag(u64::from(self.passed.add(passed)));
        let Request { operation, extent, buffer, cause, .. } = request;
        ctx.issue(Issue { port: IdleControl::BELOW, operation, extent, buffer, cause, tag });
    }

    fn is_holding(&self) -> bool {
        self.phase != Phase::Execution
    }

    /// Requests are held from now on, until the drive was idle for so long.
    fn begin_hold(&mut self, idle: Duration, ctx: &mut Context<'_>) {
        self.held_since = ctx.now();
        self.phase = Phase::Draining { idle };
        ctx.begin_activity(Activity::Hold);
        self.set(Timer::HoldMax, self.settings.hold_max, ctx);
        self.begin_idle_when_drained(ctx);
    }

    fn begin_idle_when_drained(&mut self, ctx: &mut Context<'_>) {
        if let Phase::Draining { idle } = self.phase
            && self.passed.is_empty()
        {
            self.phase = Phase::Idle { since: ctx.now() };
            ctx.count(Counter::Idles, 1);
            self.set(Timer::Idle, idle, ctx);
        }
    }

    /// Waits for the end of the time of work, of a policy that has a fixed one.
    fn begin_execution(&mut self, ctx: &mut Context<'_>) {
        if let IdlePolicy::AtIc { execution, .. } = self.settings.policy
            && self.is_on
        {
            self.set(Timer::Execution, execution, ctx);
        }
    }

    /// Lets requests pass from now on, those that are held too; or holds them again as its policy says. The books go on.
    fn switch(&mut self, is_on: bool, ctx: &mut Context<'_>) {
        if core::mem::replace(&mut self.is_on, is_on) == is_on {
            return;
        }
        match is_on {
            true => self.begin_execution(ctx),
            false => self.timers.clear(Timer::Execution as usize, ctx),
        }
        if self.is_holding() {
            self.end_hold(ctx);
        }
    }

    /// What was held goes down, in order, and what comes now passes.
    fn end_hold(&mut self, ctx: &mut Context<'_>) {
        let now = ctx.now();
        if let Phase::Idle { since } = self.phase {
            let idle = now.since(since);
            ctx.count(Counter::IdleNs, idle.0);
            if let Some(idler) = &mut self.idler {
                idler.ghost.idled(idle);
                let trigger = idler.settings.ghost.trigger;
                idler.period.cleaning += Duration(idle.0.saturating_sub(trigger.0));
                idler.tell_ghost(now, &self.log);
            }
        }
        self.phase = Phase::Execution;
        ctx.end_activity(Activity::Hold);
        self.timers.clear(Timer::Idle as usize, ctx);
        self.timers.clear(Timer::HoldMax as usize, ctx);
        self.begin_execution(ctx);
        if let Some(idler) = &mut self.idler {
            let held = now.since(self.held_since.max(idler.period.since));
            idler.period.held += held;
            idler.worked_since = now;
            idler.released = self.held.len() as u32;
            idler.sample = Sample::new(idler.settings.samples);
        }
        while let Some((request, arrived)) = self.held.pop_front() {
            ctx.gauge_longest(Gauge::HoldMaxNs, now.since(arrived));
            self.pass(request, arrived, true, ctx);
        }
        ctx.gauge(Gauge::Held, 0);
        self.report_when_due(ctx);
    }

    /// Asks the drive for its zones, or ends a period without that, unless the drive is left idle.
    fn report_when_due(&mut self, ctx: &mut Context<'_>) {
        let is_holding = self.is_holding();
        let Some(idler) = self.idler.as_mut().filter(|it| it.is_report_due) else {
            return;
        };
        if is_holding || idler.is_reporting || ctx.host_is_done() {
            return;
        }
        idler.is_report_due = false;
        if !idler.settings.ghost.has_reports {
            return self.end_of_report(ctx);
        }
        let Range { start, end } = idler.ghost.to_report();
        if self.ask_for_zones(ZoneId(start)..ZoneId(end), ctx) {
            idler_of(&mut self.idler).is_reporting = true;
        } else {
            self.end_of_report(ctx);
        }
    }

    /// Asks the drive for zones, as many as it reports at once; false when there are none.
    fn ask_for_zones(&mut self, asked: Range<ZoneId>, ctx: &mut Context<'_>) -> bool {
        let zones = self.below.zones.as_ref().expect("a drive that reports zones has some");
        let Some(extent) = zones.report_extent(asked.start, asked.end) else {
            return false;
        };
        let buffer = ctx.allocate(extent.blocks);
        let (first, end) = (asked.start, asked.end);
        let tag = Tag(u64::from(self.passed.add(Passed::Report { first, end, buffer })));
        ctx.issue(Issue {
            port: IdleControl::BELOW,
            operation: Operation::ZoneReport,
            extent,
            buffer,
            cause: Cause::Metadata,
            tag,
        });
        true
    }

    fn reported(
        &mut self,
        (first, end, buffer): (ZoneId, ZoneId, BufferSlice),
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let idler = idler_of(&mut self.idler);
        let next = match (result, ctx.metadata(buffer)) {
            (Ok(()), Some(report)) => {
                idler.ghost.report(report);
                idler.tell_ghost(ctx.now(), &self.log);
                next_to_report(report, first)
            }
            _ => {
                ctx.count(Counter::ZoneReportsFailed, 1);
                None
            }
        };
        ctx.release(buffer);
        match next {
            Some(next) if self.ask_for_zones(next..end, ctx) => return,
            Some(_) => idler_of(&mut self.idler).ghost.report_ended(),
            None => {}
        }
        self.end_of_report(ctx);
        if self.closes && self.passed.is_empty() {
            ctx.closed(Ok(()));
        }
    }

    /// A period has ended, with a report or without.
    fn end_of_report(&mut self, ctx: &mut Context<'_>) {
        let idler = idler_of(&mut self.idler);
        idler.is_reporting = false;
        idler.end_period(&self.log, ctx);
        let every = idler.settings.report_every;
        self.set(Timer::Report, every, ctx);
    }

    /// When the sample is complete, decides what comes next.
    fn decide_when_sampled(&mut self, ctx: &mut Context<'_>) {
        let is_holding = self.is_holding();
        let Some(idler) = self.idler.as_mut().filter(|it| it.sample.is_complete()) else {
            return;
        };
        if is_holding || ctx.host_is_done() {
            return;
        }
        if !self.is_on {
            idler.sample = Sample::new(idler.settings.samples);
            return;
        }
        let observed = idler.observe();
        let idled = idler.idled(ctx.now());
        let (regime, idle) = idler.decider.decide(&observed, &idled);
        idler.decided = Some(idle);
        idler.sample = Sample::new(idler.settings.samples);
        let decision = Decision { at: ctx.now(), observed, regime, idle };
        self.log.tell(Told::Decision(decision));
        ctx.count(Counter::Decisions, 1);
        match regime {
            Regime::Low | Regime::Share => {}
            Regime::Mid => ctx.count(Counter::DecisionsMid, 1),
            Regime::High => ctx.count(Counter::DecisionsHigh, 1),
        }
        if idle > Duration::ZERO {
            self.begin_hold(idle, ctx);
        }
    }
}

/// The state of a policy that asks for reports.
fn idler_of(idler: &mut Option<Box<IdlerState>>) -> &mut IdlerState {
    idler.as_mut().expect("who has asked for a report")
}

impl IdlerState {
    /// Sees a request that goes down; true when it is one of the sample.
    fn see(&mut self, request: &Request, now: Instant, was_held: bool, log: &DecisionLog) -> bool {
        let taken = match request.operation {
            Operation::Write { .. } => {
                let taken = self.ghost.write(request.extent);
                self.tell_ghost(now, log);
                taken
            }
            Operation::Read => Used::default(),
            Operation::ZoneReset => {
                self.ghost.reset(request.extent);
                self.tell_ghost(now, log);
                return false;
            }
            _ => return false,
        };
        !was_held && self.released == 0 && self.sample.take(now, taken)
    }

    fn tell_ghost(&mut self, at: Instant, log: &DecisionLog) {
        for event in self.ghost.take_events() {
            log.tell(Told::Ghost { at, event });
        }
    }

    /// A period between two reports ends.
    fn end_period(&mut self, log: &DecisionLog, ctx: &mut Context<'_>) {
        let now = ctx.now();
        let length = now.since(self.period.since);
        let mut freed = self.ghost.take_freed();
        if !core::mem::replace(&mut self.has_period, true) && self.ghost.has_reports() {
            freed = Used::default();
        }
        self.tell_ghost(now, log);
        if length > Duration::ZERO {
            let held = self.period.held.min(length);
            let per_s = |share: f64| share * 1e9 / length.0 as f64;
            let cleaning = self.period.cleaning.0 as f64 / 1e9;
            if cleaning > 0.0 && freed.blocks + freed.entries > 0.0 {
                let Used { blocks, entries } = freed;
                self.cleaned_per_idle_s =
                    Some(Used { blocks: blocks / cleaning, entries: entries / cleaning });
            }
            self.period = Period {
                since: now,
                held: Duration::ZERO,
                cleaning: Duration::ZERO,
                worked_before: 1.0 - held.0 as f64 / length.0 as f64,
                cleaned_per_s: Used { blocks: per_s(freed.blocks), entries: per_s(freed.entries) },
            };
        }
        let used = self.ghost.used().most();
        ctx.gauge(Gauge::GhostUsed, (used * 1e6) as u64);
        ctx.count(Counter::ReportPeriods, 1);
        log.tell(Told::Period { at: now, used });
    }

    /// What is known of the idle time that the drive had.
    fn idled(&self, now: Instant) -> Idled {
        let used = self.ghost.used();
        let cleaned = self.cleaned_per_idle_s;
        Idled {
            since: now.since(self.worked_since),
            cleaned_per_s: cleaned.map(|cleaned| cleaned.of_the_scarcer(used)),
        }
    }

    /// What the next decision is made of.
    fn observe(&self) -> Observed {
        let used = self.ghost.used();
        let worked = match self.settings.taken_speed {
            TakenSpeed::OfAllTime => self.period.worked_before,
            TakenSpeed::Raw => 1.0,
        };
        Observed {
            used: used.most(),
            between_arrivals: self.sample.between_arrivals(),
            latency: self.sample.latency(),
            taken_per_s: self.sample.taken_per_s(used) * worked,
            cleaned_per_s: self.period.cleaned_per_s.of_the_scarcer(used),
        }
    }
}

impl Layer for IdleControl {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        if ctx.is_lost(IdleControl::BELOW) {
            return ctx.finish(request.id, Err(IoError::Lost));
        }
        if let Some(error) = self.failure.of(request.operation) {
            return ctx.finish(request.id, Err(error));
        }
        let ends_hold =
            request.operation == Operation::Flush && self.settings.on_flush == OnFlush::EndIdle;
        if self.is_holding() {
            ctx.count(Counter::HeldRequests, 1);
            self.held.push_back((request, ctx.now()));
            ctx.gauge(Gauge::Held, self.held.len() as u64);
            if ends_hold {
                self.end_hold(ctx);
            }
            return;
        }
        self.pass(request, ctx.now(), false, ctx);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        match self.passed.take(completion.tag.0 as u32) {
            Passed::Report { first, end, buffer } => {
                self.reported((first, end, buffer), completion.result, ctx);
            }
            Passed::Request { request, arrived, was_held, is_sampled } => {
                if let Some(idler) = &mut self.idler {
                    idler.released -= u32::from(was_held && idler.released > 0);
                    if is_sampled {
                        idler.sample.end(ctx.now().since(arrived));
                    }
                }
                let result = match request.operation {
                    Operation::Flush => self.failure.flush_ended(completion.result),
                    _ => completion.result,
                };
                ctx.finish(request.id, result);
                self.decide_when_sampled(ctx);
            }
        }
        self.begin_idle_when_drained(ctx);
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        if self.timers.has_ended(Timer::Report as usize, ctx)
            && let Some(idler) = &mut self.idler
        {
            idler.is_report_due = true;
            self.report_when_due(ctx);
        }
        let is_over = self.timers.has_ended(Timer::Idle as usize, ctx);
        let is_too_long = self.timers.has_ended(Timer::HoldMax as usize, ctx);
        if (is_over || is_too_long) && self.is_holding() {
            self.end_hold(ctx);
        }
        if self.timers.has_ended(Timer::Execution as usize, ctx)
            && let IdlePolicy::AtIc { idle, .. } = self.settings.policy
            && !ctx.host_is_done()
        {
            self.begin_hold(idle, ctx);
        }
        self.timers.arm(ctx);
    }

    fn lost(&mut self, _port: Port, ctx: &mut Context<'_>) {
        for (request, _) in self.held.drain(..) {
            ctx.finish(request.id, Err(IoError::Lost));
        }
        if core::mem::replace(&mut self.phase, Phase::Execution) != Phase::Execution {
            ctx.end_activity(Activity::Hold);
        }
        ctx.gauge(Gauge::Held, 0);
        ctx.lose();
    }

    fn on_replacement(&self) -> OnReplacement {
        OnReplacement::PassesOn
    }

    fn replaced(&mut self, _port: Port, _command: CommandId, _ctx: &mut Context<'_>) {
        self.failure.forget();
        // A new drive is not the one that the books are of.
        if let Some(idler) = &mut self.idler {
            idler.ghost = Ghost::new(idler.settings.ghost.clone());
        }
    }

    fn takes(&self, kind: CommandKind) -> bool {
        matches!(kind, CommandKind::Switch { .. })
    }

    fn command(&mut self, command: Command, ctx: &mut Context<'_>) {
        let result = match (command.kind, &self.settings.policy) {
            (CommandKind::Switch { .. }, IdlePolicy::None) => {
                let words = "the controller has policy = \"none\" and holds nothing, so there is nothing to switch; \
                             accepted: a controller with another policy";
                Err(CommandError::NotNow(words.into()))
            }
            (CommandKind::Switch { is_on }, _) => {
                self.switch(is_on, ctx);
                Ok(())
            }
            _ => Err(CommandError::NotTaken),
        };
        ctx.answer_command(command.id, result);
    }

    fn controller(&self) -> Option<ControlStatus> {
        let idler = self.idler.as_deref();
        let policy = self.settings.policy.name();
        Some(ControlStatus {
            policy,
            is_on: self.is_on && policy != PolicyName::None,
            phase: match self.phase {
                Phase::Execution => ControlPhase::Execution,
                Phase::Draining { .. } => ControlPhase::Draining,
                Phase::Idle { .. } => ControlPhase::Idle,
            },
            used: idler.map(|idler| idler.ghost.used().most()),
            idle: match &self.settings.policy {
                IdlePolicy::AtIc { idle, .. } => Some(*idle),
                IdlePolicy::None | IdlePolicy::Idler(_) => idler.and_then(|it| it.decided),
            },
            held: self.held.len() as u32,
        })
    }

    fn open(&mut self, _start: Start, ctx: &mut Context<'_>) {
        self.begin_execution(ctx);
        if self.idler.is_some() {
            // The first report is the first that the drive is asked for.
            self.set(Timer::Report, Duration::ZERO, ctx);
        }
        ctx.opened(ctx.nothing_lost());
    }

    fn close(&mut self, ctx: &mut Context<'_>) {
        match self.passed.is_empty() {
            true => ctx.closed(Ok(())),
            false => self.closes = true,
        }
    }

    fn status(&self, facts: &mut alloc::vec::Vec<(&'static str, u64)>) {
        facts.push(("holding", u64::from(self.is_holding())));
        facts.push(("held", self.held.len() as u64));
        if let Some(idler) = &self.idler {
            let used = idler.ghost.used().most();
            facts.push(("media_cache_used_permille", (used * 1000.0) as u64));
        }
    }

    fn saved(&mut self) -> Option<&mut dyn Saved> {
        Some(self)
    }
}
