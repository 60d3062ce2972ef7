//! A stack with labels over disks that lose power, hang and fail: a layer that does what the host tells it.

use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind};
use imbrex_core::command::{
    Command, CommandError, CommandId, CommandKind, CommandReply, Fault, OnReplacement,
};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry, Media};
use imbrex_core::engine::{Clock, CommandArrival, Engine, Frontend};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::label::{Label, LabelCopy, LabelledOpenError, Labels, ListedDisk, Mark};
use imbrex_core::layer::{Context, Issue, Layer, Port};
use imbrex_core::lifecycle::{OpenError, Start, Uuid};
use imbrex_core::operation::{Cause, Completion, Operation, Request, Tag};
use imbrex_core::rng::Rng;
use imbrex_core::stack::{Arrival, DiskId, StackBuilder};
use imbrex_core::units::{BLOCK_BYTES, BlockCount, Duration, Instant};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

pub const SET: Uuid = Uuid([6; 16]);
/// Blocks that a disk offers.
pub const BLOCKS: u64 = 10;
const LATENCY_MAX_NS: u64 = 1000;

type Block = Vec<u8>;

/// What all disks have in common.
#[derive(Default)]
pub struct Power {
    /// Operations until it goes; `None`: it stays.
    pub ops_left: Cell<Option<u64>>,
    pub is_off: Cell<bool>,
}

impl Power {
    /// True when an operation is still carried out.
    fn tick(&self) -> bool {
        if let Some(left) = self.ops_left.get() {
            self.is_off.set(left == 0);
            self.ops_left.set(Some(left.saturating_sub(1)));
        }
        !self.is_off.get()
    }
}

/// What is on a disk behind what it offers, and what is wrong with it.
#[derive(Clone, Default)]
pub struct Platter {
    pub label: [Block; 2],
    pub unflushed: Vec<(usize, Block)>,
    pub fails: bool,
    pub hangs: bool,
    /// It hangs whatever it is told.
    pub is_stuck: bool,
}

impl Platter {
    pub fn blank() -> Platter {
        let block = || vec![0; BLOCK_BYTES as usize];
        Platter { label: [block(), block()], ..Platter::default() }
    }

    /// The mark of a copy, durable or not.
    pub fn mark(&self, copy: LabelCopy) -> Option<Mark> {
        let block = &self.label[copy as usize];
        Label::unseal(block, copy, BLOCKS).ok().map(|label| label.mark)
    }

    /// What was not flushed reaches the medium, or not, or in part. What was wrong is right again.
    pub fn cut(&mut self, rng: &mut Rng) {
        for (copy, bytes) in std::mem::take(&mut self.unflushed) {
            match rng.below(3) {
                0 => {}
                1 => self.label[copy] = bytes,
                _ => self.label[copy][40..].copy_from_slice(&bytes[40..]),
            }
        }
        (self.fails, self.hangs, self.is_stuck) = (false, false, false);
    }
}

pub type Shared<T> = Rc<RefCell<T>>;

pub struct TestDisk {
    pub platter: Shared<Platter>,
    pub power: Rc<Power>,
    geometry: Geometry,
    queue: Vec<(Instant, DiskOp)>,
    rng: Rng,
}

impl TestDisk {
    pub fn new(platter: Shared<Platter>, power: Rc<Power>, seed: u64) -> TestDisk {
        let geometry = Geometry::plain(BlockCount(BLOCKS), Media::Conventional);
        TestDisk { platter, power, geometry, queue: Vec::new(), rng: Rng::new(seed, 3) }
    }

    fn execute(&mut self, op: &DiskOp, buffers: &mut Buffers) -> Result<(), IoError> {
        let platter = &mut *self.platter.borrow_mut();
        if platter.fails {
            return Err(IoError::Medium);
        }
        let at = op.extent.start.0.checked_sub(BLOCKS).map(|at| at as usize);
        match (op.operation, at) {
            (Operation::Flush, _) => {
                for (at, bytes) in platter.unflushed.drain(..) {
                    platter.label[at] = bytes;
                }
            }
            (Operation::Write { .. }, Some(at)) => {
                let bytes = buffers.bytes(op.buffer).expect("bytes");
                platter.unflushed.push((at, bytes.to_vec()));
            }
            (Operation::Read, Some(at)) => {
                let bytes = buffers.bytes_mut(op.buffer).expect("bytes");
                bytes.copy_from_slice(&platter.label[at]);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Disk for TestDisk {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn submit(&mut self, now: Instant, op: DiskOp, _buffers: &mut Buffers) {
        let finish = Instant(now.0 + self.rng.below(LATENCY_MAX_NS));
        self.queue.push((finish, op));
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        let due = self.queue.iter().position(|(finish, _)| *finish <= now);
        let is_waiting = self.next_event().is_none_or(|next| next > now);
        let at = due.filter(|_| !is_waiting)?;
        if !self.power.tick() {
            return None;
        }
        let (_, op) = self.queue.remove(at);
        let result = self.execute(&op, buffers);
        Some(DiskCompletion { id: op.id, result })
    }

    fn next_event(&self) -> Option<Instant> {
        let platter = self.platter.borrow();
        let waits = platter.hangs || platter.is_stuck || self.power.is_off.get();
        self.queue.iter().map(|(finish, _)| *finish).min().filter(|_| !waits)
    }

    fn set_fault(
        &mut self,
        _now: Instant,
        fault: Fault,
        _buffers: &mut Buffers,
    ) -> Result<(), CommandError> {
        self.platter.borrow_mut().hangs = fault == Fault::Hang;
        Ok(())
    }
}

/// What the layer does when a request comes.
#[derive(Clone, Copy, Debug)]
pub enum Deed {
    Move,
    Hold(u8, bool),
    Fail(u8),
    /// No longer than this for the label of any disk.
    WaitAtMost(Duration),
}

/// What the layer was told, and has found.
#[derive(Default)]
pub struct Diary {
    pub lost: Vec<u8>,
    /// By port: its mark, and whether it was away.
    pub found: Vec<(Option<Mark>, bool)>,
    pub mark_at_start: Option<Mark>,
    pub mark: Option<Mark>,
    /// Reads of its own that have ended.
    pub reads: u32,
    pub commands: u32,
}

struct Toy {
    ports: u8,
    deeds: Shared<VecDeque<Deed>>,
    diary: Shared<Diary>,
    holds_away: bool,
    /// Of its own reads.
    buffers: Vec<BufferSlice>,
}

impl Layer for Toy {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        while let Some(deed) = self.deeds.borrow_mut().pop_front() {
            match deed {
                Deed::Move => ctx.move_mark(),
                Deed::Hold(port, is_out) => ctx.hold_out(Port(port), is_out),
                Deed::Fail(port) => ctx.fail(Port(port)),
                Deed::WaitAtMost(at_most) => ctx.wait_for_labels_at_most(at_most),
            }
        }
        self.diary.borrow_mut().mark = ctx.mark();
        let buffer = ctx.allocate(BlockCount(1));
        ctx.issue(Issue {
            port: Port(0),
            operation: Operation::Read,
            extent: Extent::new(0, 1),
            buffer,
            cause: Cause::Host,
            tag: Tag(self.buffers.len() as u64),
        });
        self.buffers.push(buffer);
        ctx.finish(request.id, Ok(()));
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        ctx.release(self.buffers[completion.tag.0 as usize]);
        self.diary.borrow_mut().reads += 1;
    }

    fn open(&mut self, _start: Start, ctx: &mut Context<'_>) {
        let mut diary = self.diary.borrow_mut();
        let found = (0..self.ports).map(Port);
        diary.found = found.map(|port| (ctx.member_mark(port), ctx.was_away(port))).collect();
        diary.mark_at_start = ctx.mark();
        let any = (0..self.ports).any(|port| !ctx.is_lost(Port(port)));
        ctx.opened(if any { Ok(()) } else { Err(OpenError::Io(IoError::Lost)) });
    }

    fn lost(&mut self, port: Port, ctx: &mut Context<'_>) {
        self.diary.borrow_mut().lost.push(port.0);
        // The others go on without it, and no answer goes out before their labels say so.
        ctx.move_mark();
    }

    fn holds_away(&self) -> bool {
        self.holds_away
    }

    fn on_replacement(&self) -> OnReplacement {
        OnReplacement::Takes
    }

    fn replaced(&mut self, port: Port, command: CommandId, ctx: &mut Context<'_>) {
        let found = (ctx.member_mark(port), ctx.was_away(port));
        self.diary.borrow_mut().found[usize::from(port.0)] = found;
        ctx.answer_command(command, Ok(()));
    }

    fn command(&mut self, command: Command, ctx: &mut Context<'_>) {
        self.diary.borrow_mut().commands += 1;
        ctx.tell_progress(command.id, 1, 2);
        ctx.answer_command(command.id, Ok(()));
    }

    fn takes(&self, kind: CommandKind) -> bool {
        matches!(kind, CommandKind::Scrub(_))
    }
}

/// Virtual time. It does not pass any more once the power is off.
pub struct TestClock {
    pub now: Instant,
    pub power: Rc<Power>,
}

impl Clock for TestClock {
    fn wait(&mut self, until: Option<Instant>) -> Instant {
        let is_off = self.power.is_off.get();
        assert!(until.is_some() || is_off, "nothing is due, and somebody waits");
        self.now = self.now.max(until.unwrap_or(self.now));
        self.now
    }
}

/// A step of the host: one request, or one command.
pub enum Step {
    /// What the layer is to do; it answers at once.
    Request(Vec<Deed>),
    Command(CommandArrival),
    /// Nothing more comes before this.
    Until(Instant),
}

/// What the host was told, and when.
pub struct Played {
    pub answers: Vec<(Instant, Result<(), IoError>)>,
    pub replies: Vec<(Instant, CommandReply)>,
}

/// Sends one step after another. Requests wait for their answers, commands do not.
struct Host<'a> {
    steps: VecDeque<Step>,
    deeds: Shared<VecDeque<Deed>>,
    power: Rc<Power>,
    waits: bool,
    /// Sends on while answers are missing.
    is_hasty: bool,
    missing: u32,
    answers: Vec<(Instant, Result<(), IoError>)>,
    replies: Vec<(Instant, CommandReply)>,
    /// Sees every answer when it goes out.
    watch: &'a mut dyn FnMut(),
}

impl Frontend for Host<'_> {
    fn next_arrival(&self) -> Option<Instant> {
        match self.steps.front() {
            Some(Step::Request(_)) if !self.waits => Some(Instant::ZERO),
            _ => None,
        }
    }

    fn poll(&mut self, _now: Instant, _buffers: &mut Buffers) -> Option<Arrival> {
        self.next_arrival()?;
        let Some(Step::Request(deeds)) = self.steps.pop_front() else {
            return None;
        };
        self.deeds.borrow_mut().extend(deeds);
        self.waits = !self.is_hasty;
        self.missing += 1;
        Some(Arrival {
            tag: Tag(0),
            operation: Operation::Flush,
            extent: Extent::EMPTY,
            buffer: BufferSlice::EMPTY,
        })
    }

    fn reply(&mut self, now: Instant, completion: Completion, _buffers: &mut Buffers) {
        self.waits = false;
        self.missing -= 1;
        self.answers.push((now, completion.result));
        (self.watch)();
    }

    fn finished(&self) -> bool {
        self.power.is_off.get() || (self.steps.is_empty() && self.missing == 0)
    }

    fn next_command(&self) -> Option<Instant> {
        match self.steps.front() {
            Some(Step::Command(_)) => Some(Instant::ZERO),
            Some(Step::Until(at)) => Some(*at),
            _ => None,
        }
    }

    fn poll_command(&mut self, now: Instant) -> Option<CommandArrival> {
        if matches!(self.steps.front(), Some(Step::Until(at)) if *at <= now) {
            self.steps.pop_front();
        }
        match self.steps.pop_front()? {
            Step::Command(command) => Some(command),
            other => {
                self.steps.push_front(other);
                None
            }
        }
    }

    fn reply_to_command(&mut self, now: Instant, reply: CommandReply) {
        self.replies.push((now, reply));
    }
}

/// A stack over disks.
pub struct World {
    pub engine: Engine,
    pub clock: TestClock,
    pub power: Rc<Power>,
    pub diary: Shared<Diary>,
    deeds: Shared<VecDeque<Deed>>,
}

/// How a stack starts.
pub struct Opening<'a> {
    pub seed: u64,
    pub is_creation: bool,
    pub away: &'a [usize],
    pub numbers: &'a [u16],
    pub holds_away: bool,
}

impl World {
    /// Builds a stack over disks, and lets it come up.
    pub fn open(
        platters: &[Shared<Platter>],
        opening: &Opening<'_>,
    ) -> Result<World, LabelledOpenError> {
        let Opening { seed, is_creation, away, numbers, holds_away } = *opening;
        let power = Rc::new(Power::default());
        let (deeds, diary) = (Shared::default(), Shared::<Diary>::default());
        let mut builder = StackBuilder::new(seed);
        let mut disks: Vec<Box<dyn Disk>> = Vec::new();
        let mut nodes = Vec::new();
        for (at, platter) in (seed..).zip(platters) {
            let disk = TestDisk::new(Rc::clone(platter), Rc::clone(&power), at);
            nodes.push(builder.disk(disk.geometry().clone()));
            disks.push(Box::new(disk));
        }
        let toy = Toy {
            ports: platters.len() as u8,
            deeds: Rc::clone(&deeds),
            diary: Rc::clone(&diary),
            holds_away,
            buffers: Vec::new(),
        };
        let geometry = Geometry::plain(BlockCount(BLOCKS), Media::Conventional);
        let top = builder.layer(Box::new(toy), geometry, &nodes);
        let mut stack = builder.build(top);
        for disk in away {
            stack.lose_disk(DiskId(*disk as u16));
        }
        let mut world = World {
            engine: Engine {
                stack,
                disks,
                buffers: Buffers::new(ContentKind::Bytes),
                in_flight_max: 8,
            },
            clock: TestClock { now: Instant::ZERO, power: Rc::clone(&power) },
            power,
            diary,
            deeds,
        };
        let is_labelled = !is_creation;
        let listed = numbers.iter().map(|number| Some(ListedDisk { number: *number, is_labelled }));
        let labels = Labels::new(SET, &listed.collect::<Vec<_>>());
        let start = if is_creation { Start::Format(SET) } else { Start::Recover(Some(SET)) };
        let World { engine, clock, .. } = &mut world;
        engine.open_labelled(clock, start, labels, seed)?;
        Ok(world)
    }

    /// Plays steps to their end, or until the power goes. Returns the answers and what was said of commands.
    pub fn play(
        &mut self,
        steps: impl IntoIterator<Item = Step>,
        watch: &mut dyn FnMut(),
    ) -> Played {
        self.play_as(steps, watch, false)
    }

    pub fn play_as(
        &mut self,
        steps: impl IntoIterator<Item = Step>,
        watch: &mut dyn FnMut(),
        is_hasty: bool,
    ) -> Played {
        let mut host = Host {
            steps: steps.into_iter().collect(),
            deeds: Rc::clone(&self.deeds),
            power: Rc::clone(&self.power),
            waits: false,
            is_hasty,
            missing: 0,
            answers: Vec::new(),
            replies: Vec::new(),
            watch,
        };
        self.engine.run_frontend(&mut self.clock, &mut host);
        let Host { answers, replies, .. } = host;
        Played { answers, replies }
    }

    /// Goes down in good order.
    pub fn close(&mut self) -> Vec<(usize, IoError)> {
        self.engine.close_labelled(&mut self.clock).expect("it goes down")
    }
}

/// Makes a set of disks.
pub fn created(disks: usize) -> Vec<Shared<Platter>> {
    let platters: Vec<Shared<Platter>> =
        (0..disks).map(|_| Rc::new(RefCell::new(Platter::blank()))).collect();
    let numbers = numbers(disks);
    let opening =
        Opening { seed: 1, is_creation: true, away: &[], numbers: &numbers, holds_away: true };
    World::open(&platters, &opening).expect("blank disks").close();
    platters
}

pub fn numbers(disks: usize) -> Vec<u16> {
    (1..=disks as u16).collect()
}
