//! What is said of the first part of a workload that is in no figure.

use super::report::{Report, Run};
use crate::format::{count, duration};

impl Report {
    /// Which requests came before what was measured. Systems that were measured from different requests on saw
    /// different loads, and a count with which they would see the same is named.
    pub(super) fn warm_up_line(&self) -> Option<String> {
        let warmed = |run: &Run| run.inputs.warm_up.map_or(0, |warm_up| warm_up.requests);
        let most = self.runs.iter().map(warmed).max()?;
        let least = self.runs.iter().map(warmed).min()?;
        if most == 0 && self.runs.iter().all(|run| run.inputs.warm_up.is_none()) {
            return None;
        }
        let used_s = |run: &Run| run.inputs.warm_up.map_or(0.0, |warm_up| warm_up.duration_s);
        if let ([run], 0) = (&self.runs[..], most)
            && used_s(run) > 0.0
        {
            return Some(format!(
                "The stack was used before, for {}: no request of this workload is a warm-up.",
                duration(used_s(run))
            ));
        }
        if most == least {
            let took = |run: &Run| run.inputs.warm_up.map(|warm_up| warm_up.duration_s);
            let took = match &self.runs[..] {
                [run] => took(run).map_or(String::new(), |s| format!(" ({})", duration(s))),
                _ => String::new(),
            };
            return Some(format!(
                "The first {} requests{took} are a warm-up and in no figure.",
                count(most)
            ));
        }
        let each = self.runs.iter().map(|run| format!("{} {}", run.label(), count(warmed(run))));
        Some(format!(
            "Requests of the warm-up, which are in no figure: {}. The systems are measured on different requests; with \
             --warm-up {most} they are on the same.",
            each.collect::<Vec<_>>().join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReplayMode, WarmUpUse};

    fn line(warm_ups: &[Option<u64>]) -> Option<String> {
        let run = |requests: &Option<u64>| {
            let mut run = Run::new("a", ReplayMode::Live);
            let of = |requests: u64| WarmUpUse { requests, duration_s: 90.0 };
            run.inputs.warm_up = requests.map(of);
            run
        };
        Report::of_runs(warm_ups.iter().map(run).collect()).warm_up_line()
    }

    #[test]
    fn it_says_what_is_left_out_and_when_systems_saw_different_loads() {
        assert_eq!(line(&[None, None]), None);
        let before = line(&[Some(0)]).expect("a line");
        assert!(
            before.starts_with("The stack was used before, for 90.0 s: no request"),
            "{before}"
        );
        let one = line(&[Some(1500)]).expect("a line");
        assert_eq!(one, "The first 1,500 requests (90.0 s) are a warm-up and in no figure.");
        let same = line(&[Some(1500), Some(1500)]).expect("a line");
        assert_eq!(same, "The first 1,500 requests are a warm-up and in no figure.");
        let different = line(&[Some(0), Some(1500)]).expect("a line");
        assert!(different.contains("a 0, a 1,500.") && different.contains("--warm-up 1500 they"));
    }
}
