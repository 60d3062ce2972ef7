//! The frontend of a simulation: a trace becomes arrivals in virtual time.

mod cut;
mod hold;
mod place;
mod request_log;
mod streams;
mod turn;
mod waiting;
mod windows;

use crate::record_source::{RecordSource, no_record};
use cut::Cutter;
pub use cut::{Cut, Touched};
use hold::Hold;
use place::operation_of;
pub use place::place;
pub use request_log::RequestLog;
use streams::Streams;
use turn::Turn;
use waiting::Waiting;
pub use windows::{Dealt, StreamWindow, Windows};

use imbrex_core::activity::{Activities, ActivityMark};
use imbrex_core::buffer::{BufferSlice, Buffers};
use imbrex_core::engine::Frontend;
use imbrex_core::error::IoError;
use imbrex_core::map::Slab;
use imbrex_core::operation::{Completion, Operation, Tag};
use imbrex_core::stack::Arrival;
use imbrex_core::units::{BLOCK_BYTES, BlockCount, Duration, Instant};
use imbrex_report::{CutUse, Ended, Recorder, ReplayMode, RequestCounts, RequestKind};
use imbrex_traces::{BlockRule, TraceError, TraceOperation, TraceRecord};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What to do with a record that lies beyond the end of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fit {
    /// It is an error.
    #[default]
    Refuse,
    /// Its address is taken modulo the size of the device.
    Wrap,
    /// Every address is multiplied by device size / `span_bytes`.
    Scale {
        /// The end of the highest request of the trace.
        span_bytes: u64,
    },
}

/// Where the records of a trace go on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// What to do with addresses beyond the device.
    pub fit: Fit,
    /// Which blocks a request has.
    pub blocks: BlockRule,
}

/// Streams of a replay at most.
pub const STREAMS_MAX: u32 = 4096;

/// The latest arrival, so that there is time left to serve it: 73 years.
const ARRIVAL_NS_MAX: u64 = 1 << 61;

/// The window of a request of the whole device.
const NO_WINDOW: u16 = u16::MAX;

/// How a trace is replayed.
#[derive(Clone, Copy, Debug)]
pub struct ReplayOptions {
    /// When requests are issued.
    pub mode: ReplayMode,
    /// Stop after this many records.
    pub limit: Option<u64>,
    /// Leave reads out, as a write-only comparison does.
    pub drop_reads: bool,
    /// Where its records go on the device.
    pub placement: Placement,
}

/// Why a replay stopped before its end.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The trace is damaged.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A record lies beyond the device.
    #[error(
        "record {record}: {operation} of {length_bytes} bytes at offset {offset_bytes} ends beyond the \
         {place} of {device_bytes} bytes; use a larger {}, or --fit wrap or --fit scale",
        place.split(' ').next().unwrap_or("device")
    )]
    BeyondDevice {
        /// Number of the record, from 1.
        record: u64,
        /// What it asked for.
        operation: &'static str,
        /// Its first byte.
        offset_bytes: u64,
        /// Its length.
        length_bytes: u64,
        /// What it lies beyond: `device`, or a window with its name.
        place: String,
        /// The end of the device or the window.
        device_bytes: u64,
    },
    /// A record is of a source that has no window.
    #[error(
        "record {record}: is of device {device}, and the stack has a node for the requests of each device \
         from 0 to {last}; accepted: a trace of these devices, or a stack of as many nodes as it has devices"
    )]
    NoWindow {
        /// Number of the record, from 1.
        record: u64,
        /// The device that it names.
        device: u16,
        /// The last device that has a window.
        last: usize,
    },
    /// A record has no response time, by which it would join a stream.
    #[error(
        "record {record}: has no response time, and with `dependencies` = \"latency\" it says which stream a \
         request joins; accepted: a trace with response times, or \"in-turn\""
    )]
    NoResponse {
        /// Number of the record, from 1.
        record: u64,
    },
    /// A record arrives too late for a time in nanoseconds.
    #[error(
        "record {record}: arrives {arrival_s:.0} s after the first at speed {speed}; accepted: at most \
         {} s",
        ARRIVAL_NS_MAX / 1_000_000_000
    )]
    TooLate {
        /// Number of the record, from 1.
        record: u64,
        /// When it would arrive.
        arrival_s: f64,
        /// How much faster than recorded the trace is replayed.
        speed: f64,
    },
    /// The stack failed a request, which a simulated disk does only when it is told to.
    #[error("record {record}: {error}")]
    Io {
        /// Number of the record, from 1.
        record: u64,
        /// What happened.
        error: IoError,
    },
}

impl ReplayError {
    /// The record with this number, from 1, ends beyond a place of so many blocks.
    pub(crate) fn beyond(
        number: u64,
        record: &TraceRecord,
        place: String,
        blocks: BlockCount,
    ) -> ReplayError {
        ReplayError::BeyondDevice {
            record: number,
            operation: name(operation_of(record)),
            offset_bytes: record.offset_bytes,
            length_bytes: record.length_bytes,
            place,
            device_bytes: blocks.bytes(),
        }
    }
}

/// Counts of what was replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayCounts {
    /// Requests issued.
    pub requests: u64,
    /// Reads left out.
    pub skipped_reads: u64,
    /// Blocks read.
    pub read_blocks: u64,
    /// Blocks written.
    pub write_blocks: u64,
    /// The end of the highest request, in blocks; 0 where nobody counts it.
    pub end_blocks: u64,
    /// Of the requests issued, those that are the second or a later piece of a record that was divided.
    pub added_requests: u64,
}

impl From<ReplayCounts> for RequestCounts {
    fn from(counts: ReplayCounts) -> RequestCounts {
        let ReplayCounts { requests, skipped_reads, read_blocks, write_blocks, .. } = counts;
        RequestCounts { requests, skipped_reads, read_blocks, write_blocks }
    }
}

#[derive(Clone, Copy)]
struct InFlight {
    record: u64,
    arrived: Instant,
    due: Instant,
    operation: Operation,
    blocks: u64,
    buffer: BufferSlice,
    stream: u32,
    window: u16,
    mark: ActivityMark,
}

impl InFlight {
    /// A new place, before a request has it.
    fn none() -> InFlight {
        InFlight {
            record: 0,
            arrived: Instant::ZERO,
            due: Instant::ZERO,
            operation: Operation::Flush,
            blocks: 0,
            buffer: BufferSlice::EMPTY,
            stream: 0,
            window: NO_WINDOW,
            mark: ActivityMark::default(),
        }
    }
}

/// Issues the records of a trace and records what became of them.
pub struct Replayer<I> {
    records: I,
    options: ReplayOptions,
    device_blocks: BlockCount,
    /// The next record.
    next: Option<Waiting>,
    records_read: u64,
    /// What waits until it is measured.
    hold: Hold,
    /// When what is recorded begins.
    from: Instant,
    /// What is added to times of arrival, because the requests before were late.
    shift: Duration,
    in_flight: Slab<InFlight>,
    /// In the mode that has them.
    streams: Option<Streams>,
    dealt: Dealt,
    /// Where the trace is cut into windows.
    cutter: Option<Cutter>,
    activities: Activities,
    /// None where nobody wants a line for each request.
    log: Option<Box<RequestLog>>,
    /// Latencies and series.
    recorder: Rc<RefCell<Recorder>>,
    /// Counts.
    pub counts: ReplayCounts,
    /// When the last answer came.
    pub finished_at: Instant,
    /// When the last request arrived.
    pub last_arrival: Instant,
    /// In the mode without times.
    turn: Turn,
    error: Option<ReplayError>,
}

impl<I: RecordSource> Replayer<I> {
    /// A replayer of `records` on a device of `device_blocks` blocks.
    pub fn new(
        records: I,
        options: ReplayOptions,
        device_blocks: BlockCount,
        recorder: Rc<RefCell<Recorder>>,
    ) -> Replayer<I> {
        Replayer::in_windows(records, options, device_blocks, Dealt::default(), recorder)
    }

    /// A replayer of `records`, whose streams or sources may have parts of the device as their device.
    pub fn in_windows(
        records: I,
        options: ReplayOptions,
        device_blocks: BlockCount,
        dealt: Dealt,
        recorder: Rc<RefCell<Recorder>>,
    ) -> Replayer<I> {
        let streams = match options.mode {
            ReplayMode::Streams { streams, due, dependencies } => {
                Some(Streams::new(streams, due, dependencies))
            }
            _ => None,
        };
        let names: Vec<String> = dealt.windows.all().iter().map(|it| it.name.clone()).collect();
        let cutter = match &dealt.windows {
            Windows::OfParts(_, cut) => Some(Cutter::new(cut, &names, options.placement.blocks)),
            _ => None,
        };
        recorder.borrow_mut().set_windows(names);
        let mut replayer = Replayer {
            records,
            options,
            device_blocks,
            next: None,
            records_read: 0,
            hold: Hold::nothing(),
            from: Instant::ZERO,
            shift: Duration::ZERO,
            in_flight: Slab::default(),
            streams,
            dealt,
            cutter,
            activities: Activities::default(),
            log: None,
            recorder,
            counts: ReplayCounts::default(),
            finished_at: Instant::ZERO,
            last_arrival: Instant::ZERO,
            turn: Turn::default(),
            error: None,
        };
        replayer.advance();
        replayer
    }

    /// Holds back the records behind a number, until [`begin_measuring`](Self::begin_measuring): the replay is
    /// over for the time being when those before have ended. Whoever has the cell may set it lower meanwhile; of
    /// the records that come then, the first was read before and is not held.
    ///
    /// To be asked for before anything is issued.
    pub fn hold_after(&mut self, number: u64) -> Rc<Cell<u64>> {
        let after = self.hold.after();
        after.set(number);
        if self.next.is_some_and(|waiting| waiting.record > number) {
            self.hold.keep(&mut self.next);
        }
        after
    }

    /// Leaves the records to a number out, as if they had been replayed, and holds back those behind it as
    /// [`hold_after`](Self::hold_after) does.
    pub fn skip(&mut self, number: u64) {
        self.hold_after(number);
        while let Some(waiting) = self.next {
            self.counts.end_blocks = self.counts.end_blocks.max(waiting.extent.end().0);
            self.advance();
        }
    }

    /// Lets the records go on that were held back. What was counted and recorded of those before is forgotten, and
    /// recorded times count from now. If the first of them should have come before now, it and all that follow
    /// come that much later.
    pub fn begin_measuring(&mut self, now: Instant) {
        let windows = self.dealt.windows.all().iter().map(|it| it.name.clone()).collect();
        let mut recorder = Recorder::new();
        recorder.set_windows(windows);
        self.recorder.replace(recorder);
        self.next = self.hold.release();
        if let Some(waiting) = &mut self.next
            && self.options.mode.is_by_time()
        {
            self.shift = now.since(waiting.at);
            waiting.at = waiting.at.max(now);
        }
        self.counts =
            ReplayCounts { end_blocks: self.counts.end_blocks, ..ReplayCounts::default() };
        if let Some(cutter) = &mut self.cutter {
            cutter.restart();
        }
        (self.from, self.finished_at, self.last_arrival) = (now, now, now);
    }

    /// How many records of the trace come before the one that is held back; none while none is.
    pub fn records_before_held(&self) -> Option<u64> {
        self.hold.records_before()
    }

    /// The records, of which the one that is held back was the last to be read.
    pub fn records_mut(&mut self) -> &mut I {
        &mut self.records
    }

    /// The same one, which records by what nodes do while a request is open.
    pub fn with_activities(self, activities: Activities) -> Replayer<I> {
        Replayer { activities, ..self }
    }

    /// Writes a line to a log for each request from now on.
    pub fn log_to(&mut self, log: RequestLog) {
        self.log = Some(Box::new(log));
    }

    /// The log.
    pub fn take_log(&mut self) -> Option<RequestLog> {
        self.log.take().map(|log| *log)
    }

    /// What stopped the replay, if anything did.
    ///
    /// # Errors
    /// What stopped it.
    pub fn take_error(&mut self) -> Result<(), ReplayError> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// True when something has stopped the replay before the end of its records.
    pub fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// The records, as far as they were read.
    pub fn records(&self) -> &I {
        &self.records
    }

    /// What came of cutting the trace into windows; none where it was not cut.
    pub fn cut(&self) -> Option<CutUse> {
        self.cutter.as_ref().map(Cutter::told)
    }

    /// Reads the next record that is to be issued into `record`. False at the end, and where the trace is damaged.
    #[inline(always)]
    fn read(&mut self, record: &mut TraceRecord) -> bool {
        while self.options.limit.is_none_or(|max| self.records_read < max) {
            match self.records.next_into(record) {
                Ok(true) => self.records_read += 1,
                Ok(false) => return false,
                Err(error) => {
                    self.fail(error.into());
                    return false;
                }
            }
            if !self.options.drop_reads || record.operation != TraceOperation::Read {
                return true;
            }
            self.counts.skipped_reads += 1;
        }
        false
    }

    /// Reads on to the next record that is to be issued: none at the end, where it is held back, and where it stops the
    /// replay.
    #[inline(always)]
    fn advance(&mut self) {
        self.next = None;
        if self.error.is_some() {
            return;
        }
        if self.cutter.is_some() {
            return self.advance_in_pieces();
        }
        let mut record = no_record();
        if self.read(&mut record) {
            self.wait_for(record, true);
        }
    }

    /// The same, where the next one may be a piece of the record that was read last.
    #[inline(never)]
    fn advance_in_pieces(&mut self) {
        let Some(cutter) = &mut self.cutter else { return };
        if let Some(piece) = cutter.next_piece() {
            self.counts.added_requests += 1;
            // The pieces of a record stay together.
            return self.wait_for(piece, false);
        }
        let mut record = no_record();
        if self.read(&mut record) {
            if let Some(cutter) = &mut self.cutter {
                record = cutter.first_piece(record);
            }
            self.wait_for(record, true);
        }
    }

    /// The record that was read last, or a piece of it, is the next to be issued, unless it may be held back and is, or
    /// stops the replay.
    // `deal` and `beyond` get the record by value: a reference would keep it in memory, and it would be copied on.
    #[inline(always)]
    fn wait_for(&mut self, record: TraceRecord, may_be_held: bool) {
        let (stream, number) = match (&self.streams, &self.dealt.windows) {
            (None, Windows::None) => (0, None),
            _ => match self.deal(record) {
                Some(dealt) => dealt,
                None => return,
            },
        };
        let window = number.and_then(|number| self.dealt.windows.all().get(number));
        let blocks = window.map_or(self.device_blocks, |window| window.extent.blocks);
        let Some(mut placed) = place(&record, blocks, self.placement(record.device)) else {
            let error = self.beyond(window, record);
            return self.fail(error);
        };
        if let Some(window) = window {
            placed = window.on_device(placed);
        }
        let (operation, extent) = placed;
        let Some(at) = self.arrival(record.time_ns) else { return };
        let window = number.map_or(NO_WINDOW, |number| number as u16);
        let record = self.records_read;
        self.next = Some(Waiting { record, at, operation, extent, window, stream });
        if may_be_held && self.hold.holds(record) {
            self.hold.keep(&mut self.next);
        }
    }

    /// The record that was read last stops the replay.
    #[cold]
    fn fail(&mut self, error: ReplayError) {
        self.error = Some(error);
    }

    /// The stream that the record which was read last joins, and the number of its window if it has one. None where it
    /// stops the replay.
    fn deal(&mut self, record: TraceRecord) -> Option<(u32, Option<usize>)> {
        let stream = match &mut self.streams {
            Some(streams) => {
                let Some(stream) = streams.of(&record, self.records_read) else {
                    self.fail(ReplayError::NoResponse { record: self.records_read });
                    return None;
                };
                stream
            }
            None => 0,
        };
        match self.window(&record, stream) {
            Ok(number) => Some((stream, number)),
            Err(error) => {
                self.fail(error);
                None
            }
        }
    }

    /// When the record that was read last arrives, by its time. None where that stops the replay.
    #[inline(always)]
    fn arrival(&mut self, time_ns: u64) -> Option<Instant> {
        let (at, speed) = match self.options.mode {
            ReplayMode::OpenLoop { speed } => ((time_ns as f64 / speed) as u64, speed),
            ReplayMode::Streams { .. } | ReplayMode::Live => (time_ns, 1.0),
            ReplayMode::ClosedLoop { .. } | ReplayMode::Untimed => (0, 1.0),
        };
        let at = at.saturating_add(self.shift.0);
        if at > ARRIVAL_NS_MAX {
            let arrival_s = time_ns as f64 / speed / 1e9;
            self.fail(ReplayError::TooLate { record: self.records_read, arrival_s, speed });
            return None;
        }
        Some(Instant(at))
    }

    /// Where a record goes, by what is known of the device that it names.
    #[inline]
    fn placement(&self, device: u16) -> Placement {
        let mut placement = self.options.placement;
        if let Fit::Scale { span_bytes } = &mut placement.fit
            && let Some(of_device) = self.dealt.spans_bytes.get(usize::from(device))
        {
            *span_bytes = *of_device;
        }
        placement
    }

    /// The number of the window of the record that was read last, if such records have windows.
    fn window(&self, record: &TraceRecord, stream: u32) -> Result<Option<usize>, ReplayError> {
        match &self.dealt.windows {
            Windows::None => Ok(None),
            Windows::OfStreams(windows) => Ok(Some(stream as usize % windows.len().max(1))),
            Windows::InTurn(windows) => {
                let turn = (self.records_read - 1) % windows.len().max(1) as u64;
                Ok(Some(turn as usize))
            }
            // A flush is of the whole device.
            Windows::OfParts(..) => {
                Ok((record.operation != TraceOperation::Flush)
                    .then_some(usize::from(record.device)))
            }
            Windows::OfSources(windows) => match usize::from(record.device) {
                device if device < windows.len() => Ok(Some(device)),
                _ => Err(ReplayError::NoWindow {
                    record: self.records_read,
                    device: record.device,
                    last: windows.len() - 1,
                }),
            },
        }
    }

    #[cold]
    fn beyond(&self, window: Option<&StreamWindow>, record: TraceRecord) -> ReplayError {
        let place = match (&self.dealt.windows, window) {
            (Windows::OfSources(_), Some(window)) => {
                format!("window `{}` of device {}", window.name, record.device)
            }
            (Windows::OfParts(..), Some(window)) => {
                format!("window `{}` (part {} of the trace)", window.name, record.device)
            }
            (_, Some(window)) => format!("window `{}`", window.name),
            (_, None) => "device".into(),
        };
        let blocks = window.map_or(self.device_blocks, |it| it.extent.blocks);
        ReplayError::beyond(self.records_read, &record, place, blocks)
    }

    /// Hands a request down that has arrived and was due at these instants. `has_data` is what its operation says.
    // The caller asks the operation where it waits. Where a copy was asked, the compiler would write the two bytes of the
    // operation one by one, the stack would read them at once, and the processor would wait.
    #[inline(always)]
    fn issue(
        &mut self,
        waiting: Waiting,
        has_data: bool,
        now: Instant,
        (arrived, due): (Instant, Instant),
        buffers: &mut Buffers,
    ) -> Arrival {
        let Waiting { record, operation, extent, window, stream, .. } = waiting;
        let blocks = extent.blocks.0;
        let buffer = if has_data { buffers.allocate(blocks) } else { BufferSlice::EMPTY };
        let mark = self.activities.mark();
        let index = self.in_flight.reuse_or(InFlight::none);
        let request = &mut self.in_flight[index];
        *request =
            InFlight { record, arrived, due, operation, blocks, buffer, stream, window, mark };
        match request.operation {
            Operation::Read => self.counts.read_blocks += blocks,
            Operation::Write { .. } => self.counts.write_blocks += blocks,
            _ => {}
        }
        if let Some(log) = &mut self.log {
            log.issued(index, extent.start.0, now);
        }
        if let Some(cutter) = &mut self.cutter {
            cutter.count(usize::from(window), operation, blocks);
        }
        self.counts.requests += 1;
        self.last_arrival = arrived;
        self.counts.end_blocks = self.counts.end_blocks.max(extent.end().0);
        Arrival { tag: Tag(u64::from(index)), operation, extent, buffer }
    }

    /// When the next record arrives.
    #[inline]
    fn next_at(&self) -> Option<Instant> {
        self.next.as_ref().map(|waiting| waiting.at)
    }

    fn poll_streams(&mut self, now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        while let Some(waiting) = self.next.filter(|waiting| waiting.at <= now) {
            self.streams.as_mut()?.add(waiting);
            self.advance();
        }
        let (waiting, due) = self.streams.as_mut()?.take(now)?;
        let has_data = waiting.operation.has_data();
        Some(self.issue(waiting, has_data, now, (now, due), buffers))
    }
}

fn name(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "read",
        Operation::Write { .. } => "write",
        Operation::Zero { .. } => "trim",
        Operation::Flush => "flush",
        Operation::ZoneOpen => "zone open",
        Operation::ZoneClose => "zone close",
        Operation::ZoneReport => "zone report",
        Operation::ZoneReset => "zone reset",
        Operation::ZoneFinish => "zone finish",
        Operation::Copy(_) => "copy",
    }
}

impl<I: RecordSource> Frontend for Replayer<I> {
    fn next_arrival(&self) -> Option<Instant> {
        match self.options.mode {
            ReplayMode::ClosedLoop { depth } => {
                (self.next.is_some() && self.in_flight.len() < depth).then_some(Instant::ZERO)
            }
            ReplayMode::Untimed => {
                (self.next.is_some() && self.in_flight.is_empty()).then(|| self.turn.next())
            }
            ReplayMode::Streams { .. } => {
                // None is due before its time stamp: a late request makes those behind it later.
                let record = self.next_at();
                record.into_iter().chain(self.streams.as_ref()?.ready_at()).min()
            }
            ReplayMode::OpenLoop { .. } | ReplayMode::Live => self.next_at(),
        }
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        if self.streams.is_some() {
            return self.poll_streams(now, buffers);
        }
        let Some(waiting) = &self.next else { return None };
        let (may_come, arrived) = match self.options.mode {
            ReplayMode::ClosedLoop { depth } => (self.in_flight.len() < depth, now),
            ReplayMode::Untimed => (self.in_flight.is_empty() && self.turn.take(now), now),
            _ => (waiting.at <= now, waiting.at),
        };
        if !may_come {
            return None;
        }
        let (waiting, has_data) = (*waiting, waiting.operation.has_data());
        let arrival = self.issue(waiting, has_data, now, (arrived, arrived), buffers);
        self.advance();
        Some(arrival)
    }

    fn reply(&mut self, now: Instant, completion: Completion, buffers: &mut Buffers) {
        let number = completion.tag.0 as u32;
        self.in_flight.remove(number);
        let request = &self.in_flight[number];
        buffers.release(request.buffer);
        if let Some(streams) = &mut self.streams {
            streams.end(request.stream, now);
        }
        if let Err(error) = completion.result {
            self.error.get_or_insert(ReplayError::Io { record: request.record, error });
            self.next = None;
        }
        self.finished_at = now;
        if self.options.mode == ReplayMode::Untimed {
            return;
        }
        let felt = self.activities.since(request.mark);
        if let Some(log) = &mut self.log {
            log.ended(number, request, felt, now, self.from);
        }
        let (kind, bytes) = match request.operation {
            Operation::Read => (RequestKind::Read, request.blocks * BLOCK_BYTES),
            Operation::Write { .. } => (RequestKind::Write, request.blocks * BLOCK_BYTES),
            _ => (RequestKind::Other, 0),
        };
        self.recorder.borrow_mut().completed(&Ended {
            at_ns: now.since(self.from).0,
            latency_ns: now.since(request.arrived).0,
            kind,
            bytes,
            since_due_ns: self.streams.is_some().then(|| now.since(request.due).0),
            window: (request.window != NO_WINDOW).then_some(request.window),
            felt,
        });
    }

    #[inline]
    fn finished(&self) -> bool {
        // What waits in streams does not come any more behind an error.
        let has_backlog =
            || self.error.is_none() && self.streams.as_ref().is_some_and(Streams::has_backlog);
        self.next.is_none() && self.in_flight.is_empty() && !has_backlog()
    }
}

#[cfg(test)]
mod tests;
