//! CLOCK, or second chance: the block that came first leaves, unless it was used since the hand last
//! passed it (Corbató: A Paging Experiment with the Multics System, 1968).
//!
//! The blocks are a queue instead of a ring. What the hand passes goes to the end of the queue, where it
//! is the last that the hand comes to again, as on the ring. A newcomer has not been used yet.

use super::used_queue::UsedQueue;
use crate::cache::policy::{AccessKind, CachedBlock, EvictionPolicy, PolicyEvents};
use crate::saved::Saved;
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::vec::Vec;

/// CLOCK with one bit a block.
#[derive(Saved)]
pub(super) struct Clock {
    queue: UsedQueue,
}

impl Clock {
    pub(super) fn new(_: u64) -> Clock {
        Clock { queue: UsedQueue::new() }
    }
}

impl EvictionPolicy for Clock {
    fn on_insert(&mut self, entry: u32, _: Lba, _: AccessKind, _: &mut PolicyEvents) {
        self.queue.push(entry);
    }

    fn on_access(&mut self, entry: u32, _: AccessKind, _: &mut PolicyEvents) {
        self.queue.use_again(entry);
    }

    fn victims(&mut self, victims: &mut Vec<u32>, _: &mut PolicyEvents) {
        // Each step takes a bit away, so that this ends after a round at most.
        while let Some(first) = self.queue.first() {
            if !self.queue.take_used(first) {
                return victims.push(first);
            }
            self.queue.move_back(first);
        }
    }

    fn on_remove(&mut self, entry: u32) {
        self.queue.remove(entry);
    }

    fn save(&self, numbers: &[u32], state: &mut StateWriter) {
        self.queue.save(numbers, state);
    }

    fn restore(
        &mut self,
        cached: &[CachedBlock],
        state: &mut StateReader<'_>,
    ) -> Result<(), StateError> {
        self.queue.restore(cached, state)
    }
}
