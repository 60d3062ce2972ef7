//! Each format against a fixture written by hand.

use imbrex_traces::TraceOperation::{Flush, Read, Trim, Write};
use imbrex_traces::{
    Format, ReadOptions, RecordingHeader, RecordingWriter, SkipReason, SourceKind, TimeUnit,
    TraceOperation, TraceReader, WriteFormat, write_to,
};

use crate::{fixture, read_bytes, read_fixture, record};

#[test]
fn msr_cambridge() {
    let (records, reader) = read_fixture("msr.csv", &ReadOptions::default());
    let second_ns = (128_166_386_816_018_591 - 128_166_386_787_582_087) * 100;
    assert_eq!(
        records,
        [
            record(0, 0, Read, 1_211_904, 4608, Some(133_100)),
            record(second_ns, 0, Write, 3_216_997_888, 16_384, Some(232_600)),
            // One tick too early in the file: clamped and counted.
            record(second_ns, 0, Write, 3_217_014_272, 512, Some(0)),
            record(second_ns + 10_900, 0, Read, 3_216_997_888, 16_384, Some(1200)),
        ]
    );
    let counts = reader.counts();
    assert_eq!((counts.lines, counts.records, counts.time_inversions), (5, 4, 1));
    assert_eq!(reader.skipped().of(SkipReason::ZeroLength), 1);
    // All four start in the middle of a 4 KiB block.
    assert_eq!((counts.unaligned_to_sector, counts.unaligned_to_block), (0, 4));
    assert_eq!(
        reader.detected(),
        "msr in the file: 7 comma-separated fields, a Windows file time, Read or Write fourth"
    );
    assert_eq!(reader.source().kind, SourceKind::Captured);
}

#[test]
fn spc_with_blanks_extra_fields_and_carriage_returns() {
    let (records, reader) = read_fixture("spc.spc", &ReadOptions::default());
    assert_eq!(
        records,
        [
            record(0, 0, Write, 303_567 * 512, 3584, None),
            record(0, 1, Write, 55_590 * 512, 3072, None),
            record(26_214_000, 0, Read, 303_574 * 512, 3584, None),
            record(100_000_000_001, 2, Read, 16 * 512, 1000, None),
        ]
    );
    assert_eq!(reader.skipped().to_string(), "zero length: 1");
    assert_eq!(reader.counts().unaligned_to_sector, 1);
}

#[test]
fn spc_devices_are_selected_and_placed() {
    let select = ReadOptions { devices: Some(0..=0), ..ReadOptions::default() };
    let (records, reader) = read_fixture("spc.spc", &select);
    assert_eq!(records.len(), 2);
    assert_eq!(reader.skipped().of(SkipReason::DeviceNotSelected), 2);
    assert_eq!(reader.counts().records, 2);

    let place = ReadOptions { device_stride_bytes: Some(1 << 30), ..ReadOptions::default() };
    let (records, _) = read_fixture("spc.spc", &place);
    assert_eq!(records[1].offset_bytes, (1 << 30) + 55_590 * 512);
    let small = ReadOptions { device_stride_bytes: Some(1 << 20), ..ReadOptions::default() };
    let error =
        imbrex_traces::open(&fixture("spc.spc"), &small).unwrap().find_map(Result::err).unwrap();
    assert_eq!(
        error.to_string(),
        "--device-stride: 1048576 bytes; device 0 has a request that ends at byte 155429888; accepted: at least the size of \
         the largest device"
    );
}

#[test]
fn libcachesim_with_header_and_scsi_opcodes() {
    let (records, reader) = read_fixture("libcachesim.csv", &ReadOptions::default());
    assert_eq!(
        records,
        [
            record(0, 0, Write, 42_932_745 * 512, 512, None),
            record(242_639_000, 0, Read, 8 * 512, 4096, None),
            record(376_738_000, 0, Write, 16 * 512, 8192, None),
        ]
    );
    assert_eq!(reader.skipped().to_string(), "header: 1, zero length: 1, SCSI opcode 0x00: 1");
    assert_eq!(reader.counts().lines, 6);
}

#[test]
fn libcachesim_is_recognised_without_its_header_too() {
    let text = std::fs::read_to_string(fixture("libcachesim.csv")).unwrap();
    let headless = text.split_once('\n').unwrap().1;
    assert_eq!(read_bytes(headless.as_bytes(), &ReadOptions::default()).unwrap().len(), 3);
}

#[test]
fn csv_by_column_number() {
    let columns = Some("dev=1,op=2:R|W,off=3:bytes,len=4:bytes,time=5:us".to_owned());
    let (records, reader) =
        read_fixture("alibaba.csv", &ReadOptions { columns, ..ReadOptions::default() });
    assert_eq!(
        records,
        [
            record(0, 3, Read, 126_703_644_672, 4096, None),
            record(1_000_000, 3, Write, 8192, 12_288, None)
        ]
    );
    assert_eq!(reader.detected(), "csv in the file: as asked");
}

#[test]
fn csv_by_column_name_with_another_delimiter_and_a_response_time() {
    let columns = Some(
        "time=when:ms,op=kind:read|write|trim,off=start:blocks,len=count:kib,resp=took:ms"
            .to_owned(),
    );
    let options = ReadOptions { columns, delimiter: Some(b';'), ..ReadOptions::default() };
    let (records, reader) = read_fixture("named.csv", &options);
    assert_eq!(
        records,
        [
            record(0, 0, Read, 8192, 1024, Some(250_000)),
            record(250_000, 0, Write, 16_384, 2048, None),
            record(500_000, 0, Trim, 16_384, 2048, Some(1_000_000)),
        ]
    );
    assert_eq!(reader.skipped().of(SkipReason::Header), 1);
}

#[test]
fn csv_without_a_time_column_says_so() {
    let columns = Some("obj-id-col=3,obj-size-col=4,op-col=2:R|W".to_owned());
    let (records, reader) =
        read_fixture("alibaba.csv", &ReadOptions { columns, ..ReadOptions::default() });
    assert!(!reader.has_times());
    assert!(records.iter().all(|record| record.time_ns == 0));
}

#[test]
fn disksim_in_milliseconds() {
    let (records, reader) = read_fixture("disksim.trace", &ReadOptions::default());
    assert_eq!(
        records,
        [
            record(0, 0, Write, 16 * 512, 4096, None),
            record(1_250_000, 0, Read, 24 * 512, 4096, None),
            record(12_500_000, 1, Read, 4096 * 512, 8192, None),
        ]
    );
    assert!(reader.detected().contains("times in ms, flag bit 0 = read"), "{}", reader.detected());
}

#[test]
fn disksim_in_nanoseconds_needs_the_unit() {
    let options = ReadOptions {
        format: Some(Format::DiskSim),
        time_unit: Some(TimeUnit::Nanoseconds),
        ..ReadOptions::default()
    };
    let (records, _) = read_fixture("disksim_ns.trace", &options);
    assert_eq!(
        records,
        [
            record(0, 0, Write, 303_567 * 512, 3584, None),
            record(26_214_000, 1, Read, 240_840 * 512, 3072, None),
            record(26_214_001, 0, Write, 8 * 512, 4096, None),
        ]
    );
}

#[test]
fn arc_pages() {
    let (records, reader) = read_fixture("arc.lis", &ReadOptions::default());
    assert_eq!(records.len(), 3);
    assert_eq!(records[1], record(0, 0, Read, 1_842_745 * 512, 64 * 512, None));
    assert!(!reader.has_times());
    let pages = ReadOptions { page_bytes: Some(4096), ..ReadOptions::default() };
    assert_eq!(
        read_fixture("arc.lis", &pages).0[2],
        record(0, 0, Read, 216_082 * 4096, 4096, None)
    );
}

#[test]
fn lines_longer_than_the_buffer_step_and_batches_are_joined() {
    // 40,000 lines of 52 bytes: several buffers and batches, with line breaks at every place in a buffer.
    let text: String = (0..40_000u64)
        .map(|index| {
            format!(
                "{},host,0,Write,{},4096,{index}\n",
                128_166_372_000_000_000 + index,
                index * 4096
            )
        })
        .collect();
    let records = read_bytes(text.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(records.len(), 40_000);
    for (index, record) in (0..).zip(&records) {
        assert_eq!(
            (record.time_ns, record.offset_bytes, record.response_ns),
            (index * 100, index * 4096, Some(index * 100))
        );
    }
}

/// Every writable text format, read back: what the format can hold survives.
#[test]
fn written_traces_read_back() {
    for (format, name) in [(WriteFormat::Msr, "msr"), (WriteFormat::Spc, "spc")] {
        let (before, _) = read_fixture("spc.spc", &ReadOptions::default());
        let reader = imbrex_traces::open(&fixture("spc.spc"), &ReadOptions::default()).unwrap();
        let (bytes, summary) = write_to(reader, Vec::new(), "out", &format.into()).unwrap();
        assert_eq!(summary.records, 4);
        let after = read_bytes(&bytes, &ReadOptions::default()).unwrap();
        for (before, after) in before.iter().zip(&after) {
            let mut expected = *before;
            if format == WriteFormat::Msr {
                expected.time_ns = expected.time_ns / 100 * 100;
                expected.response_ns = Some(0);
            }
            assert_eq!(*after, expected, "{name}");
        }
    }
}

#[test]
fn a_synthetic_trace_stays_synthetic_as_msr_csv() {
    let reader = imbrex_traces::open("synthetic:wdev-like/4096", &ReadOptions::default()).unwrap();
    let (bytes, _) = write_to(reader, Vec::new(), "out", &WriteFormat::Msr.into()).unwrap();
    let reader =
        TraceReader::from_read("t", std::io::Cursor::new(bytes), &ReadOptions::default()).unwrap();
    assert_eq!(reader.source().kind, SourceKind::Synthetic);
}

/// A recorded trace with everything that some format cannot say, and one without times.
#[test]
fn what_a_format_loses_is_counted() {
    let header = RecordingHeader {
        kind: SourceKind::Recorded,
        name: "all".to_owned(),
        description: String::new(),
        device_bytes: 1 << 40,
        has_times: true,
    };
    let mut forced = record(2_000, 0, Write, 4096, 4096, None);
    forced.fua = true;
    let records = [
        record(0, 0, Read, 100, 4096, None),
        record(1_000, 0, Write, 0, 2 << 30, None),
        forced,
        record(3_000, 0, Trim, 0, 4096, None),
        record(4_000, 0, Flush, 0, 0, None),
        record(5_000, 0, TraceOperation::WriteZeroes, 0, 4096, None),
    ];
    let mut writer = RecordingWriter::new(Vec::new(), &header).unwrap();
    for record in &records {
        writer.write(record).unwrap();
    }
    let recording = writer.finish().unwrap();
    let lost = |bytes: &[u8], format: WriteFormat| {
        let bytes = std::io::Cursor::new(bytes.to_vec());
        let reader = TraceReader::from_read("t", bytes, &ReadOptions::default()).unwrap();
        let (_, summary) = write_to(reader, Vec::new(), "out", &format.into()).unwrap();
        (summary.records, summary.losses.to_string())
    };
    let of_all = [
        (WriteFormat::Recording, 6, ""),
        (
            WriteFormat::Msr,
            4,
            "flushes (left out): 1, trims (left out): 1, writes of zeroes (now writes): 1, marks of forced \
             unit access: 1, unknown response times (now 0): 4, that it is synthetic or recorded, the size of \
             the device",
        ),
        (
            WriteFormat::Spc,
            3,
            "flushes (left out): 1, trims (left out): 1, requests off a multiple of 512 bytes (left out): 1, \
             writes of zeroes (now writes): 1, marks of forced unit access: 1, that it is synthetic or \
             recorded, the size of the device",
        ),
        (
            WriteFormat::Fio,
            6,
            "writes of zeroes (now writes): 1, marks of forced unit access: 1, requests as one (now several): \
             1, that it is synthetic or recorded, the size of the device",
        ),
    ];
    for (format, kept, losses) in of_all {
        assert_eq!(lost(&recording, format), (kept, losses.to_owned()));
    }
    let fine = b"128166372000000000,h,0,Read,0,4096,70\n128166372000000007,h,0,Read,0,4096,70\n";
    let losses = "times below the unit of the format: 1, response times: 2";
    for format in [WriteFormat::Recording, WriteFormat::Fio] {
        assert_eq!(lost(fine, format), (2, losses.to_owned()));
    }
    assert_eq!(lost(fine, WriteFormat::Msr), (2, String::new()));
    let untimed = b"0 4 0 0\n4 4 0 0\n";
    assert_eq!(lost(untimed, WriteFormat::Recording), (2, String::new()));
    let losses = "that there are no times (now all 0)".to_owned();
    assert_eq!(lost(untimed, WriteFormat::Fio), (2, losses));
}

#[test]
fn fio_iolog_version_3() {
    let columns =
        Some("time=when:ms,op=kind:read|write|trim,off=start:blocks,len=count:kib".to_owned());
    let options = ReadOptions { columns, delimiter: Some(b';'), ..ReadOptions::default() };
    let reader = imbrex_traces::open(&fixture("named.csv"), &options).unwrap();
    let (bytes, summary) = write_to(reader, Vec::new(), "out", &WriteFormat::Fio.into()).unwrap();
    assert_eq!(
        String::from_utf8(bytes).unwrap(),
        "fio version 3 iolog\n0 imbrex-trace add\n0 imbrex-trace open\n0 imbrex-trace read 8192 1024\n250 imbrex-trace write \
         16384 2048\n500 imbrex-trace trim 16384 2048\n500 imbrex-trace close\n"
    );
    assert_eq!(summary.records, 3);
}
