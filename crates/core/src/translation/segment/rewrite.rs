//! One rewrite of a segment: which blocks it reads and writes, and how far it has come.

use super::settings::RewriteReach;
use crate::buffer::BufferSlice;
use crate::checksums::NOTHING;
use crate::saved::SavedValue;
use alloc::vec::Vec;
use core::ops::Range;

/// Marks the blocks that a rewrite writes, in `written`, which is as long as `dirty`.
///
/// A block is written when it is dirty, or when it holds data and one of the `kappa - 1` blocks before
/// it in shingle order is written, so that it is destroyed. The whole segment is every block that is
/// dirty or holds data.
pub fn written_blocks(
    dirty: &[bool],
    holds: impl Fn(usize) -> bool,
    kappa: u64,
    reach: RewriteReach,
    written: &mut Vec<bool>,
) {
    written.clear();
    // How many of the blocks to come the last written one destroys.
    let mut destroyed = 0;
    for (block, is_dirty) in dirty.iter().enumerate() {
        let is_hit = destroyed > 0 || reach == RewriteReach::Whole;
        let is_written = *is_dirty || is_hit && holds(block);
        destroyed = match is_written {
            true => kappa - 1,
            false => u64::saturating_sub(destroyed, 1),
        };
        written.push(is_written);
    }
}

/// How far a rewrite has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, SavedValue)]
pub(super) enum Stage {
    /// It has not begun, or it is done.
    #[default]
    Idle,
    /// It reads what it does not have.
    Reading,
    /// It waits for a slot of the journal, or for room for its records.
    Waiting,
    /// It writes to its slot.
    Journaling,
    /// It waits until its slot and its records are durable.
    Flushing,
    /// It writes home.
    Writing,
    /// All is home; operations on copies are under way.
    Ending,
}

/// A rewrite of a segment, or the zeroing of several whole ones.
#[derive(Debug, Default, SavedValue)]
pub(super) struct Rewrite {
    pub stage: Stage,
    /// The segment.
    pub segment: u64,
    /// Segments that are zeroed whole from that one on; 0 of a rewrite.
    pub zeroed: u64,
    /// By block, in shingle order.
    pub dirty: Vec<bool>,
    pub written: Vec<bool>,
    /// By block: it is read from the disk.
    pub from_disk: Vec<bool>,
    /// By block of 4 KiB: a request has it.
    pub covered: Vec<bool>,
    /// The whole segment.
    pub buffer: BufferSlice,
    /// Its slot of the journal.
    pub slot: Option<u32>,
    /// Journal blocks that are kept for its records.
    pub reserved: u64,
    /// Operations that it waits for.
    pub left: u32,
    /// The block that is written home, or the track of those that are zeroed.
    pub at: u64,
    /// How often that write was tried.
    pub tries: u32,
    pub sums: RewriteSums,
}

/// What a rewrite knows of the checksums of its segment, where they are kept.
#[derive(Debug, Default, SavedValue)]
pub(super) struct RewriteSums {
    /// The words of the table, by block of 4 KiB. Those of `pages` alone mean something.
    pub words: Vec<u32>,
    /// The pages that it changes.
    pub pages: Range<u64>,
    /// By block of 4 KiB: it could not be read.
    pub unreadable: Vec<bool>,
    /// What was not right was read once more.
    pub is_read_again: bool,
    /// Something of that could be read: the disk is there, and only blocks of it are bad.
    pub is_disk_there: bool,
    /// The pages are on their way home, for so many times now.
    pub is_writing: bool,
    pub tries: u32,
    /// All blocks are home.
    pub is_data_home: bool,
}

impl RewriteSums {
    /// Forgets all but its memory.
    fn begin(&mut self, parts: usize) {
        self.words.clear();
        self.words.resize(parts, NOTHING);
        self.pages = 0..0;
        self.unreadable.clear();
        self.unreadable.resize(parts, false);
        self.is_read_again = false;
        self.is_disk_there = false;
        self.is_writing = false;
        self.tries = 0;
        self.is_data_home = false;
    }
}

impl Rewrite {
    /// Forgets all but its memory.
    pub fn begin(&mut self, segment: u64, blocks: usize, parts: usize) {
        self.segment = segment;
        self.zeroed = 0;
        self.dirty.clear();
        self.dirty.resize(blocks, false);
        self.written.clear();
        self.from_disk.clear();
        self.from_disk.resize(blocks, false);
        self.covered.clear();
        self.covered.resize(parts, false);
        self.slot = None;
        self.reserved = 0;
        self.left = 0;
        self.at = 0;
        self.tries = 0;
        self.sums.begin(parts);
    }

    /// The next block to be written home from `at` on.
    pub fn next_written(&self, at: u64) -> Option<u64> {
        let rest = self.written.get(at as usize..)?;
        let next = rest.iter().position(|written| *written)?;
        Some(at + next as u64)
    }

    /// The blocks from the first written one to the last.
    pub fn span(&self) -> Range<u64> {
        let first = self.written.iter().position(|written| *written);
        let last = self.written.iter().rposition(|written| *written);
        let (Some(first), Some(last)) = (first, last) else {
            return 0..0;
        };
        first as u64..last as u64 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(dirty: &[u8], empty: &[usize], kappa: u64, reach: RewriteReach) -> Vec<usize> {
        let dirty: Vec<bool> = dirty.iter().map(|bit| *bit == 1).collect();
        let mut written = Vec::new();
        let holds = |block: usize| !empty.contains(&block);
        written_blocks(&dirty, holds, kappa, reach, &mut written);
        (0..written.len()).filter(|block| written[*block]).collect()
    }

    #[test]
    fn a_cascade_goes_on_while_there_is_data_to_destroy() {
        use RewriteReach::Cascade;
        let dirty = [0, 1, 0, 0, 0, 0];
        assert_eq!(written(&dirty, &[], 1, Cascade), [1]);
        assert_eq!(written(&dirty, &[], 2, Cascade), [1, 2, 3, 4, 5]);
        // The writer passes over one empty track, not over two.
        assert_eq!(written(&dirty, &[2], 2, Cascade), [1]);
        assert_eq!(written(&dirty, &[2], 3, Cascade), [1, 3, 4, 5]);
        assert_eq!(written(&dirty, &[2, 3], 3, Cascade), [1]);
        assert_eq!(written(&[0, 1, 0, 0, 0, 1], &[2, 3], 3, Cascade), [1, 5]);
    }

    #[test]
    fn the_whole_segment_is_what_holds_data() {
        use RewriteReach::Whole;
        assert_eq!(written(&[0, 0, 1, 0], &[], 1, Whole), [0, 1, 2, 3]);
        assert_eq!(written(&[0, 0, 1, 0], &[1, 2], 3, Whole), [0, 2, 3]);
    }
}
