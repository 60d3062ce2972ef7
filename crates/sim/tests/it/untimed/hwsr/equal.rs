//! The stacks `hwsr` and `s-block` count what the model counts, back to back at queue depth 1.

use super::*;
use crate::simulate::{back_to_back, records, stack, workload};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::counters::{Counter, Counts};
use imbrex_core::engine::Engine;
use imbrex_core::units::Lba;
use imbrex_report::Recorder;
use imbrex_sim::replay::Replayer;
use imbrex_sim::simulation::VirtualClock;
use imbrex_stack::{BuildOptions, Plan};
use imbrex_traces::synthetic::Recipe;
use imbrex_traces::{TraceOperation, TraceRecord};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// A stack with all its options, and the same for the model.
#[derive(Clone, Debug)]
pub struct Case {
    pub geometry: Geometry,
    pub buffer: BufferOptions,
    pub cache: FlashOptions,
    pub home: HomeOptions,
    /// Settings that the model has no option for.
    pub more: Vec<String>,
    /// Size of the device where it is not all of the disk.
    pub size_bytes: Option<u64>,
}

impl Case {
    /// The paper's sizes; the buffer and the cache in blocks of 64 KiB.
    pub fn new(buffer: BufferOptions, cache: FlashOptions, home: HomeOptions) -> Case {
        Case {
            geometry: Geometry::new(4 << 20, 64 << 10, 32),
            buffer,
            cache,
            home,
            more: vec![],
            size_bytes: None,
        }
    }

    fn stack(&self) -> &'static str {
        match self.home {
            HomeOptions::Segments(_) => "hwsr",
            HomeOptions::SBlock(_) => "s-block",
        }
    }

    fn settings(&self) -> Vec<String> {
        let bytes = self.geometry.block_pages * 4096;
        let track = bytes * self.geometry.region_segments;
        let buffer = &self.buffer;
        let mut settings = vec![
            format!("translation.track={track}B"),
            format!("translation.region_tracks={}", self.geometry.segment_blocks),
            format!("buffer.capacity={}B", buffer.capacity_blocks * bytes),
            format!("buffer.policy={}", kebab(&buffer.policy)),
            format!("buffer.lookup_window={} %", buffer.window * 100.0),
            format!("buffer.scope={}", kebab(&buffer.scope)),
            format!("buffer.partial_read={}", kebab(&buffer.partial_read)),
            format!("cache.capacity={}B", self.cache.capacity_blocks * bytes),
            format!("cache.on_write={}", kebab(&self.cache.on_write)),
            format!("cache.fill_from_rewrite={}", self.cache.fill_from_rewrite),
        ];
        for node in ["buffer", "cache", "translation"] {
            settings.push(format!("{node}.block={bytes}B"));
        }
        match &self.home {
            HomeOptions::Segments(home) => settings.extend([
                "translation.journal=off".to_string(),
                format!("translation.kappa={}", home.kappa),
                format!("translation.rewrite={}", kebab(&home.rewrite)),
                format!("translation.valid={}", kebab(&home.valid)),
            ]),
            HomeOptions::SBlock(home) => settings.extend(home.settings()),
        }
        settings.extend(self.more.iter().cloned());
        settings
    }

    /// What the stack counts.
    pub fn stack_counters(&self, records: &[TraceRecord]) -> Counters {
        let settings = self.settings();
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let config = stack(self.stack(), &settings);
        let options = BuildOptions { size_bytes: self.size_bytes, ..BuildOptions::simulate(1) };
        let plan = Plan::new(&config, &options).unwrap_or_else(|error| panic!("{error}"));
        let lookups: Vec<Lba> =
            records.iter().flat_map(|record| crate::untimed::blocks(record).0.map(Lba)).collect();
        let lookups = plan.needs_lookups().then_some(&lookups[..]);
        let built = plan
            .build(None, lookups, ContentKind::Counted)
            .unwrap_or_else(|error| panic!("{error}"));
        let mut engine = Engine {
            stack: built.stack,
            disks: built.disks,
            buffers: Buffers::new(ContentKind::Counted),
            in_flight_max: 1,
        };
        let recorder = Rc::new(RefCell::new(Recorder::new()));
        let requests = records.iter().copied().map(Ok);
        let mut replayer = Replayer::new(requests, back_to_back(1), plan.blocks(), recorder);
        engine.run(&mut VirtualClock::default(), &mut replayer, &mut |_, _| {});
        replayer.take_error().unwrap_or_else(|error| panic!("{error}"));
        let counts = |name: &str| {
            let mut nodes = built.describe.nodes.iter();
            let node = nodes.find(|node| node.name == name).expect("a node");
            engine.stack.counts(node.id)
        };
        counters_of(counts("buffer"), counts("cache"), counts("translation"))
    }

    /// What the model counts.
    pub fn model_counters(&self, records: &[TraceRecord]) -> Counters {
        let mut home = self.home.clone();
        if let HomeOptions::SBlock(options) = &mut home
            && let Prefill::Touched(touched) = &mut options.prefill
        {
            *touched = self.touched(records);
        }
        let mut model = Model::new(self.geometry, self.buffer, self.cache, home);
        for record in records {
            let (pages, is_write) = crate::untimed::blocks(record);
            model.request(is_write, pages.start, pages.end - pages.start);
        }
        model.counters()
    }

    fn touched(&self, records: &[TraceRecord]) -> BTreeSet<u64> {
        let pages = self.geometry.block_pages * self.geometry.segment_blocks;
        let all = records.iter().flat_map(|record| crate::untimed::blocks(record).0);
        all.map(|page| page / pages).collect()
    }

    /// Compares both. On a difference it tells after which request it is there: one before which there is none.
    pub fn check(&self, records: &[TraceRecord]) -> Counters {
        let got = self.stack_counters(records);
        if got == self.model_counters(records) {
            return got;
        }
        // What is touched first must not depend on where the trace is cut.
        let differs = |requests: usize| {
            let part = &records[..requests];
            self.stack_counters(part) != self.model_counters(part)
        };
        let (mut equal, mut different) = (0, records.len());
        while different - equal > 1 {
            let middle = equal.midpoint(different);
            match differs(middle) {
                true => different = middle,
                false => equal = middle,
            }
        }
        let part = &records[..different];
        panic!(
            "{self:?}\n{:?}\nafter request {different}, {:?}, the stack has\n{:?}\nand the model\n{:?}\nbefore it both \
             had\n{:?}",
            self.settings(),
            part.last(),
            self.stack_counters(part),
            self.model_counters(part),
            self.model_counters(&part[..different - 1]),
        );
    }
}

impl SBlockOptions {
    fn settings(&self) -> Vec<String> {
        let mut settings = vec![
            format!("translation.spare={} %", self.spare * 100.0),
            format!("translation.slots={}", kebab(&self.slots)),
            format!("translation.fill={}", kebab(&self.fill)),
        ];
        settings.push(format!(
            "translation.gc_order={}",
            match self.gc_order {
                GcOrder::RoomAfter => "room-first",
                GcOrder::InvalidateFirst => "invalidate-first",
                GcOrder::RoomFirst => panic!("the stack knows no such order"),
            }
        ));
        settings.push(format!(
            "translation.prefill={}",
            match self.prefill {
                Prefill::All => "all",
                Prefill::Touched(_) => "touched",
                Prefill::None => "none",
            }
        ));
        settings.extend(self.ring_blocks.map(|blocks| format!("translation.ring={blocks}")));
        settings
    }
}

/// A name of the model as a word of a stack's file.
fn kebab(name: &impl std::fmt::Debug) -> String {
    let mut word = String::new();
    for letter in format!("{name:?}").chars() {
        if letter.is_uppercase() && !word.is_empty() {
            word.push('-');
        }
        word.extend(letter.to_lowercase());
    }
    word
}

fn counters_of(buffer: &Counts, cache: &Counts, home: &Counts) -> Counters {
    Counters {
        buffer: BufferCounters {
            block_reads: buffer.counter(Counter::BlockReads),
            block_writes: buffer.counter(Counter::BlockWrites),
            hit_block_reads: buffer.counter(Counter::HitBlockReads),
            hit_block_writes: buffer.counter(Counter::HitBlockWrites),
            partial_reads: buffer.counter(Counter::PartialReads),
            evictions: buffer.counter(Counter::Evictions),
            evicted_blocks: buffer.counter(Counter::EvictedBlocks),
            destages: buffer.counter(Counter::Destages),
            fill_blocks_read: buffer.counter(Counter::FillBlocksRead),
        },
        cache: FlashCounters {
            hit_blocks: cache.counter(Counter::HitBlocks),
            miss_blocks: cache.counter(Counter::MissBlocks),
            fill_blocks: cache.counter(Counter::FillBlocks),
            dropped_blocks: cache.counter(Counter::DroppedBlocks),
            skipped_fill_blocks: cache.counter(Counter::SkippedFillBlocks),
        },
        home: HomeCounters {
            segments_rewritten: home.counter(Counter::SegmentsRewritten),
            gc_runs: home.counter(Counter::GcRuns),
            gc_migrations: home.counter(Counter::GcMigrations),
            rewrite_blocks_read: home.counter(Counter::RewriteBlocksRead),
            destaged_blocks: home.counter(Counter::DestagedBlocks),
            rewrite_blocks_written: home.counter(Counter::RewriteBlocksWritten),
        },
    }
}

/// Requests of the synthetic load of the paper's sizes.
pub fn financial1_dense(seed: u64, requests: usize) -> Vec<TraceRecord> {
    let mut recipe = Recipe::load("financial1-dense").expect("a shipped recipe");
    recipe.seed = seed;
    recipe.records().take(requests).collect()
}

/// The defaults of both stacks, and S-blocks with the group destage of the paper.
fn defaults() -> [Case; 3] {
    let lwa = BufferOptions::new(1024, Policy::Lwa);
    let most = BufferOptions::new(1024, Policy::Most);
    let cache = FlashOptions::new(2048);
    [
        Case::new(lwa, cache, hwsr()),
        Case::new(lwa, cache, s_block()),
        Case::new(most, cache, s_block()),
    ]
}

pub fn hwsr() -> HomeOptions {
    HomeOptions::Segments(SegmentsOptions {
        kappa: 3,
        rewrite: Rewrite::Cascade,
        valid: Valid::All,
    })
}

pub fn s_block() -> HomeOptions {
    HomeOptions::SBlock(SBlockOptions::new(0.1))
}

/// S-blocks with so many blocks in the ring of a region.
pub fn with_ring(blocks: u64) -> HomeOptions {
    HomeOptions::SBlock(SBlockOptions { ring_blocks: Some(blocks), ..SBlockOptions::new(0.1) })
}

/// The case with caches of other sizes, in blocks.
fn with_caches(mut case: Case, buffer: u64, cache: u64) -> Case {
    case.buffer.capacity_blocks = buffer;
    case.cache.capacity_blocks = cache;
    case
}

/// Requests of whole pages, each a write or a read.
fn requests(of: impl Iterator<Item = (TraceOperation, u64, u64)>) -> Vec<TraceRecord> {
    of.map(|(operation, first, pages)| TraceRecord::new(0, operation, first * 4096, pages * 4096))
        .collect()
}

/// Without memory above, a write of a part of a block updates its copy too.
#[test]
fn a_copy_that_writes_update_stays_without_a_buffer() {
    use TraceOperation::{Read, Write};
    let cache = FlashOptions { on_write: OnWrite::Update, ..FlashOptions::new(64) };
    let steps = [
        (Read, 0, 16),
        (Write, 3, 2),
        (Read, 0, 16),
        (Write, 0, 16),
        (Write, 8, 24),
        (Read, 0, 16),
    ];
    for home in [hwsr(), s_block(), with_ring(0)] {
        let case = Case::new(BufferOptions::new(0, Policy::Lwa), cache, home);
        let counters = case.check(&requests(steps.into_iter()));
        let cache = counters.cache;
        let counts = (cache.fill_blocks, cache.hit_blocks, cache.dropped_blocks);
        assert_eq!(counts, (1, 2, 0), "{case:?}");
    }
}

/// Reading where nothing was written takes no time, so copies come faster than the flash takes them: what
/// finds no place is counted.
#[test]
fn a_fill_that_finds_no_place_is_counted() {
    let home = HomeOptions::Segments(SegmentsOptions {
        kappa: 3,
        rewrite: Rewrite::Cascade,
        valid: Valid::Touched,
    });
    let case = Case::new(BufferOptions::new(0, Policy::Lwa), FlashOptions::new(1), home);
    let reads = (0..200).map(|block| (TraceOperation::Read, 16 * block, 16));
    let counts = case.stack_counters(&requests(reads)).cache;
    assert_eq!(counts.miss_blocks, 200);
    assert!(counts.skipped_fill_blocks > 0, "{counts:?}");
    assert_eq!(counts.fill_blocks + counts.skipped_fill_blocks, 200);
}

#[test]
fn every_counter_is_that_of_the_model_on_the_dense_load() {
    let requests = financial1_dense(1, 100_000);
    for case in defaults() {
        let counters = case.check(&requests);
        println!("{counters:?}");
        assert!(counters.home.segments_rewritten > 100);
        assert!(counters.cache.hit_blocks > 100 && counters.cache.dropped_blocks > 100);
    }
}

#[test]
fn every_counter_is_that_of_the_model_with_fewer_caches() {
    let requests = financial1_dense(2, 4_000);
    let [mut first, mut second, _] = defaults();
    first.cache.fill_from_rewrite = true;
    second.home = with_ring(32);
    for case in [first, second] {
        for (buffer, cache) in [(0, 0), (0, 2048), (32, 0), (32, 512)] {
            let counters = with_caches(case.clone(), buffer, cache).check(&requests);
            println!("{buffer} {cache} {counters:?}");
            assert!(counters.home.segments_rewritten > 0);
        }
    }
}

/// Reads and writes of a piece of a shipped recording.
fn piece(name: &str, skip: usize, requests: usize) -> Vec<TraceRecord> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads");
    let all = records(&workload(&format!("{folder}/{name}.imbrex.xz")));
    let moves = |record: &TraceRecord| {
        matches!(record.operation, TraceOperation::Read | TraceOperation::Write)
    };
    let piece = all.into_iter().filter(moves).skip(skip);
    piece.take(requests).collect()
}

#[test]
fn every_counter_is_that_of_the_model_on_pieces_of_the_recordings() {
    for (name, skip) in [
        ("hwsr-sysbench", 20_000),
        ("hwsr-tpcc", 5_000),
        ("hwsr-postmark", 10_000),
        ("pgbench", 0),
        ("file-churn", 1_000),
    ] {
        let requests = piece(name, skip, 6_000);
        assert!(requests.len() >= 2_000, "{name}: {}", requests.len());
        for case in defaults() {
            let counters = with_caches(case, 128, 256).check(&requests);
            println!("{name}: {counters:?}");
            assert!(counters.home.segments_rewritten > 20, "{name}");
        }
    }
}
