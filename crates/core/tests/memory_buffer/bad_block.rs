//! A write buffer over translations with checksums: one block of 4 KiB that is bad below spoils itself
//! alone, though the buffer reads and fills longer blocks.

use crate::common::harness::JumpingClock;
use crate::common::journal_disk::{ByteDisk, ByteMedium};
use crate::common::journal_world::{Host, SET, Step, newest, steps_around, wrong};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::disk::{Disk, Geometry};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::engine::Engine;
use imbrex_core::extent::Extent;
use imbrex_core::layer::Layer;
use imbrex_core::lifecycle::Start;
use imbrex_core::memory_buffer::{
    BufferBelow, BufferPolicy, MemoryBuffer, MemoryBufferSettings, PartialRead, Persistence,
};
use imbrex_core::read_cache::{OnWrite, ReadCache, ReadCacheSettings};
use imbrex_core::rng::Rng;
use imbrex_core::stack::StackBuilder;
use imbrex_core::translation::segment::{
    Journaling, SegmentPorts, SegmentSettings, Segments, TrackLength,
};
use imbrex_core::translation::{
    ChecksumSettings, MILLION, Prefill, RingSize, SBlockSettings, SBlocks, TrackSource,
};
use imbrex_core::units::BlockCount;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Blocks of 4 KiB in a block of every layer.
const PARTS: u64 = 4;
/// Tracks of a region, and the blocks of each.
const REGION_TRACKS: u64 = 4;
const TRACK_BLOCKS: u64 = 16;
/// Blocks of the device: two regions of four segments.
const BLOCKS: u64 = 2 * REGION_TRACKS * TRACK_BLOCKS;
/// Blocks of each disk. They share one medium: the log, the flash, then the disk.
const DISK_BLOCKS: u64 = 2_000;
const HOME: u64 = 2 * DISK_BLOCKS;
const JOURNAL: DurabilitySettings =
    DurabilitySettings { ring_blocks: 20, unflushed_blocks_max: 24 };

/// What the buffer hands its blocks down to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Below {
    SBlocks,
    /// Of a writer of so many tracks.
    Segments(u64),
}

/// What differs between the stacks.
#[derive(Clone, Copy, Debug)]
struct Case {
    below: Below,
    partial_read: PartialRead,
    has_log: bool,
    has_copies: bool,
    seed: u64,
}

fn cases(seeds: u64) -> impl Iterator<Item = Case> {
    let belows = [Below::SBlocks, Below::Segments(1), Below::Segments(3)];
    let all = (0..seeds).flat_map(move |seed| belows.map(|below| (seed, below)));
    all.flat_map(|(seed, below)| {
        (0..8).map(move |turn| Case {
            below,
            partial_read: match turn % 2 {
                0 => PartialRead::Memory,
                _ => PartialRead::Flash,
            },
            has_log: turn / 2 % 2 == 0,
            has_copies: turn / 4 == 0,
            seed: 8 * seed + turn,
        })
    })
}

impl Case {
    fn buffer(self) -> MemoryBufferSettings {
        MemoryBufferSettings {
            capacity_blocks: 3,
            block: BlockCount(PARTS),
            window_blocks: 2,
            policy: BufferPolicy::LruBlock,
            partial_read: self.partial_read,
            persistence: Some(match self.has_log {
                true => Persistence::Log(JOURNAL),
                false => Persistence::Destage,
            }),
        }
    }

    fn translation(self, disk: &Geometry, copies: &Geometry) -> (Box<dyn Layer>, Geometry) {
        let checksums =
            Some(ChecksumSettings { memory_bytes: [64, 1 << 20][(self.seed % 2) as usize] });
        let copies = Some(copies).filter(|_| self.has_copies);
        match self.below {
            Below::SBlocks => {
                let settings = SBlockSettings {
                    block: BlockCount(PARTS),
                    track: TrackSource::Dense(BlockCount(TRACK_BLOCKS)),
                    region_tracks: REGION_TRACKS,
                    spare_ppm: MILLION / 2,
                    ring: RingSize::Blocks(0),
                    prefill: Prefill::None,
                    wanted: Some(BlockCount(BLOCKS)),
                    durability: Some(JOURNAL),
                    checksums,
                    ..SBlockSettings::new()
                };
                let store = copies.and_then(|copies| copies.copies);
                let (layer, above) = SBlocks::new(settings, disk, store).expect("a layout");
                (Box::new(layer), above)
            }
            Below::Segments(kappa) => {
                let settings = SegmentSettings {
                    track: TrackLength::Assumed(BlockCount(TRACK_BLOCKS)),
                    block: BlockCount(PARTS),
                    region_tracks: REGION_TRACKS,
                    kappa,
                    journal: Journaling::Durable(JOURNAL),
                    checksums,
                    offered: Some(BlockCount(BLOCKS)),
                    ports: SegmentPorts { copies: self.has_copies, journal: false },
                    ..SegmentSettings::paper()
                };
                let ports = copies.into_iter().chain([disk]).collect::<Vec<_>>();
                let (layer, above) = Segments::new(settings, &ports).expect("a layout");
                (Box::new(layer), above)
            }
        }
    }
}

struct World {
    case: Case,
    engine: Engine,
    clock: JumpingClock,
    medium: Rc<RefCell<ByteMedium>>,
}

impl World {
    fn up(case: Case, medium: ByteMedium, start: Start) -> World {
        let medium = Rc::new(RefCell::new(medium));
        let disk = |at: u64| ByteDisk::at(at * DISK_BLOCKS, DISK_BLOCKS, &medium, case.seed, 1_000);
        let disks = [0, 1, 2].map(disk);
        let told = disks[0].geometry().clone();
        let mut builder = StackBuilder::new(case.seed);
        let [log, flash, home] = [0, 1, 2].map(|_| builder.disk(told.clone()));
        let copies = ReadCacheSettings {
            block: BlockCount(PARTS),
            capacity_blocks: 8,
            on_write: [OnWrite::Invalidate, OnWrite::Update][(case.seed / 8 % 2) as usize],
            fill_from_rewrite: (case.seed / 8).is_multiple_of(2),
        };
        let built = ReadCache::new(copies, BlockCount(BLOCKS), &told);
        let (layer, of_copies) = built.expect("a large flash");
        let copies = builder.layer(Box::new(layer), of_copies.clone(), &[flash]);
        let (layer, below) = case.translation(&told, &of_copies);
        let beside = Some(copies).filter(|_| case.has_copies);
        let ports: Vec<_> = beside.into_iter().chain([home]).collect();
        let translation = builder.layer(layer, below.clone(), &ports);
        let on = BufferBelow {
            log: case.has_log.then_some(&told),
            copies: case.has_copies.then_some(&of_copies),
            below: &below,
        };
        let (layer, above) = MemoryBuffer::new(case.buffer(), &on).expect("settings that fit");
        let log = Some(log).filter(|_| case.has_log);
        let ports: Vec<_> = log.into_iter().chain(beside).chain([translation]).collect();
        let top = builder.layer(Box::new(layer), above, &ports);
        let mut world = World {
            case,
            engine: Engine {
                stack: builder.build(top),
                disks: disks.map(|disk| Box::new(disk) as Box<dyn Disk>).into(),
                buffers: Buffers::new(ContentKind::Bytes),
                in_flight_max: 64,
            },
            clock: JumpingClock::default(),
            medium,
        };
        let opened = world.engine.open(&mut world.clock, start);
        opened.unwrap_or_else(|(_, error)| panic!("{case:?}: {error}"));
        world
    }

    /// A device of which every block was written, and the lower half is at home.
    fn filled(case: Case) -> (World, Host) {
        let mut world = World::up(case, ByteMedium::default(), Start::Format(SET));
        let mut host = Host::new(1 + (case.seed % 3) as usize);
        let all = (0..BLOCKS / PARTS).map(|block| write(block * PARTS, PARTS));
        world.play(&mut host, all.chain([Step::Flush]).collect());
        assert_eq!(host.failures, []);
        (world, host)
    }

    fn play(&mut self, host: &mut Host, steps: Vec<Step>) {
        host.begin(steps, &self.medium);
        self.engine.run(&mut self.clock, host, &mut |_, _| {});
    }

    /// The same disks under new layers, after a close or without one. What no log has survives no death of
    /// the process unless it is flushed.
    fn reborn(mut self, closes: bool) -> World {
        if !self.case.has_log {
            self.play(&mut Host::new(1), vec![Step::Flush]);
        }
        if closes {
            let closed = self.engine.close(&mut self.clock);
            closed.unwrap_or_else(|(_, error)| panic!("{:?}: {error}", self.case));
        }
        let mut medium = self.medium.take();
        medium.operations.clear();
        World::up(self.case, medium, Start::Recover(Some(SET)))
    }

    /// What is read in pieces of a length; of a piece with `apart` in it, the block itself and what is
    /// on either side of it.
    fn read(&mut self, length: u64, apart: u64) -> BTreeMap<u64, Result<u64, ()>> {
        let mut steps = Vec::new();
        for start in (0..BLOCKS).step_by(length as usize) {
            let piece = start..start + length;
            match piece.contains(&apart) {
                false => steps.push(start..piece.end),
                true => steps.extend([start..apart, apart..apart + 1, apart + 1..piece.end]),
            }
        }
        steps.retain(|piece| !piece.is_empty());
        let reads = steps.iter().map(|piece| {
            let blocks = piece.end - piece.start;
            Step::Read(Extent::new(piece.start, blocks))
        });
        let mut host = Host::new(4);
        self.play(&mut host, reads.collect());
        host.found
    }

    /// Blocks of the device that cannot be read in pieces of a length; all others are as they were written
    /// last.
    fn failing_by(&mut self, length: u64, apart: u64) -> BTreeSet<u64> {
        let newest = newest(&self.medium.borrow().happenings);
        let found = self.read(length, apart);
        assert_eq!(wrong(&found, &newest, true), None, "{:?}", self.case);
        let failed = found.into_iter().filter(|(_, found)| found.is_err());
        failed.map(|(block, _)| block).collect()
    }

    /// Blocks that cannot be read, each by itself.
    fn failing(&mut self) -> BTreeSet<u64> {
        self.failing_by(1, BLOCKS)
    }

    /// Checks that one block cannot be read, and all others can, in whatever pieces.
    fn fails_alone(&mut self, bad: u64, when: &str) {
        for length in [1, 2, PARTS, 2 * PARTS] {
            let failing = self.failing_by(length, bad);
            assert_eq!(failing, BTreeSet::from([bad]), "{when}, {:?}", self.case);
        }
    }

    /// Where the disk has what was last written to a block.
    fn homes_of(&self, block: u64) -> Vec<u64> {
        let mut places = self.medium.borrow().places_of(block);
        places.retain(|address| *address >= HOME);
        places
    }
}

fn write(start: u64, blocks: u64) -> Step {
    Step::Write(Extent::new(start, blocks))
}

/// A write to the block of the buffer that has a bad part, beside that, and then so many elsewhere that
/// it leaves.
fn beside(bad: u64, turn: u64) -> Vec<Step> {
    let beside = bad - bad % PARTS + (bad + 1 + turn % (PARTS - 1)) % PARTS;
    [write(beside, 1)].into_iter().chain(elsewhere()).collect()
}

/// More blocks than memory has.
fn elsewhere() -> impl Iterator<Item = Step> {
    (0..5).map(|at| write(BLOCKS / 2 + 9 * at, 1))
}

/// Random changes that leave a block alone.
fn around(seed: u64, bad: u64) -> Vec<Step> {
    steps_around(seed, 60, BLOCKS, bad)
}

#[test]
fn one_bad_block_below_spoils_itself_alone() {
    for case in cases(3) {
        let bad = Rng::new(case.seed, 3).below(BLOCKS / 2);
        let (mut world, mut host) = World::filled(case);
        let homes = world.homes_of(bad);
        assert!(!homes.is_empty(), "{case:?}");
        let is_unreadable = case.seed / 8 == 1;
        match is_unreadable {
            true => world.medium.borrow_mut().unreadable.extend(&homes),
            false => homes.iter().for_each(|at| world.medium.borrow_mut().flip(*at)),
        }
        world.fails_alone(bad, "at first");
        world.play(&mut host, beside(bad, case.seed));
        assert_eq!(host.failures, [], "a write beside it fails, {case:?}");
        // A disk may be able to read it again, and has something else there.
        world.medium.borrow_mut().unreadable.clear();
        for life in 0..3 {
            world.fails_alone(bad, "written beside");
            world.play(&mut host, around(case.seed * 9 + life, bad));
            world.play(&mut host, beside(bad, life));
            assert_eq!(host.failures, [], "life {life}, {case:?}");
            world = world.reborn(life % 2 == 0);
            world.fails_alone(bad, "restarted");
        }
        world.play(&mut host, vec![write(bad, 1)]);
        assert_eq!(world.failing(), BTreeSet::new(), "mended");
        world.play(&mut host, beside(bad, 0));
        assert_eq!(world.failing(), BTreeSet::new(), "and at home");
        let mut world = world.reborn(case.seed % 2 == 0);
        assert_eq!(world.failing(), BTreeSet::new(), "and later");
        assert_eq!(host.failures, [], "{case:?}");
    }
}

#[test]
fn what_memory_has_of_a_bad_block_is_read_with_what_is_around_it() {
    for case in cases(1) {
        let bad = 2 * PARTS + 1;
        let (mut world, mut host) = World::filled(case);
        let homes = world.homes_of(bad);
        world.medium.borrow_mut().unreadable.extend(&homes);
        world.play(&mut host, vec![write(bad, 1)]);
        // One read of all of the block, of which memory has a part and the disk the others.
        let whole = Extent::new(2 * PARTS, PARTS);
        let newest = newest(&world.medium.borrow().happenings);
        let mut reader = Host::new(1);
        world.play(&mut reader, vec![Step::Read(whole)]);
        assert_eq!(wrong(&reader.found, &newest, false), None, "{case:?}");
        assert_eq!(host.failures, []);
    }
}

#[test]
fn what_is_bad_all_over_is_mended_part_by_part() {
    for case in cases(1) {
        let (mut world, mut host) = World::filled(case);
        let mut bad: BTreeSet<u64> = (5 * PARTS..6 * PARTS).collect();
        for part in &bad {
            let homes = world.homes_of(*part);
            let mut medium = world.medium.borrow_mut();
            homes.iter().for_each(|at| medium.flip(*at));
        }
        while let Some(part) = bad.pop_last() {
            world.play(&mut host, vec![write(part, 1)]);
            assert_eq!(world.failing(), bad, "in memory, {case:?}");
            world.play(&mut host, elsewhere().collect());
            assert_eq!(world.failing(), bad, "at home, {case:?}");
        }
        assert_eq!(host.failures, [], "{case:?}");
        let mut world = world.reborn(false);
        assert_eq!(world.failing(), bad, "{case:?}");
    }
}
