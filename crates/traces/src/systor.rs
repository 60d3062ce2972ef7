//! SYSTOR '17 traces: `Timestamp,Response,IOType,LUN,Offset,Size`, with a header line.
//!
//! Timestamp and response time are decimal seconds, the first of Unix time; the response time may be missing. Offset and size
//! are in bytes; the number of the logical unit is the device.
//! Source: Lee et al., SYSTOR 2017; SNIA IOTTA traces 4928 and 4964.

use super::record::TraceRecord;
use super::tally::SkipReason;
use super::text::{
    FieldRule, Fields, LineResult, NOT_A_NUMBER, Parsed, decimal_ns, explain, is_device, is_whole,
    range_is_possible, read_or_write, trim,
};

const SECOND_NS: u64 = 1_000_000_000;
const HEADER: &[u8] = b"Timestamp,Response,IOType,LUN,Offset,Size";

const RULES: [FieldRule; 6] = [
    FieldRule {
        name: "Timestamp",
        accepted: "a decimal number of seconds of Unix time",
        problem: NOT_A_NUMBER,
        fits: |field| decimal_ns(field, SECOND_NS).is_some(),
    },
    FieldRule {
        name: "Response",
        accepted: "a decimal number of seconds, or nothing",
        problem: NOT_A_NUMBER,
        fits: |field| response_ns(field).is_some(),
    },
    FieldRule {
        name: "IOType",
        accepted: "R or W",
        problem: "not an operation",
        fits: |field| read_or_write(field).is_some(),
    },
    FieldRule {
        name: "LUN",
        accepted: "an integer from 0 to 65535",
        problem: NOT_A_NUMBER,
        fits: is_device,
    },
    FieldRule {
        name: "Offset",
        accepted: "an unsigned integer, in bytes",
        problem: NOT_A_NUMBER,
        fits: is_whole,
    },
    FieldRule {
        name: "Size",
        accepted: "an unsigned integer, in bytes",
        problem: NOT_A_NUMBER,
        fits: is_whole,
    },
];

#[inline]
pub(super) fn parse(line: &[u8]) -> LineResult {
    match record(line) {
        Some(record) if record.length_bytes == 0 => Ok(Parsed::Skip(SkipReason::ZeroLength)),
        Some(record) => Ok(Parsed::Record(record)),
        // Files that were joined have a header each.
        None if is_header(line) => Ok(Parsed::Skip(SkipReason::Header)),
        None => Err(explain(line, b',', &RULES, false)),
    }
}

#[inline]
fn record(line: &[u8]) -> Option<TraceRecord> {
    let mut fields = Fields::new(line, b',');
    let time_ns = fields.decimal_ns(SECOND_NS)?;
    let response_ns = response_ns(trim(fields.text()?))?;
    let operation = read_or_write(fields.text()?)?;
    let device = u16::try_from(fields.number()?).ok()?;
    let (offset_bytes, length_bytes) = (fields.number()?, fields.number()?);
    if !fields.finished() || !range_is_possible(offset_bytes, length_bytes) {
        return None;
    }
    Some(TraceRecord {
        device,
        response_ns,
        ..TraceRecord::new(time_ns, operation, offset_bytes, length_bytes)
    })
}

/// The response time, if the field has one; `None` if it holds something else.
#[inline]
fn response_ns(field: &[u8]) -> Option<Option<u64>> {
    match field {
        [] => Some(None),
        field => decimal_ns(field, SECOND_NS).map(Some),
    }
}

fn is_header(line: &[u8]) -> bool {
    line.trim_ascii().eq_ignore_ascii_case(HEADER)
}

/// True when a line has the shape of this format.
pub(super) fn looks_like(line: &[u8]) -> bool {
    is_header(line) || record(line).is_some()
}
