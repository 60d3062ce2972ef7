//! Numbers that another model of the same system gave for the load `financial1-dense`.

use super::*;
use imbrex_traces::TraceRecord;
use imbrex_traces::synthetic::Recipe;

/// HWSR, and S-blocks with the group destage of the paper: segments rewritten per 10,000 requests by seed.
const REWRITTEN: [(u64, u64, u64); 3] = [(1, 754, 4226), (2, 782, 3482), (3, 811, 4160)];
/// 64 MiB and 128 MiB in blocks of 64 KiB.
const BUFFER_BLOCKS: u64 = 1024;
const CACHE_BLOCKS: u64 = 2048;

fn financial1_dense(seed: u64) -> Vec<TraceRecord> {
    let mut recipe = Recipe::load("financial1-dense").expect("a shipped recipe");
    recipe.seed = seed;
    recipe.records().collect()
}

fn run(records: &[TraceRecord], buffer: BufferOptions, home: HomeOptions) -> Counters {
    let cache = FlashOptions::new(CACHE_BLOCKS);
    let mut model = Model::new(Geometry::new(4 << 20, 64 << 10, 32), buffer, cache, home);
    for record in records {
        let (pages, is_write) = crate::untimed::blocks(record);
        model.request(is_write, pages.start, pages.end - pages.start);
    }
    model.counters()
}

fn hwsr() -> HomeOptions {
    HomeOptions::Segments(SegmentsOptions {
        kappa: 3,
        rewrite: Rewrite::Cascade,
        valid: Valid::All,
    })
}

fn s_block(spare: f64, gc_order: GcOrder) -> HomeOptions {
    HomeOptions::SBlock(SBlockOptions { gc_order, ..SBlockOptions::new(spare) })
}

/// Segments per 10,000 of a million requests, rounded to the nearest.
fn per_10_000(counters: &Counters) -> u64 {
    (counters.home.segments_rewritten + 50) / 100
}

#[test]
fn the_dense_load_rewrites_as_many_segments_as_in_another_model() {
    for (seed, of_hwsr, of_s_block) in REWRITTEN {
        let records = financial1_dense(seed);
        let lwa = BufferOptions::new(BUFFER_BLOCKS, Policy::Lwa);
        let most = BufferOptions::new(BUFFER_BLOCKS, Policy::Most);
        let segments = run(&records, lwa, hwsr());
        assert_eq!(per_10_000(&segments), of_hwsr, "HWSR, seed {seed}");
        let blocks = run(&records, most, s_block(0.1, GcOrder::RoomAfter));
        assert_eq!(per_10_000(&blocks), of_s_block, "S-block, seed {seed}");

        // Room made before a write instead of after it is the same but for the last write of each region.
        let first = run(&records, most, s_block(0.1, GcOrder::RoomFirst));
        let later = blocks.home.gc_runs - first.home.gc_runs;
        assert_eq!(later, 8, "a region of 128 MiB each");

        for (spare, least) in [(0.1, 5.5), (0.05, 11.0)] {
            let blocks = run(&records, lwa, s_block(spare, GcOrder::RoomAfter));
            let ratio =
                blocks.home.segments_rewritten as f64 / segments.home.segments_rewritten as f64;
            println!("seed {seed}, LWA in both, spare {spare}: S-block over HWSR {ratio:.3}");
            assert!((least..14.0).contains(&ratio), "{ratio}");
        }
    }
}

#[test]
fn every_option_keeps_the_sums_of_its_counters() {
    let records: Vec<TraceRecord> = financial1_dense(1).into_iter().take(100_000).collect();
    for policy in [Policy::Lwa, Policy::LruBlock, Policy::LruSegment, Policy::Most] {
        for (scope, partial_read) in
            [(Scope::Window, PartialRead::Memory), (Scope::WholeBuffer, PartialRead::Flash)]
        {
            let buffer =
                BufferOptions { scope, partial_read, ..BufferOptions::new(BUFFER_BLOCKS, policy) };
            for home in [hwsr(), s_block(0.1, GcOrder::InvalidateFirst)] {
                let Counters { buffer, cache, home } = run(&records, buffer, home);
                assert_eq!(buffer.evicted_blocks, home.destaged_blocks);
                assert_eq!(home.segments_rewritten, buffer.destages + home.gc_migrations);
                let in_memory = buffer.hit_block_reads;
                assert_eq!(in_memory + cache.hit_blocks + cache.miss_blocks, buffer.block_reads);
                let left = buffer.block_writes - buffer.hit_block_writes - buffer.evicted_blocks;
                assert!(left <= BUFFER_BLOCKS && buffer.evictions > 100);
            }
        }
    }
}
