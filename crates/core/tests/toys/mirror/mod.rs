//! The smallest array: two ports with the same data, durable through a ledger with a copy on each.
//!
//! Every port has the ledger's area at its start and the data behind it. Writes go to both ports
//! and reads to one. A port that is lost is *out*: its data counts for nothing until a new disk in
//! its place is *rebuilt*, block by block from the first. What the ledger keeps is up to which
//! block each port has the data.
//!
//! Data is overwritten in place and bears no checksums, so the disks must not tear blocks. After
//! any end but a good one the ports may differ where writes were under way: before the first
//! request everything is compared, and the first port is copied over the second where they differ.

mod work;

use imbrex_core::command::{Command, CommandError, CommandId, CommandKind, OnReplacement, Without};
use imbrex_core::durability::{DurabilitySettings, JournalSettings, LayerKind, Recovery};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::layer::{Context, Issue, Layer, Port};
use imbrex_core::ledger::{CopyState, Ledger, LedgerEvent, Stage, When};
use imbrex_core::lifecycle::{OpenError, Start};
use imbrex_core::map::ExtentLocks;
use imbrex_core::operation::{Completion, Operation, Request, RequestId, Tag};
use imbrex_core::units::{BlockCount, Instant};
use std::collections::VecDeque;
use work::Work;

/// The only kind of record: a port, and the blocks from the first that it has.
const PROGRESS: u8 = 1;
const RECORD_BYTES: usize = 9;
const CHECKPOINT_BLOCKS: u64 = 1;
const RING_BLOCKS: u64 = 24;
/// Tags with this bit belong to the mirror's own work.
const WORK_BIT: u64 = 1 << 40;
const PORTS: [Port; 2] = [Port(0), Port(1)];

/// Blocks at the start of each port that are the ledger's.
pub fn area_blocks() -> u64 {
    JournalSettings::area_blocks_for(CHECKPOINT_BLOCKS, RING_BLOCKS)
}

/// What the mirror does wrong on purpose, beside the bugs that other layers have too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Flaw {
    #[default]
    None,
    /// A host's write does not go to the port that is being rebuilt.
    RebuildSkipsNewWrites,
    /// A run is copied without a lock against the host's writes.
    RebuildWithoutLock,
    /// The ports are not made the same after a crash.
    NoComparisonAfterCrash,
    /// A flush goes to one port.
    FlushOfOnePort,
    /// An answer does not wait until a loss is recorded.
    AnswerBeforeLossIsRecorded,
    /// A replacement is answered before every copy of the ledger lists it.
    ReplacedBeforeRecorded,
}

/// What waits for the ledger.
#[derive(Clone, Copy, Debug)]
enum Token {
    /// That a port is out.
    Loss,
    /// That the work is done.
    Work,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Key {
    Job(usize),
    Run,
}

/// A request in hand.
struct Job {
    request: Request,
    outstanding: u32,
    /// The ports on which it was done.
    done: [bool; 2],
    error: Option<IoError>,
    /// A read that failed on one port was sent to the other.
    is_retried: bool,
}

/// A port.
#[derive(Clone, Copy, Default)]
struct Side {
    is_in: bool,
    /// Blocks from the first that it has, or is about to have: writes there go to it.
    has: u64,
    /// What the ledger says of that; never more than what is durable.
    recorded: u64,
}

/// The life of the mirror.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Opening,
    Up,
    /// What is under way comes to an end.
    Draining,
    /// The last flush, and the last words of the ledger.
    Closing,
    /// No port has all data.
    Lost,
}

/// A mirror over two ports.
pub struct Mirror {
    blocks: u64,
    ledger: Ledger<Token>,
    life: Life,
    sides: [Side; 2],
    jobs: Vec<Option<Job>>,
    locks: ExtentLocks<Key>,
    granted: VecDeque<Key>,
    /// Answers that wait until the ports lost are recorded.
    held: Vec<(RequestId, Result<(), IoError>)>,
    /// Ports whose loss is not durable yet.
    losses: u32,
    work: Option<Work>,
    /// A port with a new disk, and the command that waits until it is in.
    admitting: Option<(usize, CommandId)>,
    /// Blocks that were not the same on both ports when the mirror came up or was scrubbed.
    differing: u64,
    mark_alarm: Option<Instant>,
    flaw: Flaw,
}

impl Mirror {
    /// A mirror of `blocks` blocks over ports with that many behind the area.
    pub fn new(blocks: u64, is_durable: bool) -> Mirror {
        let copy = |port| JournalSettings {
            layer: LayerKind::Array,
            port,
            member_blocks: BlockCount(area_blocks() + blocks),
            area: Extent::new(0, area_blocks()),
            checkpoint_blocks: CHECKPOINT_BLOCKS,
            required_features: 0,
            data: None,
        };
        let ledger = match is_durable {
            true => Ledger::mirrored(&PORTS.map(copy), DurabilitySettings::default(), &[]),
            false => Ledger::volatile(),
        };
        let side = Side { is_in: true, has: blocks, recorded: blocks };
        Mirror {
            blocks,
            ledger,
            life: Life::Opening,
            sides: [side; 2],
            jobs: Vec::new(),
            locks: ExtentLocks::default(),
            granted: VecDeque::new(),
            held: Vec::new(),
            losses: 0,
            work: None,
            admitting: None,
            differing: 0,
            mark_alarm: None,
            flaw: Flaw::None,
        }
    }

    /// The same with something wrong.
    pub fn flawed(self, flaw: Flaw) -> Mirror {
        Mirror { flaw, ..self }
    }

    /// The map, and with that a checkpoint: what was recorded of each port.
    fn map(&self) -> Vec<u8> {
        self.sides.iter().flat_map(|side| side.recorded.to_le_bytes()).collect()
    }

    fn take_back(&mut self, recovery: &Recovery) -> Result<(), OpenError> {
        let word = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).ok();
        let damaged = |structure| OpenError::damaged(structure, "it says more than there is");
        let mut have: Vec<u64> = recovery.checkpoint.chunks(8).filter_map(word).collect();
        for record in &recovery.records {
            match (record.payload.split_first(), record.payload.len()) {
                (Some((port, blocks)), RECORD_BYTES) if record.kind == PROGRESS && *port < 2 => {
                    have[usize::from(*port)] = word(blocks).unwrap_or(u64::MAX);
                }
                _ => return Err(damaged("record")),
            }
        }
        if have.len() != 2 || have.iter().any(|blocks| *blocks > self.blocks) {
            return Err(damaged("checkpoint"));
        }
        for (side, recorded) in self.sides.iter_mut().zip(have) {
            (side.has, side.recorded) = (recorded, recorded);
        }
        Ok(())
    }

    /// True when a port has all data, and that is durable: a power cut must not find it alone and
    /// lacking.
    fn is_whole(&self, port: usize) -> bool {
        let side = self.sides[port];
        let is_uncertain = |work: &Work| work.is_recording_of(port);
        side.is_in && side.recorded == self.blocks && !self.work.as_ref().is_some_and(is_uncertain)
    }

    fn record_progress(&mut self, port: usize, blocks: u64, ctx: &mut Context<'_>) {
        let mut payload = [port as u8; RECORD_BYTES];
        payload[1..].copy_from_slice(&blocks.to_le_bytes());
        self.ledger.record(PROGRESS, &payload, ctx);
        self.sides[port].recorded = blocks;
    }

    /// Goes on without a port, if the other one has all data. No answer goes out before that is
    /// recorded.
    fn put_out(&mut self, port: usize, ctx: &mut Context<'_>) {
        if self.sides[port].is_in && self.is_whole(1 - port) {
            self.ledger.lose_copy(PORTS[port], ctx);
            self.copy_out(port, ctx);
        }
    }

    /// The ledger counts on a port no more.
    fn copy_out(&mut self, port: usize, ctx: &mut Context<'_>) {
        if !self.sides[port].is_in {
            return;
        }
        self.sides[port].is_in = false;
        self.sides[port].has = 0;
        let other = PORTS[1 - port];
        if self.ledger.answer_when_flushed(other, Token::Loss, ctx) == When::Later {
            self.losses += 1;
        }
        self.stop_work("a port was lost meanwhile", ctx);
    }

    /// No port has all data: nothing can be served any more.
    fn give_up(&mut self, ctx: &mut Context<'_>) {
        self.life = Life::Lost;
        self.losses = 0;
        self.stop_work("both ports are lost", ctx);
        // The ledger must not go on with a port that lacks data: the other one may come back.
        if let Some(lacking) = (0..2).find(|port| !self.is_whole(*port)) {
            self.ledger.lose_copy(PORTS[lacking], ctx);
        }
        for (request, _) in std::mem::take(&mut self.held) {
            ctx.finish(request, Err(IoError::Lost));
        }
        ctx.lose();
    }

    /// The ports that a request goes to.
    fn targets(&self, request: &Request) -> Vec<usize> {
        let start = request.extent.start.0;
        let ins = (0..2).filter(|port| self.sides[*port].is_in);
        match request.operation {
            _ if self.life == Life::Lost => vec![],
            Operation::Read => {
                let first = (start / work::RUN_BLOCKS) as usize & 1;
                let of_both = [first, 1 - first];
                let whole = of_both.into_iter().find(|port| self.is_whole(*port));
                whole.into_iter().collect()
            }
            Operation::Flush if self.flaw == Flaw::FlushOfOnePort => ins.take(1).collect(),
            Operation::Flush => ins.collect(),
            _ if self.flaw == Flaw::RebuildSkipsNewWrites => {
                ins.filter(|port| self.is_whole(*port)).collect()
            }
            _ => ins.filter(|port| start < self.sides[*port].has).collect(),
        }
    }

    fn start(&mut self, job: usize, ctx: &mut Context<'_>) {
        let request = self.jobs[job].as_ref().expect("a job").request;
        let failure = self.ledger.failure();
        if let (Some(error), true) = (failure, request.operation != Operation::Read) {
            return self.end_job(job, Err(error), ctx);
        }
        let targets = self.targets(&request);
        if targets.is_empty() {
            return self.end_job(job, Err(IoError::Lost), ctx);
        }
        self.job(job).outstanding = targets.len() as u32;
        for port in targets {
            self.issue_job(job, port, ctx);
        }
    }

    fn issue_job(&mut self, job: usize, port: usize, ctx: &mut Context<'_>) {
        let request = self.job(job).request;
        let extent = match request.operation {
            Operation::Flush => Extent::EMPTY,
            _ => behind_area(request.extent),
        };
        ctx.issue(Issue {
            port: PORTS[port],
            operation: request.operation,
            extent,
            buffer: request.buffer,
            cause: request.cause,
            tag: Tag((job as u64) << 1 | port as u64),
        });
    }

    fn job(&mut self, job: usize) -> &mut Job {
        self.jobs[job].as_mut().expect("a job")
    }

    fn job_done(
        &mut self,
        job: usize,
        port: usize,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let is_read = self.job(job).request.operation == Operation::Read;
        if result.is_err() && !is_read {
            // What a port holds after a failed write nobody knows.
            self.put_out(port, ctx);
        }
        let other_is_whole = self.is_whole(1 - port);
        let entry = self.job(job);
        entry.done[port] = result.is_ok();
        entry.error = entry.error.or(result.err());
        if is_read && result.is_err() && other_is_whole && !entry.is_retried {
            entry.is_retried = true;
            return self.issue_job(job, 1 - port, ctx);
        }
        entry.outstanding -= 1;
        if entry.outstanding > 0 {
            return;
        }
        let (done, error) = (entry.done, entry.error);
        let is_done = match is_read {
            true => result.is_ok(),
            false => (0..2).any(|port| done[port] && self.is_whole(port)),
        };
        let result = match is_done {
            true => Ok(()),
            false => Err(error.unwrap_or(IoError::Lost)),
        };
        self.end_job(job, result, ctx);
    }

    fn end_job(&mut self, job: usize, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        let ended = self.jobs[job].take().expect("a job");
        if ended.request.operation != Operation::Flush {
            self.unlock(Key::Job(job));
        }
        match self.losses > 0 && self.flaw != Flaw::AnswerBeforeLossIsRecorded {
            true => self.held.push((ended.request.id, result)),
            false => ctx.finish(ended.request.id, result),
        }
    }

    fn unlock(&mut self, key: Key) {
        let granted = &mut self.granted;
        self.locks.unlock(key, |key| granted.push_back(key));
    }

    fn loss_recorded(&mut self, ctx: &mut Context<'_>) {
        self.losses -= 1;
        if self.losses == 0 {
            for (request, result) in std::mem::take(&mut self.held) {
                ctx.finish(request, result);
            }
            self.opened_when_same(ctx);
        }
    }

    /// The ledger has come up. The ports are made the same where they may not be.
    fn ledger_opened(&mut self, ctx: &mut Context<'_>) {
        let is_in = |port: &Port| self.ledger.copy_state(*port) == CopyState::In;
        for (port, is_in) in PORTS.map(|port| is_in(&port)).into_iter().enumerate() {
            self.sides[port].is_in = is_in;
        }
        for (port, lost) in PORTS.map(|port| ctx.is_lost(port)).into_iter().enumerate() {
            if lost {
                self.put_out(port, ctx);
            }
        }
        let both_in = self.sides.iter().all(|side| side.is_in);
        if both_in && self.work.is_some() && self.flaw != Flaw::NoComparisonAfterCrash {
            return self.begin_run(ctx);
        }
        self.work = None;
        self.opened_when_same(ctx);
    }

    fn handle(&mut self, event: LedgerEvent<Token>, ctx: &mut Context<'_>) {
        match event {
            LedgerEvent::Blank => self.ledger.begin(self.map(), ctx),
            LedgerEvent::Recovered(recovery) => match self.take_back(&recovery) {
                Ok(()) => {
                    self.work = (!recovery.clean).then(|| Work::comparison(&self.sides));
                    self.ledger.begin(self.map(), ctx);
                }
                Err(error) => {
                    self.ledger.give_up();
                    ctx.opened(Err(error));
                }
            },
            LedgerEvent::Opened => self.ledger_opened(ctx),
            LedgerEvent::Refused(error) => ctx.opened(Err(error)),
            LedgerEvent::Flushed { token, .. } => match token {
                Token::Loss => self.loss_recorded(ctx),
                Token::Work => self.end_recorded(ctx),
            },
            LedgerEvent::CopyAdmitted(port) => self.admitted(usize::from(port.0), ctx),
            LedgerEvent::CopyOut(port) => {
                self.refuse_admission(usize::from(port.0), ctx);
                self.copy_out(usize::from(port.0), ctx);
            }
            LedgerEvent::Drain => {
                self.life = Life::Draining;
                self.stop_work("the device goes down; it can be asked for again", ctx);
            }
            LedgerEvent::Closed(result) => ctx.closed(result),
            LedgerEvent::Failed { error, .. } => self.failed(error, ctx),
            LedgerEvent::Written | LedgerEvent::PlacesFree | LedgerEvent::Checkpointed => {}
        }
    }

    /// Nothing can be recorded any more.
    fn failed(&mut self, error: IoError, ctx: &mut Context<'_>) {
        while self.ledger.next_failed().is_some() {}
        self.losses = 0;
        for (request, _) in std::mem::take(&mut self.held) {
            ctx.finish(request, Err(error));
        }
        self.stop_work("nothing can be recorded any more", ctx);
        self.leave_recording(ctx);
    }

    fn end_event(&mut self, ctx: &mut Context<'_>) {
        loop {
            if let Some(event) = self.ledger.next_event() {
                self.handle(event, ctx);
            } else if let Some(key) = self.granted.pop_front() {
                match key {
                    Key::Job(job) => self.start(job, ctx),
                    Key::Run => self.read_run(ctx),
                }
            } else {
                break;
            }
        }
        if self.ledger.wants_checkpoint() {
            self.ledger.checkpoint(self.map(), ctx);
        }
        if self.life == Life::Draining && self.work.is_none() && self.admitting.is_none() {
            self.close_when_flushed(ctx);
        }
        self.ledger.commit(ctx);
        self.ledger.begin_flushes(ctx);
        if let Some(at) = self.ledger.new_mark_alarm(ctx) {
            self.mark_alarm = Some(at);
        }
        self.set_alarm(ctx);
    }

    fn set_alarm(&mut self, ctx: &mut Context<'_>) {
        let pause = self.work.as_ref().and_then(Work::paused_until);
        match self.mark_alarm.into_iter().chain(pause).min() {
            Some(at) => ctx.wake_at(at),
            None => ctx.cancel_wake(),
        }
    }

    fn in_ports(&self) -> u64 {
        self.sides.iter().filter(|side| side.is_in).count() as u64
    }
}

/// Where blocks of the mirror lie on a port.
fn behind_area(extent: Extent) -> Extent {
    Extent::new(area_blocks() + extent.start.0, extent.blocks.0)
}

impl Layer for Mirror {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        let free = self.jobs.iter().position(Option::is_none);
        let job = free.unwrap_or(self.jobs.len());
        if free.is_none() {
            self.jobs.push(None);
        }
        self.jobs[job] =
            Some(Job { request, outstanding: 0, done: [false; 2], error: None, is_retried: false });
        let is_flush = request.operation == Operation::Flush;
        if is_flush || self.locks.lock(Key::Job(job), request.extent) {
            self.start(job, ctx);
        }
        self.end_event(ctx);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        if !self.ledger.complete(completion, ctx) {
            let port = (completion.tag.0 & 1) as usize;
            match completion.tag.0 & WORK_BIT == 0 {
                true => {
                    let job = (completion.tag.0 >> 1) as usize;
                    self.job_done(job, port, completion.result, ctx);
                }
                false => self.work_done(port, completion.result, ctx),
            }
        }
        self.end_event(ctx);
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        if self.mark_alarm.is_some_and(|at| at <= ctx.now()) {
            self.mark_alarm = None;
            let has_room = self.ledger.has_spare_room(1);
            self.ledger.mark_if_idle(has_room, ctx);
        }
        self.go_on(ctx);
        self.end_event(ctx);
    }

    fn open(&mut self, start: Start, ctx: &mut Context<'_>) {
        self.ledger.open(start, 0, ctx);
        self.end_event(ctx);
    }

    fn close(&mut self, ctx: &mut Context<'_>) {
        match self.life {
            Life::Lost => ctx.closed(Err(IoError::Lost)),
            _ => self.ledger.begin_close(),
        }
        self.end_event(ctx);
    }

    fn lost(&mut self, port: Port, ctx: &mut Context<'_>) {
        if self.ledger.stage() == Stage::Opening {
            self.ledger.lose_copy(port, ctx);
            return self.end_event(ctx);
        }
        let port = usize::from(port.0);
        self.lose_new_disk(port, ctx);
        match self.is_whole(1 - port) {
            true => self.put_out(port, ctx),
            false if self.is_whole(port) => self.give_up(ctx),
            false => {}
        }
        self.end_event(ctx);
    }

    fn on_replacement(&self) -> OnReplacement {
        OnReplacement::Takes
    }

    fn replaced(&mut self, port: Port, command: CommandId, ctx: &mut Context<'_>) {
        self.admit(usize::from(port.0), command, ctx);
        self.end_event(ctx);
    }

    fn without(&self, is_lost: &dyn Fn(Port) -> bool) -> Without {
        match (0..2).any(|side| self.is_whole(side) && !is_lost(Port(side as u8))) {
            true => Without::GoesOn("the other side serves everything"),
            false => Without::Lost,
        }
    }

    fn takes(&self, kind: CommandKind) -> bool {
        matches!(kind, CommandKind::Rebuild(_) | CommandKind::Scrub(_))
    }

    fn command(&mut self, command: Command, ctx: &mut Context<'_>) {
        match command.kind {
            CommandKind::Rebuild(rate) => self.rebuild(command.id, rate, ctx),
            CommandKind::Scrub(rate) => self.scrub(command.id, rate, ctx),
            _ => ctx.answer_command(command.id, Err(CommandError::NotTaken)),
        }
        self.end_event(ctx);
    }

    fn status(&self, facts: &mut Vec<(&'static str, u64)>) {
        let rebuilt = (0..2).filter(|port| self.sides[*port].is_in);
        let rebuilt = rebuilt.map(|port| self.sides[port].recorded).min();
        facts.push(("ports_in", self.in_ports()));
        facts.push(("rebuilt_blocks", rebuilt.unwrap_or(0)));
        facts.push(("differing_blocks", self.differing));
    }
}
