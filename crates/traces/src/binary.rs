//! Binary traces: what parses their records, and what takes the requests to batches.

use super::TraceError;
use super::binary_records::{RecordProblem, Records};
use super::blktrace::Blktrace;
use super::input::Input;
use super::objects::{self, Objects};
use super::options::{Format, ReadOptions};
use super::record::TraceRecord;
use super::srt::{self, Srt};
use super::subsecond::{Feed, Spread};
use super::tally::Tally;
use super::text::Parsed;
use super::vscsi::Vscsi;

/// The formats whose records stand for themselves.
pub(super) enum RecordParser {
    Vscsi(Vscsi),
    Objects(Objects),
    Srt(Srt),
}

impl RecordParser {
    fn new(
        format: Format,
        input: &Input,
        options: &ReadOptions,
        detected: &mut String,
    ) -> Result<Self, TraceError> {
        let fail = |reason: &str| TraceError::Format {
            path: input.path().to_owned(),
            reason: reason.to_owned(),
        };
        match format {
            Format::Vscsi => {
                let vscsi = Vscsi::of(input.bytes()).ok_or_else(|| {
                    fail(
                        "most of the first records have neither vscsi version in its place; accepted: vscsi version 1 or 2",
                    )
                })?;
                detected.push_str(&format!(", version {}", vscsi.number()));
                Ok(Self::Vscsi(vscsi))
            }
            Format::OracleGeneral | Format::Lcs => {
                let version = match format {
                    Format::Lcs => objects::lcs_version(input.path(), input.bytes())?,
                    _ => 1,
                };
                if format == Format::Lcs {
                    detected.push_str(&format!(", version {version}"));
                }
                if version == 1 {
                    detected.push_str(", reads only");
                }
                let id = options.object_id.ok_or_else(|| TraceError::Option {
                    option: "--obj-id",
                    reason: format!(
                        "the format {} needs it, because an object id may be anything; accepted: bytes (the address of the \
                         first byte), blocks (the number of a block of 4 KiB)",
                        format.name()
                    ),
                })?;
                detected.push_str(&format!(", object ids are {}", id.name()));
                Ok(Self::Objects(Objects::new(version, id)))
            }
            Format::Srt => Ok(Self::Srt(Srt::of(input)?)),
            _ => unreachable!("no other format has plain records"),
        }
    }

    /// Bytes before the first record.
    fn header_bytes(&self, format: Format) -> usize {
        match self {
            Self::Objects(_) if format == Format::Lcs => objects::HEADER_BYTES,
            Self::Srt(srt) => srt.header_bytes(),
            _ => 0,
        }
    }

    /// Bytes of the next record.
    #[inline]
    fn record_bytes(&self, records: &mut Records) -> Result<usize, TraceError> {
        Ok(match self {
            Self::Vscsi(vscsi) => vscsi.record_bytes(),
            Self::Objects(objects) => objects.record_bytes(),
            Self::Srt(_) => Srt::record_bytes(records.peek(srt::HEAD_BYTES)?),
        })
    }

    #[inline]
    fn parse(&mut self, record: &[u8]) -> Result<Parsed, Box<RecordProblem>> {
        match self {
            Self::Vscsi(vscsi) => vscsi.parse(record),
            Self::Objects(objects) => objects.parse(record),
            Self::Srt(srt) => srt.parse(record),
        }
    }
}

/// A binary trace that is being read.
pub(super) enum Binary {
    Records(Records, RecordParser, Feed),
    Blktrace(Blktrace),
}

impl Binary {
    /// The reader of a binary format; what it finds is added to what was detected. Several inputs are the files of one
    /// blktrace, and the other formats take one.
    pub(super) fn new(
        mut inputs: Vec<Input>,
        format: Format,
        options: &ReadOptions,
        detected: &mut String,
    ) -> Result<Self, TraceError> {
        if format == Format::Blktrace {
            let blktrace = Blktrace::new(inputs, options.event.unwrap_or_default())?;
            detected.push_str(&format!(", {}", blktrace.describe()));
            return Ok(Self::Blktrace(blktrace));
        }
        let input = inputs.pop().expect("a trace has a file");
        let parser = RecordParser::new(format, &input, options, detected)?;
        let header_bytes = parser.header_bytes(format);
        let spread = match parser {
            RecordParser::Objects(_) => Spread::of(options.subsecond, detected),
            RecordParser::Vscsi(_) | RecordParser::Srt(_) => None,
        };
        let records = Records::new(input, header_bytes);
        Ok(Self::Records(records, parser, Feed::new(spread)))
    }

    /// Fills a batch up to `wanted` records; true at the end of the trace.
    pub(super) fn read(
        &mut self,
        wanted: usize,
        tally: &mut Tally,
        batch: &mut Vec<TraceRecord>,
    ) -> Result<bool, TraceError> {
        match self {
            Self::Blktrace(blktrace) => blktrace.read(wanted, tally, batch),
            Self::Records(records, parser, feed) => feed.read(wanted, tally, batch, |tally| {
                let length = parser.record_bytes(records)?;
                let Some(record) = records.next(length)? else {
                    return Ok(None);
                };
                tally.counts.lines += 1;
                match parser.parse(record) {
                    Ok(parsed) => Ok(Some(parsed)),
                    Err(problem) => Err(records.at(*problem)),
                }
            }),
        }
    }

    /// SHA-256 of what was read, once the end is reached.
    pub(super) fn sha256(&self) -> Option<String> {
        match self {
            Self::Records(records, ..) => records.input.sha256(),
            Self::Blktrace(blktrace) => blktrace.sha256(),
        }
    }
}
