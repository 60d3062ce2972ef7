//! The writing of an S-block at the head, step by step.

use crate::buffer::BufferSlice;
use crate::durability::FlushTicket;
use crate::error::IoError;
use crate::map::Slab;
use crate::saved::SavedValue;
use alloc::vec::Vec;

/// S-blocks that are written at a time, each with a buffer of its own.
pub const WRITES_MAX: u32 = 4;

/// A rewrite of a region, with the moves that make room for it.
#[derive(Clone, Copy, Debug, SavedValue)]
pub struct Job {
    /// The task that asked for it; none where a full ring did.
    pub task: Option<u32>,
    /// The S-block.
    pub segment: u16,
    /// It lies at the head; only room is yet to be made.
    pub is_written: bool,
    /// It was counted.
    pub is_counted: bool,
}

/// How far the writing of an S-block has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub enum Step {
    /// It has a buffer.
    Begins,
    /// Copies are looked for, and the old checksums read.
    Peeks,
    /// The older S-block is read.
    ReadsOld,
    /// Its blocks in the ring are read.
    ReadsRing,
    /// Its data is there but for what the requests bring.
    Merges,
    /// It waits for the head and for room in the journal.
    WaitsForHead,
    /// It is written.
    Writes,
    /// What was written becomes durable.
    Flushes(FlushTicket),
    /// A store of copies still has its buffer.
    Ends,
}

/// Where a block of an S-block comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub enum Source {
    /// It is there as a whole.
    Requests,
    /// From the older S-block.
    Old,
    /// The store of copies is asked first, and where it has it nothing is read.
    Copy,
}

/// The checksums of an S-block on its way to the head.
#[derive(Debug, Default, SavedValue)]
pub struct NewSums {
    /// The word of each block; empty where there are no checksums. A block that was read keeps the one
    /// it had, whether what was read is right or not. None is there yet of what requests bring, of
    /// zeroes that nobody wrote, and where nobody knows what a block must be.
    pub known: Vec<Option<u32>>,
    /// The words of the table, once all data is there.
    pub words: Vec<u32>,
    /// The buffer of the table.
    pub pages: BufferSlice,
    /// The generation of the table.
    pub generation: u64,
}

impl NewSums {
    /// There are no checksums.
    pub fn are_none(&self) -> bool {
        self.known.is_empty()
    }
}

/// An S-block on its way to the head.
#[derive(Debug, SavedValue)]
pub struct SegmentWrite {
    pub region: u32,
    pub segment: u16,
    /// It is moved as it is.
    pub is_move: bool,
    pub step: Step,
    /// Operations of the step on their way.
    pub left: u32,
    /// Buffers that a store of copies has yet to give back.
    pub stored: u32,
    pub error: Option<IoError>,
    pub buffer: BufferSlice,
    /// Which blocks of 4 KiB the requests and the ring bring.
    pub dirty: Vec<bool>,
    /// Where each block comes from.
    pub sources: Vec<Source>,
    pub sums: NewSums,
    pub position: u16,
    /// Room in the journal is kept for its record.
    pub has_room: bool,
}

impl SegmentWrite {
    fn new() -> SegmentWrite {
        SegmentWrite {
            region: 0,
            segment: 0,
            is_move: false,
            step: Step::Begins,
            left: 0,
            stored: 0,
            error: None,
            buffer: BufferSlice::EMPTY,
            dirty: Vec::new(),
            sources: Vec::new(),
            sums: NewSums::default(),
            position: 0,
            has_room: false,
        }
    }
}

/// The writes of S-blocks on their way.
#[derive(Debug, Default, SavedValue)]
pub struct Writes(Slab<SegmentWrite>);

impl Writes {
    /// Begins one; `None` when too many are on their way.
    pub fn begin(&mut self, region: u32, segment: u16, is_move: bool) -> Option<u8> {
        if self.0.len() == WRITES_MAX {
            return None;
        }
        let index = self.0.reuse_or(SegmentWrite::new);
        let write = &mut self.0[index];
        (write.region, write.segment, write.is_move) = (region, segment, is_move);
        (write.step, write.left, write.stored) = (Step::Begins, 0, 0);
        (write.error, write.has_room) = (None, false);
        write.dirty.clear();
        write.sources.clear();
        write.sums.known.clear();
        Some(index as u8)
    }

    /// Ends one.
    pub fn end(&mut self, index: u8) {
        self.0.remove(u32::from(index));
    }

    /// None is on its way.
    pub fn is_idle(&self) -> bool {
        self.0.is_empty()
    }
}

impl core::ops::Index<u8> for Writes {
    type Output = SegmentWrite;

    fn index(&self, index: u8) -> &SegmentWrite {
        &self.0[u32::from(index)]
    }
}

impl core::ops::IndexMut<u8> for Writes {
    fn index_mut(&mut self, index: u8) -> &mut SegmentWrite {
        &mut self.0[u32::from(index)]
    }
}
