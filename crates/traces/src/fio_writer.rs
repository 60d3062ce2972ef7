//! fio iolog version 3: what `fio --read_iolog` replays, with times in microseconds.

use std::io::{self, Write};

use super::record::{TraceOperation, TraceRecord};

/// fio reads the length of a request as 32 bits; longer ones are written in pieces of this size.
const LENGTH_BYTES_MAX: u64 = 1 << 30;

/// Writes the lines before the first request. `file` is the name fio will open.
pub(super) fn begin(output: &mut impl Write, file: &str) -> io::Result<()> {
    writeln!(output, "fio version 3 iolog\n0 {file} add\n0 {file} open")
}

/// Writes one record. A write of zeroes becomes a write.
pub(super) fn write(output: &mut impl Write, file: &str, record: &TraceRecord) -> io::Result<()> {
    let time_us = record.time_ns / 1000;
    let action = match record.operation {
        TraceOperation::Read => "read",
        TraceOperation::Write | TraceOperation::WriteZeroes => "write",
        TraceOperation::Trim => "trim",
        TraceOperation::Flush => return writeln!(output, "{time_us} {file} sync 0 0"),
    };
    let mut at = 0;
    while at < record.length_bytes {
        let length = (record.length_bytes - at).min(LENGTH_BYTES_MAX);
        writeln!(
            output,
            "{time_us} {file} {action} {} {length}",
            record.offset_bytes + at
        )?;
        at += length;
    }
    Ok(())
}

/// Writes the line after the last request.
pub(super) fn end(output: &mut impl Write, file: &str, time_ns: u64) -> io::Result<()> {
    writeln!(output, "{} {file} close", time_ns / 1000)
}
