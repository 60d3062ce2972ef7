//! MSR Cambridge CSV: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, no header.
//!
//! Timestamps are Windows file times (100 ns since 1601), offsets and sizes bytes, response times 100 ns. One file holds
//! one volume; if several host and disk pairs appear they become devices 0, 1, ... in order of appearance.

use std::io::{self, Write};

use super::record::{TraceOperation, TraceRecord};
use super::tally::SkipReason;
use super::text::{
    FieldRule, Fields, LineProblem, LineResult, NOT_A_NUMBER, Parsed, explain, is_whole,
    range_is_possible,
};

/// 2007-02-22 17:00:00 UTC, when the traces start, as a file time.
const START_TICKS: u64 = 128_166_372_000_000_000;
const TICK_NS: u64 = 100;

const RULES: [FieldRule; 7] = [
    FieldRule {
        name: "Timestamp",
        accepted: "a Windows file time: 100 ns ticks since 1601",
        problem: NOT_A_NUMBER,
        fits: |field| {
            super::text::whole_number(field).is_some_and(|ticks| ticks <= u64::MAX / TICK_NS)
        },
    },
    FieldRule {
        name: "Hostname",
        accepted: "a host name",
        problem: "empty",
        fits: |field| !field.is_empty(),
    },
    FieldRule {
        name: "DiskNumber",
        accepted: "an unsigned integer",
        problem: NOT_A_NUMBER,
        fits: is_whole,
    },
    FieldRule {
        name: "Type",
        accepted: "Read or Write",
        problem: "not an operation",
        fits: |field| operation(field).is_some(),
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
    FieldRule {
        name: "ResponseTime",
        accepted: "an unsigned integer, in 100 ns ticks",
        problem: NOT_A_NUMBER,
        fits: |field| {
            super::text::whole_number(field).is_some_and(|ticks| ticks <= u64::MAX / TICK_NS)
        },
    },
];

/// State of the reader: the volumes seen, the one seen last first in line.
#[derive(Default)]
pub(super) struct Msr {
    volumes: Vec<(Vec<u8>, u64)>,
    last: usize,
}

impl Msr {
    #[inline]
    pub(super) fn parse(&mut self, line: &[u8]) -> LineResult {
        match self.record(line) {
            Some(record) if record.length_bytes == 0 => Ok(Parsed::Skip(SkipReason::ZeroLength)),
            Some(record) => Ok(Parsed::Record(record)),
            None if self.volumes.len() > usize::from(u16::MAX) => {
                Err(Box::new(LineProblem::Line {
                    found: "more than 65,536 volumes".to_owned(),
                    accepted: "at most 65,536 pairs of Hostname and DiskNumber".to_owned(),
                }))
            }
            None => Err(explain(line, b',', &RULES, false)),
        }
    }

    #[inline]
    fn record(&mut self, line: &[u8]) -> Option<TraceRecord> {
        let mut fields = Fields::new(line, b',');
        let time_ns = fields.number()?.checked_mul(TICK_NS)?;
        let host = fields.text().filter(|host| !host.is_empty())?;
        let disk = fields.number()?;
        let operation = operation(fields.text()?)?;
        let offset_bytes = fields.number()?;
        let length_bytes = fields.number()?;
        let response_ns = fields.number()?.checked_mul(TICK_NS)?;
        if !fields.finished() || !range_is_possible(offset_bytes, length_bytes) {
            return None;
        }
        let device = self.device(host, disk)?;
        let response_ns = Some(response_ns);
        Some(TraceRecord {
            time_ns,
            offset_bytes,
            length_bytes,
            response_ns,
            device,
            operation,
            fua: false,
        })
    }

    #[inline]
    fn device(&mut self, host: &[u8], disk: u64) -> Option<u16> {
        let same = |volume: &(Vec<u8>, u64)| volume.1 == disk && volume.0 == host;
        if !self.volumes.get(self.last).is_some_and(same) {
            self.last = self.volumes.iter().position(same).unwrap_or(self.volumes.len());
            if self.last == self.volumes.len() {
                self.volumes.push((host.to_vec(), disk));
            }
        }
        u16::try_from(self.last).ok()
    }
}

#[inline]
fn operation(field: &[u8]) -> Option<TraceOperation> {
    match field {
        b"Read" => Some(TraceOperation::Read),
        b"Write" => Some(TraceOperation::Write),
        other => {
            let other = other.trim_ascii();
            if other.eq_ignore_ascii_case(b"read") {
                Some(TraceOperation::Read)
            } else {
                other.eq_ignore_ascii_case(b"write").then_some(TraceOperation::Write)
            }
        }
    }
}

/// True when a line has the shape of this format.
pub(super) fn looks_like(line: &[u8]) -> bool {
    Msr::default().record(line).is_some_and(|record| record.time_ns / TICK_NS > 1_000_000_000_000)
}

/// Writes one read or write.
pub(super) fn write(output: &mut impl Write, host: &str, record: &TraceRecord) -> io::Result<()> {
    let operation = match record.operation {
        TraceOperation::Read => "Read",
        TraceOperation::Write | TraceOperation::WriteZeroes => "Write",
        TraceOperation::Trim | TraceOperation::Flush => unreachable!("left out"),
    };
    let ticks = START_TICKS.saturating_add(record.time_ns / TICK_NS);
    let response = record.response_ns.unwrap_or(0) / TICK_NS;
    let TraceRecord { device, offset_bytes, length_bytes, .. } = record;
    writeln!(output, "{ticks},{host},{device},{operation},{offset_bytes},{length_bytes},{response}")
}
