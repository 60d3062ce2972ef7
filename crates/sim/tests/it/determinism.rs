//! A report is a function of the experiment and its seed: the same bytes every time, whatever the
//! number of jobs, but for what the runs have cost.

use crate::report::schema_violations;
use crate::simulate::{back_to_back, stack, workload};
use imbrex_report::{ReplayMode, Report};
use imbrex_sim::experiment::{Batch, Case, Workload};
use imbrex_sim::replay::ReplayOptions;
use imbrex_stack::compared;
use std::collections::BTreeMap;

fn report(workload: &Workload, replay: ReplayOptions, jobs: usize) -> Report {
    let case = |name| Case {
        config: stack(name, &[]),
        parameters: BTreeMap::new(),
        replay,
        events: vec![],
        windows: vec![],
        cut_into_windows: false,
        heads: None,
        drive_scale: 1,
        series: vec![],
        movement: None,
        drive_scale_option: None,
    };
    let batch =
        Batch { workload: workload.clone(), seed: 3, cases: compared().map(case).collect(), jobs };
    batch.run(&|_| ()).unwrap_or_else(|error| panic!("{error}"))
}

fn check(workload: &Workload, replay: ReplayOptions) {
    let first = report(workload, replay, 1);
    let violations = schema_violations(&first);
    assert!(violations.is_empty(), "{violations:#?}");
    assert_eq!(first.runs.len(), compared().count());
    assert!(first.runs[1].rewrites.bands_rewritten > 0, "no band was rewritten");
    let first = first.without_simulation().to_json();
    for jobs in [1, 2] {
        let again = report(workload, replay, jobs);
        assert!(first == again.without_simulation().to_json(), "{jobs} jobs");
    }
}

#[test]
fn a_recipe_gives_the_same_report_again() {
    check(&workload("synthetic:wdev-like/64"), back_to_back(4));
}

#[test]
fn a_trace_file_gives_the_same_report_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.csv");
    let mut lines = String::new();
    let mut state = 1u64;
    for line in 0..4_000u64 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
        let (offset, length) = ((state >> 34) % 262_144 * 4096, (1 + (state >> 60)) * 4096);
        let kind = if state >> 58 & 3 == 0 { "Read" } else { "Write" };
        let time = 128_166_386_787_582_087 + line * 40_000;
        lines += &format!("{time},host,0,{kind},{offset},{length},1331\n");
    }
    std::fs::write(&path, lines).expect("a file");
    let open_loop = ReplayOptions { mode: ReplayMode::OpenLoop { speed: 2.0 }, ..back_to_back(1) };
    check(&workload(path.to_str().expect("a readable name")), open_loop);
}
