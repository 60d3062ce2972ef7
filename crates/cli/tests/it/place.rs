//! `imbrex place`: which disk should hold the log of which volume.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn imbrex(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    command.args(arguments).current_dir(folder).output().expect("it starts")
}

fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let output = imbrex(folder, arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).expect("text")
}

/// Two volumes: the first is written and the second is read, so that one has the log that is used and the other the
/// home.
const EXPERIMENT: &str = r#"
name = "t"
title = "a test"
systems = ["split"]

[workload]
queue_depth = 4
fit = "scale"

[workload.combine]
traces = [
  { path = "synthetic:uniform-random-write", limit = 600 },
  { path = "synthetic:read.toml", limit = 600 },
]
order = "shuffle"
place = "separate"
"#;

const READ: &str = r#"
name = "read"
description = "reads"
seed = 1

[uniform-random]
requests = 1000
footprint_bytes = 4_294_967_296
request_bytes = 4096
write_percent = 0.0
interval_us = 1000
"#;

#[test]
fn what_it_prints_is_taken_by_an_experiment_and_evens_out_the_loads() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("read.toml"), READ).expect("a file");
    fs::write(folder.join("t.toml"), EXPERIMENT).expect("a file");
    assert!(imbrex(folder, &["run", "t.toml", "--out", "before"]).status.success());
    // The log of volume 0 lies on disk 1, with the home that is read.
    let placed = imbrex(folder, &["place", "before/report.json"]);
    assert!(placed.status.success(), "{placed:?}");
    let placed = String::from_utf8(placed.stdout).expect("text");
    assert!(placed.starts_with("# disk      busy now        then\n# disk-0 "), "{placed}");
    let set = &placed[placed.find("[set]").expect("something to set")..];
    fs::write(folder.join("placed.toml"), format!("{EXPERIMENT}\n{set}")).expect("a file");
    assert!(imbrex(folder, &["run", "placed.toml", "--out", "after"]).status.success());
    let finish_s = |path: &str| {
        let text = fs::read(folder.join(path).join("report.json")).expect("a report");
        let report: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        report["runs"][0]["finish_s"].as_f64().expect("a time")
    };
    let (before, after) = (finish_s("before"), finish_s("after"));
    assert!(after < 0.8 * before, "{after} s instead of {before} s");
    let again = imbrex(folder, &["place", "after/report.json"]);
    let again = String::from_utf8(again.stdout).expect("text");
    assert!(again.ends_with("# The logs are where these loads would have them.\n"), "{again}");
}

#[test]
fn a_report_that_says_nothing_of_logs_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let systems = ["split", "cmr-only"].join(",");
    let compare = ["compare", "--trace", "synthetic:hm-like/64", "--limit", "50", "--out", "o"];
    let compare = [&compare[..], &["--systems", &systems]].concat();
    assert!(imbrex(folder, &compare).status.success());
    fs::write(folder.join("cut.json"), "{\"runs\": [").expect("a file");
    let several = "imbrex: o/report.json: 2 runs; accepted with --run: split, cmr-only\n";
    let other = "imbrex: o/report.json: no run `lru`; accepted with --run: split, cmr-only\n";
    let none = "imbrex: o/report.json: the stack of `cmr-only` has 0 volumes whose log is a slice";
    for (arguments, words) in [
        (&["place", "o/report.json"][..], several),
        (&["place", "o/report.json", "--run", "lru"], other),
        (&["place", "o/report.json", "--run", "cmr-only"], none),
        (&["place", "cut.json"], "imbrex: cut.json: not a report with the loads of a stack: EOF"),
        (&["place", "missing.json"], "imbrex: missing.json: No such file"),
    ] {
        let said = refusal(folder, arguments);
        assert!(said.starts_with(words), "{said}");
    }
    assert!(imbrex(folder, &["place", "o/report.json", "--run", "split"]).status.success());
}
