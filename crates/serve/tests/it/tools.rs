//! Clients nobody here wrote.

use crate::support::{TestServer, plain};
use imbrex_serve::disk::{DirectIo, FileDisk};
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

const BYTES: u64 = 64 << 20;

fn server_over_file(dir: &TempDir) -> TestServer {
    let path = dir.path().join("disk.img");
    let file = std::fs::File::create(&path).expect("a file");
    file.set_len(BYTES).expect("a length");
    TestServer::over(move |waker| {
        Box::new(FileDisk::open(&path, plain(BYTES / 4096), DirectIo::Off, waker).expect("a disk"))
    })
}

/// Runs a program; `None`, said loudly, when it is not installed.
fn run(program: &str, arguments: &[&str], dir: &Path) -> Option<Output> {
    match Command::new(program).args(arguments).current_dir(dir).output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("skipped: {program} is not installed");
            None
        }
        Err(error) => panic!("{program}: {error}"),
    }
}

fn assert_success(output: &Output) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
}

#[test]
fn fio_verifies_what_it_writes() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = server_over_file(&dir);
    let uri = format!("--uri={}", server.uri);
    let arguments = [
        "--name=verify",
        "--ioengine=nbd",
        &uri,
        "--rw=randwrite",
        "--bsrange=4k-128k",
        "--blockalign=4k",
        "--size=48M",
        "--iodepth=16",
        "--verify=crc32c",
        "--verify_fatal=1",
        "--verify_backlog=512",
        "--randseed=1",
        "--fsync=64",
    ];
    if let Some(output) = run("timeout", &[&["60", "fio"], &arguments[..]].concat(), dir.path()) {
        if output.status.code() == Some(127) {
            eprintln!("skipped: fio is not installed");
            return;
        }
        assert_success(&output);
    }
}

#[test]
fn nbdcopy_brings_an_image_there_and_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = server_over_file(&dir);
    let source: Vec<u8> = (0..BYTES / 8).flat_map(|i| (i * i).to_le_bytes()).collect();
    std::fs::write(dir.path().join("source"), &source).expect("a file");
    let there = ["--connections=4", "--requests=64", "--flush", "source", &server.uri];
    let Some(output) = run("nbdcopy", &there, dir.path()) else {
        return;
    };
    assert_success(&output);
    let back = run("nbdcopy", &[&server.uri, "copy"], dir.path()).expect("it is installed");
    assert_success(&back);
    let copy = std::fs::read(dir.path().join("copy")).expect("the copy");
    assert!(copy == source, "the copy differs");
    let disk = std::fs::read(dir.path().join("disk.img")).expect("the disk");
    assert!(disk == source, "the disk differs");
}

#[test]
fn nbdinfo_sees_what_we_offer() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = server_over_file(&dir);
    let Some(output) = run("nbdinfo", &["--json", &server.uri], dir.path()) else {
        return;
    };
    assert_success(&output);
    let text = String::from_utf8_lossy(&output.stdout);
    for line in [
        "\"export-size\": 67108864",
        "\"is_rotational\": true",
        "\"is_read_only\": false",
        "\"can_flush\": true",
        "\"can_fua\": true",
        "\"can_multi_conn\": true",
        "\"can_trim\": true",
        "\"can_zero\": true",
        "\"can_cache\": false",
        "\"can_df\": false",
        "\"block_size_minimum\": 1",
        "\"block_size_preferred\": 4096",
        "\"block_size_maximum\": 33554432",
    ] {
        assert!(text.contains(line), "{line} is missing in {text}");
    }
}
