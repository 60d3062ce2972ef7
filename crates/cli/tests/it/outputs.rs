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
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
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
path = "synthetic:long.toml"
"#;

/// A run of it takes seconds: a signal comes before its end.
const LONG: &str = r#"
name = "long"
description = "ten million writes"
seed = 1

[uniform-random]
requests = 10_000_000
footprint_bytes = 4_294_967_296
request_bytes = 4096
write_percent = 100.0
interval_us = 1000
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
        ("drive bench none --html missing/a.html", "--html missing/a.html"),
        ("drive bench none --html .", "--html ."),
        ("trace info none.csv --html missing/a.html", "--html missing/a.html"),
        ("trace convert none.csv missing/a.spc", "OUTPUT missing/a.spc"),
        ("trace combine none.csv -o missing/a.spc", "--output missing/a.spc"),
        (
            "trace combine none.csv -o missing/a.spc --split 2 --by address",
            "--output missing/a-1.spc",
        ),
        ("trace synth none missing/a.spc", "OUTPUT missing/a.spc"),
        ("drive fio st8000as0002 job.fio --scale 1024", "write_lat_log missing/log_clat.1.log"),
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

/// What is there must be open to writing; a folder of its name is not, whoever asks.
#[test]
fn a_file_that_could_not_be_written_over_is_refused_before_the_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let job = JOB.replace("missing/log", "log") + "numjobs=2\nwrite_bw_log=bw\n";
    fs::write(folder.join("job.fio"), job).expect("a file");
    fs::write(folder.join("small.toml"), EXPERIMENT).expect("a file");
    let fio = "drive fio st8000as0002 job.fio --scale 1024";
    for (arguments, in_the_way, option) in [
        (fio, "log_slat.2.log", "write_lat_log log_slat.2.log"),
        (fio, "log_lat.1.log", "write_lat_log log_lat.1.log"),
        (fio, "bw_bw.2.log", "write_bw_log bw_bw.2.log"),
        ("compare --trace none.csv --out out", "out/report.json", "--out out/report.json"),
        ("run small.toml --out out", "out/long/latency.csv", "--out out/long/latency.csv"),
        ("run small.toml --out out", "out/long/disk_areas.csv", "--out out/long/disk_areas.csv"),
        (
            "reproduce pore table1 --out out",
            "out/pore/table1/wdev-like/trace.json",
            "--out out/pore/table1/wdev-like/trace.json",
        ),
    ] {
        let in_the_way = folder.join(in_the_way);
        fs::create_dir_all(&in_the_way).expect("a folder");
        let words: Vec<&str> = arguments.split(' ').collect();
        let output = output(folder, &words);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments}: {error}");
        let expected = format!("imbrex: {option}: it is a folder; ");
        let last = error.lines().last().expect("a line");
        assert!(last.starts_with(&expected), "{error}");
        fs::remove_dir(&in_the_way).expect("an empty folder");
        let _ = fs::remove_dir_all(folder.join("out"));
    }
    // They are the names that are written; and what is not a report is not in the way of one.
    fs::write(folder.join("log_lat.1.log"), "before").expect("a file");
    let words: Vec<&str> = fio.split(' ').collect();
    let output = output(folder, &words);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    let mut expected = vec!["job.fio".to_string(), "small.toml".to_string()];
    for number in [1, 2] {
        for what in ["log_slat", "log_clat", "log_lat", "bw_bw"] {
            expected.push(format!("{what}.{number}.log"));
        }
    }
    expected.sort();
    assert_eq!(names(folder), expected);
    let log = fs::read_to_string(folder.join("log_lat.1.log")).expect("a file");
    assert!(!log.contains("before"));
}

#[test]
fn a_link_to_nothing_is_looked_through_and_nothing_is_made_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, folder.join(name)).expect("a link");
    };
    fs::create_dir(folder.join("there")).expect("a folder");
    link("there/target.spc", "good.spc");
    link("good.spc", "twice.spc");
    link("missing/target.spc", "bad.spc");
    link("round.spc", "round.spc");
    let before = names(folder);
    let convert = |from: &str, to: &str| {
        let failed = output(folder, &["trace", "convert", from, to]);
        String::from_utf8_lossy(&failed.stderr).into_owned()
    };
    for (to, expected) in [
        ("good.spc", "imbrex: none.csv: "),
        ("twice.spc", "imbrex: none.csv: "),
        ("bad.spc", "imbrex: OUTPUT bad.spc: "),
        ("round.spc", "imbrex: OUTPUT round.spc: "),
    ] {
        let error = convert("none.csv", to);
        assert!(error.starts_with(expected), "{to}: {error}");
        assert_eq!(names(folder), before, "{to}");
        assert!(names(&folder.join("there")).is_empty(), "{to}");
    }
    let error = convert("synthetic:one-block/100000", "twice.spc");
    assert_eq!(names(&folder.join("there")), ["target.spc"], "{error}");
    assert_eq!(names(folder), before);
    let is_link = fs::symlink_metadata(folder.join("twice.spc")).expect("a link");
    assert!(is_link.is_symlink());
}

/// Stops an experiment into `out` when two of its four runs are finished. Gives what it says on standard
/// error from then on, and what it prints.
fn stopped_run(folder: &Path, more: &[&str]) -> (Vec<String>, String) {
    fs::write(folder.join("small.toml"), EXPERIMENT).expect("a file");
    fs::write(folder.join("long.toml"), LONG).expect("a file");
    let arguments = ["run", "small.toml", "--jobs", "1", "--out", "out"];
    let mut command = imbrex(folder, &[&arguments[..], more].concat());
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    // Runs that were kept by a command before it are not asked for.
    let mut told = || {
        let mut lines = lines.by_ref().map(|line| line.expect("text"));
        lines.find(|line| !line.contains("left aside")).expect("a line")
    };
    let short = "synthetic:uniform-random-write/1000";
    assert_eq!(told(), format!("  done: 1 of 4: {short}, cmr-only"));
    assert_eq!(told(), format!("  done: 2 of 4: {short}, lru"));
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it runs");
    let rest: Vec<String> = lines.map(|line| line.expect("text")).collect();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{rest:?}");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    (rest, printed)
}

const STOPPING: &str = "imbrex: stopping; a second signal ends the program at once";
const LEFT: [&str; 4] = [
    "imbrex: stopped; 2 not run to the end:",
    "  synthetic:long.toml, cmr-only",
    "  synthetic:long.toml, lru",
    "imbrex: --resume goes on with 2 finished runs in out/finished-runs",
];

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}

fn runs_in(file: &Path) -> Option<usize> {
    let report = json(&fs::read_to_string(file).expect("a file"));
    report["runs"].as_array().map(Vec::len)
}

#[test]
fn runs_that_were_finished_are_kept_when_a_signal_ends_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let (said, table) = stopped_run(folder.path(), &[]);
    assert_eq!(said[..2], [STOPPING, "results are in out"]);
    assert_eq!(said[2..], LEFT);
    let out = folder.path().join("out");
    let found = ["finished-runs", "index.html", "results.csv", "short"];
    assert_eq!(names(&out), found, "no folder of what was not reached");
    let page = fs::read_to_string(out.join("index.html")).expect("a page");
    assert!(page.contains("2 not run:<br>synthetic:long.toml, cmr-only<br>"), "{page}");
    assert_eq!(runs_in(&out.join("short/report.json")), Some(2));
    assert!(table.contains("\ncmr-only ") && table.contains("\nlru "), "{table}");
}

#[test]
fn a_stopped_run_says_so_in_its_document_and_replaces_no_finished_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let file = |name: &str, text: &str| {
        let path = out.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    file("short/report.json", r#"{"runs": []}"#);
    file("long/report.json", "of before");
    let (said, printed) = stopped_run(folder.path(), &["--json"]);
    assert_eq!(said[..2], [STOPPING, "results are in out.stopped"]);
    assert_eq!(
        said[2],
        "imbrex: out has the results of a finished run, which stay; those of the stopped one are in out.stopped"
    );
    assert_eq!(said[3..], LEFT);
    let document = json(&printed);
    let left = LEFT[1..3].iter().map(|line| line.trim());
    let left: Vec<&str> = left.collect();
    assert_eq!(document["left"], serde_json::json!(left));
    assert_eq!(runs_in(&out.join("short/report.json")), Some(0));
    let long = fs::read_to_string(out.join("long/report.json"));
    assert_eq!(long.expect("a file"), "of before");
    let beside = folder.path().join("out.stopped");
    assert_eq!(names(&beside), ["index.html", "results.csv", "short"]);
    assert_eq!(runs_in(&beside.join("short/report.json")), Some(2));

    // One that was stopped itself gives way.
    file("short/report.json", r#"{"runs": [], "left": ["a, lru"]}"#);
    let (said, _) = stopped_run(folder.path(), &[]);
    assert_eq!(said[1], "results are in out");
    assert_eq!(runs_in(&out.join("short/report.json")), Some(2));
}
