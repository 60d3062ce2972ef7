//! Who has which rows of an array, and who comes next.

use crate::extent::Extent;
use crate::map::ExtentLocks;
use crate::saved::SavedValue;
use alloc::collections::VecDeque;

/// Locks of rows and of lanes, first come, first served.
#[derive(Debug, Default, SavedValue)]
pub(super) struct RowLocks {
    rows: ExtentLocks<u32>,
    /// Tasks whose blocks must come down in the order in which they were begun, by lane.
    lanes: ExtentLocks<u32>,
    granted: VecDeque<u32>,
}

impl RowLocks {
    /// A task asks for rows to be its alone. False when it must wait.
    pub fn lock(&mut self, task: u32, rows: Extent) -> bool {
        self.rows.lock(task, rows)
    }

    /// A task asks for rows that nobody writes meanwhile. False when it must wait.
    pub fn lock_shared(&mut self, task: u32, rows: Extent) -> bool {
        self.rows.lock_shared(task, rows)
    }

    /// A task gives its rows to those who wait.
    pub fn unlock(&mut self, task: u32) {
        let granted = &mut self.granted;
        self.rows.unlock(task, |task| granted.push_back(task));
    }

    /// A task asks for a lane. False when it must wait.
    pub fn lock_lane(&mut self, task: u32, lane: u64) -> bool {
        self.lanes.lock(task, Extent::new(lane, 1))
    }

    /// A task gives its lane to the next one.
    pub fn unlock_lane(&mut self, task: u32) {
        let granted = &mut self.granted;
        self.lanes.unlock(task, |task| granted.push_back(task));
    }

    /// The next task that has its rows or its lane; one that has waited for both comes twice.
    pub fn next_granted(&mut self) -> Option<u32> {
        self.granted.pop_front()
    }

    /// True when there is such a task.
    pub fn has_granted(&self) -> bool {
        !self.granted.is_empty()
    }
}
