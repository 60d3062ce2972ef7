//! The plain sentence a comparison comes down to.

use super::format::{count, factor, number, optional};
use super::report::{Report, Run};

/// Fewer band rewrites of the reference than this decide nothing.
const REWRITES_CONCLUSIVE_MIN: u64 = 100;

/// Systems that bound what a policy can reach and are no rivals of it.
const BOUNDS: [&str; 2] = ["opt", "unlimited"];

/// The runs a comparison is about: the reference and the rival that rewrites least.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contest<'a> {
    /// Plain LRU if it ran, else the first run with a cache over bands.
    pub(super) reference: &'a Run,
    /// Of the others with a cache over bands, the one that writes the fewest band bytes.
    pub(super) best: &'a Run,
}

/// The contest of a report, if it has two systems that can be compared.
pub(super) fn contest(report: &Report) -> Option<Contest<'_>> {
    let rivals = || {
        report.runs.iter().filter(|run| {
            run.bands.is_some()
                && run.capacity_blocks.is_some()
                && !BOUNDS.contains(&run.system.as_str())
        })
    };
    let reference = rivals()
        .find(|run| run.system == "lru")
        .or_else(|| rivals().next())?;
    let best = rivals()
        .filter(|run| !std::ptr::eq(*run, reference))
        .min_by_key(|run| run.band_bytes_written)?;
    Some(Contest { reference, best })
}

impl Report {
    /// One or two plain sentences: what the comparison shows, or what the only run did.
    pub fn headline(&self) -> String {
        match (contest(self), self.runs.first()) {
            (Some(contest), _) => contest.sentence(),
            (None, Some(run)) => single(run),
            (None, None) => "Nothing was run.".to_string(),
        }
    }
}

impl Contest<'_> {
    fn sentence(&self) -> String {
        let (best, reference) = (self.best, self.reference);
        let (name, other) = (best.label(), reference.label());
        if reference.bands_rewritten < REWRITES_CONCLUSIVE_MIN {
            return format!(
                "Inconclusive: {other} rewrote only {} bands, too few to tell systems apart.",
                count(reference.bands_rewritten)
            );
        }
        let bytes = match (best.band_bytes_written, reference.band_bytes_written) {
            (ours, theirs) if ours >= theirs => {
                return format!("No system rewrites fewer band bytes than {other}.");
            }
            (0, _) => format!("{name} rewrites no band at all"),
            (ours, theirs) => {
                let factor = factor(theirs as f64 / ours as f64);
                format!("{name} rewrites {factor} fewer band bytes than {other}")
            }
        };
        let speed_up = reference.io_time_s.total / best.io_time_s.total;
        if !speed_up.is_finite() {
            return format!("{bytes}.");
        }
        let time = if speed_up >= 1.05 {
            format!("and needs {} less I/O time", factor(speed_up))
        } else if speed_up <= 0.95 {
            format!("but needs {} the I/O time", factor(1.0 / speed_up))
        } else {
            "in about the same I/O time".to_string()
        };
        format!("{bytes} {time}.")
    }
}

fn single(run: &Run) -> String {
    let work = format!("{} served {} requests", run.label(), count(run.requests));
    match run.write_amplification.host {
        Some(host) => format!(
            "{work}, rewrote {} bands and wrote {} band bytes for each byte the host wrote.",
            count(run.bands_rewritten),
            number(host)
        ),
        None => format!(
            "{work}; median response {} ms.",
            optional(run.response_ms.p50)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::{ReplayMode, Workload, WorkloadKind};
    use super::*;

    fn run(system: &str, band_bytes: u64, busy_s: f64) -> Run {
        let mut run = Run::new(system, ReplayMode::ClosedLoop { depth: 1 });
        run.bands = Some(10);
        run.capacity_blocks = Some(100);
        run.bands_rewritten = 200;
        run.band_bytes_written = band_bytes;
        run.io_time_s.total = busy_s;
        run
    }

    fn report(runs: Vec<Run>) -> Report {
        let workload = Workload {
            path: "t.csv".into(),
            kind: WorkloadKind::Captured,
            requests: 1,
            sha256: None,
            format: None,
            skipped_lines: Default::default(),
        };
        Report {
            runs,
            ..Report::new("unknown".into(), 7, workload)
        }
    }

    #[test]
    fn the_headline_says_by_how_much() {
        let runs = vec![
            run("smr-only", 1, 1.0),
            run("opt", 5, 1.0),
            run("lru", 4100, 23.0),
            run("pore", 1000, 10.0),
        ];
        let mut report = report(runs);
        report.runs[0].capacity_blocks = None;
        assert_eq!(
            report.headline(),
            "pore rewrites 4.1x fewer band bytes than lru and needs 2.3x less I/O time."
        );
        report.runs[3].band_bytes_written = 9999;
        assert_eq!(
            report.headline(),
            "No system rewrites fewer band bytes than lru."
        );
        report.runs[2].bands_rewritten = 12;
        assert!(
            report
                .headline()
                .starts_with("Inconclusive: lru rewrote only 12 bands")
        );
    }

    #[test]
    fn one_run_and_none_have_a_headline_too() {
        assert_eq!(report(vec![]).headline(), "Nothing was run.");
        let mut report = report(vec![run("pore", 8, 1.0)]);
        report.runs[0].write_amplification.host = Some(2.0);
        assert_eq!(
            report.headline(),
            "pore served 0 requests, rewrote 200 bands and wrote 2.00 band bytes for each byte the \
             host wrote."
        );
    }
}
