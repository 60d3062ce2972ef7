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
use imbrex_core::stack::Arrival;
use imbrex_core::units::{BLOCK_BYTES, Instant};
use imbrex_sim::experiment::{BuildOptions, Plan, Setting, StackConfig, ready_made};
use imbrex_sim::simulation::VirtualClock;

const DEVICE_BLOCKS: u64 = 32 * 256;
const REQUESTS: u64 = 600;
/// What one record of a journal covers, so that a longer request is several.
const LONGEST: u64 = 960;
/// Log and cache are so small that nearly every write moves something out of both.
const TINY: [&str; 4] = [
    "cache.capacity=5MiB",
    "cache.zone=2MiB",
    "translation.persistent_cache=8MiB",
    "translation.bands=uniform:1MiB..3MiB",
];
/// Decisions of caches and translations.
const DECISIONS: [Counter; 13] = [
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

/// What every layer has decided, from the bottom up, after each request.
fn decisions(stack: &str, durable: bool) -> Vec<Vec<u64>> {
    let settings = TINY.map(|text| Setting::parse(text).expect("a setting"));
    let config = StackConfig::load(stack, &settings).expect("a stack");
    let options = BuildOptions {
        size_bytes: Some(DEVICE_BLOCKS * BLOCK_BYTES),
        durable,
        ..BuildOptions::simulate(1)
    };
    let plan = Plan::new(&config, &options).expect("a plan");
    // Journals are bytes.
    let built = plan.build(None, None, ContentKind::Bytes);
    let built = built.expect("a stack that fits");
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
            arrival: Some(Arrival {
                tag: Tag(0),
                operation,
                extent,
                buffer,
            }),
            is_answered: false,
        };
        engine.run(&mut clock, &mut one, &mut |_, _| {});
        engine.buffers.release(buffer);
        let nodes = engine.stack.bottom_up();
        let counted = nodes.flat_map(|node| {
            let counts = engine.stack.counts(node);
            DECISIONS.map(|counter| counts.counter(counter))
        });
        decisions.push(counted.collect());
    }
    decisions
}

#[test]
fn a_durable_stack_decides_as_a_volatile_one_does() {
    for stack in ready_made() {
        let (volatile, durable) = (decisions(stack, false), decisions(stack, true));
        for (index, (volatile, durable)) in volatile.iter().zip(&durable).enumerate() {
            let request = requests()[index];
            assert_eq!(durable, volatile, "{stack}, request {index}, {request:?}");
        }
        let last = volatile.last().expect("requests");
        let sum = |decision: usize| {
            last.iter()
                .skip(decision)
                .step_by(DECISIONS.len())
                .sum::<u64>()
        };
        if stack != "cmr-only" {
            assert!(sum(11) > 20, "{stack}: {} bands were rewritten", sum(11));
        }
        if !stack.ends_with("-only") {
            assert!(sum(4) > 1000, "{stack}: {} blocks were evicted", sum(4));
        }
    }
}
