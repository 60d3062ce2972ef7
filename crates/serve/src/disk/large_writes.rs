//! Large writes to a file, made in portions so that sockets are read between them.
//!
//! A write into the page cache happens on the thread that reads the sockets, and a socket holds less than a large
//! write. While one is made whole its client can send but little of the next one, and the thread waits for the rest
//! afterwards. So at one instant it writes no more than a socket holds.

use imbrex_core::buffer::BufferSlice;
use imbrex_core::operation::RequestId;
use imbrex_core::units::{BLOCK_BYTES, Instant};
use std::collections::VecDeque;

/// Blocks from which on a write is large. Records of a journal are shorter: what waits for them waits for no large write.
const LARGE_BLOCKS: u32 = 8;
/// Blocks that large writes have of an instant: about what a Unix socket holds where nobody has set it (`wmem_default`,
/// 208 KiB).
const INSTANT_BLOCKS: u32 = 64;

/// True of a write of so many blocks that is made in portions.
#[inline]
pub(super) fn is_large(blocks: u32) -> bool {
    blocks >= LARGE_BLOCKS
}

/// A write of which some blocks are yet to be made.
#[derive(Clone, Copy)]
pub(super) struct LargeWrite {
    pub id: RequestId,
    /// Where its next block goes.
    pub offset: u64,
    /// Its blocks from that one on.
    pub buffer: BufferSlice,
    pub is_durable: bool,
}

/// What is written next.
pub(super) struct Portion {
    pub offset: u64,
    pub buffer: BufferSlice,
    /// The write that it ends.
    pub ends: Option<LargeWrite>,
}

/// Large writes that wait, in the order in which they came.
#[derive(Default)]
pub(super) struct LargeWrites {
    waiting: VecDeque<LargeWrite>,
    /// The instant of the last portion, and what was written at it.
    at: Option<Instant>,
    blocks: u32,
}

impl LargeWrites {
    /// Has a write wait.
    pub fn push(&mut self, write: LargeWrite) {
        self.waiting.push_back(write);
    }

    /// True when no write waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// What is to be written next at this instant; none when it has had its share.
    pub fn next_portion(&mut self, now: Instant) -> Option<Portion> {
        if self.at != Some(now) {
            (self.at, self.blocks) = (Some(now), 0);
        }
        let write = self.waiting.front_mut().filter(|_| self.blocks < INSTANT_BLOCKS)?;
        let LargeWrite { offset, buffer, .. } = *write;
        let blocks = buffer.blocks.min(INSTANT_BLOCKS - self.blocks);
        self.blocks += blocks;
        let buffer = buffer.part(0, u64::from(blocks));
        if blocks == write.buffer.blocks {
            return Some(Portion { offset, buffer, ends: self.waiting.pop_front() });
        }
        write.offset += u64::from(blocks) * BLOCK_BYTES;
        write.buffer =
            write.buffer.part(u64::from(blocks), u64::from(write.buffer.blocks - blocks));
        Some(Portion { offset, buffer, ends: None })
    }

    /// The first write that waits will not be made any further.
    pub fn give_up_first(&mut self) -> Option<LargeWrite> {
        self.waiting.pop_front()
    }
}
