//! Blocks in the order in which they came, each with a bit that says whether it was used since.

use crate::cache::policy::CachedBlock;
use crate::cache::policy_state::restore_words;
use crate::map::LruList;
use crate::saved::SavedValue;
use crate::state::{StateError, StateReader, StateWriter};
use alloc::vec::Vec;

/// The blocks, the one that came first before the others.
#[derive(SavedValue)]
pub(super) struct UsedQueue {
    order: LruList,
    /// By entry.
    was_used: Vec<bool>,
}

impl UsedQueue {
    pub(super) fn new() -> UsedQueue {
        UsedQueue { order: LruList::new(), was_used: Vec::new() }
    }

    /// A block comes in last, not used yet.
    pub(super) fn push(&mut self, entry: u32) {
        self.order.push_newest(entry);
        let index = entry as usize;
        if index >= self.was_used.len() {
            self.was_used.resize(index + 1, false);
        }
        self.was_used[index] = false;
    }

    /// A block was used.
    pub(super) fn use_again(&mut self, entry: u32) {
        self.was_used[entry as usize] = true;
    }

    /// Whether a block was used, which is forgotten.
    pub(super) fn take_used(&mut self, entry: u32) -> bool {
        core::mem::take(&mut self.was_used[entry as usize])
    }

    /// A block comes last again.
    pub(super) fn move_back(&mut self, entry: u32) {
        self.order.touch(entry);
    }

    /// A block leaves.
    pub(super) fn remove(&mut self, entry: u32) {
        self.order.remove(entry);
    }

    /// The block that came first.
    pub(super) fn first(&self) -> Option<u32> {
        self.order.oldest()
    }

    /// The block that came next after `entry`.
    pub(super) fn after(&self, entry: u32) -> Option<u32> {
        self.order.next_newer(entry)
    }

    /// Writes the blocks down in their order, each with its bit.
    pub(super) fn save(&self, numbers: &[u32], state: &mut StateWriter) {
        for entry in self.order.oldest_first() {
            let was_used = u64::from(self.was_used[entry as usize]);
            state.put_u64(u64::from(numbers[entry as usize]) << 1 | was_used);
        }
    }

    /// Takes back what [`save`](Self::save) wrote.
    pub(super) fn restore(
        &mut self,
        cached: &[CachedBlock],
        state: &mut StateReader<'_>,
    ) -> Result<(), StateError> {
        restore_words(cached, state, 1, |entry, _, was_used, _| {
            self.push(entry);
            self.was_used[entry as usize] = was_used != 0;
            Ok(())
        })
    }
}
