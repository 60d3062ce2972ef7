//! What is kept for each block: its counts, its last access, its place in the LRU stack.

use super::access::Access;
use super::accesses::{AdjacentAccesses, Popularity, Reuse};
use super::adjacency::AdjacentCounts;
use super::method::Method;
use super::popularity;
use super::reuse::ReuseCounts;
use super::sampled::{Sampled, hash};
use super::stack::Stack;
use super::working_set::{WorkingSetRecorder, WorkingSetSeries};

/// A block's history.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) last_ns: u64,
    pub(super) last_write_ns: u64,
    pub(super) reads: u32,
    pub(super) writes: u32,
    position: u32,
    pub(super) last_was_write: bool,
}

/// Accesses that wait to be followed together, so that the processor fetches their histories at the same time.
const TOGETHER: usize = 64;

/// Distances up to this have a counter each: as many as there are blocks before any is sampled, so hit ratios are exact until
/// then.
const COUNTERS_MAX: usize = 1 << 21;

/// An access to one block that waits.
struct Pending {
    access: Access,
    block: u64,
    hash: u64,
    /// Where the history of the block may be.
    likely: usize,
}

/// The blocks, all or a sample, and what follows from their accesses.
pub(super) struct Blocks {
    pending: Vec<Pending>,
    table: Sampled<Seen>,
    stack: Stack,
    reuse: ReuseCounts,
    adjacent: AdjacentCounts,
    working_set: WorkingSetRecorder,
}

/// What the blocks tell.
pub(super) struct BlockSections {
    pub(super) method: Method,
    pub(super) popularity: Popularity,
    pub(super) reuse: Reuse,
    pub(super) adjacent: AdjacentAccesses,
    pub(super) working_set: WorkingSetSeries,
}

impl Blocks {
    /// Keeps at most `blocks_max` blocks.
    pub(super) fn new(blocks_max: usize) -> Self {
        Self {
            pending: Vec::with_capacity(TOGETHER),
            table: Sampled::new(blocks_max),
            stack: Stack::new((2 * blocks_max).max(1024)),
            reuse: ReuseCounts::new(COUNTERS_MAX),
            adjacent: AdjacentCounts::default(),
            working_set: WorkingSetRecorder::new(),
        }
    }

    /// Follows each block of a read or write.
    pub(super) fn add(&mut self, access: &Access) {
        self.reuse.expect(access.direction(), access.blocks);
        for block in access.first_block..access.first_block + access.blocks {
            let hash = hash(access.device, block);
            if self.table.takes(hash) {
                self.pending.push(Pending { access: *access, block, hash, likely: 0 });
                if self.pending.len() == TOGETHER {
                    self.follow_pending();
                }
            }
        }
    }

    fn follow_pending(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        for one in &mut pending {
            one.likely = self.table.likely(one.hash);
        }
        // What is compared here is in the cache when it is followed.
        let known = |one: &Pending| self.table.is_at(one.likely, one.access.device, one.block);
        let found: [bool; TOGETHER] = std::array::from_fn(|i| pending.get(i).is_some_and(known));
        for (one, found) in pending.iter().zip(found) {
            self.follow(one, found);
        }
        pending.clear();
        self.pending = pending;
    }

    fn follow(&mut self, pending: &Pending, found: bool) {
        let Pending { access, block, hash, likely } = pending;
        let (block, hash) = (*block, *hash);
        if !self.table.takes(hash) {
            return;
        }
        if self.stack.is_full() {
            self.pack();
        }
        // The table may have been halved since.
        let place = if found && self.table.is_at(*likely, access.device, block) {
            *likely
        } else if let Some(place) = self.table.find(access.device, block, hash) {
            place
        } else {
            self.meet(access, block, hash);
            return;
        };
        let weight = self.table.weight();
        let seen = &mut self.table.slots_mut()[place].value;
        let (since, position) = self.stack.touch(seen.position);
        seen.position = position;
        self.reuse.again(access.direction(), u64::from(since) * weight + 1, weight);
        self.adjacent.add(seen, access, weight);
        self.working_set.again(seen.last_ns, access.time_ns, weight);
        if access.write && seen.writes == 0 {
            self.working_set.written(weight);
        }
        seen.count(access);
    }

    /// The first access to a block.
    fn meet(&mut self, access: &Access, block: u64, hash: u64) {
        while self.table.is_full() {
            self.table.halve();
            self.stack.keep(self.table.slots().iter().map(|slot| slot.value.position));
            self.pack();
        }
        if !self.table.takes(hash) {
            return;
        }
        let weight = self.table.weight();
        let place = self.table.insert(access.device, block, hash);
        let seen = &mut self.table.slots_mut()[place].value;
        seen.position = self.stack.push();
        seen.count(access);
        self.reuse.cold(access.direction(), weight);
        self.working_set.first(access.time_ns, weight);
        if access.write {
            self.working_set.written(weight);
        }
    }

    fn pack(&mut self) {
        let slots = self.table.slots_mut().iter_mut();
        self.stack.pack(slots.map(|slot| &mut slot.value.position));
    }

    /// Sums up. Times are left out if the trace has none.
    pub(super) fn finish(mut self, has_times: bool, end_ns: u64) -> BlockSections {
        self.follow_pending();
        let weight = self.table.weight();
        let method = match weight {
            1 => Method::default(),
            _ => Method::sample("blocks", weight, self.table.error_percent()),
        };
        let counts = self.table.slots().iter();
        let counts: Vec<_> = counts.map(|slot| (slot.value.reads, slot.value.writes)).collect();
        BlockSections {
            method,
            popularity: popularity::of(&counts, weight),
            reuse: self.reuse.finish(counts.len() as u64 * weight),
            adjacent: self.adjacent.finish(has_times),
            working_set: self.working_set.finish(end_ns),
        }
    }
}

impl Seen {
    fn count(&mut self, access: &Access) {
        if access.write {
            self.writes = self.writes.saturating_add(1);
            self.last_write_ns = access.time_ns;
        } else {
            self.reads = self.reads.saturating_add(1);
        }
        self.last_ns = access.time_ns;
        self.last_was_write = access.write;
    }
}
