//! Model 1: every write goes to a log without end.

use super::head::{Head, Sweep};
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
        Log {
            head,
            appends: vec![0; touched_blocks as usize],
            start,
            appended: 0,
        }
    }

    /// Visits the newest copy of each block.
    pub fn read(&mut self, first: u64, ranks: Range<u64>) {
        let mut run: Option<Sweep> = None;
        for (rank, home) in ranks.zip(first..) {
            let block = match self.appends[rank as usize] {
                0 => home,
                append => self.start + (append - 1),
            };
            match &mut run {
                Some(run) if run.last + 1 == block => {
                    run.last = block;
                    run.visits += 1;
                }
                _ => {
                    if let Some(run) = run.replace(Sweep::run(block, 1)) {
                        self.head.sweep(&run);
                    }
                }
            }
        }
        if let Some(run) = run {
            self.head.sweep(&run);
        }
    }

    /// Appends each block.
    pub fn write(&mut self, ranks: Range<u64>) {
        let blocks = ranks.end - ranks.start;
        self.head
            .sweep(&Sweep::run(self.start + self.appended, blocks));
        for rank in ranks {
            self.appended += 1;
            self.appends[rank as usize] = self.appended;
        }
    }
}
