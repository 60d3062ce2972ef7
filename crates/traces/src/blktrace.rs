//! Binary blktrace: what the kernel's block layer tells of each request, in one file or in one for each processor.
//!
//! The files are merged by time, one event of each request is chosen, and data that follows a record is skipped.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs;
use std::path::Path;

use super::TraceError;
use super::binary_records::{RecordProblem, Records};
use super::blktrace_event::{COMPLETE, Event, Layout, event_number, letter};
use super::blktrace_window::Window;
use super::devices::Devices;
use super::input::{Input, sha256_of_files};
use super::options::BlkEvent;
use super::record::TraceRecord;
use super::tally::{SkipReason, Tally};

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
        Ok(Self { records, layout, head: None })
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
        format!("{}, event {}{files}", self.files[0].layout.describe(), self.event.letter())
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
        let hashes: Option<Vec<String>> =
            self.files.iter().map(|file| file.records.input.sha256()).collect();
        hashes.map(sha256_of_files)
    }

    /// Moves a file on and notes the event that is next there.
    fn advance(&mut self, file: usize) -> Result<(), TraceError> {
        self.files[file].advance()?;
        if let Some(head) = self.files[file].head {
            self.heads.push(Reverse((head.time_ns, head.sequence, file)));
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
        if event.is_notification() {
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
        let mut record =
            TraceRecord::new(event.time_ns, operation, place.offset_bytes, place.length_bytes);
        record.device = device;
        record.fua = operation.changes_data() && event.is_forced();
        self.window.push(record, place, self.event != BlkEvent::Complete);
        Ok(None)
    }

    fn device(&mut self, device: u32) -> Result<u16, Box<RecordProblem>> {
        self.devices.number(&device).ok_or_else(|| {
            RecordProblem::new("more than 65,536 devices".to_owned(), "at most 65,536 devices")
        })
    }
}

/// The files of one blktrace, `PATH.blktrace.N` or `PATH.N` with PATH ending in `.blktrace`, in the order of their
/// processors. None if a file is called PATH itself.
pub(super) fn processor_files(path: &str) -> Vec<String> {
    let wanted = Path::new(path);
    let (Some(name), false) = (wanted.file_name().and_then(|name| name.to_str()), wanted.is_file())
    else {
        return Vec::new();
    };
    let stem = name.strip_suffix(".blktrace").unwrap_or(name);
    let prefix = format!("{stem}.blktrace.");
    let folder = wanted.parent().filter(|folder| !folder.as_os_str().is_empty());
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
    processors.into_iter().map(|processor| file(processor).display().to_string()).collect()
}
