//! Which blocks of the journal are filled, written, durable and free again.

use super::block::PAYLOAD_BYTES;
use super::ids::Lsn;
use super::record::{self, DataRef};
use crate::saved::SavedValue;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The blocks of the ring. They are numbered from the format on, so each number is used once.
#[derive(Debug, SavedValue)]
pub(super) struct Ring {
    /// Blocks of the ring.
    blocks: u64,
    /// The payload of the block that is being filled.
    pub open: Vec<u8>,
    /// The number of the block that is being filled.
    pub next: Lsn,
    /// The oldest block that must not be overwritten.
    pub tail: Lsn,
    /// Blocks being written, oldest first, and whether each is done.
    writing: VecDeque<(Lsn, bool)>,
    /// Every block before it has been written.
    pub written: Lsn,
    /// Every block before it is durable, and so is the data its records speak of.
    pub durable: Lsn,
}

impl Ring {
    /// A ring of which nothing is used.
    pub fn new(blocks: u64) -> Ring {
        Ring {
            blocks,
            open: Vec::with_capacity(PAYLOAD_BYTES),
            next: Lsn(0),
            tail: Lsn(0),
            writing: VecDeque::new(),
            written: Lsn(0),
            durable: Lsn(0),
        }
    }

    /// Goes on at `next`: every block before it is durable.
    pub fn start_at(&mut self, next: Lsn) {
        self.next = next;
        self.written = next;
        self.durable = next;
    }

    /// Blocks of the ring.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Blocks that must not be overwritten.
    pub fn used(&self) -> u64 {
        self.next.0 - self.tail.0
    }

    /// Blocks that must not be overwritten, and the one that is being filled.
    pub fn used_and_open(&self) -> u64 {
        self.used() + u64::from(!self.open.is_empty())
    }

    /// Puts a record into the block that is being filled.
    pub fn put(&mut self, kind: u8, payload: &[u8], data: Option<DataRef<'_>>) {
        record::put(&mut self.open, kind, payload, data);
    }

    /// The block that was being filled is on its way. Returns its number.
    pub fn begin_block(&mut self) -> Lsn {
        assert!(self.used() < self.blocks, "the journal has no room left");
        let lsn = self.next;
        self.next = Lsn(lsn.0 + 1);
        self.writing.push_back((lsn, false));
        lsn
    }

    /// A block has been written. Returns the last of those before which none is on its way, if it
    /// is not the same as before.
    pub fn block_written(&mut self, lsn: Lsn) -> Option<Lsn> {
        let entry = self.writing.iter_mut().find(|(place, _)| *place == lsn);
        entry.expect("a block that was being written").1 = true;
        let before = self.written;
        while let Some((lsn, true)) = self.writing.front() {
            self.written = Lsn(lsn.0 + 1);
            self.writing.pop_front();
        }
        (self.written > before).then(|| Lsn(self.written.0 - 1))
    }

    /// True when a block is on its way.
    pub fn has_block_in_flight(&self) -> bool {
        !self.writing.is_empty()
    }

    /// True when records wait for their block or a block is on its way.
    pub fn is_writing(&self) -> bool {
        !self.open.is_empty() || self.has_block_in_flight()
    }
}
