//! SRT, the traces that HP Laboratories made of their machines (cello, snake, hplajw): a text header, then binary records.
//!
//! The header is text that names the disks, and ends with a form feed. Records follow, big-endian words of 4 bytes: size of the
//! record in bytes, version and kind (2 bytes each), seconds and microseconds, start and end of the service in microseconds
//! since that time, length in bytes, sector on the disk, device, driver, cylinder, flags, origin; version 4 has a length of the
//! queue, a suspect record has one word more. A sector is as long as the header says of its disk, 256 bytes on many.
//! Source: the structures that DiskSim took from HP's SRTlite, and `hplajw`, where every request lies on its disk.

use super::TraceError;
use super::binary_records::{RecordProblem, u32_be_at};
use super::devices::Devices;
use super::input::Input;
use super::record::{TraceOperation, TraceRecord};
use super::tally::SkipReason;
use super::text::{POSSIBLE_RANGE, Parsed, range_is_possible};

/// First bytes of the header.
const MAGIC: &[u8] = b"$$TR_IOREC-";
/// Last byte of the header.
const FORM_FEED: u8 = 0x0c;

/// Words of a record that every version has.
const WORDS: usize = 13;
/// Versions of records whose layout is known.
const VERSION_MAX: u32 = 4;
/// The first version with the length of the queue.
const QUEUE_VERSION: u32 = 4;
/// Size, version and kind.
pub(super) const HEAD_BYTES: usize = 8;

/// Kinds of records: a request, and one that the tracer doubts.
const REQUEST: u32 = 1;
const SUSPECT: u32 = 4;

/// The flag of a read; without it a request is a write.
const FLAG_READ: u32 = 1;

/// True of the first bytes of a trace.
pub(super) fn looks_like(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// A reader of records.
pub(super) struct Srt {
    header_bytes: usize,
    /// Bytes of a sector of each disk of the header.
    sectors: Vec<(u32, u64)>,
    disks: Devices<u32>,
}

impl Srt {
    /// Reads the header at the start of the input.
    pub(super) fn of(input: &Input) -> Result<Self, TraceError> {
        let fail = |reason: &str| TraceError::Format {
            path: input.path().to_owned(),
            reason: reason.to_owned(),
        };
        let bytes = input.bytes();
        if !looks_like(bytes) {
            return Err(fail(
                "the file does not start with $$TR_IOREC-; accepted: a trace in HP's SRT format",
            ));
        }
        let end = memchr::memchr(FORM_FEED, bytes).ok_or_else(|| {
            fail("the header of SRT has no end within the first 128 KiB; accepted: a form feed behind its text")
        })?;
        let sectors = sector_sizes(&bytes[..end]);
        if sectors.is_empty() {
            return Err(fail(
                "the header of SRT names no disk with a sectorsize; accepted: `disks = { NUMBER -> { sectorsize = BYTES } }`",
            ));
        }
        Ok(Self { header_bytes: end + 1, sectors, disks: Devices::default() })
    }

    pub(super) fn header_bytes(&self) -> usize {
        self.header_bytes
    }

    /// Bytes of the record that starts with these; of a record of no known size only those of its head, so that
    /// [`parse`](Self::parse) can refuse it.
    pub(super) fn record_bytes(head: &[u8]) -> usize {
        let is_whole = head.len() >= HEAD_BYTES;
        let size = if is_whole { u32_be_at(head, 0) as usize } else { HEAD_BYTES };
        if (4 * WORDS..=4 * (WORDS + 2)).contains(&size) { size } else { HEAD_BYTES }
    }

    #[inline]
    pub(super) fn parse(&mut self, record: &[u8]) -> Result<Parsed, Box<RecordProblem>> {
        let word = |number: usize| u32_be_at(record, 4 * number);
        let (version, kind) = (word(1) >> 16, word(1) & 0xffff);
        check_head(word(0), version, kind)?;
        if kind == SUSPECT {
            return Ok(Parsed::Skip(SkipReason::Suspect));
        }
        let (seconds, microseconds, end_us) = (word(2), word(3), word(5));
        let (length_bytes, sector, device, flags) = (word(6), word(7), word(8), word(11));
        if microseconds >= 1_000_000 {
            return Err(RecordProblem::new(
                format!("the time has {microseconds} us beside its seconds"),
                "0 to 999999",
            ));
        }
        if length_bytes == 0 {
            return Ok(Parsed::Skip(SkipReason::ZeroLength));
        }
        let length_bytes = u64::from(length_bytes);
        let offset_bytes = u64::from(sector) * self.sector_bytes(device)?;
        if !range_is_possible(offset_bytes, length_bytes) {
            return Err(RecordProblem::new(format!("the sector is {sector}"), POSSIBLE_RANGE));
        }
        let operation = match flags & FLAG_READ {
            0 => TraceOperation::Write,
            _ => TraceOperation::Read,
        };
        let time_ns = u64::from(seconds) * 1_000_000_000 + u64::from(microseconds) * 1000;
        let mut record = TraceRecord::new(time_ns, operation, offset_bytes, length_bytes);
        record.response_ns = Some(u64::from(end_us) * 1000);
        // The lowest byte is the section of the disk, the highest the driver, which may be another for the same disk.
        record.device =
            self.disks.number(&(device >> 8 & 0xffff)).expect("65,536 disks have numbers");
        Ok(Parsed::Record(record))
    }

    /// Bytes of a sector of the disk with this device number.
    #[inline]
    fn sector_bytes(&self, device: u32) -> Result<u64, Box<RecordProblem>> {
        let disk = device >> 8 & 0xff;
        let known = self.sectors.iter().find(|(number, _)| *number == disk);
        known.map(|(_, bytes)| *bytes).ok_or_else(|| {
            let numbers: Vec<String> =
                self.sectors.iter().map(|(number, _)| number.to_string()).collect();
            RecordProblem::new(
                format!("the device is 0x{device:08x}, on disk {disk}"),
                &format!("a disk of the header: {}", numbers.join(", ")),
            )
        })
    }
}

/// Whether size, version and kind fit one another.
#[inline]
fn check_head(size: u32, version: u32, kind: u32) -> Result<(), Box<RecordProblem>> {
    if version == 0 || version > VERSION_MAX {
        return Err(RecordProblem::new(
            format!("the record has version {version}"),
            "version 1 to 4, whose layout is known",
        ));
    }
    if kind != REQUEST && kind != SUSPECT {
        return Err(RecordProblem::new(
            format!("the record has kind {kind}"),
            "kind 1, a request, or 4, a suspect one",
        ));
    }
    let more = usize::from(version >= QUEUE_VERSION) + usize::from(kind == SUSPECT);
    let expected = 4 * (WORDS + more);
    if size as usize != expected {
        return Err(RecordProblem::new(
            format!("the record has {size} bytes"),
            &format!("{expected} bytes in version {version} and kind {kind}"),
        ));
    }
    Ok(())
}

/// The sector sizes in `disks = { NUMBER -> { ... sectorsize = BYTES, ... }, ... }`, by the number of the disk.
fn sector_sizes(header: &[u8]) -> Vec<(u32, u64)> {
    const SECTOR_BYTES_MAX: u64 = 1 << 16;
    let mut sizes = Vec::new();
    let mut disk = None;
    let mut depth = 0;
    let mut last = [&b""[..]; 2];
    for token in Tokens(header) {
        match (token, last) {
            (b"{", [number, b"->"]) if depth == 1 => disk = parsed(number),
            (size, [b"sectorsize", b"="]) if depth == 2 => {
                let size = parsed(size).filter(|size| (1..=SECTOR_BYTES_MAX).contains(size));
                sizes.extend(disk.take().zip(size));
            }
            _ => {}
        }
        match token {
            b"{" => depth += 1,
            b"}" => depth -= 1,
            _ => {}
        }
        last = [last[1], token];
    }
    sizes
}

fn parsed<T: std::str::FromStr>(token: &[u8]) -> Option<T> {
    std::str::from_utf8(token).ok()?.parse().ok()
}

/// The words and braces of a header; what stands in quotes is one word.
struct Tokens<'a>(&'a [u8]);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let is_blank = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b';' | 0);
        let start = self.0.iter().position(|byte| !is_blank(byte))?;
        let rest = &self.0[start..];
        let length = match rest[0] {
            b'{' | b'}' | b'=' => 1,
            b'"' => memchr::memchr(b'"', &rest[1..]).map_or(rest.len(), |end| end + 2),
            _ => {
                let ends = |byte: &u8| is_blank(byte) || matches!(byte, b'{' | b'}' | b'=');
                rest.iter().position(ends).unwrap_or(rest.len())
            }
        };
        self.0 = &rest[length..];
        Some(&rest[..length])
    }
}
