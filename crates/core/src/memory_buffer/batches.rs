//! Blocks that leave together, and how far each batch has come.

use super::tasks::List;
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::map::Slab;
use crate::saved::SavedValue;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Batches that are handed down at once. *Estimated*: as many as a disk can order to advantage; the
/// others wait, so that the memory for runs stays bounded.
const BATCHES_MAX: usize = 16;
/// How far a batch has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) enum Stage {
    /// It waits for its blocks, or for earlier batches.
    Waiting,
    /// The parts that its blocks lack are read.
    Filling,
    /// All parts are on their way to the log, and flushed there.
    Logging,
    /// It can be written below when every earlier batch is.
    Ready,
    /// It is written below.
    Writing,
}

/// Blocks of one segment that leave together.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct Batch {
    pub tasks: List,
    /// The write that needs the room, if one does.
    pub job: Option<u32>,
    /// Tasks for which others have to end first.
    pub blocked: u32,
    /// Operations that have not ended.
    pub left: u32,
    pub stage: Stage,
    pub error: Option<IoError>,
    /// Counts the batches.
    pub serial: u64,
}

/// The batches in the order of the decisions.
#[derive(Debug, Default, SavedValue)]
pub(super) struct Batches {
    pub slab: Slab<Batch>,
    pub order: VecDeque<u32>,
    pub serial: u64,
    /// Buffers of runs, each with its batch.
    pub runs: Vec<(u32, BufferSlice)>,
    /// Scratch space for those that leave.
    pub victims: Vec<u32>,
}

impl Batches {
    /// The turn of a block of a batch has come.
    pub fn unblock(&mut self, batch: u32) {
        self.slab[batch].blocked -= 1;
    }

    /// True when nothing leaves.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The number of the newest batch.
    pub fn newest(&self) -> u64 {
        self.serial
    }

    /// True when every batch up to and with this number has ended.
    pub fn have_ended(&self, serial: u64) -> bool {
        let first = self.order.front();
        first.is_none_or(|batch| self.slab[*batch].serial > serial)
    }

    /// The first batch whose turn has come.
    pub fn next_to_start(&self) -> Option<u32> {
        let mut first = self.order.iter().take(BATCHES_MAX);
        let is_free = |batch: &&u32| {
            let it = &self.slab[**batch];
            it.stage == Stage::Waiting && it.blocked == 0 && !self.follows_its_own(**batch)
        };
        first.find(is_free).copied()
    }

    /// True when the write that needs this batch needs one before it that has not ended. They go one
    /// after the other, because the first may change which copies the second finds.
    fn follows_its_own(&self, batch: u32) -> bool {
        let job = self.slab[batch].job;
        let mut before = self.order.iter().take_while(|other| **other != batch);
        job.is_some() && before.any(|other| self.slab[*other].job == job)
    }

    /// The first batch that is not on its way below, if its turn has come.
    pub fn next_to_write(&self) -> Option<u32> {
        let mut batches = self.order.iter();
        let first = batches.find(|batch| self.slab[**batch].stage != Stage::Writing);
        let is_ready = |batch: &&u32| self.slab[**batch].stage == Stage::Ready;
        first.filter(is_ready).copied()
    }
}
