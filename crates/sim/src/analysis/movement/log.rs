//! Model 1: every write goes to a log without end.

use super::head::Head;
use imbrex_drives::Direction;
use std::ops::Range;

/// Where the log has the newest copy of each block.
#[derive(Clone, Debug)]
pub struct Log {
    pub(super) head: Head,
    /// By rank: the number of the append plus one, 0 when there was none.
    appends: Vec<u64>,
    /// The first block of the log.
    start: u64,
    appended: u64,
}

impl Log {
    /// A log from `start` on for so many touched blocks.
    pub fn new(head: Head, touched_blocks: u64, start: u64) -> Log {
        Log { head, appends: vec![0; touched_blocks as usize], start, appended: 0 }
    }

    /// Visits the newest copy of each block.
    pub fn read(&mut self, first: u64, ranks: Range<u64>) {
        let mut run: Option<(u64, u64)> = None;
        for (rank, home) in ranks.zip(first..) {
            let block = match self.appends[rank as usize] {
                0 => home,
                append => self.start + (append - 1),
            };
            match &mut run {
                Some((first, blocks)) if *first + *blocks == block => *blocks += 1,
                _ => {
                    if let Some((first, blocks)) = run.replace((block, 1)) {
                        self.head.run(first, blocks, Direction::Read);
                    }
                }
            }
        }
        if let Some((first, blocks)) = run {
            self.head.run(first, blocks, Direction::Read);
        }
    }

    /// Appends each block.
    pub fn write(&mut self, ranks: Range<u64>) {
        let blocks = ranks.end - ranks.start;
        let first = self.start + self.appended;
        self.head.run(first, blocks, Direction::Write);
        for rank in ranks {
            self.appended += 1;
            self.appends[rank as usize] = self.appended;
        }
    }
}
