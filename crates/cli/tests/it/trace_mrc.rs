//! `imbrex trace mrc` as a user runs it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Two blocks written and read, a write of three blocks, the first block read again.
const TRACE: &str = "0,0,8192,w,0.0\n0,0,8192,r,1.0\n0,80,12288,w,2.0\n0,0,4096,r,3.0\n";

fn mrc(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    command.current_dir(folder).args(["trace", "mrc"]).args(args);
    command.output().expect("the program runs")
}

fn with_trace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("t.spc"), TRACE).expect("written");
    folder
}

/// What a command prints that works.
fn printed(folder: &Path, args: &[&str]) -> String {
    let output = mrc(folder, args);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The message of a command that fails with this status and prints nothing else.
fn refused(folder: &Path, args: &[&str], status: i32) -> String {
    let output = mrc(folder, args);
    let message = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(status), "{args:?}: {message}");
    assert!(output.stdout.is_empty(), "{args:?} printed a result");
    message.lines().next().expect("a line").to_string()
}

#[test]
fn sizes_have_hits_in_every_form() {
    let folder = with_trace();
    let folder = folder.path();
    let sizes = ["t.spc", "--sizes", "8KiB,12KiB,20KiB,1%,100%"];
    let files = ["--json", "--csv", "t.csv", "--html", "t.html"];
    let found: serde_json::Value =
        serde_json::from_str(&printed(folder, &[&sizes[..], &files].concat())).expect("JSON");
    assert_eq!(found["schema"], "imbrex.lru-curve/1");
    assert_eq!((&found["read_blocks"], &found["write_blocks"]), (&3.into(), &5.into()));
    assert_eq!(
        (&found["touched_blocks"], &found["longest_request_blocks"]),
        (&5.into(), &3.into())
    );
    let points = found["points"].as_array().expect("points");
    let blocks: Vec<_> = points.iter().map(|point| point["cache_blocks"].as_u64()).collect();
    assert_eq!(blocks, [2, 3, 5, 1, 5].map(Some));
    let hits: Vec<_> = points.iter().map(|point| point["read_hits"].as_u64()).collect();
    assert_eq!(hits, [None, Some(2), Some(3), None, Some(3)]);
    let csv = fs::read_to_string(folder.join("t.csv")).expect("a file");
    assert_eq!(csv.lines().nth(1), Some("2,,,,,"));
    assert_eq!(csv.lines().nth(3), Some("5,3,0,100,0,37.5"));
    let page = fs::read_to_string(folder.join("t.html")).expect("a file");
    assert!(page.contains("Hits of an LRU cache") && page.contains("<svg"), "no chart");
    let table = printed(folder, &sizes);
    assert!(table.contains(" - *\n"), "{table}");
    assert!(table.contains("* A request of 3 blocks is longer than this cache"), "{table}");
    assert!(!printed(folder, &["t.spc"]).contains('*'), "a default size is too small");
}

#[test]
fn a_limit_and_devices_choose_the_requests() {
    let folder = with_trace();
    let table = printed(folder.path(), &["t.spc", "--limit", "2"]);
    assert!(table.contains("2 records read 2 and write 2 blocks"), "{table}");
    let table = printed(folder.path(), &["t.spc", "--limit", "2", "--devices", "0"]);
    assert!(table.contains("2 records"), "{table}");
}

#[test]
fn wrong_options_say_what_is_accepted() {
    let folder = with_trace();
    let sizes = "accepted: sizes of at least 4 KiB, such as 64MiB, and shares of what is read or written, such as 1%";
    for (option, value, why) in [
        ("--sizes", "0", "`0` is less than a block of 4 KiB"),
        ("--sizes", "1MiB,512B", "`512B` is less than a block of 4 KiB"),
        ("--sizes", "64", "`64` has no unit"),
        ("--sizes", "99999999TB", "`99999999TB` is not a whole number of bytes below 2^64"),
        ("--sizes", "5000000TiB", "`5000000TiB` is more than the 2^62 bytes that traces address"),
        ("--sizes", "200%", "`200%` is not a share"),
        ("--sizes", "1/256 of touched bands", "a trace alone has no bands"),
        ("--sizes", "4MiB,", "`` is not a size"),
    ] {
        let message = refused(folder.path(), &["t.spc", option, value], 2);
        assert!(message.contains(&format!("'{value}' for '{option} <SIZE,...>'")), "{message}");
        assert!(message.contains(why) && message.ends_with(sizes), "{message}");
    }
    let twice = refused(folder.path(), &["t.spc", "--sizes", "4MiB,1%,4096KiB"], 2);
    let expected = "`4MiB` and `4096KiB` are as many blocks of 4 KiB; accepted: each size once";
    assert!(twice.ends_with(expected), "{twice}");
    for rate in ["0", "1.5", "nan", "inf", "1%"] {
        let message = refused(folder.path(), &["t.spc", "--sample", rate], 2);
        let expected = format!(
            "invalid value '{rate}' for '--sample <RATE>': accepted: a number above 0 and at most 1, such as 0.01; 1 \
             is exact"
        );
        assert!(message.ends_with(&expected), "{message}");
    }
}

#[test]
fn traces_without_an_answer_say_why() {
    let folder = with_trace();
    let folder = folder.path();
    fs::write(folder.join("empty.csv"), "").expect("written");
    fs::write(folder.join("trims.csv"), "op,off,len\nT,0,4096\n").expect("written");
    let map = ["--map", "op=op:R|W|T,off=off,len=len"];
    assert_eq!(
        refused(folder, &["empty.csv"], 1),
        "imbrex: empty.csv: the file is empty; accepted: a trace with at least one request"
    );
    assert_eq!(
        refused(folder, &[&["trims.csv"], &map[..]].concat(), 1),
        "imbrex: trims.csv: no block is read or written; accepted: a trace with at least one read or write"
    );
    assert_eq!(
        refused(folder, &["t.spc", "--sample", "1e-9"], 2),
        "imbrex: --sample: 0.000000001 has no block of this trace; accepted: more, 1 is all blocks"
    );
    assert_eq!(
        refused(folder, &["t.spc", "--csv", "t.spc"], 1),
        "imbrex: t.spc: is the trace t.spc itself; accepted: another file"
    );
    assert_eq!(fs::read_to_string(folder.join("t.spc")).expect("the trace"), TRACE);
    assert_eq!(
        refused(folder, &["t.spc", "--csv", "hits", "--html", "hits"], 2),
        "imbrex: --csv hits --html hits: are one file; accepted: two"
    );
}
