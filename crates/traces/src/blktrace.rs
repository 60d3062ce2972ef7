//! Binary blktrace, versions 7 and 8: what the kernel's block layer tells of each request, in the byte order of the machine.
//!
//! The layouts are `struct blk_io_trace` and `blk_io_trace2` of Linux's `include/uapi/linux/blktrace_api.h`. Version 8 adds
//! zone commands and tells a write of zeroes from a write. A record may be followed by data of its own, which is skipped.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs;
use std::path::Path;

use super::TraceError;
use super::binary::{RecordProblem, Records, u16_at, u32_at, u64_at};
use super::blktrace_window::{Place, Window};
use super::devices::Devices;
use super::input::{Input, sha256_hex};
use super::options::BlkEvent;
use super::record::{TraceOperation, TraceRecord};
use super::tally::{SkipReason, Tally};
use super::text::{POSSIBLE_RANGE, range_is_possible};

const MAGIC: u32 = 0x6561_7400;
const SECTOR_BYTES: u64 = 512;

/// Bits of the low half of `action`: the event, without the mark that a control group's id stands before the data.
const EVENT_BITS: u64 = 0xfeff;
const COMPLETE: u16 = 8;

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
const LETTERS: [char; 15] = [
    'Q', 'M', 'F', 'G', 'S', 'R', 'D', 'C', 'P', 'U', 'T', 'I', 'X', 'B', 'A',
];

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
            (number & !0xff == MAGIC && matches!(version, 7 | 8)).then_some(Self {
                version,
                big_endian,
            })
        })
    }

    /// Version and byte order, for people.
    pub(super) fn describe(self) -> String {
        let order = if self.big_endian { "big" } else { "little" };
        format!("version {}, {order}-endian", self.version)
    }

    fn record_bytes(self) -> usize {
        if self.version == 7 { 48 } else { 64 }
    }

    fn u16_at(self, record: &[u8], at: usize) -> u16 {
        let number = u16_at(record, at);
        if self.big_endian {
            number.swap_bytes()
        } else {
            number
        }
    }

    fn u32_at(self, record: &[u8], at: usize) -> u32 {
        let number = u32_at(record, at);
        if self.big_endian {
            number.swap_bytes()
        } else {
            number
        }
    }

    fn u64_at(self, record: &[u8], at: usize) -> u64 {
        let number = u64_at(record, at);
        if self.big_endian {
            number.swap_bytes()
        } else {
            number
        }
    }

    fn event(self, record: &[u8]) -> Result<Event, Box<RecordProblem>> {
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
struct Event {
    time_ns: u64,
    sequence: u32,
    sector: u64,
    bytes: u32,
    what: u16,
    categories: u64,
    device: u32,
    data_bytes: u16,
}

impl Event {
    fn has(&self, category: u64) -> bool {
        self.categories & category != 0
    }

    /// What the request asks for, or why it is none.
    fn operation(&self) -> Result<Result<TraceOperation, SkipReason>, Box<RecordProblem>> {
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
    fn place(&self, operation: TraceOperation) -> Result<Place, Box<RecordProblem>> {
        let is_flush = operation == TraceOperation::Flush;
        let offset_bytes = if is_flush {
            Some(0)
        } else {
            self.sector.checked_mul(SECTOR_BYTES)
        };
        let length_bytes = u64::from(self.bytes);
        match offset_bytes.filter(|&offset| range_is_possible(offset, length_bytes)) {
            Some(offset_bytes) => Ok(Place {
                device: self.device,
                operation,
                offset_bytes,
                length_bytes,
            }),
            None => Err(RecordProblem::new(
                format!("the sector is {}", self.sector),
                POSSIBLE_RANGE,
            )),
        }
    }
}

/// One file, and the event that is next in it.
struct EventFile {
    records: Records,
    layout: Layout,
    head: Option<Event>,
}

impl EventFile {
    fn new(input: Input) -> Result<Self, TraceError> {
        let Some(layout) = Layout::of(input.bytes()) else {
            return Err(TraceError::Format {
                path: input.path().to_owned(),
                reason: "the file does not start with the magic of blktrace; accepted: binary blktrace, version 7 or 8, in \
                         either byte order"
                    .to_owned(),
            });
        };
        let records = Records::new(input, 0);
        Ok(Self {
            records,
            layout,
            head: None,
        })
    }

    /// Moves on to the next event.
    fn advance(&mut self) -> Result<(), TraceError> {
        self.head = None;
        let Some(record) = self.records.next(self.layout.record_bytes())? else {
            return Ok(());
        };
        let event = match self.layout.event(record) {
            Ok(event) => event,
            Err(problem) => return Err(self.records.at(*problem)),
        };
        self.records.skip(usize::from(event.data_bytes))?;
        self.head = Some(event);
        Ok(())
    }
}

/// The events of one file, or of one file for each processor, merged by time.
pub(super) struct Blktrace {
    files: Vec<EventFile>,
    /// Time, sequence and file of the events that are next.
    heads: BinaryHeap<Reverse<(u64, u32, usize)>>,
    event: BlkEvent,
    devices: Devices<u32>,
    window: Window,
    /// No more events: the end of the files, or what is wrong with one.
    ended: Option<Result<(), TraceError>>,
}

impl Blktrace {
    pub(super) fn new(inputs: Vec<Input>, event: BlkEvent) -> Result<Self, TraceError> {
        let files: Result<Vec<_>, _> = inputs.into_iter().map(EventFile::new).collect();
        let mut blktrace = Self {
            files: files?,
            heads: BinaryHeap::new(),
            event,
            devices: Devices::default(),
            window: Window::default(),
            ended: None,
        };
        for file in 0..blktrace.files.len() {
            blktrace.advance(file)?;
        }
        Ok(blktrace)
    }

    /// What the first file is, for people.
    pub(super) fn describe(&self) -> String {
        let files = match self.files.len() {
            1 => String::new(),
            several => format!(", {several} files merged by time"),
        };
        format!(
            "{}, event {}{files}",
            self.files[0].layout.describe(),
            self.event.letter()
        )
    }

    /// Fills a batch up to `wanted` records; true at the end.
    pub(super) fn read(
        &mut self,
        wanted: usize,
        tally: &mut Tally,
        batch: &mut Vec<TraceRecord>,
    ) -> Result<bool, TraceError> {
        while batch.len() < wanted {
            if self.ended.is_none() && !self.window.is_full() {
                match self.take_event(tally) {
                    Ok(true) => {}
                    Ok(false) => self.ended = Some(Ok(())),
                    Err(error) => self.ended = Some(Err(error)),
                }
            } else if let Some(record) = self.window.pop() {
                batch.push(tally.accept(record));
            } else {
                return self.ended.take().unwrap_or(Ok(())).map(|()| true);
            }
        }
        Ok(false)
    }

    /// The hash of one file; of several, that of the lines of their hashes in hex, in the order of the processors.
    pub(super) fn sha256(&self) -> Option<String> {
        let hashes: Option<Vec<String>> = self
            .files
            .iter()
            .map(|file| file.records.input.sha256())
            .collect();
        let mut hashes = hashes?;
        match hashes.len() {
            1 => hashes.pop(),
            _ => {
                let lines: String = hashes.iter().map(|hash| format!("{hash}\n")).collect();
                Some(sha256_hex(lines.as_bytes()))
            }
        }
    }

    /// Moves a file on and notes the event that is next there.
    fn advance(&mut self, file: usize) -> Result<(), TraceError> {
        self.files[file].advance()?;
        if let Some(head) = self.files[file].head {
            self.heads
                .push(Reverse((head.time_ns, head.sequence, file)));
        }
        Ok(())
    }

    /// Takes the earliest event; false at the end of all files.
    fn take_event(&mut self, tally: &mut Tally) -> Result<bool, TraceError> {
        let Some(Reverse((_, _, file))) = self.heads.pop() else {
            return Ok(false);
        };
        if let Some(event) = self.files[file].head.take() {
            tally.counts.lines += 1;
            let taken = self.take(&event);
            let skipped = taken.map_err(|problem| self.files[file].records.at(*problem))?;
            if let Some(reason) = skipped {
                tally.counts.skipped.count(reason);
            }
        }
        self.advance(file)?;
        Ok(true)
    }

    /// Puts a request into the window or notes a completion; says why an event is no request.
    fn take(&mut self, event: &Event) -> Result<Option<SkipReason>, Box<RecordProblem>> {
        if event.has(NOTIFY) {
            return Ok(Some(SkipReason::Notify));
        }
        let is_wanted = event.what == event_number(self.event);
        let other = SkipReason::OtherEvent(letter(event.what));
        if !is_wanted && event.what != COMPLETE {
            return Ok(Some(other));
        }
        let operation = match event.operation() {
            Ok(Ok(operation)) => operation,
            Ok(Err(reason)) if is_wanted => return Ok(Some(reason)),
            Err(problem) if is_wanted => return Err(problem),
            _ => return Ok(Some(other)),
        };
        if !is_wanted {
            if let Ok(place) = event.place(operation) {
                self.window.complete(place, event.time_ns);
            }
            return Ok(Some(other));
        }
        let place = event.place(operation)?;
        let device = self.device(event.device)?;
        let mut record = TraceRecord::new(
            event.time_ns,
            operation,
            place.offset_bytes,
            place.length_bytes,
        );
        record.device = device;
        record.fua = operation.changes_data() && event.has(FUA);
        self.window
            .push(record, place, self.event != BlkEvent::Complete);
        Ok(None)
    }

    fn device(&mut self, device: u32) -> Result<u16, Box<RecordProblem>> {
        self.devices.number(&device).ok_or_else(|| {
            RecordProblem::new(
                "more than 65,536 devices".to_owned(),
                "at most 65,536 devices",
            )
        })
    }
}

fn event_number(event: BlkEvent) -> u16 {
    match event {
        BlkEvent::Queue => 1,
        BlkEvent::Issue => 7,
        BlkEvent::Complete => COMPLETE,
    }
}

/// The letter of an event; `?` for those of drivers and of kernels to come.
fn letter(event: u16) -> char {
    let index = usize::from(event).wrapping_sub(1);
    LETTERS.get(index).copied().unwrap_or('?')
}

/// The files of one blktrace, `PATH.blktrace.N` or `PATH.N` with PATH ending in `.blktrace`, in the order of their
/// processors. None if a file is called PATH itself.
pub(super) fn processor_files(path: &str) -> Vec<String> {
    let wanted = Path::new(path);
    let (Some(name), false) = (
        wanted.file_name().and_then(|name| name.to_str()),
        wanted.is_file(),
    ) else {
        return Vec::new();
    };
    let stem = match name.strip_suffix(".blktrace") {
        Some(stem) => stem,
        None => name,
    };
    let prefix = format!("{stem}.blktrace.");
    let folder = wanted
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let Ok(entries) = fs::read_dir(folder.unwrap_or(Path::new("."))) else {
        return Vec::new();
    };
    let mut processors: Vec<u32> = entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name();
            let number = name.to_str()?.strip_prefix(&prefix)?;
            let processor: u32 = number.parse().ok()?;
            (processor.to_string() == number).then_some(processor)
        })
        .collect();
    processors.sort_unstable();
    let file = |processor| wanted.with_file_name(format!("{prefix}{processor}"));
    processors
        .into_iter()
        .map(|processor| file(processor).display().to_string())
        .collect()
}
