//! A toy layer over a disk of bytes, and a host that says what each block may hold.

use super::harness::JumpingClock;
use super::journal_disk::{ByteDisk, ByteMedium, Happening, Image, block_of};
use super::journal_toy::{Gauges, Seen, Shape, Toy};
use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::durability::JournalSettings;
use imbrex_core::durability::superblock::Superblock;
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::{OpenError, Start, Uuid};
use imbrex_core::operation::{Completion, Durability, Operation, Tag};
use imbrex_core::rng::Rng;
use imbrex_core::stack::{Arrival, NodeId, StackBuilder};
use imbrex_core::units::{BLOCK_BYTES, BlockCount, Duration, Instant};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The set that toys are formatted with.
pub const SET: Uuid = Uuid([0x5e; 16]);

/// A small toy whose ring wraps soon.
pub const SHAPE: Shape = Shape { device_blocks: 40, places: 160, ring_blocks: 16 };

/// One request of the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    Read(Extent),
    Write(Extent),
    WriteDurable(Extent),
    Zero(Extent),
    Flush,
    /// Nothing is asked for a fifth of a second; another step must follow.
    Pause,
}

/// The length of a pause.
const PAUSE: Duration = Duration::from_ms(200);

/// A random workload.
pub fn random_steps(seed: u64, count: u64, blocks: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed, 9);
    (0..count)
        .map(|_| {
            let length = 1 + rng.below(3);
            let extent = Extent::new(rng.below(blocks - length + 1), length);
            match rng.below(16) {
                0..=1 => Step::Read(extent),
                2..=10 => Step::Write(extent),
                11..=12 => Step::WriteDurable(extent),
                13 => Step::Zero(extent),
                _ => Step::Flush,
            }
        })
        .collect()
}

/// Random changes that leave a block alone, and a flush.
pub fn steps_around(seed: u64, count: u64, blocks: u64, left_alone: u64) -> Vec<Step> {
    let mut steps = random_steps(seed, count, blocks);
    steps.retain(|step| match step {
        Step::Read(_) => false,
        Step::Write(it) | Step::WriteDurable(it) | Step::Zero(it) => {
            !it.overlaps(Extent::new(left_alone, 1))
        }
        _ => true,
    });
    steps.push(Step::Flush);
    steps
}

/// A toy, its disk and what it was told.
pub struct World {
    pub shape: Shape,
    pub medium: Rc<RefCell<ByteMedium>>,
    pub seen: Rc<RefCell<Vec<Seen>>>,
    pub gauges: Rc<Gauges>,
    pub engine: Engine,
    /// The toy.
    pub top: NodeId,
    clock: JumpingClock,
}

impl World {
    pub fn new(shape: Shape, medium: &Rc<RefCell<ByteMedium>>, seed: u64) -> World {
        World::with(shape, shape.settings(), medium, seed, 1_000)
    }

    /// A toy whose journal is told other settings than those of its shape.
    pub fn with(
        shape: Shape,
        settings: JournalSettings,
        medium: &Rc<RefCell<ByteMedium>>,
        seed: u64,
        latency_max_ns: u64,
    ) -> World {
        let toy = Toy::new(shape, settings);
        let (seen, gauges) = (Rc::clone(&toy.seen), Rc::clone(&toy.gauges));
        let mut builder = StackBuilder::new(seed);
        let blocks = shape.settings().member_blocks;
        let disk = builder.disk(Geometry::plain(blocks, Media::SolidState));
        let geometry = Geometry::plain(BlockCount(shape.device_blocks), Media::SolidState);
        let top = builder.layer(Box::new(toy), geometry, &[disk]);
        let disk = ByteDisk::new(blocks.0, medium, seed, latency_max_ns);
        World {
            shape,
            medium: Rc::clone(medium),
            seen,
            gauges,
            engine: Engine {
                stack: builder.build(top),
                disks: vec![Box::new(disk)],
                buffers: Buffers::new(ContentKind::Bytes),
                in_flight_max: 64,
            },
            top,
            clock: JumpingClock::default(),
        }
    }

    /// A fresh toy on a fresh disk.
    pub fn formatted(shape: Shape, seed: u64) -> World {
        let mut world = World::new(shape, &Rc::default(), seed);
        world.open(Start::Format(SET)).expect("a format");
        world
    }

    /// A toy over a disk that holds `image`, not open yet.
    pub fn over(shape: Shape, image: Image, seed: u64) -> World {
        let medium = ByteMedium { image, ..ByteMedium::default() };
        World::new(shape, &Rc::new(RefCell::new(medium)), seed)
    }

    /// Another toy over what this one has left behind, not open yet.
    pub fn reborn(&self, seed: u64) -> World {
        World::over(self.shape, self.medium.borrow().image.clone(), seed)
    }

    pub fn open(&mut self, start: Start) -> Result<(), OpenError> {
        let opened = self.engine.open(&mut self.clock, start);
        opened.map_err(|(_, error)| error)
    }

    pub fn recover(&mut self) -> Result<(), OpenError> {
        self.open(Start::Recover(Some(SET)))
    }

    pub fn close(&mut self) -> bool {
        self.engine.close(&mut self.clock).is_ok()
    }

    /// Plays steps that a host goes on with.
    pub fn play(&mut self, host: &mut Host, steps: Vec<Step>) {
        host.begin(steps, &self.medium);
        self.engine.run(&mut self.clock, host, &mut |_, _| {});
        let left = self.engine.buffers.allocated();
        assert_eq!(left, 0, "buffers were lost");
    }

    /// Every block of the device, as its version or that it cannot be read.
    pub fn read_all(&mut self) -> BTreeMap<u64, Result<u64, ()>> {
        let mut host = Host::new(4);
        let steps =
            (0..self.shape.device_blocks).map(|block| Step::Read(Extent::new(block, 1))).collect();
        self.play(&mut host, steps);
        host.found
    }

    /// What the layer was told, once.
    pub fn take_seen(&mut self) -> Vec<Seen> {
        self.seen.take()
    }
}

pub fn write(block: u64) -> Step {
    Step::Write(Extent::new(block, 1))
}

pub fn durably(block: u64) -> Step {
    Step::WriteDurable(Extent::new(block, 1))
}

/// The records that recovery brought back: the device block each begins with.
pub fn replayed(seen: &[Seen]) -> Vec<u64> {
    let Some(Seen::Recovered(records, _)) = seen.first() else {
        panic!("no recovery: {seen:?}");
    };
    let first = |bytes: &[u8]| u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
    records.iter().map(|record| first(&record.payload)).collect()
}

/// A formatted toy that has played steps one at a time and was not closed.
pub fn after(steps: &[Step]) -> (World, Host) {
    let mut world = World::formatted(SHAPE, 1);
    let mut host = Host::new(1);
    world.play(&mut host, steps.to_vec());
    (world, host)
}

/// What a toy that was not closed holds, and what recovery says to opening it.
pub fn reopen(image: Image) -> Result<(World, Vec<Seen>), OpenError> {
    let mut world = World::over(SHAPE, image, 2);
    world.recover()?;
    let seen = world.take_seen();
    Ok((world, seen))
}

pub fn superblock_of(image: &Image, copy: usize) -> Superblock {
    let address = SHAPE.settings().superblock_addresses()[copy];
    Superblock::decode(&block_of(image, address), address, false).expect("a superblock")
}

pub fn put_superblock(image: &mut Image, copy: usize, superblock: &Superblock) {
    let address = SHAPE.settings().superblock_addresses()[copy];
    image.insert(address, superblock.encode(address).into());
}

pub fn damage(image: &mut Image, address: u64) {
    let mut bytes = block_of(image, address).to_vec();
    bytes[1000] ^= 1;
    image.insert(address, bytes.into());
}

/// Sends requests, and writes down what it was told.
pub struct Host {
    steps: Vec<Step>,
    next: usize,
    /// The end of a pause.
    resumes_at: Instant,
    pub queue_depth: usize,
    version: u64,
    in_flight: BTreeMap<u64, (Step, BufferSlice, BTreeMap<u64, u64>)>,
    /// The newest version of each block whose write was answered.
    told: BTreeMap<u64, u64>,
    /// What reads found.
    pub found: BTreeMap<u64, Result<u64, ()>>,
    /// How many requests failed.
    pub failures: Vec<Step>,
    pub medium: Rc<RefCell<ByteMedium>>,
}

impl Host {
    pub fn new(queue_depth: usize) -> Host {
        Host {
            steps: Vec::new(),
            next: 0,
            resumes_at: Instant::ZERO,
            queue_depth,
            version: 0,
            in_flight: BTreeMap::new(),
            told: BTreeMap::new(),
            found: BTreeMap::new(),
            failures: Vec::new(),
            medium: Rc::default(),
        }
    }

    /// Goes on with other steps, writing down what it is told beside what happens to `medium`.
    pub fn begin(&mut self, steps: Vec<Step>, medium: &Rc<RefCell<ByteMedium>>) {
        self.steps = steps;
        self.next = 0;
        self.medium = Rc::clone(medium);
    }

    fn happened(&self, happening: Happening) {
        self.medium.borrow_mut().happenings.push(happening);
    }

    /// Sends a new version of every block of an extent; a version that is zeroes is odd.
    fn send(&mut self, extent: Extent, is_zero: bool) -> BTreeMap<u64, u64> {
        (extent.start.0..extent.end().0)
            .map(|block| {
                self.version += 2;
                let version = self.version + u64::from(is_zero);
                self.happened(Happening::Sent { block, version });
                (block, version)
            })
            .collect()
    }
}

/// The bytes of a version of a block.
fn content(block: u64, version: u64) -> Vec<u8> {
    let mut words = Vec::with_capacity(BLOCK_BYTES as usize);
    for word in 0..BLOCK_BYTES / 16 {
        words.extend_from_slice(&(block ^ word << 32).to_le_bytes());
        words.extend_from_slice(&version.to_le_bytes());
    }
    words
}

/// The version that bytes are, 0 for zeroes. Panics when they are no version of this block.
fn version_of(block: u64, bytes: &[u8]) -> u64 {
    if bytes.iter().all(|byte| *byte == 0) {
        return 0;
    }
    let version = u64::from_le_bytes(bytes[8..16].try_into().expect("8 bytes"));
    assert_eq!(bytes, content(block, version), "block {block} reads what was never written");
    version
}

impl Frontend for Host {
    fn next_arrival(&self) -> Option<Instant> {
        let ready = self.next < self.steps.len() && self.in_flight.len() < self.queue_depth;
        ready.then_some(self.resumes_at)
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        if self.in_flight.len() >= self.queue_depth || now < self.resumes_at {
            return None;
        }
        let step = *self.steps.get(self.next)?;
        if step == Step::Pause {
            self.next += 1;
            self.resumes_at = now + PAUSE;
            return None;
        }
        let tag = self.next as u64;
        self.next += 1;
        let (operation, extent, buffer, versions) = match step {
            Step::Read(extent) => {
                let buffer = buffers.allocate(extent.blocks.0);
                (Operation::Read, extent, buffer, BTreeMap::new())
            }
            Step::Write(extent) | Step::WriteDurable(extent) => {
                let buffer = buffers.allocate(extent.blocks.0);
                let versions = self.send(extent, false);
                for (i, (block, version)) in (0..).zip(&versions) {
                    let target = buffers.bytes_mut(buffer.part(i, 1));
                    let target = target.expect("buffers of bytes");
                    target.copy_from_slice(&content(*block, *version));
                }
                let operation = match step {
                    Step::Write(_) => Operation::WRITE,
                    _ => Operation::WRITE_DURABLE,
                };
                (operation, extent, buffer, versions)
            }
            Step::Zero(extent) => {
                let operation = Operation::Zero { durability: Durability::Cached, may_unmap: true };
                let versions = self.send(extent, true);
                (operation, extent, BufferSlice::EMPTY, versions)
            }
            Step::Flush => {
                let told = self.told.clone();
                (Operation::Flush, Extent::EMPTY, BufferSlice::EMPTY, told)
            }
            Step::Pause => unreachable!("it asks for nothing"),
        };
        self.in_flight.insert(tag, (step, buffer, versions));
        Some(Arrival { tag: Tag(tag), operation, extent, buffer })
    }

    fn reply(&mut self, _now: Instant, completion: Completion, buffers: &mut Buffers) {
        let waited = self.in_flight.remove(&completion.tag.0);
        let (step, buffer, versions) = waited.expect("an answer to a request");
        let is_ok = completion.result.is_ok();
        if !is_ok {
            self.failures.push(step);
        }
        match step {
            Step::Read(extent) => {
                for (i, block) in (0..).zip(extent.start.0..extent.end().0) {
                    let bytes = buffers.bytes(buffer.part(i, 1)).expect("buffers of bytes");
                    let found = match is_ok {
                        true => Ok(version_of(block, bytes)),
                        false => Err(()),
                    };
                    self.found.insert(block, found);
                }
            }
            Step::Flush if is_ok => self.happened(Happening::Flushed { versions }),
            Step::Write(_) | Step::WriteDurable(_) | Step::Zero(_) if is_ok => {
                for (block, version) in versions {
                    self.told.insert(block, version);
                    if let Step::WriteDurable(_) = step {
                        self.happened(Happening::Durable { block, version });
                    }
                }
            }
            _ => {}
        }
        buffers.release(buffer);
    }

    fn finished(&self) -> bool {
        self.next == self.steps.len() && self.in_flight.is_empty()
    }
}

/// Which versions each block may have after a power cut, as the happenings so far allow.
pub fn allowed(happenings: &[Happening]) -> BTreeMap<u64, BTreeSet<u64>> {
    let mut allowed: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    let mut of = |block: u64, is_durable: bool, version: u64| {
        let versions = allowed.entry(block).or_insert_with(|| BTreeSet::from([0]));
        if is_durable {
            versions.retain(|other| *other >= version);
        } else {
            versions.insert(version);
        }
    };
    for happening in happenings {
        match happening {
            Happening::Sent { block, version } => of(*block, false, *version),
            Happening::Durable { block, version } => of(*block, true, *version),
            Happening::Flushed { versions } => {
                for (block, version) in versions {
                    of(*block, true, *version);
                }
            }
            _ => {}
        }
    }
    allowed
}

/// The newest version of each block, as the host was told.
pub fn newest(happenings: &[Happening]) -> BTreeMap<u64, BTreeSet<u64>> {
    let all = allowed(happenings);
    let newest =
        |(block, versions): (u64, BTreeSet<u64>)| Some((block, [*versions.last()?].into()));
    all.into_iter().filter_map(newest).collect()
}

/// Says what was read and is not allowed. A version that is zeroes reads as 0; a block that cannot
/// be read is wrong unless `may_fail`.
pub fn wrong(
    found: &BTreeMap<u64, Result<u64, ()>>,
    allowed: &BTreeMap<u64, BTreeSet<u64>>,
    may_fail: bool,
) -> Option<String> {
    for (block, found) in found {
        let zero = BTreeSet::from([0]);
        let versions = allowed.get(block).unwrap_or(&zero);
        let is_right = match found {
            Err(()) => may_fail,
            Ok(0) => versions.iter().any(|version| version % 2 == 1 || *version == 0),
            Ok(version) => versions.contains(version),
        };
        if !is_right {
            return Some(format!("block {block} reads {found:?}, not {versions:?}"));
        }
    }
    None
}
