//! Bugs planted on purpose are found by the ordinary random workload.

use super::tiny::TinyStack;
use super::{play_case, workload};
use imbrex_core::planted::PlantedBug;

/// A bug must show within this many cases.
const CASES_MAX: u64 = 200;

#[test]
fn every_planted_bug_is_found_within_two_hundred_cases() {
    let mut unnoticed = Vec::new();
    for (bug, stacks) in [
        (PlantedBug::OverlapNotRestored, ["smr-only", "lru", "pore"].as_slice()),
        (PlantedBug::RemapIgnoresOverwrite, &["smr-only", "lru", "pore"]),
        (PlantedBug::OldLocationReusedEarly, &["smr-only", "lru", "pore"]),
        (PlantedBug::DirtyDroppedBeforeDestinationFlush, &["lru", "lru-band", "pore"]),
    ] {
        for name in stacks {
            let stack = TinyStack::new(name, &[]);
            let failure = (0..CASES_MAX).find_map(|seed| {
                let result = play_case(&stack, seed, workload::random, Some(bug));
                result.err().map(|failure| (seed + 1, failure))
            });
            match failure {
                Some((cases, failure)) => {
                    println!("{bug:?} on {name}: case {cases}, {failure}");
                }
                None => unnoticed.push(format!("{bug:?} on {name}")),
            }
        }
    }
    assert!(unnoticed.is_empty(), "not noticed: {unnoticed:?}");
}
