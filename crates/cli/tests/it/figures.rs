//! The page of the figures and the table of all runs, of `run --out` and `reproduce --out`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const EXPERIMENT: &str = r#"
name = "small"
title = "a < b"
size = "8 GiB"
systems = ["cmr-only"]

[[workload]]
path = "synthetic:uniform-random-write"
name = "one"
scale = 2000

[[workload]]
path = "synthetic:uniform-random-write"
name = "t w o"
scale = 4000

[[plot]]
kind = "bars"
y_label = "time, s"
series = [{ name = "plain", measure = "cmr-only.finish_s" }]
"#;

fn imbrex(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    command.args(arguments).current_dir(folder).env("NO_COLOR", "1").output().expect("it starts")
}

fn succeeds(folder: &Path, arguments: &[&str]) -> String {
    let output = imbrex(folder, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).expect("a file")
}

#[test]
fn a_figure_stands_beside_the_papers_with_what_is_stated_marked() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for out in ["one", "two"] {
        succeeds(folder, &["reproduce", "hwsr", "figure-7", "--out", out]);
    }
    let page = read(folder, "one/index.html");
    assert_eq!(page, read(folder, "two/index.html"));
    assert_eq!(page.matches("<svg").count(), 2, "Figures 7a and 7b");
    for expected in [
        "HWSR (IEEE TPDS 2016)",
        "stated by the paper",
        ">disagrees<",
        "contradict each other",
        "<pre>imbrex reproduce hwsr figure-7</pre>",
        "href=\"hwsr/figure-7/closed_form.html\"",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    for unwanted in ["<script", "http://", "https://", "src="] {
        assert!(!page.contains(unwanted), "{unwanted}");
    }
    let table = read(folder, "one/results.csv");
    assert!(table.starts_with("paper,figure,run,workload,"), "{table}");
}

#[test]
fn a_figure_of_ones_own_has_a_page_and_one_table_of_all_its_workloads() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("small.toml"), EXPERIMENT).expect("a file");
    succeeds(folder, &["run", "small.toml", "--seed", "3", "--out", "out"]);
    let page = read(folder, "out/index.html");
    for expected in [
        "a &lt; b",
        "<svg",
        "<pre>imbrex run small.toml --seed 3</pre>",
        "href=\"one/report.html\"",
        "href=\"t%20w%20o/report.html\"",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    let table = read(folder, "out/results.csv");
    let of_one = read(folder, "out/one/results.csv");
    assert_eq!(table.lines().count(), 3);
    assert!(table.starts_with(&of_one), "its rows are those of each workload:\n{table}\n{of_one}");
}

#[test]
fn a_key_that_no_run_has_is_said_when_the_reports_are_written_and_resume_makes_the_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("small.toml"), EXPERIMENT.replace("finish_s", "finish_min"))
        .expect("a file");
    let output = imbrex(folder, &["run", "small.toml", "--quiet", "--out", "out"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    let expected = "small.toml: [[plot]] 1: `plain`: measure = \"cmr-only.finish_min\": `finish_min` of \
                    `finish_min` is not in a report";
    assert!(error.contains(expected), "{error}");
    assert!(error.contains("--resume goes on with 2 finished runs"), "{error}");
    assert!(folder.join("out/one/report.html").exists() && !folder.join("out/index.html").exists());
    fs::write(folder.join("small.toml"), EXPERIMENT).expect("a file");
    succeeds(folder, &["run", "small.toml", "--resume", "--out", "out"]);
    assert!(folder.join("out/index.html").exists());
}

#[test]
fn a_page_that_could_not_be_written_is_refused_before_the_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("small.toml"), EXPERIMENT).expect("a file");
    fs::create_dir_all(folder.join("out/index.html")).expect("a folder");
    for arguments in [&["run", "small.toml"][..], &["reproduce", "pore", "table1"]] {
        let output = imbrex(folder, &[arguments, &["--out", "out"]].concat());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.starts_with("imbrex: --out out/index.html: it is a folder"), "{error}");
    }
}

#[test]
fn agreements_are_counted_by_paper_by_basis_and_by_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let printed = succeeds(folder.path(), &["reproduce", "hwsr", "figure-7", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(document["papers"][0]["paper"], "hwsr");
    assert_eq!(document["papers"][0]["summary"], document["summary"]);
    let expected = serde_json::json!([{"reason": "paper-arithmetic", "rows": 1, "refuted": true}]);
    assert_eq!(document["reasons"], expected);
    let table = succeeds(folder.path(), &["reproduce", "hwsr", "figure-7"]);
    assert!(table.contains("1 disagree:\n    1 paper-arithmetic: "), "{table}");
}

#[test]
fn a_quick_look_names_what_it_leaves_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let arguments = ["reproduce", "pore", "fig3-smr", "--quick", "--out", "out"];
    let metric = "random writes, persistent cache full";
    let table = succeeds(folder, &arguments);
    let expected = format!("1 left out, which need full size:\n  pore fig3-smr: {metric}\n");
    assert!(table.ends_with(&expected), "{table}");
    let page = read(folder, "out/index.html");
    assert!(page.contains(&format!("<li>pore fig3-smr: {metric}</li>")), "{page}");
    assert!(page.contains("<pre>imbrex reproduce pore fig3-smr --quick</pre>"), "{page}");
    let printed = succeeds(folder, &[&arguments[..4], &["--json"]].concat());
    let document: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(document["rows"], serde_json::json!([]));
    let left_out = serde_json::json!([{"paper": "pore", "figure": "fig3-smr", "metric": metric}]);
    assert_eq!(document["left_out"], left_out);
    let both = imbrex(folder, &["reproduce", "pore", "fig3-smr", "--quick", "--scale", "2"]);
    assert_eq!(both.status.code(), Some(2));
}
