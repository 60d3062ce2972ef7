//! One record of binary blktrace, version 7 or 8, in the byte order of the machine that wrote it.
//!
//! The layouts are `struct blk_io_trace` and `blk_io_trace2` of Linux's `include/uapi/linux/blktrace_api.h`. Version 8 adds
//! zone commands and tells a write of zeroes from a write.

use super::binary_records::{RecordProblem, u16_at, u32_at, u64_at};
use super::blktrace_window::Place;
use super::options::BlkEvent;
use super::record::TraceOperation;
use super::tally::SkipReason;
use super::text::{POSSIBLE_RANGE, range_is_possible};

const MAGIC: u32 = 0x6561_7400;
const SECTOR_BYTES: u64 = 512;

/// Bits of the low half of `action`: the event, without the mark that a control group's id stands before the data.
const EVENT_BITS: u64 = 0xfeff;
/// The event that a request is complete.
pub(super) const COMPLETE: u16 = 8;

/// Categories, from bit 16 of `action`.
const READ: u64 = 1;
const WRITE: u64 = 1 << 1;
const FLUSH: u64 = 1 << 2;
const PASSTHROUGH: u64 = 1 << 9;
const NOTIFY: u64 = 1 << 10;
const DISCARD: u64 = 1 << 13;
const FUA: u64 = 1 << 15;
/// Zone append, which is a write to a place the drive chooses, and the commands that move zones between states.
const ZONE: u64 = 0b11_1111 << 16;
const WRITE_ZEROES: u64 = 1 << 22;

/// The letters of `blkparse` for the events from 1 on.
const LETTERS: [char; 15] =
    ['Q', 'M', 'F', 'G', 'S', 'R', 'D', 'C', 'P', 'U', 'T', 'I', 'X', 'B', 'A'];

/// Version and byte order of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    version: u8,
    big_endian: bool,
}

impl Layout {
    /// The layout whose magic the bytes start with.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let word: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
        [false, true].into_iter().find_map(|big_endian| {
            let number = match big_endian {
                true => u32::from_be_bytes(word),
                false => u32::from_le_bytes(word),
            };
            let version = (number & 0xff) as u8;
            (number & !0xff == MAGIC && matches!(version, 7 | 8))
                .then_some(Self { version, big_endian })
        })
    }

    /// Version and byte order, for people.
    pub(super) fn describe(self) -> String {
        let order = if self.big_endian { "big" } else { "little" };
        format!("version {}, {order}-endian", self.version)
    }

    /// Bytes of a record without the data behind it.
    pub(super) fn record_bytes(self) -> usize {
        if self.version == 7 { 48 } else { 64 }
    }

    fn u16_at(self, record: &[u8], at: usize) -> u16 {
        let number = u16_at(record, at);
        if self.big_endian { number.swap_bytes() } else { number }
    }

    fn u32_at(self, record: &[u8], at: usize) -> u32 {
        let number = u32_at(record, at);
        if self.big_endian { number.swap_bytes() } else { number }
    }

    fn u64_at(self, record: &[u8], at: usize) -> u64 {
        let number = u64_at(record, at);
        if self.big_endian { number.swap_bytes() } else { number }
    }

    /// What a record of [`record_bytes`](Self::record_bytes) says.
    pub(super) fn event(self, record: &[u8]) -> Result<Event, Box<RecordProblem>> {
        if Self::of(record) != Some(self) {
            let wanted = MAGIC | u32::from(self.version);
            return Err(RecordProblem::new(
                format!("the magic is 0x{:08x}", self.u32_at(record, 0)),
                &format!("0x{wanted:08x}, as in the first record"),
            ));
        }
        let is_short = self.version == 7;
        let action = match is_short {
            true => u64::from(self.u32_at(record, 28)),
            false => self.u64_at(record, 32),
        };
        Ok(Event {
            time_ns: self.u64_at(record, 8),
            sequence: self.u32_at(record, 4),
            sector: self.u64_at(record, 16),
            bytes: self.u32_at(record, 24),
            what: (action & EVENT_BITS) as u16,
            categories: action >> 16,
            device: self.u32_at(record, if is_short { 36 } else { 40 }),
            data_bytes: self.u16_at(record, if is_short { 46 } else { 50 }),
        })
    }
}

/// One record of the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub time_ns: u64,
    pub sequence: u32,
    pub sector: u64,
    pub bytes: u32,
    pub what: u16,
    pub categories: u64,
    pub device: u32,
    pub data_bytes: u16,
}

impl Event {
    fn has(&self, category: u64) -> bool {
        self.categories & category != 0
    }

    /// True of a record that is no event: a process name, a message, the wall clock.
    pub(super) fn is_notification(&self) -> bool {
        self.has(NOTIFY)
    }

    /// True of a request with forced unit access.
    pub(super) fn is_forced(&self) -> bool {
        self.has(FUA)
    }

    /// What the request asks for, or why it is none.
    pub(super) fn operation(
        &self,
    ) -> Result<Result<TraceOperation, SkipReason>, Box<RecordProblem>> {
        Ok(if self.has(PASSTHROUGH) {
            Err(SkipReason::Passthrough)
        } else if self.has(ZONE) {
            Err(SkipReason::ZoneCommand)
        } else if self.bytes == 0 {
            match self.has(FLUSH) {
                true => Ok(TraceOperation::Flush),
                false => Err(SkipReason::ZeroLength),
            }
        } else if self.has(DISCARD) {
            Ok(TraceOperation::Trim)
        } else if self.has(WRITE_ZEROES) {
            Ok(TraceOperation::WriteZeroes)
        } else if self.has(WRITE) {
            Ok(TraceOperation::Write)
        } else if self.has(READ) {
            Ok(TraceOperation::Read)
        } else {
            return Err(RecordProblem::new(
                format!("the categories are 0x{:x}", self.categories),
                "the bit of reads (0x1) or of writes (0x2)",
            ));
        })
    }

    /// Where the request goes, for finding it again.
    pub(super) fn place(&self, operation: TraceOperation) -> Result<Place, Box<RecordProblem>> {
        let is_flush = operation == TraceOperation::Flush;
        let offset_bytes = if is_flush { Some(0) } else { self.sector.checked_mul(SECTOR_BYTES) };
        let length_bytes = u64::from(self.bytes);
        match offset_bytes.filter(|&offset| range_is_possible(offset, length_bytes)) {
            Some(offset_bytes) => {
                Ok(Place { device: self.device, operation, offset_bytes, length_bytes })
            }
            None => {
                Err(RecordProblem::new(format!("the sector is {}", self.sector), POSSIBLE_RANGE))
            }
        }
    }
}

/// The number of an event in a record.
pub(super) fn event_number(event: BlkEvent) -> u16 {
    match event {
        BlkEvent::Queue => 1,
        BlkEvent::Issue => 7,
        BlkEvent::Complete => COMPLETE,
    }
}

/// The letter of an event; `?` for those of drivers and of kernels to come.
pub(super) fn letter(event: u16) -> char {
    let index = usize::from(event).wrapping_sub(1);
    LETTERS.get(index).copied().unwrap_or('?')
}
