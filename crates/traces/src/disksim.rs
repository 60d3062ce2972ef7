//! DiskSim ASCII: `arrival devno blkno bcount flags`, separated by blanks.
//!
//! Arrival is in milliseconds with a fraction, block number and count are in 512-byte blocks, flags are hexadecimal and
//! bit 0 means *read*. MQSim and SSDsim write the same five columns with integer nanoseconds; nothing in the file tells
//! the unit, so a time without a decimal point needs the unit to be given.

use super::column_map::TimeUnit;
use super::record::{TraceOperation, TraceRecord};
use super::tally::SkipReason;
use super::text::{
    FieldRule, Fields, LineResult, NOT_A_NUMBER, Parsed, decimal_ns, explain, is_device, is_whole,
    range_is_possible,
};

const SECTOR_BYTES: u64 = 512;

const RULES: [FieldRule; 5] = [
    FieldRule {
        name: "arrival",
        accepted: "a decimal number in the trace's time unit",
        problem: NOT_A_NUMBER,
        fits: |field| decimal_ns(field, 1).is_some(),
    },
    FieldRule {
        name: "devno",
        accepted: "an integer from 0 to 65535",
        problem: NOT_A_NUMBER,
        fits: is_device,
    },
    FieldRule {
        name: "blkno",
        accepted: "an unsigned integer, in 512-byte blocks",
        problem: NOT_A_NUMBER,
        fits: is_whole,
    },
    FieldRule {
        name: "bcount",
        accepted: "an unsigned integer, in 512-byte blocks",
        problem: NOT_A_NUMBER,
        fits: is_whole,
    },
    FieldRule {
        name: "flags",
        accepted: "a hexadecimal number, bit 0 set for a read",
        problem: "not a hexadecimal number",
        fits: |field| flags(field).is_some(),
    },
];

#[inline]
pub(super) fn parse(line: &[u8], unit: TimeUnit) -> LineResult {
    match record(line, unit) {
        Some(record) if record.length_bytes == 0 => Ok(Parsed::Skip(SkipReason::ZeroLength)),
        Some(record) => Ok(Parsed::Record(record)),
        None => Err(explain(line, b' ', &RULES, false)),
    }
}

#[inline]
fn record(line: &[u8], unit: TimeUnit) -> Option<TraceRecord> {
    let mut fields = Fields::new(line, b' ');
    let time_ns = fields.decimal_ns(unit.nanoseconds())?;
    let device = u16::try_from(fields.number()?).ok()?;
    let offset_bytes = fields.number()?.checked_mul(SECTOR_BYTES)?;
    let length_bytes = fields.number()?.checked_mul(SECTOR_BYTES)?;
    let read = flags(fields.text()?)? & 1 == 1;
    if !fields.finished() || !range_is_possible(offset_bytes, length_bytes) {
        return None;
    }
    let operation = if read { TraceOperation::Read } else { TraceOperation::Write };
    Some(TraceRecord { device, ..TraceRecord::new(time_ns, operation, offset_bytes, length_bytes) })
}

fn flags(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?;
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if digits.starts_with('+') { None } else { u64::from_str_radix(digits, 16).ok() }
}

/// True when a line has the shape of this format.
pub(super) fn looks_like(line: &[u8]) -> bool {
    record(line, TimeUnit::Nanoseconds).is_some()
}

/// True when the line's time has a decimal point, as DiskSim writes it.
pub(super) fn has_fraction(line: &[u8]) -> bool {
    Fields::new(line, b' ').text().is_some_and(|time| time.contains(&b'.'))
}
