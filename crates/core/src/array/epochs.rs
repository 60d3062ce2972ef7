//! Which work of an array was begun before something else happened.

use crate::saved::SavedValue;

/// Work in flight, counted by the epoch in which it was begun. Two epochs have work at most.
#[derive(Debug, Default, SavedValue)]
pub(super) struct Epochs {
    /// Of the even and of the odd ones.
    in_flight: [u32; 2],
    is_odd: bool,
}

impl Epochs {
    /// Work begins. Returns what [`leave`](Self::leave) is to be told when it ends.
    pub fn enter(&mut self) -> bool {
        self.in_flight[usize::from(self.is_odd)] += 1;
        self.is_odd
    }

    /// Work ends that has begun in such an epoch.
    pub fn leave(&mut self, is_odd: bool) {
        self.in_flight[usize::from(is_odd)] -= 1;
    }

    /// The next epoch begins. Panics when the one before has work still.
    pub fn turn(&mut self) {
        assert!(self.is_drained(), "two epochs wait for their end");
        self.is_odd = !self.is_odd;
    }

    /// True when all work has ended that was begun before the last turn.
    pub fn is_drained(&self) -> bool {
        self.in_flight[usize::from(!self.is_odd)] == 0
    }
}
