//! Generic CSV through a [column map](super::column_map), and SCSI operation codes.

use super::column_map::{ColumnMap, OperationCode, TimeUnit};
use super::csv_plan::Plan;
use super::record::{TraceOperation, TraceRecord};
use super::tally::SkipReason;
use super::text::{
    LineProblem, LineResult, NOT_A_NUMBER, POSSIBLE_RANGE, Parsed, decimal_ns, range_is_possible,
    trim, whole_number,
};

/// Columns beyond this one cannot be mapped.
const COLUMNS_MAX: usize = 64;
/// Unit of a time whose map says none.
pub(super) const UNIT: TimeUnit = TimeUnit::Seconds;

/// A reader of delimited columns.
pub(super) struct Csv {
    map: ColumnMap,
    delimiter: u8,
    /// For lines in which every value is as it should be.
    plan: Option<Plan>,
}

impl Csv {
    /// `Err` holds what is wrong with the map.
    pub(super) fn new(map: ColumnMap, delimiter: u8) -> Result<Self, String> {
        if map.columns > COLUMNS_MAX {
            return Err(format!("unknown column {}; accepted: 1 to {COLUMNS_MAX}", map.columns));
        }
        let plan = Plan::new(&map, delimiter);
        Ok(Self { map, delimiter, plan })
    }

    pub(super) fn has_time(&self) -> bool {
        self.map.time.is_some()
    }

    /// True where lines may be read before their end is known.
    pub(super) fn reads_ahead(&self) -> bool {
        self.plan.is_some()
    }

    /// What the line at the start of `bytes` holds, and how many bytes it has with its end, where it is as it should be.
    #[inline]
    pub(super) fn parse_ahead(&self, bytes: &[u8]) -> Option<(Parsed, usize)> {
        self.plan.as_ref()?.parse(bytes)
    }

    /// What a line holds, or the first of its values that is wrong, in the order in which they are checked.
    #[inline(never)]
    pub(super) fn parse(&self, line: &[u8]) -> LineResult {
        let mut fields: [&[u8]; COLUMNS_MAX] = [&[]; COLUMNS_MAX];
        let found = self.split(line, &mut fields);
        if found < self.map.columns {
            let plural = if found == 1 { "" } else { "s" };
            return Err(Box::new(LineProblem::Line {
                found: format!("the line ends after {found} field{plural}"),
                accepted: format!("at least {} fields, as the column map says", self.map.columns),
            }));
        }
        let fields = Fields(&fields);
        let time_ns = self.time_ns(fields)?;
        let (offset_bytes, length_bytes) = self.range(fields)?;
        let device = self.device(fields)?;
        let response_ns = self.response_ns(fields)?;
        let operation = match &self.map.operation {
            None => TraceOperation::Read,
            Some((column, code)) => match operation(fields.at(*column), code) {
                Ok(operation) => operation,
                Err(Refused::Skip(reason)) => return Ok(Parsed::Skip(reason)),
                Err(Refused::Unknown(accepted)) => {
                    return Err(fields.problem(
                        *column,
                        "operation",
                        "not an operation",
                        &accepted,
                    ));
                }
            },
        };
        let fua = self.fua(fields)?;
        if length_bytes == 0 && operation != TraceOperation::Flush {
            return Ok(Parsed::Skip(SkipReason::ZeroLength));
        }
        let mut record = TraceRecord::new(time_ns, operation, offset_bytes, length_bytes);
        record.device = device;
        record.response_ns = response_ns;
        record.fua = fua;
        Ok(Parsed::Record(record))
    }

    #[inline]
    fn time_ns(&self, fields: Fields<'_>) -> Result<u64, Box<LineProblem>> {
        let Some((column, unit)) = self.map.time else {
            return Ok(0);
        };
        decimal_ns(fields.at(column), unit.unwrap_or(UNIT).nanoseconds()).ok_or_else(|| {
            fields.problem(
                column,
                "time",
                NOT_A_NUMBER,
                "an unsigned decimal number that fits 64 bits in ns",
            )
        })
    }

    /// Offset and length in bytes.
    #[inline]
    fn range(&self, fields: Fields<'_>) -> Result<(u64, u64), Box<LineProblem>> {
        let bytes = |(column, unit): (usize, u64), name: &str| -> Result<_, Box<LineProblem>> {
            let number = whole_number(fields.at(column));
            let number = number
                .ok_or_else(|| fields.problem(column, name, NOT_A_NUMBER, "an unsigned integer"))?;
            Ok(number.checked_mul(unit))
        };
        let offset = bytes(self.map.offset, "offset")?;
        let length = bytes(self.map.length, "length")?;
        match (offset, length) {
            (Some(offset), Some(length)) if range_is_possible(offset, length) => {
                Ok((offset, length))
            }
            _ => {
                let column = self.map.offset.0;
                Err(fields.problem(column, "offset", "too large", POSSIBLE_RANGE))
            }
        }
    }

    #[inline]
    fn device(&self, fields: Fields<'_>) -> Result<u16, Box<LineProblem>> {
        let Some(column) = self.map.device else {
            return Ok(0);
        };
        let device = whole_number(fields.at(column));
        let device = device.and_then(|device| u16::try_from(device).ok());
        device.ok_or_else(|| {
            fields.problem(column, "device", NOT_A_NUMBER, "an integer from 0 to 65535")
        })
    }

    #[inline]
    fn response_ns(&self, fields: Fields<'_>) -> Result<Option<u64>, Box<LineProblem>> {
        let Some((column, unit)) = self.map.response else {
            return Ok(None);
        };
        let field = fields.at(column);
        if field.is_empty() {
            return Ok(None);
        }
        let response = decimal_ns(field, unit.unwrap_or(UNIT).nanoseconds()).ok_or_else(|| {
            fields.problem(
                column,
                "response",
                NOT_A_NUMBER,
                "an unsigned decimal number, or nothing",
            )
        });
        response.map(Some)
    }

    #[inline]
    fn fua(&self, fields: Fields<'_>) -> Result<bool, Box<LineProblem>> {
        let Some(column) = self.map.fua else {
            return Ok(false);
        };
        match fields.at(column) {
            b"0" => Ok(false),
            b"1" => Ok(true),
            _ => Err(fields.problem(column, "fua", "no mark of forced unit access", "0 or 1")),
        }
    }

    /// Cuts the columns the map needs; returns how many were found, at most those needed.
    fn split<'a>(&self, line: &'a [u8], fields: &mut [&'a [u8]; COLUMNS_MAX]) -> usize {
        let wanted = self.map.columns;
        if self.delimiter == b' ' {
            let parts =
                line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|part| !part.is_empty());
            return parts
                .take(wanted)
                .enumerate()
                .map(|(index, part)| fields[index] = part)
                .count();
        }
        let mut rest = line;
        for (index, field) in fields.iter_mut().enumerate().take(wanted) {
            let Some(at) = rest.iter().position(|&byte| byte == self.delimiter) else {
                *field = rest;
                return index + 1;
            };
            *field = &rest[..at];
            rest = &rest[at + 1..];
        }
        wanted
    }
}

/// The columns of a line.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [&'a [u8]; COLUMNS_MAX]);

impl<'a> Fields<'a> {
    #[inline]
    fn at(self, column: usize) -> &'a [u8] {
        trim(self.0[column])
    }

    fn problem(
        self,
        column: usize,
        name: &str,
        problem: &'static str,
        accepted: &str,
    ) -> Box<LineProblem> {
        Box::new(LineProblem::Field {
            field: column + 1,
            name: name.to_owned(),
            value: self.at(column).to_vec(),
            problem,
            accepted: accepted.to_owned(),
        })
    }
}

/// Why a value is no operation of a request.
#[derive(Debug, Clone)]
pub(super) enum Refused {
    /// It is one that moves no data.
    Skip(SkipReason),
    /// It is none that the map knows; what would be accepted.
    Unknown(String),
}

#[inline]
pub(super) fn operation(field: &[u8], code: &OperationCode) -> Result<TraceOperation, Refused> {
    match code {
        OperationCode::Scsi => {
            let code = scsi_code(field).ok_or_else(|| {
                Refused::Unknown(
                    "a SCSI operation code of one or two hexadecimal digits".to_owned(),
                )
            })?;
            scsi_operation(code).ok_or(Refused::Skip(SkipReason::ScsiOpcode(code)))
        }
        OperationCode::Names => TraceOperation::of_name(field).ok_or_else(|| {
            let names = TraceOperation::ALL.map(TraceOperation::name);
            Refused::Unknown(names.join(", "))
        }),
        OperationCode::Words => {
            let is = |word: &[u8]| field.eq_ignore_ascii_case(word);
            if is(b"r") || is(b"read") {
                Ok(TraceOperation::Read)
            } else if is(b"w") || is(b"write") {
                Ok(TraceOperation::Write)
            } else {
                Err(Refused::Unknown("R, W, read or write".to_owned()))
            }
        }
        OperationCode::Tokens { read, write, trim } => {
            if field.eq_ignore_ascii_case(read) {
                Ok(TraceOperation::Read)
            } else if field.eq_ignore_ascii_case(write) {
                Ok(TraceOperation::Write)
            } else if trim.as_ref().is_some_and(|trim| field.eq_ignore_ascii_case(trim)) {
                Ok(TraceOperation::Trim)
            } else {
                let word = |token: &[u8]| String::from_utf8_lossy(token).into_owned();
                let trim = trim
                    .as_ref()
                    .map(|trim| format!(", {} (trim)", word(trim)))
                    .unwrap_or_default();
                Err(Refused::Unknown(format!(
                    "{} (read), {} (write){trim}",
                    word(read),
                    word(write)
                )))
            }
        }
    }
}

/// One or two hexadecimal digits, with or without `0x`.
#[inline]
pub(super) fn scsi_code(field: &[u8]) -> Option<u8> {
    let digit = |byte: u8| {
        // Letters follow the digits, nine further on in their low half.
        let value = (byte & 0x0f) + 9 * (byte >> 6);
        byte.is_ascii_hexdigit().then_some(value)
    };
    match field.strip_prefix(b"0x").unwrap_or(field) {
        [low] => digit(*low),
        [high, low] => Some((digit(*high)? << 4) | digit(*low)?),
        _ => None,
    }
}

/// Reads and writes of 6, 10, 12 and 16 byte commands, write and verify, write same; everything else moves no host data.
#[inline]
pub(super) fn scsi_operation(code: u8) -> Option<TraceOperation> {
    SCSI_OPERATIONS[usize::from(code)]
}

/// By operation code. A look-up, because no branch predicts which operation is next.
static SCSI_OPERATIONS: [Option<TraceOperation>; 256] = {
    let mut operations = [None; 256];
    let mut code = 0;
    while code < operations.len() {
        operations[code] = match code {
            0x08 | 0x28 | 0xa8 | 0x88 => Some(TraceOperation::Read),
            0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e | 0x41 | 0x93 => {
                Some(TraceOperation::Write)
            }
            _ => None,
        };
        code += 1;
    }
    operations
};
