//! What a comparison of rows has found.

use crate::saved::SavedValue;

/// What a comparison of rows has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, SavedValue)]
pub struct Scrubbed {
    /// Blocks that were not what they must be, or could not be read.
    pub wrong: u64,
    /// Those of them that were written again.
    pub repaired: u64,
    /// Those of them that the layer writes elsewhere.
    pub to_move: u64,
    /// Rows of which no member has the block any more.
    pub unreadable: u64,
}

impl Scrubbed {
    /// Adds what was found elsewhere.
    pub fn add(&mut self, other: Scrubbed) {
        self.wrong += other.wrong;
        self.repaired += other.repaired;
        self.to_move += other.to_move;
        self.unreadable += other.unreadable;
    }
}
