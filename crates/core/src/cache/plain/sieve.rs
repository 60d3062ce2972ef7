//! SIEVE (Zhang, Yang, Yue, Vigfusson, Rashmi: SIEVE is Simpler than LRU, NSDI 2024): a hand goes through
//! the blocks in the order in which they came, passes those that were used since it last came by, and
//! takes the first that was not. Unlike CLOCK it moves nothing: what it has passed stays behind it, and
//! newcomers come in at the far end.

use super::used_queue::UsedQueue;
use crate::cache::policy::{AccessKind, CachedBlock, EvictionPolicy, PolicyEvents};
use crate::saved::Saved;
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::vec::Vec;

/// SIEVE.
#[derive(Saved)]
pub(super) struct Sieve {
    queue: UsedQueue,
    /// Where the hand goes on; at the block that came first when there is none.
    hand: Option<u32>,
}

impl Sieve {
    pub(super) fn new(_: u64) -> Sieve {
        Sieve { queue: UsedQueue::new(), hand: None }
    }
}

impl EvictionPolicy for Sieve {
    fn on_insert(&mut self, entry: u32, _: Lba, _: AccessKind, _: &mut PolicyEvents) {
        self.queue.push(entry);
    }

    fn on_access(&mut self, entry: u32, _: AccessKind, _: &mut PolicyEvents) {
        self.queue.use_again(entry);
    }

    fn victims(&mut self, victims: &mut Vec<u32>, _: &mut PolicyEvents) {
        // Each step takes a bit away, so that this ends after two rounds at most.
        while let Some(at) = self.hand.or_else(|| self.queue.first()) {
            self.hand = self.queue.after(at);
            if !self.queue.take_used(at) {
                return victims.push(at);
            }
        }
    }

    fn on_remove(&mut self, entry: u32) {
        // It may leave for another reason than the hand, which goes on behind it.
        if self.hand == Some(entry) {
            self.hand = self.queue.after(entry);
        }
        self.queue.remove(entry);
    }

    /// The number of the block at the hand, and one more; 0 for no hand.
    fn save(&self, numbers: &[u32], state: &mut StateWriter) {
        state.put_u64(self.hand.map_or(0, |entry| u64::from(numbers[entry as usize]) + 1));
        self.queue.save(numbers, state);
    }

    fn restore(
        &mut self,
        cached: &[CachedBlock],
        state: &mut StateReader<'_>,
    ) -> Result<(), StateError> {
        let hand = state.take_u64()?;
        if hand > cached.len() as u64 {
            return Err(StateError::new("the hand of the saved cache is at no block"));
        }
        self.hand = (hand as u32).checked_sub(1);
        self.queue.restore(cached, state)
    }
}
