//! `imbrex drive fio` as a user calls it.

use crate::served::status_of;
use std::path::Path;
use std::process::{Command, Output};

fn fio(folder: &Path, job: &str, args: &[&str]) -> Output {
    std::fs::write(folder.join("job.fio"), job).expect("a temporary folder");
    Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .current_dir(folder)
        .args(["drive", "fio"])
        .args(args)
        .arg("job.fio")
        .output()
        .expect("the program runs")
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const READS: &str = "[reads]\nrw=randread\nnumber_ios=100\ndirect=1\nwrite_lat_log=reads\n";

#[test]
fn a_job_runs_on_a_drive_and_leaves_its_logs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = fio(folder.path(), READS, &["st5000as0011", "--scale", "64"]);
    assert!(output.status.success(), "{}", words(&output.stderr));
    assert_eq!(words(&output.stderr), "  done: 1 of 1: reads\n");
    let summary = words(&output.stdout);
    assert!(summary.starts_with("reads: (groupid=0, jobs=1): err= 0"), "{summary}");
    assert!(summary.contains("seed 1, scale 64"), "{summary}");
    let log = std::fs::read_to_string(folder.path().join("reads_lat.1.log")).expect("a log");
    assert_eq!(log.lines().count(), 100);
}

#[test]
fn jobs_that_fill_no_log_say_so_and_what_would() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let job = |size: &str| format!("[w]\nrw=randwrite\nbs=8k\nnumber_ios=2000\ndirect=1\n{size}");
    // Where all of a drive is written there is no smaller drive for the same job.
    for (size, option) in [("size=4g\n", "--scale "), ("", "--set translation.persistent_cache=")] {
        let run = |args: &[&str]| {
            let output = fio(folder.path(), &job(size), args);
            assert!(output.status.success(), "{}", words(&output.stderr));
            words(&output.stdout)
        };
        let text = run(&["st8000as0002"]);
        let line = text.lines().last().expect("a line");
        let start = "st8000as0002: the log never filled (0.8 % in use at the end): these figures exclude \
                     cleaning; ";
        assert!(line.starts_with(start), "{line}");
        let json = run(&["st8000as0002", "--json"]);
        let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let said = &document["imbrex"]["no_cleaning"];
        assert_eq!(said["log_fill"], 0.008);
        let would_show = said["would_show"].as_str().expect("an option");
        assert!(would_show.starts_with(option), "{would_show}");
        assert!(line.ends_with(&format!("; {would_show} would show it.")), "{line}");
        let mut args = vec!["st8000as0002"];
        args.extend(would_show.split(' '));
        let cleaned = run(&args);
        assert!(!cleaned.contains("exclude cleaning"), "{cleaned}");
    }
}

#[test]
fn a_document_is_the_same_whenever_it_is_made() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let args = ["pore", "--json", "--size", "4GiB", "--set", "cache.capacity=16MiB"];
    let job = "[mix]\nrw=randrw\nnumber_ios=2000\nsize=1g\n";
    let first = fio(folder.path(), job, &args);
    assert!(first.status.success(), "{}", words(&first.stderr));
    assert!(words(&first.stderr).contains("without direct=1"));
    let document: serde_json::Value = serde_json::from_slice(&first.stdout).expect("JSON");
    assert_eq!(document["imbrex"]["device_bytes"], 4u64 << 30);
    assert_eq!(document["jobs"][0]["jobname"], "mix");
    assert_eq!(fio(folder.path(), job, &args).stdout, first.stdout);
}

#[test]
fn what_is_wrong_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (job, args, expected) in [
        ("[a]\nverify=md5\n", &["cmr-500gb-7200"][..], "job.fio:2: verify=md5: refused"),
        (READS, &["no-such-drive"], "no-such-drive"),
        (READS, &["cmr-500gb-7200", "--size", "9TB"], "size: 9000000000000 B is more"),
        (READS, &["cmr-500gb-7200", "--set", "cache.capacity=1MiB"], "has no node `cache`"),
    ] {
        let output = fio(folder.path(), job, args);
        let error = words(&output.stderr);
        assert_eq!(output.status.code(), status_of(&error), "{error}");
        assert!(error.contains(expected), "{error}");
    }
    let output = fio(folder.path(), READS, &["cmr-500gb-7200", "--scale", "0"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_node_for_each_source_takes_no_job() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = fio(folder.path(), READS, &["dedicated"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        words(&output.stderr),
        "imbrex: node `array`: kind = \"dedicated\" takes no job: its requests have one address space and no \
         device number to choose a node by; accepted: kind = \"span\"\n"
    );
}
