//! Tencent CBS traces of 2018: `Timestamp,Offset,Size,IOType,VolumeID`, no header, five integers.
//!
//! The timestamp is in seconds of Unix time, offset and size in sectors of 512 bytes, the type is 0 for a read and 1 for a
//! write. Volumes become devices 0, 1, ... in order of appearance.
//! Source: README of the traces at SNIA IOTTA.

use super::devices::Devices;
use super::record::{TraceOperation, TraceRecord};
use super::tally::SkipReason;
use super::text::{
    FieldRule, Fields, LineResult, NOT_A_NUMBER, Parsed, explain, is_whole, range_is_possible,
    whole_number,
};

const SECTOR_BYTES: u64 = 512;
const SECOND_NS: u64 = 1_000_000_000;
/// The year 2018, when the traces were taken, in seconds of Unix time.
const YEAR_S: std::ops::Range<u64> = 1_514_764_800..1_546_300_800;

const RULES: [FieldRule; 5] = [
    FieldRule {
        name: "Timestamp",
        accepted: "an unsigned integer, in seconds of Unix time",
        problem: NOT_A_NUMBER,
        fits: |field| whole_number(field).is_some_and(|seconds| seconds < u64::MAX / SECOND_NS),
    },
    FieldRule {
        name: "Offset",
        accepted: "an unsigned integer, in sectors of 512 bytes",
        problem: NOT_A_NUMBER,
        fits: is_whole,
    },
    FieldRule {
        name: "Size",
        accepted: "an unsigned integer, in sectors of 512 bytes",
        problem: NOT_A_NUMBER,
        fits: is_whole,
    },
    FieldRule {
        name: "IOType",
        accepted: "0 (read) or 1 (write)",
        problem: "not an operation",
        fits: |field| whole_number(field).is_some_and(|kind| kind <= 1),
    },
    FieldRule {
        name: "VolumeID",
        accepted: "an unsigned integer",
        problem: NOT_A_NUMBER,
        fits: is_whole,
    },
];

/// State of the reader: the volumes seen.
#[derive(Default)]
pub(super) struct Tencent {
    volumes: Devices<u64>,
}

impl Tencent {
    #[inline]
    pub(super) fn parse(&mut self, line: &[u8]) -> LineResult {
        match self.record(line) {
            Some(record) if record.length_bytes == 0 => Ok(Parsed::Skip(SkipReason::ZeroLength)),
            Some(record) => Ok(Parsed::Record(record)),
            None => Err(self
                .volumes
                .refusal("volumes")
                .unwrap_or_else(|| explain(line, b',', &RULES, false))),
        }
    }

    #[inline]
    fn record(&mut self, line: &[u8]) -> Option<TraceRecord> {
        let mut fields = Fields::new(line, b',');
        let seconds = fields.number().filter(|&seconds| seconds < u64::MAX / SECOND_NS)?;
        let offset_bytes = fields.number()?.checked_mul(SECTOR_BYTES)?;
        let length_bytes = fields.number()?.checked_mul(SECTOR_BYTES)?;
        let operation = match fields.number()? {
            0 => TraceOperation::Read,
            1 => TraceOperation::Write,
            _ => return None,
        };
        let volume = fields.number()?;
        if !fields.finished() || !range_is_possible(offset_bytes, length_bytes) {
            return None;
        }
        let mut record =
            TraceRecord::new(seconds * SECOND_NS, operation, offset_bytes, length_bytes);
        record.device = self.volumes.number(&volume)?;
        Some(record)
    }
}

/// True when every line can hardly be anything else: five integers of which the fourth is 0 or 1 and the first a time of 2018
/// that never decreases. Five integers are the whole of other formats too, so one odd line is enough for a no.
pub(super) fn are_unmistakable(lines: &[&[u8]]) -> bool {
    let mut last_s = YEAR_S.start;
    let fits = |line: &&[u8]| {
        let Some(record) = Tencent::default().record(line) else {
            return false;
        };
        let time_s = record.time_ns / SECOND_NS;
        let is_later = time_s >= last_s;
        last_s = time_s;
        is_later && YEAR_S.contains(&time_s)
    };
    !lines.is_empty() && lines.iter().all(fits)
}
