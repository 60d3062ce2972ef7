//! A text trace: its lines, what parses them, and what spreads the requests of one second.

use super::error::TraceError;
use super::line_parser::LineParser;
use super::record::TraceRecord;
use super::subsecond::Spread;
use super::tally::{SkipReason, Tally};
use super::text::{Lines, Parsed};

/// The requests of a text trace, in order.
pub(super) struct TextTrace {
    lines: Lines,
    parser: LineParser,
    spread: Option<Spread>,
    /// SHA-256 of the file where it was read before.
    sha256: Option<String>,
    /// What ended the lines, once something did.
    end: Option<Result<(), TraceError>>,
}

impl TextTrace {
    pub(super) fn new(lines: Lines, parser: LineParser, spread: Option<Spread>) -> Self {
        Self {
            lines,
            parser,
            spread,
            sha256: None,
            end: None,
        }
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
        if self.spread.is_some() {
            return self.read_spread(records, tally, batch);
        }
        while batch.len() < records {
            match next(&mut self.lines, &mut self.parser, tally)? {
                Some(Parsed::Record(record)) => batch.push(tally.accept(record)),
                Some(Parsed::Skip(reason)) => tally.counts.skipped.count(reason),
                None => return Ok(true),
            }
        }
        Ok(false)
    }

    /// The same through the rule for the second. What was read before an error is returned before it.
    fn read_spread(
        &mut self,
        records: usize,
        tally: &mut Tally,
        batch: &mut Vec<TraceRecord>,
    ) -> Result<bool, TraceError> {
        let spread = self.spread.as_mut().expect("asked before");
        while batch.len() < records {
            if let Some(record) = spread.take() {
                batch.push(tally.accept(record));
                continue;
            }
            match self.end.take() {
                None => {}
                Some(Ok(())) => {
                    self.end = Some(Ok(()));
                    return Ok(true);
                }
                Some(Err(error)) => return Err(error),
            }
            let mut ended = match next(&mut self.lines, &mut self.parser, tally) {
                Ok(Some(Parsed::Record(record))) => spread.push(record, tally).err().map(Err),
                Ok(Some(Parsed::Skip(reason))) => {
                    tally.counts.skipped.count(reason);
                    None
                }
                Ok(None) => Some(Ok(())),
                Err(error) => Some(Err(error)),
            };
            while let (None, Some(record)) = (&ended, self.parser.more()) {
                ended = spread.push(record, tally).err().map(Err);
            }
            if ended.is_some() {
                spread.close();
                self.end = ended;
            }
        }
        Ok(false)
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
