//! What the host does in a case.

use crate::harness::{Step, random_steps};
use imbrex_core::extent::Extent;
use imbrex_core::rng::Rng;

/// Steps of a random case.
const STEPS: u64 = 120;
/// Longest request in blocks: longer than many of the caches, so that it goes around them.
const REQUEST_BLOCKS_MAX: u64 = 12;

/// Reads, writes, durable writes, zeroes and flushes at random places.
pub fn random(seed: u64, blocks: u64) -> Vec<Step> {
    random_steps(seed, STEPS, blocks, REQUEST_BLOCKS_MAX)
}

/// Streams of a few hundred blocks, interrupted by random requests and now and then a zeroing of
/// the rest of the device, which makes bands fresh again.
pub fn streaming(seed: u64, blocks: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed, 9);
    let mut random = random_steps(seed, 160, blocks, REQUEST_BLOCKS_MAX).into_iter();
    let mut steps = Vec::new();
    for _ in 0..4 {
        let mut next = rng.below(blocks / 2);
        let end = blocks.min(next + 300 + rng.below(500));
        while next < end {
            let length = (1 + rng.below(48)).min(end - next);
            steps.push(Step::Write(Extent::new(next, length)));
            next += length;
            if rng.below(4) == 0 {
                steps.extend(random.next());
            }
        }
        if rng.below(3) == 0 {
            let start = rng.below(blocks);
            steps.push(Step::Zero(Extent::new(start, blocks - start)));
        }
        steps.extend(random.by_ref().take(40));
    }
    steps
}
