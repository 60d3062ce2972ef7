//! fio iologs: exact records, bad lines, the way there and back, and what fio itself writes.

use imbrex_traces::TraceOperation::{Flush, Read, Trim, Write};
use imbrex_traces::{
    FioWait, Format, Loss, ReadOptions, SkipReason, TraceRecord, WriteFormat, open, write_to,
};

use crate::{read_bytes, read_fixture, record};

fn waiting(wait: FioWait) -> ReadOptions {
    ReadOptions { fio_wait: Some(wait), ..ReadOptions::default() }
}

#[test]
fn version_3_has_microseconds_and_files() {
    let (records, reader) = read_fixture("fio3.iolog", &ReadOptions::default());
    assert_eq!(
        records,
        [
            record(0, 0, Write, 8192, 4096, None),
            record(5000, 0, Read, 0, 512, None),
            record(20_000, 1, Write, 1_048_576, 131_072, None),
            record(21_000, 1, Flush, 0, 0, None),
            record(40_000, 1, Flush, 0, 0, None),
            // Five microseconds too early in the file.
            record(40_000, 0, Trim, 4096, 65_536, None),
        ]
    );
    assert_eq!(reader.counts().time_inversions, 1);
    assert_eq!(
        reader.skipped().to_string(),
        "header: 1, zero length: 1, fio add, open or close: 6, fio wait: 1"
    );
    assert_eq!(
        reader.detected(),
        "fio in the file: the first line names a version of an iolog, times in microseconds since the start"
    );
}

#[test]
fn waits_of_version_2_mean_what_fio_does_or_what_its_manual_says() {
    let times = |options: &ReadOptions| {
        let (records, reader) = read_fixture("fio2.iolog", options);
        assert!(reader.has_times());
        records.iter().map(|record| record.time_ns).collect::<Vec<_>>()
    };
    // The wait for 12 ms comes after 15 ms have passed.
    let as_fio = [0, 15_000_000, 15_000_000, 20_000_000];
    assert_eq!(times(&ReadOptions::default()), as_fio);
    assert_eq!(times(&waiting(FioWait::MillisecondsSinceStart)), as_fio);
    let as_manual = [0, 15_000, 27_000, 47_000];
    assert_eq!(times(&waiting(FioWait::MicrosecondsRelative)), as_manual);
    let (records, _) = read_fixture("fio2.iolog", &ReadOptions::default());
    assert_eq!(records[1], record(15_000_000, 0, Read, 4096, 8192, None));
}

#[test]
fn version_2_without_waits_has_no_times() {
    let text = b"fio version 2 iolog\na add\na write 0 4096\n";
    let options = ReadOptions::default();
    let bytes = std::io::Cursor::new(text.to_vec());
    let mut reader = imbrex_traces::TraceReader::from_read("t", bytes, &options).unwrap();
    assert!(!reader.has_times());
    assert_eq!(reader.by_ref().count(), 1);
}

#[test]
fn version_1_has_to_be_asked_for() {
    let refusal = read_bytes(b"0, 4096, 8192\n", &ReadOptions::default());
    let refusal = refusal.expect_err("it has no mark").to_string();
    assert!(
        refusal.contains(
            "\"0, 4096, 8192\"; three integers may be a fio iolog of version 1 (--format fio-v1);"
        ),
        "{refusal}"
    );
    let options = ReadOptions { format: Some(Format::FioV1), ..ReadOptions::default() };
    let (records, reader) = read_fixture("fio1.iolog", &options);
    assert_eq!(records, [record(0, 0, Read, 4096, 8192, None), record(0, 0, Write, 0, 512, None)]);
    assert!(!reader.has_times());
}

#[test]
fn bad_lines_are_named() {
    let message = |line: &str| {
        let text = format!("fio version 3 iolog\n0 f add\n{line}\n");
        let error = read_bytes(text.as_bytes(), &ReadOptions::default());
        error.expect_err("this line is bad").to_string()
    };
    assert_eq!(
        message("7 f write 0"),
        "t, line 3: the line ends after 4 fields; accepted: 5 fields: time, file, action, offset, length"
    );
    assert_eq!(
        message("7 f append 0 4096"),
        "t, line 3, field 3 (action): \"append\" is not an action; accepted: read, write, trim, sync, datasync, wait, add, open \
         or close"
    );
    assert_eq!(
        message("7us f write 0 4096"),
        "t, line 3, field 1 (time): \"7us\" is not a number; accepted: an unsigned integer, in microseconds"
    );
    assert_eq!(
        message("7 f write 4611686018427387904 4096"),
        "t, line 3: a value of the line is too large; accepted: at most 2^40 bytes within the first 2^62, times within 500 years"
    );
    let bad = read_bytes(b"fio version 2 iolog\nf wait soon 0\n", &ReadOptions::default());
    assert_eq!(
        bad.unwrap_err().to_string(),
        "t, line 2, field 3 (offset): \"soon\" is not a number; accepted: an unsigned integer, in bytes"
    );
    let asked = ReadOptions { format: Some(Format::Fio), ..ReadOptions::default() };
    assert_eq!(
        read_bytes(b"0 f read 0 512\n", &asked).unwrap_err().to_string(),
        "t: the first line names no version of an iolog; accepted: `fio version 2 iolog` or `fio version 3 iolog` there, or \
         --format fio-v1 for lines `rw, offset, length`"
    );
    let wait = waiting(FioWait::MicrosecondsRelative);
    assert_eq!(
        read_bytes(b"fio version 3 iolog\n", &wait).unwrap_err().to_string(),
        "--fio-wait: an iolog of version 3 has a time in each line and no waits"
    );
}

/// The records an iolog of version 3 gives back: whole microseconds, one device, no forced unit access, zeroes written, pieces
/// of 1 GiB.
fn as_iolog(record: &TraceRecord) -> Vec<TraceRecord> {
    let mut kept = *record;
    kept.time_ns = record.time_ns / 1000 * 1000;
    (kept.device, kept.fua, kept.response_ns) = (0, false, None);
    if kept.operation == imbrex_traces::TraceOperation::WriteZeroes {
        kept.operation = Write;
    }
    let pieces = record.length_bytes.div_ceil(1 << 30).max(1);
    (0..pieces)
        .map(|piece| TraceRecord {
            offset_bytes: kept.offset_bytes + (piece << 30),
            length_bytes: (kept.length_bytes - (piece << 30)).min(1 << 30),
            ..kept
        })
        .collect()
}

/// Each shipped recording, written as an iolog and read again.
#[test]
fn recordings_survive_the_way_through_an_iolog() {
    let folder = format!("{}/../../workloads", env!("CARGO_MANIFEST_DIR"));
    let mut recordings = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_str().unwrap();
        if !name.ends_with(".imbrex.xz") {
            continue;
        }
        recordings += 1;
        let options = ReadOptions::default();
        let before = open(name, &options).unwrap();
        let mut expected = before.flat_map(|record| as_iolog(&record.unwrap()));
        let (iolog, summary) =
            write_to(open(name, &options).unwrap(), Vec::new(), "out", &WriteFormat::Fio.into())
                .unwrap();
        assert_eq!(summary.losses.of(Loss::Flush), 0);
        assert_eq!(summary.losses.of(Loss::Trim), 0);
        let bytes = std::io::Cursor::new(iolog);
        let mut reader = imbrex_traces::TraceReader::from_read("t", bytes, &options).unwrap();
        let mut records = 0;
        for record in reader.by_ref() {
            assert_eq!(record.unwrap(), expected.next().unwrap(), "{name}");
            records += 1;
        }
        assert_eq!(expected.next(), None, "{name}");
        assert!(records > 1000, "{name}: {records} records");
        assert_eq!(reader.skipped().of(SkipReason::FioFileAction), 3);
    }
    assert!(recordings >= 7, "{recordings} recordings");
}

/// Two devices with the same addresses stay two, and each is added before its first request.
#[test]
fn each_device_of_a_trace_has_a_file_in_an_iolog() {
    let trace = "5,0,4096,w,0.0\n0,0,4096,r,0.5\n5,8,4096,r,1.0\n0,8,4096,w,1.5\n";
    let options = ReadOptions::default();
    let bytes = std::io::Cursor::new(trace.as_bytes());
    let reader = imbrex_traces::TraceReader::from_read("t", bytes, &options).unwrap();
    let (iolog, summary) = write_to(reader, Vec::new(), "out", &WriteFormat::Fio.into()).unwrap();
    assert!(summary.losses.is_empty(), "{}", summary.losses);
    assert_eq!(
        String::from_utf8(iolog.clone()).unwrap(),
        "fio version 3 iolog\n\
         0 imbrex-trace-5 add\n0 imbrex-trace-5 open\n0 imbrex-trace-5 write 0 4096\n\
         500000 imbrex-trace add\n500000 imbrex-trace open\n500000 imbrex-trace read 0 4096\n\
         1000000 imbrex-trace-5 read 4096 4096\n1500000 imbrex-trace write 4096 4096\n\
         1500000 imbrex-trace close\n1500000 imbrex-trace-5 close\n"
    );
    let after = read_bytes(&iolog, &options).unwrap();
    let devices: Vec<u16> = after.iter().map(|record| record.device).collect();
    assert_eq!(devices, [0, 1, 0, 1], "numbered as they appear");
}

/// What fio writes is what fio did, where fio is installed.
#[test]
fn fio_writes_what_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("written.iolog");
    let run = std::process::Command::new("fio")
        .arg("--name=job")
        .arg(format!("--directory={}", folder.path().display()))
        .arg(format!("--write_iolog={}", log.display()))
        .args([
            "--ioengine=psync",
            "--rw=randwrite",
            "--bs=4k",
            "--size=1m",
            "--fsync=16",
            "--randseed=7",
        ])
        .output();
    let Ok(run) = run else {
        eprintln!("SKIPPED: fio is not installed; its own iolog is not tested");
        return;
    };
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let mut reader = open(log.to_str().unwrap(), &ReadOptions::default()).unwrap();
    let records: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    let writes: Vec<_> = records.iter().filter(|record| record.operation == Write).collect();
    assert_eq!(writes.len(), 256);
    let mut blocks: Vec<_> = writes.iter().map(|record| record.offset_bytes / 4096).collect();
    blocks.sort_unstable();
    assert!(blocks.into_iter().eq(0..256), "each block once");
    let flushes = records.iter().filter(|record| record.operation == Flush).count();
    // Whether a flush follows the last write is fio's choice.
    assert!((15..=16).contains(&flushes), "{flushes} flushes");
    assert_eq!(reader.counts().time_inversions, 0);
}
