//! Counting alone gives the counters of the timed run at depth 1, and no times.

use crate::report::schema_violations;
use crate::simulate::{back_to_back, stack, workload};
use imbrex_report::{ReplayMode, Report, TableStyle};
use imbrex_sim::experiment::{Batch, Case, RunError};
use imbrex_sim::replay::Fit;
use imbrex_stack::compared;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Requests of each recording.
const REQUESTS: u64 = 3000;
/// So many show what a background write decides.
const LONG: u64 = 100_000;

/// The ready-made stacks over one disk beside the compared ones.
const OTHERS: [&str; 9] = [
    "hdd",
    "cmr-buffer",
    "hwsr",
    "s-block",
    "lru-archive",
    "pore-archive",
    "ride-archive",
    "st5000as0011",
    "st8000as0002",
];

/// What makes the counters of a stack independent of time.
fn settings(name: &str) -> &'static [&'static str] {
    match name {
        _ if name.ends_with("-archive") => &[
            "translation.idle_after=off",
            "translation.log_per_flush=0",
            "translation.journal_every_records=0",
        ],
        _ if name.starts_with("st") => &["translation.idle_after=off"],
        _ => &[],
    }
}

/// Systems as they are, or with the settings by which they do not depend on time.
fn batch(systems: &[&str], trace: &str, mode: ReplayMode, requests: u64, is_set: bool) -> Batch {
    let case = |name: &&str| {
        let is_drive_managed = !settings(name).is_empty();
        let mut replay = back_to_back(1);
        (replay.mode, replay.limit) = (mode, Some(requests));
        replay.placement.fit = Fit::Wrap;
        Case {
            config: stack(name, if is_set { settings(name) } else { &[] }),
            parameters: BTreeMap::new(),
            replay,
            events: vec![],
            windows: vec![],
            cut_into_windows: false,
            heads: None,
            drive_scale: if is_drive_managed { 1024 } else { 1 },
            series: vec![],
            movement: None,
            drive_scale_option: None,
        }
    };
    let mut workload = workload(trace);
    workload.limit = Some(requests);
    Batch { workload, seed: 1, cases: systems.iter().map(case).collect(), jobs: 2 }
}

fn report(systems: &[&str], trace: &str, mode: ReplayMode, requests: u64) -> Report {
    let report = batch(systems, trace, mode, requests, true).run(&|_| ());
    report.unwrap_or_else(|error| panic!("{trace}: {error}"))
}

/// What a document has that the other one has not, or has otherwise.
fn differences(counted: &Value, timed: &Value, path: &str, found: &mut Vec<String>) {
    match (counted, timed) {
        (Value::Object(members), Value::Object(_)) => {
            for (name, member) in members {
                let other = timed.get(name).unwrap_or(&Value::Null);
                differences(member, other, &format!("{path}.{name}"), found);
            }
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            for (index, (item, other)) in items.iter().zip(others).enumerate() {
                differences(item, other, &format!("{path}[{index}]"), found);
            }
        }
        _ if counted == timed => {}
        _ => found.push(format!("{path}: {counted}, timed {timed}")),
    }
}

/// The runs of a report as a script finds them, without what they cost and how they were replayed.
fn runs(report: &Report) -> Vec<Value> {
    let mut document: Value = serde_json::from_str(&report.to_json()).expect("a document");
    let Value::Array(mut runs) = document["runs"].take() else { panic!("no runs") };
    for run in &mut runs {
        let run = run.as_object_mut().expect("a run");
        run.remove("simulation");
        run.remove("replay");
    }
    runs
}

/// The keys of a document, its settings aside.
fn keys(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in
                members.iter().filter(|(name, _)| !SETTINGS.contains(&name.as_str()))
            {
                found.push(name.clone());
                keys(member, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        _ => {}
    }
}

const SETTINGS: [&str; 2] = ["configuration", "resolved"];

#[test]
fn every_counter_is_that_of_the_timed_run_on_all_recordings() {
    compare_on_all_recordings(REQUESTS);
}

#[test]
#[ignore = "long: for the soak"]
fn every_counter_is_that_of_the_timed_run_on_long_recordings() {
    compare_on_all_recordings(LONG);
}

fn compare_on_all_recordings(requests: u64) {
    let systems: Vec<&str> = compared().chain(OTHERS).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    let files = std::fs::read_dir(folder).expect("the recordings");
    let files = files.map(|file| file.expect("a file").path().display().to_string());
    let mut traces: Vec<String> = files.filter(|file| file.ends_with(".imbrex.xz")).collect();
    traces.push("synthetic:wdev-like/256".to_string());
    assert!(traces.len() > 6);
    let mut rewritten = 0;
    for trace in &traces {
        let timed = report(&systems, trace, ReplayMode::ClosedLoop { depth: 1 }, requests);
        let counted = report(&systems, trace, ReplayMode::Untimed, requests);
        rewritten += counted.runs.iter().map(|run| run.rewrites.bands_rewritten).sum::<u64>();
        let mut found = Vec::new();
        for ((counted, timed), system) in runs(&counted).iter().zip(&runs(&timed)).zip(&systems) {
            assert!(counted["nodes"].as_object().is_some_and(|nodes| !nodes.is_empty()));
            differences(counted, timed, system, &mut found);
        }
        assert!(found.is_empty(), "{trace}: {found:#?}");
    }
    assert!(rewritten > 1000, "{rewritten} bands rewritten");
}

#[test]
fn a_report_of_counters_has_no_times_in_any_of_its_forms() {
    let systems = ["smr-only", "lru", "pore"];
    let report = report(&systems, "synthetic:wdev-like/256", ReplayMode::Untimed, REQUESTS);
    let violations = schema_violations(&report);
    assert!(violations.is_empty(), "{violations:#?}");
    let mut found = Vec::new();
    runs(&report).iter().for_each(|run| keys(run, &mut found));
    let is_time = |key: &&String| ["_s", "_ms", "_ns"].iter().any(|unit| key.ends_with(unit));
    assert_eq!(found.iter().find(is_time), None);
    let has_key = |key: &str| found.iter().any(|known| known == key);
    assert!(has_key("write_hits") && has_key("bands_rewritten") && !has_key("figures"));
    let table = report.to_table(TableStyle::Plain);
    assert!(table.contains("rewritten") && !table.contains("finish"), "{table}");
    let files: Vec<String> = report.to_csv().into_iter().map(|(name, _)| name).collect();
    assert_eq!(files, ["results.csv", "summary.csv", "io.csv", "nodes.csv"]);
    let page = report.to_html();
    assert!(page.contains("untimed") && !page.contains("99.9th"));
}

#[test]
fn a_stack_whose_counters_depend_on_time_is_refused_by_the_key() {
    for (system, words) in [
        ("st5000as0011", "node `translation`: idle_after = \"1 s\" cleans bands when"),
        ("lru-archive", "idle_after = \"1 s\""),
        ("idler", "blocking_slice = \"500 ms\""),
        ("four-disks", "kind = \"scheduler\""),
    ] {
        let trace = "synthetic:uniform-random-write/1000";
        let error =
            batch(&[system], trace, ReplayMode::Untimed, REQUESTS, false).run(&|_| ()).unwrap_err();
        assert!(matches!(error, RunError::Config(_)), "{error}");
        let error = error.to_string();
        assert!(error.starts_with("--untimed: system `") && error.contains(words), "{error}");
        assert!(error.contains("; accepted: "), "{error}");
    }
}
