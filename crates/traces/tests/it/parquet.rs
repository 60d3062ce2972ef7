//! Parquet: our own files, files of others, and what is refused.

use std::sync::Arc;

use imbrex_traces::TraceOperation::{Read, Trim, Write};
use imbrex_traces::{
    Format, ReadOptions, RecordingHeader, RecordingWriter, SourceKind, TraceOperation, TraceReader,
    TraceRecord, WriteFormat, open, write_to,
};
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::file::metadata::{
    ColumnChunkMetaDataBuilder, ParquetMetaDataReader, ParquetMetaDataWriter,
    RowGroupMetaDataBuilder,
};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

use crate::{fixture, read_bytes, read_fixture, record};

const OPERATIONS: [TraceOperation; 5] =
    [Read, Write, TraceOperation::WriteZeroes, Trim, TraceOperation::Flush];

/// A file of our own with these records.
fn written(records: &[TraceRecord], has_times: bool) -> Vec<u8> {
    let header = RecordingHeader {
        kind: SourceKind::Recorded,
        name: "all".to_owned(),
        description: "by \"hand\"".to_owned(),
        device_bytes: 1 << 41,
        has_times,
    };
    let mut recording = RecordingWriter::new(Vec::new(), &header).unwrap();
    for record in records {
        recording.write(record).unwrap();
    }
    convert(recording.finish().unwrap())
}

/// A trace as Parquet.
fn convert(trace: Vec<u8>) -> Vec<u8> {
    let trace = std::io::Cursor::new(trace);
    let reader = TraceReader::from_read("t", trace, &ReadOptions::default()).unwrap();
    let (bytes, summary) =
        write_to(reader, Vec::new(), "out", &WriteFormat::Parquet.into()).unwrap();
    assert!(summary.losses.is_empty());
    bytes
}

/// A file of our own with every operation, for who damages it.
pub fn every_operation() -> Vec<u8> {
    let records: Vec<_> = (0u64..)
        .zip(OPERATIONS)
        .map(|(index, operation)| {
            let flush = operation == TraceOperation::Flush;
            let (offset, length) = if flush { (0, 0) } else { (index << 30, 4096) };
            let fua = operation == Write;
            TraceRecord {
                fua,
                ..record(index * 1000, index as u16, operation, offset, length, None)
            }
        })
        .collect();
    written(&records, true)
}

fn reader(bytes: &[u8], options: &ReadOptions) -> TraceReader {
    let bytes = std::io::Cursor::new(bytes.to_vec());
    TraceReader::from_read("t", bytes, options).unwrap_or_else(|error| panic!("{error}"))
}

fn mapped(map: &str) -> ReadOptions {
    ReadOptions { columns: Some(map.to_owned()), ..ReadOptions::default() }
}

#[test]
fn a_file_of_our_own_says_what_is_in_it() {
    let bytes = every_operation();
    let mut trace = reader(&bytes, &ReadOptions::default());
    let records: Vec<_> = trace.by_ref().map(Result::unwrap).collect();
    assert_eq!(records.iter().map(|it| it.operation).collect::<Vec<_>>(), OPERATIONS);
    assert_eq!(records.iter().filter(|it| it.fua).count(), 1);
    assert_eq!(records[3].offset_bytes, 3 << 30);
    assert_eq!(
        trace.detected(),
        "parquet in the file: the file starts with the magic of Parquet, columns as the file says: \
         time=time_ns:ns,op=operation:names,off=offset_bytes:bytes,len=length_bytes:bytes,dev=device,\
         resp=response_ns:ns,fua=fua"
    );
    assert_eq!(trace.source().kind, SourceKind::Recorded);
    assert_eq!(trace.source().device_bytes, Some(1 << 41));
    assert!(trace.source().label.starts_with("recorded "), "{}", trace.source().label);
    assert_eq!(trace.counts().lines, 5);
}

#[test]
fn a_trace_without_times_has_none_afterwards() {
    let bytes = written(&[record(0, 0, Read, 0, 4096, None)], false);
    let trace = reader(&bytes, &ReadOptions::default());
    assert!(!trace.has_times());
    assert!(!trace.detected().contains("time"), "{}", trace.detected());
}

/// Response times, devices and times to the nanosecond, of the formats that have them.
#[test]
fn every_fixture_survives() {
    for name in ["msr.csv", "blktrace7.bin", "systor.csv", "spc.spc", "srt4.bin", "fiu.blkparse"] {
        let (before, _) = read_fixture(name, &ReadOptions::default());
        let bytes = convert(std::fs::read(fixture(name)).unwrap());
        assert_eq!(read_bytes(&bytes, &ReadOptions::default()).unwrap(), before, "{name}");
    }
}

#[test]
fn a_file_on_a_disk_is_hashed_and_one_that_is_packed_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet.gz");
    let source = open(&fixture("msr.csv"), &ReadOptions::default()).unwrap();
    let path = path.to_str().unwrap();
    imbrex_traces::write(source, path, &WriteFormat::of_name(path).unwrap().into()).unwrap();
    let plain = folder.path().join("plain");
    let packed = std::fs::File::open(path).unwrap();
    let mut unpacked = flate2::read::GzDecoder::new(packed);
    std::io::copy(&mut unpacked, &mut std::fs::File::create(&plain).unwrap()).unwrap();
    let options = ReadOptions { sha256: true, ..ReadOptions::default() };
    for path in [path, plain.to_str().unwrap()] {
        let mut reader = open(path, &options).unwrap();
        assert_eq!(reader.by_ref().map(Result::unwrap).count(), 4);
        let stored = imbrex_traces::stored_sha256(path, &options).unwrap();
        assert_eq!(reader.sha256(), Some(stored));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Through a recording, which keeps microseconds, and with response times through MSR.
    #[test]
    fn random_records_survive(
        rows in proptest::collection::vec(
            (0u64..1 << 40, 0u64..1 << 50, 1u64..1 << 30, 0usize..5, 0u16..3, any::<bool>()), 1..400
        )
    ) {
        let mut records: Vec<TraceRecord> = rows
            .iter()
            .map(|&(time, offset, length, operation, device, fua)| {
                let operation = OPERATIONS[operation];
                let flush = operation == TraceOperation::Flush;
                let (offset, length) = if flush { (0, 0) } else { (offset, length) };
                TraceRecord { fua, ..record(time / 1000 * 1000, device, operation, offset, length, None) }
            })
            .collect();
        records.sort_by_key(|record| record.time_ns);
        let first_ns = records[0].time_ns;
        let bytes = written(&records, true);
        records.iter_mut().for_each(|record| record.time_ns -= first_ns);
        prop_assert_eq!(read_bytes(&bytes, &ReadOptions::default()).unwrap(), records);
    }
}

/// A row group of a file by other people, written column by column.
struct Foreign<'a>(SerializedRowGroupWriter<'a, Vec<u8>>);

impl Foreign<'_> {
    fn column<T: DataType>(&mut self, values: &[T::T], levels: Option<&[i16]>) {
        let mut column = self.0.next_column().unwrap().unwrap();
        column.typed::<T>().write_batch(values, levels, None).unwrap();
        column.close().unwrap();
    }
}

/// A file with this schema, and as many row groups of the same content.
fn foreign(
    schema: &str,
    properties: WriterProperties,
    groups: usize,
    write: impl Fn(&mut Foreign<'_>),
) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(&format!("message m {{ {schema} }}")).unwrap());
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    for _ in 0..groups {
        let mut group = Foreign(file.next_row_group().unwrap());
        write(&mut group);
        group.0.close().unwrap();
    }
    file.into_inner().unwrap()
}

fn plain() -> WriterProperties {
    WriterProperties::builder().set_compression(Compression::UNCOMPRESSED).build()
}

/// What pandas makes of a table: every column may have no value, strings come from a dictionary.
pub fn of_a_table(properties: WriterProperties) -> Vec<u8> {
    let schema = "optional int64 when (TIMESTAMP(MICROS,false)); optional binary kind (STRING);
        optional int32 block (INTEGER(32,false)); optional int64 count; optional double took;";
    foreign(schema, properties, 2, |group| {
        let all = Some(&[1, 1, 1][..]);
        group.column::<Int64Type>(&[5, 7, 6], all);
        let kinds = ["R", "write", "R"].map(ByteArray::from);
        group.column::<ByteArrayType>(&kinds, all);
        group.column::<Int32Type>(&[0, -1, 8], all);
        group.column::<Int64Type>(&[1, 2, 3], all);
        group.column::<DoubleType>(&[1.5, 0.25], Some(&[1, 0, 1]));
    })
}

/// Tables whose bytes are not compressed, so that damage comes to the decoders: every encoding that is read, and rows without a value.
pub fn plain_tables() -> Vec<Vec<u8>> {
    let schema = "optional int64 time (TIMESTAMP(NANOS,false)); optional binary op (STRING);
        required int32 off (INTEGER(32,false)); optional int64 len; required int32 dev;
        optional double resp; required boolean fua;";
    let build = |version| {
        let builder = WriterProperties::builder().set_writer_version(version);
        let builder = builder
            .set_column_dictionary_enabled("time".into(), false)
            .set_column_encoding("time".into(), Encoding::DELTA_BINARY_PACKED)
            .set_column_dictionary_enabled("resp".into(), false)
            .set_column_dictionary_enabled("dev".into(), false)
            .set_data_page_row_count_limit(40)
            .set_write_batch_size(40);
        foreign(schema, builder.build(), 1, |group| {
            const ROWS: i64 = 100;
            let (all, half): (Vec<_>, Vec<_>) = (0..100).map(|row| (1, row % 2)).unzip();
            let times: Vec<_> = (0..ROWS).map(|row| row * row).collect();
            group.column::<Int64Type>(&times, Some(&all));
            let kinds: Vec<_> = (0..100).map(|row| ["r", "w"][row % 2].into()).collect();
            group.column::<ByteArrayType>(&kinds, Some(&all));
            let numbers: Vec<i32> = (0..100).collect();
            group.column::<Int32Type>(&numbers, None);
            let lengths: Vec<_> = (0..ROWS).map(|row| 512 << (row % 5)).collect();
            group.column::<Int64Type>(&lengths, Some(&all));
            group.column::<Int32Type>(&numbers, None);
            let responses: Vec<f64> = (0..50).map(f64::from).collect();
            group.column::<DoubleType>(&responses, Some(&half));
            let flags: Vec<_> = numbers.iter().map(|number| number % 3 == 0).collect();
            group.column::<BoolType>(&flags, None);
        })
    };
    [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0].map(build).to_vec()
}

#[test]
fn every_encoding_is_read() {
    for bytes in plain_tables() {
        let records = read_bytes(&bytes, &ReadOptions::default()).unwrap();
        assert_eq!(records.len(), 100);
        for (row, found) in (0u64..).zip(&records) {
            let operation = [Read, Write][row as usize % 2];
            let response = (row % 2 == 1).then_some((row / 2) * 1_000_000_000);
            let mut expected =
                record(row * row, row as u16, operation, row, 512 << (row % 5), response);
            expected.fua = row % 3 == 0;
            assert_eq!(*found, expected);
        }
    }
}

const TABLE: &str = "time=when,op=kind,off=block:blocks,len=count:sectors,resp=took:ms";

#[test]
fn a_table_of_others_is_read_through_a_map_in_every_compression() {
    let build = |codec, version| {
        let builder = WriterProperties::builder().set_compression(codec);
        of_a_table(builder.set_writer_version(version).build())
    };
    let codecs = [Compression::UNCOMPRESSED, Compression::ZSTD(Default::default())];
    for (codec, version) in codecs.into_iter().flat_map(|codec| {
        [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0].map(|it| (codec, it))
    }) {
        let mut trace = reader(&build(codec, version), &mapped(TABLE));
        let records: Vec<_> = trace.by_ref().map(Result::unwrap).collect();
        let at = |time_ns| {
            [
                record(time_ns, 0, Read, 0, 512, Some(1_500_000)),
                record(2000.max(time_ns), 0, Write, 4096 * 0xffff_ffff, 1024, None),
                record(2000.max(time_ns), 0, Read, 4096 * 8, 1536, Some(250_000)),
            ]
        };
        let mut expected = [at(0), at(2000)].concat();
        expected[1].time_ns = 2000;
        assert_eq!(records, expected, "{codec}");
        assert_eq!(trace.counts().time_inversions, 3);
    }
}

/// `fixtures/traces/foreign.parquet` is written byte by byte by `make_binary.py`, with gzip and names that speak for themselves.
#[test]
fn columns_whose_names_speak_for_themselves_need_no_map() {
    let (records, reader) = read_fixture("foreign.parquet", &ReadOptions::default());
    assert_eq!(
        records,
        [
            record(0, 3, Read, 4096, 512, None),
            record(1_000_000_000, 3, Write, 8192, 4096, None),
            record(1_000_000_000, 4, Read, 0, 1024, None),
        ]
    );
    assert_eq!(reader.skipped().to_string(), "zero length: 1");
    assert!(
        reader
            .detected()
            .ends_with("columns by their names: time=time,op=op,off=offset,len=size,dev=dev"),
        "{}",
        reader.detected()
    );
}

#[test]
fn operations_may_be_numbers_and_flags() {
    let schema = "required int64 off; required int32 len; required boolean is_write;
        required int32 code; required float t;";
    let bytes = foreign(schema, plain(), 1, |group| {
        group.column::<Int64Type>(&[0, 4096, 8192], None);
        group.column::<Int32Type>(&[512, 512, 512], None);
        group.column::<BoolType>(&[true, false, true], None);
        group.column::<Int32Type>(&[0x2a, 0x28, 0], None);
        group.column::<FloatType>(&[0.5, 1.5, 1.75], None);
    });
    let read = |map: &str| read_bytes(&bytes, &mapped(map)).unwrap();
    let flags = read("off=off,len=len,op=is_write:false|true,time=t");
    let operations: Vec<_> = flags.iter().map(|it| it.operation).collect();
    assert_eq!(operations, [Write, Read, Write]);
    assert_eq!(flags[2].time_ns, 1_250_000_000);
    // The third one is no command that moves data.
    let scsi = read("off=off,len=len,op=4:scsi");
    assert_eq!(scsi.iter().map(|it| it.operation).collect::<Vec<_>>(), [Write, Read]);
    let tokens = read("off=off,len=len,op=code:40|42|0");
    assert_eq!(tokens.iter().map(|it| it.operation).collect::<Vec<_>>(), [Write, Read, Trim]);
}

fn message(bytes: &[u8], map: &str) -> String {
    let error = read_bytes(bytes, &mapped(map));
    error.expect_err("this input is bad").to_string()
}

#[test]
fn columns_that_do_not_fit_are_named() {
    let table = of_a_table(plain());
    assert_eq!(
        message(&table, "off=block,len=size"),
        "column map \"off=block,len=size\": unknown column \"size\"; accepted: when, kind, block, count, took or a \
         number from 1 to 5"
    );
    assert_eq!(
        message(&table, "off=kind,len=count"),
        "column map \"off=kind,len=count\": the column kind is BYTE_ARRAY (UTF8); accepted: an integer column"
    );
    assert_eq!(
        message(&table, "off=block,len=count,op=took"),
        "column map \"off=block,len=count,op=took\": the column took is DOUBLE; accepted: a column of strings, integers \
         or booleans"
    );
    assert_eq!(
        message(&table, "off=block,len=count,time=when:ms"),
        "column map \"off=block,len=count,time=when:ms\": the column when is INT64 (TIMESTAMP_MICROS), whose unit is us \
         and not ms; accepted: :us, or no unit"
    );
    assert_eq!(
        read_bytes(&table, &ReadOptions::default()).unwrap_err().to_string(),
        "t: no column of the Parquet file is called off, offset, offset_bytes; it has when, kind, block, count, took; \
         accepted: --map with off and len at least, for example --map 'time=COLUMN:us,op=COLUMN,off=COLUMN:sectors,\
         len=COLUMN:bytes'"
    );
}

#[test]
fn values_that_do_not_fit_are_named_with_their_row() {
    let schema =
        "optional int64 off; required int32 len; required binary op (STRING); required int32 dev;";
    let rows = |first: [i64; 2], levels: [i16; 3], last: [i32; 3], kind: &'static str| {
        foreign(schema, plain(), 1, move |group| {
            let there: Vec<i64> =
                first[..levels.iter().filter(|it| **it == 1).count().min(2)].to_vec();
            let offsets = [&there[..], &[4096]].concat();
            let count = levels.iter().filter(|it| **it == 1).count();
            group.column::<Int64Type>(&offsets[..count], Some(&levels));
            group.column::<Int32Type>(&last, None);
            group.column::<ByteArrayType>(&["r", "r", kind].map(ByteArray::from), None);
            group.column::<Int32Type>(&[0, 1, 2], None);
        })
    };
    let all = "off=off,len=len,op=op,dev=dev";
    let of = |bytes: &[u8]| message(bytes, all);
    assert_eq!(
        of(&rows([0, 8], [1, 0, 1], [512; 3], "w")),
        "t, row 2, column off: no value; accepted: a number from 0 that fits 64 bits in bytes"
    );
    assert_eq!(
        of(&rows([0, -8], [1, 1, 1], [512; 3], "w")),
        "t, row 2, column off: -8; accepted: a number from 0 that fits 64 bits in bytes"
    );
    assert_eq!(
        of(&rows([0, 8], [1, 1, 1], [512, 512, -1], "w")),
        "t, row 3, column len: -1; accepted: a number from 0 that fits 64 bits in bytes"
    );
    assert_eq!(
        of(&rows([0, 8], [1, 1, 1], [512; 3], "x")),
        "t, row 3, column op: \"x\"; accepted: R, W, read or write"
    );
    assert_eq!(
        of(&rows([1 << 62, 8], [1, 1, 1], [512; 3], "w")),
        "t, row 1, column off: a request of 512 bytes at byte 4611686018427387904; accepted: at most 2^40 bytes within \
         the first 2^62"
    );
    // The rows before the one that is wrong are read.
    let bytes = rows([0, 8], [1, 1, 1], [512; 3], "x");
    let read: Vec<_> = reader(&bytes, &mapped(all)).collect();
    assert_eq!((read.len(), read.iter().filter(|it| it.is_ok()).count()), (3, 2));
}

#[test]
fn what_is_not_read_is_said() {
    let good = every_operation();
    let of = |bytes: &[u8]| {
        let options = ReadOptions { format: Some(Format::Parquet), ..ReadOptions::default() };
        read_bytes(bytes, &options).expect_err("this input is bad").to_string()
    };
    assert_eq!(of(b"time,off\n"), "t: the file does not start with PAR1; accepted: a Parquet file");
    assert_eq!(
        of(b"PARE...."),
        "t: the footer of the Parquet file is encrypted; accepted: one that is not"
    );
    assert!(of(&good[..good.len() - 9]).contains("the footer of the Parquet file cannot be read"));
    // The length of the footer stands before the last magic.
    let mut long = good.clone();
    let at = long.len() - 8;
    long[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(of(&long).contains("the footer of the Parquet file cannot be read"));
    let encoded = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_column_encoding("op".into(), Encoding::DELTA_BYTE_ARRAY)
        .build();
    let schema = "required int64 off; required int64 len; required binary op (STRING);";
    let build = |properties| {
        foreign(schema, properties, 1, |group| {
            group.column::<Int64Type>(&[0], None);
            group.column::<Int64Type>(&[512], None);
            group.column::<ByteArrayType>(&[ByteArray::from("r")], None);
        })
    };
    assert_eq!(read_bytes(&build(plain()), &ReadOptions::default()).unwrap().len(), 1);
    assert_eq!(
        of(&build(encoded)),
        "t: row group 1, column op: a page of BYTE_ARRAY has the encoding DELTA_BYTE_ARRAY; accepted: PLAIN, \
         RLE_DICTIONARY, of integers DELTA_BINARY_PACKED, of booleans RLE"
    );
}

/// A file whose footer is changed: what it states must not be believed.
fn restated(
    bytes: &[u8],
    group: impl Fn(RowGroupMetaDataBuilder) -> RowGroupMetaDataBuilder,
    column: impl Fn(ColumnChunkMetaDataBuilder) -> ColumnChunkMetaDataBuilder,
) -> Vec<u8> {
    let metadata = ParquetMetaDataReader::new();
    let metadata = metadata.parse_and_finish(&bytes::Bytes::copy_from_slice(bytes)).unwrap();
    let groups = metadata.row_groups().iter().map(|stated| {
        let columns = stated.columns().iter();
        let columns =
            columns.map(|it| column(it.clone().into_builder()).build().unwrap()).collect();
        group(stated.clone().into_builder().set_column_metadata(columns)).build().unwrap()
    });
    let groups = groups.collect();
    let metadata = metadata.into_builder().set_row_groups(groups).build();
    // The data stays; the old footer behind it is what nobody points to.
    let mut restated = bytes.to_vec();
    ParquetMetaDataWriter::new(&mut restated, &metadata).finish().unwrap();
    restated
}

#[test]
fn what_a_footer_states_takes_no_memory() {
    let good = every_operation();
    let of = |bytes: Vec<u8>| message_of(&bytes);
    assert_eq!(
        read_bytes(&restated(&good, |it| it, |it| it), &Default::default()).unwrap().len(),
        5
    );
    assert_eq!(
        of(restated(&good, |it| it.set_num_rows(1 << 40), |it| it)),
        "t: row group 1, column offset_bytes: the column has fewer rows than num_rows of its row group says"
    );
    assert_eq!(
        of(restated(&good, |it| it.set_num_rows(-1), |it| it)),
        "t: row group 1: num_rows is -1; accepted: 0 or more"
    );
    assert!(
        of(restated(&good, |it| it, |it| it.set_total_compressed_size(1 << 40)))
            .contains("column offset_bytes: the data has 1099511627776 bytes from byte")
    );
    assert_eq!(
        of(restated(&good, |it| it, |it| it.set_compression(Compression::LZ4_RAW))),
        "t: row group 1, column offset_bytes: the compression is LZ4_RAW; accepted: UNCOMPRESSED, SNAPPY, GZIP or ZSTD"
    );
    // Pages of zstd, of which the footer says something else.
    for codec in
        [Compression::SNAPPY, Compression::UNCOMPRESSED, Compression::GZIP(Default::default())]
    {
        let error = of(restated(&good, |it| it, |it| it.set_compression(codec)));
        assert!(error.starts_with("t: row group 1, column offset_bytes: "), "{error}");
    }
}

fn message_of(bytes: &[u8]) -> String {
    read_bytes(bytes, &ReadOptions::default()).expect_err("this input is bad").to_string()
}
