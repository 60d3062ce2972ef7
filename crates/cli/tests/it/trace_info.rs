//! `imbrex trace info` as a user runs it.

use std::process::{Command, Output};

fn info(text: &str, args: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.spc");
    std::fs::write(&path, text).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    command.args(["trace", "info"]).arg(&path).args(args);
    command.output().expect("the program runs")
}

/// One block written, and then a block's worth from its middle.
const TEXT: &str = "0,0,4096,w,0.0\n0,4,4096,w,1.0\n";

fn written_blocks(args: &[&str]) -> u64 {
    let output = info(TEXT, args);
    assert!(output.status.success(), "{output:?}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["methods"]["distinct"]["method"], "exact");
    assert_eq!(found["verdicts"].as_array().map(Vec::len), Some(4));
    found["write"]["unique_blocks"].as_u64().expect("a number")
}

#[test]
fn blocks_are_those_touched_or_those_the_size_fills() {
    assert_eq!(written_blocks(&["--json"]), 2);
    assert_eq!(written_blocks(&["--json", "--blocks", "cover"]), 2);
    assert_eq!(written_blocks(&["--json", "--blocks", "size"]), 1);
    let refused = info(TEXT, &["--blocks", "sectors"]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2));
    assert!(error.contains("unknown variant `sectors`, expected `cover` or `size`"), "{error}");
}

#[test]
fn the_table_ends_with_method_and_verdicts() {
    let output = info(TEXT, &[]);
    let table = String::from_utf8(output.stdout).expect("text");
    assert!(table.contains("counted               exactly\n"), "{table}");
    assert!(table.contains("suits, from the trace alone\n"), "{table}");
    let last = table.lines().last().expect("a line");
    // Two requests say nothing.
    assert_eq!(last.split_whitespace().last(), Some("unknown"), "{table}");
}
