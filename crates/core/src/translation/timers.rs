//! The instants a persistent cache waits for: the one alarm a layer has serves all of them.

use super::persistent_cache::PersistentCache;
use crate::layer::Context;
use crate::units::Instant;

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

/// When each timer ends.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Timers([Option<Instant>; TIMERS]);

impl PersistentCache {
    /// Asks to be woken at `at` for `timer`, instead of at an instant set for it before.
    pub(super) fn set_timer(&mut self, timer: Timer, at: Instant, ctx: &mut Context<'_>) {
        self.timers.0[timer as usize] = Some(at);
        self.set_alarm(ctx);
    }

    /// True when the instant set for `timer` has come; it is not set any more then.
    pub(super) fn timer_has_ended(&mut self, timer: Timer, ctx: &Context<'_>) -> bool {
        let timer = &mut self.timers.0[timer as usize];
        let has_ended = timer.is_some_and(|at| at <= ctx.now());
        if has_ended {
            *timer = None;
        }
        has_ended
    }

    /// Asks to be woken at the earliest instant that is waited for.
    pub(super) fn set_alarm(&mut self, ctx: &mut Context<'_>) {
        match self.timers.0.iter().flatten().min() {
            Some(&at) => ctx.wake_at(at),
            None => ctx.cancel_wake(),
        }
    }
}
