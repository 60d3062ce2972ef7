//! Web server logs turned into block requests: extents, reads, assumed writes, what is skipped.

use imbrex_traces::TraceOperation::{Read, Write};
use imbrex_traces::{Format, HttpWrites, ReadOptions, SkipReason, Subsecond, TraceReader, open};

use crate::{fixture, read_bytes, read_fixture, record, samples};

const SECOND_NS: u64 = 1_000_000_000;

fn writing(http_writes: HttpWrites) -> ReadOptions {
    ReadOptions {
        http_writes: Some(http_writes),
        subsecond: Some(Subsecond::None),
        ..ReadOptions::default()
    }
}

// In the order in which they are delivered: three blocks for /index.html, three for the picture, one for the quoted name.
const INDEX: u64 = 0;
const PICTURE: u64 = 12_288;
const QUOTED: u64 = 24_576;
const DOCUMENTS_BYTES: u64 = 28_672;

#[test]
fn delivered_documents_are_read_from_their_extents() {
    let (records, reader) = read_fixture("access.log", &ReadOptions::default());
    assert_eq!(
        records,
        [
            record(0, 0, Read, INDEX, 8192, None),
            record(SECOND_NS / 2, 0, Read, PICTURE, 12_288, None),
            record(2 * SECOND_NS, 0, Read, INDEX, 12_288, None),
            record(3 * SECOND_NS, 0, Read, QUOTED, 4096, None),
            record(4 * SECOND_NS, 0, Read, INDEX, 4096, None),
        ]
    );
    assert_eq!(
        reader.skipped().to_string(),
        "not a line of a web log: 2, not a GET: 1, HTTP status 304: 1, HTTP status 404: 1, reply without bytes: 1"
    );
    let source = reader.source();
    assert_eq!(source.device_bytes, Some(DOCUMENTS_BYTES));
    assert!(
        source.label.ends_with(
            "access.log, a web log turned into block requests by a recipe: an extent for each of 3 URLs in first-seen order, as \
             long as its longest reply in blocks of 4 KiB; GET with status 200 reads; writes: none, times in seconds, requests \
             of a second spread evenly over it"
        ),
        "{}",
        source.label
    );
}

#[test]
fn documents_may_be_created_before_they_are_read() {
    let (records, reader) = read_fixture("access.log", &writing(HttpWrites::Create));
    assert_eq!(
        records,
        [
            record(0, 0, Write, INDEX, 12_288, None),
            record(0, 0, Read, INDEX, 8192, None),
            record(0, 0, Write, PICTURE, 12_288, None),
            record(0, 0, Read, PICTURE, 12_288, None),
            record(2 * SECOND_NS, 0, Read, INDEX, 12_288, None),
            record(3 * SECOND_NS, 0, Write, QUOTED, 4096, None),
            record(3 * SECOND_NS, 0, Read, QUOTED, 4096, None),
            record(4 * SECOND_NS, 0, Read, INDEX, 4096, None),
        ]
    );
    assert!(reader.source().label.contains("writes: each document before it is first read"));
}

/// The log of the log: every line counts, whatever came of it, and goes behind the documents.
#[test]
fn the_log_may_be_written_behind_the_documents() {
    let line = "h - - [03/Mar/2001:04:05:06 +0100] \"GET /a HTTP/1.0\" 304 0\n";
    let lines = 1000;
    let text = "h - - [03/Mar/2001:04:05:05 +0100] \"GET /a HTTP/1.0\" 200 8\n".to_owned()
        + &line.repeat(lines);
    let options = writing(HttpWrites::Log { bytes: 8192 });
    let records = read_bytes(text.as_bytes(), &options).unwrap();
    let mut expected = vec![record(0, 0, Read, 0, 4096, None)];
    let writes = text.len() as u64 / 8192;
    assert!(writes > 5);
    expected.extend(
        (0..writes).map(|write| record(SECOND_NS, 0, Write, 4096 + write * 8192, 8192, None)),
    );
    assert_eq!(records, expected);
    let bytes = std::io::Cursor::new(text.into_bytes());
    let reader = TraceReader::from_read("t", bytes, &options).unwrap();
    assert_eq!(reader.source().device_bytes, Some(4096 + writes * 8192));
}

#[test]
fn columns_between_tabs() {
    let (records, reader) = read_fixture("access.tsv", &ReadOptions::default());
    assert_eq!(
        records,
        [
            record(0, 0, Read, 0, 8192, None),
            record(SECOND_NS / 2, 0, Read, 0, 4096, None),
            record(3 * SECOND_NS, 0, Read, 8192, 4096, None),
        ]
    );
    assert_eq!(reader.skipped().to_string(), "header: 1, not a GET: 1");
}

/// A file is opened twice, anything else held in memory; compressed or not, the requests and the hash are the same.
#[test]
fn files_pipes_and_compressed_logs_give_the_same() {
    let options = ReadOptions { sha256: true, ..ReadOptions::default() };
    let folder = tempfile::tempdir().unwrap();
    let plain = std::fs::read(fixture("access.log")).unwrap();
    let (expected, reader) = read_fixture("access.log", &options);
    let plain_sha256 = reader.sha256().expect("the end was reached");
    for compressed in [plain.clone(), zstd::encode_all(&plain[..], 3).unwrap()] {
        let path = folder.path().join("log");
        std::fs::write(&path, &compressed).unwrap();
        let mut file = open(path.to_str().unwrap(), &options).unwrap();
        let from_file: Vec<_> = file.by_ref().map(Result::unwrap).collect();
        let bytes = std::io::Cursor::new(compressed.clone());
        let mut pipe = TraceReader::from_read("t", bytes, &options).unwrap();
        let from_pipe: Vec<_> = pipe.by_ref().map(Result::unwrap).collect();
        assert_eq!((&from_file, &from_pipe), (&expected, &expected));
        assert_eq!(file.sha256(), pipe.sha256());
        assert_eq!(file.sha256().unwrap() == plain_sha256, compressed == plain);
    }
}

#[test]
fn logs_that_deliver_nothing_and_wrong_options_are_refused() {
    let message = |text: &str, options: &ReadOptions| {
        let error = read_bytes(text.as_bytes(), options);
        error.expect_err("this input is bad").to_string()
    };
    let asked = ReadOptions { format: Some(Format::Clf), ..ReadOptions::default() };
    assert_eq!(
        message("one\ntwo\n\n", &asked),
        "t: no request in 3 lines (blank line: 1, not a line of a web log: 2); accepted: a trace with at least one request"
    );
    let line = |bytes: &str| {
        format!("h - - [03/Mar/2001:04:05:06 +0100] \"GET /a HTTP/1.0\" 200 {bytes}\n")
    };
    assert_eq!(
        message(&line("18446744073709551615"), &asked),
        "t: no request in 1 lines (not a line of a web log: 1); accepted: a trace with at least one request"
    );
    let spc = "0,303567,3584,w,0.000000\n";
    assert_eq!(
        message(spc, &writing(HttpWrites::Create)),
        "--subsecond: the format spc has no use for it; accepted: with tencent, clf, oracle-general, lcs"
    );
    for wrong in ["all", "log:100", "log:2GiB", "log:"] {
        assert_eq!(
            wrong.parse::<HttpWrites>().unwrap_err(),
            format!(
                "unknown writes {wrong:?}; accepted: none, create, log, or log:SIZE with whole blocks of 4 KiB up to 1 GiB"
            )
        );
    }
    assert_eq!("log:64KiB".parse(), Ok(HttpWrites::Log { bytes: 65_536 }));
}

/// The head of a real log, which has lines that were cut.
#[test]
fn nasa_august_1995() {
    let Some(folder) = samples() else {
        return;
    };
    let path = folder.join("nasa_http_Aug95_first1855.log.zst");
    let mut reader = open(path.to_str().unwrap(), &ReadOptions::default()).unwrap();
    let records: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert!(
        records.iter().all(|record| record.operation == Read && record.offset_bytes % 4096 == 0)
    );
    let (lines, skipped) = (reader.counts().lines, reader.skipped());
    assert_eq!(lines, records.len() as u64 + skipped.total());
    assert_eq!((records.len(), skipped.of(SkipReason::HttpStatus(304))), (1676, 129));
}

#[test]
fn nasa_july_1995_as_columns() {
    let Some(folder) = samples() else {
        return;
    };
    let path = folder.join("nasa_http_Jul95_10000.tsv.zst");
    let mut reader = open(path.to_str().unwrap(), &ReadOptions::default()).unwrap();
    let records: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(reader.counts().lines, 10_000);
    let skipped = "header: 1, not a GET: 15, HTTP status 302: 408, HTTP status 304: 531, HTTP status 404: 48, reply without \
                   bytes: 21";
    assert_eq!((records.len(), reader.skipped().to_string()), (8976, skipped.to_owned()));
}
