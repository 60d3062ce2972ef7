//! Operations of a journal in flight.

use super::ids::Lsn;
use crate::buffer::BufferSlice;
use crate::operation::Tag;
use alloc::vec::Vec;

/// Tags with this bit belong to the journal; a layer's own must not have it.
const TAG_BIT: u64 = 1 << 63;

/// What an operation in flight is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Unused,
    JournalBlock(Lsn),
    Flush,
    /// The flush of the port that holds other data.
    DataFlush,
    Page,
    SuperblockCopy,
    /// The zeroing of the ring.
    RingZero,
    /// Part of recovery, which knows its own operations by number.
    Recovery(u64),
}

/// The operations in flight, by tag.
#[derive(Debug, Default)]
pub(super) struct Operations {
    in_flight: Vec<(Purpose, BufferSlice)>,
    free: Vec<u32>,
}

impl Operations {
    /// True when an operation with this tag is one of these.
    #[inline]
    pub fn owns(tag: Tag) -> bool {
        tag.0 & TAG_BIT != 0
    }

    /// Takes note of an operation and gives it a tag.
    pub fn begin(&mut self, purpose: Purpose, buffer: BufferSlice) -> Tag {
        let entry = (purpose, buffer);
        let index = match self.free.pop() {
            Some(index) => {
                self.in_flight[index as usize] = entry;
                index
            }
            None => {
                self.in_flight.push(entry);
                (self.in_flight.len() - 1) as u32
            }
        };
        Tag(TAG_BIT | u64::from(index))
    }

    /// An operation has completed: what it was for, and its buffer.
    pub fn end(&mut self, tag: Tag) -> (Purpose, BufferSlice) {
        let index = (tag.0 & !TAG_BIT) as usize;
        let entry = self.in_flight[index];
        self.in_flight[index].0 = Purpose::Unused;
        self.free.push(index as u32);
        entry
    }

    /// True when none is in flight.
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.in_flight.len()
    }
}
