//! Archives of text traces: the files in order, and what is refused.

use std::io::Write as _;

use imbrex_traces::TraceOperation::Read;
use imbrex_traces::{ReadOptions, TraceReader};

use crate::{fixture, read_bytes, record};

/// A member with the header of POSIX; `kind` is `0` for a file.
pub fn member(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    header[148..156].fill(b' ');
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u64 = header.iter().map(|&byte| u64::from(byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    header.extend(content);
    header.resize(header.len().next_multiple_of(512), 0);
    header
}

/// An archive of files.
pub fn archive(members: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = members.concat();
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

const FIRST: &[u8] = b"1538352000,0,8,0,1\n1538352000,8,8,0,1";
const SECOND: &[u8] = b"1538352001,16,8,0,2\n";

fn message(bytes: &[u8]) -> String {
    let error = read_bytes(bytes, &ReadOptions::default());
    error.expect_err("this input is bad").to_string()
}

#[test]
fn files_of_an_archive_are_read_one_behind_the_other() {
    let bytes = archive(&[
        member("2018/", b'5', b""),
        member("2018/10-01-00", b'0', FIRST),
        member("2018/10-01-01", b'0', b""),
        member("pax", b'x', b"27 path=2018/10-01-02-long\n"),
        member("x", b'0', SECOND),
    ]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&bytes).unwrap();
    for bytes in [bytes, gzip.finish().unwrap()] {
        let bytes = std::io::Cursor::new(bytes);
        let mut reader = TraceReader::from_read("t", bytes, &ReadOptions::default()).unwrap();
        let records: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
        assert_eq!(
            records,
            [
                record(0, 0, Read, 0, 4096, None),
                record(500_000_000, 0, Read, 4096, 4096, None),
                record(1_000_000_000, 1, Read, 8192, 4096, None),
            ]
        );
        let detected = reader.detected();
        assert!(
            detected.starts_with("tencent in the files of a tar archive in the "),
            "{detected}"
        );
    }
}

#[test]
fn what_tar_packs_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = ("a".repeat(150), "b".repeat(150));
    std::fs::write(folder.path().join(&a), FIRST).unwrap();
    std::fs::write(folder.path().join(&b), SECOND).unwrap();
    for format in ["--format=gnu", "--format=pax"] {
        let packed = std::process::Command::new("tar")
            .current_dir(folder.path())
            .args([format, "-czf", "packed.tgz", &a, &b])
            .status();
        if !packed.is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED: GNU tar is not installed; its archives are not tested");
            return;
        }
        let bytes = std::fs::read(folder.path().join("packed.tgz")).unwrap();
        let records = read_bytes(&bytes, &ReadOptions::default()).unwrap();
        assert_eq!(records.len(), 3, "{format}");
    }
}

#[test]
fn archives_out_of_order_or_damaged_are_refused() {
    let (first, second) = (member("a", b'0', FIRST), member("b", b'0', SECOND));
    assert!(
        message(&archive(&[second.clone(), first.clone()])).contains(
            "the archive has \"a\" behind \"b\"; accepted: files in the order of their names, or unpacked ones"
        )
    );
    let whole = archive(&[first, second]);
    assert!(message(&whole[..530]).contains("cannot be read to its end"));
    let mut damaged = whole;
    damaged[100] ^= 1;
    assert!(message(&damaged).contains("checksum"));
    let recording = std::fs::read(fixture("vscsi1.bin")).unwrap();
    let packed = archive(&[member("trace", b'0', &recording)]);
    assert_eq!(
        message(&packed),
        "t: the format vscsi is not read from a tar archive; accepted: the files, unpacked"
    );
    assert_eq!(
        message(&archive(&[member("folder/", b'5', b"")])),
        "t: the file is empty; accepted: a trace with at least one request"
    );
}
