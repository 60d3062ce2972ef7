//! Idle periods as a share of the time, beyond the paper: short ones where a little cleaning is enough.
//!
//! Idler's idle periods end at 2 s, and so does its 99.9th percentile. Of an idle period the drive uses what is left behind
//! its trigger, so a short one wastes more of itself, and holds nobody for long. *Sized* takes the shortest with which the
//! drive can clean as fast as its media cache is filled, and none where the next gap between two requests is long enough for
//! the drive to clean by itself. *Throttle* knows nothing of speeds: the less of the media cache is left, the more of the time the
//! drive gets, in longer periods.

use super::decision::Observed;
use crate::units::Duration;

crate::words! {
    /// How the share follows from what was observed.
    pub enum ShareRule {
        /// From how fast the media cache is filled, and cleaned in idle time.
        Sized = "sized",
        /// From how much of the media cache is left.
        Throttle = "throttle",
    }
}

/// What can be set on it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ShareSettings {
    /// How the share follows.
    pub rule: ShareRule,
    /// Share of the media cache below which the drive is left alone (0.1).
    pub u_low: f64,
    /// The shortest idle period (0.3 s).
    pub l_min: Duration,
    /// The longest (2 s).
    pub l_max: Duration,
    /// Of all time, what the drive is left idle for at most (0.3).
    pub hold_share: f64,
    /// How long the drive waits before it cleans.
    pub trigger: Duration,
}

/// What is known of the idle time that the drive had.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Idled {
    /// Since the last idle period ended, or the start.
    pub since: Duration,
    /// Share of the media cache that the drive cleans in a second, behind its trigger; `None` before it was measured.
    pub cleaned_per_s: Option<f64>,
}

impl ShareSettings {
    /// How long the drive is left idle now: not at all, or `l_min` to `l_max`.
    pub fn decide(&self, observed: &Observed, idled: &Idled) -> Duration {
        if observed.used < self.u_low {
            return Duration::ZERO;
        }
        let (idle, share) = match self.rule {
            // A drive that has such gaps cleans in them.
            ShareRule::Sized if observed.between_arrivals > self.trigger => return Duration::ZERO,
            ShareRule::Sized => self.sized(observed.taken_per_s, idled.cleaned_per_s),
            ShareRule::Throttle => {
                let left = (1.0 - observed.used) / (1.0 - self.u_low).max(f64::MIN_POSITIVE);
                let urge = (1.0 - left).clamp(0.0, 1.0);
                let span = (self.l_max.0 - self.l_min.0) as f64;
                (Duration(self.l_min.0 + (span * urge) as u64), self.hold_share * urge)
            }
        };
        // An idle period is a share of what it and the work before it take together.
        let together = idle.0 as f64 / share.max(f64::MIN_POSITIVE);
        match idled.since.0 as f64 + idle.0 as f64 >= together {
            true => idle,
            false => Duration::ZERO,
        }
    }

    /// The shortest idle period with which the share is at most `hold_share`, and the share.
    fn sized(&self, taken_per_s: f64, cleaned_per_s: Option<f64>) -> (Duration, f64) {
        // The share of the time in which the drive has to clean, with room to catch up.
        const CATCH_UP: f64 = 1.25;
        let needed = match cleaned_per_s.filter(|speed| *speed > 0.0) {
            Some(speed) => CATCH_UP * taken_per_s / speed,
            None => self.hold_share,
        };
        let trigger = self.trigger.0 as f64;
        let shortest = match needed < self.hold_share {
            true => trigger * self.hold_share / (self.hold_share - needed),
            false => self.l_max.0 as f64,
        };
        let idle = Duration(shortest as u64).clamp(self.l_min, self.l_max);
        let useful = (1.0 - trigger / idle.0 as f64).max(0.0);
        (idle, (needed / useful.max(f64::MIN_POSITIVE)).min(self.hold_share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_ms(ms)
    }

    fn settings(rule: ShareRule) -> ShareSettings {
        ShareSettings {
            rule,
            u_low: 0.1,
            l_min: ms(300),
            l_max: ms(2000),
            hold_share: 0.3,
            trigger: ms(250),
        }
    }

    fn observed(used: f64, taken_per_s: f64) -> Observed {
        Observed { used, taken_per_s, between_arrivals: ms(10), ..Observed::default() }
    }

    /// 8 % of the time must be cleaned, 10 % with room to catch up: 250 * 0.3 / 0.2 = 375 ms, of which a third is of use, so 30 % of
    /// the time: 375 ms in 1250 ms.
    #[test]
    fn the_shortest_idle_period_that_is_enough() {
        let sized = settings(ShareRule::Sized);
        let idled = |since| Idled { since: ms(since), cleaned_per_s: Some(1.0) };
        assert_eq!(sized.decide(&observed(0.5, 0.08), &idled(870)), Duration::ZERO);
        assert_eq!(sized.decide(&observed(0.5, 0.08), &idled(880)), ms(375));
        // Little to clean: the shortest, a sixth of which is of use; 1.25 % needed is 7.5 % of the time.
        assert_eq!(sized.decide(&observed(0.5, 0.01), &idled(3600)), Duration::ZERO);
        assert_eq!(sized.decide(&observed(0.5, 0.01), &idled(3800)), ms(300));
        // More than can be: the longest, as often as may be.
        assert_eq!(sized.decide(&observed(0.5, 0.5), &idled(4600)), Duration::ZERO);
        assert_eq!(sized.decide(&observed(0.5, 0.5), &idled(4700)), ms(2000));
        let unknown = Idled { since: ms(4700), cleaned_per_s: None };
        assert_eq!(sized.decide(&observed(0.5, 0.01), &unknown), ms(2000));
        assert_eq!(sized.decide(&observed(0.09, 0.5), &unknown), Duration::ZERO);
        let slow = Observed { between_arrivals: ms(251), ..observed(0.9, 0.5) };
        assert_eq!(sized.decide(&slow, &unknown), Duration::ZERO, "it cleans by itself");
    }

    #[test]
    fn the_fuller_the_more_and_the_longer() {
        let throttle = settings(ShareRule::Throttle);
        let idled = |since| Idled { since: ms(since), cleaned_per_s: None };
        assert_eq!(throttle.decide(&observed(0.1, 1.0), &idled(100_000)), Duration::ZERO);
        // Half way: 1.15 s in 15 % of the time.
        assert_eq!(throttle.decide(&observed(0.55, 1.0), &idled(6500)), Duration::ZERO);
        let half = throttle.decide(&observed(0.55, 1.0), &idled(6600));
        assert!(half.0.abs_diff(ms(1150).0) < 1000, "{half:?}");
        assert_eq!(throttle.decide(&observed(1.0, 1.0), &idled(4700)), ms(2000));
    }
}
