//! The instants a layer waits for: the one alarm that a layer has serves all of them.

use crate::layer::Context;
use crate::saved::SavedValue;
use crate::units::Instant;

/// When each of `N` timers ends. A layer names them by small numbers, those of an enum of its own.
#[derive(Clone, Copy, Debug, SavedValue)]
pub struct Timers<const N: usize>([Option<Instant>; N]);

impl<const N: usize> Default for Timers<N> {
    fn default() -> Timers<N> {
        Timers([None; N])
    }
}

impl<const N: usize> Timers<N> {
    /// Asks to be woken at `at` for `timer`, instead of at an instant set for it before.
    pub fn set(&mut self, timer: usize, at: Instant, ctx: &mut Context<'_>) {
        self.0[timer] = Some(at);
        self.arm(ctx);
    }

    /// Waits no longer for `timer`.
    pub fn clear(&mut self, timer: usize, ctx: &mut Context<'_>) {
        self.0[timer] = None;
        self.arm(ctx);
    }

    /// True when the instant set for `timer` has come; it is not set any more then.
    pub fn has_ended(&mut self, timer: usize, ctx: &Context<'_>) -> bool {
        self.0[timer].take_if(|at| *at <= ctx.now()).is_some()
    }

    /// Asks to be woken at the earliest instant that is waited for. To be called at the end of
    /// [`Layer::wake`](crate::layer::Layer::wake).
    pub fn arm(&self, ctx: &mut Context<'_>) {
        match self.0.iter().flatten().min() {
            Some(&at) => ctx.wake_at(at),
            None => ctx.cancel_wake(),
        }
    }
}
