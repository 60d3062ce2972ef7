//! Experiments that are stopped before their end.

use imbrex_sim::experiment::{Experiment, Found, Outcome, Watch, execute};
use imbrex_sim::progress::{Event, Step};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

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
    let (told, outcomes) = all_stopped_after(runs, &[EXPERIMENT]);
    let [outcome] = <[Outcome; 1]>::try_from(outcomes).expect("one outcome");
    (told, outcome)
}

/// The same of several experiments.
fn all_stopped_after(runs: usize, experiments: &[&str]) -> (Vec<String>, Vec<Outcome>) {
    let parse = |text: &&str| Experiment::parse("test.toml", text, Path::new(""));
    let experiments = experiments.iter().map(parse).collect::<Result<Vec<_>, _>>();
    let experiments = experiments.expect("they are right");
    let (told, stop) = (Mutex::new(Vec::new()), AtomicBool::new(runs == 0));
    let progress = |step: &Step<'_>| {
        if step.event == Event::Begins {
            return;
        }
        let mut told = told.lock().expect("no holder panics");
        told.push(step.to_string());
        stop.store(told.len() == runs, Ordering::Relaxed);
    };
    let watch = Watch { progress: &progress, stop: &stop, finished: None };
    let outcomes = execute(&experiments, &[], None, 1, &watch).expect("it runs");
    (told.into_inner().expect("no holder panics"), outcomes)
}

/// The names of what is left.
fn left(outcome: &Outcome) -> Vec<&str> {
    outcome.left.iter().map(|it| it.name.as_str()).collect()
}

/// Workloads with the labels of their runs.
fn runs(outcome: &Outcome) -> Vec<(String, Vec<String>)> {
    let of = outcome.workloads.iter().map(|workload| match &workload.found {
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
        left(&outcome),
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

#[test]
fn the_report_of_a_stopped_run_says_what_is_left_of_its_workload() {
    let (_, outcome) = stopped_after(2);
    let Found::Runs(report) = &outcome.workloads[0].found else {
        panic!("runs");
    };
    let first_left = "synthetic:uniform-random-write/1000, lru capacity=4MiB";
    assert_eq!(report.left, [first_left]);
    let (_, outcome) = stopped_after(3);
    let Found::Runs(report) = &outcome.workloads[0].found else {
        panic!("runs");
    };
    assert!(report.left.is_empty(), "the other workload alone is left");
    assert_eq!(outcome.left.len(), 3);
}

#[test]
fn a_run_that_two_experiments_share_is_left_once() {
    let other = EXPERIMENT.replace("\"cmr-only\", \"lru\"", "\"lru\", \"pore\"");
    let (told, outcomes) = all_stopped_after(1, &[EXPERIMENT, &other]);
    assert_eq!(told, ["1 of 10: synthetic:uniform-random-write/1000, cmr-only"]);
    let numbers = outcomes.iter().flat_map(|outcome| &outcome.left);
    let numbers: Vec<usize> = numbers.map(|it| it.number).collect();
    assert_eq!(numbers.len(), 5 + 8, "each names its own");
    let mut distinct = numbers.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct, (1..10).collect::<Vec<_>>(), "10 less the one done");
}

#[test]
fn a_run_that_failed_is_not_told_and_loses_no_other_when_a_signal_comes() {
    let failing = EXPERIMENT.replacen("synthetic:uniform-random-write", "none.csv", 1);
    let failing = failing.replacen("scale = 1000", "", 1);
    let (told, outcomes) = all_stopped_after(1, &[&failing]);
    let done = "synthetic:uniform-random-write/2000, cmr-only";
    assert_eq!(told, [format!("1 of 6: {done}")]);
    let kept = vec!["cmr-only".to_string()];
    assert_eq!(runs(&outcomes[0]), [("second".to_string(), kept)]);
    let left = &outcomes[0].left;
    assert_eq!(left.len(), 5);
    for failed in &left[..3] {
        let error = failed.error.as_ref().expect("it failed");
        assert!(failed.name.starts_with("none.csv, ") && error.contains("none.csv"));
    }
    assert!(left[3..].iter().all(|it| it.error.is_none()), "{left:?}");
}

const ANALYSIS: &str = r#"
name = "small"
title = "a test"

[analysis]
kind = "characteristics"

[[workload]]
path = "synthetic:uniform-random-write"
scale = 1000

[[workload]]
name = "second"
path = "synthetic:uniform-random-write"
scale = 500
"#;

#[test]
fn looks_at_traces_are_counted_told_and_stopped_as_runs_are() {
    let (first, second) = (
        "synthetic:uniform-random-write/1000, characteristics",
        "synthetic:uniform-random-write/500, characteristics",
    );
    let (told, outcomes) = all_stopped_after(usize::MAX, &[ANALYSIS]);
    let expected = [format!("1 of 2: {first}"), format!("2 of 2: {second}")];
    assert_eq!(told, expected);
    assert_eq!(outcomes[0].workloads.len(), 2);
    let (told, outcomes) = all_stopped_after(1, &[ANALYSIS]);
    assert_eq!(told, [format!("1 of 2: {first}")]);
    assert_eq!(outcomes[0].workloads.len(), 1);
    assert_eq!(left(&outcomes[0]), [second]);
}

/// Of which every pass takes far longer than a test waits.
const LONG: &str = r#"
name = "long"
description = "writes without end"
seed = 1

[uniform-random]
requests = 300_000_000
footprint_bytes = 4_294_967_296
request_bytes = 4096
write_percent = 100.0
interval_us = 1
"#;

/// What an experiment does with a long workload, and the key that it needs there.
const UNDER_WAY: [(&str, &str); 6] = [
    ("[analysis]\nkind = \"characteristics\"", ""),
    (
        "[analysis]\nkind = \"direct-write\"\nbands = \"uniform:17MiB..36MiB\"\npersistent_cache = \"1 %\"",
        "",
    ),
    ("[analysis]\nkind = \"movement\"\nbands = [[200, 200]]\nbuffers = [\"64MiB\"]", ""),
    // A pass over what is touched, before the first run.
    ("systems = [\"lru\"]", ""),
    // A pass over what is looked up.
    (
        "systems = [\"lru\"]\n[set]\n\"cache.policy\" = \"opt\"\n\"cache.capacity\" = \"1MiB\"\n\"translation.persistent_cache\" = \"1MiB\"",
        "",
    ),
    // A pass to the highest address.
    ("systems = [\"cmr-only\"]", "fit = \"scale\""),
];

#[test]
fn what_is_under_way_is_given_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let recipe = folder.path().join("long.toml");
    std::fs::write(&recipe, LONG).expect("a file");
    let path = format!("synthetic:{}", recipe.display());
    for (what, key) in UNDER_WAY {
        let text = format!(
            "name = \"long\"\ntitle = \"a test\"\n{what}\n[[workload]]\npath = \"{path}\"\n{key}\n"
        );
        let experiment = Experiment::parse("test.toml", &text, Path::new(""));
        let experiment = experiment.expect("it is right");
        let stop = AtomicBool::new(false);
        let progress = |step: &Step<'_>| assert_eq!(step.event, Event::Begins);
        let watch = Watch { progress: &progress, stop: &stop, finished: None };
        let started = Instant::now();
        let outcomes = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                stop.store(true, Ordering::Relaxed);
            });
            execute(&[experiment], &[], None, 1, &watch).expect("it is stopped")
        });
        let took = started.elapsed();
        assert!(took < Duration::from_secs(5), "{what}: {took:?}");
        assert!(outcomes[0].workloads.is_empty(), "{what}");
        assert_eq!(outcomes[0].left.len(), 1, "{what}");
    }
}
