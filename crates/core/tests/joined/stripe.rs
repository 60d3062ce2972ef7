//! Stripes: where blocks lie, what goes below, and what a lost node and a failed flush cost.

use crate::common::harness::{JumpingClock, MemoryDisk, play, random_steps};
use crate::slice_flushes::Bench;
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::disk::{Disk, Geometry, Media, Survival};
use imbrex_core::engine::Engine;
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::joined::JoinError;
use imbrex_core::layer::{Context, Issue, Layer, Port};
use imbrex_core::lifecycle::{OpenError, Start};
use imbrex_core::operation::{Completion, Operation, Request, RequestId, Tag};
use imbrex_core::rng::Rng;
use imbrex_core::stack::{DiskId, Stack, StackBuilder};
use imbrex_core::stripe::{Stripe, StripeLayout};
use imbrex_core::units::{BlockCount, Lba};
use std::collections::BTreeMap;

const LOST: Result<(), IoError> = Err(IoError::Lost);
const MEDIUM: Result<(), IoError> = Err(IoError::Medium);
/// Nodes and blocks of a chunk.
const SHAPES: [(usize, u64); 8] = [(1, 1), (1, 5), (2, 1), (2, 16), (3, 1), (3, 7), (4, 4), (7, 3)];

/// Where each block of a stripe lies, found by dealing out chunks one by one.
fn dealt_out(nodes: usize, chunk: u64, rows: u64) -> Vec<(usize, u64)> {
    let mut next = vec![0; nodes];
    let mut places = Vec::new();
    for turn in 0..rows * nodes as u64 {
        let node = turn as usize % nodes;
        for _ in 0..chunk {
            places.push((node, next[node]));
            next[node] += 1;
        }
    }
    places
}

#[test]
fn every_block_has_one_place_and_every_place_one_block() {
    for (nodes, chunk) in SHAPES {
        let layout = StripeLayout::new(nodes, BlockCount(chunk));
        let places = dealt_out(nodes, chunk, 9);
        let mut taken = BTreeMap::new();
        for (block, &(node, inside)) in (0..).zip(&places) {
            assert_eq!(layout.place_of(Lba(block)), (node, Lba(inside)));
            assert_eq!(layout.block_at(node, Lba(inside)), Lba(block));
            assert_eq!(taken.insert((node, inside), block), None, "taken twice");
        }
        let used = layout.used_of_each(BlockCount(9 * chunk + chunk - 1)).0;
        assert_eq!((used, taken.len() as u64), (9 * chunk, used * nodes as u64));
    }
}

#[test]
fn the_parts_of_an_extent_are_its_blocks_and_the_longer_come_first() {
    let mut rng = Rng::new(11, 0);
    for (nodes, chunk) in SHAPES {
        let layout = StripeLayout::new(nodes, BlockCount(chunk));
        let places = dealt_out(nodes, chunk, 9);
        let all = places.len() as u64;
        for _ in 0..2_000 {
            let start = rng.below(all);
            let extent = Extent::new(start, rng.below(all - start + 1));
            let mut wanted = places[extent.start.0 as usize..extent.end().0 as usize].to_vec();
            wanted.sort_unstable();
            let parts: Vec<_> = layout.parts_of(extent).collect();
            let chunks =
                |part: &(usize, Extent)| (part.1.end().0 - 1) / chunk - part.1.start.0 / chunk;
            assert!(parts.is_sorted_by(|a, b| chunks(a) >= chunks(b)), "{parts:?}");
            let mut found: Vec<_> = (parts.iter())
                .flat_map(|(node, it)| (it.start.0..it.end().0).map(|at| (*node, at)))
                .collect();
            found.sort_unstable();
            assert_eq!(found, wanted, "{extent:?} of {nodes} nodes, chunks of {chunk}");
        }
    }
}

/// A stripe of so many disks of 10 blocks.
fn stripe(disks: u16, chunk: u64) -> Stack {
    let mut builder = StackBuilder::new(1);
    let geometry = Geometry::plain(BlockCount(10), Media::SolidState);
    let nodes: Vec<_> = (0..disks).map(|_| builder.disk(geometry.clone())).collect();
    let below = vec![&geometry; nodes.len()];
    let (stripe, told) = Stripe::new(&below, BlockCount(chunk)).expect("plain nodes");
    let top = builder.layer(Box::new(stripe), told, &nodes);
    builder.build(top)
}

#[test]
fn a_request_is_one_operation_of_each_disk_that_it_touches() {
    let mut bench = Bench::new(stripe(3, 2));
    // Chunks 0 to 4, the first and the last in part.
    assert_eq!(bench.ask(Operation::WRITE, Extent::new(1, 8)), Ok(()));
    assert_eq!(bench.ask(Operation::Read, Extent::new(14, 2)), Ok(()));
    assert_eq!(bench.ask(Operation::WRITE_DURABLE, Extent::new(5, 3)), Ok(()));
    assert_eq!(bench.ask(Operation::Flush, Extent::new(4, 1)), Ok(()));
    assert_eq!(bench.ask(Operation::Flush, Extent::EMPTY), Ok(()));
    let [a, b, c] = [0, 1, 2].map(DiskId);
    assert_eq!(
        bench.seen,
        [
            (a, Operation::WRITE, Extent::new(1, 3)),
            (b, Operation::WRITE, Extent::new(0, 3)),
            (c, Operation::WRITE, Extent::new(0, 2)),
            (b, Operation::Read, Extent::new(4, 2)),
            (c, Operation::WRITE_DURABLE, Extent::new(1, 1)),
            (a, Operation::WRITE_DURABLE, Extent::new(2, 2)),
            (c, Operation::Flush, Extent::new(0, 1)),
            (a, Operation::Flush, Extent::EMPTY),
            (b, Operation::Flush, Extent::EMPTY),
            (c, Operation::Flush, Extent::EMPTY),
        ]
    );
}

#[test]
fn random_requests_read_what_was_written() {
    for seed in 0..60 {
        let (nodes, chunk) = SHAPES[(seed % 8) as usize];
        let geometry = Geometry::plain(BlockCount(60), Media::Conventional);
        let mut builder = StackBuilder::new(seed);
        let below: Vec<_> = (0..nodes).map(|_| builder.disk(geometry.clone())).collect();
        let told = vec![&geometry; nodes];
        let (stripe, told) = Stripe::new(&told, BlockCount(chunk)).expect("plain nodes");
        let blocks = told.blocks.0;
        let top = builder.layer(Box::new(stripe), told, &below);
        let disk = |at| MemoryDisk::new(geometry.clone(), seed * 8 + at, 1_000);
        let disks = (0..nodes as u64).map(disk).collect();
        // Some of these are longer than a row.
        let steps = random_steps(seed, 200, blocks, 30);
        let engine = play(builder.build(top), disks, steps, 5).expect("every block is right");
        assert_eq!(engine.buffers.allocated(), 0, "seed {seed}: buffers were lost");
    }
}

#[test]
fn the_smallest_node_counts_and_bands_do_not_show() {
    let plain = |blocks| Geometry::plain(BlockCount(blocks), Media::Conventional);
    let (small, large) = (plain(11), plain(40));
    let memory = Geometry {
        survives: Survival::Process,
        bands: Some(std::sync::Arc::new(imbrex_core::map::BandTable::new([BlockCount(20); 2]))),
        ..large.clone()
    };
    let (_, told) = Stripe::new(&[&large, &small, &memory], BlockCount(4)).expect("plain nodes");
    assert_eq!(told.blocks, BlockCount(3 * 8));
    assert!(told.bands.is_none());
    assert_eq!(told.survives, Survival::Process, "the least of all");
    let refused = Stripe::new(&[&large, &small], BlockCount(16)).map(|_| ());
    let no_chunk =
        JoinError::NoChunk { port: Port(1), blocks: BlockCount(11), chunk: BlockCount(16) };
    assert_eq!(refused, Err(no_chunk));
    let refused = Stripe::new(&[], BlockCount(1)).map(|_| ());
    assert_eq!(refused, Err(JoinError::Ports(0)));
}

#[test]
fn without_one_disk_every_request_fails() {
    let mut bench = Bench::new(stripe(3, 1));
    assert_eq!(bench.ask(Operation::WRITE, Extent::new(0, 9)), Ok(()));
    assert_eq!(bench.ask(Operation::Flush, Extent::EMPTY), Ok(()));
    bench.stack.lose_disk(DiskId(1));
    assert_eq!(bench.ask(Operation::Read, Extent::new(0, 1)), LOST);
    assert_eq!(bench.ask(Operation::WRITE, Extent::new(0, 1)), LOST);
    assert_eq!(bench.ask(Operation::Flush, Extent::EMPTY), LOST);
}

#[test]
fn a_write_that_a_lost_disk_has_taken_is_under_no_flush_that_is_answered_well() {
    let mut bench = Bench::new(stripe(2, 1));
    assert_eq!(bench.ask(Operation::WRITE, Extent::new(0, 2)), Ok(()));
    bench.send(1, Operation::Flush, Extent::EMPTY);
    bench.stack.lose_disk(DiskId(1));
    bench.end(0, Ok(()));
    assert_eq!(bench.reply(), None, "the other disk has not answered");
    bench.end(1, LOST);
    assert_eq!(bench.reply(), Some((1, LOST)));
}

#[test]
fn after_a_flush_of_a_disk_has_failed_no_later_one_is_believed() {
    let mut bench = Bench::new(stripe(2, 1));
    assert_eq!(bench.ask(Operation::WRITE, Extent::new(0, 2)), Ok(()));
    bench.send(1, Operation::Flush, Extent::EMPTY);
    bench.end(1, MEDIUM);
    bench.end(0, Ok(()));
    assert_eq!(bench.reply(), Some((1, MEDIUM)));
    assert_eq!(bench.ask(Operation::Flush, Extent::EMPTY), MEDIUM);
    assert_eq!(bench.ask(Operation::Flush, Extent::new(0, 1)), Ok(()));
    assert_eq!(bench.ask(Operation::Read, Extent::new(0, 2)), Ok(()));
}

#[test]
fn a_stripe_without_a_disk_does_not_come_up() {
    for lost in 0..3 {
        let mut stack = stripe(3, 2);
        let geometry = Geometry::plain(BlockCount(10), Media::SolidState);
        let disk = || Box::new(MemoryDisk::new(geometry.clone(), 1, 0)) as Box<dyn Disk>;
        (0..lost).for_each(|disk| stack.lose_disk(DiskId(disk)));
        let mut engine = Engine {
            stack,
            disks: vec![disk(), disk(), disk()],
            buffers: Buffers::new(ContentKind::Counted),
            in_flight_max: 1,
        };
        let opened = engine.open(&mut JumpingClock::default(), Start::Recover(None));
        let opened = opened.map_err(|(_, error)| error);
        match lost {
            0 => assert_eq!(opened, Ok(())),
            _ => assert_eq!(opened, Err(OpenError::Io(IoError::Lost))),
        }
    }
}

/// Writes the same data to both of its nodes at once.
#[derive(Default)]
struct ToBoth {
    waiting: Option<RequestId>,
}

impl Layer for ToBoth {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        self.waiting = Some(request.id);
        for port in [Port(0), Port(1)] {
            ctx.issue(Issue {
                port,
                operation: request.operation,
                extent: request.extent,
                buffer: request.buffer,
                cause: request.cause,
                tag: Tag(0),
            });
        }
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        if ctx.in_flight(Port(0)) + ctx.in_flight(Port(1)) == 0 {
            let request = self.waiting.take().expect("a request");
            ctx.finish(request, completion.result);
        }
    }
}

#[test]
fn data_that_another_disk_is_writing_can_be_scattered() {
    let mut builder = StackBuilder::new(1);
    let geometry = Geometry::plain(BlockCount(10), Media::SolidState);
    let [beside, a, b] = [0; 3].map(|_| builder.disk(geometry.clone()));
    let (stripe, told) = Stripe::new(&[&geometry; 2], BlockCount(1)).expect("plain nodes");
    let stripe = builder.layer(Box::new(stripe), told, &[a, b]);
    let top = builder.layer(Box::new(ToBoth::default()), geometry, &[beside, stripe]);
    let mut bench = Bench::new(builder.build(top));
    assert_eq!(bench.ask(Operation::WRITE, Extent::new(1, 4)), Ok(()));
    assert_eq!(bench.seen.len(), 3, "{:?}", bench.seen);
}
