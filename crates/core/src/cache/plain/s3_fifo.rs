//! S3-FIFO (Yang, Zhang, Qiu, Yue, Vinayak: FIFO Queues are All You Need for Cache Eviction, SOSP 2023):
//! newcomers pass through a small queue of a tenth of the cache. Those that were used more than once
//! there go on to the main queue, the others leave, and are remembered for a while: one that comes back
//! meanwhile goes to the main queue at once. There a block goes round as often as it was used, three
//! times at most.
//!
//! The functions and their order are those of Algorithm 1. The main queue counts as full when it has
//! more than its nine tenths; uses are counted anew when a block moves there, as libCacheSim does it.

use super::ghost_list::GhostList;
use super::two_queues::{Queue, TwoQueues, USES_MAX};
use crate::cache::policy::{AccessKind, CachedBlock, EvictionPolicy, PolicyEvents};
use crate::saved::Saved;
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::vec::Vec;

/// The cache in parts of the size of the small queue.
const PARTS: u64 = 10;

/// Uses in the small queue from which on a block goes to the main one.
const USES_TO_MOVE: u8 = 2;

/// S3-FIFO.
#[derive(Saved)]
pub(super) struct S3Fifo {
    capacity: u64,
    /// `New` is the small queue, `Proven` the main one.
    queues: TwoQueues,
    ghosts: GhostList,
}

impl S3Fifo {
    pub(super) fn new(capacity_blocks: u64) -> S3Fifo {
        let small = capacity_blocks.div_ceil(PARTS);
        S3Fifo {
            capacity: capacity_blocks,
            queues: TwoQueues::new(),
            ghosts: GhostList::new(capacity_blocks - small),
        }
    }

    fn main_is_full(&self) -> bool {
        let main = u128::from(self.queues.len(Queue::Proven));
        main * u128::from(PARTS) > u128::from(self.capacity) * u128::from(PARTS - 1)
    }

    fn evict(&mut self, victims: &mut Vec<u32>) {
        let small = u128::from(self.queues.len(Queue::New));
        if small > 0 && small * u128::from(PARTS) >= u128::from(self.capacity) {
            self.evict_small(victims);
        } else {
            self.evict_main(victims);
        }
    }

    /// Goes on until a block leaves the cache from the small queue, or all of them have moved.
    fn evict_small(&mut self, victims: &mut Vec<u32>) {
        while let Some(entry) = self.queues.pop(Queue::New) {
            if *self.queues.uses_mut(entry) < USES_TO_MOVE {
                self.ghosts.remember(self.queues.lba(entry));
                return victims.push(entry);
            }
            *self.queues.uses_mut(entry) = 0;
            self.queues.push(Queue::Proven, entry);
            if self.main_is_full() {
                self.evict_main(victims);
            }
        }
    }

    fn evict_main(&mut self, victims: &mut Vec<u32>) {
        while let Some(entry) = self.queues.pop(Queue::Proven) {
            let uses = self.queues.uses_mut(entry);
            if *uses == 0 {
                return victims.push(entry);
            }
            *uses -= 1;
            self.queues.push(Queue::Proven, entry);
        }
    }
}

impl EvictionPolicy for S3Fifo {
    fn on_insert(&mut self, entry: u32, lba: Lba, _: AccessKind, _: &mut PolicyEvents) {
        let queue = match self.ghosts.forget(lba) {
            true => Queue::Proven,
            false => Queue::New,
        };
        self.queues.insert(queue, entry, lba);
    }

    fn on_access(&mut self, entry: u32, _: AccessKind, _: &mut PolicyEvents) {
        let uses = self.queues.uses_mut(entry);
        *uses = (*uses + 1).min(USES_MAX);
    }

    fn victims(&mut self, victims: &mut Vec<u32>, _: &mut PolicyEvents) {
        let before = victims.len();
        self.evict(victims);
        // All of the small queue may have moved without a block to leave; then the main one gives it.
        if victims.len() == before {
            self.evict_main(victims);
        }
    }

    fn on_remove(&mut self, entry: u32) {
        self.queues.remove(entry);
    }

    fn save(&self, numbers: &[u32], state: &mut StateWriter) {
        self.queues.save(numbers, state);
        self.ghosts.save(state);
    }

    fn restore(
        &mut self,
        cached: &[CachedBlock],
        state: &mut StateReader<'_>,
    ) -> Result<(), StateError> {
        self.queues.restore(cached, state)?;
        self.ghosts.restore(state)
    }
}
