//! How fast some work goes.

use crate::units::{Duration, Instant};

/// The speed is that of so much time at least, once the work has lasted as long.
const SPAN: Duration = Duration::from_ms(10_000);

/// How far the work had come at two instants, from the older of which its speed is measured.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    older: (Instant, u64),
    newer: (Instant, u64),
}

impl Pace {
    /// Work that begins, or goes on in another way, with so much done.
    pub fn new(now: Instant, done: u64) -> Pace {
        Pace { older: (now, done), newer: (now, done) }
    }

    /// So much is done.
    pub fn note(&mut self, now: Instant, done: u64) {
        if now >= self.newer.0 + SPAN {
            (self.older, self.newer) = (self.newer, (now, done));
        }
    }

    /// How much is done in a second; `None` where no time has passed.
    pub fn per_s(&self, now: Instant, done: u64) -> Option<u64> {
        let ns = now.0.saturating_sub(self.older.0.0);
        let work = u128::from(done.saturating_sub(self.older.1));
        (ns > 0).then(|| (work * 1_000_000_000 / u128::from(ns)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_is_that_of_the_last_seconds() {
        let at = |s: u64| Instant(s * 1_000_000_000);
        let mut pace = Pace::new(at(5), 100);
        assert_eq!(pace.per_s(at(5), 100), None);
        pace.note(at(9), 500);
        assert_eq!(pace.per_s(at(9), 500), Some(100));
        // From the tenth second on it goes at a tenth of that.
        pace.note(at(15), 1100);
        assert_eq!(pace.per_s(at(15), 1100), Some(100));
        pace.note(at(25), 1200);
        assert_eq!(pace.per_s(at(25), 1200), Some(10));
        assert_eq!(pace.per_s(at(30), 1250), Some(10));
        assert_eq!(pace.per_s(at(30), 0), Some(0), "nothing is done twice");
    }
}
