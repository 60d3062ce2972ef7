//! Runs in which no band was cleaned say so, and with what they would.

use crate::simulate::{back_to_back, stack, workload};
use imbrex_report::Run;
use imbrex_sim::experiment::{Batch, Case};
use std::collections::BTreeMap;

/// A load that no log of a whole drive notices.
const SMALL: &str = "synthetic:wdev-like/256";

fn run(system: &str, settings: &[&str], drive_scale: u64, trace: &str) -> Run {
    let batch = Batch {
        workload: workload(trace),
        seed: 1,
        cases: vec![Case {
            config: stack(system, settings),
            parameters: BTreeMap::new(),
            replay: back_to_back(1),
            events: vec![],
            windows: vec![],
            cut_into_windows: false,
            heads: None,
            drive_scale,
            series: vec![],
            movement: None,
            drive_scale_option: Some("--drive-scale"),
        }],
        jobs: 1,
    };
    let report = batch.run(&|_| ());
    report.unwrap_or_else(|error| panic!("{error}")).runs.remove(0)
}

/// The option that a run without cleaning names.
fn option_of(run: &Run) -> String {
    assert_eq!(run.rewrites.bands_rewritten, 0);
    let no_cleaning = run.log.no_cleaning.as_ref().expect("it says so");
    assert!(no_cleaning.log_fill < 1.0 && !no_cleaning.log_went_round);
    no_cleaning.would_show.clone().expect("an option is known")
}

#[test]
fn the_scale_that_is_named_does_clean_bands() {
    for drive in ["st5000as0011", "st8000as0002", "wd40efax"] {
        for already in [1, 4] {
            let option = option_of(&run(drive, &[], already, SMALL));
            let scale = option.strip_prefix("--drive-scale ");
            let scale: u64 = scale.expect("the scale").parse().expect("a number");
            assert!(scale > already && scale.is_power_of_two(), "{option}");
            let cleaned = run(drive, &[], scale, SMALL);
            assert!(cleaned.rewrites.bands_rewritten > 0, "{drive} at {option}");
            assert_eq!(cleaned.log.no_cleaning, None);
        }
    }
}

#[test]
fn a_log_that_no_scale_divides_is_to_be_set_smaller() {
    assert!(run("smr-only", &[], 1, SMALL).log.no_cleaning.is_none());
    let large = ["translation.persistent_cache=1/1 of touched bands"];
    let option = option_of(&run("smr-only", &large, 1, SMALL));
    let setting = option.strip_prefix("--set ").expect("a setting");
    assert!(setting.starts_with("translation.persistent_cache="), "{option}");
    assert!(run("smr-only", &[setting], 1, SMALL).rewrites.bands_rewritten > 0, "{option}");
}

#[test]
fn nothing_is_said_where_nothing_is_to_be_cleaned() {
    assert!(run("cmr-only", &[], 1, SMALL).log.no_cleaning.is_none());
}
