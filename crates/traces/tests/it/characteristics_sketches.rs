//! What is estimated from samples, beside the exact figures of the same requests.

use imbrex_traces::{
    BlockRule, Capacity, Characterise, ReadOptions, TraceInfo, TraceOperation, TraceReader,
    TraceRecord,
};

/// SplitMix64: the same requests on every platform.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(mixed ^ (mixed >> 31)) * u128::from(bound)) >> 64) as u64
    }
}

const REQUESTS: u64 = 300_000;
const SPAN_BLOCKS: u64 = 100_000;

/// A workload's next first block and number of blocks.
type Next = fn(&mut Random, u64) -> (u64, u64);

fn random(random: &mut Random, _: u64) -> (u64, u64) {
    (random.below(SPAN_BLOCKS) * 7, 1)
}

/// Few blocks take most: a product of three draws is near 0 most of the time, and neighbours are far apart.
fn skewed(random: &mut Random, _: u64) -> (u64, u64) {
    let product = random.below(1000) * random.below(1000) * random.below(1000);
    (product / 10_000 * 7919 % (SPAN_BLOCKS * 16), 1)
}

fn sequential(_: &mut Random, index: u64) -> (u64, u64) {
    (index * 4 % (SPAN_BLOCKS * 4), 4)
}

fn mixed(source: &mut Random, index: u64) -> (u64, u64) {
    match source.below(3) {
        0 => skewed(source, index),
        1 => ((2 << 24) + index * 2 % SPAN_BLOCKS, 2),
        _ => ((4 << 24) + source.below(SPAN_BLOCKS * 3), 1 + source.below(16)),
    }
}

fn info(next: Next, offset_bytes: u64, capacity: Capacity) -> TraceInfo {
    let reader = TraceReader::from_read(
        "t",
        std::io::Cursor::new(b"0,8,4096,w,0.0\n".to_vec()),
        &ReadOptions::default(),
    )
    .unwrap();
    let mut characterise = Characterise::with_capacity(BlockRule::Touched, capacity);
    let mut source = Random(42);
    for index in 0..REQUESTS {
        let (block, blocks) = next(&mut source, index);
        let operation =
            if source.below(10) < 6 { TraceOperation::Write } else { TraceOperation::Read };
        let mut record = TraceRecord::new(
            index * 1_000_000,
            operation,
            block * 4096 + offset_bytes,
            blocks * 4096,
        );
        record.device = (block % 2) as u16;
        characterise.add(&record);
    }
    characterise.finish(&reader)
}

const SMALL: Capacity = Capacity { blocks: 8192, groups: 4096 };

/// Standard errors that an estimate may be off, in a test with a fixed seed.
const ERRORS: f64 = 4.0;

fn assert_close(name: &str, found: u64, exact: u64, error_percent: f64) {
    let off = 100.0 * (found as f64 - exact as f64).abs() / (exact as f64).max(1.0);
    assert!(
        off <= ERRORS * error_percent,
        "{name}: {found} is {off:.2} % off {exact}; standard error {error_percent:.2} %"
    );
}

fn assert_points(name: &str, found: f64, exact: f64, points: f64) {
    assert!(
        (found - exact).abs() <= points,
        "{name}: {found:.2} is more than {points:.2} points off {exact:.2}"
    );
}

fn assert_distinct(exact: &TraceInfo, found: &TraceInfo) {
    let error = found.sections.methods.distinct.standard_error_percent;
    assert!(error > 0.0 && error < 10.0, "{error}");
    assert_close("blocks", found.unique_blocks, exact.unique_blocks, error);
    assert_close("bytes", found.unique_bytes, exact.unique_bytes, error);
    // What is a part of the blocks has fewer of them in the sample.
    let part = |blocks: u64| error * (exact.unique_blocks as f64 / blocks as f64).sqrt();
    let (read, written) = (exact.read.unique_blocks, exact.write.unique_blocks);
    assert_close("read", found.read.unique_blocks, read, part(read));
    assert_close("written", found.write.unique_blocks, written, part(written));
    let points = ERRORS * error;
    assert_points("updated", found.updated_blocks_percent, exact.updated_blocks_percent, points);
    assert_points("updates", found.update_percent, exact.update_percent, points);
}

fn assert_blocks(exact: &TraceInfo, found: &TraceInfo) {
    let (exact, found) = (&exact.sections, &found.sections);
    let error = found.methods.blocks.standard_error_percent;
    assert!(error > 0.0 && error < 5.0, "{error}");
    let blocks =
        |sections: &imbrex_traces::characterise::Sections| sections.popularity.accesses.blocks;
    assert_close("sampled blocks", blocks(found), blocks(exact), error);
    // A share of n sampled blocks is off by half the standard error of n, in points, or less.
    let points = ERRORS * error;
    for point in &exact.popularity.cdf {
        let same = found.popularity.cdf.iter().find(|other| other.times >= point.times);
        let found = same.map_or(100.0, |other| other.accessed_written_percent);
        let exact = point.accessed_written_percent;
        if same.is_none_or(|other| other.times == point.times) {
            assert_points("written at most", found, exact, points / 2.0);
        }
    }
    for (found, exact) in [
        (&found.reuse.lru_at_1_percent, &exact.reuse.lru_at_1_percent),
        (&found.reuse.lru_at_10_percent, &exact.reuse.lru_at_10_percent),
    ] {
        assert_points("LRU", found.hit_percent, exact.hit_percent, points);
    }
    assert_points(
        "read-mostly",
        found.popularity.read_mostly.blocks_percent,
        exact.popularity.read_mostly.blocks_percent,
        points,
    );
    let (found, exact) = (found.working_set.as_ref().unwrap(), exact.working_set.as_ref().unwrap());
    let last = |series: &[u64]| *series.last().unwrap();
    assert_close(
        "cumulative",
        last(&found.cumulative_blocks),
        last(&exact.cumulative_blocks),
        error,
    );
}

fn check(next: Next, offset_bytes: u64) {
    let exact = info(next, offset_bytes, Capacity::default());
    assert_eq!(exact.sections.methods.distinct.method, "exact");
    assert_eq!(exact.sections.methods.blocks.method, "exact");
    let found = info(next, offset_bytes, SMALL);
    assert!(found.sections.methods.blocks.method.contains("SHARDS"));
    assert_distinct(&exact, &found);
    assert_blocks(&exact, &found);
    assert_eq!(found, info(next, offset_bytes, SMALL), "not deterministic");
    // What is not sampled is the same.
    assert_eq!(found.sections.randomness, exact.sections.randomness);
    assert_eq!(found.sections.gaps, exact.sections.gaps);
    assert_eq!(found.sections.heat, exact.sections.heat);
}

#[test]
fn random_requests_are_estimated_within_the_error() {
    check(random, 0);
}

#[test]
fn skewed_requests_are_estimated_within_the_error() {
    check(skewed, 0);
}

#[test]
fn sequential_requests_are_estimated_within_the_error() {
    check(sequential, 0);
}

#[test]
fn mixed_requests_are_estimated_within_the_error() {
    check(mixed, 0);
}

/// Every block is covered in part, so that the sectors do not fit either.
#[test]
fn unaligned_requests_are_estimated_within_the_error() {
    check(random, 512);
    check(mixed, 1536);
}
