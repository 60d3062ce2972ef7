//! Caches over disks that fail: an error reaches the host, no answered write is ever lost, and writes
//! that fail make no reads of other blocks fail.

use crate::common::harness::{JumpingClock, MemoryDisk, Step, random_steps};
use crate::stacks::{cache_stack, policies, settings};
use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind, Stamp};
use imbrex_core::cache::CacheMode;
use imbrex_core::counters::Gauge;
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Completion, Durability, Operation, Tag};
use imbrex_core::rng::Rng;
use imbrex_core::stack::Arrival;
use imbrex_core::units::{Instant, Lba};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

const BLOCKS: u64 = 80;
/// Steps after the last fault that may still meet an operation refused before it.
const SETTLING_STEPS: usize = 80;

/// Which operations of a disk fail, out of 100.
#[derive(Clone, Copy, Default, Debug)]
struct Faults {
    reads: u64,
    writes: u64,
}

/// A disk that refuses some operations, after a while and without effect.
struct FailingDisk {
    disk: MemoryDisk,
    faults: Rc<Cell<Faults>>,
    error: IoError,
    rng: Rng,
    refused: Vec<(Instant, DiskOp)>,
}

impl Disk for FailingDisk {
    fn geometry(&self) -> &Geometry {
        self.disk.geometry()
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        let share = match op.operation {
            Operation::Read => self.faults.get().reads,
            Operation::Write { .. } | Operation::Zero { .. } => self.faults.get().writes,
            _ => 0,
        };
        if self.rng.below(100) < share {
            let finish = Instant(now.0 + self.rng.below(1_000));
            self.refused.push((finish, op));
        } else {
            self.disk.submit(now, op, buffers);
        }
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        if let Some(at) = self.refused.iter().position(|(finish, _)| *finish <= now) {
            return Some(DiskCompletion {
                id: self.refused.remove(at).1.id,
                result: Err(self.error),
            });
        }
        self.disk.poll(now, buffers)
    }

    fn next_event(&self) -> Option<Instant> {
        let refused = self.refused.iter().map(|(finish, _)| *finish);
        refused.chain(self.disk.next_event()).min()
    }
}

/// A host that knows what each block may hold: what the last answered write put there, or what a
/// failed one since may have put there.
struct ForgivingHost {
    steps: Vec<Step>,
    next: usize,
    queue_depth: usize,
    /// Steps that may fail: the later ones run on disks that have recovered.
    faulty_steps: usize,
    faults: [Rc<Cell<Faults>>; 2],
    may_hold: BTreeMap<u64, Vec<Stamp>>,
    /// Blocks whose last write has failed.
    unsure: BTreeSet<u64>,
    /// Only writes are refused: reads of other blocks must not fail.
    reads_go_on: bool,
    in_flight: BTreeMap<u64, BufferSlice>,
    errors: Vec<IoError>,
    failure: Option<String>,
}

impl ForgivingHost {
    fn written(&mut self, extent: Extent, version: u64, failed: bool) {
        for lba in extent.start.0..extent.end().0 {
            let stamp = match version {
                0 => Stamp::ZERO,
                version => Stamp { lba: Lba(lba), version },
            };
            let may_hold = self.may_hold.entry(lba).or_insert(vec![Stamp::ZERO]);
            if !failed {
                may_hold.clear();
            }
            may_hold.push(stamp);
            match failed {
                true => self.unsure.insert(lba),
                false => self.unsure.remove(&lba),
            };
        }
    }

    fn read(&mut self, tag: u64, extent: Extent, got: &[Stamp]) {
        for (lba, stamp) in (extent.start.0..).zip(got) {
            let may_hold = self.may_hold.entry(lba).or_insert(vec![Stamp::ZERO]);
            if !may_hold.contains(stamp) {
                self.failure.get_or_insert(format!(
                    "step {tag}: block {lba} reads {stamp:?}, expected one of {may_hold:?}"
                ));
            }
            // What was seen once must stay.
            *may_hold = vec![*stamp];
        }
    }
}

impl Frontend for ForgivingHost {
    fn next_arrival(&self) -> Option<Instant> {
        let quiet = self.next == self.faulty_steps && !self.in_flight.is_empty();
        let ready = self.next < self.steps.len() && self.in_flight.len() < self.queue_depth;
        (ready && !quiet).then_some(Instant::ZERO)
    }

    fn poll(&mut self, _now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        self.next_arrival()?;
        if self.next == self.faulty_steps {
            for faults in &self.faults {
                faults.set(Faults::default());
            }
        }
        let tag = self.next as u64;
        let step = self.steps[self.next];
        self.next += 1;
        let (operation, extent, blocks) = match step {
            Step::Read(extent) => (Operation::Read, extent, extent.blocks.0),
            Step::Write(extent) => (Operation::WRITE, extent, extent.blocks.0),
            Step::WriteDurable(extent) => (Operation::WRITE_DURABLE, extent, extent.blocks.0),
            Step::Zero(extent) => {
                let zero = Operation::Zero { durability: Durability::Cached, may_unmap: true };
                (zero, extent, 0)
            }
            Step::Flush => (Operation::Flush, Extent::EMPTY, 0),
        };
        let buffer = buffers.allocate(blocks);
        for (i, stamp) in (0..).zip(buffers.stamps_mut(buffer).expect("stamped buffers")) {
            *stamp = Stamp { lba: Lba(extent.start.0 + i), version: tag + 1 };
        }
        self.in_flight.insert(tag, buffer);
        Some(Arrival { tag: Tag(tag), operation, extent, buffer })
    }

    fn reply(&mut self, _now: Instant, completion: Completion, buffers: &mut Buffers) {
        let tag = completion.tag.0;
        let buffer = self.in_flight.remove(&tag).expect("one answer each");
        let failed = completion.result.is_err();
        self.errors.extend(completion.result.err());
        // The cache may still be busy with operations that were refused before.
        let settled = self.faulty_steps + SETTLING_STEPS;
        if failed && tag as usize >= settled {
            let step = self.steps[tag as usize];
            self.failure.get_or_insert(format!("step {tag} {step:?} failed on sound disks"));
        }
        match self.steps[tag as usize] {
            Step::Read(extent) if failed => {
                let mut blocks = extent.start.0..extent.end().0;
                if self.reads_go_on && !blocks.any(|lba| self.unsure.contains(&lba)) {
                    self.failure.get_or_insert(format!("step {tag}: a read of {extent:?} failed"));
                }
            }
            Step::Read(extent) => {
                let got = buffers.stamps(buffer).expect("stamped buffers").to_vec();
                self.read(tag, extent, &got);
            }
            Step::Write(extent) | Step::WriteDurable(extent) => {
                self.written(extent, tag + 1, failed);
            }
            Step::Zero(extent) => self.written(extent, 0, failed),
            Step::Flush => {}
        }
        buffers.release(buffer);
    }

    fn finished(&self) -> bool {
        self.next == self.steps.len() && self.in_flight.is_empty()
    }
}

/// Random steps on failing disks, then a write and a read of everything on sound ones.
fn play_with_faults(
    settings: imbrex_core::cache::CacheSettings,
    seed: u64,
    queue_depth: usize,
    faults: [Faults; 2],
) -> ForgivingHost {
    let (stack, disks, _) = cache_stack(settings, BLOCKS, seed, 1_000);
    let reads_go_on = faults.iter().all(|faults| faults.reads == 0);
    let faults = faults.map(|faults| Rc::new(Cell::new(faults)));
    let errors = [IoError::Medium, IoError::NoSpace];
    let disks = disks.into_iter().zip(&faults).zip(errors);
    let disks = disks.map(|((disk, faults), error)| {
        Box::new(FailingDisk {
            disk,
            faults: Rc::clone(faults),
            error,
            rng: Rng::new(seed, 31),
            refused: Vec::new(),
        }) as Box<dyn Disk>
    });
    let mut engine = Engine {
        stack,
        disks: disks.collect(),
        buffers: Buffers::new(ContentKind::Stamped),
        in_flight_max: 64,
    };
    let mut steps = random_steps(seed, 200, BLOCKS, 8);
    let faulty_steps = steps.len();
    let all = || (0..BLOCKS).step_by(8).map(|b| Extent::new(b, 8));
    steps.extend(all().map(Step::Read).cycle().take(SETTLING_STEPS));
    steps.extend(random_steps(seed + 1, 60, BLOCKS, 8));
    steps.extend(all().map(Step::Read));
    let mut host = ForgivingHost {
        steps,
        next: 0,
        queue_depth,
        faulty_steps,
        faults,
        may_hold: BTreeMap::new(),
        unsure: BTreeSet::new(),
        reads_go_on,
        in_flight: BTreeMap::new(),
        errors: Vec::new(),
        failure: None,
    };
    let cache = engine.stack.top();
    engine.run(&mut JumpingClock::default(), &mut host, &mut |_, stack| {
        let gauges = [Gauge::CachedBlocks, Gauge::DirtyBlocks];
        let [cached, dirty] = gauges.map(|gauge| stack.counts(cache).gauge(gauge));
        assert!(dirty <= cached, "{dirty} dirty blocks of {cached}");
    });
    assert!(engine.stack.is_quiet() && engine.buffers.allocated() == 0);
    host
}

#[test]
fn no_answered_write_is_lost_when_disks_fail() {
    let some = |reads, writes| Faults { reads, writes };
    let sound = Faults::default();
    let cases = [
        ("destages", [sound, some(0, 40)]),
        ("every destage", [sound, some(0, 100)]),
        ("reads below", [sound, some(40, 0)]),
        ("flash writes", [some(0, 30), sound]),
        ("flash reads", [some(30, 0), sound]),
        ("everything", [some(15, 15), some(15, 15)]),
    ];
    for (what, faults) in cases {
        let mut errors = Vec::new();
        for (name, policy) in policies(BLOCKS) {
            for seed in 0..40 {
                let mode = [CacheMode::ReadWrite, CacheMode::WriteOnly][(seed % 2) as usize];
                let depth = [1, 4, 16][(seed % 3) as usize];
                let (capacity, slots) = (1 + seed % 19, (seed % 4) as u32);
                let settings = settings(capacity, slots, mode, policy.clone());
                let host = play_with_faults(settings, seed, depth, faults);
                if let Some(failure) = host.failure {
                    panic!("{what} fail, {name}, seed {seed}, depth {depth}: {failure}");
                }
                errors.extend(host.errors);
            }
        }
        let [flash, below] = faults.map(|f| f.reads + f.writes > 0);
        assert_eq!(errors.contains(&IoError::Medium), flash, "{what}");
        assert_eq!(errors.contains(&IoError::NoSpace), below, "{what}");
    }
}
