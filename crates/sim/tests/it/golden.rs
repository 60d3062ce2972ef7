//! Whether any report has changed: the compared stacks on a small load, to the last digit.
//!
//! `UPDATE_GOLDEN=1` writes the new report after a change that was meant; its diff belongs to the
//! review.

use crate::simulate::{back_to_back, stack, workload};
use imbrex_report::{Figures, Report};
use imbrex_sim::experiment::{Batch, Case};
use imbrex_stack::compared;
use std::collections::BTreeMap;
use std::path::Path;

/// The report without what differs between machines and what only pictures need.
fn report() -> Report {
    let case = |name| Case {
        config: stack(name, &[]),
        parameters: BTreeMap::new(),
        replay: back_to_back(1),
        events: vec![],
        windows: vec![],
        cut_into_windows: false,
        heads: None,
        drive_scale: 1,
        series: vec![],
        movement: None,
        drive_scale_option: None,
    };
    let batch = Batch {
        workload: workload("synthetic:uniform-random-write/1000"),
        seed: 1,
        cases: compared().map(case).collect(),
        jobs: 1,
    };
    let report = batch.run(&|_| ()).unwrap_or_else(|error| panic!("{error}"));
    let mut report = report.without_simulation();
    report.commit = "unknown".to_string();
    for run in &mut report.runs {
        run.figures = Figures::default();
    }
    report
}

#[test]
fn the_report_of_a_small_load_has_not_changed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/compared-stacks.json");
    let text = serde_json::to_string_pretty(&report()).expect("a report") + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, &text).expect("a file");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = text.lines().zip(golden.lines()).find(|(a, b)| a != b);
    assert!(
        text == golden,
        "the report differs from tests/golden/compared-stacks.json, first in {differs:?}; if that was \
         meant, run again with UPDATE_GOLDEN=1 and review the difference"
    );
}
