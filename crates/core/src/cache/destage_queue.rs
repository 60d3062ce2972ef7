//! The order in which dirty blocks go below, and what becomes of them there.

use crate::error::IoError;
use crate::operation::Operation;
use crate::saved::SavedValue;
use alloc::collections::VecDeque;

/// Destages that hold a buffer at once.
const DESTAGES_IN_FLIGHT_MAX: u32 = 64;
/// Destages that wait together for a flush of the backing.
const BATCH_JOBS_MAX: usize = 32;

/// When a job takes its place in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) enum Joins {
    /// When it is decided on: writes below keep the order of the decisions.
    WhenDecided,
    /// When it waits for nothing any more. Where host writes take fresh slots, a job before it may
    /// wait for a slot that it will bring.
    WhenUnblocked,
}

/// Jobs whose writes below have not been issued, in the order in which they must be.
#[derive(Debug, SavedValue)]
pub(super) struct DestageQueue {
    /// What a destage issues below.
    pub operation: Operation,
    joins: Joins,
    jobs: VecDeque<u32>,
    /// How many of the first jobs are being read, or need not be.
    started: usize,
    /// Jobs that still wait for something and join the queue after it.
    blocked: u32,
    /// Destages being read or written.
    in_flight: u32,
    /// Why a destage failed, as long as newcomers wait for a slot that may never come.
    pub failure: Option<IoError>,
    /// Those that were written and are not durable below.
    pub batch: Batch,
}

impl DestageQueue {
    /// An empty queue of destages that issue `operation` and wait for others as `batch` says.
    pub fn new(operation: Operation, joins: Joins, batch: Batch) -> DestageQueue {
        DestageQueue {
            operation,
            joins,
            jobs: VecDeque::new(),
            started: 0,
            blocked: 0,
            in_flight: 0,
            failure: None,
            batch,
        }
    }

    /// True when no destage is waiting, read or written.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.in_flight == 0 && self.blocked == 0
    }

    /// True when no other destage may begin before one has ended.
    pub fn is_full(&self) -> bool {
        self.in_flight >= DESTAGES_IN_FLIGHT_MAX
    }

    /// True when a job takes its place only when it waits for nothing any more.
    pub fn is_joined_when_unblocked(&self) -> bool {
        self.joins == Joins::WhenUnblocked
    }

    /// A job was decided on, which is still blocked.
    pub fn add(&mut self, job: u32) {
        match self.joins {
            Joins::WhenDecided => self.jobs.push_back(job),
            Joins::WhenUnblocked => self.blocked += 1,
        }
    }

    /// As [`add`](Self::add), with a place before all jobs that have not been started.
    pub fn add_next(&mut self, job: u32) {
        match self.joins {
            Joins::WhenDecided => self.jobs.insert(self.started, job),
            Joins::WhenUnblocked => self.blocked += 1,
        }
    }

    /// A job waits for nothing any more.
    pub fn unblocked(&mut self, job: u32) {
        if self.joins == Joins::WhenUnblocked {
            self.blocked -= 1;
            self.jobs.push_back(job);
        }
    }

    /// The first job that is not started.
    pub fn next_to_start(&self) -> Option<u32> {
        self.jobs.get(self.started).copied()
    }

    /// The first job that is not started has been started.
    pub fn start_next(&mut self) {
        self.started += 1;
    }

    /// The job whose turn to write it is, if it has been started.
    pub fn in_turn(&self) -> Option<u32> {
        self.jobs.front().copied().filter(|_| self.started > 0)
    }

    /// The job whose turn it is leaves the queue.
    pub fn take_turn(&mut self) {
        self.jobs.pop_front();
        self.started -= 1;
    }

    /// A destage begins to be read.
    pub fn begin(&mut self) {
        self.in_flight += 1;
    }

    /// A destage has ended.
    pub fn end(&mut self) {
        self.in_flight -= 1;
    }
}

/// Destages that were written below and wait together for a flush there, and jobs whose blocks are
/// durable below and have yet to be freed.
#[derive(Debug, SavedValue)]
pub(super) struct Batch {
    /// Blocks of the destages that wait for a flush which has not begun.
    blocks: u64,
    blocks_max: u64,
    /// Jobs whose blocks are durable below and need records.
    pub freeing: VecDeque<u32>,
    /// Somebody waits for a block to be gone, so no destage waits for company.
    pub is_urgent: bool,
}

impl Batch {
    /// An empty batch that asks for a flush at `blocks_max` blocks, at least at one.
    pub fn new(blocks_max: u64) -> Batch {
        Batch {
            blocks: 0,
            blocks_max: blocks_max.max(1),
            freeing: VecDeque::new(),
            is_urgent: false,
        }
    }

    /// A destage of so many blocks joins `waiting` others.
    pub fn add(&mut self, blocks: u64, waiting: usize) {
        if waiting == 0 {
            self.blocks = 0;
        }
        self.blocks += blocks;
    }

    /// True when the `waiting` destages need a flush by now.
    pub fn needs_flush(&self, waiting: usize, is_awaited: bool) -> bool {
        let is_large = self.blocks >= self.blocks_max || waiting >= BATCH_JOBS_MAX;
        waiting > 0 && (self.is_urgent || is_awaited || is_large)
    }
}
