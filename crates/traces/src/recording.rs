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
#[derive(Debug, Clone, Copy, Default)]
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

enum Decoded {
    Record(TraceRecord, usize),
    Trailer,
    NeedsMore,
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
            let mut used = 0;
            let mut trailer = false;
            while batch.len() < wanted {
                match decode(&self.input.bytes()[used..], &mut self.previous) {
                    Ok(Decoded::Record(record, length)) => {
                        used += length;
                        self.records += 1;
                        batch.push(tally.accept(record));
                    }
                    Ok(Decoded::Trailer) => {
                        trailer = true;
                        break;
                    }
                    Ok(Decoded::NeedsMore) => break,
                    Err(reason) => return Err(self.fail(reason)),
                }
            }
            // The checksum runs over whole stretches: a call for each record of six bytes would cost more than decoding.
            self.crc.update(&self.input.bytes()[..used]);
            self.input.consume(used);
            if trailer {
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

/// Decodes the record at the start of `bytes`; `previous` moves on only with a whole record.
fn decode(bytes: &[u8], previous: &mut Previous) -> Result<Decoded, String> {
    match bytes.first() {
        None => Ok(Decoded::NeedsMore),
        Some(&TRAILER) => Ok(Decoded::Trailer),
        Some(&tag) => match decode_record(tag, bytes, previous) {
            Ok(record) => Ok(record),
            Err(Stop::NeedsMore) => Ok(Decoded::NeedsMore),
            Err(Stop::Damaged(reason)) => Err(reason),
        },
    }
}

/// Why a record cannot be decoded.
enum Stop {
    NeedsMore,
    /// What is wrong and what is accepted.
    Damaged(String),
}

/// The numbers of a record, one after another.
struct Numbers<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Numbers<'_> {
    #[inline]
    fn next(&mut self, name: &str) -> Result<u64, Stop> {
        match varint(&self.bytes[self.at..]) {
            Ok(Some((value, length))) => {
                self.at += length;
                Ok(value)
            }
            Ok(None) => Err(Stop::NeedsMore),
            Err(()) => Err(Stop::Damaged(format!(
                "a record's {name} has more than 64 bits; accepted: 64 bits"
            ))),
        }
    }
}

#[inline]
fn decode_record(tag: u8, bytes: &[u8], previous: &mut Previous) -> Result<Decoded, Stop> {
    let code = tag & TAG_OPERATION;
    let operation = operation_of(code)
        .ok_or_else(|| Stop::Damaged(format!("a record has operation {code}; accepted: 0 to 4")))?;
    let mut numbers = Numbers { bytes, at: 1 };
    let mut next = *previous;
    if tag & TAG_DEVICE != 0 {
        let device = numbers.next("device")?;
        next.device = u16::try_from(device).map_err(|_| {
            Stop::Damaged(format!("a record has device {device}; accepted: 0 to 65535"))
        })?;
    }
    let too_late = || {
        let reason = "a record's time overflows; accepted: times within 500 years";
        Stop::Damaged(reason.to_owned())
    };
    next.time_us = next.time_us.checked_add(numbers.next("time")?).ok_or_else(too_late)?;
    let time_ns = next.time_us.checked_mul(1000).ok_or_else(too_late)?;
    let mut record = TraceRecord::new(time_ns, operation, 0, 0);
    if operation != TraceOperation::Flush {
        decode_range(tag, &mut numbers, &mut next, &mut record)?;
    }
    record.fua = tag & TAG_FUA != 0;
    record.device = next.device;
    *previous = next;
    Ok(Decoded::Record(record, numbers.at))
}

/// Decodes where a record goes and how far.
#[inline]
fn decode_range(
    tag: u8,
    numbers: &mut Numbers<'_>,
    next: &mut Previous,
    record: &mut TraceRecord,
) -> Result<(), Stop> {
    let unit = if tag & TAG_SECTORS != 0 { 512 } else { 1 };
    let beyond = || {
        Stop::Damaged(format!(
            "a record's range overflows; accepted: {}",
            super::text::POSSIBLE_RANGE
        ))
    };
    record.offset_bytes = next.end_bytes;
    if tag & TAG_SEQUENTIAL == 0 {
        let coded = numbers.next("offset")?;
        let distance = (coded >> 1) as i64 ^ -((coded & 1) as i64);
        let distance = distance.checked_mul(unit).ok_or_else(beyond)?;
        record.offset_bytes = next.end_bytes.checked_add_signed(distance).ok_or_else(beyond)?;
    }
    if tag & TAG_SAME_LENGTH == 0 {
        next.length_bytes = numbers.next("length")?.checked_mul(unit as u64).ok_or_else(beyond)?;
    }
    record.length_bytes = next.length_bytes;
    if record.length_bytes == 0 {
        let reason = "a record has length 0; accepted: 1 byte or more";
        return Err(Stop::Damaged(reason.to_owned()));
    }
    if !super::text::range_is_possible(record.offset_bytes, record.length_bytes) {
        return Err(beyond());
    }
    next.end_bytes = record.offset_bytes + record.length_bytes;
    Ok(())
}

/// A little-endian base-128 number and its length; `Ok(None)` if the bytes end inside it.
#[inline]
fn varint(bytes: &[u8]) -> Result<Option<(u64, usize)>, ()> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().take(10).enumerate() {
        if index == 9 && byte > 1 {
            return Err(());
        }
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Ok(Some((value, index + 1)));
        }
    }
    if bytes.len() >= 10 { Err(()) } else { Ok(None) }
}
