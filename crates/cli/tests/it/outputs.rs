//! What names an output is looked at before the work begins, and what was finished is kept when a signal
//! ends the work.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn imbrex(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    command.args(arguments).current_dir(folder);
    command
}

fn output(folder: &Path, arguments: &[&str]) -> Output {
    imbrex(folder, arguments).output().expect("it starts")
}

/// The names of what is in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
    names.sort();
    names
}

const EXPERIMENT: &str = r#"
name = "small"
title = "a test"
size = "8 GiB"
systems = ["cmr-only", "lru"]

[[workload]]
name = "short"
path = "synthetic:uniform-random-write"
scale = 1000

[[workload]]
name = "long"
path = "synthetic:uniform-random-write"
fit = "wrap"
"#;

const JOB: &str = "[job]\ndirect=1\nrw=randread\nbs=4k\nsize=1m\nwrite_lat_log=missing/log\n";

/// Each has something else wrong as well, which comes to light when the work begins.
#[test]
fn an_output_that_cannot_be_written_is_refused_before_anything_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("file"), "").expect("a file");
    fs::write(folder.join("job.fio"), JOB).expect("a file");
    let experiment = EXPERIMENT.replace("synthetic:uniform-random-write", "none.csv");
    fs::write(folder.join("small.toml"), experiment).expect("a file");
    let before = names(folder);
    for (arguments, option) in [
        ("compare --trace none.csv --out file/out", "--out file/out"),
        ("compare --trace none.csv --out file", "--out file"),
        ("run small.toml --out file/out", "--out file/out"),
        ("reproduce nobody --out file/out", "--out file/out"),
        (
            "drive bench none --html missing/a.html",
            "--html missing/a.html",
        ),
        ("drive bench none --html .", "--html ."),
        (
            "trace info none.csv --html missing/a.html",
            "--html missing/a.html",
        ),
        (
            "trace convert none.csv missing/a.spc",
            "OUTPUT missing/a.spc",
        ),
        (
            "trace combine none.csv -o missing/a.spc",
            "--output missing/a.spc",
        ),
        (
            "trace combine none.csv -o missing/a.spc --split 2 --by address",
            "--output missing/a-1.spc",
        ),
        ("trace synth none missing/a.spc", "OUTPUT missing/a.spc"),
        (
            "drive fio st8000as0002 job.fio --scale 1024",
            "write_lat_log missing/log.log",
        ),
    ] {
        let words: Vec<&str> = arguments.split(' ').collect();
        let output = output(folder, &words);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments}: {error}");
        assert!(error.starts_with(&format!("imbrex: {option}: ")), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(output.stdout.is_empty(), "{arguments}");
        assert_eq!(names(folder), before, "{arguments}");
    }
}

#[test]
fn a_folder_that_can_be_made_is_made_when_there_is_something_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = ["--out", "a/b/c"];
    let none = ["compare", "--trace", "none.csv"];
    let failed = output(folder.path(), &[&none[..], &out].concat());
    let error = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(error.contains("none.csv"), "{error}");
    assert!(names(folder.path()).is_empty());
    let one = "compare --trace synthetic:one-block/1000 --systems cmr-only";
    let one: Vec<&str> = one.split(' ').collect();
    let made = output(folder.path(), &[&one[..], &out].concat());
    assert!(made.status.success());
    assert!(folder.path().join("a/b/c/report.html").is_file());
}

#[test]
fn runs_that_were_finished_are_kept_when_a_signal_ends_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("small.toml"), EXPERIMENT).expect("a file");
    let arguments = ["run", "small.toml", "--jobs", "1", "--out", "out"];
    let mut command = imbrex(folder.path(), &arguments);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let mut told = || lines.next().expect("a line").expect("text");
    let short = "synthetic:uniform-random-write/1000";
    assert_eq!(told(), format!("  done: 1 of 4: {short}, cmr-only"));
    assert_eq!(told(), format!("  done: 2 of 4: {short}, lru"));
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it runs");
    let rest: Vec<String> = lines.map(|line| line.expect("text")).collect();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{rest:?}");
    assert_eq!(
        rest,
        [
            "results are in out",
            "imbrex: stopped; 2 not run to the end:",
            "  synthetic:uniform-random-write, cmr-only",
            "  synthetic:uniform-random-write, lru",
        ]
    );
    assert_eq!(names(&folder.path().join("out")), ["short"]);
    let report = fs::read_to_string(folder.path().join("out/short/report.json"));
    let report: serde_json::Value = serde_json::from_str(&report.expect("a file")).expect("JSON");
    assert_eq!(report["runs"].as_array().map(Vec::len), Some(2));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        table.contains("\ncmr-only ") && table.contains("\nlru "),
        "{table}"
    );
}
