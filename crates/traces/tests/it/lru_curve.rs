//! Hits of LRU caches from one pass, beside caches of each size that are simulated one by one.

use std::collections::VecDeque;

use imbrex_traces::characterise::{LruCounts, LruHits};
use imbrex_traces::{BlockRule, TraceOperation, TraceRecord};

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

const LONGEST_BLOCKS: u64 = 6;

/// Requests over `span` blocks, of which about one in `trims_one_in` drops blocks: mostly a few, at times nearly all.
fn requests(seed: u64, count: usize, span: u64, trims_one_in: u64) -> Vec<TraceRecord> {
    let mut random = Random(seed);
    let one = |_| {
        // Half of the requests go to a tenth of the blocks.
        let part = [span, span / 10][random.below(2) as usize];
        let first = random.below(part);
        let (operation, blocks) = match random.below(trims_one_in) {
            0 if random.below(20) == 0 => (TraceOperation::Trim, 1 + random.below(span)),
            0 if random.below(2) == 0 => (TraceOperation::WriteZeroes, 1 + random.below(9)),
            0 => (TraceOperation::Trim, random.below(30)),
            _ if random.below(3) == 0 => (TraceOperation::Read, 1 + random.below(LONGEST_BLOCKS)),
            _ if random.below(90) == 0 => (TraceOperation::Flush, 0),
            _ => (TraceOperation::Write, 1 + random.below(LONGEST_BLOCKS)),
        };
        let device = random.below(3) as u16;
        let mut record = TraceRecord::new(0, operation, first * 4096, blocks * 4096);
        record.device = device;
        record
    };
    (0..count).map(one).collect()
}

fn hits_of(records: &[TraceRecord], rule: BlockRule, rate: f64) -> LruHits {
    let mut counts = LruCounts::new(rule, rate);
    assert!(records.iter().all(|record| counts.add(record)));
    counts.finish()
}

/// Reads and writes that an LRU cache hits. The newest block is the last.
fn simulated(records: &[TraceRecord], rule: BlockRule, capacity: usize) -> [u64; 2] {
    let mut cached: VecDeque<u64> = VecDeque::new();
    let mut hits = [0, 0];
    for record in records {
        let blocks = rule.blocks(record.offset_bytes, record.length_bytes);
        let direction = match record.operation {
            TraceOperation::Read => 0,
            TraceOperation::Write => 1,
            TraceOperation::Trim | TraceOperation::WriteZeroes => {
                cached.retain(|block| !blocks.contains(block));
                continue;
            }
            TraceOperation::Flush => continue,
        };
        for block in blocks {
            match cached.iter().position(|&other| other == block) {
                Some(place) => {
                    hits[direction] += 1;
                    cached.remove(place);
                }
                None if cached.len() == capacity => drop(cached.pop_front()),
                None => {}
            }
            cached.push_back(block);
        }
    }
    hits
}

fn check(records: &[TraceRecord], rule: BlockRule, sizes: &[u64]) {
    let hits = hits_of(records, rule, 1.0);
    for point in hits.points(sizes) {
        let expected = simulated(records, rule, point.cache_blocks as usize);
        let found = [point.read_hits, point.write_hits].map(|hits| hits.expect("it fits"));
        assert_eq!(found, expected, "{} blocks", point.cache_blocks);
    }
}

#[test]
fn hits_are_those_of_a_cache_of_each_size() {
    for seed in 0..8 {
        // From no trims to trims alone but for one request in two.
        for trims_one_in in [u64::MAX, 40, 8, 2] {
            let records = requests(seed, 3000, 400, trims_one_in);
            let sizes: Vec<u64> = (LONGEST_BLOCKS..60).chain((60..=420).step_by(30)).collect();
            check(&records, BlockRule::Touched, &sizes);
        }
    }
}

#[test]
fn hits_stay_those_when_the_stack_was_packed() {
    let records = requests(7, 60_000, 3000, 12);
    check(&records, BlockRule::Touched, &[6, 40, 500, 2500]);
}

#[test]
fn blocks_are_those_of_the_rule() {
    let mut records = requests(3, 2000, 200, 9);
    for (index, record) in records.iter_mut().enumerate() {
        record.offset_bytes += [0, 512, 2048][index % 3];
    }
    for rule in [BlockRule::Touched, BlockRule::Size] {
        check(&records, rule, &[7, 20, 100]);
    }
}

#[test]
fn a_cache_that_the_longest_request_goes_around_has_no_figure() {
    let write = |blocks: u64| TraceRecord::new(0, TraceOperation::Write, 0, blocks * 4096);
    let hits = hits_of(&[write(4), write(4), write(1)], BlockRule::Touched, 1.0);
    let points = hits.points(&[3, 4]);
    assert_eq!((points[0].read_hits, points[0].write_hits), (None, None));
    assert_eq!(points[0].hit_percent, None);
    assert_eq!((points[1].read_hits, points[1].write_hits), (Some(0), Some(5)));
    assert_eq!(points[1].read_hit_percent, None, "a share of no reads");
    assert_eq!(hits.default_sizes(), [4], "all that is touched");
    // A trim may be longer than any cache.
    let trim = TraceRecord::new(0, TraceOperation::Trim, 0, 1 << 50);
    let hits = hits_of(&[write(4), trim, write(4)], BlockRule::Touched, 1.0);
    assert_eq!(hits.points(&[4])[0].write_hits, Some(0));
}

#[test]
fn default_sizes_are_powers_of_two_up_to_everything() {
    let write = |first: u64, blocks: u64| {
        TraceRecord::new(0, TraceOperation::Write, first * 4096, blocks * 4096)
    };
    let records: Vec<TraceRecord> = (0..1000).map(|place| write(place * 3, 3)).collect();
    let hits = hits_of(&records, BlockRule::Touched, 1.0);
    assert_eq!(hits.default_sizes(), [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3000]);
    let many: Vec<TraceRecord> = (0..1 << 11).map(|place| write(place << 11, 1 << 10)).collect();
    let sizes = hits_of(&many, BlockRule::Touched, 1.0).default_sizes();
    assert_eq!(sizes.last(), Some(&(1 << 21)));
    assert_eq!(sizes.len(), 12);
}

#[test]
fn a_sample_is_within_a_point() {
    let records = requests(11, 400_000, 400_000, 50);
    let exact = hits_of(&records, BlockRule::Touched, 1.0);
    assert!(exact.touched_blocks > 100_000);
    let sizes: Vec<u64> = (8..=18).map(|power| 1 << power).collect();
    let estimated = hits_of(&records, BlockRule::Touched, 0.1);
    assert!(estimated.sampled_blocks < exact.touched_blocks / 8);
    for (exact, estimated) in exact.points(&sizes).iter().zip(estimated.points(&sizes)) {
        for (exact, estimated) in [
            (exact.hit_percent, estimated.hit_percent),
            (exact.read_hit_percent, estimated.read_hit_percent),
            (exact.write_hit_percent, estimated.write_hit_percent),
        ] {
            let (exact, estimated) = (exact.expect("reads"), estimated.expect("reads"));
            assert!((exact - estimated).abs() < 1.0, "{exact} % and {estimated} %");
        }
    }
}
