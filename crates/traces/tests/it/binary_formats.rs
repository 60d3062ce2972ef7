//! The binary formats against fixtures that `make_binary.py` writes from their descriptions.

use imbrex_traces::TraceOperation::{Flush, Read, Trim, Write, WriteZeroes};
use imbrex_traces::{BlkEvent, Format, ObjectId, ReadOptions, Subsecond, TraceRecord};

use crate::{fixture, read_bytes, read_fixture, record};

fn of_event(event: BlkEvent) -> ReadOptions {
    ReadOptions { event: Some(event), ..ReadOptions::default() }
}

fn forced(record: TraceRecord) -> TraceRecord {
    TraceRecord { fua: true, ..record }
}

#[test]
fn blktrace_of_version_7_as_it_was_queued() {
    let (records, reader) = read_fixture("blktrace7.bin", &ReadOptions::default());
    assert_eq!(
        records,
        [
            record(0, 0, Write, 1 << 20, 4096, Some(100_000)),
            // Merged into the one before, and complete with it.
            record(1_000, 0, Write, (1 << 20) + 4096, 4096, Some(99_000)),
            record(7_000, 1, Read, 40_960 * 512, 65_536, Some(200_000)),
            record(145_000, 0, Flush, 0, 0, None),
            // Written late into the file, and put in its place.
            record(150_000, 0, Trim, 8192 * 512, 1 << 20, None),
            forced(record(155_000, 0, Write, 4096 * 512, 512, Some(240_000))),
        ]
    );
    assert_eq!(
        reader.skipped().to_string(),
        "notification: 2, event C: 3, event D: 3, event M: 1, passthrough command: 1"
    );
    assert_eq!((reader.counts().lines, reader.counts().time_inversions), (16, 0));
    assert_eq!(
        reader.detected(),
        "blktrace in the file: the file starts with the magic of blktrace, version 7, little-endian, event Q"
    );
}

#[test]
fn blktrace_at_the_driver_and_at_the_end() {
    let (records, _) = read_fixture("blktrace7.bin", &of_event(BlkEvent::Issue));
    assert_eq!(
        records,
        [
            record(0, 0, Write, 1 << 20, 8192, Some(96_000)),
            record(4_000, 1, Read, 40_960 * 512, 65_536, Some(199_000)),
            forced(record(291_000, 0, Write, 4096 * 512, 512, Some(100_000))),
        ]
    );
    let (records, _) = read_fixture("blktrace7.bin", &of_event(BlkEvent::Complete));
    assert_eq!(
        records,
        [
            record(0, 0, Write, 1 << 20, 8192, None),
            record(107_000, 1, Read, 40_960 * 512, 65_536, None),
            forced(record(295_000, 0, Write, 4096 * 512, 512, None)),
        ]
    );
}

#[test]
fn blktrace_of_version_8_in_the_other_byte_order() {
    let (records, reader) = read_fixture("blktrace8_big_endian.bin", &ReadOptions::default());
    assert_eq!(
        records,
        [
            record(0, 0, WriteZeroes, 1 << 29, 1 << 20, None),
            record(3_000, 0, Read, 4096, 4096, Some(100_000)),
        ]
    );
    assert_eq!(reader.skipped().to_string(), "event C: 1, zone command: 1");
    assert!(reader.detected().ends_with("version 8, big-endian, event Q"), "{}", reader.detected());
}

#[test]
fn files_of_the_processors_are_merged_by_time() {
    for name in ["sdx", "sdx.blktrace"] {
        let options = ReadOptions { sha256: true, ..ReadOptions::default() };
        let (records, reader) = read_fixture(name, &options);
        let expected = [
            record(0, 0, Write, 0, 4096, None),
            record(5_000, 0, Read, 800 * 512, 4096, Some(35_000)),
            record(10_000, 0, Write, 8 * 512, 4096, None),
            record(15_000, 0, Read, 808 * 512, 4096, None),
            record(20_000, 0, Write, 16 * 512, 4096, None),
            record(25_000, 0, Read, 816 * 512, 4096, None),
        ];
        assert_eq!(records, expected);
        assert_eq!(
            reader.detected(),
            "blktrace in the files of its processors, version 7, little-endian, event Q, 2 files merged by time"
        );
        let stored = imbrex_traces::stored_sha256(&fixture(name), &options).unwrap();
        assert_eq!(reader.sha256(), Some(stored));
    }
    // One file of them is a trace of its own.
    assert_eq!(read_fixture("sdx.blktrace.2", &ReadOptions::default()).0.len(), 3);
}

/// `sdx.blkparse` is what `blkparse -q` prints of the same files.
#[test]
fn blkparse_reads_the_same_requests_in_the_files() {
    let (mut binary, _) = read_fixture("sdx", &ReadOptions::default());
    let (text, _) = read_fixture("sdx.blkparse", &ReadOptions::default());
    for record in &mut binary {
        record.response_ns = None;
    }
    assert_eq!(binary, text);
}

/// A record of version 7 that queues a read.
fn queued_read(time_ns: u64, sector: u64) -> Vec<u8> {
    let mut bytes = std::fs::read(fixture("sdx.blktrace.2")).unwrap()[..48].to_vec();
    bytes[8..16].copy_from_slice(&time_ns.to_le_bytes());
    bytes[16..24].copy_from_slice(&sector.to_le_bytes());
    bytes
}

#[test]
fn a_blktrace_in_disorder_is_sorted_within_the_window_only() {
    let late_by = |requests: u64| {
        let early = (1..=requests).flat_map(|index| queued_read(index * 10, index));
        let bytes: Vec<u8> = early.chain(queued_read(5, 0)).collect();
        let mut reader = imbrex_traces::TraceReader::from_read(
            "t",
            std::io::Cursor::new(bytes),
            &ReadOptions::default(),
        )
        .unwrap();
        let first = reader.next().unwrap().unwrap().offset_bytes;
        assert!(reader.by_ref().all(|record| record.is_ok()));
        (first, reader.counts().time_inversions)
    };
    assert_eq!(late_by(4095), (0, 0));
    assert_eq!(late_by(4096), (512, 1));
}

#[test]
fn vscsi_of_both_versions() {
    for (name, version) in [("vscsi1.bin", 1), ("vscsi2.bin", 2)] {
        let (records, reader) = read_fixture(name, &ReadOptions::default());
        assert_eq!(
            records,
            [
                record(0, 0, Write, 1024 * 512, 4096, None),
                // READ(6) of length 0 stands for 256 blocks.
                record(200_000, 0, Read, 64 * 512, 256 * 512, None),
                record(1_000_000, 0, Read, 2048 * 512, 8192, None),
                record(2_000_000, 0, Write, 1 << 41, 512, None),
            ]
        );
        assert_eq!(reader.skipped().to_string(), "zero length: 1, SCSI opcode 0x00: 1");
        assert_eq!(
            reader.detected(),
            format!(
                "vscsi in the file: the first records have a vscsi version in its place, version {version}"
            )
        );
    }
}

/// The message for a fixture after a change of its bytes.
fn message(name: &str, options: &ReadOptions, change: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = std::fs::read(fixture(name)).unwrap();
    change(&mut bytes);
    read_bytes(&bytes, options).unwrap_err().to_string()
}

#[test]
fn damaged_blktrace() {
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        message("blktrace7.bin", &ReadOptions::default(), |bytes| change(bytes))
    };
    assert_eq!(
        with(&|bytes| bytes.truncate(100)),
        "t, record 2 at byte 52: the file ends after 0 bytes of the data behind the record; accepted: 8 bytes, as the record \
         says"
    );
    assert_eq!(
        with(&|bytes| bytes.truncate(130)),
        "t, record 3 at byte 108: the file ends after 22 bytes of the record; accepted: whole records of 48 bytes"
    );
    assert_eq!(
        with(&|bytes| bytes[110] = 0),
        "t, record 3 at byte 108: the magic is 0x65007407; accepted: 0x65617407, as in the first record"
    );
    // The length of the data behind the second record.
    assert_eq!(
        with(&|bytes| bytes[98..100].copy_from_slice(&[0xff, 0xff])),
        "t, record 2 at byte 52: the file ends after 680 bytes of the data behind the record; accepted: 65535 bytes, as the \
         record says"
    );
    assert_eq!(
        with(&|bytes| bytes[124..132].fill(0xff)),
        "t, record 3 at byte 108: the sector is 18446744073709551615; accepted: at most 2^40 bytes within the first 2^62"
    );
    assert_eq!(
        with(&|bytes| bytes[138..140].fill(0)),
        "t, record 3 at byte 108: the categories are 0x0; accepted: the bit of reads (0x1) or of writes (0x2)"
    );
    let as_blktrace = ReadOptions { format: Some(Format::Blktrace), ..ReadOptions::default() };
    assert_eq!(
        message("vscsi1.bin", &as_blktrace, |_| {}),
        "t: the file does not start with the magic of blktrace; accepted: binary blktrace, version 7 or 8, in either byte order"
    );
    assert_eq!(
        message("vscsi1.bin", &of_event(BlkEvent::Issue), |_| {}),
        "--event: the format vscsi has no use for it; accepted: with blktrace, blkparse"
    );
    assert_eq!("d".parse::<BlkEvent>().unwrap_err(), "unknown event \"d\"; accepted: Q, D, C");
}

#[test]
fn the_requests_before_the_damage_are_given_out() {
    let mut bytes = std::fs::read(fixture("blktrace7.bin")).unwrap();
    bytes.pop();
    let reader = imbrex_traces::TraceReader::from_read(
        "t",
        std::io::Cursor::new(bytes),
        &ReadOptions::default(),
    );
    let results: Vec<_> = reader.unwrap().map(|record| record.is_ok()).collect();
    assert_eq!(results, [true, true, true, true, true, true, false]);
}

#[test]
fn damaged_vscsi() {
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        message("vscsi1.bin", &ReadOptions::default(), |bytes| change(bytes))
    };
    assert_eq!(
        with(&|bytes| bytes.truncate(75)),
        "t, record 3 at byte 64: the file ends after 11 bytes of the record; accepted: whole records of 32 bytes"
    );
    assert_eq!(
        with(&|bytes| bytes[32 + 15] = 9),
        "t, record 2 at byte 32: the version field is 0x0902; accepted: 0x0100 to 0x01ff"
    );
    assert_eq!(
        with(&|bytes| bytes[32 + 13] = 1),
        "t, record 2 at byte 32: the opcode is 0x0100; accepted: a SCSI operation code, at most 0xff"
    );
    assert_eq!(
        with(&|bytes| bytes[16..24].fill(0x7f)),
        "t, record 1 at byte 0: the sector is 9187201950435737471; accepted: at most 2^40 bytes within the first 2^62"
    );
    assert_eq!(
        with(&|bytes| bytes[24..32].fill(0x7f)),
        "t, record 1 at byte 0: the time is 9187201950435737471 us; accepted: times within 500 years"
    );
}

fn with_ids(object_id: ObjectId) -> ReadOptions {
    ReadOptions { object_id: Some(object_id), ..ReadOptions::default() }
}

#[test]
fn oracle_general() {
    let (records, reader) = read_fixture("oracle_general.bin", &with_ids(ObjectId::Bytes));
    assert_eq!(
        records,
        [
            record(0, 0, Read, 8192, 4096, None),
            // The second of two requests in one second.
            record(500_000_000, 0, Read, 1 << 40, 4096, None),
            record(3_000_000_000, 0, Read, 8192, 4096, None),
            record(4_000_000_000, 0, Read, 8192, 4096, None),
        ]
    );
    assert_eq!(reader.skipped().to_string(), "zero length: 1");
    assert_eq!(
        reader.detected(),
        "oracle-general in the file: records of 24 bytes in order of time name later records of the same object, reads only, \
         object ids are bytes, times in seconds, requests of a second spread evenly over it"
    );
    let at_the_start =
        ReadOptions { subsecond: Some(Subsecond::None), ..with_ids(ObjectId::Blocks) };
    let (records, _) = read_fixture("oracle_general.bin", &at_the_start);
    assert_eq!((records[1].time_ns, records[1].offset_bytes), (0, 1 << 52));
}

#[test]
fn lcs_with_operations_and_tenants() {
    for (name, version) in [("lcs2.bin.gz", 2), ("lcs5.bin.gz", 5)] {
        let (records, reader) = read_fixture(name, &with_ids(ObjectId::Bytes));
        assert_eq!(
            records,
            [
                record(0, 0, Read, 8192, 4096, None),
                record(500_000_000, 0, Write, 1 << 40, 4096, None),
                record(3_000_000_000, 1, Write, 8192, 4096, None),
                record(4_000_000_000, 0, Trim, 8192, 4096, None),
            ]
        );
        assert_eq!(
            reader.detected(),
            format!(
                "lcs in the gzip stream: the file starts with the magic of LCS, version {version}, object ids are bytes, \
                 times in seconds, requests of a second spread evenly over it"
            )
        );
    }
}

#[test]
fn objects_without_a_place_are_refused() {
    assert_eq!(
        message("oracle_general.bin", &ReadOptions::default(), |_| {}),
        "--obj-id: the format oracle-general needs it, because an object id may be anything; accepted: bytes (the address of \
         the first byte), blocks (the number of a block of 4 KiB)"
    );
    assert_eq!(
        "hash".parse::<ObjectId>().unwrap_err(),
        "hash: such ids have no place on a disk; accepted: bytes, blocks"
    );
    let told = ReadOptions { format: Some(Format::OracleGeneral), ..with_ids(ObjectId::Bytes) };
    assert_eq!(
        message("oracle_general.bin", &told, |bytes| bytes[28..36].fill(0xee)),
        "t, record 2 at byte 24: the object id is 17216961135462248174 (bytes); accepted: at most 2^40 bytes within the first \
         2^62; ids that are hashes have no place on a disk"
    );
    assert_eq!(
        message("oracle_general.bin", &told, |bytes| bytes.truncate(60)),
        "t, record 3 at byte 48: the file ends after 12 bytes of the record; accepted: whole records of 24 bytes"
    );
}

/// Nothing but the references of a trace proves that it is oracleGeneral; one that is wrong speaks against it.
#[test]
fn oracle_general_is_never_guessed() {
    let bytes = std::fs::read(fixture("oracle_general.bin")).unwrap();
    let read = |bytes: &[u8]| read_bytes(bytes, &with_ids(ObjectId::Bytes));
    assert!(read(&bytes).is_ok());
    let doubt = "t: the format is not recognised: the records may be those of oracleGeneral, but none names another one at \
                 hand; accepted: --format oracle-general, if that is what they are";
    let no_references = [&bytes[24..72], &bytes[96..]].concat();
    assert_eq!(read(&no_references).unwrap_err().to_string(), doubt);
    let mut wrong_reference = bytes.clone();
    wrong_reference[16] = 2;
    assert_eq!(read(&wrong_reference).unwrap_err().to_string(), doubt);
    let mut counted_from_one = bytes.clone();
    (counted_from_one[16], counted_from_one[3 * 24 + 16]) = (4, 5);
    assert!(read(&counted_from_one).is_ok());
    let not_in_order = [&bytes[24..], &bytes[..24]].concat();
    let refused = read(&not_in_order).unwrap_err().to_string();
    assert!(refused.starts_with("t: the format is not recognised from"), "{refused}");
}

#[test]
fn damaged_lcs() {
    let file = std::fs::File::open(fixture("lcs2.bin.gz")).unwrap();
    let mut good = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(file), &mut good).unwrap();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        let outcome = read_bytes(&bytes, &with_ids(ObjectId::Bytes));
        outcome.unwrap_err().to_string()
    };
    assert_eq!(
        with(&|bytes| bytes.truncate(5000)),
        "t: the file ends after 5000 bytes of the header; accepted: a header of 8192 bytes"
    );
    assert_eq!(
        with(&|bytes| bytes[8184] = 0),
        "t: the header does not end with the magic at byte 8184; accepted: 0x123456789abcdef0"
    );
    assert_eq!(
        with(&|bytes| {
            bytes.copy_within(8184..8192, 1016);
            bytes.truncate(1024);
        }),
        "t: the header has 1024 bytes, as LCS had it before its versions; accepted: a header of 8192 bytes"
    );
    assert_eq!(with(&|bytes| bytes[8] = 9), "t: LCS has version 9; accepted: 1 to 8");
    assert_eq!(
        with(&|bytes| bytes.truncate(8192 + 30)),
        "t, record 2 at byte 8220: the file ends after 2 bytes of the record; accepted: whole records of 28 bytes"
    );
    assert_eq!(
        with(&|bytes| bytes[8192 + 16] = 15),
        "t, record 1 at byte 8192: the operation is 15; accepted: 0 to 14"
    );
    // Version 3 has sizes of 64 bits: this one is made of size and operation.
    assert_eq!(
        with(&|bytes| bytes[8] = 3),
        "t, record 1 at byte 8192: the size is 5549097750528; accepted: at most 2^40 bytes within the first 2^62"
    );
}

#[test]
fn srt_of_two_versions() {
    for (name, version) in [("srt2.bin", 2), ("srt4.bin", 4)] {
        let (records, reader) = read_fixture(name, &ReadOptions::default());
        assert_eq!(
            records,
            [
                record(0, 0, Read, 1056 * 256, 4096, Some(19_687_000)),
                // Sectors of this disk have 512 bytes.
                record(30_183_718_000, 1, Write, 674_032 * 512, 8192, Some(36_899_000)),
                // Earlier than the one before, and by another driver of the first disk.
                record(30_183_718_000, 0, Read, 8 * 256, 1024, Some(500_000)),
            ],
            "version {version}"
        );
        assert_eq!(reader.skipped().to_string(), "zero length: 1, suspect record: 1");
        assert_eq!((reader.counts().lines, reader.counts().time_inversions), (5, 1));
        assert_eq!(reader.detected(), "srt in the file: the file starts with the magic of SRT");
    }
}

#[test]
fn what_is_not_known_of_srt_is_refused() {
    let good = std::fs::read(fixture("srt4.bin")).unwrap();
    let header = good.iter().position(|&byte| byte == 0x0c).unwrap() + 1;
    let message = |at: usize, bytes: &[u8]| {
        let mut damaged = good.clone();
        damaged[at..at + bytes.len()].copy_from_slice(bytes);
        read_bytes(&damaged, &ReadOptions::default()).unwrap_err().to_string()
    };
    let first = format!("t, record 1 at byte {header}: ");
    assert_eq!(
        message(header + 4, &[0, 7]),
        format!("{first}the record has version 7; accepted: version 1 to 4, whose layout is known")
    );
    assert_eq!(
        message(header + 6, &[0, 3]),
        format!("{first}the record has kind 3; accepted: kind 1, a request, or 4, a suspect one")
    );
    for size in [52, 1 << 30] {
        assert_eq!(
            message(header, &u32::to_be_bytes(size)),
            format!(
                "{first}the record has {size} bytes; accepted: 56 bytes in version 4 and kind 1"
            )
        );
    }
    assert_eq!(
        message(header + 32, &[8, 0, 1, 0]),
        format!("{first}the device is 0x08000100, on disk 1; accepted: a disk of the header: 0, 2")
    );
    assert!(
        message(header + 12, &[0xff; 4]).starts_with(&format!("{first}the time has 4294967295 us"))
    );
    assert_eq!(
        message(header - 1, b" "),
        "t: the header of SRT has no end within the first 128 KiB; accepted: a form feed behind its text"
    );
    let nameless = read_bytes(b"$$TR_IOREC-1.3\n\x0c", &ReadOptions::default());
    assert!(nameless.unwrap_err().to_string().contains("names no disk with a sectorsize"));
    let cut = read_bytes(&good[..good.len() - 3], &ReadOptions::default()).unwrap_err();
    assert!(cut.to_string().contains("the file ends after 53 bytes of the record"), "{cut}");
}
