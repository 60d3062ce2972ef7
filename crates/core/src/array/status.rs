//! What an array tells of its members and of its work, for those who ask for the status.

use alloc::vec::Vec;

/// Runs of unreadable blocks that a status lists.
const UNREADABLE_RUNS: usize = 8;

/// The first runs of blocks that come in their order, each with the block behind its last. No more than a status lists.
pub(super) fn first_runs(blocks: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for block in blocks {
        let is_full = runs.len() == UNREADABLE_RUNS;
        match runs.last_mut() {
            Some((_, end)) if *end == block => *end += 1,
            _ if is_full => break,
            _ => runs.push((block, block + 1)),
        }
    }
    runs
}

/// How an array is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ArrayStatus {
    /// Every block can be found, unless it is one of the unreadable ones.
    pub has_all: bool,
    /// Its members, by column.
    pub members: Vec<MemberStatus>,
    /// The ports of the spares that are left, the next one first.
    pub spares: Vec<u8>,
    /// The scrub that is under way.
    pub scrub: Option<WorkStatus>,
    /// Blocks that no member has any more.
    pub unreadable_blocks: u64,
    /// The first runs of them: the first block of each, in those of the array, and the block behind its last.
    pub unreadable: Vec<(u64, u64)>,
    /// Of an array with a data disk: slots of it that are free, and all.
    pub slots: Option<(u64, u64)>,
}

/// A member of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemberStatus {
    /// The port of the node that stands for it: its own, or that of a spare.
    pub port: u8,
    /// That node is lost.
    pub is_lost: bool,
    /// What it has.
    pub has: MemberHas,
    /// How far it has been given what it lacks, while somebody does so.
    pub work: Option<WorkStatus>,
}

/// What a member has of its blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberHas {
    /// All.
    All,
    /// Nothing that counts: it is lost, or an operation of it has failed.
    Nothing,
    /// Nothing: a new disk that waits for the command to rebuild it.
    NewDisk,
    /// Some: it is rebuilt.
    Some,
    /// All but what was written while it was away, which it is given.
    Older,
}

/// How far some work has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkStatus {
    /// Blocks that are done.
    pub done: u64,
    /// Blocks of all of it.
    pub total: u64,
    /// Blocks in a second, as it went in the last seconds; `None` before that is known.
    pub blocks_per_s: Option<u64>,
}
