//! A layer that asks a scheduler for what a script says, over a disk that takes a drawn time for each operation.

use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind};
use imbrex_core::counters::Counter;
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry, Media};
use imbrex_core::engine::{Clock, Engine};
use imbrex_core::extent::Extent;
use imbrex_core::flush_failure::FlushFailure;
use imbrex_core::layer::{Context, Issue, Layer, Port};
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::operation::{Cause, Completion, Operation, Request, Tag};
use imbrex_core::planted::PlantedBug;
use imbrex_core::rng::Rng;
use imbrex_core::scheduler::{Policy, Scheduler, SchedulerSettings};
use imbrex_core::stack::StackBuilder;
use imbrex_core::units::{BlockCount, Duration, Instant};
use std::cell::RefCell;
use std::rc::Rc;

pub const BLOCKS: u64 = 1000;

/// Something that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub at: Instant,
    pub operation: Operation,
    pub extent: Extent,
    pub cause: Cause,
}

impl Asked {
    /// Something that is no part of a cleaning.
    pub fn new(at: Instant, operation: Operation, extent: Extent) -> Asked {
        Asked { at, operation, extent, cause: Cause::Host }
    }
}

/// What has become of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// When it came to the disk.
    pub dispatched: Instant,
    /// When the disk was done.
    pub ended: Instant,
}

/// What the disk has done, by the numbers of what was asked for.
#[derive(Default, Debug)]
pub struct Log {
    /// In the order of dispatch.
    pub order: Vec<usize>,
    pub done: Vec<Option<Done>>,
    /// In the order in which operations took effect.
    pub effects: Vec<usize>,
}

/// What a run is made of.
pub struct World {
    pub policy: Policy,
    pub max_wait: Option<Duration>,
    pub clean_wait: Option<Duration>,
    pub device_depth: u32,
    /// The least and the most time of an operation.
    pub service_ns: (u64, u64),
    pub seed: u64,
    pub plant: Option<PlantedBug>,
}

impl World {
    /// One operation at a time, each of 100 ns.
    pub fn of(policy: Policy) -> World {
        let service_ns = (100, 100);
        World {
            policy,
            max_wait: None,
            clean_wait: None,
            device_depth: 1,
            service_ns,
            seed: 1,
            plant: None,
        }
    }

    /// Plays a script, which is in the order of its instants. Returns what the disk has done, and what was counted.
    pub fn play(&self, script: &[Asked]) -> (Log, impl Fn(Counter) -> u64 + use<>) {
        let geometry = Geometry::plain(BlockCount(BLOCKS), Media::Conventional);
        let log = Rc::new(RefCell::new(Log { done: vec![None; script.len()], ..Log::default() }));
        let mut builder = StackBuilder::new(self.seed);
        let disk = builder.disk(geometry.clone());
        let settings = SchedulerSettings {
            policy: self.policy.clone(),
            max_wait: self.max_wait,
            clean_wait: self.clean_wait,
            device_depth: self.device_depth,
        };
        let layer = Scheduler::new(settings, &FlushFailure::default());
        let scheduler = builder.layer(Box::new(layer), geometry.clone(), &[disk]);
        let crowd = Crowd { script: script.to_vec(), next: 0, ended: 0 };
        let top = builder.layer(Box::new(crowd), geometry.clone(), &[scheduler]);
        let mut stack = builder.build(top);
        self.plant.into_iter().for_each(|bug| stack.plant(bug));
        let drawn = DrawnDisk {
            geometry,
            script: script.to_vec(),
            log: Rc::clone(&log),
            in_flight: Vec::new(),
            rng: Rng::new(self.seed, 3),
            service_ns: self.service_ns,
        };
        let mut engine = Engine {
            stack,
            disks: vec![Box::new(drawn)],
            buffers: Buffers::new(ContentKind::Counted),
            in_flight_max: 1,
        };
        engine.open(&mut Jumping(Instant::ZERO), Start::Format(Uuid([0; 16]))).expect("it opens");
        let counts = engine.stack.counts(scheduler).clone();
        let log = std::mem::take(&mut *log.borrow_mut());
        (log, move |counter| counts.counter(counter))
    }
}

struct Jumping(Instant);

impl Clock for Jumping {
    fn wait(&mut self, until: Option<Instant>) -> Instant {
        self.0 = self.0.max(until.expect("something is due"));
        self.0
    }
}

/// Asks for everything when it comes up, and is up when all was answered.
struct Crowd {
    script: Vec<Asked>,
    next: usize,
    ended: usize,
}

impl Crowd {
    fn ask(&mut self, ctx: &mut Context<'_>) {
        while let Some(asked) = self.script.get(self.next).copied() {
            if asked.at > ctx.now() {
                return ctx.wake_at(asked.at);
            }
            let buffer = match asked.operation {
                Operation::Flush => BufferSlice::EMPTY,
                _ => ctx.allocate(asked.extent.blocks),
            };
            ctx.issue(Issue {
                port: Port(0),
                operation: asked.operation,
                extent: asked.extent,
                buffer,
                cause: asked.cause,
                tag: Tag(self.next as u64),
            });
            self.next += 1;
        }
    }
}

impl Layer for Crowd {
    fn submit(&mut self, _request: Request, _ctx: &mut Context<'_>) {}

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        completion.result.expect("the disk does not fail");
        self.ended += 1;
        if self.ended == self.script.len() {
            ctx.opened(Ok(()));
        }
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        self.ask(ctx);
    }

    fn open(&mut self, _start: Start, ctx: &mut Context<'_>) {
        self.ask(ctx);
    }
}

/// A disk on which an operation takes effect when it ends.
struct DrawnDisk {
    geometry: Geometry,
    script: Vec<Asked>,
    log: Rc<RefCell<Log>>,
    in_flight: Vec<(Instant, usize, DiskOp)>,
    rng: Rng,
    service_ns: (u64, u64),
}

impl Disk for DrawnDisk {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn submit(&mut self, now: Instant, op: DiskOp, _buffers: &mut Buffers) {
        let mut log = self.log.borrow_mut();
        let is_it = |number: &usize| {
            let asked = self.script[*number];
            let is_same = (asked.extent, asked.operation) == (op.extent, op.operation);
            log.done[*number].is_none() && is_same
        };
        let number = (0..self.script.len()).find(is_it).expect("what was asked for");
        let (least, most) = self.service_ns;
        let ended = now + Duration(least + self.rng.below(most - least + 1));
        log.done[number] = Some(Done { dispatched: now, ended });
        log.order.push(number);
        self.in_flight.push((ended, number, op));
    }

    fn poll(&mut self, now: Instant, _buffers: &mut Buffers) -> Option<DiskCompletion> {
        let due = self.in_flight.iter().enumerate().filter(|(_, (ended, ..))| *ended <= now);
        let (at, _) = due.min_by_key(|(_, (ended, number, _))| (*ended, *number))?;
        let (_, number, op) = self.in_flight.remove(at);
        self.log.borrow_mut().effects.push(number);
        Some(DiskCompletion { id: op.id, result: Ok(()) })
    }

    fn next_event(&self) -> Option<Instant> {
        self.in_flight.iter().map(|(ended, ..)| *ended).min()
    }
}
