//! How much faster one run is than another: one figure, which the table, the page and the headline share.

use super::report::{ReplayMode, Run};
use crate::format::factor;

/// From here on a run is called faster, and below the reciprocal slower.
const NOTABLE_FACTOR: f64 = 1.05;

/// By which of its times a run is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    /// When the last request was answered: requests came back to back, so a faster stack ends sooner.
    Finish,
    /// The mean response: requests came at their times, so all stacks end at about the same time.
    MeanResponse,
}

impl Measure {
    fn of(replay: &ReplayMode) -> Measure {
        match replay {
            // An untimed run has no time at all.
            ReplayMode::ClosedLoop { .. } | ReplayMode::Untimed => Measure::Finish,
            ReplayMode::OpenLoop { .. } | ReplayMode::Streams { .. } | ReplayMode::Live => {
                Measure::MeanResponse
            }
        }
    }

    fn value(self, run: &Run) -> Option<f64> {
        let value = match self {
            Measure::Finish => Some(run.costs.finish_s),
            Measure::MeanResponse => run.costs.response_ms.mean,
        };
        value.filter(|value| *value > 0.0)
    }

    fn words(self) -> &'static str {
        match self {
            Measure::Finish => "time",
            Measure::MeanResponse => "mean response time",
        }
    }
}

impl Run {
    fn measure(&self) -> Measure {
        Measure::of(&self.inputs.replay)
    }

    /// How many times as fast as `reference` this run was: by the time at which the last request was
    /// answered when requests came back to back, else by the mean response. None where there is no
    /// such time, or the two were not replayed in the same way.
    pub(super) fn speed_up(&self, reference: &Run) -> Option<f64> {
        let measure = self.measure();
        if measure != reference.measure() || self.is_untimed() || reference.is_untimed() {
            return None;
        }
        Some(measure.value(reference)? / measure.value(self)?)
    }

    /// By how much this run is faster or slower than `reference`, as the end of a sentence.
    pub(super) fn pace_beside(&self, reference: &Run) -> Option<String> {
        let speed_up = self.speed_up(reference)?;
        let words = self.measure().words();
        Some(if speed_up >= NOTABLE_FACTOR {
            format!("and needs {} less {words}", factor(speed_up))
        } else if speed_up <= 1.0 / NOTABLE_FACTOR {
            format!("but needs {} the {words}", factor(1.0 / speed_up))
        } else {
            format!("in about the same {words}")
        })
    }

    /// How many times the time of `other` this run needs: `1.8x its time`.
    pub(super) fn times_that_of(&self, other: &Run) -> Option<String> {
        let speed_up = self.speed_up(other)?;
        Some(format!("{} its {}", factor(1.0 / speed_up), self.measure().words()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dependencies, Due};

    fn run(replay: ReplayMode, finish_s: f64, mean_ms: f64) -> Run {
        let mut run = Run::new("any", replay);
        run.costs.finish_s = finish_s;
        run.costs.response_ms.mean = Some(mean_ms);
        // Disks were least busy where the host waited longest: that is not what a speed-up is about.
        run.costs.io_time_s.total = 1.0 / finish_s;
        run
    }

    #[test]
    fn a_speed_up_is_of_finish_times_back_to_back_and_of_mean_responses_by_time_stamps() {
        let closed = ReplayMode::ClosedLoop { depth: 1 };
        let (first, slower) = (run(closed, 10.0, 2.0), run(closed, 20.0, 1.0));
        assert_eq!(slower.speed_up(&first), Some(0.5));
        let text = slower.pace_beside(&first);
        assert_eq!(text.as_deref(), Some("but needs 2.0x the time"));
        for stamps in [
            ReplayMode::OpenLoop { speed: 1.0 },
            ReplayMode::Streams {
                streams: 4,
                due: Due::Absolute,
                dependencies: Dependencies::InTurn,
            },
            ReplayMode::Live,
        ] {
            let (first, faster) = (run(stamps, 10.0, 2.0), run(stamps, 20.0, 1.0));
            assert_eq!(faster.speed_up(&first), Some(2.0));
            let text = faster.pace_beside(&first);
            assert_eq!(text.as_deref(), Some("and needs 2.0x less mean response time"));
            let text = first.times_that_of(&faster);
            assert_eq!(text.as_deref(), Some("2.0x its mean response time"));
            assert_eq!(faster.speed_up(&slower), None, "replayed in another way");
        }
    }

    #[test]
    fn a_run_without_requests_has_no_speed_up() {
        let closed = ReplayMode::ClosedLoop { depth: 1 };
        let nothing = run(closed, 0.0, 0.0);
        assert_eq!(nothing.speed_up(&run(closed, 1.0, 1.0)), None);
        assert_eq!(run(closed, 1.0, 1.0).speed_up(&nothing), None);
    }
}
