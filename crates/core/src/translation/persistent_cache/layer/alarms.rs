//! What the layer waits for: instants by name, and idle time.

use crate::idle::IdleClock;
use crate::layer::Context;
use crate::saved::Saved;
use crate::timers::Timers;
use crate::units::{Duration, Instant};

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Timer {
    /// The end of the firmware's share of a band rewrite.
    Overhead,
    /// The beginning of idle time.
    Idle,
    /// The end of a slice of cleaning.
    Slice,
    /// The end of a stall of the map's journal.
    Stall,
    /// The end of the firmware's share of the record of a flush.
    Record,
    /// The end of a zone command.
    Zones,
    /// The mark of the last flush.
    Mark,
}

/// How many timers there are.
const TIMERS: usize = Timer::Mark as usize + 1;

/// The timers, and the clock that has one of them.
#[derive(Debug, Saved)]
pub(super) struct Alarms {
    timers: Timers<TIMERS>,
    /// Where something is done in idle time.
    idle: Option<IdleClock>,
}

impl Alarms {
    /// Nothing is waited for; idle time begins so long after the last answer, if it is to be known.
    pub fn new(idle_after: Option<Duration>) -> Alarms {
        let idle = idle_after.map(|after| IdleClock::new(Timer::Idle as usize, after));
        Alarms { timers: Timers::default(), idle }
    }

    /// Waits for an instant, instead of one waited for under the same name before.
    pub fn set(&mut self, timer: Timer, at: Instant, ctx: &mut Context<'_>) {
        self.timers.set(timer as usize, at, ctx);
    }

    /// True when the instant has come; it is not waited for any more then.
    pub fn has_ended(&mut self, timer: Timer, ctx: &Context<'_>) -> bool {
        self.timers.has_ended(timer as usize, ctx)
    }

    /// Asks to be woken for the earliest of what is left.
    pub fn arm(&self, ctx: &mut Context<'_>) {
        self.timers.arm(ctx);
    }

    /// A request has arrived; true when that ends idle time.
    pub fn request_arrived(&mut self) -> bool {
        self.idle.as_mut().is_some_and(IdleClock::request_arrived)
    }

    /// A request has been answered.
    pub fn request_answered(&mut self, ctx: &mut Context<'_>) {
        if let Some(idle) = &mut self.idle {
            idle.request_answered(&mut self.timers, ctx);
        }
    }

    /// True when idle time begins now.
    pub fn idle_begins(&mut self, ctx: &Context<'_>) -> bool {
        let idle = self.idle.as_mut();
        idle.is_some_and(|idle| idle.begins(&mut self.timers, ctx))
    }
}
