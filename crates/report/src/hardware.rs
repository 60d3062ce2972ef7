//! The hardware that stacks are given, and which of the compared ones stand on like hardware.

use super::report::{Report, Run};
use super::run_parts::Hardware;
use crate::format::{count, optional};

/// What a run says in one number of its hardware.
pub(super) struct HardwareMetric {
    /// Two lines of the header on a terminal.
    pub header: &'static str,
    /// Name in the page.
    pub name: &'static str,
    /// Unit in the page.
    pub unit: &'static str,
    /// The number in that unit.
    of: fn(&Hardware) -> f64,
}

const MIB: f64 = 1_048_576.0;

/// In the order of the columns. Those for which a table has no room are left out.
pub(super) const HARDWARE_METRICS: [HardwareMetric; 4] = [
    HardwareMetric { header: "disks", name: "disks", unit: "count", of: |it| it.disks as f64 },
    HardwareMetric {
        header: "flash\nMiB",
        name: "flash",
        unit: "MiB",
        of: |it| it.flash_bytes as f64 / MIB,
    },
    HardwareMetric {
        header: "RAM\nMiB",
        name: "memory",
        unit: "MiB",
        of: |it| it.memory_bytes as f64 / MIB,
    },
    HardwareMetric {
        header: "raw\nTB",
        name: "raw capacity",
        unit: "TB",
        of: |it| it.raw_bytes as f64 / 1e12,
    },
];

/// The flash and the memory that the stack of a run is given, in MiB; none where the report does not say.
pub(super) fn fast_mib(run: &Run) -> Option<f64> {
    let hardware = run.hardware.as_ref()?;
    Some((hardware.flash_bytes + hardware.memory_bytes) as f64 / MIB)
}

impl HardwareMetric {
    /// The number of a run; none where it has nothing of it, or does not say.
    pub fn value(&self, run: &Run) -> Option<f64> {
        Some((self.of)(run.hardware.as_ref()?)).filter(|value| *value > 0.0)
    }

    /// A number as people read it: a dash for none.
    pub fn show(value: Option<f64>) -> String {
        match value {
            Some(value) if value.fract() == 0.0 => count(value as u64),
            value => optional(value),
        }
    }
}

/// So many kinds of hardware are too many to keep apart by the names of the stacks.
const KINDS_MIN: usize = 4;

/// The drives of a run by model, and what the columns say.
fn hardware(run: &Run) -> (Vec<&str>, Option<Hardware>) {
    let mut drives: Vec<&str> = run.disks.iter().map(|disk| disk.drive.as_str()).collect();
    drives.sort_unstable();
    (drives, run.hardware)
}

impl Report {
    /// What the runs have of hardware and not all have the same of; nothing in a sweep, whose settings say it.
    pub(super) fn hardware_metrics(&self) -> impl Iterator<Item = &'static HardwareMetric> {
        let differs = |metric: &&HardwareMetric| {
            let mut values = self.runs.iter().map(|run| metric.value(run));
            let first = values.next();
            values.any(|value| Some(value) != first)
        };
        let is_swept = !self.swept_keys().is_empty();
        HARDWARE_METRICS.iter().filter(move |metric| !is_swept && differs(metric))
    }

    /// The runs that have the same drives and the same room in flash and memory, if there are many kinds.
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
            format!("On like hardware stand {}. Others have other drives, more of them, or other room in flash or memory.", alike.join("; "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DiskUse, ReplayMode};

    #[test]
    fn stacks_with_the_same_drives_and_cache_are_named_together() {
        let run = |system: &str, drives: &[&str], flash_bytes| {
            let mut run = Run::new(system, ReplayMode::ClosedLoop { depth: 1 });
            let of = |drive: &&str| DiskUse { drive: drive.to_string(), ..DiskUse::default() };
            run.disks = drives.iter().map(of).collect();
            let hardware = Hardware { disks: 1, memory_bytes: 0, raw_bytes: 5, flash_bytes };
            run.hardware = Some(hardware);
            run
        };
        let mut report = Report::of_runs(vec![
            run("lru", &["smr", "ssd"], 10),
            run("hdd", &["cmr"], 0),
            run("pore", &["ssd", "smr"], 10),
            run("raid5", &["smr", "smr"], 0),
        ]);
        assert_eq!(report.hardware_line(), None, "three kinds");
        report.runs.push(run("ride", &["smr", "ssd"], 20));
        report.runs.push(run("raid4", &["smr", "smr"], 0));
        let line = report.hardware_line().expect("four kinds");
        assert!(line.starts_with("On like hardware stand lru, pore; raid5, raid4. "), "{line}");
        let more_memory = report.runs[2].hardware.as_mut().expect("hardware");
        more_memory.memory_bytes = 64;
        let line = report.hardware_line().expect("five kinds");
        assert!(line.starts_with("On like hardware stand raid5, raid4. "), "{line}");
    }
}
