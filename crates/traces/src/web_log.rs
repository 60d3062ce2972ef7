//! Web server logs turned into block requests by a recipe.
//!
//! A log says which documents were asked for, not which blocks were read, so the requests are derived: every URL that was
//! delivered gets an extent, in the order in which the log first delivers it, in whole blocks of 4 KiB and as long as the
//! longest reply with status 200. A delivered `GET` reads as many blocks of its extent as its reply is long. Nothing else
//! reads: a server that answers 304, `HEAD` or an error has not sent the document. What a server writes the log does not
//! say; [`HttpWrites`] offers assumptions. The file is read twice, because a later reply may be longer than the first, and only
//! the URLs are held in memory.

use std::collections::HashMap;

use imbrex_drives::quantity::parse_size;

use super::error::TraceError;
use super::input::Input;
use super::log_line::{Dialect, Entry, is_header};
use super::record::{TraceOperation, TraceRecord};
use super::tally::SkipReason;
use super::text::{LineProblem, LineResult, Lines, Parsed};

const BLOCK_BYTES: u64 = 4096;
const SECOND_NS: u64 = 1_000_000_000;
/// All extents together: far beyond any device, far below what overflows.
const EXTENTS_BYTES_MAX: u64 = 1 << 60;
const LOG_WRITE_BYTES_MAX: u64 = 1 << 30;

/// What a web server is assumed to write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HttpWrites {
    /// Nothing.
    #[default]
    None,
    /// Each document once, as a whole, before it is read for the first time.
    Create,
    /// Its log, appended behind the documents whenever so many bytes of lines have come together.
    Log {
        /// Bytes of one write, a multiple of 4096.
        bytes: u64,
    },
}

impl HttpWrites {
    fn describe(self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Create => "each document before it is first read".to_owned(),
            Self::Log { bytes } => format!("the log, {bytes} bytes at a time"),
        }
    }
}

impl std::str::FromStr for HttpWrites {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let log = |size: &str| {
            let bytes = parse_size(size).ok()?;
            let fits = bytes.is_multiple_of(BLOCK_BYTES)
                && (BLOCK_BYTES..=LOG_WRITE_BYTES_MAX).contains(&bytes);
            fits.then_some(Self::Log { bytes })
        };
        match text {
            "none" => Some(Self::None),
            "create" => Some(Self::Create),
            "log" => Some(Self::Log { bytes: BLOCK_BYTES }),
            other => other.strip_prefix("log:").and_then(log),
        }
        .ok_or_else(|| {
            format!(
                "unknown writes {text:?}; accepted: none, create, log, or log:SIZE with whole blocks of 4 KiB up to 1 GiB"
            )
        })
    }
}

/// Where a document lies.
struct Extent {
    start_bytes: u64,
    length_bytes: u64,
    was_read: bool,
}

/// The reader of a web log, in the second pass over it.
pub(super) struct WebLog {
    dialect: Dialect,
    writes: HttpWrites,
    numbers: HashMap<Box<[u8]>, usize>,
    extents: Vec<Extent>,
    /// Size of the device that holds all extents, and the log where it is written.
    device_bytes: u64,
    /// Bytes of lines that wait to be written, and where the next write goes.
    log_waiting_bytes: u64,
    log_next_bytes: u64,
    /// Time of the last request that was understood.
    now_ns: Option<u64>,
    /// Requests of the line parsed last, behind the one it returned.
    more: std::collections::VecDeque<TraceRecord>,
}

impl WebLog {
    /// Reads a whole log once to lay out its documents, and gives the input back, which is at its end then.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(super) fn lay_out(input: Input, writes: HttpWrites) -> Result<(Self, Input), TraceError> {
        let mut log = Self {
            dialect: Dialect::of(input.bytes()),
            writes,
            numbers: HashMap::new(),
            extents: Vec::new(),
            device_bytes: 0,
            log_waiting_bytes: 0,
            log_next_bytes: 0,
            now_ns: None,
            more: std::collections::VecDeque::new(),
        };
        let mut lines = Lines::new(input);
        let mut lines_bytes = 0;
        while let Some(line) = lines.next_line(0)? {
            lines_bytes += written_bytes(line);
            if let Some(entry) = log.dialect.entry(line)
                && let Ok(bytes) = delivered_bytes(&entry)
            {
                log.note(entry.url, bytes);
            }
        }
        let mut end_bytes: u64 = 0;
        for extent in &mut log.extents {
            extent.start_bytes = end_bytes;
            extent.length_bytes = extent.length_bytes.next_multiple_of(BLOCK_BYTES);
            end_bytes += extent.length_bytes;
            if end_bytes > EXTENTS_BYTES_MAX {
                return Err(TraceError::Format {
                    path: lines.input.path().to_owned(),
                    reason: "the documents of the log are larger than 2^60 bytes together; accepted: a log of smaller replies"
                        .to_owned(),
                });
            }
        }
        log.log_next_bytes = end_bytes;
        log.device_bytes = end_bytes;
        if let HttpWrites::Log { bytes } = writes {
            log.device_bytes += lines_bytes / bytes * bytes;
        }
        Ok((log, lines.input))
    }

    /// Notes that a reply with a document has so many bytes.
    fn note(&mut self, url: &[u8], bytes: u64) {
        let number = match self.numbers.get(url) {
            Some(&number) => number,
            None => {
                self.numbers.insert(url.into(), self.extents.len());
                self.extents.push(Extent { start_bytes: 0, length_bytes: 0, was_read: false });
                self.extents.len() - 1
            }
        };
        let length_bytes = &mut self.extents[number].length_bytes;
        *length_bytes = (*length_bytes).max(bytes);
    }

    /// Size of the device that the requests need.
    pub(super) fn device_bytes(&self) -> u64 {
        self.device_bytes
    }

    /// The recipe with its parameters, for people.
    pub(super) fn describe(&self) -> String {
        format!(
            "an extent for each of {} URLs in first-seen order, as long as its longest reply in blocks of 4 KiB; GET with \
             status 200 reads; writes: {}",
            self.extents.len(),
            self.writes.describe()
        )
    }

    /// The next of the requests that the line parsed last stands for, behind the one it returned.
    pub(super) fn more(&mut self) -> Option<TraceRecord> {
        self.more.pop_front()
    }

    pub(super) fn parse(&mut self, line: &[u8]) -> LineResult {
        let skipped = self.requests(line)?;
        self.append(line);
        Ok(match skipped {
            Some(reason) => Parsed::Skip(reason),
            None => {
                let first = self.more.pop_front();
                Parsed::Record(first.expect("a line that is not skipped reads"))
            }
        })
    }

    /// Puts the requests of a line into `more`; the reason if there are none.
    fn requests(&mut self, line: &[u8]) -> Result<Option<SkipReason>, Box<LineProblem>> {
        let Some(entry) = self.dialect.entry(line) else {
            let is_header = self.dialect == Dialect::Tabs && is_header(line);
            return Ok(Some(match line.trim_ascii() {
                [] => SkipReason::Blank,
                _ if is_header => SkipReason::Header,
                _ => SkipReason::NoLogLine,
            }));
        };
        let Some(time_ns) = entry.time_s.checked_mul(SECOND_NS) else {
            return Ok(Some(SkipReason::NoLogLine));
        };
        self.now_ns = Some(time_ns);
        let bytes = match delivered_bytes(&entry) {
            Ok(bytes) => bytes,
            Err(reason) => return Ok(Some(reason)),
        };
        let length_bytes = bytes.next_multiple_of(BLOCK_BYTES);
        let number = self.numbers.get(entry.url).copied();
        let extent = number.map(|number| &mut self.extents[number]);
        let Some(extent) = extent.filter(|extent| length_bytes <= extent.length_bytes) else {
            return Err(Box::new(LineProblem::Line {
                found: "the line was another one when the file was read before".to_owned(),
                accepted: "a log that does not change while it is read, twice".to_owned(),
            }));
        };
        let request = |operation, length_bytes| {
            TraceRecord::new(time_ns, operation, extent.start_bytes, length_bytes)
        };
        if self.writes == HttpWrites::Create && !extent.was_read {
            self.more.push_back(request(TraceOperation::Write, extent.length_bytes));
        }
        self.more.push_back(request(TraceOperation::Read, length_bytes));
        extent.was_read = true;
        Ok(None)
    }

    /// Adds a line to the log that the server writes, and the writes that become due.
    fn append(&mut self, line: &[u8]) {
        let HttpWrites::Log { bytes } = self.writes else {
            return;
        };
        self.log_waiting_bytes += written_bytes(line);
        let Some(time_ns) = self.now_ns else {
            return;
        };
        while self.log_waiting_bytes >= bytes {
            self.log_waiting_bytes -= bytes;
            let start_bytes = self.log_next_bytes;
            self.log_next_bytes += bytes;
            self.more.push_back(TraceRecord::new(
                time_ns,
                TraceOperation::Write,
                start_bytes,
                bytes,
            ));
        }
    }
}

/// Bytes of a line and its end in the log of the server.
fn written_bytes(line: &[u8]) -> u64 {
    line.len() as u64 + 1
}

/// Bytes of the document that a request was answered with, or why it was not.
fn delivered_bytes(entry: &Entry<'_>) -> Result<u64, SkipReason> {
    if entry.method != b"GET" {
        return Err(SkipReason::HttpMethod);
    }
    if entry.status != 200 {
        return Err(SkipReason::HttpStatus(entry.status));
    }
    let bytes = entry.bytes.filter(|&bytes| bytes > 0);
    bytes.ok_or(SkipReason::HttpNoBytes)
}
