//! The `.lis` page format of the ARC paper (FAST 2003): `start count ignored request-number`.
//!
//! A line reads `count` pages from page `start` on. There are no writes and no times. The page is 512 bytes unless the
//! trace's description says otherwise.

use super::record::{TraceOperation, TraceRecord};
use super::tally::SkipReason;
use super::text::{
    FieldRule, Fields, LineResult, NOT_A_NUMBER, Parsed, explain, is_whole, range_is_possible,
};

/// Page size of the block traces of the paper.
pub(super) const PAGE_BYTES: u64 = 512;

const RULES: [FieldRule; 4] = [
    FieldRule {
        name: "start",
        accepted: "an unsigned integer, in pages",
        problem: NOT_A_NUMBER,
        fits: is_whole,
    },
    FieldRule {
        name: "count",
        accepted: "an unsigned integer, in pages",
        problem: NOT_A_NUMBER,
        fits: is_whole,
    },
    FieldRule {
        name: "ignored",
        accepted: "an unsigned integer",
        problem: NOT_A_NUMBER,
        fits: is_whole,
    },
    FieldRule {
        name: "request number",
        accepted: "an unsigned integer",
        problem: NOT_A_NUMBER,
        fits: is_whole,
    },
];

#[inline]
pub(super) fn parse(line: &[u8], page_bytes: u64) -> LineResult {
    match record(line, page_bytes) {
        Some(record) if record.length_bytes == 0 => Ok(Parsed::Skip(SkipReason::ZeroLength)),
        Some(record) => Ok(Parsed::Record(record)),
        None => Err(explain(line, b' ', &RULES, false)),
    }
}

#[inline]
fn record(line: &[u8], page_bytes: u64) -> Option<TraceRecord> {
    let mut fields = Fields::new(line, b' ');
    let offset_bytes = fields.number()?.checked_mul(page_bytes)?;
    let length_bytes = fields.number()?.checked_mul(page_bytes)?;
    fields.number()?;
    fields.number()?;
    if !fields.finished() || !range_is_possible(offset_bytes, length_bytes) {
        return None;
    }
    Some(TraceRecord::new(0, TraceOperation::Read, offset_bytes, length_bytes))
}

/// True when a line has the shape of this format.
pub(super) fn looks_like(line: &[u8]) -> bool {
    record(line, PAGE_BYTES).is_some()
}
