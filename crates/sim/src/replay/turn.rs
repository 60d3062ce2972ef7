//! When the requests of an untimed replay come.

use imbrex_core::units::Instant;

/// Requests of an untimed replay at one instant at most: the engine takes so many rounds at one instant for
/// a loop that is stuck.
const REQUESTS_PER_INSTANT: u32 = 4096;

/// The instant of an untimed replay, and how many requests have come at it.
#[derive(Clone, Copy, Default)]
pub(super) struct Turn {
    at: Instant,
    requests: u32,
}

impl Turn {
    /// When the next request may come.
    pub fn next(self) -> Instant {
        match self.requests < REQUESTS_PER_INSTANT {
            true => self.at,
            false => Instant(self.at.0 + 1),
        }
    }

    /// Whether a request may come now; it is counted if so.
    pub fn take(&mut self, now: Instant) -> bool {
        if now > self.at {
            *self = Turn { at: now, requests: 0 };
        }
        let may = self.requests < REQUESTS_PER_INSTANT;
        self.requests += u32::from(may);
        may
    }
}
