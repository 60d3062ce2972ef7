//! What is said of runs of caches with policies that the program brought with it which simulated.

use super::report::Report;
use std::collections::BTreeMap;

impl Report {
    /// A line for each such policy, with the systems that have it.
    pub(super) fn brought_lines(&self) -> Vec<String> {
        let mut systems: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for run in &self.runs {
            for policy in &run.cache.brought_policies {
                systems.entry(policy).or_default().push(run.label());
            }
        }
        let lines = systems.into_iter().map(|(policy, systems)| {
            format!(
                "{}: the policy {policy} is code of the caller: it is slow, there to be tried, and cannot be served.",
                systems.join(", ")
            )
        });
        lines.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::{ReplayMode, Report, Run};

    #[test]
    fn a_line_names_the_policy_and_the_systems_that_have_it() {
        let run = |system: &str, policies: &[&str]| {
            let mut run = Run::new(system, ReplayMode::Live);
            run.cache.brought_policies = policies.iter().map(|it| it.to_string()).collect();
            run
        };
        let policy = "python:mine";
        let runs = vec![run("lru", &[policy]), run("pore", &[]), run("mine", &[policy])];
        let report = Report::of_runs(runs);
        let line = "lru, mine: the policy python:mine is code of the caller: it is slow, there to be tried, and cannot be \
                    served.";
        assert_eq!(report.brought_lines(), [line]);
        assert!(report.notices().any(|notice| notice == line));
    }
}
