//! ARC (Megiddo, Modha: ARC: A Self-Tuning, Low Overhead Replacement Cache, FAST 2003): blocks that were
//! used once, T1, beside blocks that were used more often, T2, each by the time of the last use. What has
//! left each is remembered, in B1 and B2. A block that comes back says which of the two should have been
//! longer, and the length that T1 should have moves that way.
//!
//! The cases are those of Figure 4. Every hit moves a block to T2.

use super::ghost_list::GhostList;
use super::two_queues::{Queue, TwoQueues};
use crate::cache::policy::{AccessKind, CachedBlock, EvictionPolicy, PolicyEvents};
use crate::saved::{Saved, SavedValue};
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::vec::Vec;

/// What is known of the block that is about to come in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
enum Newcomer {
    /// Nothing.
    Unknown,
    /// It has left T1.
    InB1,
    /// It has left T2.
    InB2,
}

/// ARC.
#[derive(Saved)]
pub(super) struct Arc {
    /// c: the blocks of the cache.
    capacity: u64,
    /// p: how long T1 should be. The paper adds ratios of lengths to it, so that it is a fraction.
    target: f64,
    /// `New` is T1, `Proven` is T2.
    queues: TwoQueues,
    b1: GhostList,
    b2: GhostList,
    newcomer: Newcomer,
}

impl Arc {
    pub(super) fn new(capacity_blocks: u64) -> Arc {
        Arc {
            capacity: capacity_blocks,
            target: 0.0,
            queues: TwoQueues::new(),
            b1: GhostList::new(capacity_blocks),
            b2: GhostList::new(capacity_blocks.saturating_mul(2)),
            newcomer: Newcomer::Unknown,
        }
    }

    /// Case IV: room among what is remembered for a newcomer that is not.
    fn make_room_for_unknown(&mut self) {
        let (t1, t2) = (self.queues.len(Queue::New), self.queues.len(Queue::Proven));
        let l1 = t1 + self.b1.len();
        if l1 >= self.capacity {
            // One at most, unless blocks were put back and there were too many.
            while self.b1.len() > 0 && t1 + self.b1.len() >= self.capacity {
                self.b1.forget_oldest();
            }
        } else if l1 + t2 + self.b2.len() >= 2 * self.capacity {
            self.b2.forget_oldest();
        }
    }

    /// REPLACE: a block leaves T1 or T2, and is remembered.
    fn replace(&mut self) -> Option<u32> {
        let t1 = self.queues.len(Queue::New) as f64;
        let from_t1 = t1 > self.target || t1 == self.target && self.newcomer == Newcomer::InB2;
        if from_t1 && t1 > 0.0 || self.queues.len(Queue::Proven) == 0 {
            let oldest = self.queues.pop(Queue::New);
            oldest.inspect(|entry| self.b1.remember(self.queues.lba(*entry)))
        } else {
            let oldest = self.queues.pop(Queue::Proven);
            oldest.inspect(|entry| self.b2.remember(self.queues.lba(*entry)))
        }
    }
}

impl EvictionPolicy for Arc {
    fn before_insert(&mut self, lba: Lba) {
        // The lengths count the newcomer, which is still remembered when the paper takes them.
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        self.newcomer = if self.b1.forget(lba) {
            self.target = (self.target + (b2 / b1).max(1.0)).min(self.capacity as f64);
            Newcomer::InB1
        } else if self.b2.forget(lba) {
            self.target = (self.target - (b1 / b2).max(1.0)).max(0.0);
            Newcomer::InB2
        } else {
            self.make_room_for_unknown();
            Newcomer::Unknown
        };
    }

    fn on_insert(&mut self, entry: u32, lba: Lba, _: AccessKind, _: &mut PolicyEvents) {
        let newcomer = core::mem::replace(&mut self.newcomer, Newcomer::Unknown);
        let is_return = matches!(newcomer, Newcomer::InB1 | Newcomer::InB2);
        // A block that is put back was not announced.
        let is_known = is_return || self.b1.forget(lba) || self.b2.forget(lba);
        let queue = match is_known {
            true => Queue::Proven,
            false => Queue::New,
        };
        self.queues.insert(queue, entry, lba);
    }

    fn on_access(&mut self, entry: u32, _: AccessKind, _: &mut PolicyEvents) {
        self.queues.remove(entry);
        self.queues.push(Queue::Proven, entry);
    }

    fn victims(&mut self, victims: &mut Vec<u32>, _: &mut PolicyEvents) {
        // Beside a T1 that is as long as the cache nothing of it is remembered.
        let is_t1_alone = self.queues.len(Queue::New) >= self.capacity;
        let victim = match self.newcomer {
            Newcomer::Unknown if is_t1_alone => self.queues.pop(Queue::New),
            _ => self.replace(),
        };
        victims.extend(victim);
    }

    fn on_remove(&mut self, entry: u32) {
        self.queues.remove(entry);
    }

    fn save(&self, numbers: &[u32], state: &mut StateWriter) {
        state.put_u64(self.target.to_bits());
        self.queues.save(numbers, state);
        self.b1.save(state);
        self.b2.save(state);
    }

    fn restore(
        &mut self,
        cached: &[CachedBlock],
        state: &mut StateReader<'_>,
    ) -> Result<(), StateError> {
        self.target = f64::from_bits(state.take_u64()?);
        if !(0.0..=self.capacity as f64).contains(&self.target) {
            return Err(StateError::new("the saved cache divides itself where it has no blocks"));
        }
        self.queues.restore(cached, state)?;
        self.b1.restore(state)?;
        self.b2.restore(state)
    }
}
