//! The smallest layer with a mirrored ledger: it keeps no data at all, only the version of each
//! block, in records.

use imbrex_core::command::{CommandError, CommandId, OnReplacement};
use imbrex_core::durability::{DurabilitySettings, JournalSettings, LayerKind, Recovery};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::layer::{Context, Layer, Port};
use imbrex_core::ledger::{CopyState, Ledger, LedgerEvent, When};
use imbrex_core::lifecycle::Start;
use imbrex_core::operation::{Completion, Operation, Request, RequestId};
use imbrex_core::units::BlockCount;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Blocks that the layer serves.
pub const BLOCKS: u64 = 16;
/// The map is longer than it has to be, so that a checkpoint has pages.
const CHECKPOINT_BYTES: usize = 9_000;
const CHECKPOINT_BLOCKS: u64 = 3;
const RING_BLOCKS: u64 = 16;
const VERSION: u8 = 1;

/// Where the journal lies behind a port.
pub fn journal_at(port: u8) -> JournalSettings {
    let area = JournalSettings::area_blocks_for(CHECKPOINT_BLOCKS, RING_BLOCKS);
    JournalSettings {
        layer: LayerKind::Array,
        port: Port(port),
        member_blocks: BlockCount(area + u64::from(port)),
        // The copies need not lie at the same place.
        area: Extent::new(u64::from(port), area),
        checkpoint_blocks: CHECKPOINT_BLOCKS,
        required_features: 0,
        data: None,
    }
}

/// What a test may know of the layer.
#[derive(Clone, Default, Debug)]
pub struct Known {
    /// The state of each copy after the opening.
    pub opened: Vec<CopyState>,
    /// The state of each copy at the end of the last event.
    pub now: Vec<CopyState>,
    /// Ports of copies that have become out by an error.
    pub out: Vec<Port>,
    /// Ports that alone have the data, if the test says so.
    pub with_data: Option<Vec<Port>>,
}

pub struct CopiesToy {
    ledger: Ledger<RequestId>,
    ports: u8,
    map: BTreeMap<u64, u64>,
    held: VecDeque<Request>,
    /// A new member that is being taken in.
    replacing: Option<(Port, CommandId)>,
    known: Rc<RefCell<Known>>,
}

impl CopiesToy {
    pub fn new(ports: u8, known: &Rc<RefCell<Known>>) -> CopiesToy {
        let copies: Vec<JournalSettings> = (0..ports).map(journal_at).collect();
        CopiesToy {
            ledger: Ledger::mirrored(&copies, DurabilitySettings::default(), &[]),
            ports,
            map: BTreeMap::new(),
            held: VecDeque::new(),
            replacing: None,
            known: Rc::clone(known),
        }
    }

    fn states(&self) -> Vec<CopyState> {
        let ports = (0..self.ports).map(Port);
        ports.map(|port| self.ledger.copy_state(port)).collect()
    }

    fn map_bytes(&self) -> Vec<u8> {
        let words = |(block, version): (&u64, &u64)| [*block, *version].map(u64::to_le_bytes);
        let words = self.map.iter().flat_map(words);
        let mut bytes = words.collect::<Vec<_>>().concat();
        bytes.resize(CHECKPOINT_BYTES, 0xff);
        bytes
    }

    fn take_back(&mut self, recovery: &Recovery) {
        let u64_at = |bytes: &[u8]| u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
        let records = recovery.records.iter().map(|record| &record.payload[..]);
        for entry in recovery.checkpoint.chunks_exact(16).chain(records) {
            if u64_at(entry) < BLOCKS {
                self.map.insert(u64_at(entry), u64_at(&entry[8..]));
            }
        }
    }

    fn write(&mut self, request: Request, ctx: &mut Context<'_>) {
        let bytes = ctx.metadata(request.buffer).expect("buffers of bytes");
        let version = u64::from_le_bytes(bytes[8..16].try_into().expect("8 bytes"));
        let block = request.extent.start.0;
        let record = [block, version].map(u64::to_le_bytes).concat();
        self.ledger.record(VERSION, &record, ctx);
        self.map.insert(block, version);
        let when = match request.operation.is_durable() {
            true => self.ledger.answer_when_flushed(Port(0), request.id, ctx),
            false => self.ledger.answer_when_written(request.id),
        };
        assert_eq!(when, When::Later);
    }

    fn end_command(&mut self, port: Port, result: Result<(), CommandError>, ctx: &mut Context<'_>) {
        if let Some((_, command)) = self.replacing.take_if(|(of, _)| *of == port) {
            ctx.answer_command(command, result);
        }
    }

    fn end_event(&mut self, ctx: &mut Context<'_>) {
        if let Some(ports) = &self.known.borrow().with_data {
            self.ledger.set_with_data(ports.iter().copied());
        }
        while let Some(event) = self.ledger.next_event() {
            match event {
                LedgerEvent::Blank => self.ledger.begin(self.map_bytes(), ctx),
                LedgerEvent::Recovered(recovery) => {
                    self.take_back(&recovery);
                    self.ledger.begin(self.map_bytes(), ctx);
                }
                LedgerEvent::Opened => {
                    self.known.borrow_mut().opened = self.states();
                    ctx.opened(Ok(()));
                }
                LedgerEvent::Refused(error) => ctx.opened(Err(error)),
                LedgerEvent::Written => {
                    while let Some(request) = self.ledger.next_written() {
                        ctx.finish(request, Ok(()));
                    }
                }
                LedgerEvent::Flushed { token, .. } => ctx.finish(token, Ok(())),
                LedgerEvent::PlacesFree | LedgerEvent::PieceWanted | LedgerEvent::Checkpointed => {}
                LedgerEvent::CopyAdmitted(port) => self.end_command(port, Ok(()), ctx),
                LedgerEvent::CopyOut(port) => {
                    self.known.borrow_mut().out.push(port);
                    let words = "the new member has failed".to_owned();
                    self.end_command(port, Err(CommandError::Failed(words)), ctx);
                }
                LedgerEvent::Drain => self.ledger.close(self.map_bytes(), ctx),
                LedgerEvent::Closed(result) => ctx.closed(result),
                LedgerEvent::Failed { error, .. } => self.fail(error, ctx),
            }
        }
        self.go_on(ctx);
        self.ledger.commit(ctx);
        self.ledger.begin_flushes(ctx);
        if let Some(at) = self.ledger.new_mark_alarm(ctx) {
            ctx.wake_at(at);
        }
        self.known.borrow_mut().now = self.states();
    }

    fn go_on(&mut self, ctx: &mut Context<'_>) {
        while self.ledger.has_room()
            && self.ledger.is_running()
            && let Some(request) = self.held.pop_front()
        {
            self.write(request, ctx);
        }
        if self.ledger.wants_checkpoint() {
            self.ledger.checkpoint(self.map_bytes(), ctx);
        }
    }

    fn fail(&mut self, error: IoError, ctx: &mut Context<'_>) {
        while let Some(request) = self.ledger.next_failed() {
            ctx.finish(request, Err(error));
        }
        for request in self.held.drain(..) {
            ctx.finish(request.id, Err(error));
        }
        if let Some((_, command)) = self.replacing.take() {
            let words = "no copy is left".to_owned();
            ctx.answer_command(command, Err(CommandError::Failed(words)));
        }
    }
}

impl Layer for CopiesToy {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        match (request.operation, self.ledger.failure()) {
            (Operation::Read, _) => {
                let block = request.extent.start.0;
                let version = self.map.get(&block).copied().unwrap_or(0);
                let words = [block, version].map(u64::to_le_bytes).concat();
                ctx.fill_metadata(request.buffer, &words);
                // It needs no record. That a copy is lost, or comes in, is recorded first.
                let has_failed = self.ledger.failure().is_some();
                if has_failed || self.ledger.answer_when_written(request.id) == When::Now {
                    ctx.finish(request.id, Ok(()));
                }
            }
            (_, Some(error)) => ctx.finish(request.id, Err(error)),
            (Operation::Flush, None) => {
                let when = self.ledger.answer_when_flushed(Port(1), request.id, ctx);
                assert_eq!(when, When::Later);
            }
            _ => self.held.push_back(request),
        }
        self.end_event(ctx);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        assert!(self.ledger.complete(completion, ctx));
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

    fn lost(&mut self, port: Port, ctx: &mut Context<'_>) {
        let words = "the new member is lost".to_owned();
        self.end_command(port, Err(CommandError::Failed(words)), ctx);
        self.ledger.lose_copy(port, ctx);
        self.end_event(ctx);
    }

    fn on_replacement(&self) -> OnReplacement {
        OnReplacement::Takes
    }

    fn replaced(&mut self, port: Port, command: CommandId, ctx: &mut Context<'_>) {
        self.replacing = Some((port, command));
        self.ledger.admit_copy(port, self.map_bytes(), ctx);
        self.end_event(ctx);
    }
}
