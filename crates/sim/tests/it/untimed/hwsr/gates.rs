//! What the stacks count on whole loads, and what the system promises of it.

use super::equal::{Case, financial1_dense, hwsr, with_ring};
use super::*;
use crate::simulate::records;
use crate::untimed::cloudphysics;
use imbrex_traces::TraceRecord;

/// Seed, segments rewritten by HWSR with LWA, and by S-blocks with `most`: those of another model, to the last one.
const REWRITTEN: [(u64, u64, u64); 3] =
    [(1, 75_388, 422_572), (2, 78_180, 348_169), (3, 81_133, 415_956)];
const WHOLE: usize = 1_000_000;
const CACHE: u64 = 2048;

fn case(policy: Policy, home: HomeOptions) -> Case {
    let buffer = BufferOptions::new(1024, policy);
    Case::new(buffer, FlashOptions::new(CACHE), home)
}

fn s_blocks(spare: f64) -> HomeOptions {
    HomeOptions::SBlock(SBlockOptions::new(spare))
}

fn dense_figures(seed: u64, of_hwsr: u64, of_s_block: u64) {
    let requests = financial1_dense(seed, WHOLE);
    let rewritten = |case: Case| -> u64 { case.stack_counters(&requests).home.segments_rewritten };
    let segments = rewritten(case(Policy::Lwa, hwsr()));
    let most = rewritten(case(Policy::Most, s_blocks(0.1)));
    println!("seed {seed}: HWSR {segments}, S-block {most}");
    assert_eq!((segments, most), (of_hwsr, of_s_block), "seed {seed}");
    for (spare, least) in [(0.1, 5.0), (0.05, 10.0)] {
        let blocks = rewritten(case(Policy::Lwa, s_blocks(spare)));
        let ratio = blocks as f64 / segments as f64;
        println!("seed {seed}, LWA in both, spare {spare}: {blocks}, {ratio:.3} times as many");
        assert!(ratio >= least, "{ratio}");
    }
}

#[test]
#[ignore = "long: for the soak"]
fn the_dense_loads_rewrite_as_many_segments_as_in_another_model() {
    for (seed, of_hwsr, of_s_block) in REWRITTEN {
        dense_figures(seed, of_hwsr, of_s_block);
    }
}

fn flash_alone(requests: &[TraceRecord], of_s_blocks: &HomeOptions) {
    let reads = |home: HomeOptions, cache: u64| {
        let buffer = BufferOptions::new(0, Policy::Lwa);
        let case = Case::new(buffer, FlashOptions::new(cache), home);
        case.stack_counters(requests).home
    };
    let (without, with) = (reads(hwsr(), 0), reads(hwsr(), CACHE));
    let (before, after) = (without.rewrite_blocks_read, with.rewrite_blocks_read);
    let saved = 1.0 - after as f64 / before as f64;
    println!("flash alone: HWSR reads {after} blocks, without {before}: {saved:.4} less");
    assert!(saved >= 0.1, "{saved}");
    let [without, with] = [0, CACHE].map(|cache| reads(of_s_blocks.clone(), cache));
    println!(
        "flash alone: S-blocks read {}, without {}",
        with.rewrite_blocks_read, without.rewrite_blocks_read
    );
    assert_eq!(without, with);
    assert!(with.rewrite_blocks_read > 0);
}

#[test]
fn flash_alone_spares_segments_reads_and_s_blocks_none() {
    flash_alone(&financial1_dense(1, 20_000), &with_ring(32));
}

#[test]
#[ignore = "long: for the soak"]
fn flash_alone_spares_segments_reads_and_s_blocks_none_on_whole_loads() {
    for (seed, ..) in REWRITTEN {
        flash_alone(&financial1_dense(seed, 200_000), &s_blocks(0.1));
    }
}

/// Blocks that rewrites move: read, written and destaged.
fn block_io(home: &HomeCounters) -> u64 {
    home.rewrite_blocks_read + home.rewrite_blocks_written + home.destaged_blocks
}

fn longer_regions_cost_more(requests: &[TraceRecord]) {
    let moved = [16, 32, 64, 128].map(|tracks| {
        let mut case = case(Policy::Lwa, hwsr());
        case.geometry.segment_blocks = tracks;
        block_io(&case.stack_counters(requests).home)
    });
    println!("blocks moved with 16, 32, 64 and 128 tracks in a region: {moved:?}");
    assert!(moved.is_sorted_by(|a, b| a < b), "{moved:?}");
}

#[test]
fn longer_regions_move_more_blocks() {
    longer_regions_cost_more(&financial1_dense(1, 60_000));
}

#[test]
#[ignore = "long: for the soak"]
fn longer_regions_move_more_blocks_on_whole_loads() {
    for (seed, ..) in REWRITTEN {
        longer_regions_cost_more(&financial1_dense(seed, WHOLE));
    }
}

/// Counted in blocks of the layout, each of which is one operation of the disk. In bytes they only rise with the block.
#[test]
fn the_best_block_is_neither_the_shortest_nor_the_longest() {
    let Some(workload) = cloudphysics() else {
        return;
    };
    let requests = records(&workload);
    let sectors: Vec<u64> = (3..=11).map(|power| 1 << power).collect();
    let moved: Vec<u64> = sectors
        .iter()
        .map(|sectors| {
            let (bytes, pages) = (sectors * 512, sectors / 8);
            let buffer = BufferOptions::new((4 << 20) / bytes, Policy::Lwa);
            let cache = FlashOptions::new((8 << 20) / bytes);
            let mut case = Case::new(buffer, cache, hwsr());
            case.geometry = Geometry::new(4 << 20, bytes, 32);
            let blocks = block_io(&case.stack_counters(&requests).home);
            println!("blocks of {sectors} sectors: {blocks}, {} of 4 KiB", blocks * pages);
            blocks
        })
        .collect();
    let least = moved.iter().min().expect("some sizes");
    let at = moved.iter().position(|moved| moved == least);
    assert!((1..sectors.len() - 1).contains(&at.expect("one")), "{moved:?}");
}
