//! The part of a run that is measured.

use imbrex_core::units::Instant;

/// The part of a run that figures are of: all of it, or what comes behind a warm-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measured {
    /// When it begins. Times in a report count from here.
    pub from: Instant,
    /// When it ends.
    pub until: Instant,
}

impl Measured {
    /// A run that is measured from its start.
    pub fn all(until: Instant) -> Measured {
        Measured { from: Instant::ZERO, until }
    }

    /// An instant as reports give it, in seconds.
    pub fn seconds(&self, at: Instant) -> f64 {
        self.nanoseconds(at) as f64 / 1e9
    }

    /// An instant as reports give it, in nanoseconds.
    pub fn nanoseconds(&self, at: Instant) -> u64 {
        at.since(self.from).0
    }

    /// How long it lasts.
    pub fn length(&self) -> Instant {
        Instant(self.nanoseconds(self.until))
    }
}
