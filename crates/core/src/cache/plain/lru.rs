//! The least recently used block leaves.

use crate::cache::policy::{AccessKind, CachedBlock, EvictionPolicy, PolicyEvents};
use crate::cache::policy_state::{restore_order, save_order};
use crate::map::LruList;
use crate::saved::Saved;
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::vec::Vec;

/// Least recently used.
#[derive(Saved)]
pub(super) struct Lru {
    list: LruList,
}

impl Lru {
    pub(super) fn new(_: u64) -> Lru {
        Lru { list: LruList::new() }
    }
}

impl EvictionPolicy for Lru {
    fn on_insert(&mut self, entry: u32, _: Lba, _: AccessKind, _: &mut PolicyEvents) {
        self.list.push_newest(entry);
    }

    fn on_access(&mut self, entry: u32, _: AccessKind, _: &mut PolicyEvents) {
        self.list.touch(entry);
    }

    fn victims(&mut self, victims: &mut Vec<u32>, _: &mut PolicyEvents) {
        victims.extend(self.list.oldest());
    }

    fn on_remove(&mut self, entry: u32) {
        self.list.remove(entry);
    }

    fn save(&self, numbers: &[u32], state: &mut StateWriter) {
        save_order(&self.list, numbers, state);
    }

    fn restore(
        &mut self,
        cached: &[CachedBlock],
        state: &mut StateReader<'_>,
    ) -> Result<(), StateError> {
        restore_order(cached, state, |entry, _| self.list.push_newest(entry))
    }
}
