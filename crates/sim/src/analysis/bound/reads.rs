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

/// Blocks of reads that miss in any cache of `capacity` blocks which takes in a block only when it is
/// read or written, clairvoyant ones and those that let blocks pass by included. `request_ends` says
/// how many blocks are looked up until the end of each request; a request looks up all its blocks before
/// the cache takes in the first.
///
/// A read can hit only if its block was kept all the time since it was looked up last. At no time are
/// more than `capacity` blocks kept. To drop, whenever there are too many, the block whose read comes
/// last leaves the most reads answered (Belady 1966; with writes and bypass it is the largest set of
/// intervals of which at most `capacity` overlap).
pub fn read_misses(lookups: &[Lookup], request_ends: &[u32], capacity: u64) -> u64 {
    let mut kept = vec![false; lookups.len()];
    let mut latest = BinaryHeap::new();
    let (mut count, mut misses, mut start) = (0u64, 0u64, 0);
    for end in request_ends.iter().map(|end| *end as usize) {
        for at in start..end {
            if kept[at] {
                count -= 1;
            } else if lookups[at].is_read {
                misses += 1;
            }
        }
        for lookup in &lookups[start..end] {
            // A block that is written next need not be kept until then.
            let next = lookup.next as usize;
            if lookups.get(next).is_some_and(|it| it.is_read) {
                kept[next] = true;
                latest.push(lookup.next);
                count += 1;
            }
        }
        while count > capacity {
            let dropped = latest.pop().expect("a block is kept");
            kept[dropped as usize] = false;
            count -= 1;
        }
        start = end;
    }
    misses
}
