//! Combined workloads of experiments: sources, seeds, swept keys and what reports say of them.

use crate::report::schema_violations;
use imbrex_report::Report;
use imbrex_sim::experiment::{Experiment, Found, Outcome, Watch, execute};
use imbrex_traces::{RecordingHeader, RecordingWriter, SourceKind, TraceOperation, TraceRecord};
use std::path::Path;

/// Two traces of 60 reads of one block each, 1 MiB apart, in regions that are far apart.
const TWO: &str = r#"
name = "mixed"
title = "a test"
size = "400 GiB"
systems = ["hdd"]

[[workload]]
name = "pair"
combine = { traces = ["near.imbrex", { path = "far.imbrex", limit = 50 }], order = "bursts", burst_requests = 2 }
"#;

/// A folder with the two traces.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, start_mib) in [("near.imbrex", 1), ("far.imbrex", 300 << 10)] {
        let header = RecordingHeader {
            kind: SourceKind::Captured,
            name: name.to_string(),
            description: String::new(),
            device_bytes: 0,
            has_times: true,
        };
        let mut writer = RecordingWriter::new(Vec::new(), &header).expect("memory");
        for number in 0..60 {
            let offset = (start_mib + number) << 20;
            let operation = TraceOperation::Read;
            let record = TraceRecord::new(1000 * number, operation, offset, 4096);
            writer.write(&record).expect("memory");
        }
        let bytes = writer.finish().expect("memory");
        std::fs::write(folder.path().join(name), bytes).expect("a file");
    }
    folder
}

fn parse(text: &str, folder: &Path) -> Experiment {
    Experiment::parse("test.toml", text, folder).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    let result = Experiment::parse("test.toml", text, Path::new(""));
    result.expect_err("it is refused").to_string()
}

fn run(experiment: &Experiment, jobs: usize) -> Outcome {
    let experiments = std::slice::from_ref(experiment);
    let outcomes = execute(experiments, &[], None, jobs, &Watch::nobody());
    outcomes.unwrap_or_else(|error| panic!("{error}")).remove(0)
}

fn report(outcome: &Outcome, workload: usize) -> &Report {
    match &outcome.workloads[workload].found {
        Found::Runs(report) => report,
        Found::Trace(_) | Found::Form(_) => panic!("stacks were run"),
    }
}

/// Busy time of each run of a workload.
fn times(outcome: &Outcome, workload: usize) -> Vec<f64> {
    let runs = &report(outcome, workload).runs;
    runs.iter().map(|run| run.costs.io_time_s.total).collect()
}

#[test]
fn a_report_says_of_what_a_workload_was_combined() {
    let folder = folder();
    let outcome = run(&parse(TWO, folder.path()), 1);
    let report = report(&outcome, 0);
    assert_eq!(schema_violations(report), Vec::<String>::new());
    assert_eq!(report.runs[0].host.requests, 110);
    let value = serde_json::to_value(&report.workload).expect("a report");
    assert_eq!(value["path"], "pair (near.imbrex+far.imbrex)");
    assert_eq!(value["sha256"], serde_json::Value::Null);
    assert_eq!(value["kind"], "captured");
    let combination = &value["combination"];
    assert_eq!(
        combination["parameters"],
        serde_json::json!({"order": "bursts", "burst_requests": 2, "place": "overlay"})
    );
    assert_eq!(combination["sources"].as_array().expect("a list").len(), 2);
    for source in combination["sources"].as_array().expect("a list") {
        assert_eq!(source["kind"], "captured");
        assert_eq!(source["sha256"].as_str().expect("a hash").len(), 64);
    }
}

#[test]
fn seeds_make_workloads_and_equal_seeds_equal_ones() {
    let folder = folder();
    let many = TWO.replace("combine =", "seeds = 3\ncombine =");
    let outcome = run(&parse(&many, folder.path()), 2);
    let names: Vec<&str> = outcome.workloads.iter().map(|w| w.name.as_str()).collect();
    assert_eq!(names, ["pair-1", "pair-2", "pair-3"]);
    let found: Vec<f64> = (0..3).flat_map(|workload| times(&outcome, workload)).collect();
    assert_ne!(found[0], found[1]);
    let third = TWO.replace("burst_requests = 2", "burst_requests = 2, seed = 3");
    assert_eq!(times(&run(&parse(&third, folder.path()), 1), 0), [found[2]]);
}

/// Runs of each length, and the row in which a paper's ratio of two of them stands beside ours.
#[test]
fn swept_keys_of_a_combined_workload_make_runs_and_rows() {
    let folder = folder();
    let swept =
        TWO.replace("combine =", "seeds = 4\ncombine =").replace(", burst_requests = 2", "")
            + r#"
[sweep]
"workload.burst_requests" = [1, 10, "all"]

[[stated]]
metric = "interleaving"
unit = "x"
stated = 1.2
comparison = "at-least"
measure = "hdd[burst_requests=1].io_time_s.total / hdd[burst_requests=all].io_time_s.total"
over = "mean"
"#;
    let experiment = parse(&swept, folder.path());
    let outcome = run(&experiment, 2);
    let mut ratios = Vec::new();
    for workload in 0..4 {
        let report = report(&outcome, workload);
        let labels: Vec<String> = report.runs.iter().map(|run| run.label()).collect();
        let expected = ["hdd burst_requests=1", "hdd burst_requests=10", "hdd burst_requests=all"];
        assert_eq!(labels, expected);
        let combination = report.workload.combination.as_ref().expect("it is combined");
        assert!(!combination.parameters.contains_key("burst_requests"));
        let times = times(&outcome, workload);
        assert!(times[0] > times[1] && times[1] > times[2], "{times:?}");
        ratios.push(times[0] / times[2]);
    }
    let rows = experiment.rows("a paper", "1", &outcome).expect("rows");
    let mean = ratios.iter().sum::<f64>() / 4.0;
    let measured = rows[0].measured.expect("a number");
    assert!((measured - mean).abs() < 1e-9, "{measured} is not the mean of {ratios:?}");
    assert!(rows[0].agrees);
}

#[test]
fn orders_and_placements_are_swept_and_take_what_belongs_to_them() {
    let folder = folder();
    let swept = TWO.replace("burst_requests = 2", "burst_requests = 2, align = \"256 MiB\"")
        + "[sweep]\n\"workload.order\" = [\"bursts\", \"concatenate\"]\n\
           \"workload.place\" = [\"overlay\", \"pack\"]\n\"workload.burst_requests\" = [1, \"all\"]\n";
    let outcome = run(&parse(&swept, folder.path()), 1);
    let labels: Vec<String> = report(&outcome, 0).runs.iter().map(|run| run.label()).collect();
    // One source after another has no bursts, so it runs once for all their lengths.
    let expected = [
        "hdd burst_requests=1 order=bursts place=overlay",
        "hdd burst_requests=1 order=bursts place=pack",
        "hdd order=concatenate place=overlay",
        "hdd order=concatenate place=pack",
        "hdd burst_requests=all order=bursts place=overlay",
        "hdd burst_requests=all order=bursts place=pack",
    ];
    assert_eq!(labels, expected);
    let times = times(&outcome, 0);
    assert_eq!((times[2], times[3]), (times[4], times[5]));
    assert!(times[1] < times[0], "packed blocks are near each other: {times:?}");
}

/// A share of touched bands and a clairvoyant policy read the workload before it is replayed.
#[test]
fn first_passes_and_scales_reach_into_a_combination() {
    let text = r#"
name = "passes"
title = "a test"
size = "4 GiB"
systems = ["lru"]

[[workload]]
name = "both"
scale = 500
combine = { traces = ["synthetic:uniform-random-write", "synthetic:read-hot/900"], place = "pack" }

[set]
"cache.policy" = "opt"
"translation.bands" = "fixed:18MiB"
"cache.capacity" = "1/4 of touched bands"
"#;
    let outcome = run(&parse(text, Path::new("")), 1);
    let report = report(&outcome, 0);
    assert_eq!(serde_json::to_value(report.workload.kind).expect("a kind"), "synthetic");
    let combination = report.workload.combination.as_ref().expect("it is combined");
    let paths: Vec<&str> = combination.sources.iter().map(|s| s.path.as_str()).collect();
    assert_eq!(paths, ["synthetic:uniform-random-write/500", "synthetic:read-hot/900"]);
    assert!(report.runs[0].inputs.footprint_bytes.is_some_and(|bytes| bytes > 0));
}

#[test]
fn what_does_not_fit_a_combination_is_refused() {
    let plain = TWO.replace(
        "combine = { traces = [\"near.imbrex\", { path = \"far.imbrex\", limit = 50 }], order = \"bursts\", burst_requests = 2 }",
        "path = \"near.imbrex\"",
    );
    let swept = "[sweep]\n\"workload.burst_requests\" = [1]\n";
    let said = [
        (
            plain.clone() + swept,
            "test.toml: [sweep] workload.burst_requests: no workload is combined; accepted: a [[workload]] with `combine`",
        ),
        (
            TWO.to_string() + "[sweep]\n\"workload.burst\" = [1]\n",
            "test.toml: [sweep] workload.burst: is no key of a combined workload",
        ),
        (
            TWO.to_string() + "[sweep]\n\"workload.order\" = [\"sideways\"]\n",
            "test.toml: [sweep] workload.order: \"sideways\": unknown variant",
        ),
        (
            TWO.to_string() + &swept.replace("[1]", "[0]"),
            "test.toml: [sweep] workload.burst_requests: 0: burst_requests = 0; accepted: a number of 1 or more, or \"all\"",
        ),
        (
            plain.replace("path =", "seeds = 2\npath ="),
            "test.toml: [[workload]] `pair`: seeds = 2: nothing is drawn; accepted: together with `combine`",
        ),
        (
            TWO.replace("combine =", "seeds = 0\ncombine ="),
            "test.toml: [[workload]] `pair`: seeds = 0: accepted: 1 to 1000",
        ),
        (
            TWO.replace("combine =", "path = \"x\"\ncombine ="),
            "test.toml: [[workload]] `pair`: `path` and `combine`; accepted: `path` of one of the traces",
        ),
        (
            TWO.replace("combine =", "scale = 2\ncombine ="),
            "test.toml: [[workload]] `pair`: scale = 2: only a `synthetic:` trace can be scaled",
        ),
        (
            plain.replace("path = \"near.imbrex\"", ""),
            "test.toml: [[workload]] `pair`: there is neither `path` nor `combine`; accepted: one of them",
        ),
    ];
    for (text, expected) in said {
        let found = refused(&text);
        assert!(found.starts_with(expected), "{found}");
    }
    let folder = folder();
    let merged = TWO.replace("\"bursts\"", "\"merge\"");
    let experiments = [parse(&merged, folder.path())];
    let error =
        execute(&experiments, &[], None, 1, &Watch::nobody()).expect_err("bursts of a merge");
    assert_eq!(
        error.to_string(),
        "test.toml: [[workload]] `pair`: burst_requests = 2: the order merge has no bursts; accepted: the order bursts"
    );
}
