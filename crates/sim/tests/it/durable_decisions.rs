//! Durability changes what is written beside the data and when, and nothing else: at queue depth 1
//! every request looks up, hits, evicts, appends and rewrites the same in a stack that keeps
//! journals and in one that does not.

use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind};
use imbrex_core::counters::Counter;
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::operation::{Completion, Operation, Tag};
use imbrex_core::rng::Rng;
use imbrex_core::stack::{Arrival, NodeId};
use imbrex_core::units::{BLOCK_BYTES, Instant};
use imbrex_sim::simulation::VirtualClock;
use imbrex_stack::{BuildOptions, Plan, Setting, StackConfig, compared};

const DEVICE_BLOCKS: u64 = 32 * 256;
const REQUESTS: u64 = 250;
/// What one record of a journal covers, so that a longer request is several.
const LONGEST: u64 = 960;
/// Log and cache hold a few of the longest requests, so that both are full soon.
const TINY: [&str; 4] = [
    "cache.capacity=5MiB",
    "cache.zone=2MiB",
    "translation.persistent_cache=8MiB",
    "translation.bands=uniform:1MiB..3MiB",
];
/// Bands of which some are collected soon.
const SHORT_BANDS: [&str; 3] =
    ["array.track_blocks=8", "array.band_tracks=8", "array.collect_at=40"];
/// Decisions of caches, translations and arrays.
const DECISIONS: [Counter; 20] = [
    Counter::ReadLookups,
    Counter::WriteLookups,
    Counter::ReadHits,
    Counter::WriteHits,
    Counter::DirtyEvictions,
    Counter::CleanEvictions,
    Counter::ForcedEvictions,
    Counter::RegionDivisions,
    Counter::PersistentCacheAppendedBlocks,
    Counter::PersistentCacheUpdatedBlocks,
    Counter::PersistentCacheMergedBlocks,
    Counter::BandsRewritten,
    Counter::BypassedBlocks,
    Counter::FirstWrites,
    Counter::Updates,
    Counter::UnsafeFirstWrites,
    Counter::Redirected,
    Counter::Collections,
    Counter::ForcedCollections,
    Counter::CollectedBlocks,
];

/// Sends one request and waits for its answer.
struct One {
    arrival: Option<Arrival>,
    is_answered: bool,
}

impl Frontend for One {
    fn next_arrival(&self) -> Option<Instant> {
        self.arrival.is_some().then_some(Instant::ZERO)
    }

    fn poll(&mut self, _now: Instant, _buffers: &mut Buffers) -> Option<Arrival> {
        self.arrival.take()
    }

    fn reply(&mut self, _now: Instant, completion: Completion, _buffers: &mut Buffers) {
        assert_eq!(completion.result, Ok(()));
        self.is_answered = true;
    }

    fn finished(&self) -> bool {
        self.is_answered
    }
}

/// Reads, writes, forced writes and flushes, most of them short.
fn requests() -> Vec<(Operation, Extent)> {
    let mut rng = Rng::new(3, 1);
    let mut request = |_| {
        let longest = [LONGEST, 24, 24, 24, 24, 24][rng.below(6) as usize];
        let length = 1 + rng.below(longest);
        let within = DEVICE_BLOCKS / [1, 4][rng.below(2) as usize];
        let extent = Extent::new(rng.below(within - length), length);
        match rng.below(20) {
            0..5 => (Operation::Read, extent),
            5 => (Operation::Flush, Extent::EMPTY),
            6 | 7 => (Operation::WRITE_DURABLE, extent),
            _ => (Operation::WRITE, extent),
        }
    };
    (0..REQUESTS).map(&mut request).collect()
}

/// What the layers in question have decided after each request, in a stack of which some nodes are
/// durable.
fn decisions(stack: &str, durable: &[&str], of: &[&str]) -> Vec<Vec<u64>> {
    let durable = durable.iter().map(|node| format!("{node}.durable=true"));
    let sizes = if of == ["array"] { &SHORT_BANDS[..] } else { &TINY[..] };
    let settings = sizes.iter().map(|text| text.to_string()).chain(durable);
    let settings: Vec<Setting> =
        settings.map(|text| Setting::parse(&text).expect("a setting")).collect();
    let config = StackConfig::load(stack, &settings).expect("a stack");
    let options =
        BuildOptions { size_bytes: Some(DEVICE_BLOCKS * BLOCK_BYTES), ..BuildOptions::simulate(1) };
    let plan = Plan::new(&config, &options).expect("a plan");
    // Journals are bytes.
    let built = plan.build(None, None, ContentKind::Bytes);
    let built = built.expect("a stack that fits");
    let nodes: Vec<NodeId> = of
        .iter()
        .filter_map(|name| match *name {
            "cache" => built.describe.cache(),
            "array" => built.describe.nodes.iter().find(|it| it.name == *name).map(|it| it.id),
            _ => built.describe.translation(),
        })
        .collect();
    let mut engine = Engine {
        stack: built.stack,
        disks: built.disks,
        buffers: Buffers::new(ContentKind::Bytes),
        in_flight_max: 1,
    };
    let mut clock = VirtualClock::default();
    let start = Start::Format(Uuid([4; 16]));
    engine.open(&mut clock, start).expect("it opens");
    let mut decisions = Vec::new();
    for (operation, extent) in requests() {
        let buffer = match operation {
            Operation::Flush => BufferSlice::EMPTY,
            _ => engine.buffers.allocate(extent.blocks.0),
        };
        let mut one = One {
            arrival: Some(Arrival { tag: Tag(0), operation, extent, buffer }),
            is_answered: false,
        };
        engine.run(&mut clock, &mut one, &mut |_, _| {});
        engine.buffers.release(buffer);
        let counted = nodes.iter().flat_map(|node| {
            let counts = engine.stack.counts(*node);
            DECISIONS.map(|counter| counts.counter(counter))
        });
        decisions.push(counted.collect());
    }
    decisions
}

/// What was counted at the end, over all layers in question.
fn total(decisions: &[Vec<u64>], counter: Counter) -> u64 {
    let last = decisions.last().expect("requests");
    let at = DECISIONS.iter().position(|decision| *decision == counter);
    let counts = last.iter().skip(at.expect("a decision"));
    counts.step_by(DECISIONS.len()).sum()
}

fn decides_the_same(stack: &str, durable: &[&str], of: &[&str]) -> Vec<Vec<u64>> {
    let volatile = decisions(stack, &[], of);
    let with_journals = decisions(stack, durable, of);
    for (index, request) in requests().iter().enumerate() {
        assert_eq!(
            with_journals[index], volatile[index],
            "{stack} with a durable {durable:?}, request {index}, {request:?}"
        );
    }
    volatile
}

fn stacks_with(node: &'static str) -> impl Iterator<Item = &'static str> {
    compared().filter(move |stack| {
        let config = StackConfig::load(stack, &[]).expect("a stack");
        config.has_node(node)
    })
}

#[test]
fn a_durable_translation_appends_and_rewrites_as_a_volatile_one_does() {
    for stack in stacks_with("translation") {
        let decisions = decides_the_same(stack, &["translation"], &["translation", "cache"]);
        let rewritten = total(&decisions, Counter::BandsRewritten);
        // RIDE rewrites the fewest.
        assert!(rewritten > 10, "{stack}: {rewritten} bands were rewritten");
    }
}

/// The translation below gets the write-intent pages of a durable cache beside its data, so its own
/// decisions are others.
#[test]
fn a_durable_cache_looks_up_and_evicts_as_a_volatile_one_does() {
    for stack in stacks_with("cache") {
        let decisions = decides_the_same(stack, &["cache", "translation"], &["cache"]);
        let evicted = total(&decisions, Counter::DirtyEvictions);
        assert!(evicted > 1000, "{stack}: {evicted} blocks were evicted");
    }
}

#[test]
fn a_durable_raid4smr_redirects_and_collects_as_a_volatile_one_does() {
    let decisions = decides_the_same("raid4smr", &["array"], &["array"]);
    let collected = total(&decisions, Counter::Collections);
    assert!(collected > 100, "{collected} band rows were collected");
}
