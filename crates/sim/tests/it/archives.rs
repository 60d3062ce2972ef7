//! The ready-made caches over the model of a drive that can be bought.

use crate::simulate::{back_to_back, stack, workload};
use imbrex_drives::EntryLimit;
use imbrex_report::Run;
use imbrex_sim::experiment::{Batch, Case};
use imbrex_stack::{compared, library_drives, ready_made};
use std::collections::BTreeMap;

/// What the drive is divided by, so that a small load fills its log.
const DRIVE_SCALE: u64 = 1000;

/// A stack on a small load; its cache is full soon.
fn run(name: &str, settings: &[&str]) -> Run {
    let config = stack(name, &[&["cache.capacity=1MiB"], settings].concat());
    let case = Case {
        config,
        parameters: BTreeMap::new(),
        replay: back_to_back(1),
        events: vec![],
        windows: vec![],
        cut_into_windows: false,
        heads: None,
        drive_scale: DRIVE_SCALE,
        series: vec![],
        movement: None,
        drive_scale_option: None,
    };
    let batch = Batch {
        workload: workload("synthetic:uniform-random-write/100"),
        seed: 1,
        cases: vec![case],
        jobs: 1,
    };
    let report = batch.run(&|_| ()).unwrap_or_else(|error| panic!("{error}"));
    report.runs.into_iter().next().expect("a run")
}

fn counted(run: &Run, name: &str) -> u64 {
    run.nodes["cache"][name]
}

/// The limit of entries fills the log of this drive long before its blocks do when writes are small.
#[test]
fn a_period_over_a_drive_is_what_binds_its_log_first() {
    let (_, drive) =
        library_drives().find(|(name, _)| *name == "st8000as0002").expect("a drive of the library");
    let entries = drive.model.translation.and_then(|it| it.entries);
    let Some(EntryLimit::Entries(entries)) = entries else {
        panic!("the drive has a limit of entries");
    };
    let default = run("pore-archive", &[]);
    let divisions = counted(&default, "region_divisions");
    assert!(divisions > 10, "{divisions} divisions");
    let period = |blocks: u64| {
        let period = format!("cache.period_blocks={blocks}");
        run("pore-archive", &[&period])
    };
    let of_entries = period(entries / DRIVE_SCALE);
    assert_eq!(counted(&of_entries, "region_divisions"), divisions);
    assert_eq!(of_entries.rewrites.bands_rewritten, default.rewrites.bands_rewritten);
    // The log has 33 GiB.
    let of_blocks = period((33 << 18) / DRIVE_SCALE);
    assert!(counted(&of_blocks, "region_divisions") * 10 < divisions);
}

#[test]
fn the_archives_are_ready_made_and_not_compared_with_the_emulator() {
    let archives: Vec<&str> = ready_made().filter(|name| name.ends_with("-archive")).collect();
    assert_eq!(archives, ["lru-archive", "pore-archive", "ride-archive"]);
    for name in archives {
        assert!(compared().all(|compared| compared != name), "{name}");
        assert_eq!(stack(name, &[]).name, name);
        let run = run(name, &[]);
        assert!(counted(&run, "dirty_evictions") > 0, "{name}");
    }
}
