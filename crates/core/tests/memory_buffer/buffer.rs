//! At queue depth 1 a write buffer counts and writes exactly what an untimed one does.

use crate::common::harness::{MemoryDisk, Step, play, random_steps};
use crate::reference::{Outcome, Reference};
use imbrex_core::counters::{Counter, Gauge};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::extent::Extent;
use imbrex_core::map::BandTable;
use imbrex_core::memory_buffer::{
    BufferBelow, BufferPolicy, MemoryBuffer, MemoryBufferSettings, PartialRead, Scope,
};
use imbrex_core::stack::{NodeId, Stack, StackBuilder};
use imbrex_core::units::BlockCount;
use std::sync::Arc;

const DEVICE: u64 = 243;
const SEGMENT_BLOCKS: u64 = 5;

pub const POLICIES: [BufferPolicy; 5] = [
    BufferPolicy::Lwa(Scope::Window),
    BufferPolicy::Lwa(Scope::WholeBuffer),
    BufferPolicy::Most,
    BufferPolicy::LruBlock,
    BufferPolicy::LruSegment,
];

pub fn settings(policy: BufferPolicy) -> MemoryBufferSettings {
    MemoryBufferSettings {
        capacity_blocks: 4,
        block: BlockCount(4),
        window_blocks: 4,
        policy,
        partial_read: PartialRead::Memory,
        persistence: None,
    }
}

fn segments(parts: u64) -> Arc<BandTable> {
    let blocks = SEGMENT_BLOCKS * parts;
    let whole = (0..DEVICE / blocks).map(|_| BlockCount(blocks));
    let rest = Some(BlockCount(DEVICE % blocks)).filter(|rest| rest.0 > 0);
    Arc::new(BandTable::new(whole.chain(rest)))
}

fn stack(settings: MemoryBufferSettings, seed: u64) -> (Stack, MemoryDisk, NodeId) {
    let geometry = Geometry {
        bands: Some(segments(settings.block.0)),
        rewrite_block: Some(settings.block),
        ..Geometry::plain(BlockCount(DEVICE), Media::Shingled)
    };
    let disk = MemoryDisk::new(geometry.clone(), seed, 1_000);
    let mut builder = StackBuilder::new(seed);
    let below = builder.disk(geometry.clone());
    let below_buffer = BufferBelow { log: None, copies: None, below: &geometry };
    let (layer, above) = MemoryBuffer::new(settings, &below_buffer).expect("settings that fit");
    let node = builder.layer(Box::new(layer), above, &[below]);
    (builder.build(node), disk, node)
}

/// Runs a buffer over a disk that finishes in any order.
fn run(settings: MemoryBufferSettings, seed: u64, steps: Vec<Step>) -> Outcome {
    let (stack, disk, node) = stack(settings, seed);
    let medium = disk.medium();
    let engine = play(stack, vec![disk], steps, 1).expect("every block reads what was written");
    let counts = engine.stack.counts(node);
    let writes = &medium.borrow().write_log;
    Outcome {
        block_reads: counts.counter(Counter::BlockReads),
        block_writes: counts.counter(Counter::BlockWrites),
        hit_block_reads: counts.counter(Counter::HitBlockReads),
        hit_block_writes: counts.counter(Counter::HitBlockWrites),
        partial_reads: counts.counter(Counter::PartialReads),
        evictions: counts.counter(Counter::Evictions),
        evicted_blocks: counts.counter(Counter::EvictedBlocks),
        destages: counts.counter(Counter::Destages),
        fill_blocks_read: counts.counter(Counter::FillBlocksRead),
        dirty_blocks: counts.gauge(Gauge::DirtyBlocks),
        written_below: writes.iter().flat_map(|e| e.start.0..e.end().0).collect(),
    }
}

/// The steps that [`play`] plays: the given ones, then a read of everything.
fn with_final_reads(mut steps: Vec<Step>) -> Vec<Step> {
    let looks = (0..DEVICE).step_by(16);
    steps.extend(looks.map(|b| Step::Read(Extent::new(b, 16.min(DEVICE - b)))));
    steps
}

#[test]
fn every_policy_counts_and_writes_as_an_untimed_buffer_does() {
    for seed in 0..2000 {
        let policy = POLICIES[(seed % 5) as usize];
        let capacity_blocks = [1, 2, 5, 9, 16][(seed / 5 % 5) as usize];
        let settings = MemoryBufferSettings {
            capacity_blocks,
            block: BlockCount([1, 3, 4, 8][(seed / 25 % 4) as usize]),
            window_blocks: 1 + (seed % u64::from(capacity_blocks)) as u32,
            partial_read: match seed / 100 % 2 {
                0 => PartialRead::Memory,
                _ => PartialRead::Flash,
            },
            ..settings(policy)
        };
        let steps = random_steps(seed, 60, DEVICE, 12);
        let all = with_final_reads(steps.clone());
        let expected = Reference::run(settings, DEVICE, SEGMENT_BLOCKS, &all);
        let found = run(settings, seed, steps);
        assert_eq!(found, expected, "seed {seed}, {settings:?}");
    }
}

fn blocks(numbers: &[u64]) -> Vec<Step> {
    let write = |number: &u64| Step::Write(Extent::new(number * 4, 4));
    numbers.iter().map(write).collect()
}

/// What leaves a memory of four whole blocks when a fifth comes, counted by hand: segments of five
/// blocks, 0 to 4, 5 to 9, 10 to 14.
#[test]
fn who_leaves_is_as_counted_by_hand() {
    let leaves = |policy, window_blocks, numbers: &[u64]| {
        let settings = MemoryBufferSettings { window_blocks, ..settings(policy) };
        let found = run(settings, 1, blocks(numbers));
        let written = found.written_below.iter().step_by(4);
        (written.map(|lba| lba / 4).collect::<Vec<_>>(), found.evictions)
    };
    // In memory, from the tail: 0, 5, 6, 1; then 20 comes.
    let order = [0, 5, 6, 1, 20];
    let window = BufferPolicy::Lwa(Scope::Window);
    let whole = BufferPolicy::Lwa(Scope::WholeBuffer);
    assert_eq!(leaves(window, 4, &order), (vec![0, 1], 1), "a tie");
    assert_eq!(leaves(window, 3, &order), (vec![5, 6], 1));
    assert_eq!(leaves(window, 2, &order), (vec![0], 1), "a tie of one each");
    assert_eq!(leaves(whole, 2, &order), (vec![0, 1], 1));
    assert_eq!(leaves(BufferPolicy::Most, 1, &order), (vec![0, 1], 1));
    assert_eq!(leaves(BufferPolicy::LruBlock, 1, &order), (vec![0], 1));
    assert_eq!(leaves(BufferPolicy::LruSegment, 1, &order), (vec![5, 6], 1));
    // A hit makes a block the newest: from the tail 5, 6, 1, 0.
    let touched = [0, 5, 6, 1, 0, 20];
    assert_eq!(leaves(window, 4, &touched), (vec![5, 6], 1));
    assert_eq!(leaves(BufferPolicy::LruBlock, 1, &touched), (vec![5], 1));
}

#[test]
fn a_partly_valid_block_is_filled_once() {
    let steps = |reads: &[Extent]| {
        let mut steps = vec![Step::Write(Extent::new(4, 1))];
        steps.extend(reads.iter().map(|extent| Step::Read(*extent)));
        steps.extend(blocks(&[5, 10, 15, 20]));
        steps
    };
    let with = |partial_read, reads: &[Extent]| {
        let settings = MemoryBufferSettings { partial_read, ..settings(BufferPolicy::LruBlock) };
        let found = run(settings, 2, steps(reads));
        assert_eq!(found.evictions, 1);
        (found.hit_block_reads, found.partial_reads, found.fill_blocks_read)
    };
    // The last look of the host adds a hit for each of the four blocks that are left.
    let twice = [Extent::new(4, 2), Extent::new(4, 2)];
    assert_eq!(with(PartialRead::Memory, &[]), (4, 0, 1));
    assert_eq!(with(PartialRead::Memory, &twice), (5, 1, 0));
    assert_eq!(with(PartialRead::Flash, &twice), (4, 2, 1));
    assert_eq!(with(PartialRead::Flash, &[Extent::new(4, 1)]), (5, 0, 1));
}

#[test]
fn a_buffer_refuses_what_it_does_not_fit() {
    let below = Geometry {
        rewrite_block: Some(BlockCount(16)),
        ..Geometry::plain(BlockCount(1000), Media::Shingled)
    };
    let refusal = |settings| {
        let below = BufferBelow { log: None, copies: None, below: &below };
        MemoryBuffer::new(settings, &below).err().expect("a refusal").to_string()
    };
    assert_eq!(
        refusal(settings(BufferPolicy::Most)),
        "block = 16384 B, and the node below rewrites blocks of 65536 B; accepted: the same"
    );
    let too_long = MemoryBufferSettings { block: BlockCount(4096), ..settings(BufferPolicy::Most) };
    assert_eq!(refusal(too_long), "block = 16777216 B; accepted: 4 KiB to 8 MiB");
}
