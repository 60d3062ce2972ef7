//! 2Q in its full version (Johnson, Shasha: 2Q: A Low Overhead High Performance Buffer Management
//! Replacement Algorithm, VLDB 1994): newcomers wait in a queue, A1in, and are remembered when they have
//! left it, in A1out. What comes back while it is remembered is kept by the time of its last use, in Am.
//!
//! Kin is a quarter of the cache and Kout half of it, as the paper proposes.

use super::ghost_list::GhostList;
use super::two_queues::{Queue, TwoQueues};
use crate::cache::policy::{AccessKind, CachedBlock, EvictionPolicy, PolicyEvents};
use crate::saved::Saved;
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::vec::Vec;

/// Kin is the cache divided by this.
const IN_DIVISOR: u64 = 4;
/// Kout is the cache divided by this.
const OUT_DIVISOR: u64 = 2;

/// 2Q.
#[derive(Saved)]
pub(super) struct TwoQ {
    /// Kin: blocks in A1in from which on it gives up a block.
    in_blocks: u64,
    /// `New` is A1in, `Proven` is Am.
    queues: TwoQueues,
    /// A1out.
    out: GhostList,
    /// Whether the block that is about to come in was remembered.
    is_return: bool,
}

impl TwoQ {
    pub(super) fn new(capacity_blocks: u64) -> TwoQ {
        TwoQ {
            in_blocks: capacity_blocks / IN_DIVISOR,
            queues: TwoQueues::new(),
            out: GhostList::new(capacity_blocks / OUT_DIVISOR),
            is_return: false,
        }
    }
}

impl EvictionPolicy for TwoQ {
    fn before_insert(&mut self, lba: Lba) {
        // Whoever leaves for it may be the one too many in A1out, and must not push it out of there.
        self.is_return = self.out.forget(lba);
    }

    fn on_insert(&mut self, entry: u32, lba: Lba, _: AccessKind, _: &mut PolicyEvents) {
        // A block that is put back was not announced.
        let is_return = core::mem::take(&mut self.is_return) || self.out.forget(lba);
        let queue = match is_return {
            true => Queue::Proven,
            false => Queue::New,
        };
        self.queues.insert(queue, entry, lba);
    }

    fn on_access(&mut self, entry: u32, _: AccessKind, _: &mut PolicyEvents) {
        if self.queues.queue_of(entry) == Some(Queue::Proven) {
            self.queues.remove(entry);
            self.queues.push(Queue::Proven, entry);
        }
    }

    fn victims(&mut self, victims: &mut Vec<u32>, _: &mut PolicyEvents) {
        if self.queues.len(Queue::New) > self.in_blocks {
            let first = self.queues.pop(Queue::New);
            victims.extend(first.inspect(|entry| self.out.remember(self.queues.lba(*entry))));
        } else {
            victims.extend(self.queues.pop(Queue::Proven));
        }
    }

    fn on_remove(&mut self, entry: u32) {
        self.queues.remove(entry);
    }

    fn save(&self, numbers: &[u32], state: &mut StateWriter) {
        self.queues.save(numbers, state);
        self.out.save(state);
    }

    fn restore(
        &mut self,
        cached: &[CachedBlock],
        state: &mut StateReader<'_>,
    ) -> Result<(), StateError> {
        self.queues.restore(cached, state)?;
        self.out.restore(state)
    }
}
