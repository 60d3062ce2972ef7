//! The text of blkparse: exact records of each event, and bad lines.

use imbrex_traces::TraceOperation::{Flush, Read, Trim, Write};
use imbrex_traces::{BlkEvent, ReadOptions, TraceRecord};

use crate::{read_bytes, read_fixture, record};

fn at(event: BlkEvent) -> ReadOptions {
    ReadOptions { event: Some(event), ..ReadOptions::default() }
}

#[test]
fn queued_requests() {
    let (records, reader) = read_fixture("blkparse.txt", &ReadOptions::default());
    assert_eq!(
        records,
        [
            record(0, 0, Write, 4096 * 512, 16 * 512, None),
            record(248_500, 1, Read, 64 * 512, 256 * 512, None),
            TraceRecord { fua: true, ..record(998_500, 0, Write, 8192 * 512, 4096, None) },
            record(1_098_500, 0, Flush, 0, 0, None),
            record(1_198_500, 0, Trim, 1_000_000 * 512, 1 << 20, None),
        ]
    );
    assert_eq!(
        reader.skipped().to_string(),
        "zero length: 1, summary: 10, notification: 1, event A: 1, event C: 2, event D: 1, event G: 1, event I: 1, event P: 1, \
         event U: 1, event X: 1, passthrough command: 1"
    );
    assert_eq!(
        reader.detected(),
        "blkparse in the file: major and minor number, processor, sequence, time, process and event, as blkparse prints them, \
         event Q of each request"
    );
}

#[test]
fn issued_and_complete_requests() {
    let (issued, _) = read_fixture("blkparse.txt", &at(BlkEvent::Issue));
    assert_eq!(issued, [record(0, 0, Write, 4096 * 512, 16 * 512, None)]);
    // `blkparse -t` gives the time since the request was issued.
    let (complete, _) = read_fixture("blkparse.txt", &at(BlkEvent::Complete));
    assert_eq!(
        complete,
        [
            record(0, 0, Write, 4096 * 512, 16 * 512, Some(896_000)),
            record(600_000, 0, Read, 8 * 512, 4096, None),
        ]
    );
}

#[test]
fn a_short_trace_is_told_beside_its_closing_text() {
    let text = "Input file sdx.blktrace.0 added\nInput file sdx.blktrace.1 added\nInput file sdx.blktrace.2 added\n  \
                8,0    1        1     0.000000000   311  Q   W 8 + 8 [writer]\nCPU1 (sdx):\n Reads Queued:           0,        \
                0KiB\t Writes Queued:           1,        4KiB\n Read depth:             0\t Write depth:             \
                1\n\nThroughput (R/W): 0KiB/s / 0KiB/s\nEvents (sdx): 1 entries\nSkips: 0 forward (0 -   0.0%)\n";
    let records = read_bytes(text.as_bytes(), &ReadOptions::default());
    assert_eq!(records.expect("the format is told"), [record(0, 0, Write, 4096, 4096, None)]);
}

#[test]
fn bad_lines_are_named() {
    const GOOD: &str = "  8,0    1        2     0.000001500   311  Q  WS 4096 + 16 [writer]\n";
    let message = |from: &str, to: &str| {
        let text = format!("{GOOD}{GOOD}{}", GOOD.replace(from, to));
        let error = read_bytes(text.as_bytes(), &ReadOptions::default());
        error.expect_err("this line is bad").to_string()
    };
    assert_eq!(
        message(" 311  Q  WS 4096 + 16 [writer]", ""),
        "t, line 3: the line ends after 4 fields; accepted: 7 fields: device, cpu, sequence, time, pid, event, RWBS"
    );
    assert_eq!(
        message("8,0", "8.0"),
        "t, line 3, field 1 (device): \"8.0\" is not a device; accepted: the major and minor number of a device, such as 8,0"
    );
    assert_eq!(
        message(" WS ", " XS "),
        "t, line 3, field 7 (RWBS): \"XS\" is not the letters of a request; accepted: letters such as R, WS, FWFS, D or N"
    );
    assert_eq!(
        message("4096 +", "4k +"),
        "t, line 3: the range starts with \"4k\"; accepted: `sector + sectors`, or `[process]` for a request without data"
    );
    assert_eq!(
        message("+ 16", "+ 18446744073709551615"),
        "t, line 3: a value of the line is too large; accepted: at most 2^40 bytes within the first 2^62, times within 500 years"
    );
    // Sums stand at the end only.
    assert_eq!(
        message("  8,0", " Reads Queued: 8,0"),
        "t, line 3, field 1 (device): \"Reads\" is not a device; accepted: the major and minor number of a device, such as 8,0"
    );
}
