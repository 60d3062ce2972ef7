//! Zip archives of traces: the files in the order of their names, and what is refused.

use std::io::{Read as _, Write as _};

use imbrex_traces::TraceOperation::Read;
use imbrex_traces::{ReadOptions, TraceReader};

use crate::{fixture, read_bytes, read_fixture, record};

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// A file of an archive, and what is said of it.
pub struct Member<'a> {
    name: &'a str,
    method: u16,
    flags: u16,
    crc32: u32,
    stored: Vec<u8>,
    bytes: u32,
}

/// A file as it should be packed.
pub fn member<'a>(name: &'a str, method: u16, content: &[u8]) -> Member<'a> {
    let mut crc = flate2::Crc::new();
    crc.update(content);
    let mut stored = content.to_vec();
    if method == DEFLATED {
        let mut deflate = flate2::read::DeflateEncoder::new(content, flate2::Compression::best());
        stored.clear();
        deflate.read_to_end(&mut stored).unwrap();
    }
    Member { name, method, flags: 0, crc32: crc.sum(), stored, bytes: content.len() as u32 }
}

impl Member<'_> {
    /// What the header beside the content and the directory have in common.
    fn fields(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        for short in [20, self.flags, self.method, 0, 0x21] {
            fields.extend(u16::to_le_bytes(short));
        }
        for long in [self.crc32, self.stored.len() as u32, self.bytes] {
            fields.extend(u32::to_le_bytes(long));
        }
        fields.extend(u16::to_le_bytes(self.name.len() as u16));
        fields.extend([0; 2]);
        fields
    }
}

/// An archive of files, as the format describes it.
pub fn archive(members: &[Member<'_>]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for member in members {
        let start = bytes.len() as u32;
        let fields = member.fields();
        bytes.extend([&b"PK\x03\x04"[..], &fields, member.name.as_bytes()].concat());
        bytes.extend(&member.stored);
        directory.extend([&b"PK\x01\x02\x14\x03"[..], &fields, &[0; 10]].concat());
        directory.extend(start.to_le_bytes());
        directory.extend(member.name.as_bytes());
    }
    let (start, count) = (bytes.len() as u32, members.len() as u16);
    bytes.extend(&directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    bytes.extend([(directory.len() as u32).to_le_bytes(), start.to_le_bytes()].concat());
    bytes.extend([0; 2]);
    bytes
}

const FIRST: &[u8] = b"1538352000,0,8,0,1\n1538352000,8,8,0,1";
const SECOND: &[u8] = b"1538352001,16,8,0,2\n";

/// Two days of a trace, in the wrong order, among what is no file of it.
pub fn days() -> Vec<u8> {
    archive(&[
        member("2018/", STORED, b""),
        member("2018/b", STORED, SECOND),
        member("2018/a", DEFLATED, FIRST),
        member("__MACOSX/2018/._a", STORED, b"\0\x05\x16\x07"),
    ])
}

fn message(bytes: &[u8]) -> String {
    let error = read_bytes(bytes, &ReadOptions::default());
    error.expect_err("this input is bad").to_string()
}

#[test]
fn files_of_an_archive_are_read_in_the_order_of_their_names() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&days()).unwrap();
    for bytes in [days(), gzip.finish().unwrap()] {
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
            detected.starts_with("tencent in the files of a zip archive in the "),
            "{detected}"
        );
    }
}

#[test]
fn an_archive_on_a_disk_has_the_hash_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("days.zip");
    std::fs::write(&path, days()).unwrap();
    let path = path.to_str().unwrap();
    let options = ReadOptions { sha256: true, ..ReadOptions::default() };
    let mut reader = imbrex_traces::open(path, &options).unwrap();
    assert_eq!(reader.by_ref().map(Result::unwrap).count(), 3);
    assert_eq!(reader.sha256(), Some(imbrex_traces::stored_sha256(path, &options).unwrap()));
}

#[test]
fn one_binary_file_is_read_and_several_are_not() {
    let (expected, _) = read_fixture("srt4.bin", &ReadOptions::default());
    let binary = std::fs::read(fixture("srt4.bin")).unwrap();
    let one = archive(&[member("trace.bin", DEFLATED, &binary)]);
    assert_eq!(read_bytes(&one, &ReadOptions::default()).unwrap(), expected);
    let two = [member("a.bin", DEFLATED, &binary), member("b.bin", STORED, &binary)];
    assert_eq!(
        message(&archive(&two)),
        "t: the format srt is not read from a zip archive; accepted: the files, unpacked"
    );
}

#[test]
fn what_a_packer_makes_is_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), FIRST).unwrap();
    std::fs::write(folder.path().join("b"), SECOND).unwrap();
    let packed = std::process::Command::new("python3")
        .current_dir(folder.path())
        .args(["-m", "zipfile", "-c", "packed.zip", "b", "a"])
        .status();
    if !packed.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: python3 is not installed; its archives are not tested");
        return;
    }
    let bytes = std::fs::read(folder.path().join("packed.zip")).unwrap();
    assert_eq!(read_bytes(&bytes, &ReadOptions::default()).unwrap().len(), 3);
}

#[test]
fn archives_that_cannot_be_read_are_refused() {
    let with = |change: fn(&mut Member<'_>)| {
        let mut file = member("a", DEFLATED, FIRST);
        change(&mut file);
        message(&archive(&[file]))
    };
    assert_eq!(
        with(|file| file.flags = 1),
        "t: the file \"a\" of the zip archive is encrypted; accepted: files that are not"
    );
    assert!(
        with(|file| file.method = 14).contains("accepted: deflate, or stored"),
        "{}",
        with(|file| file.method = 14)
    );
    for changed in [with(|file| file.crc32 ^= 1), with(|file| file.bytes += 1)] {
        assert!(changed.contains("its size or its CRC-32 differs"), "{changed}");
    }
    let twice = [member("a", STORED, FIRST), member("a", STORED, SECOND)];
    assert!(message(&archive(&twice)).contains("two files of one name"));
    let whole = days();
    assert!(message(&whole[..whole.len() - 30]).contains("the directory of the zip archive"));
    assert_eq!(
        message(&archive(&[])),
        "t: the file is empty; accepted: a trace with at least one request"
    );
}

/// A file of zeroes of many megabytes, in a few kilobytes, of which the archive says that it is short.
#[test]
fn a_bomb_ends_at_its_first_line() {
    let zeroes = vec![0; 64 << 20];
    let mut bomb = member("a", DEFLATED, &zeroes);
    bomb.bytes = 10;
    let bytes = archive(&[bomb]);
    assert!(bytes.len() < 1 << 17);
    let options = ReadOptions { format: Some(imbrex_traces::Format::Spc), ..Default::default() };
    let error = read_bytes(&bytes, &options).unwrap_err().to_string();
    assert_eq!(
        error,
        "t, line 1: the line is longer than 65536 bytes; accepted: a text trace with one request a line"
    );
}
