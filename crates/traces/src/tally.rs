//! What a reader counts beside the records it returns.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

use super::record::TraceRecord;

/// Why a line without a request is legitimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SkipReason {
    /// The first line names the columns.
    Header,
    /// The line starts with `#`.
    Comment,
    /// The line is blank.
    Blank,
    /// A read or write of no bytes.
    ZeroLength,
    /// A SCSI command that moves no data, or that the table does not know.
    ScsiOpcode(u8),
    /// Text around the lines of a trace: the sums at the end of what blkparse prints.
    Summary,
    /// A line of a web log that is none, or that was cut.
    NoLogLine,
    /// A request to a web server that does not fetch a document: not a `GET`.
    HttpMethod,
    /// A reply of a web server with a status other than 200.
    HttpStatus(u16),
    /// A reply of a web server without a byte.
    HttpNoBytes,
    /// `add`, `open` or `close` of a file in a fio iolog.
    FioFileAction,
    /// `wait` in a fio iolog.
    FioWait,
    /// A record of blktrace that is no event: a process name, a message, the wall clock.
    Notify,
    /// A record of blktrace about another event than the one that is read, by its letter.
    OtherEvent(char),
    /// A command that a program sent past the block layer.
    Passthrough,
    /// A record that the tracer itself doubts.
    Suspect,
    /// A command about zones, or a write to a place that the drive chooses.
    ZoneCommand,
    /// The request went to a device that was not selected.
    DeviceNotSelected,
    /// The recording stops without a trailer, and that was accepted.
    NoTrailer,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("header"),
            Self::Comment => f.write_str("comment"),
            Self::Blank => f.write_str("blank line"),
            Self::ZeroLength => f.write_str("zero length"),
            Self::ScsiOpcode(code) => write!(f, "SCSI opcode 0x{code:02x}"),
            Self::Summary => f.write_str("summary"),
            Self::NoLogLine => f.write_str("not a line of a web log"),
            Self::HttpMethod => f.write_str("not a GET"),
            Self::HttpStatus(status) => write!(f, "HTTP status {status}"),
            Self::HttpNoBytes => f.write_str("reply without bytes"),
            Self::FioFileAction => f.write_str("fio add, open or close"),
            Self::FioWait => f.write_str("fio wait"),
            Self::Notify => f.write_str("notification"),
            Self::OtherEvent(letter) => write!(f, "event {letter}"),
            Self::Passthrough => f.write_str("passthrough command"),
            Self::Suspect => f.write_str("suspect record"),
            Self::ZoneCommand => f.write_str("zone command"),
            Self::DeviceNotSelected => f.write_str("device not selected"),
            Self::NoTrailer => f.write_str("recording without trailer"),
        }
    }
}

/// Number of skipped lines by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkippedLines(BTreeMap<SkipReason, u64>);

impl SkippedLines {
    pub(super) fn count(&mut self, reason: SkipReason) {
        *self.0.entry(reason).or_default() += 1;
    }

    /// Lines skipped for this reason.
    pub fn of(&self, reason: SkipReason) -> u64 {
        self.0.get(&reason).copied().unwrap_or(0)
    }

    /// All skipped lines.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Reasons and counts in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (SkipReason, u64)> + '_ {
        self.0.iter().map(|(&reason, &count)| (reason, count))
    }
}

impl fmt::Display for SkippedLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (index, (reason, count)) in self.0.iter().enumerate() {
            write!(f, "{}{reason}: {count}", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl Serialize for SkippedLines {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(reason, count)| (reason.to_string(), count)))
    }
}

/// What a reader met, beside the records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReadCounts {
    /// Lines of a text trace, records of a binary one; 0 for a recording or a recipe.
    pub lines: u64,
    /// Records returned.
    pub records: u64,
    /// Lines without a request, by reason.
    pub skipped: SkippedLines,
    /// Records that were earlier than the one before; their time was set to that of the one before.
    pub time_inversions: u64,
    /// Requests whose offset or length is not a multiple of 512 bytes.
    pub unaligned_to_sector: u64,
    /// Requests whose offset or length is not a multiple of 4096 bytes.
    pub unaligned_to_block: u64,
}

impl ReadCounts {
    /// Adds what another reader met in its lines; its records are counted where they are taken.
    pub(super) fn add_lines(&mut self, other: &ReadCounts) {
        self.lines += other.lines;
        self.time_inversions += other.time_inversions;
        for (reason, count) in other.skipped.iter() {
            *self.skipped.0.entry(reason).or_default() += count;
        }
    }
}

/// Turns the trace's own times into times since the first record and counts oddities.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) counts: ReadCounts,
    first_ns: Option<u64>,
    last_ns: u64,
}

impl Tally {
    #[inline(always)]
    pub(super) fn accept(&mut self, mut record: TraceRecord) -> TraceRecord {
        let first_ns = *self.first_ns.get_or_insert_with(|| {
            self.last_ns = record.time_ns;
            record.time_ns
        });
        if record.time_ns < self.last_ns {
            self.counts.time_inversions += 1;
            record.time_ns = self.last_ns;
        }
        self.last_ns = record.time_ns;
        record.time_ns -= first_ns;
        let bits = record.offset_bytes | record.length_bytes;
        if bits & 4095 != 0 {
            self.counts.unaligned_to_block += 1;
            self.counts.unaligned_to_sector += u64::from(bits & 511 != 0);
        }
        self.counts.records += 1;
        record
    }
}
