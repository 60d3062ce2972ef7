//! `verdict`: agrees with `compare`, says when cleaning is left out, and names commands that give its figures.

use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Standard output of a command that succeeds, or the one line of one that fails.
fn imbrex(folder: &Path, arguments: &str) -> Result<String, String> {
    let run = Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .expect("the command starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    match run.status.code() {
        Some(0) => Ok(text(run.stdout)),
        Some(1 | 2) => {
            assert!(run.stdout.is_empty(), "{arguments}: nothing is said of what failed");
            Err(text(run.stderr))
        }
        other => panic!("{arguments}: {other:?}: {}", text(run.stderr)),
    }
}

fn json(folder: &Path, arguments: &str) -> Value {
    let said = imbrex(folder, &format!("{arguments} --json"));
    serde_json::from_str(&said.unwrap_or_else(|error| panic!("{arguments}: {error}")))
        .expect("JSON")
}

/// Writes of 4 KiB, `every_ms` apart, to blocks of a long range in an order that repeats none.
fn scattered(folder: &Path, writes: u64, every_ms: u64) {
    const BLOCKS: u64 = 50_000_017;
    let mut text = String::new();
    for number in 0..writes {
        let time = 128_166_386_787_582_087 + number * every_ms * 10_000;
        let block = number * 30_011_903 % BLOCKS;
        let _ = writeln!(text, "{time},h,0,Write,{},4096,1", block * 4096);
    }
    std::fs::write(folder.join("t.csv"), text).expect("a file");
}

/// The figures of a run that a verdict gives are those of the report that its command makes.
fn check_command(folder: &Path, served: &Value) {
    let command = served["command"].as_str().expect("a command");
    let arguments = command.strip_prefix("imbrex ").expect("of this program");
    let report = json(folder, arguments);
    let run = &report["runs"][0];
    for (ours, theirs) in [
        (&served["mean_ms"], &run["response_ms"]["mean"]),
        (&served["longest_ms"], &run["response_ms"]["max"]),
        (&served["keeps_up"], &run["keeps_up"]),
        (&served["bands_rewritten"], &run["bands_rewritten"]),
    ] {
        assert!(!ours.is_null() && ours == theirs, "{command}: {ours} and {theirs}");
    }
}

#[test]
fn two_hours_that_fit_a_log_once_keep_up_until_it_is_full() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    // 180,000 entries of 200,000 in two hours; cleaning takes half of the day.
    scattered(folder, 180_000, 40);
    let verdict = json(folder, "verdict t.csv --drive wd40efax --no-cache --out out");
    let drive = &verdict["drives"][0];
    assert_eq!(drive["as_recorded"]["keeps_up"], true);
    assert_eq!(drive["as_recorded"]["bands_rewritten"], 0);
    check_command(folder, &drive["as_recorded"]);
    let over = &drive["over"];
    check_command(folder, over);
    assert_eq!(over["rounds"], 3);
    assert!(over["bands_rewritten"].as_u64() > Some(0), "the log was full");
    let full_after_s = over["log_full_after_s"].as_f64().expect("it was full");
    // 200,000 writes of which each takes an entry, in buckets of at most 1/256 of six hours.
    assert!((7_900.0..=8_100.0).contains(&full_after_s), "{full_after_s}");
    let needed = drive["cleaning"]["needed_h_per_day"].as_f64().expect("bands were rewritten");
    assert!((1.0..24.0).contains(&needed), "{needed}");
    assert_eq!(verdict["caches"], serde_json::json!([]));
    let page = std::fs::read_to_string(folder.join("out/verdict.html")).expect("a page");
    assert!(page.contains("<h2>Drives</h2>") && page.contains("wd40efax"));

    // One round leaves cleaning out, and both commands say so.
    let said = imbrex(folder, "verdict t.csv --drive wd40efax --no-cache --requests-max 180000");
    let said = said.expect("a verdict").replace('\n', " ");
    assert!(said.contains("No band was rewritten: the response times exclude cleaning."), "{said}");
    let said = imbrex(folder, "compare --trace t.csv --systems wd40efax --open-loop");
    let said = said.expect("a comparison").replace('\n', " ");
    assert!(said.contains("wd40efax keeps up with the time stamps."), "{said}");
    assert!(said.contains("these figures exclude cleaning"), "{said}");
}

#[test]
fn a_drive_that_falls_behind_is_told_by_verdict_and_compare() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    scattered(folder, 3_000, 1);
    let verdict = json(folder, "verdict t.csv --drive wd40efax --drive wd-4tb-7200 --no-cache");
    for drive in verdict["drives"].as_array().expect("drives") {
        check_command(folder, &drive["as_recorded"]);
    }
    let drive = &verdict["drives"][1];
    assert_eq!(drive["outcome"], "falls-behind");
    assert!(drive["over"].is_null(), "there is no log");
    let said = imbrex(folder, "compare --trace t.csv --systems wd-4tb-7200 --open-loop");
    assert!(said.expect("a comparison").contains("Fall behind the time stamps: wd-4tb-7200 ("));
}

#[test]
fn the_advised_cache_is_near_the_best_of_all_ready_made_stacks() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/compile.imbrex.xz");
    let words = format!("verdict {trace} --limit 900 --cache 2% --drive st8000as0002");
    let verdict = json(folder, &words);
    let best = &verdict["advice"]["best"];
    let mean_ms = best["mean_ms"].as_f64().expect("a mean");
    check_command(folder, best);
    let size = best["cache_bytes"].as_u64().expect("a size") / 1024;
    let mut tried = Vec::new();
    for (systems, key) in [
        ("lru,lru-band,pore-*f,pore,ride,*-archive", "cache"),
        ("idler-buffer,cmr-buffer", "buffer"),
    ] {
        let report = json(
            folder,
            &format!(
                "compare --trace {trace} --limit 900 --open-loop --systems {systems} --set {key}.capacity={size}KiB"
            ),
        );
        for run in report["runs"].as_array().expect("runs") {
            let other_ms = run["response_ms"]["mean"].as_f64().expect("a mean");
            let system = run["system"].as_str().expect("a name").to_string();
            assert!(
                mean_ms <= other_ms * 1.1,
                "{system} has {other_ms}, the advised one {mean_ms}"
            );
            tried.push(system);
        }
    }
    let trials = verdict["caches"].as_array().expect("trials");
    let known: Vec<&str> = trials.iter().filter_map(|trial| trial["system"].as_str()).collect();
    for system in &known {
        assert!(tried.iter().any(|it| it == system), "{system} is not in the test");
    }
    assert!(tried.iter().all(|system| known.contains(&system.as_str())), "{known:?}");
}

#[test]
fn what_cannot_be_judged_is_refused_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    scattered(folder, 3, 1);
    std::fs::write(folder.join("empty.csv"), "").expect("a file");
    std::fs::write(
        folder.join("timeless.txt"),
        "fio version 2 iolog\nx add\nx open\nx write 0 4096\n",
    )
    .expect("a file");
    for (arguments, part) in [
        (
            "verdict t.csv --drive hc620-14tb",
            "--drive hc620-14tb: its zones must be written in sequence",
        ),
        ("verdict t.csv --drive wd40efx", "did you mean `wd40efax`?"),
        (
            "verdict t.csv --drive wd40efax --drive wd40efax",
            "--drive wd40efax: it is there twice; accepted: each once",
        ),
        ("verdict -", "`-`: a verdict reads the trace several times"),
        ("verdict missing.csv", "missing.csv"),
        ("verdict t.csv --out t.csv", "--out t.csv: t.csv is no folder"),
    ] {
        let error = imbrex(folder, arguments).expect_err("it is refused");
        assert!(error.contains(part) && error.lines().count() == 1, "{arguments}: {error}");
    }
    for file in ["empty.csv", "timeless.txt"] {
        let error = imbrex(folder, &format!("verdict {file}")).expect_err("it is refused");
        assert!(error.contains(file) && error.lines().count() == 1, "{file}: {error}");
    }
}
