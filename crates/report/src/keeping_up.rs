//! Whether a system keeps up with a host that issues requests at their time stamps.

use super::report::{Report, Run};
use super::run_parts::Costs;
use crate::format::duration;

/// A system that is this share of the recording behind at its end keeps up, but never with more than
/// [`BEHIND_S_MAX`].
const BEHIND_SHARE_MAX: f64 = 0.01;

/// A short recording may end in the middle of a burst.
const BEHIND_S_MIN: f64 = 1.0;

/// A minute of requests in line is no keeping up, however long the recording.
const BEHIND_S_MAX: f64 = 60.0;

impl Costs {
    /// The last request arrived at this instant, counted from the first; requests were issued at their time
    /// stamps. To be told when the finish is known.
    pub fn set_last_arrival(&mut self, last_arrival_s: f64) {
        let allowed_s = (last_arrival_s * BEHIND_SHARE_MAX).clamp(BEHIND_S_MIN, BEHIND_S_MAX);
        self.last_arrival_s = Some(last_arrival_s);
        self.keeps_up = Some(self.finish_s - last_arrival_s <= allowed_s);
    }

    /// How long after the last arrival the last answer came; none unless requests were issued at their time stamps.
    pub fn behind_s(&self) -> Option<f64> {
        self.last_arrival_s.map(|last_s| (self.finish_s - last_s).max(0.0))
    }
}

impl Report {
    /// Which systems keep up, and how far the others are behind.
    pub(super) fn keeping_up_line(&self) -> Option<String> {
        let of = |keeps_up: bool| {
            self.runs.iter().filter(move |run| run.costs.keeps_up == Some(keeps_up))
        };
        let behind = of(false).map(|run| {
            let behind_s = run.costs.behind_s().unwrap_or_default();
            format!("{} ({} behind at the end)", run.label(), duration(behind_s))
        });
        let behind: Vec<String> = behind.collect();
        let up: Vec<String> = of(true).map(Run::label).collect();
        match (up.is_empty(), behind.is_empty()) {
            (true, true) => None,
            (false, true) if up.len() > 1 => Some("All keep up with the time stamps.".into()),
            (_, true) => Some(format!("{} keeps up with the time stamps.", up[0])),
            (true, false) => Some(format!("Fall behind the time stamps: {}.", behind.join(", "))),
            (false, false) => Some(format!(
                "Keep up with the time stamps: {}. Fall behind: {}.",
                up.join(", "),
                behind.join(", ")
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReplayMode;

    fn run(system: &str, last_arrival_s: f64, finish_s: f64) -> Run {
        let mut run = Run::new(system, ReplayMode::OpenLoop { speed: 1.0 });
        run.costs.finish_s = finish_s;
        run.costs.set_last_arrival(last_arrival_s);
        run
    }

    #[test]
    fn a_hundredth_of_the_recording_may_be_left_but_a_second_at_least_and_a_minute_at_most() {
        let keeps_up = |last_s, finish_s| run("a", last_s, finish_s).costs.keeps_up == Some(true);
        assert!(keeps_up(0.0, 1.0) && !keeps_up(0.0, 1.1));
        assert!(keeps_up(1000.0, 1010.0) && !keeps_up(1000.0, 1010.1));
        assert!(keeps_up(1e6, 1e6 + 60.0) && !keeps_up(1e6, 1e6 + 61.0));
        assert_eq!(run("a", 10.0, 12.5).costs.behind_s(), Some(2.5));
    }

    #[test]
    fn the_line_tells_who_keeps_up() {
        let line = |runs: Vec<Run>| Report::of_runs(runs).keeping_up_line();
        assert_eq!(line(vec![Run::new("a", ReplayMode::ClosedLoop { depth: 1 })]), None);
        let (a, b, c) = (run("a", 100.0, 101.0), run("b", 100.0, 160.0), run("c", 100.0, 100.1));
        let told = |runs| line(runs).expect("requests came at their time stamps");
        assert_eq!(told(vec![a.clone()]), "a keeps up with the time stamps.");
        assert_eq!(told(vec![a.clone(), c.clone()]), "All keep up with the time stamps.");
        assert_eq!(
            told(vec![b.clone()]),
            "Fall behind the time stamps: b (60.0 s behind at the end)."
        );
        assert_eq!(
            told(vec![a, b, c]),
            "Keep up with the time stamps: a, c. Fall behind: b (60.0 s behind at the end)."
        );
    }
}
