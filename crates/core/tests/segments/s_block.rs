//! The translation by S-blocks: where things lie, what it counts, and batches from above.

use crate::common::check::memory_disk;
use crate::common::harness::{MemoryDisk, Step, play, random_steps};
use imbrex_core::buffer::BufferSlice;
use imbrex_core::counters::Counter;
use imbrex_core::disk::{CopyStore, Geometry, Media, TrackTable};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::engine::Engine;
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::layer::{Context, Issue, Layer, Port};
use imbrex_core::operation::{Cause, Completion, CopyOperation, Operation, Request, Tag};
use imbrex_core::rng::Rng;
use imbrex_core::stack::{NodeId, Stack, StackBuilder};
use imbrex_core::translation::{
    ChecksumSettings, Fill, GcOrder, MILLION, Prefill, RingSize, SBlockError, SBlockLayout,
    SBlockSettings, SBlocks, SpareSlots, TrackSource,
};
use imbrex_core::units::BlockCount;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// One region of four S-blocks, each of two blocks of two, and two spare slots.
fn small(ring: u64) -> SBlockSettings {
    SBlockSettings {
        block: BlockCount(2),
        track: TrackSource::Dense(BlockCount(8)),
        region_tracks: 2,
        spare_ppm: MILLION / 2,
        ring: RingSize::Blocks(ring),
        wanted: Some(BlockCount(16)),
        ..SBlockSettings::new()
    }
}

/// Hands each write down as a batch of destages of single blocks; everything else as it is.
struct Destager {
    open: Vec<(u64, Request, u32)>,
    next: u64,
}

impl Layer for Destager {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        let parts = match request.operation {
            Operation::Write { .. } => request.extent.blocks.0,
            _ => 1,
        };
        let tag = self.next;
        self.next += 1;
        self.open.push((tag, request, parts as u32));
        for at in 0..parts {
            let (extent, buffer, cause) = match request.operation {
                Operation::Write { .. } => {
                    let one = Extent::new(request.extent.start.0 + at, 1);
                    (one, request.buffer.part(at, 1), Cause::Destage)
                }
                _ => (request.extent, request.buffer, Cause::Host),
            };
            let issue = Issue {
                port: Port(0),
                operation: request.operation,
                extent,
                buffer,
                cause,
                tag: Tag(tag),
            };
            match at + 1 < parts {
                true => ctx.issue_in_batch(issue),
                false => ctx.issue(issue),
            }
        }
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        let at = self.open.iter().position(|(tag, ..)| *tag == completion.tag.0);
        let at = at.expect("a request");
        self.open[at].2 -= 1;
        if self.open[at].2 == 0 {
            let (_, request, _) = self.open.remove(at);
            ctx.finish(request.id, completion.result);
        }
    }
}

fn stack(settings: SBlockSettings, batches: bool, seed: u64) -> (Stack, NodeId, Vec<MemoryDisk>) {
    let disk = memory_disk(600, seed);
    let below = Geometry::plain(BlockCount(600), Media::Conventional);
    let (layer, told) = SBlocks::new(settings, &below, None).expect("a layout");
    let mut builder = StackBuilder::new(seed);
    let node = builder.disk(below);
    let translation = builder.layer(Box::new(layer), told.clone(), &[node]);
    let top = match batches {
        false => translation,
        true => {
            let destager = Destager { open: Vec::new(), next: 0 };
            builder.layer(Box::new(destager), told, &[translation])
        }
    };
    (builder.build(top), translation, vec![disk])
}

fn played(settings: SBlockSettings, batches: bool, steps: &[Step]) -> (Engine, NodeId) {
    let (stack, node, disks) = stack(settings, batches, 1);
    let engine = play(stack, disks, steps.to_vec(), 1).unwrap();
    (engine, node)
}

/// Segments rewritten, runs, migrations, blocks read, destaged, written beside.
fn counts((engine, node): (Engine, NodeId)) -> [u64; 6] {
    let counts = engine.stack.counts(node);
    [
        Counter::SegmentsRewritten,
        Counter::GcRuns,
        Counter::GcMigrations,
        Counter::RewriteBlocksRead,
        Counter::DestagedBlocks,
        Counter::RewriteBlocksWritten,
    ]
    .map(|counter| counts.counter(counter))
}

fn write(start: u64, blocks: u64) -> Step {
    Step::Write(Extent::new(start, blocks))
}

#[test]
fn rewrites_and_moves_are_counted_as_by_hand() {
    // One block each of S-blocks 2, 3 and 2: the second append takes the last slot, 0 and 1 move; the
    // third drops the old copy of 3.
    let steps = [write(8, 2), write(12, 2), write(8, 2)];
    assert_eq!(counts(played(small(0), false, &steps)), [5, 2, 2, 7, 3, 7]);
    // Here no slot is missed before the third append. The old copies of 2 and 3 lie behind 0 and 1.
    let late = SBlockSettings { gc_order: GcOrder::InvalidateFirst, ..small(0) };
    assert_eq!(counts(played(late, false, &steps)), [5, 1, 2, 7, 3, 7]);
    // A part of a block is read with the rest of it.
    assert_eq!(counts(played(small(0), false, &[write(0, 1)])), [1, 0, 0, 2, 1, 1]);
    // A whole S-block needs nothing, and two that a request touches are two rewrites; behind them 0 moves
    // and the old copy of 1 is dropped.
    assert_eq!(counts(played(small(0), false, &[write(4, 8)])), [3, 1, 1, 2, 4, 2]);
    let empty = SBlockSettings { prefill: Prefill::None, ..small(0) };
    assert_eq!(counts(played(empty, false, &[write(4, 2)])), [1, 0, 0, 0, 1, 1]);
}

#[test]
fn a_batch_is_one_rewrite_of_each_s_block() {
    assert_eq!(counts(played(small(3), true, &[write(8, 4)])), [1, 0, 0, 0, 2, 0]);
    let halves = counts(played(small(3), true, &[write(9, 2)]));
    assert_eq!(halves, [1, 0, 0, 2, 2, 0]);
    for seed in 0..60 {
        let depth = [1, 3, 8][(seed % 3) as usize];
        for ring in [0, 3] {
            let (stack, _, disks) = stack(small(ring), true, seed);
            play(stack, disks, random_steps(seed, 150, 16, 6), depth).unwrap();
        }
    }
}

#[test]
fn a_full_ring_gives_up_the_s_block_with_the_most_blocks() {
    // Two blocks of S-block 1 and one of S-block 0 fill it; a fourth needs room.
    let filled = [write(0, 2), write(4, 2), write(6, 2), write(5, 1)];
    assert_eq!(counts(played(small(3), false, &filled)), [0; 6]);
    let more = [&filled[..], &[write(8, 2)]].concat();
    assert_eq!(counts(played(small(3), false, &more)), [1, 0, 0, 0, 2, 0]);
    // Of equal ones the one whose block came first.
    let ties = [write(4, 2), write(0, 2), write(8, 2), write(12, 2), write(4, 2)];
    let (engine, node) = played(small(3), false, &ties);
    assert_eq!(counts((engine, node)), [2, 1, 0, 2, 2, 2]);
}

const SMALL_JOURNAL: DurabilitySettings =
    DurabilitySettings { ring_blocks: 12, unflushed_blocks_max: 8 };

#[test]
fn nothing_lies_on_anything_else_in_thousands_of_layouts() {
    let mut rng = Rng::new(5, 1);
    let mut built = 0;
    for _ in 0..6_000 {
        let block = 1 + rng.below(5);
        let overlap = rng.below(4);
        let runs = [
            (1 + rng.below(60), 6),
            (1 + rng.below(80), 5 + rng.below(20)),
            (1 + rng.below(80), 4 + rng.below(9)),
        ];
        let tracks = TrackTable::new(runs, BlockCount(runs[0].0 * 6), overlap);
        let below = Geometry {
            tracks: Some(Arc::new(tracks.clone())),
            ..Geometry::plain(BlockCount(tracks.blocks()), Media::Shingled)
        };
        let on_disk = rng.below(3) > 0;
        let settings = SBlockSettings {
            block: BlockCount(block),
            track: match on_disk {
                true => TrackSource::Disk,
                false => TrackSource::Dense(BlockCount(block * (1 + rng.below(9)))),
            },
            region_tracks: 1 + rng.below(6),
            guard_tracks: rng.below(3),
            spare_ppm: rng.below(MILLION),
            slots: [SpareSlots::Extra, SpareSlots::Inside][rng.below(2) as usize],
            ring: RingSize::Blocks(rng.below(4)),
            wanted: [None, Some(BlockCount(1 + rng.below(200)))][rng.below(2) as usize],
            durability: [None, Some(SMALL_JOURNAL)][rng.below(2) as usize],
            checksums: [None, Some(ChecksumSettings::default())][rng.below(2) as usize],
            ..SBlockSettings::new()
        };
        let layout = match SBlockLayout::new(&settings, &below) {
            Ok(layout) => layout,
            Err(
                SBlockError::NoData { .. }
                | SBlockError::NoRegion { .. }
                | SBlockError::DenseOverlaps
                | SBlockError::FrontTooSmall { .. },
            ) => continue,
            Err(error) => panic!("{error}"),
        };
        built += 1;
        check_layout(&layout, &tracks, on_disk);
    }
    assert!(built > 2_000, "only {built}");
}

fn check_layout(layout: &SBlockLayout, tracks: &TrackTable, on_disk: bool) {
    let mut used = vec![layout.journal, layout.tables];
    let tables = u64::from(layout.positions()) * layout.table_blocks;
    assert_eq!(layout.tables.blocks.0, tables, "one for each position");
    let (mut segment, mut numbered) = (0, 0);
    for (region, place) in (0..).zip(&layout.places) {
        for index in 0..place.shape.data {
            assert_eq!(layout.region_of(segment), (region, index));
            segment += 1;
        }
        let own: Vec<Extent> = (0..place.shape.positions())
            .map(|position| layout.position(region, position))
            .collect();
        for position in 0..place.shape.positions() {
            assert_eq!(layout.position_number(region, position), numbered);
            numbered += 1;
        }
        for (at, position) in own.iter().enumerate().filter(|_| on_disk) {
            let end = (at + 1 + usize::from(place.shape.guard)).min(own.len());
            let may_harm = Extent::between(position.start, own[end - 1].end());
            for block in position.start.0..position.end().0 {
                for lost in tracks.destroyed_by(Extent::new(block, 1)) {
                    let elsewhere = layout.places.iter().any(|other| {
                        let positions = u64::from(other.shape.positions()) * layout.segment;
                        Extent::new(other.start, positions).overlaps(lost)
                    });
                    assert!(!elsewhere || may_harm.covers(lost), "{layout:?}");
                }
            }
        }
        used.extend(own);
        if layout.ring_places > 0 {
            let ring = (0..layout.ring_places as u32).map(|at| layout.ring_place(region, at));
            used.extend(ring);
        }
    }
    assert_eq!(segment, layout.segments);
    used.retain(|extent| !extent.is_empty());
    used.sort_by_key(|extent| extent.start);
    assert!(used.windows(2).all(|pair| pair[0].end() <= pair[1].start), "{layout:?}");
    assert!(used.last().is_none_or(|last| last.end().0 <= tracks.blocks()));
    assert_eq!(layout.end(), used.last().map_or(0, |last| last.end().0.max(layout.end())));
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let plain = Geometry::plain(BlockCount(600), Media::Conventional);
    let refused = |settings: SBlockSettings, below: &Geometry| {
        SBlocks::new(settings, below, None).map(|_| ()).unwrap_err()
    };
    let on_tracks = SBlockSettings { track: TrackSource::Disk, ..small(0) };
    assert_eq!(refused(on_tracks.clone(), &plain), SBlockError::NoTracks);
    let down = TrackTable::with_shingles(
        [(60, 8)],
        [
            (30, imbrex_core::disk::Shingling::Upwards),
            (30, imbrex_core::disk::Shingling::Downwards),
        ],
        1,
    );
    let down = Geometry { tracks: Some(Arc::new(down)), ..plain.clone() };
    let words = refused(on_tracks, &down).to_string();
    assert!(words.contains("from block 240 on the tracks overlap towards lower"), "{words}");
    let long = SBlockSettings { track: TrackSource::Dense(BlockCount(9)), ..small(0) };
    assert!(refused(long, &plain).to_string().contains("no whole number of blocks"));
}

/// A store that has copies of the blocks it was given, and counts what it is asked.
struct Store {
    copies: BTreeMap<u64, BufferSlice>,
    seen: Rc<RefCell<BTreeMap<&'static str, u64>>>,
}

const STORE_BLOCK: u64 = 2;

impl Layer for Store {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        let Operation::Copy(what) = request.operation else {
            panic!("{request:?}");
        };
        let block = request.extent.start.0 / STORE_BLOCK;
        let name = match what {
            CopyOperation::Peek => "peek",
            CopyOperation::Store => "store",
            CopyOperation::Destaged if request.extent.blocks.0 < STORE_BLOCK => "destaged part",
            CopyOperation::Destaged => "destaged",
            CopyOperation::Drop => "drop",
            _ => panic!("{what:?}"),
        };
        *self.seen.borrow_mut().entry(name).or_default() += 1;
        let result = match (what, self.copies.get(&block)) {
            (CopyOperation::Peek, None) => Err(IoError::NoCopy),
            (CopyOperation::Peek, Some(copy)) => {
                ctx.copy(*copy, request.buffer);
                Ok(())
            }
            (CopyOperation::Drop, _) => {
                if let Some(copy) = self.copies.remove(&block) {
                    ctx.release(copy);
                }
                Ok(())
            }
            // A part of a block changes the copy that there is, and makes none.
            (_, None) if request.extent.blocks.0 < STORE_BLOCK => Ok(()),
            (_, known) => {
                let copy = known.copied().unwrap_or_else(|| ctx.allocate(BlockCount(STORE_BLOCK)));
                let from = request.extent.start.0 % STORE_BLOCK;
                let part = copy.part(from, request.extent.blocks.0);
                ctx.copy(request.buffer, part);
                self.copies.insert(block, copy);
                Ok(())
            }
        };
        ctx.finish(request.id, result);
    }

    fn complete(&mut self, _: Completion, _: &mut Context<'_>) {}
}

#[test]
fn a_store_of_copies_fills_rewrites_and_is_told_what_is_written() {
    for (seed, wants) in (0..40).zip([true, false].into_iter().cycle()) {
        let store = CopyStore { block: BlockCount(STORE_BLOCK), wants_rewrite_reads: wants };
        let settings = SBlockSettings { fill: Fill::Flash, ..small(seed % 3) };
        let below = Geometry::plain(BlockCount(600), Media::Conventional);
        let (layer, told) = SBlocks::new(settings, &below, Some(store)).expect("a layout");
        let seen = Rc::new(RefCell::default());
        let copies = Store { copies: BTreeMap::new(), seen: Rc::clone(&seen) };
        let mut builder = StackBuilder::new(seed);
        let flash_below = Geometry::plain(BlockCount(1), Media::SolidState);
        let (flash, disk) = (builder.disk(flash_below.clone()), builder.disk(below));
        let offers =
            Geometry { copies: Some(store), ..Geometry::plain(told.blocks, Media::SolidState) };
        let copies = builder.layer(Box::new(copies), offers, &[flash]);
        let top = builder.layer(Box::new(layer), told, &[copies, disk]);
        let disks = vec![memory_disk(1, seed), memory_disk(600, seed)];
        let depth = [1, 4][(seed % 2) as usize];
        // Who passes zeroes on drops the copies first, so none is dropped here.
        let mut steps = random_steps(seed, 120, 16, 5);
        steps.retain(|step| !matches!(step, Step::Zero(_)));
        let engine = play(builder.build(top), disks, steps, depth).unwrap();
        let seen = seen.borrow();
        assert!(seen["destaged"] > 0 && seen["destaged part"] > 0 && seen["peek"] > 0, "{seen:?}");
        assert_eq!(seen.contains_key("store"), wants, "{seen:?}");
        assert!(engine.stack.is_quiet());
    }
}
