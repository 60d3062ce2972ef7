//! Labels of disks: how a disk is noticed that is another one, or an older copy of itself.
//!
//! Every disk of an image has a label, whatever stands on it: two copies, in the two blocks behind
//! the last one that the disk offers. A label says to which set the disk belongs, which of its disks
//! it is, and how far the set had come. How far a set has come is a [`Mark`]: a count, and a random
//! number that tells two sets apart that went on without each other. The label also lists every disk
//! of the set with the mark at which that one was last in.
//!
//! The count moves at each start that writes, before anything else is written, when a layer asks for it,
//! and at each orderly stop. `docs/formats/label.md` draws the bytes and tells the order of the writes.
//!
//! # How a door uses it
//!
//! A door makes [`Labels`] of the numbers of its disks, in the order of
//! [`DiskId`](crate::stack::DiskId), and gives them to the engine:
//!
//! 1. [`Engine::open_labelled`](crate::engine::Engine::open_labelled) in the place of `open`: the
//!    labels are read and compared, the count moves, then the layers come up. A disk that the stack
//!    has lost is absent. A stack that is only read writes no label.
//! 2. [`Engine::close_labelled`](crate::engine::Engine::close_labelled) in the place of `close`: the
//!    layers go down, then the count moves.
//! 3. [`CommandArrival::NewLabel`](crate::engine::CommandArrival::NewLabel) when a new disk has a label
//!    and belongs to the set.
//!
//! Random numbers come from a seed of the door, which no other start had. A disk must hold
//! [`LABEL_BLOCKS`] more blocks than its geometry says.
//!
//! In between layers have the count move with [`Context::move_mark`](crate::layer::Context::move_mark).
//!
//! `codec` is the bytes, `compare` the judgement, `moving` which copy is written when, `store` the
//! driver over whatever holds the blocks, and `running` the one beside the operations of layers.

mod codec;
mod compare;
mod moving;
mod on_engine;
mod refusal;
mod running;
mod store;

pub use codec::{ENTRY_FIELDS, HEAD_FIELDS, LabelError, MARK_FIELDS};
pub use on_engine::LabelledOpenError;
pub use refusal::{Reason, Refusal};
pub(crate) use running::{Progress, RunningLabels, Surroundings};
pub use store::{LabelStore, Labels, ListedDisk};

use crate::lifecycle::Uuid;
use alloc::vec::Vec;

/// Blocks of a label: its two copies, behind the last block that the disk offers to its layers.
pub const LABEL_BLOCKS: u64 = 2;
/// Most disks of a set with labels.
pub const DISKS_MAX: usize = 256;

/// How far a set has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Mark {
    /// One more at each start that writes, at each move while the stack runs, and at each orderly stop. 0: the disk is new, and has never
    /// been in.
    pub count: u32,
    /// A random number: two sets that went on without each other differ in it.
    pub random: u32,
}

impl Mark {
    /// True of the mark of a disk that has never been in.
    pub fn is_new(self) -> bool {
        self.count == 0
    }
}

/// What a label says of a disk of the set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The number of the disk. It is never used for another one.
    pub disk: u16,
    /// The mark at which it was last in.
    pub last: Mark,
    /// The mark that it has if `last` did not reach it: its label may not have been written when the
    /// entry was.
    pub before: Option<Mark>,
}

impl Entry {
    /// True of a mark that the disk may have.
    pub fn takes(&self, mark: Mark) -> bool {
        mark == self.last || Some(mark) == self.before
    }
}

/// What a copy of a label says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// The set that the disk belongs to.
    pub set: Uuid,
    /// The number of the disk.
    pub disk: u16,
    /// How far the set had come when it was written.
    pub mark: Mark,
    /// The mark that the set came from, which every disk that was in then had on its second copy.
    pub from: Option<Mark>,
    /// The disks of the set, by number.
    pub entries: Vec<Entry>,
    /// The place that the set was served from when it was written; 0 of a set whose disks are locked by who
    /// serves them.
    pub server: u64,
}

impl Label {
    /// The label of a disk that has never been in.
    pub fn new(set: Uuid, disk: u16, random: u32) -> Label {
        let (from, entries) = (None, Vec::new());
        let mark = Mark { count: 0, random };
        Label { set, disk, mark, from, entries, server: 0 }
    }

    fn entry(&self, disk: u16) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.disk == disk)
    }
}

/// Which copy of a label.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LabelCopy {
    /// In the block behind the last that the disk offers.
    First,
    /// In the one after that. It is written when the first is durable on all disks.
    Second,
}

impl LabelCopy {
    /// Both, in the order in which they lie and are written.
    pub const ALL: [LabelCopy; 2] = [LabelCopy::First, LabelCopy::Second];

    /// The block that it lies in, on a disk that offers `blocks`.
    pub fn address(self, blocks: u64) -> u64 {
        blocks + self.index() as u64
    }

    fn index(self) -> usize {
        self as usize
    }
}
