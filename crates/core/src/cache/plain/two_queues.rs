//! Cached blocks in two queues, for policies that tell new blocks from proven ones.

use crate::cache::policy::CachedBlock;
use crate::cache::policy_state::restore_words;
use crate::map::LruLists;
use crate::saved::SavedValue;
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::vec::Vec;

/// Which queue a block is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) enum Queue {
    /// Blocks that have yet to prove themselves.
    New = 0,
    /// Blocks that have.
    Proven = 1,
}

/// Uses of a block that are counted at most.
pub(super) const USES_MAX: u8 = 3;

/// Bits of the uses and of the queue of a block where it is saved.
const WORD_BITS: u32 = 3;

/// The two queues. A block that was taken out as a victim is in none, until the cache has removed it.
#[derive(SavedValue)]
pub(super) struct TwoQueues {
    lists: LruLists,
    /// Blocks in each queue.
    lengths: [u64; 2],
    /// By entry.
    blocks: Vec<Block>,
}

#[derive(Clone, Copy, SavedValue)]
struct Block {
    lba: Lba,
    queue: Option<Queue>,
    uses: u8,
}

impl TwoQueues {
    pub(super) fn new() -> TwoQueues {
        TwoQueues { lists: LruLists::new(2), lengths: [0; 2], blocks: Vec::new() }
    }

    /// Blocks in a queue.
    pub(super) fn len(&self, queue: Queue) -> u64 {
        self.lengths[queue as usize]
    }

    /// A block comes into a queue as its newest.
    pub(super) fn insert(&mut self, queue: Queue, entry: u32, lba: Lba) {
        let block = Block { lba, queue: None, uses: 0 };
        let index = entry as usize;
        if index >= self.blocks.len() {
            self.blocks.resize(index + 1, block);
        }
        self.blocks[index] = block;
        self.push(queue, entry);
    }

    /// Makes a block that is in no queue the newest of one.
    pub(super) fn push(&mut self, queue: Queue, entry: u32) {
        self.lists.push_newest(queue as usize, entry);
        self.lengths[queue as usize] += 1;
        self.blocks[entry as usize].queue = Some(queue);
    }

    /// The queue of a block.
    pub(super) fn queue_of(&self, entry: u32) -> Option<Queue> {
        self.blocks[entry as usize].queue
    }

    /// The address of a block.
    pub(super) fn lba(&self, entry: u32) -> Lba {
        self.blocks[entry as usize].lba
    }

    /// How often a block was used, as far as the policy counts that.
    pub(super) fn uses_mut(&mut self, entry: u32) -> &mut u8 {
        &mut self.blocks[entry as usize].uses
    }

    /// Takes the oldest block of a queue out of it.
    pub(super) fn pop(&mut self, queue: Queue) -> Option<u32> {
        let oldest = self.lists.oldest_first(queue as usize).next();
        oldest.inspect(|entry| self.remove(*entry))
    }

    /// Takes a block out of its queue, if it is in one.
    pub(super) fn remove(&mut self, entry: u32) {
        if let Some(queue) = self.blocks[entry as usize].queue.take() {
            self.lists.remove(queue as usize, entry);
            self.lengths[queue as usize] -= 1;
        }
    }

    /// Writes each block down, the oldest of a queue first: its number, its uses and its queue in one word, so
    /// that a checkpoint has room for the blocks that are remembered besides.
    pub(super) fn save(&self, numbers: &[u32], state: &mut StateWriter) {
        for queue in [Queue::New, Queue::Proven] {
            for entry in self.lists.oldest_first(queue as usize) {
                let number = u64::from(numbers[entry as usize]) << WORD_BITS;
                let uses = u64::from(self.blocks[entry as usize].uses) << 1;
                state.put_u64(number | uses | queue as u64);
            }
        }
    }

    /// Takes back what [`save`](Self::save) wrote.
    pub(super) fn restore(
        &mut self,
        cached: &[CachedBlock],
        state: &mut StateReader<'_>,
    ) -> Result<(), StateError> {
        restore_words(cached, state, WORD_BITS, |entry, block, word, _| {
            let queue = match word & 1 {
                0 => Queue::New,
                _ => Queue::Proven,
            };
            self.insert(queue, entry, block.lba);
            *self.uses_mut(entry) = (word >> 1) as u8;
            Ok(())
        })
    }
}
