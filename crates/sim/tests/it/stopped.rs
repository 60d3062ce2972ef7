//! Experiments that are stopped before their end.

use imbrex_sim::experiment::{Experiment, Found, Outcome, Watch, execute};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

const EXPERIMENT: &str = r#"
name = "small"
title = "a test"
size = "8 GiB"
systems = ["cmr-only", "lru"]

[[workload]]
name = "first"
path = "synthetic:uniform-random-write"
scale = 1000

[[workload]]
name = "second"
path = "synthetic:uniform-random-write"
scale = 2000

[sweep]
"cache.capacity" = ["1MiB", "4MiB"]
"#;

/// What was told, and what was found, when the runs are stopped after so many.
fn stopped_after(runs: usize) -> (Vec<String>, Outcome) {
    let experiment =
        Experiment::parse("test.toml", EXPERIMENT, Path::new("")).expect("it is right");
    let (told, stop) = (Mutex::new(Vec::new()), AtomicBool::new(runs == 0));
    let progress = |text: &str| {
        let mut told = told.lock().expect("no holder panics");
        told.push(text.to_string());
        stop.store(told.len() == runs, Ordering::Relaxed);
    };
    let watch = Watch {
        progress: &progress,
        stop: &stop,
    };
    let outcomes = execute(&[experiment], &[], None, 1, &watch).expect("it runs");
    let [outcome] = <[Outcome; 1]>::try_from(outcomes).expect("one outcome");
    (told.into_inner().expect("no holder panics"), outcome)
}

/// Workloads with the labels of their runs.
fn runs(outcome: &Outcome) -> Vec<(String, Vec<String>)> {
    let of = outcome
        .workloads
        .iter()
        .map(|workload| match &workload.found {
            Found::Runs(report) => {
                let labels = report.runs.iter().map(|run| run.label()).collect();
                (workload.name.clone(), labels)
            }
            other => panic!("{other:?}"),
        });
    of.collect()
}

#[test]
fn progress_names_workload_setting_and_how_many_of_how_many() {
    let (told, outcome) = stopped_after(usize::MAX);
    let workload = |scale: u32| format!("synthetic:uniform-random-write/{scale}");
    let (first, second) = (workload(1000), workload(2000));
    assert_eq!(
        told,
        [
            format!("1 of 6: {first}, cmr-only"),
            format!("2 of 6: {first}, lru capacity=1MiB"),
            format!("3 of 6: {first}, lru capacity=4MiB"),
            format!("4 of 6: {second}, cmr-only"),
            format!("5 of 6: {second}, lru capacity=1MiB"),
            format!("6 of 6: {second}, lru capacity=4MiB"),
        ]
    );
    assert!(outcome.left.is_empty() && outcome.has_several);
}

#[test]
fn finished_runs_are_kept_and_the_others_named() {
    let (told, outcome) = stopped_after(2);
    assert_eq!(told.len(), 2);
    let kept = vec!["cmr-only".to_string(), "lru capacity=1MiB".to_string()];
    assert_eq!(runs(&outcome), [("first".to_string(), kept)]);
    assert!(outcome.has_several, "of which one is left");
    assert_eq!(
        outcome.left,
        [
            "synthetic:uniform-random-write/1000, lru capacity=4MiB",
            "synthetic:uniform-random-write/2000, cmr-only",
            "synthetic:uniform-random-write/2000, lru capacity=1MiB",
            "synthetic:uniform-random-write/2000, lru capacity=4MiB",
        ]
    );
    let (told, outcome) = stopped_after(0);
    assert!(told.is_empty() && outcome.workloads.is_empty());
    assert_eq!(outcome.left.len(), 6);
}
