//! Pairs of accesses to the same block.

use super::access::Access;
use super::accesses::{Adjacent, AdjacentAccesses};
use super::blocks::Seen;
use super::histogram::Histogram;

/// Times between the accesses of each kind of pair.
#[derive(Default)]
pub(super) struct AdjacentCounts {
    /// By first and second access, each 0 for a read and 1 for a write.
    pairs: [[Histogram; 2]; 2],
    update_interval: Histogram,
}

impl AdjacentCounts {
    /// Counts an access to a block that was accessed before.
    pub(super) fn add(&mut self, seen: &Seen, access: &Access, weight: u64) {
        let since = access.time_ns - seen.last_ns;
        self.pairs[usize::from(seen.last_was_write)][access.direction()].add(since, weight);
        if access.write && seen.writes > 0 {
            let since = access.time_ns - seen.last_write_ns;
            self.update_interval.add(since, weight);
        }
    }

    pub(super) fn finish(&self, has_times: bool) -> AdjacentAccesses {
        let told = |times: &Histogram| Adjacent {
            count: times.count(),
            time_ns: has_times.then(|| times.distribution()),
        };
        let [after_read, after_write] = &self.pairs;
        AdjacentAccesses {
            read_after_write: told(&after_write[0]),
            write_after_write: told(&after_write[1]),
            read_after_read: told(&after_read[0]),
            write_after_read: told(&after_read[1]),
            update_interval: told(&self.update_interval),
        }
    }
}
