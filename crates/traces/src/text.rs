//! Lines and fields of text traces, without allocation.

use memchr::memchr;

use super::error::TraceError;
use super::input::Input;
use super::record::{TraceOperation, TraceRecord};
use super::tally::SkipReason;

/// Longest line accepted; no format of the field comes near it.
pub(super) const LINE_BYTES_MAX: usize = 64 * 1024;

/// What one line holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Parsed {
    /// A request; its time is still the trace's own, in nanoseconds.
    Record(TraceRecord),
    /// A legitimate line without a request.
    Skip(SkipReason),
}

/// What is wrong with one line.
#[derive(Debug)]
pub(super) enum LineProblem {
    Line { found: String, accepted: String },
    Field { field: usize, name: String, value: Vec<u8>, problem: &'static str, accepted: String },
}

/// `None` from a fast parser: ask [`explain`] what is wrong.
pub(super) type LineResult = Result<Parsed, Box<LineProblem>>;

impl LineProblem {
    pub(super) fn at(self, path: &str, line: u64) -> TraceError {
        let path = path.to_owned();
        match self {
            Self::Line { found, accepted } => TraceError::Line { path, line, found, accepted },
            Self::Field { field, name, value, problem, accepted } => {
                let value = String::from_utf8_lossy(&value[..value.len().min(80)]).into_owned();
                TraceError::Field {
                    path,
                    line,
                    field,
                    name: name.into(),
                    value: value.into(),
                    problem,
                    accepted: accepted.into(),
                }
            }
        }
    }
}

/// Splits an [`Input`] into lines.
pub(super) struct Lines {
    pub(super) input: Input,
    /// Number of the line returned last, from 1.
    pub(super) number: u64,
    taken: usize,
}

impl Lines {
    pub(super) fn new(input: Input) -> Self {
        Self { input, number: 0, taken: 0 }
    }

    /// The bytes at hand from the start of the next line on.
    #[inline]
    pub(super) fn ahead(&mut self) -> &[u8] {
        self.input.consume(self.taken);
        self.taken = 0;
        self.input.bytes()
    }

    /// Takes the line that begins [`ahead`](Self::ahead), which has so many bytes with its end.
    #[inline]
    pub(super) fn take(&mut self, line_bytes: usize) {
        self.taken = line_bytes;
        self.number += 1;
    }

    /// The next line without its line end, or `None` at the end of the file. The last line need not end in a newline.
    pub(super) fn next_line(&mut self, records: u64) -> Result<Option<&[u8]>, TraceError> {
        self.input.consume(self.taken);
        self.taken = 0;
        let mut searched = 0;
        let length = loop {
            let bytes = self.input.bytes();
            if let Some(at) = memchr(b'\n', &bytes[searched..]) {
                self.taken = searched + at + 1;
                break searched + at;
            }
            searched = bytes.len();
            if searched > LINE_BYTES_MAX {
                return Err(TraceError::Line {
                    path: self.input.path().to_owned(),
                    line: self.number + 1,
                    found: format!("the line is longer than {LINE_BYTES_MAX} bytes"),
                    accepted: "a text trace with one request a line".to_owned(),
                });
            }
            if !self.input.fill(records)? {
                if searched == 0 {
                    return Ok(None);
                }
                self.taken = searched;
                break searched;
            }
        };
        self.number += 1;
        let line = &self.input.bytes()[..length];
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }
}

/// Walks over the fields of a line from left to right.
pub(super) struct Fields<'a> {
    line: &'a [u8],
    at: usize,
    delimiter: u8,
}

impl<'a> Fields<'a> {
    /// A delimiter of space means any run of blanks and tabs.
    pub(super) fn new(line: &'a [u8], delimiter: u8) -> Self {
        let mut fields = Self { line, at: 0, delimiter };
        fields.skip_blanks();
        fields
    }

    /// True when every field has been taken.
    pub(super) fn finished(&self) -> bool {
        self.at > self.line.len() || (self.delimiter == b' ' && self.at == self.line.len())
    }

    /// An unsigned integer field.
    #[inline(always)]
    pub(super) fn number(&mut self) -> Option<u64> {
        let (value, end) = leading_digits(self.line, self.at)?;
        self.at = end;
        self.end_field()?;
        Some(value)
    }

    /// A field of unsigned decimal digits with an optional fraction, times `unit` (a power of ten) nanoseconds.
    #[inline]
    pub(super) fn decimal_ns(&mut self, unit_ns: u64) -> Option<u64> {
        match leading_digits(self.line, self.at) {
            Some((whole, end)) if self.line.get(end) == Some(&self.delimiter) => {
                self.at = end;
                self.end_field()?;
                whole.checked_mul(unit_ns)
            }
            _ => decimal_ns(trim(self.text()?), unit_ns),
        }
    }

    /// Any field, blanks included.
    #[inline]
    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        if self.finished() {
            return None;
        }
        let rest = &self.line[self.at..];
        let length = rest.iter().position(|&byte| self.is_delimiter(byte)).unwrap_or(rest.len());
        self.at += length;
        self.end_field()?;
        Some(&rest[..length])
    }

    fn is_delimiter(&self, byte: u8) -> bool {
        byte == self.delimiter || (self.delimiter == b' ' && byte == b'\t')
    }

    fn skip_blanks(&mut self) {
        while self.at < self.line.len()
            && matches!(self.line[self.at], b' ' | b'\t')
            && self.delimiter != b'\t'
        {
            self.at += 1;
        }
    }

    /// Steps over the delimiter, or past the end of the line after the last field.
    #[inline(always)]
    fn end_field(&mut self) -> Option<()> {
        let next = self.line.get(self.at..self.at + 2);
        if let Some(&[delimiter, next]) = next
            && delimiter == self.delimiter
            && !matches!(next, b' ' | b'\t')
        {
            self.at += 1;
            return Some(());
        }
        if self.at == self.line.len() {
            self.at += usize::from(self.delimiter != b' ');
            return Some(());
        }
        self.end_field_with_blanks()
    }

    fn end_field_with_blanks(&mut self) -> Option<()> {
        let before = self.at;
        if self.at < self.line.len() && self.line[self.at] != self.delimiter {
            self.skip_blanks();
        }
        if self.at == self.line.len() {
            self.at += usize::from(self.delimiter != b' ');
            return Some(());
        }
        if self.delimiter == b' ' {
            self.skip_blanks();
            return (self.at > before).then_some(());
        }
        if self.line[self.at] != self.delimiter {
            return None;
        }
        self.at += 1;
        self.skip_blanks();
        Some(())
    }
}

pub(super) const POWERS_OF_TEN: [u64; 8] =
    [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000];

/// The integer that starts at `at` and where it ends; `None` without a digit or beyond 64 bits.
#[inline(always)]
fn leading_digits(line: &[u8], at: usize) -> Option<(u64, usize)> {
    let (mut value, mut end) = (0u64, at);
    // Eight bytes at a time, without a branch on the number of digits: it differs from line to line, and a mispredicted
    // branch costs more than the arithmetic. Two steps hold 16 digits, which cannot overflow.
    while end - at <= 8 {
        let digits = eight_bytes(line, end) ^ ZERO_DIGITS;
        let count = (no_digits(digits).trailing_zeros() / 8) as usize;
        if count == 8 {
            value = value * 100_000_000 + eight_digits(digits);
            end += 8;
            continue;
        }
        if count > 0 {
            // Digits move to the top; the zeros that follow them in count as leading zeros.
            value = value * POWERS_OF_TEN[count] + eight_digits(digits << (64 - 8 * count));
            end += count;
        }
        return (end > at).then_some((value, end));
    }
    last_digits(line, at, value, end)
}

/// The integer of the first `count` bytes of a word, the first in the lowest byte, if they are 1 to 8 digits.
#[inline(always)]
pub(super) fn digits_of(word: u64, count: usize) -> Option<u64> {
    // Digits move to the top; the zeros that follow them in count as leading zeros.
    let digits = (word ^ ZERO_DIGITS).checked_shl(64 - 8 * count as u32)?;
    (no_digits(digits) == 0).then_some(eight_digits(digits))
}

/// Bits in the bytes of a word that are no digits less [`ZERO_DIGITS`], exact up to the first such byte.
#[inline(always)]
fn no_digits(digits: u64) -> u64 {
    (digits | digits.wrapping_add(0x0606_0606_0606_0606)) & 0xf0f0_f0f0_f0f0_f0f0
}

/// The digit 0 in each byte of a word.
const ZERO_DIGITS: u64 = 0x3030_3030_3030_3030;

/// Eight bytes from `at` on, the first in the lowest byte; zeros behind the end of the line.
#[inline(always)]
fn eight_bytes(line: &[u8], at: usize) -> u64 {
    let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
    if let Some(eight) = line.get(at..).and_then(|rest| rest.first_chunk()) {
        return word(eight);
    }
    let rest = line.get(at..).unwrap_or_default();
    match line.last_chunk() {
        Some(last) => word(last).checked_shr(64 - 8 * rest.len() as u32).unwrap_or(0),
        None => rest.iter().rev().fold(0, |word, &byte| (word << 8) | u64::from(byte)),
    }
}

/// The rest of [`leading_digits`], beyond 16 digits.
#[inline]
fn last_digits(line: &[u8], at: usize, mut value: u64, mut end: usize) -> Option<(u64, usize)> {
    while let Some(digit) = line.get(end).map(|byte| byte.wrapping_sub(b'0'))
        && digit < 10
    {
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        end += 1;
    }
    (end > at).then_some((value, end))
}

/// The value of eight digits, first digit in the lowest byte.
#[inline]
fn eight_digits(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00ff_00ff_00ff_00ff;
    let quads = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    quads.wrapping_mul(10_000).wrapping_add(quads >> 32) & 0xffff_ffff
}

/// An unsigned integer that is the whole of `field`.
pub(super) fn whole_number(field: &[u8]) -> Option<u64> {
    leading_digits(field, 0).filter(|&(_, end)| end == field.len()).map(|(value, _)| value)
}

/// An unsigned decimal number that is the whole of `field`, times `unit_ns`; exact, digits below 1 ns are cut off.
pub(super) fn decimal_ns(field: &[u8], unit_ns: u64) -> Option<u64> {
    let (whole, point) = leading_digits(field, 0).unwrap_or_default();
    let mut nanoseconds = whole.checked_mul(unit_ns)?;
    let fraction: &[u8] = match &field[point..] {
        [] => &[],
        [b'.', fraction @ ..] => fraction,
        _ => return None,
    };
    if point == 0 && fraction.is_empty() {
        return None;
    }
    let mut digit_ns = unit_ns;
    for byte in fraction {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        digit_ns /= 10;
        nanoseconds = nanoseconds.checked_add(u64::from(digit) * digit_ns)?;
    }
    Some(nanoseconds)
}

/// The field without blanks around it.
pub(super) fn trim(field: &[u8]) -> &[u8] {
    field.trim_ascii()
}

/// What a field of a fixed format holds.
pub(super) struct FieldRule {
    pub name: &'static str,
    /// What is accepted, for the message.
    pub accepted: &'static str,
    /// What is wrong with a value that does not fit.
    pub problem: &'static str,
    pub fits: fn(&[u8]) -> bool,
}

pub(super) const NOT_A_NUMBER: &str = "not a number";

pub(super) fn is_whole(field: &[u8]) -> bool {
    whole_number(field).is_some()
}

pub(super) fn is_device(field: &[u8]) -> bool {
    whole_number(field).is_some_and(|device| device <= u64::from(u16::MAX))
}

/// Says what keeps a line from being a record of the format: too few fields, or the first field that does not fit.
pub(super) fn explain(
    line: &[u8],
    delimiter: u8,
    rules: &[FieldRule],
    more_allowed: bool,
) -> Box<LineProblem> {
    let fields = split(line, delimiter);
    let names = || rules.iter().map(|rule| rule.name).collect::<Vec<_>>().join(", ");
    let all_fit = |upto: usize| {
        fields.iter().zip(rules).take(upto).find(|(field, rule)| !(rule.fits)(field)).is_none()
    };
    if fields.len() < rules.len() {
        let plural = if fields.len() == 1 { "" } else { "s" };
        return Box::new(LineProblem::Line {
            found: format!("the line ends after {} field{plural}", fields.len()),
            accepted: format!("{} fields: {}", rules.len(), names()),
        });
    }
    if fields.len() > rules.len() && !more_allowed && all_fit(rules.len()) {
        return Box::new(LineProblem::Line {
            found: format!("the line has {} fields", fields.len()),
            accepted: format!("{} fields: {}", rules.len(), names()),
        });
    }
    for (index, (field, rule)) in fields.iter().zip(rules).enumerate() {
        if !(rule.fits)(field) {
            return Box::new(LineProblem::Field {
                field: index + 1,
                name: rule.name.to_owned(),
                value: field.to_vec(),
                problem: rule.problem,
                accepted: rule.accepted.to_owned(),
            });
        }
    }
    Box::new(LineProblem::Line {
        found: "a value of the line is too large".to_owned(),
        accepted: format!("{POSSIBLE_RANGE}, times within 500 years"),
    })
}

/// All fields of a line, trimmed.
pub(super) fn split(line: &[u8], delimiter: u8) -> Vec<&[u8]> {
    if delimiter == b' ' {
        line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|field| !field.is_empty()).collect()
    } else {
        line.split(|&byte| byte == delimiter).map(trim).collect()
    }
}

/// `R` or `W` in either case, with or without blanks around it.
#[inline]
pub(super) fn read_or_write(field: &[u8]) -> Option<TraceOperation> {
    match trim(field) {
        b"r" | b"R" => Some(TraceOperation::Read),
        b"w" | b"W" => Some(TraceOperation::Write),
        _ => None,
    }
}

/// What [`range_is_possible`] accepts, for messages.
pub(super) const POSSIBLE_RANGE: &str = "at most 2^40 bytes within the first 2^62";

/// True for a range that 64-bit arithmetic holds with room to spare and that no damaged number makes absurdly long.
#[inline]
pub(super) fn range_is_possible(offset_bytes: u64, length_bytes: u64) -> bool {
    offset_bytes < 1 << 62 && length_bytes <= 1 << 40
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_length_up_to_64_bits() {
        for text in [
            "0",
            "1234567",
            "1234567890123456",
            "12345678901234567",
            "7",
            "12345678",
            "123456789",
            "128166386787582087",
            "9999999999999999999",
            "18446744073709551615",
        ] {
            assert_eq!(whole_number(text.as_bytes()), text.parse().ok(), "{text}");
        }
        for text in [
            "",
            "-1",
            "1a",
            "12345678x",
            "1234567/",
            "18446744073709551616",
            "99999999999999999999",
            "1e5",
        ] {
            assert_eq!(whole_number(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn decimals_are_exact() {
        assert_eq!(decimal_ns(b"0.026214", 1_000_000_000), Some(26_214_000));
        assert_eq!(
            decimal_ns(b"1450000000.123456789", 1_000_000_000),
            Some(1_450_000_000_123_456_789)
        );
        assert_eq!(decimal_ns(b"5.0000001", 1_000_000), Some(5_000_000));
        assert_eq!(decimal_ns(b".5", 1000), Some(500));
        for text in [&b"."[..], b"", b"-1", b"1.2.3", b"1e3", b"99999999999999"] {
            assert_eq!(decimal_ns(text, 1_000_000_000), None);
        }
    }

    #[test]
    fn fields_are_walked_with_blanks_around_them() {
        let mut fields = Fields::new(b" 1 , 22,x y ,", b',');
        assert_eq!(fields.number(), Some(1));
        assert_eq!(fields.number(), Some(22));
        assert_eq!(fields.text(), Some(&b"x y "[..]));
        assert!(!fields.finished());
        assert_eq!(fields.text(), Some(&b""[..]));
        assert!(fields.finished());
        let mut blanks = Fields::new(b"  1\t 2  3 ", b' ');
        assert_eq!(
            (blanks.number(), blanks.number(), blanks.number()),
            (Some(1), Some(2), Some(3))
        );
        assert!(blanks.finished());
    }
}
