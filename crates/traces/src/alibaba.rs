//! Alibaba block traces of 2020: `device_id,opcode,offset,length,timestamp`, no header.
//!
//! Offset and length are in bytes, the timestamp in microseconds of Unix time, the opcode is R or W. Disks become devices
//! 0, 1, ... in order of appearance, since their numbers have 32 bits.
//! Source: README of github.com/alibaba/block-traces.

use super::devices::Devices;
use super::record::{TraceOperation, TraceRecord};
use super::tally::SkipReason;
use super::text::{
    FieldRule, Fields, LineResult, NOT_A_NUMBER, Parsed, explain, is_whole, range_is_possible,
    read_or_write, whole_number,
};

const MICROSECOND_NS: u64 = 1000;
/// September 2001 in microseconds of Unix time: no trace is older.
const PLAUSIBLE_US: u64 = 1_000_000_000_000_000;

const RULES: [FieldRule; 5] = [
    FieldRule {
        name: "device_id",
        accepted: "an unsigned integer",
        problem: NOT_A_NUMBER,
        fits: is_whole,
    },
    FieldRule {
        name: "opcode",
        accepted: "R or W",
        problem: "not an operation",
        fits: |field| read_or_write(field).is_some(),
    },
    FieldRule {
        name: "offset",
        accepted: "an unsigned integer, in bytes",
        problem: NOT_A_NUMBER,
        fits: is_whole,
    },
    FieldRule {
        name: "length",
        accepted: "an unsigned integer, in bytes",
        problem: NOT_A_NUMBER,
        fits: is_whole,
    },
    FieldRule {
        name: "timestamp",
        accepted: "an unsigned integer, in microseconds of Unix time",
        problem: NOT_A_NUMBER,
        fits: |field| whole_number(field).is_some_and(|us| us <= u64::MAX / MICROSECOND_NS),
    },
];

/// State of the reader: the disks seen.
#[derive(Default)]
pub(super) struct Alibaba {
    disks: Devices<u64>,
}

impl Alibaba {
    #[inline]
    pub(super) fn parse(&mut self, line: &[u8]) -> LineResult {
        match self.record(line) {
            Some(record) if record.length_bytes == 0 => Ok(Parsed::Skip(SkipReason::ZeroLength)),
            Some(record) => Ok(Parsed::Record(record)),
            None => Err(self
                .disks
                .refusal("disks")
                .unwrap_or_else(|| explain(line, b',', &RULES, false))),
        }
    }

    #[inline]
    fn record(&mut self, line: &[u8]) -> Option<TraceRecord> {
        let mut fields = Fields::new(line, b',');
        let disk = fields.number()?;
        let operation: TraceOperation = read_or_write(fields.text()?)?;
        let (offset_bytes, length_bytes) = (fields.number()?, fields.number()?);
        let time_ns = fields.number()?.checked_mul(MICROSECOND_NS)?;
        if !fields.finished() || !range_is_possible(offset_bytes, length_bytes) {
            return None;
        }
        let mut record = TraceRecord::new(time_ns, operation, offset_bytes, length_bytes);
        record.device = self.disks.number(&disk)?;
        Some(record)
    }
}

/// True when a line has the shape of this format.
pub(super) fn looks_like(line: &[u8]) -> bool {
    Alibaba::default()
        .record(line)
        .is_some_and(|record| record.time_ns / MICROSECOND_NS >= PLAUSIBLE_US)
}
