//! A text trace: its lines, what parses them, and what takes the requests to batches.

use super::error::TraceError;
use super::line_parser::LineParser;
use super::record::TraceRecord;
use super::subsecond::{Feed, Spread};
use super::tally::{SkipReason, Tally};
use super::text::{Lines, Parsed};

/// The requests of a text trace, in order.
pub(super) struct TextTrace {
    lines: Lines,
    parser: LineParser,
    /// SHA-256 of the file where it was read before.
    sha256: Option<String>,
    feed: Feed,
}

impl TextTrace {
    pub(super) fn new(lines: Lines, parser: LineParser, spread: Option<Spread>) -> Self {
        Self { lines, parser, sha256: None, feed: Feed::new(spread) }
    }

    /// The same for a file that was read before and has this SHA-256.
    pub(super) fn read_before(mut self, sha256: Option<String>) -> Self {
        self.sha256 = sha256;
        self
    }

    /// SHA-256 of the file, once it has been read.
    pub(super) fn sha256(&self) -> Option<String> {
        let read_before = self.sha256.clone().filter(|_| self.lines.input.at_end());
        read_before.or_else(|| self.lines.input.sha256())
    }

    /// Appends records until the batch has so many; true at the end of the file.
    pub(super) fn read(
        &mut self,
        records: usize,
        tally: &mut Tally,
        batch: &mut Vec<TraceRecord>,
    ) -> Result<bool, TraceError> {
        let (lines, parser) = (&mut self.lines, &mut self.parser);
        let reads_ahead = parser.reads_ahead() && self.feed.is_plain();
        loop {
            let mut wanted = records;
            if reads_ahead {
                read_ahead(lines, parser, records, tally, batch);
                // The line that is not as it should be is read alone.
                wanted = records.min(batch.len() + 1);
            }
            let at_end = self.feed.read(wanted, tally, batch, |tally| match parser.more() {
                Some(record) => Ok(Some(Parsed::Record(record))),
                None => next(lines, parser, tally),
            })?;
            if at_end || batch.len() == records {
                return Ok(at_end);
            }
        }
    }
}

/// Takes lines straight to the batch while they are as they should be. What the next line is else is for [`next`].
fn read_ahead(
    lines: &mut Lines,
    parser: &LineParser,
    records: usize,
    tally: &mut Tally,
    batch: &mut Vec<TraceRecord>,
) {
    while batch.len() < records
        && let Some((parsed, line_bytes)) = parser.parse_ahead(lines.ahead())
    {
        lines.take(line_bytes);
        tally.counts.lines += 1;
        match parsed {
            Parsed::Record(record) => batch.push(tally.accept(record)),
            Parsed::Skip(reason) => tally.counts.skipped.count(reason),
        }
    }
}

/// What the next line holds, or `None` at the end of the file.
#[inline]
fn next(
    lines: &mut Lines,
    parser: &mut LineParser,
    tally: &mut Tally,
) -> Result<Option<Parsed>, TraceError> {
    let Some(line) = lines.next_line(tally.counts.records)? else {
        return Ok(None);
    };
    tally.counts.lines += 1;
    match parser.parse(line) {
        Ok(parsed) => Ok(Some(parsed)),
        Err(problem) => match not_a_record(line, tally.counts.lines) {
            Some(reason) => Ok(Some(Parsed::Skip(reason))),
            None => Err(problem.at(lines.input.path(), lines.number)),
        },
    }
}

/// Lines that no format counts as a request: blank, comment, and a first line without any digit-led field.
fn not_a_record(line: &[u8], number: u64) -> Option<SkipReason> {
    let line = line.trim_ascii();
    match line.first() {
        None => Some(SkipReason::Blank),
        Some(b'#') => Some(SkipReason::Comment),
        Some(first) if number == 1 && first.is_ascii_alphabetic() => Some(SkipReason::Header),
        Some(_) => None,
    }
}
