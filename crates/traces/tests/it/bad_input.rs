//! The exact message for each kind of bad input, and no panic on any bytes.

use imbrex_traces::{Format, ReadOptions, SkipReason, TraceReader, open};
use proptest::prelude::*;

use crate::{fixture, read_bytes};

const MSR: &str = "128166386787582087,mds,1,Read,1211904,4608,1331\n128166386816018591,mds,1,Write,3216997888,16384,2326\n";

fn message(text: &str) -> String {
    message_with(text, &ReadOptions::default())
}

fn message_with(text: &str, options: &ReadOptions) -> String {
    read_bytes(text.as_bytes(), options).expect_err("this input is bad").to_string()
}

fn mapped(columns: &str) -> ReadOptions {
    ReadOptions { columns: Some(columns.to_owned()), ..ReadOptions::default() }
}

fn as_format(format: Format) -> ReadOptions {
    ReadOptions { format: Some(format), ..ReadOptions::default() }
}

#[test]
fn truncated_trace() {
    assert_eq!(
        message(&MSR[..MSR.len() - 18]),
        "t, line 2: the line ends after 5 fields; accepted: 7 fields: Timestamp, Hostname, DiskNumber, Type, Offset, Size, \
         ResponseTime"
    );
    assert_eq!(
        message("0,303567,3584,w,0.000000\n1,55590"),
        "t, line 2: the line ends after 2 fields; accepted: 5 fields: ASU, LBA, Size, Opcode, Timestamp"
    );
    assert_eq!(
        message("version,time,op,size,lbn\n1,5633898368802,2a,512,42932745\n1,5633"),
        "t, line 3: the line ends after 2 fields; accepted: at least 5 fields, as the column map says"
    );
    assert_eq!(
        message("0.0 0 16 8 0\n1.25 0"),
        "t, line 2: the line ends after 2 fields; accepted: 5 fields: arrival, devno, blkno, bcount, flags"
    );
    assert_eq!(
        message("1 1 0 0\n2 1 0 1\n3"),
        "t, line 3: the line ends after 1 field; accepted: 4 fields: start, count, ignored, request number"
    );
}

/// The records before the damage are still returned.
#[test]
fn records_before_the_damage_are_returned() {
    let text = format!("{MSR}128166386816018592,mds,1,Wri");
    let reader = TraceReader::from_read(
        "t",
        std::io::Cursor::new(text.into_bytes()),
        &ReadOptions::default(),
    )
    .unwrap();
    let results: Vec<_> = reader.collect();
    assert_eq!(results.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false]);
}

#[test]
fn non_numeric_field() {
    assert_eq!(
        message(&MSR.replace("3216997888", "321x")),
        "t, line 2, field 5 (Offset): \"321x\" is not a number; accepted: an unsigned integer, in bytes"
    );
    assert_eq!(
        message(&MSR.replace("3216997888", "-5")),
        "t, line 2, field 5 (Offset): \"-5\" is not a number; accepted: an unsigned integer, in bytes"
    );
    assert_eq!(
        message("0,303567,3584,w,0.0\n0,1,512,w,1.0.0\n"),
        "t, line 2, field 5 (Timestamp): \"1.0.0\" is not a number; accepted: a decimal number of seconds"
    );
    assert_eq!(
        message("1,5633898368802,2a,512,42932745\n1,5633898368803,2a,many,42932745\n"),
        "t, line 2, field 4 (length): \"many\" is not a number; accepted: an unsigned integer"
    );
    assert_eq!(
        message("0.5 0 16 8 0\n1.5 0 16 eight 0\n"),
        "t, line 2, field 4 (bcount): \"eight\" is not a number; accepted: an unsigned integer, in 512-byte blocks"
    );
}

#[test]
fn unknown_operation() {
    assert_eq!(
        message(&MSR.replace("Write", "Erase")),
        "t, line 2, field 4 (Type): \"Erase\" is not an operation; accepted: Read or Write"
    );
    assert_eq!(
        message_with("1,2,x\n", &mapped("off=1,len=2,op=3:R|W")),
        "t, line 1, field 3 (operation): \"x\" is not an operation; accepted: r (read), w (write)"
    );
}

#[test]
fn numbers_beyond_any_device() {
    assert_eq!(
        message("0,18446744073709551615,512,w,0.0\n0,1,512,w,0.0\n"),
        "t, line 1: a value of the line is too large; accepted: at most 2^40 bytes within the first 2^62, times within 500 years"
    );
}

#[test]
fn unknown_column() {
    assert_eq!(
        message_with("a,b\n1,2\n", &mapped("off=offset,len=b")),
        "column map \"off=offset,len=b\": unknown column \"offset\"; accepted: a, b or a number from 1 to 2"
    );
    // A name in the file cannot break the message.
    assert_eq!(
        message_with("a,b\0\rc\n1,2\n", &mapped("off=offset,len=b")),
        "column map \"off=offset,len=b\": unknown column \"offset\"; accepted: a, b\\0\\rc or a number from 1 to 2"
    );
    assert_eq!(
        message_with("1,2\n", &mapped("off=offset,len=2")),
        "column map \"off=offset,len=2\": unknown column \"offset\"; accepted: a number from 1, because the file has no \
         header line"
    );
    assert_eq!(
        message_with("a,b\n1,2\n", &mapped("off=1,len=3")),
        "column map \"off=1,len=3\": unknown column 3; accepted: 1 to 2"
    );
    assert_eq!(
        message_with("1,2\n", &mapped("off=0,len=1")),
        "column map \"off=0,len=1\": unknown column 0; accepted: columns count from 1"
    );
    assert_eq!(
        message_with("1,2\n", &mapped("off=1,len=2,tiem=3")),
        "column map \"off=1,len=2,tiem=3\": unknown key \"tiem\"; accepted: time, op, off, len, dev, resp, fua"
    );
    assert_eq!(
        message_with("1,2\n", &mapped("off=1:pages,len=2")),
        "column map \"off=1:pages,len=2\": unknown size unit \"pages\"; accepted: bytes, sectors (512 B), kib, blocks (4 KiB), or a number of \
         bytes up to 1073741824"
    );
    assert_eq!(
        message_with("1,2\n", &mapped("off=1")),
        "column map \"off=1\": key \"len\" is missing; a map needs at least off and len"
    );
}

#[test]
fn empty_file() {
    let accepted = "accepted: a trace with at least one request";
    assert_eq!(message(""), format!("t: the file is empty; {accepted}"));
    // Compressed nothing is nothing too.
    let nothing = zstd::encode_all(&b""[..], 3).unwrap();
    let error = read_bytes(&nothing, &ReadOptions::default()).unwrap_err().to_string();
    assert_eq!(error, format!("t: the file is empty; {accepted}"));
    assert_eq!(
        message("version,time,op,size,lbn\n"),
        format!("t: no request in 1 lines (header: 1); {accepted}")
    );
}

#[test]
fn missing_file() {
    let error = open("no/such/trace.csv", &ReadOptions::default()).err().unwrap().to_string();
    assert_eq!(error, "no/such/trace.csv: No such file or directory (os error 2)");
}

const READABLE: &str = "accepted: MSR Cambridge CSV, SPC, libCacheSim CSV, DiskSim ASCII, ARC .lis, Alibaba, Tencent and SYSTOR '17 CSV, FIU, \
                        fio iolog 2 and 3, Parquet, an Imbrex \
                        recording, binary blktrace, the text of blkparse, vscsi, oracleGeneral, LCS, SRT, web logs, or any \
                        delimited columns with --format csv --map";

#[test]
fn formats_that_cannot_be_told_are_refused() {
    let nanoseconds = std::fs::read_to_string(fixture("disksim_ns.trace")).unwrap();
    assert_eq!(
        message(&nanoseconds),
        "t: cannot tell the format: five integers such as \"0 0 303567 7 0\" may be times in ns, ms or s, and the last may mean \
         read or write when 1; accepted: --format disksim --time-unit ns (1 = read, as MQSim and SSDsim), or --format csv --map"
    );
    assert_eq!(
        message_with(&nanoseconds, &as_format(Format::DiskSim)),
        "t: the times have no decimal point, so their unit cannot be told; accepted: --time-unit ns, us, ms or s"
    );
    assert_eq!(
        message("hello world\n"),
        format!("t: the format is not recognised from \"hello world\"; {READABLE}")
    );
    assert!(
        message("7,2048,16,0,5\n8,2048,16,1,5\n").contains(
            "five integers may be a Tencent block trace (--format tencent) or columns of any other order (for \
             example --format csv --map 'time=1:s,off=2:sectors,len=3:sectors,op=4:0|1,dev=5')"
        )
    );
    assert_eq!(
        message("fio version 4 iolog\n"),
        format!("t: this is a fio iolog of an unknown version, which is not read; {READABLE}")
    );
    assert!(message("PK\x03\x04zip").contains("the directory of the zip archive cannot be read"));
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let options = ReadOptions { page_bytes: Some(4096), ..ReadOptions::default() };
    assert_eq!(
        message_with(MSR, &options),
        "--page-bytes: the format msr has no use for it; accepted: with arc"
    );
    assert_eq!(
        message_with(MSR, &as_format(Format::Csv)),
        "--map: the format csv needs it; accepted: for example time=2:us,op=3:scsi,len=4:bytes,off=5:sectors"
    );
    assert_eq!(
        message_with(MSR, &as_format(Format::Recording)),
        "t: the file does not start with the magic of a recording; accepted: an Imbrex recording"
    );
    assert_eq!(
        "mrs".parse::<Format>().unwrap_err(),
        "unknown trace format \"mrs\"; accepted: msr, spc, libcachesim, csv, disksim, arc, alibaba, tencent, systor, fiu, fio, fio-v1, blkparse, clf, imbrex, blktrace, vscsi, oracle-general, lcs, srt, parquet"
    );
}

#[test]
fn comments_and_blank_lines_are_counted() {
    let text = format!("# made by hand\n\n{MSR}   \n");
    let mut reader = TraceReader::from_read(
        "t",
        std::io::Cursor::new(text.into_bytes()),
        &ReadOptions::default(),
    )
    .unwrap();
    assert_eq!(reader.by_ref().filter(Result::is_ok).count(), 2);
    assert_eq!(
        (reader.skipped().of(SkipReason::Comment), reader.skipped().of(SkipReason::Blank)),
        (1, 2)
    );
}

#[test]
fn a_line_without_end_is_refused() {
    let text = format!("{MSR}{}", "9".repeat(70_000));
    assert_eq!(
        message(&text),
        "t, line 3: the line is longer than 65536 bytes; accepted: a text trace with one request a line"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), kind in 0..7usize) {
        let formats = [Format::Msr, Format::Spc, Format::LibCacheSim, Format::Csv, Format::DiskSim, Format::Arc, Format::Recording];
        let mut options = as_format(formats[kind]);
        if formats[kind] == Format::Csv {
            options.columns = Some("time=1:s,off=2:sectors,len=3,op=4,dev=5".to_owned());
        }
        // Either outcome is fine; what counts is that there is one.
        let _ = read_bytes(&bytes, &options);
        let _ = read_bytes(&bytes, &ReadOptions::default());
    }

    #[test]
    fn no_mutation_of_a_good_line_makes_a_reader_panic(
        at in 0..96usize, byte in any::<u8>(), cut in 0..97usize
    ) {
        for name in ["msr.csv", "spc.spc", "libcachesim.csv", "disksim.trace", "arc.lis"] {
            let mut bytes = std::fs::read(fixture(name)).unwrap();
            let length = bytes.len();
            bytes[at % length] = byte;
            bytes.truncate(length.min(cut + 1));
            let _ = read_bytes(&bytes, &ReadOptions::default());
        }
    }

    #[test]
    fn no_mutation_of_magic_bytes_makes_a_decompressor_panic(magic in 0..5usize, rest in proptest::collection::vec(any::<u8>(), 0..200)) {
        let magics: [&[u8]; 5] = [b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"BZh9", b"\x89IMBREX\n"];
        let bytes = [magics[magic], &rest].concat();
        prop_assert!(read_bytes(&bytes, &ReadOptions::default()).is_err());
    }
}
