//! The memory of the blocks: buffers that are made once and used again.

use crate::buffer::BufferSlice;
use crate::layer::Context;
use crate::saved::SavedValue;
use crate::units::BlockCount;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Memory for so many blocks, given out in the order of asking.
#[derive(Debug, SavedValue)]
pub(super) struct Memory {
    parts: u64,
    limit: u32,
    made: u32,
    free: Vec<BufferSlice>,
    /// Entries that wait, the oldest first.
    waiting: VecDeque<u32>,
}

impl Memory {
    /// Memory for `limit` blocks.
    pub fn new(parts: u64, limit: u32) -> Memory {
        Memory {
            parts,
            limit,
            made: 0,
            free: Vec::with_capacity(limit as usize),
            waiting: VecDeque::with_capacity(limit as usize),
        }
    }

    /// Memory for an entry, or nothing: then the entry waits.
    pub fn take(&mut self, entry: u32, ctx: &mut Context<'_>) -> Option<BufferSlice> {
        if self.waiting.is_empty() {
            if let Some(slot) = self.free.pop() {
                return Some(slot);
            }
            if self.made < self.limit {
                return Some(self.take_over_limit(ctx));
            }
        }
        self.waiting.push_back(entry);
        None
    }

    /// Memory beyond the limit, for what is found in a log.
    pub fn take_over_limit(&mut self, ctx: &mut Context<'_>) -> BufferSlice {
        self.made += 1;
        ctx.allocate(BlockCount(self.parts))
    }

    /// Takes memory back. Returns the entry that has it from now on, if one waits.
    pub fn give_back(&mut self, slot: BufferSlice, ctx: &mut Context<'_>) -> Option<u32> {
        if self.made > self.limit {
            self.made -= 1;
            ctx.release(slot);
            return None;
        }
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.free.push(slot);
        }
        next
    }

    /// Takes memory back that nobody shall have.
    pub fn keep(&mut self, slot: BufferSlice) {
        self.free.push(slot);
    }

    /// Nobody gets memory any more: the next that has waited in vain.
    pub fn next_in_vain(&mut self) -> Option<u32> {
        self.waiting.pop_front()
    }
}
