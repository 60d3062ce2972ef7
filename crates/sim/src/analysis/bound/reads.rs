//! The least number of reads that no cache of a size can answer.

use std::collections::BinaryHeap;

/// One block that is looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lookup {
    /// When the block is looked up next, as a position; `u32::MAX` for never.
    pub next: u32,
    /// Whether a read looks it up.
    pub is_read: bool,
}

/// Reads that miss in any cache of `capacity` blocks which takes in a block only when it is read or
/// written, clairvoyant ones and those that let blocks pass by included.
///
/// A read can hit only if its block was kept all the time since it was looked up last. At no time are
/// more than `capacity` blocks kept. To drop, whenever there are too many, the block whose read comes
/// last leaves the most reads answered (Belady 1966; with writes and bypass it is the largest set of
/// intervals of which at most `capacity` overlap).
pub fn read_misses(lookups: &[Lookup], capacity: u64) -> u64 {
    let mut kept = vec![false; lookups.len()];
    let mut latest = BinaryHeap::new();
    let (mut count, mut misses) = (0u64, 0u64);
    for (at, lookup) in lookups.iter().enumerate() {
        if kept[at] {
            count -= 1;
        } else if lookup.is_read {
            misses += 1;
        }
        // A block that is written next need not be kept until then.
        let next = lookup.next as usize;
        if !lookups.get(next).is_some_and(|it| it.is_read) {
            continue;
        }
        kept[next] = true;
        latest.push(lookup.next);
        count += 1;
        if count > capacity {
            let dropped = latest.pop().expect("a block is kept");
            kept[dropped as usize] = false;
            count -= 1;
        }
    }
    misses
}
