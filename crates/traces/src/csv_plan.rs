//! Lines of CSV whose values are all as they should be, read in one walk over the bytes at hand.

use memchr::memchr;

use super::column_map::{ColumnMap, OperationCode};
use super::csv::{UNIT, operation as operation_of, scsi_code, scsi_operation};
use super::record::{TraceOperation, TraceRecord};
use super::tally::SkipReason;
use super::text::{
    POWERS_OF_TEN, Parsed, decimal_ns, digits_of, range_is_possible, trim, whole_number,
};

/// What a column is read for; numbers with what they are multiplied by, nanoseconds or bytes of a unit.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Nothing,
    Number(Number, u64),
    /// A number that may have a fraction.
    Decimal(Number, u64),
    Operation,
    /// An operation as a SCSI operation code.
    ScsiOperation,
    ForcedUnitAccess,
}

/// What a number is.
#[derive(Clone, Copy, PartialEq)]
enum Number {
    Time,
    Offset,
    Length,
    Device,
    Response,
}

/// What the columns of a line are read for, in their order.
pub(super) struct Plan {
    parts: Vec<Part>,
    /// How the column of the operation tells it, where there is one.
    code: OperationCode,
    has_response: bool,
    delimiter: u8,
}

impl Plan {
    /// `None` where a column has two parts, or the delimiter may stand in a value.
    pub(super) fn new(map: &ColumnMap, delimiter: u8) -> Option<Self> {
        let number = |number, (column, unit)| (column, Part::Number(number, unit));
        let decimal = |number, (column, unit): (_, Option<_>)| {
            (column, Part::Decimal(number, unit.unwrap_or(UNIT).nanoseconds()))
        };
        let mut named =
            vec![number(Number::Offset, map.offset), number(Number::Length, map.length)];
        named.extend(map.time.map(|time| decimal(Number::Time, time)));
        named.extend(map.response.map(|response| decimal(Number::Response, response)));
        named.extend(map.device.map(|column| number(Number::Device, (column, 1))));
        named.extend(map.fua.map(|column| (column, Part::ForcedUnitAccess)));
        let (operation, code) = map.operation.clone().unzip();
        let code = code.unwrap_or(OperationCode::Words);
        let part = match code {
            OperationCode::Scsi => Part::ScsiOperation,
            _ => Part::Operation,
        };
        named.extend(operation.map(|column| (column, part)));
        let mut parts = vec![Part::Nothing; map.columns];
        for (column, part) in named {
            if parts[column] != Part::Nothing {
                return None;
            }
            parts[column] = part;
        }
        let has_response = map.response.is_some();
        (!delimiter.is_ascii_digit()).then_some(Self { parts, code, has_response, delimiter })
    }

    /// What the line at the start of `bytes` holds, and how many bytes it takes with its end. `None` where a value is
    /// not as it should be or is written in a rare way, and where too few bytes are at hand.
    #[inline]
    pub(super) fn parse(&self, bytes: &[u8]) -> Option<(Parsed, usize)> {
        let mut walk = Walk::new(bytes, self.delimiter)?;
        let mut values = [0; Number::Response as usize + 1];
        let (mut operation, mut fua, mut skip) = (TraceOperation::Read, false, None);
        for part in &self.parts {
            let field = walk.field()?;
            match *part {
                Part::Nothing => {}
                Part::Number(number, unit) => {
                    values[number as usize] = walk.number(field)?.checked_mul(unit)?;
                }
                Part::Decimal(number, unit_ns) => {
                    values[number as usize] = walk.decimal_ns(field, unit_ns)?;
                }
                Part::ScsiOperation => {
                    let code = scsi_code(walk.text(field)?)?;
                    match scsi_operation(code) {
                        Some(known) => operation = known,
                        None => skip = Some(SkipReason::ScsiOpcode(code)),
                    }
                }
                Part::Operation => operation = operation_of(walk.text(field)?, &self.code).ok()?,
                Part::ForcedUnitAccess => match walk.text(field)? {
                    b"0" => {}
                    b"1" => fua = true,
                    _ => return None,
                },
            }
        }
        let [time_ns, offset_bytes, length_bytes, device, response_ns] = values;
        if !range_is_possible(offset_bytes, length_bytes) {
            return None;
        }
        let device = u16::try_from(device).ok()?;
        let line_bytes = walk.line_bytes()?;
        if length_bytes == 0 && operation != TraceOperation::Flush {
            skip = skip.or(Some(SkipReason::ZeroLength));
        }
        let response_ns = self.has_response.then_some(response_ns);
        let parsed = match skip {
            Some(reason) => Parsed::Skip(reason),
            None => Parsed::Record(TraceRecord {
                time_ns,
                offset_bytes,
                length_bytes,
                response_ns,
                device,
                operation,
                fua,
            }),
        };
        Some((parsed, line_bytes))
    }
}

/// Bytes that are searched for the ends of fields at once.
const CHUNK_BYTES: usize = 64;
/// Behind the begin of a field in them there is room for two words.
const WINDOW_BYTES: usize = CHUNK_BYTES + 16;

/// Goes over the fields of the line at the start of some bytes, which may go on behind it. The ends of all fields are found first and without
/// a branch: what is done with a line then need not wait for the one before, and a branch on the length of a field would be
/// mispredicted, because it differs from line to line.
struct Walk<'a> {
    bytes: &'a [u8],
    delimiter: u8,
    /// Where the window begins that was searched last.
    base: usize,
    window: &'a [u8; WINDOW_BYTES],
    /// Where the next field begins in it.
    at: usize,
    /// A bit for each of its bytes that ends a field and was not come to yet.
    ends: u64,
    /// Where the line ends, if that is in the window.
    line_end: usize,
}

/// Where a field begins and ends in the window.
type Field = (usize, usize);

impl<'a> Walk<'a> {
    #[inline(always)]
    fn new(bytes: &'a [u8], delimiter: u8) -> Option<Self> {
        let window = bytes.first_chunk()?;
        let mut walk = Self { bytes, delimiter, base: 0, window, at: 0, ends: 0, line_end: 0 };
        walk.search();
        Some(walk)
    }

    /// Finds the ends in the window.
    #[inline(always)]
    fn search(&mut self) {
        let newlines = bits_of(self.window, b'\n');
        self.ends = bits_of(self.window, self.delimiter) | newlines;
        if self.delimiter == b' ' {
            self.ends |= bits_of(self.window, b'\t');
        }
        self.line_end = newlines.trailing_zeros() as usize;
    }

    /// The next field. What follows on the end of the line belongs to other lines; [`line_bytes`](Self::line_bytes) finds that out.
    #[inline(always)]
    fn field(&mut self) -> Option<Field> {
        loop {
            if self.ends == 0 {
                self.move_window()?;
            }
            let (start, end) = (self.at, self.ends.trailing_zeros() as usize);
            self.ends &= self.ends.wrapping_sub(1);
            self.at = end + 1;
            // Blanks that part fields stand alone or together, and at both ends of the line.
            if start != end || self.delimiter != b' ' {
                return Some((start, end));
            }
        }
    }

    /// Lets the window begin with the next field; one that is longer is for the careful way.
    #[inline(never)]
    fn move_window(&mut self) -> Option<()> {
        if self.line_end < CHUNK_BYTES {
            return None;
        }
        self.base += self.at;
        self.at = 0;
        self.window = self.bytes.get(self.base..)?.first_chunk()?;
        self.search();
        (self.ends != 0).then_some(())
    }

    /// The field without blanks around it.
    #[inline(always)]
    fn text(&self, (start, end): Field) -> Option<&'a [u8]> {
        Some(trim(self.window.get(start..end)?))
    }

    #[inline(always)]
    fn number(&self, field: Field) -> Option<u64> {
        match self.digits(field) {
            Some(value) => Some(value),
            None => whole_number(self.rare(field)?),
        }
    }

    #[inline(always)]
    fn decimal_ns(&self, field: Field, unit_ns: u64) -> Option<u64> {
        match self.digits(field) {
            Some(value) => value.checked_mul(unit_ns),
            None => decimal_ns(self.rare(field)?, unit_ns),
        }
    }

    #[cold]
    fn rare(&self, field: Field) -> Option<&'a [u8]> {
        self.text(field)
    }

    /// The integer that the field is, if it has 1 to 15 digits and nothing else.
    #[inline(always)]
    fn digits(&self, (start, end): Field) -> Option<u64> {
        let length = end - start;
        if length <= 8 {
            return digits_of(self.word(start, 0), length);
        }
        let upper = digits_of(self.word(start, 0), 8)?;
        let power = POWERS_OF_TEN.get(length - 8)?;
        Some(upper * power + digits_of(self.word(start, 8), length - 8)?)
    }

    /// Eight bytes of the window, the first in the lowest byte.
    #[inline(always)]
    fn word(&self, start: usize, skipped: usize) -> u64 {
        let start = start % CHUNK_BYTES + skipped;
        let mut word = [0; 8];
        word.copy_from_slice(&self.window[start..start + 8]);
        u64::from_le_bytes(word)
    }

    /// How many bytes the line has with its end; `None` if that came before the end of the last field.
    #[inline(always)]
    fn line_bytes(&self) -> Option<usize> {
        if self.line_end < CHUNK_BYTES {
            return (self.at <= self.line_end + 1).then_some(self.base + self.line_end + 1);
        }
        let at = self.base + self.at;
        Some(at + memchr(b'\n', self.bytes.get(at..)?)? + 1)
    }
}

/// A bit for each of the first bytes that is the wanted one, the first byte in the lowest bit.
#[inline(always)]
fn bits_of(bytes: &[u8; WINDOW_BYTES], wanted: u8) -> u64 {
    let (parts, _) = bytes[..CHUNK_BYTES].as_chunks();
    parts.iter().rev().fold(0, |bits, part| bits << 16 | u64::from(sixteen_bits_of(part, wanted)))
}

/// The same for 16 bytes, which are compared at once (docs/decisions/0023-sixteen-bytes-at-once.md).
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[allow(unsafe_code)]
fn sixteen_bits_of(bytes: &[u8; 16], wanted: u8) -> u16 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
    let bytes = u128::from_le_bytes(*bytes);
    // SAFETY: the four instructions take and give registers, and belong to SSE2, which every x86-64 processor has.
    let bits = unsafe {
        let bytes = _mm_set_epi64x((bytes >> 64) as i64, bytes as i64);
        _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(wanted as i8)))
    };
    bits as u16
}

/// The same for 16 bytes.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn sixteen_bits_of(bytes: &[u8; 16], wanted: u8) -> u16 {
    bytes.iter().rev().fold(0, |bits, &byte| bits << 1 | u16::from(byte == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::Csv;
    use proptest::prelude::*;
    use proptest::sample::select;

    const MAPS: [&str; 6] = [
        ColumnMap::LIBCACHESIM,
        ColumnMap::FIO_V1,
        "off=1:bytes,len=2:blocks,op=4,time=5:s,resp=6:ms",
        "len=2:sectors,off=1:sectors,dev=3,fua=4",
        "op=1:names,off=2:bytes,len=3:bytes,time=4:filetime",
        "op=2:r|w|t,off=1:bytes,len=1:bytes",
    ];
    const VALUES: [&str; 24] = [
        "0",
        "1",
        "7",
        "28",
        "2a",
        "0x2A",
        "4096",
        "12345678",
        "5633898368802",
        "18446744073709551615",
        "18446744073709551616",
        "0.25",
        ".5",
        "1.2.3",
        "-1",
        "",
        "R",
        "write",
        "flush",
        "trim",
        "t",
        "x",
        " 12 ",
        "\t3",
    ];

    proptest! {
        #[test]
        fn what_is_read_in_one_walk_is_what_the_careful_way_finds(
            map in select(&MAPS[..]),
            delimiter in select(&b",; \t|x"[..]),
            values in prop::collection::vec(select(&VALUES[..]), 0..8),
            ending in select(&["", " ", "  ", "\t", ",", "\r", "\r\r"][..]),
            next in select(&["", "1", "1,2,3\n", "\n", "123456789012345678901234567890", " "][..]),
        ) {
            let map = ColumnMap::parse(map, None).expect("a map");
            let line = values.join(&char::from(delimiter).to_string()) + ending;
            let bytes = format!("{line}\n{next}{}", "7".repeat(WINDOW_BYTES));
            if let Some((parsed, line_bytes)) = Plan::new(&map, delimiter).and_then(|plan| plan.parse(bytes.as_bytes())) {
                prop_assert_eq!(line_bytes, line.len() + 1);
                let csv = Csv::new(map, delimiter).expect("few columns");
                let careful = csv.parse(line.strip_suffix('\r').unwrap_or(&line).as_bytes());
                prop_assert_eq!(careful.expect("no problem"), parsed, "{:?}", line);
            }
        }
    }

    #[test]
    fn a_line_as_it_should_be_needs_one_walk() {
        let map = ColumnMap::parse(ColumnMap::LIBCACHESIM, None).expect("a map");
        let plan = Plan::new(&map, b',').expect("a part a column");
        let parse = |line: &str| {
            let parsed = plan
                .parse(format!("{line}\n{}", "1,5633898368802,2a,512,7\n".repeat(4)).as_bytes());
            parsed.map(|(parsed, line_bytes)| (parsed, line_bytes - line.len()))
        };
        let mut record =
            TraceRecord::new(5_633_898_368_802_000, TraceOperation::Write, 512 * 42_932_745, 512);
        assert_eq!(parse("1,5633898368802,2a,512,42932745"), Some((Parsed::Record(record), 1)));
        assert_eq!(parse("1,5633898368802,2a,512,42932745\r"), Some((Parsed::Record(record), 1)));
        record.operation = TraceOperation::Read;
        assert_eq!(
            parse("1, 5633898368802 ,0x28,512,42932745,more"),
            Some((Parsed::Record(record), 1))
        );
        let skipped = Parsed::Skip(SkipReason::ScsiOpcode(0x35));
        assert_eq!(parse("1,5633898368802,35,512,42932745"), Some((skipped, 1)));
        assert_eq!(parse("1,5633898368802,2a,512,-1"), None);
        assert_eq!(parse("1,5633898368802,2a,512"), None, "not the columns of the next line");
        assert_eq!(plan.parse(b"1,5633898368802,2a,512,42932745"), None, "more digits may follow");
        let long =
            format!("{}, 5633898368802 ,0x28,512,42932745{}", "x".repeat(50), ",more".repeat(30));
        assert_eq!(parse(&long), Some((Parsed::Record(record), 1)), "more than a window");
        assert_eq!(parse(&"x".repeat(200)), None, "a field longer than a window");
        let twice = ColumnMap::parse("off=1:bytes,len=1:bytes", None).expect("a map");
        assert!(Plan::new(&twice, b',').is_none() && Plan::new(&map, b'1').is_none());
    }
}
