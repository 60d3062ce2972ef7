//! The burst study and the disk models of Le's thesis on captured traces, from the experiment files that a user runs.

use crate::shared_traces::shared_traces;
use imbrex_sim::basis::Basis;
use imbrex_sim::experiment::{Experiment, Row, Watch, execute};
use std::path::Path;

/// The rows of an experiment file, its traces taken from `folder`.
fn rows(name: &str, folder: &Path) -> Vec<Row> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/raid4smr").join(name);
    let text = std::fs::read_to_string(&file).expect("an experiment of the repository");
    let experiment = Experiment::parse(name, &text, folder).expect("a sound experiment");
    let experiments = std::slice::from_ref(&experiment);
    let outcomes = execute(experiments, &[], None, 2, &Watch::nobody()).expect("it runs");
    let rows = experiment.rows("raid4smr", name, &outcomes[0]);
    rows.expect("everything stated is measured")
}

fn measured(rows: &[Row], metric: &str) -> f64 {
    let row = rows.iter().find(|row| row.metric == metric);
    let row = row.unwrap_or_else(|| panic!("no row {metric}"));
    row.measured.expect("a number")
}

#[test]
fn short_bursts_move_a_stripe_ten_times_as_far_and_long_ones_hardly_at_all() {
    let Some(folder) = shared_traces() else {
        return;
    };
    let rows = rows("captured-bursts.toml", &folder);
    // Ten times at least, 1.2 times at most, and each step down by at most a twentieth up: of the mean of ten seeds.
    let required: Vec<&Row> = rows.iter().filter(|row| row.basis == Basis::Own).collect();
    assert_eq!(required.len(), 2 * (2 + 6));
    for row in required {
        assert!(row.agrees, "{}: {:?}", row.metric, row.measured);
    }
}

#[test]
fn a_stripe_of_packed_logs_moves_little_further_in_bursts() {
    let Some(folder) = shared_traces() else {
        return;
    };
    let rows = rows("captured-logs.toml", &folder);
    for row in &rows {
        let ratio = row.measured.expect("a number");
        println!("{}: {ratio:.3}", row.metric);
        assert!((0.95..1.5).contains(&ratio), "{}: {ratio}", row.metric);
    }
}

#[test]
fn rsrch_1_is_moved_as_the_thesis_says() {
    let Some(folder) = shared_traces() else {
        return;
    };
    let rows = rows("captured-rsrch1.toml", &folder);
    for row in &rows {
        assert!(row.agrees, "{}: {:?}", row.metric, row.measured);
    }
    // 47,355,231,866 blocks over 467,502,708, as two independent models count them.
    let ratio = measured(&rows, "conventional over log, at least");
    assert!((ratio - 101.294).abs() < 0.001, "{ratio}");
}

#[test]
fn homes_move_less_than_the_data_disks_of_raid_4_with_collections_and_without() {
    let Some(folder) = shared_traces() else {
        return;
    };
    for (name, required) in [("captured-movement.toml", 10), ("captured-append.toml", 2)] {
        let rows = rows(name, &folder);
        let required_rows: Vec<&Row> = rows.iter().filter(|row| row.basis == Basis::Own).collect();
        assert_eq!(required_rows.len(), required);
        for row in required_rows {
            assert!(row.agrees, "{}: {:?}", row.metric, row.measured);
        }
    }
}
