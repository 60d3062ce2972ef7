//! `imbrex diff` sets two reports beside each other.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn imbrex(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    command.args(arguments).current_dir(folder).output().expect("it starts")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn compare(folder: &Path, out: &str, capacity: &str) {
    let set = format!("cache.capacity={capacity}");
    let words = [
        "compare",
        "--trace",
        "synthetic:uniform-random-write/1000",
        "--size",
        "8GiB",
        "--systems",
        "lru,smr-only",
        "--set",
        &set,
        "--out",
        out,
        "--quiet",
    ];
    text(&imbrex(folder, &words));
}

#[test]
fn figures_and_settings_that_differ_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    compare(folder, "small", "1MiB");
    compare(folder, "again", "1MiB");
    compare(folder, "large", "64MiB");
    let same = text(&imbrex(folder, &["diff", "small", "again/report.json"]));
    assert!(same.ends_with("2 of 2 runs are the same in every number.\n"), "{same}");
    let differs = text(&imbrex(folder, &["diff", "small", "large", "--html", "page.html"]));
    assert!(differs.contains("settings differ: cache.capacity (1 MiB and 64 MiB)\n"), "{differs}");
    assert!(differs.contains("lru  I/O time, s"), "{differs}");
    assert!(differs.ends_with("1 of 2 runs are the same in every number.\n"), "{differs}");
    assert!(fs::read_to_string(folder.join("page.html")).unwrap().contains("I/O time, s"));
    let document = text(&imbrex(folder, &["diff", "small", "large", "--json"]));
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["schema"], "imbrex.diff/1");
    let [lru, smr_only] = &document["runs"].as_array().unwrap()[..] else { panic!("{document}") };
    assert_eq!((&lru["is_same"], &smr_only["is_same"]), (&false.into(), &true.into()));
    let report = |name: &str| -> serde_json::Value {
        let text = fs::read_to_string(folder.join(name).join("report.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let io_time = |report: &serde_json::Value| report["runs"][0]["io_time_s"]["total"].clone();
    let change = &lru["changes"][0];
    assert_eq!(change["name"], "I/O time");
    assert_eq!(change["before"], io_time(&report("small")));
    assert_eq!(change["after"], io_time(&report("large")));
}

#[test]
fn what_is_no_report_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    compare(folder, "there", "1MiB");
    let report = fs::read_to_string(folder.join("there/report.json")).unwrap();
    fs::write(folder.join("cut.json"), &report[..report.len() / 2]).unwrap();
    fs::write(folder.join("other.json"), r#"{"schema":"imbrex.report/9"}"#).unwrap();
    fs::write(folder.join("empty.json"), r#"{"schema":"imbrex.report/1"}"#).unwrap();
    for (file, expected) in [
        ("gone", "gone: No such file or directory"),
        ("cut.json", "cut.json: is no report: EOF while parsing"),
        ("other.json", "other.json: schema imbrex.report/9 is not imbrex.report/1"),
        ("empty.json", "empty.json: is no report: missing field"),
    ] {
        for words in [["diff", file, "there"], ["diff", "there", file]] {
            let output = imbrex(folder, &words);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains(expected) && said.contains("accepted: a report.json"), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }
}
