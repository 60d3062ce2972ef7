//! A hostile little world for stacks: memory disks that finish operations in any order and take
//! effect at any moment in between, and a host that checks every block it reads.

#[path = "memory_disk.rs"]
mod memory_disk;

pub use memory_disk::{Medium, MemoryDisk};

use imbrex_core::buffer::{Buffers, ContentKind, Stamp};
use imbrex_core::disk::Disk;
use imbrex_core::engine::{Clock, Engine, Frontend};
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::operation::{Completion, Durability, Operation, Tag};
use imbrex_core::rng::Rng;
use imbrex_core::stack::{Arrival, Stack};
use imbrex_core::units::{Instant, Lba};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Jumps to the next event.
#[derive(Default)]
pub struct JumpingClock {
    now: Instant,
}

impl Clock for JumpingClock {
    fn wait(&mut self, until: Option<Instant>) -> Instant {
        let until = until.expect("the stack waits for something that will never come");
        self.now = self.now.max(until);
        self.now
    }
}

/// One step of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Read(Extent),
    Write(Extent),
    WriteDurable(Extent),
    Zero(Extent),
    Flush,
}

/// A random workload over `blocks` blocks.
pub fn random_steps(seed: u64, count: u64, blocks: u64, longest: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed, 5);
    (0..count)
        .map(|_| {
            let length = 1 + rng.below(longest.min(blocks));
            // Half of the requests go to an eighth of the device, so that blocks are overwritten.
            let span = if rng.below(2) == 0 { (blocks / 8).max(length) } else { blocks };
            let extent = Extent::new(rng.below(span - length + 1), length);
            match rng.below(20) {
                0..=6 => Step::Read(extent),
                7..=16 => Step::Write(extent),
                17 => Step::WriteDurable(extent),
                18 => Step::Zero(extent),
                _ => Step::Flush,
            }
        })
        .collect()
}

enum Expectation {
    Blocks(imbrex_core::buffer::BufferSlice, Extent, Vec<Stamp>),
    Written(imbrex_core::buffer::BufferSlice),
    /// The volatile writes of each disk when the flush arrived.
    Flushed(Vec<Vec<u64>>),
    Zeroed,
}

/// Plays steps at a queue depth and checks every answer.
pub struct CheckingHost {
    steps: Vec<Step>,
    next: usize,
    queue_depth: usize,
    version: u64,
    model: BTreeMap<u64, Stamp>,
    /// Blocks whose last write failed: each holds an older or the newer version, or fails to read.
    tainted: BTreeSet<u64>,
    /// With the number of faults before the request was sent.
    in_flight: BTreeMap<u64, (Expectation, u64)>,
    media: Vec<Rc<RefCell<Medium>>>,
    /// Before which steps nothing is sent for how long after the last answer.
    pauses: BTreeMap<usize, u64>,
    /// Until when the present pause lasts.
    pause_until: Option<Instant>,
    /// What went wrong first.
    pub failure: Option<String>,
}

impl CheckingHost {
    pub fn new(
        steps: Vec<Step>,
        queue_depth: usize,
        media: Vec<Rc<RefCell<Medium>>>,
    ) -> CheckingHost {
        CheckingHost {
            steps,
            next: 0,
            queue_depth,
            version: 0,
            model: BTreeMap::new(),
            tainted: BTreeSet::new(),
            in_flight: BTreeMap::new(),
            media,
            pauses: BTreeMap::new(),
            pause_until: None,
            failure: None,
        }
    }

    fn faults(&self) -> u64 {
        self.media.iter().map(|m| m.borrow().faults).sum()
    }

    /// Whether a request may have failed: a disk operation failed meanwhile, or it reads a block
    /// that a failed write has left behind.
    fn may_fail(&self, step: Step, faults_before: u64) -> bool {
        let tainted = |extent: Extent| {
            let blocks = extent.start.0..extent.end().0;
            self.tainted.range(blocks).next().is_some()
        };
        self.faults() > faults_before || matches!(step, Step::Read(extent) if tainted(extent))
    }

    fn is_allowed(&self, block: u64, got: Stamp, expected: Stamp) -> bool {
        let known = got == Stamp::ZERO || got.lba == Lba(block);
        got == expected || (known && self.tainted.contains(&block))
    }

    fn fail(&mut self, message: String) {
        self.failure.get_or_insert(message);
    }

    fn stamp_write(&mut self, extent: Extent, stamps: &mut [Stamp]) {
        self.version += 1;
        for (i, stamp) in stamps.iter_mut().enumerate() {
            let lba = Lba(extent.start.0 + i as u64);
            *stamp = Stamp { lba, version: self.version };
            self.model.insert(lba.0, *stamp);
        }
    }
}

impl Frontend for CheckingHost {
    fn next_arrival(&self) -> Option<Instant> {
        if self.pause_until.is_some() {
            return self.pause_until;
        }
        let pauses = self.pauses.contains_key(&self.next) && !self.in_flight.is_empty();
        let ready = self.next < self.steps.len() && self.in_flight.len() < self.queue_depth;
        (ready && !pauses).then_some(Instant::ZERO)
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        if self.in_flight.len() >= self.queue_depth {
            return None;
        }
        if self.pauses.contains_key(&self.next) && !self.in_flight.is_empty() {
            return None;
        }
        if let Some(pause_ns) = self.pauses.remove(&self.next) {
            self.pause_until = Some(Instant(now.0 + pause_ns));
        }
        if self.pause_until.is_some_and(|until| now < until) {
            return None;
        }
        self.pause_until = None;
        let step = *self.steps.get(self.next)?;
        let tag = self.next as u64;
        self.next += 1;
        let (operation, extent, buffer, expectation) = match step {
            Step::Read(extent) => {
                let buffer = buffers.allocate(extent.blocks.0);
                let expected = (extent.start.0..extent.end().0)
                    .map(|block| self.model.get(&block).copied().unwrap_or(Stamp::ZERO))
                    .collect();
                let expectation = Expectation::Blocks(buffer, extent, expected);
                (Operation::Read, extent, buffer, expectation)
            }
            Step::Write(extent) | Step::WriteDurable(extent) => {
                let buffer = buffers.allocate(extent.blocks.0);
                self.stamp_write(extent, buffers.stamps_mut(buffer).expect("stamped buffers"));
                let durable = matches!(step, Step::WriteDurable(_));
                let operation = if durable { Operation::WRITE_DURABLE } else { Operation::WRITE };
                (operation, extent, buffer, Expectation::Written(buffer))
            }
            Step::Zero(extent) => {
                (extent.start.0..extent.end().0).for_each(|block| {
                    self.model.remove(&block);
                });
                let durability = Durability::Cached;
                let operation = Operation::Zero { durability, may_unmap: true };
                let none = imbrex_core::buffer::BufferSlice::EMPTY;
                (operation, extent, none, Expectation::Zeroed)
            }
            Step::Flush => {
                let volatile = self.media.iter().map(|m| m.borrow().volatile.clone()).collect();
                let none = imbrex_core::buffer::BufferSlice::EMPTY;
                (Operation::Flush, Extent::EMPTY, none, Expectation::Flushed(volatile))
            }
        };
        let faults = self.faults();
        self.in_flight.insert(tag, (expectation, faults));
        Some(Arrival { tag: Tag(tag), operation, extent, buffer })
    }

    fn reply(&mut self, _now: Instant, completion: Completion, buffers: &mut Buffers) {
        let tag = completion.tag.0;
        let step = self.steps[tag as usize];
        let Some((expectation, faults)) = self.in_flight.remove(&tag) else {
            return self.fail(format!("step {tag} {step:?} was answered twice"));
        };
        let failed = completion.result.is_err();
        if failed && !self.may_fail(step, faults) {
            self.fail(format!("step {tag} {step:?} failed: {:?}", completion.result));
        }
        if let Step::Write(extent) | Step::WriteDurable(extent) | Step::Zero(extent) = step {
            for block in extent.start.0..extent.end().0 {
                if failed {
                    self.tainted.insert(block);
                } else {
                    self.tainted.remove(&block);
                }
            }
        }
        match expectation {
            Expectation::Blocks(buffer, ..) if failed => buffers.release(buffer),
            Expectation::Blocks(buffer, extent, expected) => {
                let got = buffers.stamps(buffer).expect("stamped buffers").to_vec();
                if let Some(i) = (0..got.len())
                    .find(|i| !self.is_allowed(extent.start.0 + *i as u64, got[*i], expected[*i]))
                {
                    let block = extent.start.0 + i as u64;
                    self.fail(format!(
                        "step {tag} {step:?}: block {block} reads {:?}, expected {:?}",
                        got[i], expected[i]
                    ));
                }
                buffers.release(buffer);
            }
            Expectation::Written(buffer) => buffers.release(buffer),
            Expectation::Flushed(_) if failed => {}
            Expectation::Flushed(volatile) => {
                for (disk, before) in volatile.iter().enumerate() {
                    let left = self.media[disk].borrow().volatile.clone();
                    if let Some(write) = before.iter().find(|write| left.contains(write)) {
                        self.fail(format!(
                            "step {tag}: the flush left write {write} of disk {disk} volatile"
                        ));
                    }
                }
            }
            Expectation::Zeroed => {}
        }
    }

    fn finished(&self) -> bool {
        self.next == self.steps.len() && self.in_flight.is_empty() && self.pause_until.is_none()
    }
}

/// Runs `steps` on a stack, reads every block once more, and returns the first thing that went
/// wrong, or the engine.
pub fn play(
    stack: Stack,
    disks: Vec<MemoryDisk>,
    steps: Vec<Step>,
    queue_depth: usize,
) -> Result<Engine, String> {
    let media = disks.iter().map(MemoryDisk::medium).collect();
    play_on(stack, boxed(disks), media, steps, queue_depth)
}

/// Like [`play`], with pauses of so many nanoseconds before some steps, in which nothing is in
/// flight for the host.
pub fn play_with_pauses(
    stack: Stack,
    disks: Vec<MemoryDisk>,
    steps: Vec<Step>,
    queue_depth: usize,
    pauses: BTreeMap<usize, u64>,
) -> Result<Engine, String> {
    let media = disks.iter().map(MemoryDisk::medium).collect();
    let mut host = CheckingHost::new(with_a_last_look(&stack, steps), queue_depth, media);
    host.pauses = pauses;
    run(stack, boxed(disks), host)
}

/// Like [`play`], on a stack that comes up first.
pub fn play_opened(
    stack: Stack,
    disks: Vec<MemoryDisk>,
    steps: Vec<Step>,
    queue_depth: usize,
) -> Result<Engine, String> {
    let media = disks.iter().map(MemoryDisk::medium).collect();
    let host = CheckingHost::new(with_a_last_look(&stack, steps), queue_depth, media);
    let mut engine = engine(stack, boxed(disks));
    let opened = engine.open(&mut JumpingClock::default(), Start::Format(Uuid([1; 16])));
    opened.map_err(|(_, error)| error.to_string())?;
    serve(engine, host)
}

fn boxed(disks: Vec<MemoryDisk>) -> Vec<Box<dyn Disk>> {
    let boxed = |disk| Box::new(disk) as Box<dyn Disk>;
    disks.into_iter().map(boxed).collect()
}

/// Like [`play`], over disks of any kind; `media` are those whose volatile writes and failures the
/// host can watch.
pub fn play_on(
    stack: Stack,
    disks: Vec<Box<dyn Disk>>,
    media: Vec<Rc<RefCell<Medium>>>,
    steps: Vec<Step>,
    queue_depth: usize,
) -> Result<Engine, String> {
    let host = CheckingHost::new(with_a_last_look(&stack, steps), queue_depth, media);
    run(stack, disks, host)
}

/// The steps, and every block read once more at the end, from wherever it has ended up.
fn with_a_last_look(stack: &Stack, mut steps: Vec<Step>) -> Vec<Step> {
    let blocks = stack.geometry().blocks.0;
    let last_look = (0..blocks).step_by(16);
    steps.extend(last_look.map(|b| Step::Read(Extent::new(b, 16.min(blocks - b)))));
    steps
}

fn run(stack: Stack, disks: Vec<Box<dyn Disk>>, host: CheckingHost) -> Result<Engine, String> {
    serve(engine(stack, disks), host)
}

fn engine(stack: Stack, disks: Vec<Box<dyn Disk>>) -> Engine {
    Engine { stack, disks, buffers: Buffers::new(ContentKind::Stamped), in_flight_max: 64 }
}

fn serve(mut engine: Engine, mut host: CheckingHost) -> Result<Engine, String> {
    engine.run(&mut JumpingClock::default(), &mut host, &mut |_, _| {});
    match host.failure.take() {
        Some(failure) => Err(failure),
        None => Ok(engine),
    }
}
