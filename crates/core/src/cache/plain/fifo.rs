//! The block that came first leaves, however often it was used since.

use crate::cache::policy::{AccessKind, CachedBlock, EvictionPolicy, PolicyEvents};
use crate::cache::policy_state::{restore_order, save_order};
use crate::map::LruList;
use crate::saved::Saved;
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::vec::Vec;

/// First in, first out.
#[derive(Saved)]
pub(super) struct Fifo {
    queue: LruList,
}

impl Fifo {
    pub(super) fn new(_: u64) -> Fifo {
        Fifo { queue: LruList::new() }
    }
}

impl EvictionPolicy for Fifo {
    fn on_insert(&mut self, entry: u32, _: Lba, _: AccessKind, _: &mut PolicyEvents) {
        self.queue.push_newest(entry);
    }

    fn on_access(&mut self, _: u32, _: AccessKind, _: &mut PolicyEvents) {}

    fn victims(&mut self, victims: &mut Vec<u32>, _: &mut PolicyEvents) {
        victims.extend(self.queue.oldest());
    }

    fn on_remove(&mut self, entry: u32) {
        self.queue.remove(entry);
    }

    fn save(&self, numbers: &[u32], state: &mut StateWriter) {
        save_order(&self.queue, numbers, state);
    }

    fn restore(
        &mut self,
        cached: &[CachedBlock],
        state: &mut StateReader<'_>,
    ) -> Result<(), StateError> {
        restore_order(cached, state, |entry, _| self.queue.push_newest(entry))
    }
}
