//! The log of a write buffer over several lives: what was answered survives the death of the process,
//! what was flushed survives power cuts, and the log never runs full.

use crate::buffer::POLICIES;
use crate::common::crash_disk::{CrashDisk, Medium};
use crate::common::harness::JumpingClock;
use crate::common::oracle::{Ask, Host, MayFail, Oracle};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::engine::Engine;
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::memory_buffer::{
    BufferBelow, MemoryBuffer, MemoryBufferSettings, PartialRead, Persistence,
};
use imbrex_core::rng::Rng;
use imbrex_core::stack::StackBuilder;
use imbrex_core::units::BlockCount;
use std::cell::RefCell;
use std::rc::Rc;

const SET: Uuid = Uuid([8; 16]);
const DEVICE: u64 = 131;
const LIVES: u64 = 5;

fn settings(seed: u64) -> MemoryBufferSettings {
    let capacity_blocks = [1, 3, 6][(seed % 3) as usize];
    MemoryBufferSettings {
        capacity_blocks,
        block: BlockCount([1, 4, 16][(seed / 3 % 3) as usize]),
        window_blocks: 1,
        policy: POLICIES[(seed % 5) as usize],
        partial_read: PartialRead::Memory,
        persistence: Some(Persistence::Log(DurabilitySettings {
            ring_blocks: 20,
            unflushed_blocks_max: 40,
        })),
    }
}

fn media(settings: &MemoryBufferSettings) -> [Medium; 2] {
    let log = Geometry::plain(settings.log_blocks(), Media::SolidState);
    let below = Geometry::plain(BlockCount(DEVICE), Media::Conventional);
    let mut below = Medium::new(below);
    // Below there are no checksums: the disk is trusted.
    below.whole_before = DEVICE;
    [Medium::new(log), below]
}

/// An engine, and what its disks hold.
struct Up {
    engine: Engine,
    clock: JumpingClock,
    disks: Vec<Rc<RefCell<crate::common::crash_disk::Shared>>>,
}

fn up(settings: MemoryBufferSettings, media: &[Medium; 2], seed: u64, start: Start) -> Up {
    let mut builder = StackBuilder::new(seed);
    let geometries = [
        Geometry::plain(settings.log_blocks(), Media::SolidState),
        Geometry::plain(BlockCount(DEVICE), Media::Conventional),
    ];
    let nodes = geometries.clone().map(|geometry| builder.disk(geometry));
    let on = BufferBelow { log: Some(&geometries[0]), copies: None, below: &geometries[1] };
    let (layer, above) = MemoryBuffer::new(settings, &on).expect("settings that fit");
    let top = builder.layer(Box::new(layer), above, &nodes);
    let disks = [0, 1].map(|at| CrashDisk::new(&media[at], 2 * seed + at as u64, u64::MAX));
    let shared = disks.iter().map(CrashDisk::shared).collect();
    let mut up = Up {
        engine: Engine {
            stack: builder.build(top),
            disks: disks.into_iter().map(|disk| Box::new(disk) as Box<_>).collect(),
            buffers: Buffers::new(ContentKind::Bytes),
            in_flight_max: 64,
        },
        clock: JumpingClock::default(),
        disks: shared,
    };
    let opened = up.engine.open(&mut up.clock, start);
    opened.unwrap_or_else(|(_, error)| panic!("seed {seed}: {error}"));
    up
}

fn play(up: &mut Up, oracle: &mut Oracle, asks: Vec<Ask>, depth: usize, settles: bool) {
    let mut host = Host::new(oracle, asks, depth);
    host.settles = settles;
    host.may_fail = MayFail::Nothing;
    up.engine.run(&mut up.clock, &mut host, &mut |_, _| {});
    assert_eq!(host.mistake, None);
}

fn asks(rng: &mut Rng, flushes: bool) -> Vec<Ask> {
    let mut ask = |_| {
        let blocks = 1 + rng.below(12);
        let span = DEVICE / (1 + 5 * rng.below(2));
        let extent = Extent::new(rng.below(span - blocks + 1), blocks);
        match rng.below(20) {
            0..=3 => Ask::Read(extent),
            4 => Ask::Trim(extent),
            5 if flushes => Ask::Flush,
            6 if flushes => Ask::Forced(extent),
            7 if flushes => Ask::ForcedTrim(extent),
            _ => Ask::Write(extent),
        }
    };
    (0..100).map(&mut ask).collect()
}

fn look() -> Vec<Ask> {
    (0..DEVICE).map(|lba| Ask::Read(Extent::new(lba, 1))).collect()
}

/// What ends a life.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The process dies: the disks have all that was handed to them.
    Process,
    /// The power is cut.
    Power,
}

/// A random stream in which the disk keeps every write.
fn all_is_there() -> Rng {
    let keeps_all = |rng: &Rng| rng.clone().below(5) == 1;
    let mut streams = (0..).map(|seed| Rng::new(seed, 9));
    streams.find(keeps_all).expect("some stream")
}

fn lives(seed: u64, end: End) {
    let settings = settings(seed);
    let mut media = media(&settings);
    let mut oracle = Oracle::default();
    let mut rng = Rng::new(seed, 31);
    for life in 0..LIVES {
        let start = match life {
            0 => Start::Format(SET),
            _ => Start::Recover(Some(SET)),
        };
        let mut up = up(settings, &media, LIVES * seed + life, start);
        play(&mut up, &mut oracle, look(), 4, end == End::Power);
        let depth = 1 + rng.below(8) as usize;
        let flushes = end == End::Power;
        play(&mut up, &mut oracle, asks(&mut rng, flushes), depth, false);
        match end {
            End::Process => oracle.close(),
            End::Power => oracle.crash(),
        }
        let mut fate = Rng::new(rng.below(1 << 40), 7);
        media = [0, 1].map(|at| {
            let mut all = all_is_there();
            let fate = match end {
                End::Process => &mut all,
                End::Power => &mut fate,
            };
            up.disks[at].borrow_mut().after_the_cut(fate)
        });
    }
}

#[test]
fn what_was_answered_survives_the_death_of_the_process() {
    (0..60).for_each(|seed| lives(seed, End::Process));
}

#[test]
fn what_was_flushed_survives_one_power_cut_after_another() {
    (0..120).for_each(|seed| lives(seed, End::Power));
}

/// A write below fails and takes away what was there. Whatever was flushed is in the log then, though
/// the disk had it before, and other blocks of the same write were flushed there.
#[test]
fn what_was_flushed_survives_a_destage_that_spoils_what_was_below() {
    let mut spoilt = 0;
    for seed in 0..4000 {
        let settings = settings(seed);
        // Few blocks, which leave again and again, each with some of its parts new.
        let span = 4 * settings.block.0;
        let few = |rng: &mut Rng| match rng.below(12) {
            0 => Ask::Flush,
            _ => Ask::Write(Extent::new(rng.below(span), 1)),
        };
        let media = media(&settings);
        let mut oracle = Oracle::default();
        let mut rng = Rng::new(seed, 35);
        let mut first = up(settings, &media, seed, Start::Format(SET));
        first.disks[1].borrow_mut().writes_left = 1 + rng.below(80);
        let asks = (0..200).map(|_| few(&mut rng)).collect();
        let mut host = Host::new(&mut oracle, asks, 1 + seed as usize % 8);
        host.may_fail = MayFail::Changes;
        let clock = &mut first.clock;
        first.engine.run(clock, &mut host, &mut |_, _| {});
        assert_eq!(host.mistake, None, "seed {seed}");
        oracle.crash();
        let mut fate = Rng::new(seed, 36);
        let media = [0, 1].map(|at| first.disks[at].borrow_mut().after_the_cut(&mut fate));
        spoilt += u64::from(media[1].is_unreadable());
        let mut second = up(settings, &media, seed + 1, Start::Recover(Some(SET)));
        play(&mut second, &mut oracle, look(), 4, true);
    }
    assert!(spoilt > 100, "{spoilt} disks had blocks that cannot be read");
}

#[test]
fn a_buffer_that_is_only_read_says_what_its_log_has() {
    for seed in 0..20 {
        let settings = settings(seed);
        let mut media = media(&settings);
        let mut oracle = Oracle::default();
        let mut rng = Rng::new(seed, 33);
        let mut first = up(settings, &media, seed, Start::Format(SET));
        play(&mut first, &mut oracle, asks(&mut rng, true), 4, false);
        play(&mut first, &mut oracle, vec![Ask::Flush], 1, false);
        oracle.close();
        let mut fate = Rng::new(seed, 34);
        media = [0, 1].map(|at| first.disks[at].borrow_mut().after_the_cut(&mut fate));
        let mut second = up(settings, &media, seed + 1, Start::Recover(Some(SET)));
        second.engine.stack.set_read_only();
        play(&mut second, &mut oracle, look(), 4, false);
        // It has handed nothing down.
        let below = second.disks[1].borrow_mut().after_the_cut(&mut fate);
        assert_eq!(below.blocks, media[1].blocks, "seed {seed}");
    }
}
