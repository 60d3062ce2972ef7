//! A hostile little world for stacks: memory disks that finish operations in any order and take
//! effect at any moment in between, and a host that checks every block it reads.

use imbrex_core::buffer::{Buffers, ContentKind, Stamp};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::engine::{Clock, Engine, Frontend};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Completion, Durability, Operation, Tag};
use imbrex_core::rng::Rng;
use imbrex_core::stack::{Arrival, Stack};
use imbrex_core::units::{Instant, Lba};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// What one memory disk holds, and what of it a power cut would take.
#[derive(Default)]
pub struct Medium {
    /// Blocks by physical address; a missing one is zero.
    pub blocks: BTreeMap<u64, Stamp>,
    /// Completed writes that no flush has covered yet, by number.
    pub volatile: Vec<u64>,
    /// Writes completed so far.
    pub writes: u64,
    /// Every write in the order of submission, for tests that compare sequences.
    pub write_log: Vec<Extent>,
    /// Every read, likewise.
    pub read_log: Vec<Extent>,
    /// Operations that failed so far; see [`MemoryDisk::failing`].
    pub faults: u64,
    /// True for a shingled medium; see [`MemoryDisk::destructive`].
    overlap: bool,
}

/// A disk without mechanics, as unhelpful as its contract allows.
pub struct MemoryDisk {
    geometry: Geometry,
    medium: Rc<RefCell<Medium>>,
    rng: Rng,
    queue: Vec<Pending>,
    /// Longest time an operation may take; 0 makes every operation instant and in order.
    latency_max_ns: u64,
    serial: u64,
    /// One in so many of the first so many operations fails; none when zero.
    faults: (u64, u64),
}

struct Pending {
    finish: Instant,
    serial: u64,
    op: DiskOp,
    executed: bool,
    fails: bool,
    volatile_covered: Vec<u64>,
}

impl MemoryDisk {
    pub fn new(geometry: Geometry, seed: u64, latency_max_ns: u64) -> MemoryDisk {
        MemoryDisk {
            geometry,
            medium: Rc::default(),
            rng: Rng::new(seed, 77),
            queue: Vec::new(),
            latency_max_ns,
            serial: 0,
            faults: (0, 0),
        }
    }

    /// Makes about one in `one_in` of the first `operations` operations fail. A write that fails
    /// leaves nothing readable where it was going.
    pub fn failing(self, one_in: u64, operations: u64) -> MemoryDisk {
        MemoryDisk {
            faults: (one_in, operations),
            ..self
        }
    }

    /// Makes the medium a shingled one: the geometry's track table says which tracks overlap, and
    /// a write destroys all of every track that it overlaps.
    pub fn destructive(self) -> MemoryDisk {
        assert!(
            self.geometry.tracks.is_some(),
            "a shingled medium has tracks"
        );
        self.medium.borrow_mut().overlap = true;
        self
    }

    pub fn medium(&self) -> Rc<RefCell<Medium>> {
        Rc::clone(&self.medium)
    }

    fn execute(&mut self, op: &DiskOp, fails: bool, buffers: &mut Buffers) {
        let medium = &mut *self.medium.borrow_mut();
        let write = matches!(op.operation, Operation::Write { .. });
        if fails && write {
            destroy_overlapped(medium, &self.geometry, op.extent);
            for block in op.extent.start.0..op.extent.end().0 {
                medium.blocks.insert(block, Stamp::DESTROYED);
            }
        }
        if fails {
            return;
        }
        match op.operation {
            Operation::Read => {
                let target = buffers.stamps_mut(op.buffer).expect("stamped buffers");
                for (i, stamp) in target.iter_mut().enumerate() {
                    let block = op.extent.start.0 + i as u64;
                    *stamp = medium.blocks.get(&block).copied().unwrap_or(Stamp::ZERO);
                }
            }
            Operation::Write { .. } | Operation::Zero { .. } => {
                destroy_overlapped(medium, &self.geometry, op.extent);
                let source = buffers.stamps(op.buffer).unwrap_or(&[]);
                for i in 0..op.extent.blocks.0 {
                    let stamp = source.get(i as usize).copied().unwrap_or(Stamp::ZERO);
                    medium.blocks.insert(op.extent.start.0 + i, stamp);
                }
            }
            Operation::Flush
            | Operation::ZoneOpen
            | Operation::ZoneClose
            | Operation::ZoneReset
            | Operation::ZoneFinish
            | Operation::ZoneReport => {}
        }
    }
}

fn destroy_overlapped(medium: &mut Medium, geometry: &Geometry, extent: Extent) {
    if !medium.overlap {
        return;
    }
    let tracks = geometry
        .tracks
        .as_ref()
        .expect("a shingled medium has tracks");
    if extent.end().0 <= tracks.conventional_blocks.0 {
        return;
    }
    let start = extent.start.0.max(tracks.conventional_blocks.0);
    let first = tracks.track_of(start);
    let last = tracks.track_of(extent.end().0 - 1);
    for track in first + 1..(last + tracks.overlap_tracks + 1).min(tracks.tracks()) {
        let lost = tracks.extent_of(track);
        for block in lost.start.0..lost.end().0 {
            medium.blocks.insert(block, Stamp::DESTROYED);
        }
    }
}

impl Disk for MemoryDisk {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        let early = self.latency_max_ns == 0 || self.rng.below(2) == 0;
        let (one_in, operations) = self.faults;
        let fails = self.serial < operations && self.rng.below(one_in) == 0;
        if early {
            self.execute(&op, fails, buffers);
        }
        let wait = if self.latency_max_ns == 0 {
            0
        } else {
            self.rng.below(self.latency_max_ns)
        };
        let finish = Instant(now.0 + wait);
        self.serial += 1;
        let mut medium = self.medium.borrow_mut();
        if matches!(op.operation, Operation::Write { .. }) {
            medium.write_log.push(op.extent);
        }
        if op.operation == Operation::Read {
            medium.read_log.push(op.extent);
        }
        let volatile_covered = medium.volatile.clone();
        drop(medium);
        let serial = self.serial;
        self.queue.push(Pending {
            finish,
            serial,
            op,
            executed: early,
            fails,
            volatile_covered,
        });
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        let due = self
            .queue
            .iter()
            .enumerate()
            .filter(|(_, pending)| pending.finish <= now);
        let index = due
            .min_by_key(|(_, pending)| (pending.finish, pending.serial))?
            .0;
        let pending = self.queue.remove(index);
        if !pending.executed {
            self.execute(&pending.op, pending.fails, buffers);
        }
        let mut medium = self.medium.borrow_mut();
        if pending.fails {
            medium.faults += 1;
            return Some(DiskCompletion {
                id: pending.op.id,
                result: Err(IoError::Medium),
            });
        }
        match pending.op.operation {
            Operation::Write { durability } | Operation::Zero { durability, .. } => {
                medium.writes += 1;
                if durability == Durability::Cached {
                    let number = medium.writes;
                    medium.volatile.push(number);
                }
            }
            Operation::Flush => {
                medium
                    .volatile
                    .retain(|number| !pending.volatile_covered.contains(number));
            }
            _ => {}
        }
        Some(DiskCompletion {
            id: pending.op.id,
            result: Ok(()),
        })
    }

    fn next_event(&self) -> Option<Instant> {
        self.queue.iter().map(|pending| pending.finish).min()
    }
}

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
            let span = if rng.below(2) == 0 {
                (blocks / 8).max(length)
            } else {
                blocks
            };
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
            *stamp = Stamp {
                lba,
                version: self.version,
            };
            self.model.insert(lba.0, *stamp);
        }
    }
}

impl Frontend for CheckingHost {
    fn next_arrival(&self) -> Option<Instant> {
        let ready = self.next < self.steps.len() && self.in_flight.len() < self.queue_depth;
        ready.then_some(Instant::ZERO)
    }

    fn poll(&mut self, _now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        if self.in_flight.len() >= self.queue_depth {
            return None;
        }
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
                let operation = if durable {
                    Operation::WRITE_DURABLE
                } else {
                    Operation::WRITE
                };
                (operation, extent, buffer, Expectation::Written(buffer))
            }
            Step::Zero(extent) => {
                (extent.start.0..extent.end().0).for_each(|block| {
                    self.model.remove(&block);
                });
                let durability = Durability::Cached;
                let operation = Operation::Zero {
                    durability,
                    may_unmap: true,
                };
                let none = imbrex_core::buffer::BufferSlice::EMPTY;
                (operation, extent, none, Expectation::Zeroed)
            }
            Step::Flush => {
                let volatile = self
                    .media
                    .iter()
                    .map(|m| m.borrow().volatile.clone())
                    .collect();
                let none = imbrex_core::buffer::BufferSlice::EMPTY;
                (
                    Operation::Flush,
                    Extent::EMPTY,
                    none,
                    Expectation::Flushed(volatile),
                )
            }
        };
        let faults = self.faults();
        self.in_flight.insert(tag, (expectation, faults));
        Some(Arrival {
            tag: Tag(tag),
            operation,
            extent,
            buffer,
        })
    }

    fn reply(&mut self, _now: Instant, completion: Completion, buffers: &mut Buffers) {
        let tag = completion.tag.0;
        let step = self.steps[tag as usize];
        let Some((expectation, faults)) = self.in_flight.remove(&tag) else {
            return self.fail(format!("step {tag} {step:?} was answered twice"));
        };
        let failed = completion.result.is_err();
        if failed && !self.may_fail(step, faults) {
            self.fail(format!(
                "step {tag} {step:?} failed: {:?}",
                completion.result
            ));
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
        self.next == self.steps.len() && self.in_flight.is_empty()
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
    let disks = disks
        .into_iter()
        .map(|disk| Box::new(disk) as Box<dyn Disk>)
        .collect();
    play_on(stack, disks, media, steps, queue_depth)
}

/// Like [`play`], over disks of any kind; `media` are those whose volatile writes and failures the
/// host can watch.
pub fn play_on(
    stack: Stack,
    disks: Vec<Box<dyn Disk>>,
    media: Vec<Rc<RefCell<Medium>>>,
    mut steps: Vec<Step>,
    queue_depth: usize,
) -> Result<Engine, String> {
    let blocks = stack.geometry().blocks.0;
    let last_look = (0..blocks).step_by(16);
    steps.extend(last_look.map(|b| Step::Read(Extent::new(b, 16.min(blocks - b)))));
    let mut engine = Engine {
        stack,
        disks,
        buffers: Buffers::new(ContentKind::Stamped),
        in_flight_max: 64,
    };
    let mut host = CheckingHost::new(steps, queue_depth, media);
    engine.run(&mut JumpingClock::default(), &mut host, &mut |_, _| {});
    match host.failure.take() {
        Some(failure) => Err(failure),
        None => Ok(engine),
    }
}
