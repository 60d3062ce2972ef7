//! Imbrex's own recording format: bytes, round trip, damage.

use imbrex_traces::TraceOperation::{Flush, Read, Trim, Write, WriteZeroes};
use imbrex_traces::{
    ReadOptions, RecordingHeader, RecordingWriter, SkipReason, SourceKind, TraceOperation,
    TraceReader, TraceRecord,
};
use proptest::prelude::*;

use crate::read_bytes;

fn header() -> RecordingHeader {
    RecordingHeader {
        kind: SourceKind::Recorded,
        name: "pgbench".to_owned(),
        description: "TPC-B-like, scale 10".to_owned(),
        device_bytes: 64 << 30,
        has_times: true,
    }
}

fn encode(records: &[TraceRecord]) -> Vec<u8> {
    let mut writer = RecordingWriter::new(Vec::new(), &header()).unwrap();
    for record in records {
        writer.write(record).unwrap();
    }
    writer.finish().unwrap()
}

fn sample() -> Vec<TraceRecord> {
    let mut forced = TraceRecord::new(7_000, Write, 8192, 4096);
    forced.fua = true;
    let mut other_device = TraceRecord::new(9_000, Trim, 1 << 40, 1 << 32);
    other_device.device = 3;
    vec![
        TraceRecord::new(0, Write, 4096, 4096),
        forced,
        TraceRecord::new(7_000, Flush, 0, 0),
        TraceRecord::new(8_000, Read, 100, 17),
        TraceRecord::new(8_000, WriteZeroes, 117, 17),
        other_device,
    ]
}

/// The example of `docs/formats/recording.md`, byte by byte.
#[test]
fn bytes_are_as_documented() {
    let bytes = encode(&sample()[..3]);
    let mut expected = b"\x89IMBREX\n\x01\x00\x01\x00".to_vec();
    expected.extend_from_slice(&[0, 0, 0, 0, 0x10, 0, 0, 0]); // 64 GiB.
    expected.extend_from_slice(&[7, 0, 20, 0]);
    expected.extend_from_slice(b"pgbenchTPC-B-like, scale 10");
    expected.extend_from_slice(&crc32c::crc32c(&expected).to_le_bytes());
    let start = expected.len();
    expected.extend_from_slice(&[0x41, 0x00, 0x10, 0x08]); // Write at sector 8, 8 sectors.
    expected.extend_from_slice(&[0x79, 0x07]); // 7 us later the same length follows on, forced.
    expected.extend_from_slice(&[0x04, 0x00]); // Flush at once.
    expected.extend_from_slice(&[0xff, 3, 0, 0, 0, 0, 0, 0, 0]);
    let crc = crc32c::crc32c(&expected[start..]);
    expected.extend_from_slice(&crc.to_le_bytes());
    assert_eq!(bytes, expected);
}

#[test]
fn a_recording_reads_back_with_its_header() {
    let bytes = encode(&sample());
    assert_eq!(read_bytes(&bytes, &ReadOptions::default()).unwrap(), sample());
    let reader =
        TraceReader::from_read("t", std::io::Cursor::new(bytes), &ReadOptions::default()).unwrap();
    assert_eq!(reader.source().kind, SourceKind::Recorded);
    assert_eq!(reader.source().label, "recorded pgbench: TPC-B-like, scale 10");
    assert_eq!(reader.source().device_bytes, Some(64 << 30));
}

#[test]
fn damage_is_told() {
    let good = encode(&sample());
    let message =
        |bytes: &[u8]| read_bytes(bytes, &ReadOptions::default()).expect_err("damaged").to_string();
    assert_eq!(
        message(&good[..good.len() - 13]),
        "t: the recording is truncated: it ends without a trailer; accepted: a finished recording, after 6 records"
    );
    assert_eq!(
        message(&good[..good.len() - 2]),
        "t: the recording is truncated inside its trailer; accepted: 13 bytes of trailer, after 6 records"
    );
    assert_eq!(
        message(&good[..20]),
        "t: the recording is truncated inside its header; accepted: a whole header, after 0 records"
    );
    let mut version = good.clone();
    version[8] = 2;
    assert_eq!(message(&version), "t: the recording has version 2; accepted: 1, after 0 records");
    let mut longer = good.clone();
    longer.push(0);
    assert_eq!(
        message(&longer),
        "t: bytes follow the trailer; accepted: the end of the file, after 6 records"
    );
    for at in 24..good.len() {
        let mut flipped = good.clone();
        flipped[at] ^= 0x20;
        assert!(
            read_bytes(&flipped, &ReadOptions::default()).is_err(),
            "a flipped bit in byte {at} is not noticed"
        );
    }
}

#[test]
fn a_record_without_bytes_is_refused() {
    let bytes = encode(&[TraceRecord::new(0, Read, 4096, 0)]);
    assert_eq!(
        read_bytes(&bytes, &ReadOptions::default()).expect_err("no length").to_string(),
        "t: a record has length 0; accepted: 1 byte or more, after 0 records"
    );
}

#[test]
fn an_unfinished_recording_is_read_only_when_asked() {
    let good = encode(&sample());
    let options = ReadOptions { accept_unfinished: true, ..ReadOptions::default() };
    let cut = good[..good.len() - 15].to_vec();
    let mut reader = TraceReader::from_read("t", std::io::Cursor::new(cut), &options).unwrap();
    let records: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(records, sample()[..5]);
    assert_eq!(reader.skipped().of(SkipReason::NoTrailer), 1);
}

fn any_record() -> impl Strategy<Value = TraceRecord> {
    let operation =
        prop_oneof![Just(Read), Just(Write), Just(WriteZeroes), Just(Trim), Just(Flush)];
    let offset =
        prop_oneof![0..1u64 << 62, (0..1u64 << 50).prop_map(|sector| sector * 512), Just(0)];
    let length =
        prop_oneof![1..1u64 << 40, (1..256u64).prop_map(|sectors| sectors * 512), Just(4096)];
    (0..1u64 << 40, operation, offset, length, prop_oneof![Just(0u16), any::<u16>()], any::<bool>())
        .prop_map(|(time_us, operation, offset, length, device, fua)| {
            let (offset, length) =
                if operation == TraceOperation::Flush { (0, 0) } else { (offset, length) };
            TraceRecord {
                device,
                fua,
                ..TraceRecord::new(time_us * 1000, operation, offset, length)
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_records_read_back(mut records in proptest::collection::vec(any_record(), 1..200)) {
        records.sort_by_key(|record| record.time_ns);
        let first_ns = records[0].time_ns;
        let read = read_bytes(&encode(&records), &ReadOptions::default()).unwrap();
        for record in &mut records {
            record.time_ns -= first_ns;
        }
        prop_assert_eq!(read, records);
    }
}
