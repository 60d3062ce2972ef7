//! Which of the compared stacks stand on like hardware.

use super::report::{Report, Run};

/// So many kinds of hardware are too many to keep apart by the names of the stacks.
const KINDS_MIN: usize = 4;

/// The drives of a run by model, and how much its caches hold.
fn hardware(run: &Run) -> (Vec<&str>, Option<u64>) {
    let mut drives: Vec<&str> = run.disks.iter().map(|disk| disk.drive.as_str()).collect();
    drives.sort_unstable();
    (drives, run.cache.capacity_blocks)
}

impl Report {
    /// The runs that have the same drives and the same room in their caches, if there are many kinds.
    pub(super) fn hardware_line(&self) -> Option<String> {
        let mut kinds: Vec<Vec<&Run>> = Vec::new();
        for run in &self.runs {
            match kinds.iter_mut().find(|kind| hardware(kind[0]) == hardware(run)) {
                Some(kind) => kind.push(run),
                None => kinds.push(vec![run]),
            }
        }
        let alike: Vec<String> = (kinds.iter())
            .filter(|kind| kind.len() > 1)
            .map(|kind| kind.iter().map(|run| run.label()).collect::<Vec<_>>().join(", "))
            .collect();
        let is_told = kinds.len() >= KINDS_MIN && !alike.is_empty() && self.swept_keys().is_empty();
        is_told.then(|| {
            format!("On like hardware stand {}. Others have other drives, more of them, or another cache.", alike.join("; "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DiskUse, ReplayMode};

    #[test]
    fn stacks_with_the_same_drives_and_cache_are_named_together() {
        let run = |system: &str, drives: &[&str], capacity| {
            let mut run = Run::new(system, ReplayMode::ClosedLoop { depth: 1 });
            let of = |drive: &&str| DiskUse { drive: drive.to_string(), ..DiskUse::default() };
            run.disks = drives.iter().map(of).collect();
            run.cache.capacity_blocks = capacity;
            run
        };
        let mut report = Report::of_runs(vec![
            run("lru", &["smr", "ssd"], Some(10)),
            run("hdd", &["cmr"], None),
            run("pore", &["ssd", "smr"], Some(10)),
            run("raid5", &["smr", "smr"], None),
        ]);
        assert_eq!(report.hardware_line(), None, "three kinds");
        report.runs.push(run("ride", &["smr", "ssd"], Some(20)));
        report.runs.push(run("raid4", &["smr", "smr"], None));
        let line = report.hardware_line().expect("four kinds");
        assert!(line.starts_with("On like hardware stand lru, pore; raid5, raid4. "), "{line}");
    }
}
