//! One trace in several parts.

use serde::{Deserialize, Serialize};

use super::Combined;
use super::pack::BLOCK_BYTES;
use super::settings::wrong;
use crate::error::TraceError;
use crate::reader::{Derived, TraceReader};
use crate::record::{TraceOperation, TraceRecord};
use crate::tally::ReadCounts;

/// Parts of a trace at most.
pub const PARTS_MAX: u32 = 4096;

/// By what the parts differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SplitBy {
    /// Request n goes to part n modulo their number.
    RoundRobin,
    /// A request goes to the part of its device's number modulo the number of parts.
    Device,
    /// The span is cut into ranges of equal length. A request over a border is cut there; a flush goes to every part.
    Address,
}

/// A trace that is to be cut.
#[derive(Debug)]
pub struct Split<'a> {
    whole: &'a Combined,
    parts: u32,
    rule: Rule,
}

/// One of the parts.
pub struct Part {
    /// Its requests.
    pub reader: TraceReader,
    /// Instant of its first request in the whole, nanoseconds: as in every trace, that request itself is at time 0.
    pub delay_ns: u64,
}

#[derive(Debug, Clone, Copy)]
enum Rule {
    RoundRobin,
    Device,
    Address { part_bytes: u64 },
}

impl<'a> Split<'a> {
    /// Cuts `whole` into `parts`.
    ///
    /// # Errors
    /// The number is impossible, or the first pass over the addresses fails.
    pub fn new(whole: &'a Combined, parts: u32, by: SplitBy) -> Result<Self, TraceError> {
        if !(2..=PARTS_MAX).contains(&parts) {
            return Err(wrong(format!("split = {parts}; accepted: 2 to {PARTS_MAX}")));
        }
        let rule = match by {
            SplitBy::RoundRobin => Rule::RoundRobin,
            SplitBy::Device => Rule::Device,
            SplitBy::Address => {
                let mut span = 0;
                for record in whole.records()? {
                    let record = record?;
                    span = span.max(record.offset_bytes + record.length_bytes);
                }
                let part_bytes = span.div_ceil(u64::from(parts));
                Rule::Address {
                    part_bytes: part_bytes.next_multiple_of(BLOCK_BYTES).max(BLOCK_BYTES),
                }
            }
        };
        Ok(Self { whole, parts, rule })
    }

    /// The part with this number, from 0; none when no request falls to it.
    ///
    /// # Errors
    /// A source cannot be read.
    pub fn part(&self, number: u32) -> Result<Option<Part>, TraceError> {
        let whole = self.whole.records()?;
        let (path, detected) = (whole.path().to_owned(), whole.detected().to_owned());
        let (mut source, has_times) = (whole.source().clone(), whole.has_times());
        source.label = format!("part {} of {}: {}", number + 1, self.parts, source.label);
        let mut records = PartRecords {
            whole,
            seen: 0,
            number: u64::from(number),
            parts: u64::from(self.parts),
            rule: self.rule,
            first: None,
        };
        let Some(first) = records.next()? else {
            return Ok(None);
        };
        records.first = Some(first);
        Ok(Some(Part {
            reader: TraceReader::derived(&path, Box::new(records), detected, source, has_times),
            delay_ns: first.time_ns,
        }))
    }
}

/// The requests of the whole that fall to one part.
struct PartRecords {
    whole: TraceReader,
    seen: u64,
    number: u64,
    parts: u64,
    rule: Rule,
    /// The first request, which was read to see whether there is one.
    first: Option<TraceRecord>,
}

impl PartRecords {
    fn next(&mut self) -> Result<Option<TraceRecord>, TraceError> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        while let Some(record) = self.whole.next().transpose()? {
            let turn = self.seen % self.parts;
            self.seen += 1;
            let mine = match self.rule {
                Rule::RoundRobin => (turn == self.number).then_some(record),
                Rule::Device => {
                    (u64::from(record.device) % self.parts == self.number).then_some(record)
                }
                Rule::Address { part_bytes } => cut(record, self.number * part_bytes, part_bytes),
            };
            if mine.is_some() {
                return Ok(mine);
            }
        }
        Ok(None)
    }
}

/// The part of a request that lies in so many bytes from `start_bytes` on.
fn cut(record: TraceRecord, start_bytes: u64, bytes: u64) -> Option<TraceRecord> {
    if record.operation == TraceOperation::Flush {
        return Some(record);
    }
    let from = record.offset_bytes.max(start_bytes);
    let to = (record.offset_bytes + record.length_bytes).min(start_bytes + bytes);
    (from < to).then(|| TraceRecord { offset_bytes: from, length_bytes: to - from, ..record })
}

impl Derived for PartRecords {
    fn read(&mut self, wanted: usize, batch: &mut Vec<TraceRecord>) -> Result<(), TraceError> {
        let wanted = batch.len() + wanted;
        while batch.len() < wanted {
            match self.next()? {
                Some(record) => batch.push(record),
                None => break,
            }
        }
        Ok(())
    }

    fn counts(&self) -> ReadCounts {
        self.whole.counts().clone()
    }
}
