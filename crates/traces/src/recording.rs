//! Imbrex's own recording format, `.imbrex`: the bytes, and the reader.
//!
//! `docs/formats/recording.md` draws the format byte by byte; the constants here are the ones it names.

use super::TraceError;
use super::input::Input;
use super::record::{SourceKind, TraceOperation, TraceRecord};
use super::tally::{SkipReason, Tally};
use crc_fast::CrcAlgorithm::Crc32Iscsi;
use crc_fast::Digest;

/// First bytes of every recording. The first byte is not ASCII and the last is a newline, so that neither a text file nor
/// a recording damaged by a text-mode copy is taken for a good one.
pub(super) const MAGIC: [u8; 8] = *b"\x89IMBREX\n";
/// The version written and read here.
pub const RECORDING_VERSION: u16 = 1;

/// Bytes of the header before the name.
pub(super) const HEADER_FIXED_BYTES: usize = 24;
/// Longest name and longest description, bytes.
pub(super) const TEXT_BYTES_MAX: usize = 4096;

/// Header flag: the records have no times.
pub(super) const FLAG_NO_TIMES: u8 = 1;

/// Tag bits 0 to 2: the operation.
pub(super) const TAG_OPERATION: u8 = 0b0000_0111;
/// Tag bit 3: forced unit access.
pub(super) const TAG_FUA: u8 = 1 << 3;
/// Tag bit 4: the request starts where the previous one ended; no offset follows.
pub(super) const TAG_SEQUENTIAL: u8 = 1 << 4;
/// Tag bit 5: the request is as long as the previous one; no length follows.
pub(super) const TAG_SAME_LENGTH: u8 = 1 << 5;
/// Tag bit 6: offset and length count 512 bytes instead of one.
pub(super) const TAG_SECTORS: u8 = 1 << 6;
/// Tag bit 7: the device differs from the previous one and follows.
pub(super) const TAG_DEVICE: u8 = 1 << 7;
/// In place of a tag: the trailer.
pub(super) const TRAILER: u8 = 0xff;
/// Tag, record count, checksum.
const TRAILER_BYTES: usize = 13;
/// Longest record: tag, device, time, offset, length.
const RECORD_BYTES_MAX: usize = 1 + 3 + 10 + 10 + 10;

/// What a recording says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingHeader {
    /// Where the requests come from.
    pub kind: SourceKind,
    /// Name of the workload.
    pub name: String,
    /// How it was made, free text.
    pub description: String,
    /// Size of the recorded device, bytes; 0 if not known.
    pub device_bytes: u64,
    /// False if the records have no times.
    pub has_times: bool,
}

/// What offsets and lengths are coded against.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Previous {
    pub time_us: u64,
    /// One past the last byte of the previous request.
    pub end_bytes: u64,
    pub length_bytes: u64,
    pub device: u16,
}

pub(super) fn operation_code(operation: TraceOperation) -> u8 {
    match operation {
        TraceOperation::Read => 0,
        TraceOperation::Write => 1,
        TraceOperation::WriteZeroes => 2,
        TraceOperation::Trim => 3,
        TraceOperation::Flush => 4,
    }
}

fn operation_of(code: u8) -> Option<TraceOperation> {
    Some(match code {
        0 => TraceOperation::Read,
        1 => TraceOperation::Write,
        2 => TraceOperation::WriteZeroes,
        3 => TraceOperation::Trim,
        4 => TraceOperation::Flush,
        _ => return None,
    })
}

/// True when the bytes start as a recording does.
pub(super) fn looks_like(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Reads the records of one recording.
pub(super) struct Recording {
    input: Input,
    pub(super) header: RecordingHeader,
    previous: Previous,
    records: u64,
    crc: Box<Digest>,
    accept_unfinished: bool,
    finished: bool,
}

impl Recording {
    pub(super) fn new(mut input: Input, accept_unfinished: bool) -> Result<Self, TraceError> {
        let (header, length) = read_header(input.path(), input.bytes())?;
        input.consume(length);
        Ok(Self {
            input,
            header,
            previous: Previous::default(),
            records: 0,
            crc: Box::new(Digest::new(Crc32Iscsi)),
            accept_unfinished,
            finished: false,
        })
    }

    pub(super) fn sha256(&self) -> Option<String> {
        self.input.sha256()
    }

    fn fail(&self, reason: impl Into<String>) -> TraceError {
        TraceError::Recording {
            path: self.input.path().to_owned(),
            records: self.records,
            reason: reason.into(),
        }
    }

    /// Appends up to `wanted` records; fewer only at the end.
    pub(super) fn read(
        &mut self,
        wanted: usize,
        tally: &mut Tally,
        batch: &mut Vec<TraceRecord>,
    ) -> Result<(), TraceError> {
        let wanted = batch.len() + wanted;
        while batch.len() < wanted && !self.finished {
            while self.input.bytes().len() < RECORD_BYTES_MAX.max(TRAILER_BYTES)
                && self.input.fill(self.records)?
            {}
            let bytes = self.input.bytes();
            let (mut numbers, mut previous) = (Numbers(bytes), self.previous);
            let before = batch.len();
            let stop = loop {
                if batch.len() == wanted {
                    break None;
                }
                match decode(&mut numbers, &mut previous) {
                    Ok(record) => batch.push(tally.accept(record)),
                    Err(stop) => break Some(stop),
                }
            };
            self.previous = previous;
            self.records += (batch.len() - before) as u64;
            if let Some(Stop::Damaged(damage)) = stop {
                return Err(self.fail(damage.reason()));
            }
            // The checksum runs over whole stretches: a call for each record of six bytes would cost more than decoding.
            let used = bytes.len() - numbers.0.len();
            self.crc.update(&bytes[..used]);
            self.input.consume(used);
            if let Some(Stop::Trailer) = stop {
                self.check_trailer()?;
            } else if self.input.at_end() && batch.len() < wanted {
                self.unfinished(tally)?;
            }
        }
        Ok(())
    }

    fn check_trailer(&mut self) -> Result<(), TraceError> {
        while self.input.bytes().len() <= TRAILER_BYTES && self.input.fill(self.records)? {}
        let bytes = self.input.bytes();
        if bytes.len() < TRAILER_BYTES {
            return Err(self.fail(
                "the recording is truncated inside its trailer; accepted: 13 bytes of trailer",
            ));
        }
        let count = u64::from_le_bytes(bytes[1..9].try_into().expect("eight bytes"));
        let stored = u32::from_le_bytes(bytes[9..13].try_into().expect("four bytes"));
        self.crc.update(&bytes[..9]);
        let crc = self.crc.finalize() as u32;
        if count != self.records {
            return Err(self.fail(format!(
                "the trailer counts {count} records; accepted: the number of records read"
            )));
        }
        if stored != crc {
            return Err(self.fail(format!(
                "the trailer's checksum is {stored:08x}; accepted: {crc:08x}, that of the records"
            )));
        }
        if bytes.len() > TRAILER_BYTES {
            return Err(self.fail("bytes follow the trailer; accepted: the end of the file"));
        }
        self.input.consume(TRAILER_BYTES);
        self.finished = true;
        Ok(())
    }

    fn unfinished(&mut self, tally: &mut Tally) -> Result<(), TraceError> {
        if !self.accept_unfinished {
            return Err(self.fail("the recording is truncated: it ends without a trailer; accepted: a finished recording"));
        }
        tally.counts.skipped.count(SkipReason::NoTrailer);
        self.finished = true;
        Ok(())
    }
}

fn read_header(path: &str, bytes: &[u8]) -> Result<(RecordingHeader, usize), TraceError> {
    let fail = |reason: String| TraceError::Recording { path: path.to_owned(), records: 0, reason };
    let truncated = || {
        fail("the recording is truncated inside its header; accepted: a whole header".to_owned())
    };
    if bytes.len() >= 10 {
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if version != RECORDING_VERSION {
            return Err(fail(format!(
                "the recording has version {version}; accepted: {RECORDING_VERSION}"
            )));
        }
    }
    if bytes.len() < HEADER_FIXED_BYTES {
        return Err(truncated());
    }
    let name_bytes = usize::from(u16::from_le_bytes([bytes[20], bytes[21]]));
    let description_bytes = usize::from(u16::from_le_bytes([bytes[22], bytes[23]]));
    if name_bytes > TEXT_BYTES_MAX || description_bytes > TEXT_BYTES_MAX {
        return Err(fail(format!(
            "the header has a name of {name_bytes} and a description of {description_bytes} bytes; accepted: up to \
             {TEXT_BYTES_MAX}"
        )));
    }
    let text_end = HEADER_FIXED_BYTES + name_bytes + description_bytes;
    let Some(stored) = bytes.get(text_end..text_end + 4) else {
        return Err(truncated());
    };
    let stored = u32::from_le_bytes(stored.try_into().expect("four bytes"));
    let crc = crc_fast::crc32_iscsi(&bytes[..text_end]);
    if stored != crc {
        return Err(fail(format!(
            "the header's checksum is {stored:08x}; accepted: {crc:08x}, that of the header"
        )));
    }
    let kind = match bytes[10] {
        0 => SourceKind::Captured,
        1 => SourceKind::Recorded,
        2 => SourceKind::Synthetic,
        other => {
            return Err(fail(format!("the header has workload kind {other}; accepted: 0, 1 or 2")));
        }
    };
    if bytes[11] & !FLAG_NO_TIMES != 0 {
        return Err(fail(format!(
            "the header has flags {:#04x}; accepted: 0x00 or 0x01",
            bytes[11]
        )));
    }
    let text = |range: std::ops::Range<usize>| {
        String::from_utf8(bytes[range].to_vec())
            .map_err(|_| fail("the header's text is not UTF-8; accepted: UTF-8".to_owned()))
    };
    let header = RecordingHeader {
        kind,
        name: text(HEADER_FIXED_BYTES..HEADER_FIXED_BYTES + name_bytes)?,
        description: text(HEADER_FIXED_BYTES + name_bytes..text_end)?,
        device_bytes: u64::from_le_bytes(bytes[12..20].try_into().expect("eight bytes")),
        has_times: bytes[11] & FLAG_NO_TIMES == 0,
    };
    Ok((header, text_end + 4))
}

/// Why there is no next record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    NeedsMore,
    Trailer,
    Damaged(Damage),
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    Operation(u8),
    Device(u64),
    /// The number of this name has more than 64 bits.
    TooWide(&'static str),
    TooLate,
    NoLength,
    Beyond,
}

impl Damage {
    /// What is wrong and what is accepted.
    #[cold]
    fn reason(self) -> String {
        match self {
            Damage::Operation(code) => {
                format!("a record has operation {code}; accepted: 0 to 4")
            }
            Damage::Device(device) => {
                format!("a record has device {device}; accepted: 0 to 65535")
            }
            Damage::TooWide(name) => {
                format!("a record's {name} has more than 64 bits; accepted: 64 bits")
            }
            Damage::TooLate => {
                "a record's time overflows; accepted: times within 500 years".to_owned()
            }
            Damage::NoLength => "a record has length 0; accepted: 1 byte or more".to_owned(),
            Damage::Beyond => {
                format!("a record's range overflows; accepted: {}", super::text::POSSIBLE_RANGE)
            }
        }
    }
}

/// The numbers of records, one after another: the bytes that are left.
#[derive(Clone, Copy)]
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    /// Takes the next number.
    #[inline(always)]
    fn next(&mut self, name: &'static str) -> Result<u64, Stop> {
        let joined = |low: u64, byte: u8, index: u32| low | u64::from(byte & 0x7f) << (7 * index);
        // Most are short.
        let (value, rest) = match *self.0 {
            [a @ ..0x80, ref rest @ ..] => (u64::from(a), rest),
            [a, b @ ..0x80, ref rest @ ..] => (joined(joined(0, a, 0), b, 1), rest),
            [a, b, c @ ..0x80, ref rest @ ..] => {
                (joined(joined(joined(0, a, 0), b, 1), c, 2), rest)
            }
            ref bytes => {
                let (value, length) = varint(bytes, name)?;
                (value, &bytes[length..])
            }
        };
        self.0 = rest;
        Ok(value)
    }
}

/// Takes the next record; `numbers` and `previous` move on only with a whole one.
#[inline(always)]
fn decode(numbers: &mut Numbers<'_>, previous: &mut Previous) -> Result<TraceRecord, Stop> {
    let tag = match *numbers.0 {
        [] => return Err(Stop::NeedsMore),
        [TRAILER, ..] => return Err(Stop::Trailer),
        [tag, ..] => tag,
    };
    let mut left = Numbers(&numbers.0[1..]);
    let mut next = *previous;
    let code = tag & TAG_OPERATION;
    let operation = operation_of(code).ok_or(Stop::Damaged(Damage::Operation(code)))?;
    if tag & TAG_DEVICE != 0 {
        let device = left.next("device")?;
        next.device = u16::try_from(device).map_err(|_| Stop::Damaged(Damage::Device(device)))?;
    }
    let too_late = Stop::Damaged(Damage::TooLate);
    next.time_us = next.time_us.checked_add(left.next("time")?).ok_or(too_late)?;
    let time_ns = next.time_us.checked_mul(1000).ok_or(too_late)?;
    let mut record = TraceRecord::new(time_ns, operation, 0, 0);
    if operation != TraceOperation::Flush {
        decode_range(tag, &mut left, &mut next, &mut record)?;
    }
    record.fua = tag & TAG_FUA != 0;
    record.device = next.device;
    (*numbers, *previous) = (left, next);
    Ok(record)
}

/// Decodes where a record goes and how far.
#[inline(always)]
fn decode_range(
    tag: u8,
    numbers: &mut Numbers<'_>,
    next: &mut Previous,
    record: &mut TraceRecord,
) -> Result<(), Stop> {
    let unit = if tag & TAG_SECTORS != 0 { 512 } else { 1 };
    let beyond = Stop::Damaged(Damage::Beyond);
    record.offset_bytes = next.end_bytes;
    if tag & TAG_SEQUENTIAL == 0 {
        let coded = numbers.next("offset")?;
        let distance = (coded >> 1) as i64 ^ -((coded & 1) as i64);
        let distance = distance.checked_mul(unit).ok_or(beyond)?;
        record.offset_bytes = next.end_bytes.checked_add_signed(distance).ok_or(beyond)?;
    }
    if tag & TAG_SAME_LENGTH == 0 {
        next.length_bytes = numbers.next("length")?.checked_mul(unit as u64).ok_or(beyond)?;
    }
    record.length_bytes = next.length_bytes;
    if record.length_bytes == 0 {
        return Err(Stop::Damaged(Damage::NoLength));
    }
    if !super::text::range_is_possible(record.offset_bytes, record.length_bytes) {
        return Err(beyond);
    }
    next.end_bytes = record.offset_bytes + record.length_bytes;
    Ok(())
}

/// The little-endian base-128 number of this name at the start of `bytes`, and its length.
fn varint(bytes: &[u8], name: &'static str) -> Result<(u64, usize), Stop> {
    let too_wide = Stop::Damaged(Damage::TooWide(name));
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().take(10).enumerate() {
        if index == 9 && byte > 1 {
            return Err(too_wide);
        }
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Ok((value, index + 1));
        }
    }
    Err(if bytes.len() >= 10 { too_wide } else { Stop::NeedsMore })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of every length, as the format has them.
    fn coded(value: u64) -> Vec<u8> {
        let groups = (64 - value.leading_zeros()).div_ceil(7).max(1);
        let group = |index: u32| {
            let more = if index + 1 < groups { 0x80 } else { 0 };
            (value >> (7 * index)) as u8 & 0x7f | more
        };
        (0..groups).map(group).collect()
    }

    #[test]
    fn numbers_of_every_length_are_read_whole_or_not_at_all() {
        let borders = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, u64::MAX >> bit]);
        for value in borders {
            let bytes = coded(value);
            for behind in [&[][..], &[0x00], &[0xff; 12]] {
                let all = [&bytes[..], behind].concat();
                let mut numbers = Numbers(&all);
                assert_eq!(numbers.next("time"), Ok(value));
                assert_eq!(numbers.0, behind, "{value}");
                assert_eq!(varint(&all, "time"), Ok((value, bytes.len())));
            }
            for cut in 0..bytes.len() {
                let mut numbers = Numbers(&bytes[..cut]);
                assert_eq!(numbers.next("time"), Err(Stop::NeedsMore));
                assert_eq!(numbers.0.len(), cut);
            }
        }
        let too_wide = Err(Stop::Damaged(Damage::TooWide("length")));
        let (last_too_large, too_long) = ([[0xff; 9], [2; 9]].concat(), [0x80; 10]);
        assert_eq!(Numbers(&last_too_large).next("length"), too_wide);
        assert_eq!(Numbers(&too_long).next("length"), too_wide);
        assert_eq!(Numbers(&too_long[..9]).next("length"), Err(Stop::NeedsMore));
    }

    #[test]
    fn a_record_that_is_cut_moves_nothing_on() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 33
        };
        let (mut before, mut whole) = (Previous::default(), 0);
        for _ in 0..2000 {
            let tag = random() as u8;
            let wide = random() % 5;
            let mut number = |bits: u64| coded(random() >> (31 - bits.min(31)));
            let numbers = [number(16), number(7 * wide), number(7 * wide), number(20)].concat();
            let bytes = [&[tag][..], &numbers].concat();
            let (mut left, mut next) = (Numbers(&bytes), before);
            let decoded = decode(&mut left, &mut next);
            let length = bytes.len() - left.0.len();
            if decoded.is_err() {
                assert_eq!((length, next), (0, before));
                continue;
            }
            for cut in 0..length {
                let (mut left, mut next) = (Numbers(&bytes[..cut]), before);
                let stop = decode(&mut left, &mut next).expect_err("it is cut");
                assert_eq!((stop, left.0.len(), next), (Stop::NeedsMore, cut, before));
            }
            let (mut alone, mut same) = (Numbers(&bytes[..length]), before);
            assert_eq!(decode(&mut alone, &mut same), decoded, "nothing follows");
            assert_eq!((alone.0.len(), same), (0, next));
            (before, whole) = (next, whole + 1);
        }
        assert!(whole > 500, "{whole} records");
    }
}
