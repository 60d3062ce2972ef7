//! What is being served: requests, the tasks that they are cut into, and operations on their way.

use crate::buffer::BufferSlice;
use crate::checksums::PageRead;
use crate::error::IoError;
use crate::extent::Extent;
use crate::map::Slab;
use crate::operation::{Request, Tag};
use crate::saved::SavedValue;
use alloc::vec::Vec;

/// A request from above.
#[derive(Clone, Copy, Debug, SavedValue)]
pub struct Entry {
    pub request: Request,
    /// The batch it belongs to, if it changes something.
    pub batch: u32,
    /// Tasks, reads and operations on copies that it waits for.
    pub left: u32,
    /// Operations on copies among them, which hold its buffer.
    pub copies: u32,
    pub result: Result<(), IoError>,
}

/// Requests that are decided together.
#[derive(Debug, Default, SavedValue)]
pub struct Batch {
    pub requests: Vec<u32>,
    /// Those that wait for the lock of their blocks.
    pub waiting: u32,
    /// No more follow.
    pub is_complete: bool,
}

/// All batches on their way.
#[derive(Debug, Default, SavedValue)]
pub struct Batches {
    pub all: Slab<Batch>,
    /// The one that is being collected.
    pub open: Option<u32>,
}

/// A part of a request.
#[derive(Clone, Copy, Debug, SavedValue)]
pub struct Part {
    pub request: u32,
    pub extent: Extent,
}

/// What a task does in its region.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub enum Kind {
    /// Writes an S-block with the parts in it.
    Rewrite,
    /// Writes one part to the ring.
    Ring,
    /// Forgets the S-blocks of one part.
    Trim,
}

/// Something to be done in a region.
#[derive(Debug, SavedValue)]
pub struct Task {
    pub kind: Kind,
    /// The number of the S-block in the region.
    pub segment: u16,
    pub parts: Vec<Part>,
}

/// A read of blocks of a request that are in one place.
#[derive(Clone, Copy, Debug, SavedValue)]
pub struct ReadPart {
    pub request: u32,
    pub region: u32,
    pub held: Held,
    /// The first of the blocks in the position, or in the place of the ring.
    pub offset: u64,
    pub buffer: BufferSlice,
}

/// A read of blocks for a rewrite.
#[derive(Clone, Copy, Debug, SavedValue)]
pub struct OldPart {
    pub region: u32,
    /// Where they are.
    pub there: Extent,
    /// The first of them in the S-block.
    pub from: u64,
    /// A read of them has failed, and each is read by itself now.
    pub is_again: bool,
}

/// What an operation on its way is for.
#[derive(Clone, Copy, Debug, SavedValue)]
pub enum Op {
    /// A read of a request, from a position or a place in a ring.
    Read(ReadPart),
    /// A page of a table that reads of requests wait for.
    Page(PageRead),
    /// A flush that a request is.
    Flush { request: u32 },
    /// A read of a rewrite.
    Old(OldPart),
    /// A page of the old table of the S-block that is rewritten; whether it is read once more.
    OldSums { region: u32, page: PageRead, is_again: bool },
    /// A write of a rewrite.
    Rewrite { region: u32 },
    /// The look for a copy of a block of the S-block that is rewritten.
    Peek { region: u32, block: u32 },
    /// A write to the ring.
    Ring { region: u32, task: u32, place: u32, buffer: BufferSlice },
    /// Something about the copies of a request's blocks.
    Copy { request: u32 },
    /// A copy of what a rewrite has read.
    Stored { region: u32 },
}

/// What must not be written while something needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub enum Held {
    Position(u16),
    Ring(u32),
}

/// Operations on their way.
#[derive(Debug, Default, SavedValue)]
pub struct Ops(Slab<Op>);

impl Ops {
    /// The tag of an operation that goes off.
    pub fn begin(&mut self, op: Op) -> Tag {
        Tag(u64::from(self.0.add(op)))
    }

    /// What a completed operation was for.
    pub fn end(&mut self, tag: Tag) -> Op {
        self.0.take(tag.0 as u32)
    }

    /// None is on its way.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
