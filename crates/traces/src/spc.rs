//! SPC trace format (UMass): `ASU,LBA,Size,Opcode,Timestamp[,...]`.
//!
//! LBA counts 512-byte blocks of the application storage unit, Size is in bytes, Opcode is one letter, Timestamp is in
//! seconds from the start. Blanks around fields are allowed and fields after the fifth are ignored, as the format says.

use std::io::{self, Write};

use super::record::{TraceOperation, TraceRecord};
use super::tally::SkipReason;
use super::text::{
    FieldRule, Fields, LineResult, NOT_A_NUMBER, Parsed, decimal_ns, explain, is_device, is_whole,
    range_is_possible, read_or_write,
};

const SECTOR_BYTES: u64 = 512;
const SECOND_NS: u64 = 1_000_000_000;

const RULES: [FieldRule; 5] = [
    FieldRule {
        name: "ASU",
        accepted: "an integer from 0 to 65535",
        problem: NOT_A_NUMBER,
        fits: is_device,
    },
    FieldRule {
        name: "LBA",
        accepted: "an unsigned integer, in 512-byte blocks",
        problem: NOT_A_NUMBER,
        fits: is_whole,
    },
    FieldRule {
        name: "Size",
        accepted: "an unsigned integer, in bytes",
        problem: NOT_A_NUMBER,
        fits: is_whole,
    },
    FieldRule {
        name: "Opcode",
        accepted: "r, R, w or W",
        problem: "not an operation",
        fits: |field| read_or_write(field).is_some(),
    },
    FieldRule {
        name: "Timestamp",
        accepted: "a decimal number of seconds",
        problem: NOT_A_NUMBER,
        fits: |field| decimal_ns(field, SECOND_NS).is_some(),
    },
];

#[inline]
pub(super) fn parse(line: &[u8]) -> LineResult {
    match record(line) {
        Some(record) if record.length_bytes == 0 => Ok(Parsed::Skip(SkipReason::ZeroLength)),
        Some(record) => Ok(Parsed::Record(record)),
        None => Err(explain(line, b',', &RULES, true)),
    }
}

#[inline]
fn record(line: &[u8]) -> Option<TraceRecord> {
    let mut fields = Fields::new(line, b',');
    let device = u16::try_from(fields.number()?).ok()?;
    let offset_bytes = fields.number()?.checked_mul(SECTOR_BYTES)?;
    let length_bytes = fields.number()?;
    let operation = read_or_write(fields.text()?)?;
    let time_ns = fields.decimal_ns(SECOND_NS)?;
    if !range_is_possible(offset_bytes, length_bytes) {
        return None;
    }
    Some(TraceRecord { device, ..TraceRecord::new(time_ns, operation, offset_bytes, length_bytes) })
}

/// True when a line has the shape of this format.
pub(super) fn looks_like(line: &[u8]) -> bool {
    record(line).is_some()
}

/// Writes one read or write at a multiple of 512 bytes.
pub(super) fn write(output: &mut impl Write, record: &TraceRecord) -> io::Result<()> {
    let operation = match record.operation {
        TraceOperation::Read => 'r',
        TraceOperation::Write | TraceOperation::WriteZeroes => 'w',
        TraceOperation::Trim | TraceOperation::Flush => unreachable!("left out"),
    };
    let (seconds, nanoseconds) = (record.time_ns / SECOND_NS, record.time_ns % SECOND_NS);
    let block = record.offset_bytes / SECTOR_BYTES;
    writeln!(
        output,
        "{},{block},{},{operation},{seconds}.{nanoseconds:09}",
        record.device, record.length_bytes
    )
}
