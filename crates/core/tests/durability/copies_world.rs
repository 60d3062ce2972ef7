//! A few disks of bytes under a layer with a mirrored ledger, a host that loses and replaces
//! them, and what may be found after the power was cut.

use crate::common::harness::JumpingClock;
use crate::common::journal_disk::{ByteDisk, ByteMedium, Happening, Image};
use crate::copies_toy::{BLOCKS, CopiesToy, Known, journal_at};
use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind};
use imbrex_core::command::{
    Command, CommandError, CommandId, CommandKind, CommandReply, CommandState,
};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::engine::{CommandArrival, Replacement};
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::extent::Extent;
use imbrex_core::layer::{Layer, Port};
use imbrex_core::ledger::CopyState;
use imbrex_core::lifecycle::{OpenError, Start, Uuid};
use imbrex_core::operation::{Completion, Operation, Tag};
use imbrex_core::planted::PlantedBug;
use imbrex_core::stack::{Arrival, DiskId, NodeId, StackBuilder};
use imbrex_core::units::{BlockCount, Duration, Instant};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

pub const SET: Uuid = Uuid([0x5e; 16]);
/// Each disk that ever was begins so many blocks behind the one before in the medium.
const DISK_SPAN: u64 = 1 << 20;
const LATENCY_MAX_NS: u64 = 1_000;

/// A disk that ever was: which one, and the number of the member on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inserted {
    pub disk: u64,
    pub number: u16,
}

/// Where a block of a disk lies in an image of all.
pub fn at_disk(disk: u64, address: u64) -> u64 {
    disk * DISK_SPAN + address
}

/// The blocks of one disk in an image of all.
pub fn of_disk(image: &Image, disk: u64) -> Image {
    let first = disk * DISK_SPAN;
    let blocks = image.range(first..first + DISK_SPAN);
    blocks.map(|(at, block)| (*at, Rc::clone(block))).collect()
}

/// One step of the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    Write(u64),
    WriteDurable(u64),
    Flush,
    /// The disk behind a port fails.
    Lose(u8),
    /// A blank disk comes in its place. The host does not wait for it.
    Replace(u8),
    /// Until all that was asked for is answered.
    Settle,
}

/// Something that a test has to know the moment of, as the number of happenings before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The disk behind this port was lost.
    Lost(u8),
    /// The new disk behind this port, with this member, was offered.
    Offered(u8, Inserted),
    /// It has every record.
    Admitted(u8),
    /// The host was told of something it had asked for.
    Answered,
}

/// A layer, its disks and what it was told.
pub struct World {
    pub medium: Rc<RefCell<ByteMedium>>,
    pub engine: Engine,
    pub known: Rc<RefCell<Known>>,
    disks: Vec<NodeId>,
    /// Blocks of each of them.
    blocks: Vec<u64>,
    clock: JumpingClock,
}

impl World {
    /// A layer over disks that lie in a medium, behind its ports in this order; those without a
    /// disk are missing.
    pub fn over(
        inserted: &[Option<Inserted>],
        medium: &Rc<RefCell<ByteMedium>>,
        seed: u64,
        planted: Option<PlantedBug>,
    ) -> World {
        let known = Rc::new(RefCell::new(Known::default()));
        let ports = inserted.len() as u8;
        let blocks: Vec<u64> = (0..ports).map(|port| journal_at(port).member_blocks.0).collect();
        let toy = Box::new(CopiesToy::new(ports, &known));
        let world = World::of_layer(toy, &blocks, inserted, medium, (seed, planted));
        World { known, ..world }
    }

    /// Another layer over disks with so many blocks.
    pub fn of_layer(
        layer: Box<dyn Layer>,
        blocks: &[u64],
        inserted: &[Option<Inserted>],
        medium: &Rc<RefCell<ByteMedium>>,
        (seed, planted): (u64, Option<PlantedBug>),
    ) -> World {
        let mut builder = StackBuilder::new(seed);
        let geometry = |blocks: u64| Geometry::plain(BlockCount(blocks), Media::SolidState);
        let nodes: Vec<NodeId> =
            blocks.iter().map(|blocks| builder.disk(geometry(*blocks))).collect();
        let top = builder.layer(layer, geometry(BLOCKS), &nodes);
        let mut disks: Vec<Box<dyn imbrex_core::disk::Disk>> = Vec::new();
        for (port, inserted) in (0_u8..).zip(inserted) {
            if let Some(Inserted { number, .. }) = inserted {
                builder.number_member(top, Port(port), *number);
            }
            let base = inserted.map_or(u64::from(u32::MAX) / 2, |it| it.disk * DISK_SPAN);
            let blocks = blocks[usize::from(port)];
            disks.push(Box::new(ByteDisk::at(base, blocks, medium, seed, LATENCY_MAX_NS)));
        }
        let mut stack = builder.build(top);
        for (disk, inserted) in (0..).zip(inserted) {
            if inserted.is_none() {
                stack.lose_disk(DiskId(disk));
            }
        }
        if let Some(bug) = planted {
            stack.plant(bug);
        }
        World {
            medium: Rc::clone(medium),
            engine: Engine {
                stack,
                disks,
                buffers: Buffers::new(ContentKind::Bytes),
                in_flight_max: 64,
            },
            known: Rc::default(),
            disks: nodes,
            blocks: blocks.to_vec(),
            clock: JumpingClock::default(),
        }
    }

    /// A formatted layer over fresh disks, numbered from 0 on.
    pub fn formatted(ports: u8, seed: u64, planted: Option<PlantedBug>) -> World {
        let fresh = |port: u8| Inserted { disk: u64::from(port), number: u16::from(port) };
        let inserted: Vec<_> = (0..ports).map(|port| Some(fresh(port))).collect();
        let mut world = World::over(&inserted, &Rc::default(), seed, planted);
        world.open(Start::Format(SET)).expect("a format");
        world
    }

    pub fn open(&mut self, start: Start) -> Result<(), OpenError> {
        let opened = self.engine.open(&mut self.clock, start);
        opened.map_err(|(_, error)| error)
    }

    pub fn close(&mut self) -> bool {
        self.engine.close(&mut self.clock).is_ok()
    }

    /// The state of each copy after the opening.
    pub fn opened(&self) -> Vec<CopyState> {
        self.known.borrow().opened.clone()
    }

    pub fn play(&mut self, host: &mut Host, steps: &[Step]) {
        host.steps = steps.to_vec();
        host.next = 0;
        host.medium = Rc::clone(&self.medium);
        host.disks.clone_from(&self.disks);
        host.blocks.clone_from(&self.blocks);
        self.engine.run(&mut self.clock, host, &mut |_, _| {});
        let left = self.engine.buffers.allocated();
        assert_eq!(left, 0, "buffers were lost");
    }

    /// The version of each block.
    pub fn read_all(&mut self) -> BTreeMap<u64, Result<u64, ()>> {
        let mut host = Host::reading(1);
        let steps: Vec<Step> = (0..BLOCKS).map(Step::Write).collect();
        self.play(&mut host, &steps);
        host.found
    }
}

/// A layer over what is left of a medium.
pub fn reopen(
    image: Image,
    inserted: &[Option<Inserted>],
    seed: u64,
    planted: Option<PlantedBug>,
) -> (World, Result<(), OpenError>) {
    let medium = ByteMedium { image, ..ByteMedium::default() };
    let medium = Rc::new(RefCell::new(medium));
    let mut world = World::over(inserted, &medium, seed, planted);
    let opened = world.open(Start::Recover(Some(SET)));
    (world, opened)
}

/// Sends requests and commands, and writes down what it was told.
pub struct Host {
    steps: Vec<Step>,
    next: usize,
    queue_depth: usize,
    /// Commands come so long after the last request.
    pub pause: Duration,
    last_at: Instant,
    /// It reads the blocks instead of writing them.
    reads: bool,
    version: u64,
    in_flight: BTreeMap<u64, (Step, BufferSlice, u64)>,
    next_tag: u64,
    commands: BTreeMap<u64, Step>,
    /// The newest version of each block whose write was answered, and as it was when a flush was
    /// sent.
    told: BTreeMap<u64, u64>,
    flushing: BTreeMap<u64, BTreeMap<u64, u64>>,
    pub found: BTreeMap<u64, Result<u64, ()>>,
    pub failures: Vec<Step>,
    pub refused: Vec<CommandError>,
    /// A new disk is offered again at this time.
    again: Option<(Instant, u8)>,
    medium: Rc<RefCell<ByteMedium>>,
    disks: Vec<NodeId>,
    blocks: Vec<u64>,
    next_disk: u64,
    pub events: Vec<(usize, Event)>,
}

impl Host {
    pub fn new(queue_depth: usize) -> Host {
        Host {
            steps: Vec::new(),
            next: 0,
            queue_depth,
            pause: Duration(0),
            last_at: Instant::ZERO,
            reads: false,
            version: 0,
            in_flight: BTreeMap::new(),
            next_tag: 0,
            commands: BTreeMap::new(),
            told: BTreeMap::new(),
            flushing: BTreeMap::new(),
            found: BTreeMap::new(),
            failures: Vec::new(),
            refused: Vec::new(),
            again: None,
            medium: Rc::default(),
            disks: Vec::new(),
            blocks: Vec::new(),
            next_disk: 10,
            events: Vec::new(),
        }
    }

    /// A host that reads the blocks that it is to write.
    pub fn reading(queue_depth: usize) -> Host {
        Host { reads: true, ..Host::new(queue_depth) }
    }

    /// A host that knows what was sent before.
    pub fn after(mut self, happenings: &[Happening]) -> Host {
        for happening in happenings {
            if let Happening::Sent { version, .. } = happening {
                self.version = self.version.max(*version);
            }
        }
        self
    }

    fn saw(&mut self, event: Event) {
        let moment = self.medium.borrow().happenings.len();
        self.events.push((moment, event));
    }

    fn happened(&self, happening: Happening) {
        self.medium.borrow_mut().happenings.push(happening);
    }

    /// The next step, if it is one for commands or not.
    fn step(&self, is_command: bool) -> Option<Step> {
        let step = *self.steps.get(self.next)?;
        (matches!(step, Step::Lose(_) | Step::Replace(_)) == is_command).then_some(step)
    }

    fn is_settled(&self) -> bool {
        self.in_flight.is_empty() && self.commands.is_empty() && self.again.is_none()
    }

    /// Passes over steps that have nothing left to wait for.
    fn pass(&mut self) {
        while self.steps.get(self.next) == Some(&Step::Settle) && self.is_settled() {
            self.next += 1;
        }
    }
}

impl Frontend for Host {
    fn next_arrival(&self) -> Option<Instant> {
        let is_ready = match self.step(false)? {
            Step::Settle => self.is_settled(),
            _ => self.in_flight.len() < self.queue_depth,
        };
        is_ready.then_some(Instant::ZERO)
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        self.pass();
        let step = self.step(false)?;
        if step == Step::Settle || self.in_flight.len() >= self.queue_depth {
            return None;
        }
        self.next += 1;
        self.next_tag += 1;
        self.last_at = now;
        let tag = self.next_tag;
        let arrival =
            |operation, extent, buffer| Arrival { tag: Tag(tag), operation, extent, buffer };
        let (Step::Write(block) | Step::WriteDurable(block)) = step else {
            self.in_flight.insert(tag, (step, BufferSlice::EMPTY, 0));
            self.flushing.insert(tag, self.told.clone());
            return Some(arrival(Operation::Flush, Extent::EMPTY, BufferSlice::EMPTY));
        };
        let (buffer, extent) = (buffers.allocate(1), Extent::new(block, 1));
        let operation = match (self.reads, step) {
            (true, _) => Operation::Read,
            (false, Step::Write(_)) => Operation::WRITE,
            _ => Operation::WRITE_DURABLE,
        };
        if !self.reads {
            self.version += 2;
            let version = self.version;
            self.happened(Happening::Sent { block, version });
            let bytes = buffers.bytes_mut(buffer).expect("buffers of bytes");
            bytes[8..16].copy_from_slice(&version.to_le_bytes());
        }
        self.in_flight.insert(tag, (step, buffer, self.version));
        Some(arrival(operation, extent, buffer))
    }

    fn reply(&mut self, _now: Instant, completion: Completion, buffers: &mut Buffers) {
        let waited = self.in_flight.remove(&completion.tag.0);
        let (step, buffer, version) = waited.expect("an answer to a request");
        match (step, completion.result) {
            (_, Err(_)) => self.failures.push(step),
            (Step::Write(block) | Step::WriteDurable(block), Ok(())) if self.reads => {
                let bytes = buffers.bytes(buffer).expect("buffers of bytes");
                let version = u64::from_le_bytes(bytes[8..16].try_into().expect("8 bytes"));
                self.found.insert(block, Ok(version));
            }
            (Step::Write(block), Ok(())) => {
                self.told.insert(block, version);
            }
            (Step::WriteDurable(block), Ok(())) => {
                self.told.insert(block, version);
                self.happened(Happening::Durable { block, version });
            }
            (_, Ok(())) => {
                let versions = self.flushing.remove(&completion.tag.0).expect("a flush");
                self.happened(Happening::Flushed { versions });
            }
        }
        if completion.result.is_ok() {
            self.saw(Event::Answered);
        }
        buffers.release(buffer);
    }

    fn finished(&self) -> bool {
        let rest = &self.steps[self.next..];
        self.is_settled() && rest.iter().all(|step| *step == Step::Settle)
    }

    fn next_command(&self) -> Option<Instant> {
        let again = self.again.map(|(at, _)| at);
        again.or(self.step(true).map(|_| self.last_at + self.pause))
    }

    fn poll_command(&mut self, now: Instant) -> Option<CommandArrival> {
        self.pass();
        let step = match self.again.take_if(|(at, _)| *at <= now) {
            Some((_, port)) => Step::Replace(port),
            None => {
                let is_due = self.again.is_none() && now >= self.last_at + self.pause;
                let step = self.step(true).filter(|_| is_due)?;
                self.next += 1;
                step
            }
        };
        self.next_tag += 1;
        let id = CommandId(self.next_tag);
        self.commands.insert(id.0, step);
        let (Step::Lose(port) | Step::Replace(port)) = step else { unreachable!("no command") };
        if let Step::Lose(_) = step {
            self.saw(Event::Lost(port));
            return Some(CommandArrival::Command {
                node: self.disks[usize::from(port)],
                command: Command { id, kind: CommandKind::Fail },
            });
        }
        let disk = self.next_disk;
        self.next_disk += 1;
        let number = disk as u16;
        self.saw(Event::Offered(port, Inserted { disk, number }));
        let blocks = self.blocks[usize::from(port)];
        let with = ByteDisk::at(disk * DISK_SPAN, blocks, &self.medium, disk, LATENCY_MAX_NS);
        Some(CommandArrival::Replace(Replacement {
            id,
            disk: DiskId(u16::from(port)),
            with: Box::new(with),
            first_member: number,
        }))
    }

    fn reply_to_command(&mut self, now: Instant, reply: CommandReply) {
        let CommandState::Ended(result) = reply.state else {
            return;
        };
        let step = self.commands.remove(&reply.id.0).expect("a command");
        match (step, result) {
            (Step::Replace(port), Ok(_)) => self.saw(Event::Admitted(port)),
            (Step::Replace(port), Err(CommandError::NotNow(_))) => {
                // The lost disk has something in flight still.
                self.again = Some((now + Duration(100), port));
            }
            (_, Err(error)) => self.refused.push(error),
            _ => {}
        }
    }
}
