//! A write buffer with a store of copies beside it.

use crate::buffer::{POLICIES, settings};
use crate::common::crash_disk::{CrashDisk, Medium};
use crate::common::harness::{JumpingClock, MemoryDisk, Step, play, random_steps};
use crate::common::oracle::{Ask, Host, MayFail, Oracle};
use crate::copy_store::{Asked, ToyStore, ToyTranslation};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::counters::Counter;
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::engine::Engine;
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::memory_buffer::{
    BufferBelow, BufferPolicy, MemoryBuffer, MemoryBufferSettings, PartialRead,
};
use imbrex_core::operation::CopyOperation::{self, *};
use imbrex_core::stack::{NodeId, Stack, StackBuilder};
use imbrex_core::units::BlockCount;
use std::cell::RefCell;
use std::rc::Rc;

const DEVICE: u64 = 150;

/// What is under test: the stack, its disk, and what was seen.
struct World {
    stack: Stack,
    disk: MemoryDisk,
    buffer: NodeId,
    asked: Asked,
    batches: Rc<RefCell<Vec<Vec<Extent>>>>,
}

fn world(settings: MemoryBufferSettings, seed: u64, forgets_every: u64) -> World {
    let parts = settings.block.0;
    let geometry = Geometry::plain(BlockCount(DEVICE), Media::Conventional);
    let disk = MemoryDisk::new(geometry.clone(), seed, 1_000);
    let mut builder = StackBuilder::new(seed);
    let node = builder.disk(geometry.clone());
    let (store, copies, asked) = ToyStore::new(DEVICE, parts, 6, forgets_every);
    let store = builder.layer(Box::new(store), copies.clone(), &[]);
    let translation = ToyTranslation::new(parts);
    let batches = Rc::clone(&translation.batches);
    let geometry = Geometry { tells_copies: true, ..geometry };
    let below = builder.layer(Box::new(translation), geometry.clone(), &[store, node]);
    let on = BufferBelow { log: None, copies: Some(&copies), below: &geometry };
    let (layer, above) = MemoryBuffer::new(settings, &on).expect("settings that fit");
    let buffer = builder.layer(Box::new(layer), above, &[store, below]);
    World { stack: builder.build(buffer), disk, buffer, asked, batches }
}

#[test]
fn every_block_reads_what_was_written_whatever_the_store_forgets() {
    for seed in 0..600 {
        let settings = MemoryBufferSettings {
            capacity_blocks: [0, 1, 3, 6][(seed / 5 % 4) as usize],
            window_blocks: 1,
            partial_read: match seed % 2 {
                0 => PartialRead::Memory,
                _ => PartialRead::Flash,
            },
            ..settings(POLICIES[(seed % 5) as usize])
        };
        let world = world(settings, seed, [0, 7, 31][(seed % 3) as usize]);
        let steps = random_steps(seed, 120, DEVICE, 12);
        let depth = [1, 2, 5, 16][(seed / 20 % 4) as usize];
        if let Err(failure) = play(world.stack, vec![world.disk], steps, depth) {
            panic!("seed {seed}, queue depth {depth}, {settings:?}: {failure}");
        }
    }
}

fn asked_by(settings: MemoryBufferSettings, steps: &[Step]) -> Vec<(CopyOperation, u64)> {
    let world = world(settings, 3, 0);
    let asked = Rc::clone(&world.asked);
    let last_look = DEVICE.div_ceil(16);
    let engine = play(world.stack, vec![world.disk], steps.to_vec(), 1).expect("right contents");
    let counts = engine.stack.counts(world.buffer);
    assert!(counts.counter(Counter::BlockReads) >= last_look);
    // The last look of the host begins with block 0.
    let asked = asked.borrow();
    let end = asked.iter().rposition(|it| *it == (FindOrReserve, 0));
    asked[..end.expect("a last look")].to_vec()
}

/// What the store is asked, and when: a read brings a copy, a write makes it old, and what leaves is
/// filled from a copy.
#[test]
fn the_store_is_asked_in_the_order_of_the_requests() {
    let read = |lba| Step::Read(Extent::new(lba, 1));
    let write = |lba, blocks| Step::Write(Extent::new(lba, blocks));
    let steps = [read(21), write(21, 1), read(22), write(24, 4), write(28, 4)];
    let small = |partial_read| MemoryBufferSettings {
        capacity_blocks: 2,
        window_blocks: 2,
        partial_read,
        ..settings(BufferPolicy::LruBlock)
    };
    let memory = asked_by(small(PartialRead::Memory), &steps);
    let expected = [
        (FindOrReserve, 5),
        (Store, 5),
        (Overwritten, 5),
        (Find, 5),
        (Overwritten, 6),
        (Destaged, 5),
        (Overwritten, 7),
    ];
    assert_eq!(memory, expected, "the read has filled the block");
    let flash = asked_by(small(PartialRead::Flash), &steps);
    let expected = [
        (FindOrReserve, 5),
        (Store, 5),
        (Overwritten, 5),
        (FindOrReserve, 5),
        (Store, 5),
        (Overwritten, 6),
        (Peek, 5),
        (Destaged, 5),
        (Overwritten, 7),
    ];
    assert_eq!(flash, expected);
    let none = MemoryBufferSettings { capacity_blocks: 0, ..small(PartialRead::Flash) };
    let asked = asked_by(none, &steps[..3]);
    let expected =
        [(FindOrReserve, 5), (Store, 5), (Overwritten, 5), (FindOrReserve, 5), (Store, 5)];
    assert_eq!(asked, expected, "without memory");
}

/// Without memory the store is told what is written before it is on the disk, which tells it nothing.
#[test]
fn a_write_around_memory_that_fails_leaves_no_copy() {
    let geometry = Geometry::plain(BlockCount(DEVICE), Media::Conventional);
    let disk = CrashDisk::new(&Medium::new(geometry.clone()), 3, u64::MAX);
    let shared = disk.shared();
    let mut builder = StackBuilder::new(3);
    let node = builder.disk(geometry.clone());
    let settings = MemoryBufferSettings { capacity_blocks: 0, ..settings(BufferPolicy::LruBlock) };
    let (store, copies, asked) = ToyStore::new(DEVICE, settings.block.0, 6, 0);
    let store = builder.layer(Box::new(store), copies.clone(), &[]);
    let on = BufferBelow { log: None, copies: Some(&copies), below: &geometry };
    let (layer, above) = MemoryBuffer::new(settings, &on).expect("settings that fit");
    let top = builder.layer(Box::new(layer), above, &[store, node]);
    let mut engine = Engine {
        stack: builder.build(top),
        disks: vec![Box::new(disk)],
        buffers: Buffers::new(ContentKind::Bytes),
        in_flight_max: 4,
    };
    let mut clock = JumpingClock::default();
    let opened = engine.open(&mut clock, Start::Format(Uuid([7; 16])));
    opened.unwrap_or_else(|(_, error)| panic!("{error}"));
    let mut oracle = Oracle::default();
    let mut play = |asks: Vec<Ask>| {
        let mut host = Host::new(&mut oracle, asks, 1);
        host.may_fail = MayFail::Changes;
        engine.run(&mut clock, &mut host, &mut |_, _| {});
        assert_eq!(host.mistake, None);
        host.failed.len()
    };
    let block = Extent::new(21, 1);
    let at = block.start.0 / settings.block.0;
    assert_eq!(play(vec![Ask::Write(block), Ask::Read(block)]), 0);
    shared.borrow_mut().fails_from = 0;
    assert_eq!(play(vec![Ask::Write(block)]), 1);
    let asked = asked.borrow();
    assert!(asked.ends_with(&[(Destaged, at), (Drop, at)]), "{asked:?}");
}

#[test]
fn blocks_that_leave_together_are_one_batch_of_adjacent_runs() {
    let settings = MemoryBufferSettings {
        capacity_blocks: 4,
        window_blocks: 4,
        ..settings(BufferPolicy::Most)
    };
    let world = world(settings, 4, 0);
    let write = |block: u64| Step::Write(Extent::new(block * 4, 4));
    let steps = [3, 1, 7, 2, 35].map(write).to_vec();
    let batches = Rc::clone(&world.batches);
    play(world.stack, vec![world.disk], steps, 1).expect("right contents");
    // The first 32 blocks are a segment where the node below knows none.
    let expected = vec![vec![Extent::new(4, 12), Extent::new(28, 4)]];
    assert_eq!(*batches.borrow(), expected);
}
