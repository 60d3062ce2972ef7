//! Operations of a journal in flight.

use super::ids::Lsn;
use crate::buffer::BufferSlice;
use crate::map::Slab;
use crate::operation::Tag;
use crate::saved::SavedValue;

/// Tags with this bit belong to the journal; a layer's own must not have it.
const TAG_BIT: u64 = 1 << 63;
/// Where a tag says which copy of a mirrored journal an operation went to; below is the index.
const COPY_SHIFT: u32 = 32;
const COPY_MASK: u64 = 0xff;

/// What an operation in flight is for.
#[derive(Clone, Copy, Debug, SavedValue)]
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
    /// A page that says which copies count, and the flush after it.
    MembershipPage,
    MembershipFlush,
    /// Part of recovery, which knows its own operations by number.
    Recovery(u64),
}

impl Purpose {
    /// True when it records which copies count.
    pub fn is_of_membership(self) -> bool {
        matches!(self, Purpose::MembershipPage | Purpose::MembershipFlush)
    }
}

/// The operations in flight, by tag.
#[derive(Debug, Default, SavedValue)]
pub(super) struct Operations(Slab<(Purpose, BufferSlice)>);

impl Operations {
    /// True when an operation with this tag is one of these.
    #[inline]
    pub fn owns(tag: Tag) -> bool {
        tag.0 & TAG_BIT != 0
    }

    /// Takes note of an operation and gives it a tag.
    pub fn begin(&mut self, purpose: Purpose, buffer: BufferSlice) -> Tag {
        Tag(TAG_BIT | u64::from(self.0.add((purpose, buffer))))
    }

    /// An operation has completed: what it was for, and its buffer.
    pub fn end(&mut self, tag: Tag) -> (Purpose, BufferSlice) {
        let index = Operations::index_of(tag) as u32;
        let entry = self.0.take(index);
        self.0[index].0 = Purpose::Unused;
        entry
    }

    /// The place of an operation among those in flight; it is the same for all copies.
    #[inline]
    pub fn index_of(tag: Tag) -> usize {
        tag.0 as u32 as usize
    }

    /// The tag of the operation with that tag when it goes to a copy.
    pub fn tag_for_copy(tag: Tag, copy: usize) -> Tag {
        Tag(tag.0 | (copy as u64) << COPY_SHIFT)
    }

    /// The copy that an operation went to.
    pub fn copy_of(tag: Tag) -> usize {
        (tag.0 >> COPY_SHIFT & COPY_MASK) as usize
    }

    /// What the operation at a place is for.
    pub fn purpose(&self, index: usize) -> Purpose {
        self.0[index as u32].0
    }

    /// True when none is in flight.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
