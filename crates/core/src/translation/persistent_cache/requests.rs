//! The requests that are being served, and the operations below that are in flight for them.

use super::checksums::Origin;
use super::firmware::RecordOf;
use super::streams::NEVER;
use crate::buffer::BufferSlice;
use crate::checksums::PageRead;
use crate::error::IoError;
use crate::extent::Extent;
use crate::map::{ExtentLocks, Slab};
use crate::operation::Request;
use crate::saved::SavedValue;
use alloc::collections::VecDeque;

/// A request from above that is being served.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct Job {
    pub request: Request,
    /// Operations below that are in flight for it.
    pub outstanding: u32,
    /// No further operation will be issued for it.
    pub issued: bool,
    pub result: Result<(), IoError>,
    /// Blocks of a write that have been issued.
    pub progress: u64,
    /// From which block of a write on its stream is long enough to go around the log.
    pub around_from: u64,
    /// Blocks of it went to the log, though it is sequential.
    pub is_in_log: bool,
    /// The log position it holds.
    pub hold: Option<u64>,
    /// The zeroes that a zero writes which is served like a write.
    pub zeroes: BufferSlice,
}

impl Job {
    /// A request of which nothing has been issued.
    pub fn new(request: Request) -> Job {
        Job {
            request,
            outstanding: 0,
            issued: false,
            result: Ok(()),
            progress: 0,
            around_from: NEVER,
            is_in_log: false,
            hold: None,
            zeroes: BufferSlice::EMPTY,
        }
    }

    /// True when all that was issued for it has finished, and nothing more will be.
    fn is_done(&self) -> bool {
        self.issued && self.outstanding == 0
    }

    /// What is written for a part of the request: its data, or zeroes.
    pub fn payload_of(&self, extent: Extent) -> BufferSlice {
        match self.zeroes.blocks {
            0 => self.data_of(extent),
            _ => self.zeroes.part(0, extent.blocks.0),
        }
    }

    /// The data of a part of the request.
    pub fn data_of(&self, extent: Extent) -> BufferSlice {
        let first = extent.start.offset_from(self.request.extent.start);
        self.request.buffer.part(first, extent.blocks.0)
    }
}

/// What an operation in flight is for.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) enum Part {
    /// Part of a read.
    Read { job: u32, origin: Origin, buffer: BufferSlice },
    /// Part of a write, to the log from this position on.
    Log { write: DataWrite, position: u64 },
    /// Part of a write to a conventional zone, or in place.
    Conventional { job: u32, extent: Extent },
    /// Part of a write, straight home.
    Bypass(DataWrite),
    /// A page of a table of checksums, for reads that wait for it.
    Page(PageRead),
    /// The table of a band that the bypass has filled.
    Table,
    /// A flush, which may end with a record of the map.
    Flush { job: u32, is_recorded: bool },
    /// The flush of a transaction that is full.
    Commit,
    /// The record that ends a flush or a transaction.
    Record { of: RecordOf, buffer: BufferSlice },
    /// The read or the write of blocks that move within the log.
    Move,
    /// Part of the band rewrite: the step after it, where it is one of the present phase.
    Rewrite { end: Option<u64> },
}

/// Blocks of a job that are written to one place.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct DataWrite {
    pub job: u32,
    pub extent: Extent,
    pub buffer: BufferSlice,
    /// The lowest position of the log that they supersede.
    pub supersedes: u64,
}

impl Part {
    /// The job that waits for the operation.
    #[inline]
    fn job(self) -> Option<u32> {
        match self {
            Part::Log { write, .. } | Part::Bypass(write) => Some(write.job),
            Part::Read { job, .. }
            | Part::Conventional { job, .. }
            | Part::Flush { job, .. }
            | Part::Record { of: RecordOf::Flush(job), .. } => Some(job),
            Part::Rewrite { .. }
            | Part::Page(_)
            | Part::Table
            | Part::Commit
            | Part::Move
            | Part::Record { .. } => None,
        }
    }
}

/// The jobs, the parts of them that are in flight, and the order in which those that share a block
/// are served.
#[derive(Debug, Default, SavedValue)]
pub(super) struct Requests {
    locks: ExtentLocks<u32>,
    /// Jobs that were granted their lock and are not begun.
    granted: VecDeque<u32>,
    jobs: Slab<Job>,
    parts: Slab<Part>,
}

impl Requests {
    /// Takes in a request; it has no lock yet.
    #[inline]
    pub fn add(&mut self, request: Request) -> u32 {
        self.jobs.add(Job::new(request))
    }

    /// Locks the blocks of a job, now or when those before it are done; true when now.
    #[must_use]
    pub fn lock(&mut self, job: u32, extent: Extent) -> bool {
        let is_granted = self.locks.lock(job, extent);
        if is_granted {
            self.granted.push_back(job);
        }
        is_granted
    }

    /// The next job that has its lock and is to be begun.
    #[inline]
    pub fn next_granted(&mut self) -> Option<u32> {
        self.granted.pop_front()
    }

    /// True when nothing is being served.
    pub fn are_done(&self) -> bool {
        self.jobs.is_empty() && self.parts.is_empty()
    }

    /// True when a job has its lock and is to be begun.
    #[inline]
    pub fn has_granted(&self) -> bool {
        !self.granted.is_empty()
    }

    /// Jobs that have their lock are to be begun again.
    pub fn grant_again(&mut self, jobs: &mut VecDeque<u32>) {
        self.granted.append(jobs);
    }

    #[inline]
    pub fn get(&self, job: u32) -> &Job {
        &self.jobs[job]
    }

    #[inline]
    pub fn get_mut(&mut self, job: u32) -> &mut Job {
        &mut self.jobs[job]
    }

    /// Forgets a job that is to be answered, and lets those go on that waited for its lock.
    #[inline]
    pub fn remove(&mut self, job: u32) -> Job {
        let granted = &mut self.granted;
        self.locks.unlock(job, |job| granted.push_back(job));
        self.jobs.take(job)
    }

    /// Keeps in mind what an operation about to be issued is for; returns its number.
    #[inline]
    pub fn issue(&mut self, part: Part) -> u32 {
        if let Some(job) = part.job() {
            self.jobs[job].outstanding += 1;
        }
        self.parts.add(part)
    }

    /// What the operation with a number, which has finished, was for.
    #[inline]
    pub fn finished(&mut self, index: u32) -> Part {
        self.parts.take(index)
    }

    /// Nothing more will be issued for a job; true when nothing is in flight either.
    #[must_use]
    #[inline]
    pub fn all_issued(&mut self, job: u32) -> bool {
        let entry = &mut self.jobs[job];
        entry.issued = true;
        entry.is_done()
    }

    /// An operation of a job has finished; true when it was the last.
    #[must_use]
    #[inline]
    pub fn part_done(&mut self, job: u32, result: Result<(), IoError>) -> bool {
        let entry = &mut self.jobs[job];
        entry.outstanding -= 1;
        entry.result = entry.result.and(result);
        entry.is_done()
    }
}
