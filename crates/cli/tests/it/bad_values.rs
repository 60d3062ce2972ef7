//! Values that no run can use are refused with one line: no panic, no silent correction.

use crate::served::status_of;
use std::fs::File;
use std::process::{Command, Output, Stdio};

const TRACE: &str = "128166386787582087,mds,1,Write,4096,4096,1331\n";

/// Runs `imbrex` with a trace of one request in `t.csv` and on standard input.
fn imbrex(arguments: &str, stdout: Stdio) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("t.csv");
    std::fs::write(&trace, TRACE).expect("a trace");
    Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .args(arguments.split_whitespace())
        .current_dir(folder.path())
        .stdin(File::open(&trace).expect("the trace"))
        .stdout(stdout)
        .output()
        .expect("the command starts")
}

/// The message of a command that fails with `status`, or with 2 where it begins with an option, and prints nothing
/// else.
fn refusal(arguments: &str, status: i32) -> String {
    let output = imbrex(arguments, Stdio::piped());
    let message = String::from_utf8(output.stderr).expect("text");
    let status = status_of(&message).max(Some(status));
    assert_eq!(output.status.code(), status, "{arguments}: {message}");
    assert!(output.stdout.is_empty(), "{arguments} printed a result");
    message
}

#[test]
fn values_that_mean_nothing_are_refused() {
    for (arguments, message) in [
        (
            "--systems lru --set cache.capacity=0",
            "node `cache`: capacity = \"0 B\"; accepted: one block (4096 B) or more",
        ),
        (
            "--systems pore --set cache.zone=4095B",
            "node `cache`: zone = \"4095 B\"; accepted: one block (4096 B) or more",
        ),
        (
            "--systems pore --set cache.period_blocks=0",
            "node `cache`: period_blocks = 0; accepted: 1 or more",
        ),
        (
            "--systems pore --set cache.zone=banded",
            "--set cache.zone=\"banded\": `banded` is not a size: a size is written like `4KiB`, \
             `256MiB`, `20GiB` (binary; a bare k, M, G, T is binary too) or `20GB`, `8TB` (decimal); \
             or `bands`; accepted: a size of at least 4 KiB, or `\"bands\"`: the bands of the translation \
             below",
        ),
        (
            "--systems pore --set cache.destage_batch=0",
            "node `cache`: destage_batch = 0; accepted: 1 or more",
        ),
        (
            "--systems lru-band --set cache.destage_batch=0",
            "node `cache`: destage_batch = 0; accepted: 1 or more",
        ),
        (
            "--systems lru --set cache.policy=sac --set cache.destage_batch=0",
            "node `cache`: destage_batch = 0; accepted: 1 or more",
        ),
        (
            "--systems lru --set cache.policy=sac --set cache.log_blocks=0",
            "node `cache`: log_blocks is 0: the policy sac needs 1 or more",
        ),
        (
            "--systems lru --set cache.ring_blocks=64",
            "node `cache`: ring_blocks is about a journal; accepted: together with durable = true",
        ),
        (
            "--systems raid1 --set array.lost_after_s=5",
            "node `array`: lost_after_s is about a durable node; accepted: together with durable = true",
        ),
        (
            "--systems raid4smr --set array.table_memory=64KiB",
            "node `array`: table_memory is about a durable node; accepted: together with durable = true",
        ),
        (
            "--systems raid1 --set array.durable=true --set array.table_memory=1KiB",
            "node `array`: table_memory = 1024 B; accepted: 4 KiB or more",
        ),
        (
            "--systems lru --set translation.durable=true --set translation.unflushed_blocks_max=0",
            "--set translation.unflushed_blocks_max=0: accepted: 1 to 1048576",
        ),
        (
            "--systems pore --set cache.durable=true --set cache.ring_blocks=7",
            "node `cache`: ring_blocks is 7: the journal of a cache has at least 8 blocks",
        ),
        (
            "--systems smr-only --set translation.persistent_cache=0",
            "node `translation`: persistent_cache = \"0 B\"; accepted: one block (4096 B) to the \
             capacity of the drive (5000980856832 B)",
        ),
        (
            "--systems smr-only --set translation.persistent_cache=16000000TB",
            "node `translation`: persistent_cache = \"16000000 TB\"; accepted: one block (4096 B) to \
             the capacity of the drive (5000980856832 B)",
        ),
        (
            "--systems cmr-only --set cmr.drive=st5000as0011",
            "node `cmr`: the tracks of the drive `Seagate ST5000AS0011` overlap, so it cannot be \
             written anywhere; accepted: a drive whose tracks do not, or below a node of kind \
             \"persistent-cache\" or \"host-managed\"; a real drive that cleans by itself is \
             served with translation = \"drive-managed\"",
        ),
        (
            "--systems lru --set ssd.drive=hc620-15tb",
            "node `ssd`: the tracks of the drive `HGST HC620 15 TB` overlap, so it cannot \
             be written anywhere; accepted: a drive whose tracks do not, or below a node of kind \
             \"persistent-cache\" or \"host-managed\"; a real drive that cleans by itself is \
             served with translation = \"drive-managed\"",
        ),
        ("--systems cmr-only --streams 4000000000", "--streams 4000000000: accepted: 1 to 4096"),
    ] {
        assert_eq!(
            refusal(&format!("compare --trace t.csv {arguments}"), 1),
            format!("imbrex: {message}\n")
        );
    }
}

#[test]
fn a_bound_that_does_not_hold_is_refused() {
    for (arguments, message) in [
        (
            "bound t.csv --system cmr-only",
            "system `cmr-only`: a bound needs the bands of one translation on the way of the data; \
             accepted: a stack such as `pore` or `smr-only`",
        ),
        (
            "bound t.csv --set translation.bypass=on",
            "system `pore`: node `translation`: bypass = \"on\" brings blocks home without a band rewrite \
             that is counted, so no bound holds; accepted: \"off\"",
        ),
        (
            "bound t.csv --set translation.merge_buffer=64MiB",
            "system `pore`: node `translation`: merge_buffer brings blocks home without a band rewrite \
             that is counted, so no bound holds; accepted: \"none\"",
        ),
        (
            "bound -",
            "a bound reads the trace twice, which standard input does not allow; give a file",
        ),
        (
            "bound t.csv --cache 0",
            "node `cache`: capacity = \"0 B\"; accepted: one block (4096 B) or more",
        ),
        ("bound t.csv --drive-scale 0", "--drive-scale 0: accepted: 1 or more"),
        (
            "bound t.csv --size 4KiB --cache 1MiB --log 1MiB",
            "t.csv: record 1: write of 4096 bytes at offset 4096 ends beyond the device of 4096 bytes; \
             use a larger device, or --fit wrap or --fit scale",
        ),
        (
            "compare --trace t.csv --systems lru --bound --queue-depth 2",
            "--bound with --queue-depth 2: requests that are not answered yet need no room in front of \
             the bands; accepted: 1",
        ),
    ] {
        assert_eq!(refusal(arguments, 1), format!("imbrex: {message}\n"));
    }
    for arguments in [
        "bound",
        "bound t.csv --cells 0",
        "compare --trace t.csv --bound --open-loop",
        "compare --trace t.csv --bound --streams 2",
    ] {
        refusal(arguments, 2);
    }
}

#[test]
fn a_scale_that_leaves_no_drive_is_refused() {
    assert_eq!(
        refusal("serve lru --emulate --scale 100000000000000 --socket s", 1),
        "imbrex: scale 100000000000000: leaves less than one block (4096 B) of the drive\n"
    );
}

#[test]
fn standard_input_is_read_once() {
    assert_eq!(
        refusal("compare --trace - --systems cmr-only,cmr-only", 1),
        "imbrex: --trace -: standard input can be read once, and 2 systems are to be compared: give \
         a file, or one system\n"
    );
    assert_eq!(
        refusal("compare --trace - --systems cmr-only --fit scale", 1),
        "imbrex: --fit scale reads the trace twice, which standard input does not allow: give a \
         file\n"
    );
    let output = imbrex("compare --trace - --systems cmr-only", Stdio::piped());
    assert!(output.status.success() && !output.stdout.is_empty());
}

#[test]
fn an_open_loop_needs_times() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("t.lis");
    std::fs::write(&trace, "1 4 0 1\n7 2 0 2\n").expect("a trace");
    let trace = trace.display().to_string();
    let arguments = format!("compare --trace {trace} --format arc --systems cmr-only");
    let said = refusal(&format!("{arguments} --open-loop"), 1);
    assert!(
        said.starts_with(&format!("imbrex: {trace}: its format ("))
            && said.contains("says nothing of times"),
        "{said}"
    );
    assert!(imbrex(&arguments, Stdio::piped()).status.success());
}

#[test]
fn options_that_would_be_ignored_are_wrong_usage() {
    for arguments in [
        "--limit 0",
        "--queue-depth 8 --open-loop",
        "--queue-depth 8 --streams 2",
        "--speed 2",
        "--jobs 0",
    ] {
        let arguments = format!("compare --trace t.csv --systems cmr-only {arguments}");
        assert!(refusal(&arguments, 2).starts_with("error: "), "{arguments}");
    }
}

#[test]
fn a_crash_search_takes_no_option_that_it_would_ignore() {
    for arguments in [
        "--plant-all --json",
        "--plant-all --points 100",
        "--short 2 --points 100",
        "--seed 1 --point 2 --json",
        "--seed 18446744073709551615",
    ] {
        let said = refusal(&format!("crashtest {arguments}"), 2);
        assert!(said.starts_with("error: "), "{arguments}: {said}");
    }
    assert_eq!(
        refusal("crashtest --seed 1 --point 500", 1),
        "imbrex: --point 500: accepted: 0 to 499, as --points says\n"
    );
}

#[test]
fn a_result_that_cannot_be_printed_is_a_failure() {
    for arguments in ["systems", "compare --trace t.csv --systems cmr-only --quiet"] {
        let full = File::options().write(true).open("/dev/full");
        let output = imbrex(arguments, full.expect("Linux").into());
        let message = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(
            message.starts_with("imbrex: standard output: No space left on device"),
            "{message}"
        );
    }
}
