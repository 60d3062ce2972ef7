//! What blkparse prints by default: `maj,min cpu sequence seconds.nanoseconds pid event RWBS sector + sectors [process]`.
//!
//! One event of a request stands for it. RWBS says what is asked: `F` flushes first, then `R`, `W`, `D` (discard) or `N` (no
//! data), then flags, of which `F` (forced unit access) matters here. A block of text at the end sums up the trace.
//! Source: `blkparse_fmt.c` of blktrace and `fill_rwbs` of the kernel.

use super::devices::Devices;
use super::options::BlkEvent;
use super::record::{TraceOperation, TraceRecord};
use super::tally::SkipReason;
use super::text::{
    FieldRule, Fields, LineProblem, LineResult, NOT_A_NUMBER, Parsed, decimal_ns, explain,
    is_whole, range_is_possible, whole_number,
};

const SECTOR_BYTES: u64 = 512;
const SECOND_NS: u64 = 1_000_000_000;

const RULES: [FieldRule; 7] = [
    FieldRule {
        name: "device",
        accepted: "the major and minor number of a device, such as 8,0",
        problem: "not a device",
        fits: |field| device_numbers(field).is_some(),
    },
    FieldRule {
        name: "cpu",
        accepted: "an unsigned integer",
        problem: NOT_A_NUMBER,
        fits: is_whole,
    },
    FieldRule {
        name: "sequence",
        accepted: "an unsigned integer",
        problem: NOT_A_NUMBER,
        fits: is_whole,
    },
    FieldRule {
        name: "time",
        accepted: "a decimal number of seconds",
        problem: NOT_A_NUMBER,
        fits: |field| decimal_ns(field, SECOND_NS).is_some(),
    },
    FieldRule {
        name: "pid",
        accepted: "an unsigned integer",
        problem: NOT_A_NUMBER,
        fits: is_whole,
    },
    FieldRule {
        name: "event",
        accepted: "one or two letters, such as Q, D or C",
        problem: "not an event",
        fits: is_event,
    },
    FieldRule {
        name: "RWBS",
        accepted: "letters such as R, WS, FWFS, D or N",
        problem: "not the letters of a request",
        fits: |field| asked(field).is_some(),
    },
];

/// What the letters of a request ask for.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Asked {
    kind: Kind,
    flush_first: bool,
    fua: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Data(TraceOperation),
    /// `N`: a flush if [`Asked::flush_first`], otherwise nothing a disk would notice.
    None,
    /// `Z` and what follows: a command about zones.
    Zones,
}

/// State of the reader: the devices seen, and whether the closing text has begun.
pub(super) struct Blkparse {
    event: BlkEvent,
    devices: Devices<(u64, u64)>,
    in_summary: bool,
}

impl Blkparse {
    pub(super) fn new(event: BlkEvent) -> Self {
        Self { event, devices: Devices::default(), in_summary: false }
    }

    /// Which event stands for a request, for people.
    pub(super) fn describe(&self) -> String {
        format!("event {} of each request", self.event.letter())
    }

    #[inline]
    pub(super) fn parse(&mut self, line: &[u8]) -> LineResult {
        if let Some(parsed) = self.parsed(line) {
            return Ok(parsed);
        }
        let text = line.trim_ascii_start();
        self.in_summary |= begins_summary(text);
        let is_summary = self.in_summary && !text.first().is_some_and(u8::is_ascii_digit);
        if is_summary || names_input(text) {
            return Ok(Parsed::Skip(SkipReason::Summary));
        }
        if let Some(refusal) = self.devices.refusal("devices") {
            return Err(refusal);
        }
        Err(self.explain(line))
    }

    /// Says what is wrong with a line.
    #[cold]
    fn explain(&self, line: &[u8]) -> Box<LineProblem> {
        let fields = super::text::split(line, b' ');
        let is_whole_event = fields.len() > RULES.len()
            && RULES.iter().zip(&fields).all(|(rule, field)| (rule.fits)(field));
        let value = fields.get(RULES.len()).copied().unwrap_or_default();
        let length = fields.get(RULES.len() + 2).copied().unwrap_or_default();
        if is_whole_event && (whole_number(value).is_none() || whole_number(length).is_none()) {
            return Box::new(LineProblem::Line {
                found: format!(
                    "the range starts with \"{}\"",
                    value[..value.len().min(40)].escape_ascii()
                ),
                accepted: "`sector + sectors`, or `[process]` for a request without data"
                    .to_owned(),
            });
        }
        explain(line, b' ', &RULES, true)
    }

    #[inline]
    fn parsed(&mut self, line: &[u8]) -> Option<Parsed> {
        let mut fields = Fields::new(line, b' ');
        let device = device_numbers(fields.text()?)?;
        fields.number()?;
        fields.number()?;
        let time_ns = fields.decimal_ns(SECOND_NS)?;
        fields.number()?;
        let event = fields.text().filter(|event| is_event(event))?;
        let letter = char::from(event[0]);
        if event.len() > 1 || letter != self.event.letter() {
            return Some(Parsed::Skip(match letter {
                'm' => SkipReason::Notify,
                letter => SkipReason::OtherEvent(letter),
            }));
        }
        let asked = asked(fields.text()?)?;
        let payload = Payload::of(&mut fields)?;
        let device = self.devices.number(&device)?;
        let operation = match asked.kind {
            Kind::Zones => return Some(Parsed::Skip(SkipReason::ZoneCommand)),
            _ if payload.is_passthrough => return Some(Parsed::Skip(SkipReason::Passthrough)),
            Kind::Data(operation) if payload.sectors > 0 => operation,
            _ if asked.flush_first => TraceOperation::Flush,
            _ => return Some(Parsed::Skip(SkipReason::ZeroLength)),
        };
        let mut record = TraceRecord::new(time_ns, operation, 0, 0);
        if operation != TraceOperation::Flush {
            record.offset_bytes = payload.sector.checked_mul(SECTOR_BYTES)?;
            record.length_bytes = payload.sectors.checked_mul(SECTOR_BYTES)?;
            if !range_is_possible(record.offset_bytes, record.length_bytes) {
                return None;
            }
        }
        record.device = device;
        record.fua = asked.fua && operation.changes_data();
        record.response_ns = payload.elapsed_ns.filter(|_| self.event == BlkEvent::Complete);
        Some(Parsed::Record(record))
    }
}

/// What follows RWBS.
#[derive(Default)]
struct Payload {
    sector: u64,
    sectors: u64,
    /// Time since the request was issued, of a completion where blkparse was asked for it.
    elapsed_ns: Option<u64>,
    /// The bytes of a command stand in the place of a range.
    is_passthrough: bool,
}

impl Payload {
    /// `sector + sectors`, `sector + sectors (elapsed)`, `bytes (command)`, `(command)` or nothing, then a process or an
    /// error in brackets.
    #[inline]
    fn of(fields: &mut Fields<'_>) -> Option<Self> {
        let mut payload = Self::default();
        if fields.finished() {
            return Some(payload);
        }
        let first = fields.text()?;
        if first.starts_with(b"[") {
            return Some(payload);
        }
        payload.is_passthrough = first.starts_with(b"(");
        if payload.is_passthrough {
            return Some(payload);
        }
        payload.sector = whole_number(first)?;
        match fields.text() {
            Some(b"+") => {}
            Some(command) if command.starts_with(b"(") => {
                payload.is_passthrough = true;
                return Some(payload);
            }
            Some(process) if process.starts_with(b"[") => return Some(payload),
            None => return Some(payload),
            Some(_) => return None,
        }
        payload.sectors = fields.number()?;
        let elapsed = fields.text().and_then(|field| field.strip_prefix(b"("));
        if let Some(mut elapsed) = elapsed {
            // The number is set right: blanks may separate it from its parenthesis.
            if elapsed.is_empty() {
                elapsed = fields.text()?;
            }
            payload.elapsed_ns = Some(whole_number(elapsed.strip_suffix(b")")?)?);
        }
        Some(payload)
    }
}

/// `8,0` as two numbers.
#[inline]
fn device_numbers(field: &[u8]) -> Option<(u64, u64)> {
    let comma = memchr::memchr(b',', field)?;
    Some((whole_number(&field[..comma])?, whole_number(&field[comma + 1..])?))
}

fn is_event(field: &[u8]) -> bool {
    field.len() <= 2 && field.first().is_some_and(u8::is_ascii_alphabetic)
}

/// Reads the letters of a request; further flags behind them are accepted whatever they are.
#[inline]
fn asked(rwbs: &[u8]) -> Option<Asked> {
    if !rwbs.iter().all(u8::is_ascii_alphabetic) {
        return None;
    }
    let flush_first = rwbs.first() == Some(&b'F');
    let rest = &rwbs[usize::from(flush_first)..];
    let (kind, flags) = match rest {
        // Newer kernels have a second letter for writes of zeroes and for secure erasure, which is a discard here.
        [b'W', b'Z', flags @ ..] => (Kind::Data(TraceOperation::WriteZeroes), flags),
        [b'W', flags @ ..] => (Kind::Data(TraceOperation::Write), flags),
        [b'R', flags @ ..] => (Kind::Data(TraceOperation::Read), flags),
        [b'D', flags @ ..] => (Kind::Data(TraceOperation::Trim), flags),
        [b'N', flags @ ..] => (Kind::None, flags),
        [b'Z', flags @ ..] => (Kind::Zones, flags),
        flags if flush_first => (Kind::None, flags),
        _ => return None,
    };
    Some(Asked { kind, flush_first, fua: flags.contains(&b'F') })
}

/// True of the first line of a part of the closing text.
fn begins_summary(text: &[u8]) -> bool {
    text.starts_with(b"CPU") || text.starts_with(b"Total (")
}

/// True of a line that names a file that blkparse was given, which it prints before the first event.
fn names_input(text: &[u8]) -> bool {
    text.starts_with(b"Input file ")
}

/// The lines that have to be events, if this is the format: a short trace may have more lines in its closing text.
pub(super) fn event_lines<'a>(lines: &[&'a [u8]]) -> Vec<&'a [u8]> {
    lines
        .iter()
        .copied()
        .take_while(|line| !begins_summary(line))
        .filter(|line| !names_input(line))
        .collect()
}

/// True when a line has the shape of this format.
pub(super) fn looks_like(line: &[u8]) -> bool {
    let fields = super::text::split(line, b' ');
    fields.len() >= RULES.len()
        && RULES.iter().zip(&fields).take(6).all(|(rule, field)| (rule.fits)(field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_requests() {
        let of = |letters: &str| asked(letters.as_bytes());
        let plain =
            |operation| Some(Asked { kind: Kind::Data(operation), flush_first: false, fua: false });
        assert_eq!(of("R"), plain(TraceOperation::Read));
        assert_eq!(of("RAM"), plain(TraceOperation::Read));
        assert_eq!(of("WSM"), plain(TraceOperation::Write));
        assert_eq!(of("DE"), plain(TraceOperation::Trim));
        assert_eq!(of("WZS"), plain(TraceOperation::WriteZeroes));
        // A letter of a kernel to come.
        assert_eq!(of("WSx"), plain(TraceOperation::Write));
        let forced =
            Asked { kind: Kind::Data(TraceOperation::Write), flush_first: true, fua: true };
        assert_eq!(of("FWFS"), Some(forced));
        for flush in ["F", "FN", "FS", "FNS"] {
            let flush = of(flush).unwrap();
            assert_eq!((flush.kind, flush.flush_first, flush.fua), (Kind::None, true, false));
        }
        assert_eq!(of("ZRA").unwrap().kind, Kind::Zones);
        assert_eq!(of("N").unwrap().kind, Kind::None);
        for wrong in ["", "X", "8", "W+"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
