//! Virtual time, and the wiring that runs a stack in it.

use imbrex_core::engine::Clock;
use imbrex_core::units::Instant;

/// Jumps to whatever happens next.
#[derive(Debug, Default)]
pub struct VirtualClock {
    now: Instant,
}

impl VirtualClock {
    /// The time it has jumped to.
    pub fn now(&self) -> Instant {
        self.now
    }
}

impl Clock for VirtualClock {
    fn wait(&mut self, until: Option<Instant>) -> Instant {
        // In virtual time nothing happens outside, so a stack that waits for nothing is a bug.
        let until = until.expect("the stack waits for something that will never happen");
        self.now = self.now.max(until);
        self.now
    }
}
