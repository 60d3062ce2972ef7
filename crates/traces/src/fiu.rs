//! FIU traces, as srcmap and I/O deduplication recorded them: `ts pid process lba size op major minor md5`, blanks between.
//!
//! Times are nanoseconds, addresses and sizes blocks of 512 bytes, major and minor number of the disk make the device; the
//! MD5 is that of the content. The name of a process may have blanks, so a line is read from both ends.
//! Source: Koller and Rangaswami, FAST 2010; SNIA IOTTA trace 411 and its readme.

use super::devices::Devices;
use super::record::TraceRecord;
use super::tally::SkipReason;
use super::text::{
    FieldRule, LineProblem, LineResult, NOT_A_NUMBER, Parsed, explain, is_whole, range_is_possible,
    read_or_write, split, whole_number,
};

const SECTOR_BYTES: u64 = 512;
const MD5_DIGITS: usize = 32;

const RULES: [FieldRule; 9] = [
    whole("ts", "an unsigned integer, in ns"),
    whole("pid", "an unsigned integer"),
    FieldRule {
        name: "process",
        accepted: "a name",
        problem: "empty",
        fits: |field| !field.is_empty(),
    },
    whole("lba", "an unsigned integer, in blocks of 512 bytes"),
    whole("size", "an unsigned integer, in blocks of 512 bytes"),
    FieldRule {
        name: "op",
        accepted: "R or W",
        problem: "not an operation",
        fits: |field| read_or_write(field).is_some(),
    },
    whole("major", "an unsigned integer"),
    whole("minor", "an unsigned integer"),
    FieldRule {
        name: "MD5",
        accepted: "32 hexadecimal digits",
        problem: "not an MD5",
        fits: is_md5,
    },
];

const fn whole(name: &'static str, accepted: &'static str) -> FieldRule {
    FieldRule { name, accepted, problem: NOT_A_NUMBER, fits: is_whole }
}

/// State of the reader: the disks seen.
#[derive(Default)]
pub(super) struct Fiu {
    disks: Devices<(u64, u64)>,
}

impl Fiu {
    #[inline]
    pub(super) fn parse(&mut self, line: &[u8]) -> LineResult {
        let Some((disk, mut record)) = record(line) else {
            return Err(problem(line));
        };
        if record.length_bytes == 0 {
            return Ok(Parsed::Skip(SkipReason::ZeroLength));
        }
        match self.disks.number(&disk) {
            Some(device) => record.device = device,
            None => return Err(self.disks.refusal("disks").unwrap_or_else(|| problem(line))),
        }
        Ok(Parsed::Record(record))
    }
}

/// The disk, and the request without it.
#[inline]
fn record(line: &[u8]) -> Option<((u64, u64), TraceRecord)> {
    let mut rest = line.trim_ascii();
    let md5 = take_last(&mut rest)?;
    let minor = whole_number(take_last(&mut rest)?)?;
    let major = whole_number(take_last(&mut rest)?)?;
    let operation = read_or_write(take_last(&mut rest)?)?;
    let sectors = whole_number(take_last(&mut rest)?)?;
    let lba = whole_number(take_last(&mut rest)?)?;
    let mut first = rest.splitn(3, |&byte| is_blank(byte));
    let time_ns = whole_number(first.next()?)?;
    whole_number(first.next()?)?;
    first.next().filter(|process| !process.trim_ascii().is_empty())?;
    let offset_bytes = lba.checked_mul(SECTOR_BYTES)?;
    let length_bytes = sectors.checked_mul(SECTOR_BYTES)?;
    if !is_md5(md5) || !range_is_possible(offset_bytes, length_bytes) {
        return None;
    }
    Some(((major, minor), TraceRecord::new(time_ns, operation, offset_bytes, length_bytes)))
}

/// Takes the last field from what is left of a line.
#[inline]
fn take_last<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let line = rest.trim_ascii_end();
    let start = line.iter().rposition(|&byte| is_blank(byte))? + 1;
    *rest = &line[..start];
    Some(&line[start..])
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_md5(field: &[u8]) -> bool {
    field.len() == MD5_DIGITS && field.iter().all(u8::is_ascii_hexdigit)
}

/// What is wrong with a line. The blanks of a process are no fields.
fn problem(line: &[u8]) -> Box<LineProblem> {
    let fields = split(line, b' ');
    let Some(process) = fields.len().checked_sub(6).filter(|&end| end > 2).map(|end| 2..end) else {
        return explain(line, b' ', &RULES, false);
    };
    let named = fields[process.clone()].join(&b' ');
    let fields = [&fields[..2], &[&named[..]], &fields[process.end..]].concat();
    explain(&fields.join(&b'\t'), b'\t', &RULES, false)
}

/// True when a line has the shape of this format.
pub(super) fn looks_like(line: &[u8]) -> bool {
    record(line).is_some()
}
