//! What is being served, and what each operation below is for.

use crate::error::IoError;
use crate::map::Slab;
use crate::operation::{Request, Tag};
use crate::saved::SavedValue;
use crate::translation::segment::rewrite::Rewrite;
use alloc::vec::Vec;
use core::ops::Range;

/// What a job does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, SavedValue)]
pub enum Work {
    /// Nothing: it is free.
    #[default]
    None,
    /// It reads.
    Read,
    /// It rewrites segments, or zeroes whole ones.
    Write,
    /// It flushes.
    Flush,
    /// It writes home again what a slot was noted for.
    Redo,
}

/// A read, a batch of writes, or a flush.
#[derive(Debug, Default, SavedValue)]
pub struct Job {
    pub work: Work,
    /// What is answered together.
    pub requests: Vec<Request>,
    /// Operations of a read or a flush that are under way.
    pub left: u32,
    /// Operations on copies that are under way.
    pub copies_left: u32,
    /// The first thing that went wrong.
    pub failure: Option<IoError>,
    /// Segments that are still to be rewritten, that of the rewrite among them.
    pub rest: Range<u64>,
    pub rewrite: Rewrite,
}

/// The jobs by number. A job that is done is used again with its memory.
#[derive(Debug, Default, SavedValue)]
pub struct Jobs(Slab<Job>);

impl Jobs {
    /// A new job.
    pub fn add(&mut self, work: Work) -> u32 {
        let index = self.0.reuse_or(Job::default);
        let job = &mut self.0[index];
        job.work = work;
        job.requests.clear();
        job.left = 0;
        job.copies_left = 0;
        job.failure = None;
        job.rest = 0..0;
        index
    }

    pub fn get(&self, job: u32) -> &Job {
        &self.0[job]
    }

    pub fn get_mut(&mut self, job: u32) -> &mut Job {
        &mut self.0[job]
    }

    /// The job is done.
    pub fn remove(&mut self, job: u32) {
        self.0[job].work = Work::None;
        self.0.remove(job);
    }

    /// True when nothing is being served.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What an operation below is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// A part of a read or a flush.
    Part,
    /// A part of a read that is to be compared; the block is its number.
    Checked,
    /// The reading of a page of checksums; the block is its number.
    Page,
    /// A look for a copy of a block that a rewrite needs.
    Peek,
    /// The reading of such a block.
    Need,
    /// The reading of a block of 4 KiB of one, once more.
    Again,
    /// Something told to the store of copies.
    Copy,
    /// The writing or reading of a slot.
    Slot,
    /// The writing of a block home, or the zeroing of a run of a track.
    Home,
    /// The writing of pages of checksums home, or their zeroing.
    Pages,
    /// The zeroing of all tables of checksums of a new layout.
    Formatted,
    /// The flush behind all that was written home again.
    Redone,
}

const PURPOSES: [Purpose; 12] = [
    Purpose::Part,
    Purpose::Checked,
    Purpose::Page,
    Purpose::Peek,
    Purpose::Need,
    Purpose::Again,
    Purpose::Copy,
    Purpose::Slot,
    Purpose::Home,
    Purpose::Pages,
    Purpose::Formatted,
    Purpose::Redone,
];

/// An operation of a job, for a block of its segment where that matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aim {
    pub purpose: Purpose,
    pub job: u32,
    pub block: u64,
}

impl Aim {
    pub fn of(purpose: Purpose, job: u32) -> Aim {
        Aim { purpose, job, block: 0 }
    }

    /// Four bits say what for, 24 the block, 32 the job; a ledger's bits stay free.
    pub fn tag(self) -> Tag {
        Tag(u64::from(self.job) << 28 | self.block << 4 | self.purpose as u64)
    }

    pub fn from_tag(tag: Tag) -> Aim {
        Aim {
            purpose: PURPOSES[(tag.0 & 15) as usize],
            job: (tag.0 >> 28) as u32,
            block: tag.0 >> 4 & 0xff_ffff,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_says_what_it_is_for() {
        for purpose in PURPOSES {
            let aim = Aim { purpose, job: u32::MAX, block: 1023 };
            assert_eq!(Aim::from_tag(aim.tag()), aim);
            assert!(aim.tag().0 < 1 << 62);
        }
    }
}
