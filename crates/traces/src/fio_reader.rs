//! fio iologs of version 2 and 3, as `fio --write_iolog` and people write them.
//!
//! A first line names the version. Version 3 has lines `time file action [offset length]` with the time in microseconds
//! since the run started; version 2 has the same lines without the time, and lines `file wait N 0` between them. Files
//! become devices 0, 1, ... in order of appearance. `sync` and `datasync` are flushes.

use super::devices::Devices;
use super::error::TraceError;
use super::input::Input;
use super::record::{TraceOperation, TraceRecord};
use super::tally::SkipReason;
use super::text::{
    FieldRule, Fields, LineResult, NOT_A_NUMBER, Parsed, explain, is_whole, range_is_possible,
};

const MICROSECOND_NS: u64 = 1000;
const MILLISECOND_NS: u64 = 1_000_000;
const VERSION_2: &[u8] = b"fio version 2 iolog";
const VERSION_3: &[u8] = b"fio version 3 iolog";

/// What `wait N` means in an iolog of version 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FioWait {
    /// As fio does it: until N milliseconds after the start of the run.
    MillisecondsSinceStart,
    /// As fio's manual says: N microseconds after the wait before.
    MicrosecondsRelative,
}

impl std::str::FromStr for FioWait {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ms-absolute" => Ok(Self::MillisecondsSinceStart),
            "us-relative" => Ok(Self::MicrosecondsRelative),
            other => Err(format!(
                "unknown meaning of fio's wait {other:?}; accepted: ms-absolute (as fio does), us-relative (as its manual says)"
            )),
        }
    }
}

const RULES: [FieldRule; 5] = [
    FieldRule {
        name: "time",
        accepted: "an unsigned integer, in microseconds",
        problem: NOT_A_NUMBER,
        fits: is_whole,
    },
    FieldRule {
        name: "file",
        accepted: "a file name without blanks",
        problem: "empty",
        fits: |field| !field.is_empty(),
    },
    FieldRule {
        name: "action",
        accepted: "read, write, trim, sync, datasync, wait, add, open or close",
        problem: "not an action",
        fits: |field| action(field).is_some(),
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
];

#[derive(Clone, Copy, PartialEq)]
enum Action {
    Request(TraceOperation),
    Wait,
    /// `add`, `open`, `close`: the life of a file.
    File,
}

fn action(field: &[u8]) -> Option<Action> {
    Some(match field {
        b"read" => Action::Request(TraceOperation::Read),
        b"write" => Action::Request(TraceOperation::Write),
        b"trim" => Action::Request(TraceOperation::Trim),
        b"sync" | b"datasync" => Action::Request(TraceOperation::Flush),
        b"wait" => Action::Wait,
        b"add" | b"open" | b"close" => Action::File,
        _ => return None,
    })
}

/// Where the times of an iolog come from.
#[derive(Clone, Copy, PartialEq)]
enum Clock {
    /// The first field of each line.
    Field,
    /// Lines that wait.
    Waits(FioWait),
    /// Nowhere: version 2 without a wait near its start.
    None,
}

/// State of the reader.
pub(super) struct FioLog {
    files: Devices<Vec<u8>>,
    clock: Clock,
    /// What the waits of version 2 have come to.
    now_ns: u64,
}

impl FioLog {
    /// A reader of the version the first line names. Without `wait` an iolog of version 2 has times if a line that waits is
    /// among those read so far.
    pub(super) fn new(input: &Input, wait: Option<FioWait>) -> Result<Self, TraceError> {
        let first = first_line(input.bytes());
        let clock = if first == VERSION_3 {
            if wait.is_some() {
                return Err(TraceError::Option {
                    option: "--fio-wait",
                    reason: "an iolog of version 3 has a time in each line and no waits".to_owned(),
                });
            }
            Clock::Field
        } else if first == VERSION_2 {
            let waits = memchr::memmem::find(input.bytes(), b" wait ").is_some();
            match wait.or(waits.then_some(FioWait::MillisecondsSinceStart)) {
                Some(wait) => Clock::Waits(wait),
                None => Clock::None,
            }
        } else {
            return Err(TraceError::Format {
                path: input.path().to_owned(),
                reason: "the first line names no version of an iolog; accepted: `fio version 2 iolog` or `fio version 3 \
                         iolog` there, or --format fio-v1 for lines `rw, offset, length`"
                    .to_owned(),
            });
        };
        Ok(Self { files: Devices::default(), clock, now_ns: 0 })
    }

    /// Where the times come from, for people.
    pub(super) fn describe(&self) -> &'static str {
        match self.clock {
            Clock::Field => "times in microseconds since the start",
            Clock::Waits(FioWait::MillisecondsSinceStart) => {
                "each wait lasts until so many milliseconds after the start, as fio does it"
            }
            Clock::Waits(FioWait::MicrosecondsRelative) => {
                "each wait is so many microseconds after the wait before, as fio's manual says"
            }
            Clock::None => "no times: no wait near its start",
        }
    }

    pub(super) fn has_times(&self) -> bool {
        self.clock != Clock::None
    }

    #[inline]
    pub(super) fn parse(&mut self, line: &[u8]) -> LineResult {
        if let Some(parsed) = self.parsed(line) {
            return Ok(parsed);
        }
        if is_version(line) {
            return Ok(Parsed::Skip(SkipReason::Header));
        }
        if let Some(refusal) = self.files.refusal("files") {
            return Err(refusal);
        }
        let untimed = usize::from(self.clock != Clock::Field);
        Err(explain(line, b' ', &RULES[untimed..], false))
    }

    #[inline]
    fn parsed(&mut self, line: &[u8]) -> Option<Parsed> {
        let mut fields = Fields::new(line, b' ');
        let mut time_ns = self.now_ns;
        if self.clock == Clock::Field {
            time_ns = fields.number()?.checked_mul(MICROSECOND_NS)?;
        }
        let (file, action) = (fields.text()?, action(fields.text()?)?);
        let device = self.files.number(file)?;
        let operation = match action {
            Action::File => return Some(Parsed::Skip(SkipReason::FioFileAction)),
            Action::Wait => {
                self.wait(fields.number()?)?;
                return Some(Parsed::Skip(SkipReason::FioWait));
            }
            Action::Request(operation) => operation,
        };
        let (offset_bytes, length_bytes) = (fields.number()?, fields.number()?);
        if !fields.finished() || !range_is_possible(offset_bytes, length_bytes) {
            return None;
        }
        let mut record = TraceRecord::new(time_ns, operation, offset_bytes, length_bytes);
        record.device = device;
        if operation == TraceOperation::Flush {
            (record.offset_bytes, record.length_bytes) = (0, 0);
        } else if length_bytes == 0 {
            return Some(Parsed::Skip(SkipReason::ZeroLength));
        }
        Some(Parsed::Record(record))
    }

    /// Moves the clock of version 2; `None` if no clock goes that far. fio leaves waits out of version 3, so they do
    /// nothing there.
    fn wait(&mut self, amount: u64) -> Option<()> {
        match self.clock {
            Clock::Waits(FioWait::MillisecondsSinceStart) => {
                self.now_ns = self.now_ns.max(amount.checked_mul(MILLISECOND_NS)?);
            }
            Clock::Waits(FioWait::MicrosecondsRelative) => {
                let wait_ns = amount.checked_mul(MICROSECOND_NS)?;
                self.now_ns = self.now_ns.checked_add(wait_ns)?;
            }
            Clock::Field | Clock::None => {}
        }
        Some(())
    }
}

fn first_line(bytes: &[u8]) -> &[u8] {
    let end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
    bytes[..end].trim_ascii_end()
}

fn is_version(line: &[u8]) -> bool {
    line.trim_ascii_end() == VERSION_2 || line.trim_ascii_end() == VERSION_3
}

/// True of the first bytes of an iolog.
pub(super) fn looks_like(bytes: &[u8]) -> bool {
    is_version(first_line(bytes))
}
