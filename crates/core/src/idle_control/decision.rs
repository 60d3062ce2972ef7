//! How long the drive is left idle next: equations 1 and 2 of Idler (IEEE TC 2020).

use crate::saved::Saved;
use crate::units::Duration;

/// What an Idler can be set to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IdlerSettings {
    /// Share of the media cache below which the drive is left alone (0.1).
    pub u_low: f64,
    /// Share above which it must be cleaned (0.8).
    pub u_high: f64,
    /// The shortest idle period, which triggers a clean (0.3 s).
    pub l_min: Duration,
    /// The longest (2 s).
    pub l_max: Duration,
    /// By how much one is longer or shorter than the one before (0.1 s).
    pub l_step: Duration,
}

impl Default for IdlerSettings {
    fn default() -> IdlerSettings {
        IdlerSettings {
            u_low: 0.1,
            u_high: 0.8,
            l_min: Duration::from_ms(300),
            l_max: Duration::from_ms(2000),
            l_step: Duration::from_ms(100),
        }
    }
}

/// What a decision is made of.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Observed {
    /// U, the share of the media cache in use.
    pub used: f64,
    /// T_r, the mean time between two arrivals.
    pub between_arrivals: Duration,
    /// T_lat, the mean latency.
    pub latency: Duration,
    /// V_m, the share of the media cache that is taken in a second.
    pub taken_per_s: f64,
    /// V_c, the share that is cleaned in a second.
    pub cleaned_per_s: f64,
}

/// Which equation has decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Regime {
    /// U is below `u_low`: no idle period.
    Low,
    /// Equation 1.
    Mid,
    /// Equation 2: U is above `u_high`.
    High,
    /// None of both: a share of the time.
    Share,
}

/// Decides, and remembers the last idle period that was one.
#[derive(Clone, Debug, Saved)]
pub struct Decider {
    #[saved(keep)]
    settings: IdlerSettings,
    last: Option<Duration>,
}

impl Decider {
    /// Nothing decided yet.
    pub fn new(settings: IdlerSettings) -> Decider {
        Decider { settings, last: None }
    }

    /// How long the drive is left idle now: not at all, or `l_min` to `l_max`.
    pub fn decide(&mut self, observed: &Observed) -> (Regime, Duration) {
        let IdlerSettings { u_low, u_high, l_min, l_max, l_step } = self.settings;
        let is_slow = observed.between_arrivals > observed.latency;
        if observed.used < u_low {
            self.last = None;
            return (Regime::Low, Duration::ZERO);
        }
        if observed.used <= u_high {
            if is_slow {
                self.last = Some(l_min);
            }
            return (Regime::Mid, if is_slow { l_min } else { Duration::ZERO });
        }
        let before = self.last.unwrap_or(l_min);
        let idle = match (is_slow, observed.taken_per_s <= observed.cleaned_per_s) {
            (true, _) => l_max,
            (false, true) => Duration(before.0.saturating_sub(l_step.0)),
            (false, false) => Duration(before.0.saturating_add(l_step.0)),
        };
        let idle = idle.clamp(l_min, l_max);
        self.last = Some(idle);
        (Regime::High, idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_ms(ms)
    }

    /// U in percent, whether requests come slowly, and V_m over V_c.
    fn decided(decider: &mut Decider, used: f64, is_slow: bool, taken: f64) -> (Regime, u64) {
        let between_arrivals = if is_slow { ms(11) } else { ms(10) };
        let (regime, idle) = decider.decide(&Observed {
            used: used / 100.0,
            between_arrivals,
            latency: ms(10),
            taken_per_s: taken,
            cleaned_per_s: 1.0,
        });
        (regime, idle.0 / 1_000_000)
    }

    #[test]
    fn the_table_of_both_equations() {
        use Regime::{High, Low, Mid};
        for (used, is_slow, taken, expected) in [
            (0.0, true, 0.0, (Low, 0)),
            (9.9, true, 2.0, (Low, 0)),
            (10.0, false, 2.0, (Mid, 0)),
            (10.0, true, 2.0, (Mid, 300)),
            (80.0, false, 0.0, (Mid, 0)),
            (80.0, true, 0.0, (Mid, 300)),
            (80.1, true, 0.0, (High, 2000)),
            (80.1, true, 9.0, (High, 2000)),
            // It begins at the shortest and is clamped there; equal speeds lower it.
            (80.1, false, 0.5, (High, 300)),
            (80.1, false, 1.0, (High, 300)),
            (80.1, false, 1.1, (High, 400)),
            (100.0, false, 1.1, (High, 400)),
        ] {
            let mut decider = Decider::new(IdlerSettings::default());
            assert_eq!(decided(&mut decider, used, is_slow, taken), expected, "{used} %");
        }
    }

    #[test]
    fn in_the_high_band_it_goes_on_from_the_last_idle_period() {
        let mut decider = Decider::new(IdlerSettings::default());
        let mut next = |used, is_slow, taken| decided(&mut decider, used, is_slow, taken).1;
        assert_eq!(next(90.0, true, 0.0), 2000);
        assert_eq!(next(90.0, false, 2.0), 2000, "no longer than that");
        assert_eq!(next(90.0, false, 1.0), 1900);
        assert_eq!(next(90.0, false, 0.1), 1800);
        // Not idle in the middle: remembered all the same.
        assert_eq!(next(50.0, false, 0.1), 0);
        assert_eq!(next(90.0, false, 2.0), 1900);
        assert_eq!(next(50.0, true, 0.1), 300);
        assert_eq!(next(90.0, false, 2.0), 400);
        // Below it is forgotten.
        assert_eq!(next(90.0, true, 0.0), 2000);
        assert_eq!(next(5.0, true, 0.0), 0);
        assert_eq!(next(90.0, false, 2.0), 400);
    }
}
