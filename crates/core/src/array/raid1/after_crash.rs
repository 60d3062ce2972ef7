//! A comparison of what was perhaps being written when the power went.

use alloc::collections::VecDeque;

/// A comparison under way.
#[derive(Debug)]
pub struct AfterCrash {
    /// Regions that are left, the one that is being compared first.
    pub regions: VecDeque<u64>,
    /// Rows of that region which are done.
    pub done: u64,
    pub is_comparing: bool,
    /// The members are being flushed behind it.
    pub is_flushing: bool,
}

impl AfterCrash {
    /// Compares these regions.
    pub fn new(regions: impl Iterator<Item = u64>) -> AfterCrash {
        let regions = regions.collect();
        AfterCrash { regions, done: 0, is_comparing: false, is_flushing: false }
    }
}
