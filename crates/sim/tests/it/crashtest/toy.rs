//! The smallest durable layer: a store that writes every block to a fresh place and keeps the map
//! in a journal. It shows what a layer must do to be durable, and tests the journal by itself.

use imbrex_core::buffer::BufferSlice;
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::durability::{
    DataRef, FlushTicket, Intact, Journal, JournalEvent, JournalSettings, LayerKind, Lsn, LsnQueue,
    Recovery,
};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::layer::{Context, Issue, Layer, Port};
use imbrex_core::lifecycle::{OpenError, Start};
use imbrex_core::operation::{Cause, Completion, Operation, Request, RequestId, Tag};
use imbrex_core::planted::PlantedBug;
use imbrex_core::stack::StackBuilder;
use imbrex_core::units::BlockCount;
use imbrex_sim::crashtest::subject::{KnownBlocks, Member, Parts, Subject};
use imbrex_sim::crashtest::workload::Shape;
use std::collections::VecDeque;
use std::rc::Rc;

/// A block lies in a slot: the payload is its address, the data the slot.
const MAP: u8 = 1;
/// Blocks read as zeroes: the payload is the first and how many.
const UNMAP: u8 = 2;
/// Blocks of the device.
pub const BLOCKS: u64 = 96;
/// Places for them.
const SLOTS: u64 = 128;
/// Blocks of the journal's ring.
const RING_BLOCKS: u64 = 8;
/// Bytes of a block in a checkpoint: its slot and checksum.
const ENTRY_BYTES: usize = 8;
/// In a checkpoint, the slot of a block that has none.
const NO_SLOT: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    slot: u32,
    checksum: u32,
}

struct Job {
    request: Request,
    slots: Vec<u32>,
    outstanding: u32,
    result: Result<(), IoError>,
}

pub struct ShadowStore {
    journal: Journal,
    map: Vec<Option<Place>>,
    free: VecDeque<u32>,
    /// Slots that are free when what superseded them is durable.
    superseded: LsnQueue<u32>,
    jobs: Vec<Option<Job>>,
    /// What each operation in flight belongs to: a job and, of a read, the block's checksum.
    parts: Vec<(usize, Option<(BufferSlice, u32)>)>,
    /// Writes without slots yet.
    waiting: VecDeque<usize>,
    /// Jobs whose records are to be appended.
    ready: VecDeque<usize>,
    written: LsnQueue<RequestId>,
    flushed: VecDeque<(FlushTicket, RequestId)>,
    freeing: Option<FlushTicket>,
}

impl ShadowStore {
    const DISK: Port = Port(0);

    pub fn settings() -> JournalSettings {
        let checkpoint = JournalSettings::checkpoint_blocks_for(BLOCKS * ENTRY_BYTES as u64);
        let area = JournalSettings::area_blocks_for(checkpoint, RING_BLOCKS);
        JournalSettings {
            layer: LayerKind::Cache,
            port: ShadowStore::DISK,
            member_blocks: BlockCount(area + SLOTS),
            area: Extent::new(0, area),
            checkpoint_blocks: checkpoint,
            required_features: 0,
            data: None,
        }
    }

    pub fn new() -> ShadowStore {
        ShadowStore {
            journal: Journal::new(ShadowStore::settings()),
            map: vec![None; BLOCKS as usize],
            free: (0..SLOTS as u32).collect(),
            superseded: LsnQueue::default(),
            jobs: Vec::new(),
            parts: Vec::new(),
            waiting: VecDeque::new(),
            ready: VecDeque::new(),
            written: LsnQueue::default(),
            flushed: VecDeque::new(),
            freeing: None,
        }
    }

    fn place_of(&self, slot: u32) -> Extent {
        let start = self.journal.settings().area.end().0;
        Extent::new(start + u64::from(slot), 1)
    }

    fn checkpoint(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for place in &self.map {
            let (slot, checksum) = place.map_or((NO_SLOT, 0), |it| (it.slot, it.checksum));
            bytes.extend_from_slice(&slot.to_le_bytes());
            bytes.extend_from_slice(&checksum.to_le_bytes());
        }
        bytes
    }

    fn take_back(&mut self, recovery: &Recovery, ctx: &Context<'_>) -> Result<(), OpenError> {
        if recovery.checkpoint.len() != self.map.len() * ENTRY_BYTES {
            return Err(OpenError::damaged("checkpoint", "it has another length"));
        }
        let entries = recovery.checkpoint.chunks_exact(ENTRY_BYTES);
        for (place, bytes) in self.map.iter_mut().zip(entries) {
            let slot = u32::from_le_bytes(bytes[..4].try_into().unwrap());
            let checksum = u32::from_le_bytes(bytes[4..].try_into().unwrap());
            *place = (slot != NO_SLOT).then_some(Place { slot, checksum });
        }
        let base = self.journal.settings().area.end().0;
        for record in &recovery.records {
            let word = |at: usize| {
                let bytes = record.payload[at..at + 8].try_into().unwrap();
                u64::from_le_bytes(bytes) as usize
            };
            match (record.kind, record.data) {
                // A block that is not there stays where it was before.
                (MAP, Some(_)) if !record.intact.block(0) => {
                    assert_ne!(record.intact, Intact::All);
                }
                (MAP, Some(data)) => {
                    self.map[word(0)] = Some(Place {
                        slot: (data.start.0 - base) as u32,
                        checksum: record.checksums[0],
                    });
                }
                (UNMAP, None) if ctx.is_planted(PlantedBug::TrimForgottenOnReplay) => {}
                (UNMAP, None) => self.map[word(0)..word(0) + word(8)].fill(None),
                _ => return Err(OpenError::damaged("journal", "a record of no known kind")),
            }
        }
        let used: Vec<u32> = self.map.iter().flatten().map(|place| place.slot).collect();
        self.free = (0..SLOTS as u32).filter(|slot| !used.contains(slot)).collect();
        Ok(())
    }

    fn issue(
        &mut self,
        part: (usize, Option<(BufferSlice, u32)>),
        operation: Operation,
        extent: Extent,
        buffer: BufferSlice,
        ctx: &mut Context<'_>,
    ) {
        self.parts.push(part);
        ctx.issue(Issue {
            port: ShadowStore::DISK,
            operation,
            extent,
            buffer,
            cause: Cause::Host,
            tag: Tag(self.parts.len() as u64 - 1),
        });
    }

    fn read(&mut self, job: usize, request: Request, ctx: &mut Context<'_>) {
        for at in 0..request.extent.blocks.0 {
            let part = request.buffer.part(at, 1);
            match self.map[(request.extent.start.0 + at) as usize] {
                None => ctx.zero(part),
                Some(place) => {
                    self.job(job).outstanding += 1;
                    let extent = self.place_of(place.slot);
                    let expected = Some((part, place.checksum));
                    self.issue((job, expected), Operation::Read, extent, part, ctx);
                }
            }
        }
        if self.job(job).outstanding == 0 {
            self.finish(job, Ok(()), ctx);
        }
    }

    fn job(&mut self, job: usize) -> &mut Job {
        self.jobs[job].as_mut().expect("a job")
    }

    fn finish(&mut self, job: usize, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        let job = self.jobs[job].take().expect("a job");
        ctx.finish(job.request.id, result);
    }

    /// Lets everything go on that can.
    fn settle(&mut self, ctx: &mut Context<'_>) {
        while let Some(event) = self.journal.next_event() {
            self.heed(event, ctx);
        }
        if let Some(error) = self.journal.failure() {
            self.fail_all(error, ctx);
            return;
        }
        if !self.journal.is_running() {
            return;
        }
        while let Some(job) = self.waiting.front().copied() {
            let blocks = self.job(job).request.extent.blocks.0 as usize;
            if self.free.len() < blocks {
                if !self.superseded.is_empty() && self.freeing.is_none() {
                    self.freeing = Some(self.journal.flush(ctx));
                }
                break;
            }
            self.waiting.pop_front();
            self.write(job, ctx);
        }
        while self.journal.has_room()
            && let Some(job) = self.ready.pop_front()
        {
            self.append(job, ctx);
        }
        self.journal.commit(ctx);
        if self.journal.wants_checkpoint() {
            let checkpoint = self.checkpoint();
            self.journal.checkpoint(checkpoint, ctx);
        }
    }

    fn write(&mut self, job: usize, ctx: &mut Context<'_>) {
        let request = self.job(job).request;
        for at in 0..request.extent.blocks.0 {
            let slot = self.free.pop_front().expect("a free slot");
            self.job(job).slots.push(slot);
            self.job(job).outstanding += 1;
            let extent = self.place_of(slot);
            let part = request.buffer.part(at, 1);
            self.issue((job, None), Operation::WRITE, extent, part, ctx);
        }
    }

    /// Appends the records of a job whose data was written, and lets it wait for them.
    fn append(&mut self, job: usize, ctx: &mut Context<'_>) {
        let Job { request, slots, .. } = self.jobs[job].take().expect("a job");
        let start = request.extent.start.0;
        let mut lsn = Lsn(0);
        if slots.is_empty() {
            let mut payload = start.to_le_bytes().to_vec();
            payload.extend(request.extent.blocks.0.to_le_bytes());
            lsn = self.journal.append(UNMAP, &payload, None, ctx);
            let hasty = ctx.is_planted(PlantedBug::TrimReusedEarly);
            for lba in start..request.extent.end().0 {
                self.change(lba, None, lsn, hasty);
            }
        }
        let hasty = ctx.is_planted(PlantedBug::OldLocationReusedEarly);
        for (at, slot) in (0..).zip(slots) {
            let mut checksums = Vec::new();
            ctx.checksum(request.buffer.part(at, 1), &mut checksums);
            let data = DataRef { extent: self.place_of(slot), checksums: &checksums };
            let payload = (start + at).to_le_bytes();
            lsn = self.journal.append(MAP, &payload, Some(data), ctx);
            let checksum = checksums[0];
            self.change(start + at, Some(Place { slot, checksum }), lsn, hasty);
        }
        if request.operation.is_durable() && !ctx.is_planted(PlantedBug::FuaAsPlain) {
            let ticket = self.journal.flush(ctx);
            self.flushed.push_back((ticket, request.id));
        } else {
            self.written.push(lsn, request.id);
        }
    }

    fn change(&mut self, lba: u64, to: Option<Place>, lsn: Lsn, hasty: bool) {
        let old = std::mem::replace(&mut self.map[lba as usize], to);
        match old {
            Some(old) if hasty => self.free.push_front(old.slot),
            Some(old) => self.superseded.push(lsn, old.slot),
            None => {}
        }
    }

    fn heed(&mut self, event: JournalEvent, ctx: &mut Context<'_>) {
        match event {
            JournalEvent::Recovered(recovery) => match self.take_back(&recovery, ctx) {
                Ok(()) => {
                    let checkpoint = self.checkpoint();
                    self.journal.begin(checkpoint, ctx);
                }
                Err(error) => ctx.opened(Err(error)),
            },
            JournalEvent::Opened => ctx.opened(Ok(())),
            JournalEvent::Refused(error) => ctx.opened(Err(error)),
            JournalEvent::Written(lsn) => {
                while let Some(request) = self.written.pop_up_to(lsn) {
                    ctx.finish(request, Ok(()));
                }
            }
            JournalEvent::Flushed { ticket, durable_before } => {
                if self.freeing.is_some_and(|freeing| freeing <= ticket) {
                    self.freeing = None;
                }
                while self.flushed.front().is_some_and(|(place, _)| *place <= ticket) {
                    let (_, request) = self.flushed.pop_front().expect("a request");
                    ctx.finish(request, Ok(()));
                }
                self.reuse(durable_before);
            }
            JournalEvent::Checkpointed { durable_before } => self.reuse(durable_before),
            JournalEvent::PieceWanted
            | JournalEvent::CopyAdmitted(_)
            | JournalEvent::CopyOut(_)
            | JournalEvent::AnswersReleased => {
                unreachable!("a journal without copies")
            }
            JournalEvent::Closed => ctx.closed(Ok(())),
            JournalEvent::Failed(error) => {
                self.fail_all(error, ctx);
                ctx.closed(Err(error));
                ctx.opened(Err(OpenError::Io(error)));
            }
        }
    }

    fn reuse(&mut self, durable_before: Lsn) {
        while let Some(slot) = self.superseded.pop_before(durable_before) {
            self.free.push_back(slot);
        }
    }

    fn fail_all(&mut self, error: IoError, ctx: &mut Context<'_>) {
        for job in self.waiting.drain(..).chain(self.ready.drain(..)) {
            let job = self.jobs[job].take().expect("a job");
            ctx.finish(job.request.id, Err(error));
        }
        while let Some(request) = self.written.pop() {
            ctx.finish(request, Err(error));
        }
        for (_, request) in self.flushed.drain(..) {
            ctx.finish(request, Err(error));
        }
    }
}

impl Layer for ShadowStore {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        self.jobs.push(Some(Job { request, slots: Vec::new(), outstanding: 0, result: Ok(()) }));
        let job = self.jobs.len() - 1;
        match request.operation {
            Operation::Read => self.read(job, request, ctx),
            Operation::Write { .. } => self.waiting.push_back(job),
            Operation::Zero { .. } => self.ready.push_back(job),
            Operation::Flush => {
                self.jobs[job] = None;
                match self.journal.failure() {
                    Some(error) => ctx.finish(request.id, Err(error)),
                    None => {
                        let ticket = self.journal.flush(ctx);
                        self.flushed.push_back((ticket, request.id));
                    }
                }
            }
            _ => ctx.finish(request.id, Err(IoError::NotPermitted)),
        }
        self.settle(ctx);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        if self.journal.owns(completion.tag) {
            self.journal.complete(completion, ctx);
            return self.settle(ctx);
        }
        let (number, expected) = self.parts[completion.tag.0 as usize];
        let mut result = completion.result;
        if let Some((buffer, checksum)) = expected
            && !ctx.is_planted(PlantedBug::ReadCrcSkipped)
        {
            let mut found = Vec::new();
            ctx.checksum(buffer, &mut found);
            if found != [checksum] {
                result = result.and(Err(IoError::Medium));
            }
        }
        let job = self.job(number);
        job.outstanding -= 1;
        job.result = job.result.and(result);
        if job.outstanding == 0 {
            let (result, is_read) = (job.result, expected.is_some());
            if result.is_ok() && !is_read {
                self.ready.push_back(number);
            } else {
                let slots = std::mem::take(&mut self.job(number).slots);
                self.free.extend(slots);
                self.finish(number, result, ctx);
            }
        }
        self.settle(ctx);
    }

    fn open(&mut self, start: Start, ctx: &mut Context<'_>) {
        match start {
            Start::Format(set) => {
                let checkpoint = self.checkpoint();
                self.journal.format(set, set.member(0), checkpoint, ctx);
            }
            Start::Recover(set) => {
                let names = set.map(|set| (set, set.member(0)));
                self.journal.open(names, ctx);
            }
        }
    }

    fn close(&mut self, ctx: &mut Context<'_>) {
        let checkpoint = self.checkpoint();
        self.journal.close(checkpoint, ctx);
        self.settle(ctx);
    }
}

/// The store over one flash disk.
pub fn subject() -> Subject {
    let build = |seed: u64| {
        let geometry = Geometry::plain(ShadowStore::settings().member_blocks, Media::SolidState);
        let mut builder = StackBuilder::new(seed);
        let disk = builder.disk(geometry.clone());
        let told = Geometry::plain(BlockCount(BLOCKS), Media::SolidState);
        let top = builder.layer(Box::new(ShadowStore::new()), told, &[disk]);
        Parts {
            stack: builder.build(top),
            members: vec![Member {
                blocks: Rc::new(JournalOfStore),
                ..Member::new("flash", geometry)
            }],
            keeps_state: true,
            shape: Shape { blocks: BLOCKS, band_blocks: 24, border: None },
        }
    };
    Subject { name: "toy".to_string(), build: Box::new(build), check: None }
}

/// The journal of the store.
struct JournalOfStore;

impl KnownBlocks for JournalOfStore {
    fn record_name(&self, _: u64, kind: u8) -> Option<&'static str> {
        match kind {
            MAP => Some("map"),
            UNMAP => Some("unmap"),
            _ => None,
        }
    }
}
