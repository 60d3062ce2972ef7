//! The smallest layer with a ledger: every block of a write goes to a fresh place on one port, and a
//! host's flush must flush two.

use imbrex_core::buffer::BufferSlice;
use imbrex_core::durability::{
    DurabilitySettings, Intact, JournalSettings, LayerKind, Lsn, Recovery,
};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::layer::{Context, Issue, Layer, Port};
use imbrex_core::ledger::{Ledger, LedgerEvent, Quarantine, When, WrittenData};
use imbrex_core::lifecycle::Start;
use imbrex_core::operation::{Cause, Completion, Operation, Request, Tag};
use imbrex_core::units::BlockCount;
use std::collections::{BTreeMap, VecDeque};

/// Blocks that the layer serves, and places for them.
pub const BLOCKS: u64 = 8;
const PLACES: u64 = 40;
const RING_BLOCKS: u64 = 64;
const CHECKPOINT_BLOCKS: u64 = 1;
/// The only kind of record: its payload is the block.
const WRITTEN: u8 = 1;

const DATA: Port = Port(0);
const OTHER: Port = Port(1);

fn places() -> Extent {
    let area = JournalSettings::area_blocks_for(CHECKPOINT_BLOCKS, RING_BLOCKS);
    Extent::new(area, PLACES)
}

/// Blocks of the first member.
pub fn member_blocks() -> u64 {
    places().end().0
}

/// A request in hand.
#[derive(Clone, Copy)]
struct Job {
    request: Request,
    place: u64,
    /// Ports that have yet to be flushed, or operations in flight.
    left: u32,
}

pub struct LedgerToy {
    ledger: Ledger<u32>,
    jobs: Vec<Job>,
    /// The place of each block, and the checksum of what it holds where one was taken.
    map: BTreeMap<u64, (u64, Option<u32>)>,
    free: VecDeque<u64>,
    quarantine: Quarantine<u64>,
}

impl LedgerToy {
    pub fn new(is_journaled: bool) -> LedgerToy {
        let journal = JournalSettings {
            layer: LayerKind::Cache,
            port: DATA,
            member_blocks: BlockCount(member_blocks()),
            area: Extent::new(0, places().start.0),
            checkpoint_blocks: CHECKPOINT_BLOCKS,
            required_features: 0,
            data: None,
        };
        let ledger = match is_journaled {
            false => Ledger::volatile(),
            true => Ledger::journaled(journal, DurabilitySettings::default(), &[OTHER]),
        };
        LedgerToy {
            ledger,
            jobs: Vec::new(),
            map: BTreeMap::new(),
            free: (places().start.0..places().end().0).collect(),
            quarantine: Quarantine::default(),
        }
    }

    fn map_bytes(&self) -> Vec<u8> {
        let words = |(block, (place, sum)): (&u64, &(u64, Option<u32>))| {
            let sum = u64::from(sum.expect("a journaled ledger takes checksums"));
            [*block, *place, sum].map(u64::to_le_bytes).concat()
        };
        self.map.iter().flat_map(words).collect()
    }

    fn take_back(&mut self, recovery: &Recovery) {
        let u64_at = |bytes: &[u8]| u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
        for entry in recovery.checkpoint.chunks_exact(24) {
            let sum = u64_at(&entry[16..]) as u32;
            self.map.insert(u64_at(entry), (u64_at(&entry[8..]), Some(sum)));
        }
        for record in &recovery.records {
            let place = record.data.expect("a record of data").start.0;
            if record.intact == Intact::All || record.intact.block(0) {
                let known = (place, Some(record.checksums[0]));
                self.map.insert(u64_at(&record.payload), known);
            }
        }
        let map = &self.map;
        self.free.retain(|place| !map.values().any(|(used, _)| used == place));
    }

    fn issue(&self, job: u32, port: Port, operation: Operation, place: u64, ctx: &mut Context<'_>) {
        let is_flush = operation == Operation::Flush;
        ctx.issue(Issue {
            port,
            operation,
            extent: match is_flush {
                true => Extent::EMPTY,
                false => Extent::new(place, 1),
            },
            buffer: match is_flush {
                true => BufferSlice::EMPTY,
                false => self.jobs[job as usize].request.buffer,
            },
            cause: Cause::Host,
            tag: Tag(u64::from(job)),
        });
    }

    fn finish(&self, job: u32, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        ctx.finish(self.jobs[job as usize].request.id, result);
    }

    /// One of the things that a job waits for has happened.
    fn part_done(&mut self, job: u32, ctx: &mut Context<'_>) {
        let entry = &mut self.jobs[job as usize];
        entry.left -= 1;
        if entry.left == 0 {
            self.finish(job, Ok(()), ctx);
        }
    }

    fn data_written(&mut self, job: u32, ctx: &mut Context<'_>) {
        let Job { request, place, .. } = self.jobs[job as usize];
        if let Some(error) = self.ledger.failure() {
            return self.finish(job, Err(error), ctx);
        }
        let block = request.extent.start.0;
        let data = WrittenData { place: Extent::new(place, 1), buffer: request.buffer };
        let (record, sums) = self.ledger.record_write(WRITTEN, &block.to_le_bytes(), data, ctx);
        let known = (place, sums.first().copied());
        if let Some((old, _)) = self.map.insert(block, known) {
            let durable_before = self.ledger.durable_before();
            let until = Lsn(record.0 + 1);
            let free = self.quarantine.hold(old, until, durable_before);
            self.free.extend(free);
        }
        let answer = match request.operation.is_durable() {
            true => self.ledger.answer_when_flushed(DATA, job, ctx),
            false => self.ledger.answer_when_written(job),
        };
        if answer == When::Now {
            self.part_done(job, ctx);
        }
    }

    fn end_event(&mut self, ctx: &mut Context<'_>) {
        while let Some(event) = self.ledger.next_event() {
            match event {
                LedgerEvent::Blank => self.ledger.begin(Vec::new(), ctx),
                LedgerEvent::Recovered(recovery) => {
                    self.take_back(&recovery);
                    self.ledger.begin(self.map_bytes(), ctx);
                }
                LedgerEvent::Opened => ctx.opened(Ok(())),
                LedgerEvent::Refused(error) => ctx.opened(Err(error)),
                LedgerEvent::Written => {
                    while let Some(job) = self.ledger.next_written() {
                        self.part_done(job, ctx);
                    }
                }
                LedgerEvent::Flushed { token, .. } => self.part_done(token, ctx),
                LedgerEvent::PlacesFree => {
                    let durable_before = self.ledger.durable_before();
                    while let Some(place) = self.quarantine.next_free(durable_before) {
                        self.free.push_back(place);
                    }
                }
                LedgerEvent::PieceWanted | LedgerEvent::Checkpointed => {}
                LedgerEvent::Drain => self.ledger.close(self.map_bytes(), ctx),
                LedgerEvent::Closed(result) => ctx.closed(result),
                LedgerEvent::Failed { error, .. } => self.fail(error, ctx),
                LedgerEvent::CopyAdmitted(_) | LedgerEvent::CopyOut(_) => {}
            }
        }
        if self.ledger.wants_checkpoint() {
            self.ledger.checkpoint(self.map_bytes(), ctx);
        }
        self.ledger.commit(ctx);
        self.ledger.begin_flushes(ctx);
        if let Some(at) = self.ledger.new_mark_alarm(ctx) {
            ctx.wake_at(at);
        }
    }

    fn fail(&mut self, error: IoError, ctx: &mut Context<'_>) {
        while let Some(job) = self.ledger.next_failed() {
            // A flush may wait for both ports.
            if self.jobs[job as usize].left > 0 {
                self.jobs[job as usize].left = 0;
                self.finish(job, Err(error), ctx);
            }
        }
    }
}

impl Layer for LedgerToy {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        let job = self.jobs.len() as u32;
        self.jobs.push(Job { request, place: 0, left: 1 });
        let failure = self.ledger.failure();
        match (request.operation, failure) {
            (Operation::Read, _) => match self.map.get(&request.extent.start.0) {
                Some((place, _)) => self.issue(job, DATA, Operation::Read, *place, ctx),
                None => {
                    ctx.zero(request.buffer);
                    self.part_done(job, ctx);
                }
            },
            (_, Some(error)) => self.finish(job, Err(error), ctx),
            (Operation::Flush, None) => {
                self.jobs[job as usize].left = 2;
                for port in [DATA, OTHER] {
                    if self.ledger.answer_when_flushed(port, job, ctx) == When::Now {
                        self.issue(job, port, Operation::Flush, 0, ctx);
                    }
                }
            }
            _ => {
                let place = self.free.pop_front().expect("more places than writes");
                self.jobs[job as usize].place = place;
                self.issue(job, DATA, Operation::WRITE, place, ctx);
            }
        }
        self.end_event(ctx);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        if !self.ledger.complete(completion, ctx) {
            let job = completion.tag.0 as u32;
            match (self.jobs[job as usize].request.operation, completion.result) {
                (_, Err(error)) => self.finish(job, Err(error), ctx),
                (Operation::Write { .. }, Ok(())) => self.data_written(job, ctx),
                _ => self.part_done(job, ctx),
            }
        }
        self.end_event(ctx);
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        let has_room = self.ledger.has_spare_room(1);
        self.ledger.mark_if_idle(has_room, ctx);
        self.end_event(ctx);
    }

    fn open(&mut self, start: Start, ctx: &mut Context<'_>) {
        self.ledger.open(start, 0, ctx);
        self.end_event(ctx);
    }

    fn close(&mut self, ctx: &mut Context<'_>) {
        self.ledger.begin_close();
        self.end_event(ctx);
    }
}
