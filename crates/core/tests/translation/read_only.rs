//! Translations of stacks that are only read: they recover as any other, say what was acknowledged, and write nothing once they are up.

use crate::common::crash_disk::{CrashDisk, Cut, Medium};
use crate::common::crash_host::CrashHost;
use crate::common::harness::JumpingClock;
use crate::crash::{SET, bands, engine, geometry, settings, variants};
use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind};
use imbrex_core::cache::{Cache, CacheMode, CacheSettings, PolicySettings};
use imbrex_core::counters::Counter;
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry, Media};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::Start;
use imbrex_core::operation::{Completion, Durability, Operation, Tag};
use imbrex_core::rng::Rng;
use imbrex_core::stack::{Arrival, NodeId, StackBuilder};
use imbrex_core::translation::{
    BlockingCleaning, CleanTo, IdleCleaning, PersistentCache, PersistentCacheSettings,
};
use imbrex_core::units::{BlockCount, Duration, Instant};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// Longer than it takes to clean everything.
const FOR_EVER_NS: u64 = 1_000_000_000;

/// Counts what is asked of a disk beside reads.
struct Watched {
    disk: Box<dyn Disk>,
    changes: Rc<Cell<u64>>,
}

impl Disk for Watched {
    fn geometry(&self) -> &Geometry {
        self.disk.geometry()
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        let change = !matches!(op.operation, Operation::Read);
        self.changes.set(self.changes.get() + u64::from(change));
        self.disk.submit(now, op, buffers);
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        self.disk.poll(now, buffers)
    }

    fn next_event(&self) -> Option<Instant> {
        self.disk.next_event()
    }
}

/// Watches every disk of an engine.
fn watch(engine: &mut Engine) -> Rc<Cell<u64>> {
    let changes = Rc::new(Cell::new(0));
    for disk in std::mem::take(&mut engine.disks) {
        let changes = Rc::clone(&changes);
        engine.disks.push(Box::new(Watched { disk, changes }));
    }
    changes
}

/// One request after another, each some time after the answer to the one before.
struct Requests {
    /// The pause before each.
    left: Vec<(u64, Operation, Extent)>,
    next_at: Option<Instant>,
    buffer: BufferSlice,
    results: Vec<Result<(), IoError>>,
    expected: usize,
}

impl Requests {
    fn play(
        engine: &mut Engine,
        clock: &mut JumpingClock,
        mut requests: Vec<(u64, Operation, Extent)>,
    ) -> Vec<Result<(), IoError>> {
        requests.reverse();
        let mut requests = Requests {
            expected: requests.len(),
            left: requests,
            next_at: None,
            buffer: BufferSlice::EMPTY,
            results: Vec::new(),
        };
        requests.wait(Instant::ZERO);
        engine.run(clock, &mut requests, &mut |_, _| {});
        requests.results
    }

    fn wait(&mut self, now: Instant) {
        let pause = self.left.last().map(|(pause, ..)| *pause);
        self.next_at = pause.map(|pause| Instant(now.0 + pause));
    }
}

impl Frontend for Requests {
    fn next_arrival(&self) -> Option<Instant> {
        self.next_at
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        self.next_at.filter(|at| *at <= now)?;
        self.next_at = None;
        let (_, operation, extent) = self.left.pop()?;
        self.buffer = match operation {
            Operation::Read | Operation::Write { .. } => buffers.allocate(extent.blocks.0),
            _ => BufferSlice::EMPTY,
        };
        Some(Arrival { tag: Tag(0), operation, extent, buffer: self.buffer })
    }

    fn reply(&mut self, now: Instant, completion: Completion, buffers: &mut Buffers) {
        buffers.release(self.buffer);
        self.results.push(completion.result);
        self.wait(now);
    }

    fn finished(&self) -> bool {
        self.results.len() == self.expected
    }
}

const fn zero(may_unmap: bool) -> Operation {
    Operation::Zero { durability: Durability::Cached, may_unmap }
}

const BLOCK_0: Extent = Extent::new(0, 1);

/// What is left of a translation whose power was cut in the middle of its work, and the host that knows what was
/// answered.
fn crashed(seed: u64, settings: &PersistentCacheSettings) -> (Medium, CrashHost) {
    let mut rng = Rng::new(seed, 41);
    let medium = Medium::new(geometry(seed, settings));
    let disk = CrashDisk::new(&medium, seed, u64::MAX);
    let shared = disk.shared();
    let mut host = CrashHost::new(bands(seed).blocks().0);
    let worked = catch_unwind(AssertUnwindSafe(|| {
        let (mut engine, _) = engine(seed, settings, disk, None);
        let mut clock = JumpingClock::default();
        let start = Start::Format(SET);
        engine.open(&mut clock, start).expect("a new device");
        shared.borrow_mut().operations_left = 100 + rng.below(2_000);
        host.work(&mut engine, &mut clock, seed, 300)
    }));
    if let Err(panic) = worked {
        assert!(panic.is::<Cut>(), "the work went wrong");
    }
    host.forget_requests();
    let left = shared.borrow_mut().after_the_cut(&mut rng);
    (left, host)
}

/// A stack that has just come up, with its disks watched.
struct Opened {
    engine: Engine,
    node: NodeId,
    clock: JumpingClock,
    changes: Rc<Cell<u64>>,
}

impl Opened {
    fn new((mut engine, node): (Engine, NodeId), is_read_only: bool) -> Opened {
        let changes = watch(&mut engine);
        if is_read_only {
            engine.stack.set_read_only();
        }
        let mut clock = JumpingClock::default();
        let opened = engine.open(&mut clock, Start::Recover(Some(SET)));
        opened.expect("a recovery");
        Opened { engine, node, clock, changes }
    }

    fn play(&mut self, requests: Vec<(u64, Operation, Extent)>) -> Vec<Result<(), IoError>> {
        Requests::play(&mut self.engine, &mut self.clock, requests)
    }
}

/// The translation over what is left.
fn translation(seed: u64, settings: &PersistentCacheSettings, medium: &Medium) -> (Engine, NodeId) {
    let disk = CrashDisk::new(medium, seed + 1, u64::MAX);
    engine(seed, settings, disk, None)
}

#[test]
fn a_translation_that_is_only_read_says_what_was_answered_and_writes_nothing() {
    for (number, settings) in variants().into_iter().enumerate() {
        // Seed 166 leaves a band that the bypass has filled and whose table is not written yet.
        for seed in (0..10).chain(160..170) {
            let (medium, mut host) = crashed(seed, &settings);
            let mut up = Opened::new(translation(seed, &settings, &medium), true);
            let before = up.changes.get();
            assert!(before > 0, "a recovery writes");
            host.look_around(&mut up.engine, &mut up.clock)
                .unwrap_or_else(|error| panic!("variant {number}, seed {seed}: {error}"));
            let requests = vec![
                (0, Operation::Read, BLOCK_0),
                (FOR_EVER_NS, Operation::WRITE, BLOCK_0),
                (0, Operation::WRITE_DURABLE, BLOCK_0),
                (0, zero(true), BLOCK_0),
                (0, zero(false), BLOCK_0),
                (0, Operation::Flush, Extent::EMPTY),
            ];
            let results = up.play(requests);
            let refused = Err(IoError::NotPermitted);
            assert_eq!(results[1..5], [refused; 4]);
            assert_eq!(results[5], Ok(()));
            assert_eq!(up.engine.close(&mut up.clock), Ok(()));
            let after = up.changes.get();
            assert_eq!(after, before, "variant {number}, seed {seed}: something was written");
        }
    }
}

/// The same idle time in which another stack cleans.
#[test]
fn a_translation_that_is_only_read_cleans_nothing_in_idle_time() {
    let settings = PersistentCacheSettings {
        idle: Some(IdleCleaning::new(Duration(400), BlockCount(1), Duration::from_us(1))),
        ..settings()
    };
    for seed in 0..8 {
        let (medium, _) = crashed(seed, &settings);
        for is_read_only in [false, true] {
            let mut up = Opened::new(translation(seed, &settings, &medium), is_read_only);
            up.play(vec![(0, Operation::Read, BLOCK_0), (FOR_EVER_NS, Operation::Read, BLOCK_0)]);
            let counts = up.engine.stack.counts(up.node);
            let rewritten = counts.counter(Counter::BandsRewritten);
            assert_eq!(rewritten == 0, is_read_only, "seed {seed}: {rewritten} bands");
        }
    }
}

/// A small cache over a translation that cleans everything once it has had no room; its node is that of the
/// translation.
fn cached(seed: u64, flash: CrashDisk, disk: CrashDisk) -> (Engine, NodeId) {
    let settings = cleans_everything();
    let mut builder = StackBuilder::new(seed);
    let smr = builder.disk(disk.geometry().clone());
    let (layer, above) =
        PersistentCache::new(settings, bands(seed), disk.geometry()).expect("a layout");
    let node = builder.layer(Box::new(layer), above, &[smr]);
    let ssd = builder.disk(flash.geometry().clone());
    let (cache, above) =
        Cache::new(cache_settings(), builder.geometry(ssd), builder.geometry(node))
            .expect("settings");
    let top = builder.layer(Box::new(cache), above, &[ssd, node]);
    let engine = Engine {
        stack: builder.build(top),
        disks: vec![Box::new(disk), Box::new(flash)],
        buffers: Buffers::new(ContentKind::Bytes),
        in_flight_max: 64,
    };
    (engine, node)
}

fn cache_settings() -> CacheSettings {
    CacheSettings {
        durability: Some(DurabilitySettings { ring_blocks: 8, unflushed_blocks_max: 24 }),
        destage: Durability::Durable,
        capacity_blocks: 20,
        spare_slots: None,
        destage_slots_max: 2,
        mode: CacheMode::ReadWrite,
        policy: PolicySettings::LRU,
    }
}

fn cleans_everything() -> PersistentCacheSettings {
    PersistentCacheSettings {
        log_blocks: BlockCount(24),
        blocking: BlockingCleaning { low_permille: 0, slice: None, to: CleanTo::Home },
        ..settings()
    }
}

/// What a cache writes while it comes up may find no room in the log below. Then bands are cleaned until there is
/// room, and not as many as when further writes are to come.
#[test]
fn a_recovery_that_is_only_read_cleans_no_more_than_it_must() {
    let mut rewritten = [0; 2];
    for seed in 0..12 {
        let flash_blocks = cache_settings().flash_blocks();
        let flash = Medium::new(Geometry::plain(flash_blocks, Media::SolidState));
        let disk = Medium::new(geometry(seed, &cleans_everything()));
        let disks = [&flash, &disk].map(|medium| CrashDisk::new(medium, seed, u64::MAX));
        let media = [disks[0].shared(), disks[1].shared()];
        let mut rng = Rng::new(seed, 43);
        let [flash, disk] = disks;
        let worked = catch_unwind(AssertUnwindSafe(|| {
            let (mut engine, _) = cached(seed, flash, disk);
            let mut clock = JumpingClock::default();
            let opened = engine.open(&mut clock, Start::Format(SET));
            opened.expect("a new device");
            media[1].borrow_mut().operations_left = 400 + rng.below(400);
            let blocks = engine.stack.geometry().blocks.0;
            let mut host = CrashHost::new(blocks);
            host.work(&mut engine, &mut clock, seed, 2_000)
        }));
        assert!(worked.is_err_and(|panic| panic.is::<Cut>()), "the power is cut");
        let left = media.map(|medium| medium.borrow_mut().after_the_cut(&mut rng));
        for is_read_only in [false, true] {
            let [flash, disk] = [&left[0], &left[1]].map(|it| CrashDisk::new(it, seed, u64::MAX));
            let mut up = Opened::new(cached(seed, flash, disk), is_read_only);
            up.play(vec![(0, Operation::Read, BLOCK_0)]);
            let counts = up.engine.stack.counts(up.node);
            rewritten[usize::from(is_read_only)] += counts.counter(Counter::BandsRewritten);
        }
    }
    let [ordinary, read_only] = rewritten;
    assert!(2 * read_only < ordinary, "{read_only} bands, else {ordinary}");
}
