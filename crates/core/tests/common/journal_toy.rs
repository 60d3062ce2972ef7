//! The smallest layer that is durable through a journal: every write goes to a fresh place, and a
//! record says where.

use imbrex_core::buffer::BufferSlice;
use imbrex_core::durability::{
    DataRef, FlushTicket, Journal, JournalEvent, JournalSettings, LayerKind, Lsn, LsnQueue,
    Recovery, Replayed,
};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::layer::{Context, Issue, Layer, Port};
use imbrex_core::lifecycle::{OpenError, Start};
use imbrex_core::operation::{Completion, Operation, Request, RequestId, Tag};
use imbrex_core::units::BlockCount;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

const WRITTEN: u8 = 1;
pub const ZEROED: u8 = 2;
/// A place and a checksum for each block of the device that holds something.
const ENTRY_BYTES: usize = 20;

/// What the layer was told, for the test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Seen {
    Recovered(Vec<Replayed>, bool),
    Opened,
    Refused(OpenError),
    Written(u64),
    Flushed(u64),
    Checkpointed(u64),
    Closed,
    Failed,
}

/// Where things lie on the member of a toy.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Blocks of the device that it offers.
    pub device_blocks: u64,
    /// Places for blocks of data.
    pub places: u64,
    pub ring_blocks: u64,
}

impl Shape {
    pub fn settings(&self) -> JournalSettings {
        let checkpoint_blocks =
            JournalSettings::checkpoint_blocks_for(self.device_blocks * ENTRY_BYTES as u64);
        let area = JournalSettings::area_blocks_for(checkpoint_blocks, self.ring_blocks);
        JournalSettings {
            layer: LayerKind::Cache,
            port: Port(0),
            member_blocks: BlockCount(area + self.places),
            area: Extent::new(0, area),
            checkpoint_blocks,
            required_features: 0,
            data: None,
        }
    }

    pub fn places(&self) -> Extent {
        Extent::new(self.settings().area.end().0, self.places)
    }
}

struct Writing {
    request: Request,
    places: Extent,
}

struct Reading {
    request: RequestId,
    left: u64,
    result: Result<(), IoError>,
}

/// What a test may know and order of the journal of a toy.
#[derive(Default)]
pub struct Gauges {
    pub no_checkpoints: Cell<bool>,
    pub has_room: Cell<bool>,
    pub wants_checkpoint: Cell<bool>,
}

pub struct Toy {
    shape: Shape,
    pub gauges: Rc<Gauges>,
    journal: Journal,
    pub seen: Rc<RefCell<Vec<Seen>>>,
    /// Where each block of the device lies, and its checksum.
    map: BTreeMap<u64, (u64, u32)>,
    free: BTreeSet<u64>,
    /// Places that hold nothing that counts once their place in the journal is durable.
    freed: LsnQueue<u64>,
    written: LsnQueue<RequestId>,
    flushing: VecDeque<(FlushTicket, RequestId)>,
    writes: BTreeMap<u64, Writing>,
    /// Part reads by tag: the read, the part and the checksum it must have.
    parts: BTreeMap<u64, (u64, BufferSlice, u32)>,
    reads: BTreeMap<u64, Reading>,
    held: VecDeque<Request>,
    next_tag: u64,
    closing: bool,
}

impl Toy {
    pub fn new(shape: Shape, settings: JournalSettings) -> Toy {
        let places = shape.places();
        Toy {
            shape,
            gauges: Rc::default(),
            journal: Journal::new(settings),
            seen: Rc::default(),
            map: BTreeMap::new(),
            free: (places.start.0..places.end().0).collect(),
            freed: LsnQueue::default(),
            written: LsnQueue::default(),
            flushing: VecDeque::new(),
            writes: BTreeMap::new(),
            parts: BTreeMap::new(),
            reads: BTreeMap::new(),
            held: VecDeque::new(),
            next_tag: 0,
            closing: false,
        }
    }

    fn checkpoint(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (block, (place, checksum)) in &self.map {
            bytes.extend_from_slice(&block.to_le_bytes());
            bytes.extend_from_slice(&place.to_le_bytes());
            bytes.extend_from_slice(&checksum.to_le_bytes());
        }
        bytes
    }

    fn recover(&mut self, recovery: &Recovery, ctx: &mut Context<'_>) {
        let u64_at = |bytes: &[u8]| u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
        for entry in recovery.checkpoint.chunks_exact(ENTRY_BYTES) {
            let checksum = u32::from_le_bytes(entry[16..].try_into().expect("4 bytes"));
            self.map.insert(u64_at(entry), (u64_at(&entry[8..]), checksum));
        }
        for record in &recovery.records {
            let first = u64_at(&record.payload);
            match (record.kind, record.data) {
                (WRITTEN, Some(data)) => {
                    for (i, checksum) in record.checksums.iter().enumerate() {
                        if record.intact.block(i) {
                            let place = data.start.0 + i as u64;
                            self.map.insert(first + i as u64, (place, *checksum));
                        }
                    }
                }
                (ZEROED, None) => {
                    let blocks = u64_at(&record.payload[8..]);
                    for block in first..first + blocks {
                        self.map.remove(&block);
                    }
                }
                other => unreachable!("a record {other:?}"),
            }
        }
        let used: BTreeSet<u64> = self.map.values().map(|(place, _)| *place).collect();
        assert_eq!(used.len(), self.map.len(), "two blocks share a place");
        self.free.retain(|place| !used.contains(place));
        self.journal.begin(self.checkpoint(), ctx);
    }

    /// Takes the lowest run of places that is long enough.
    fn take_places(&mut self, blocks: u64) -> Option<Extent> {
        let all = self.shape.places();
        let start = (all.start.0..all.end().0.saturating_sub(blocks - 1))
            .find(|start| (*start..start + blocks).all(|place| self.free.contains(&place)))?;
        for place in start..start + blocks {
            self.free.remove(&place);
        }
        Some(Extent::new(start, blocks))
    }

    /// Begins a request that changes something; gives it back when there is no room.
    fn begin(&mut self, request: Request, ctx: &mut Context<'_>) -> Result<(), Request> {
        if let Some(error) = self.journal.failure() {
            ctx.finish(request.id, Err(error));
            return Ok(());
        }
        if !self.journal.has_room() {
            return Err(request);
        }
        match request.operation {
            Operation::Write { .. } => {
                let Some(places) = self.take_places(request.extent.blocks.0) else {
                    return Err(request);
                };
                let tag = self.tag();
                self.issue(Operation::WRITE, places, request.buffer, tag, ctx);
                self.writes.insert(tag, Writing { request, places });
            }
            Operation::Zero { .. } => {
                let mut payload = request.extent.start.0.to_le_bytes().to_vec();
                payload.extend_from_slice(&request.extent.blocks.0.to_le_bytes());
                let lsn = self.journal.append(ZEROED, &payload, None, ctx);
                for block in request.extent.start.0..request.extent.end().0 {
                    let old = self.map.remove(&block);
                    if let Some((place, _)) = old {
                        self.freed.push(lsn, place);
                    }
                }
                self.answer_after(request, lsn, ctx);
            }
            other => unreachable!("{other:?} changes nothing"),
        }
        Ok(())
    }

    fn answer_after(&mut self, request: Request, lsn: Lsn, ctx: &mut Context<'_>) {
        if request.operation.is_durable() {
            let ticket = self.journal.flush(ctx);
            self.flushing.push_back((ticket, request.id));
        } else {
            self.written.push(lsn, request.id);
            self.journal.commit(ctx);
        }
    }

    fn issue(
        &mut self,
        operation: Operation,
        extent: Extent,
        buffer: BufferSlice,
        tag: u64,
        ctx: &mut Context<'_>,
    ) {
        ctx.issue(Issue {
            port: Port(0),
            operation,
            extent,
            buffer,
            cause: imbrex_core::operation::Cause::Host,
            tag: Tag(tag),
        });
    }

    fn tag(&mut self) -> u64 {
        self.next_tag += 1;
        self.next_tag
    }

    fn read(&mut self, request: Request, ctx: &mut Context<'_>) {
        ctx.zero(request.buffer);
        let found: Vec<(u64, u64, u32)> = (request.extent.start.0..request.extent.end().0)
            .enumerate()
            .filter_map(|(i, block)| {
                let (place, checksum) = self.map.get(&block)?;
                Some((i as u64, *place, *checksum))
            })
            .collect();
        if found.is_empty() {
            return ctx.finish(request.id, Ok(()));
        }
        let read = self.tag();
        self.reads.insert(
            read,
            Reading { request: request.id, left: found.len() as u64, result: Ok(()) },
        );
        for (i, place, checksum) in found {
            let tag = self.tag();
            let slice = request.buffer.part(i, 1);
            self.parts.insert(tag, (read, slice, checksum));
            self.issue(Operation::Read, Extent::new(place, 1), slice, tag, ctx);
        }
    }

    fn part_read(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        let (read, slice, expected) = self.parts.remove(&completion.tag.0).expect("a part");
        let mut found = Vec::new();
        ctx.checksum(slice, &mut found);
        let reading = self.reads.get_mut(&read).expect("a read");
        if completion.result.is_err() || found != [expected] {
            reading.result = Err(IoError::Medium);
        }
        reading.left -= 1;
        if reading.left == 0 {
            let reading = self.reads.remove(&read).expect("a read");
            ctx.finish(reading.request, reading.result);
        }
    }

    fn data_written(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        let Writing { request, places } = self.writes.remove(&completion.tag.0).expect("a write");
        let error = completion.result.err().or(self.journal.failure());
        if let Some(error) = error {
            self.free.extend(places.start.0..places.end().0);
            return ctx.finish(request.id, Err(error));
        }
        let mut checksums = Vec::new();
        ctx.checksum(request.buffer, &mut checksums);
        let first = request.extent.start.0;
        let data = DataRef { extent: places, checksums: &checksums };
        let lsn = self.journal.append(WRITTEN, &first.to_le_bytes(), Some(data), ctx);
        for (i, checksum) in checksums.iter().enumerate() {
            let new = (places.start.0 + i as u64, *checksum);
            if let Some((old, _)) = self.map.insert(first + i as u64, new) {
                self.freed.push(lsn, old);
            }
        }
        self.answer_after(request, lsn, ctx);
    }

    fn durable_before(&mut self, lsn: Lsn) {
        while let Some(place) = self.freed.pop_before(lsn) {
            self.free.insert(place);
        }
    }

    fn handle_events(&mut self, ctx: &mut Context<'_>) {
        while let Some(event) = self.journal.next_event() {
            let seen = match event {
                JournalEvent::Recovered(recovery) => {
                    self.recover(&recovery, ctx);
                    Seen::Recovered(recovery.records, recovery.clean)
                }
                JournalEvent::Opened => {
                    ctx.opened(Ok(()));
                    Seen::Opened
                }
                JournalEvent::Refused(error) => {
                    ctx.opened(Err(error.clone()));
                    Seen::Refused(error)
                }
                JournalEvent::Written(lsn) => {
                    while let Some(request) = self.written.pop_up_to(lsn) {
                        ctx.finish(request, Ok(()));
                    }
                    Seen::Written(lsn.0)
                }
                JournalEvent::Flushed { ticket, durable_before } => {
                    while let Some((waits, request)) = self.flushing.front()
                        && *waits <= ticket
                    {
                        ctx.finish(*request, Ok(()));
                        self.flushing.pop_front();
                    }
                    self.durable_before(durable_before);
                    Seen::Flushed(durable_before.0)
                }
                JournalEvent::Checkpointed { durable_before } => {
                    self.durable_before(durable_before);
                    Seen::Checkpointed(durable_before.0)
                }
                JournalEvent::PieceWanted
                | JournalEvent::CopyAdmitted(_)
                | JournalEvent::CopyOut(_)
                | JournalEvent::AnswersReleased => {
                    unreachable!("a journal without copies, whose maps are handed over whole")
                }
                JournalEvent::Closed => {
                    ctx.closed(Ok(()));
                    Seen::Closed
                }
                JournalEvent::Failed(error) => {
                    self.failed(error, ctx);
                    Seen::Failed
                }
            };
            self.seen.borrow_mut().push(seen);
        }
        self.go_on(ctx);
        if let Some(at) = self.journal.new_mark_alarm(ctx) {
            ctx.wake_at(at);
        }
    }

    fn failed(&mut self, error: IoError, ctx: &mut Context<'_>) {
        while let Some(request) = self.written.pop() {
            ctx.finish(request, Err(error));
        }
        for (_, request) in self.flushing.drain(..) {
            ctx.finish(request, Err(error));
        }
        if self.closing {
            ctx.closed(Err(error));
        } else if !self.journal.is_running() {
            ctx.opened(Err(OpenError::Io(error)));
        }
    }

    /// Does what had to wait for room.
    fn go_on(&mut self, ctx: &mut Context<'_>) {
        while let Some(request) = self.held.pop_front() {
            if let Err(request) = self.begin(request, ctx) {
                self.held.push_front(request);
                break;
            }
        }
        self.gauges.has_room.set(self.journal.has_room());
        let wants_checkpoint = self.journal.wants_checkpoint();
        self.gauges.wants_checkpoint.set(wants_checkpoint);
        if wants_checkpoint && !self.closing && !self.gauges.no_checkpoints.get() {
            self.journal.checkpoint(self.checkpoint(), ctx);
        } else if !self.held.is_empty() && !self.freed.is_empty() {
            // What was freed can be used again after a flush.
            self.journal.flush(ctx);
        }
    }
}

impl Layer for Toy {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        match request.operation {
            Operation::Read => self.read(request, ctx),
            Operation::Flush => match self.journal.failure() {
                Some(error) => ctx.finish(request.id, Err(error)),
                None => {
                    let ticket = self.journal.flush(ctx);
                    self.flushing.push_back((ticket, request.id));
                }
            },
            _ => self.held.push_back(request),
        }
        self.handle_events(ctx);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        if self.journal.owns(completion.tag) {
            self.journal.complete(completion, ctx);
        } else if self.parts.contains_key(&completion.tag.0) {
            self.part_read(completion, ctx);
        } else {
            self.data_written(completion, ctx);
        }
        self.handle_events(ctx);
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        let has_room = self.journal.has_room();
        self.journal.mark_if_idle(has_room, ctx);
        self.handle_events(ctx);
    }

    fn open(&mut self, start: Start, ctx: &mut Context<'_>) {
        match start {
            Start::Format(set) => self.journal.format(set, set.member(0), Vec::new(), ctx),
            Start::Recover(set) => self.journal.open(set.map(|set| (set, set.member(0))), ctx),
        }
    }

    fn close(&mut self, ctx: &mut Context<'_>) {
        self.closing = true;
        self.journal.close(self.checkpoint(), ctx);
        self.handle_events(ctx);
    }
}
