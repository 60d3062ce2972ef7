//! What a comparison of rows has found.

use crate::error::IoError;
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

/// The end of an operation that the layer has issued for work of its own.
#[derive(Clone, Copy, Debug, SavedValue)]
pub struct Ended {
    /// The word that the layer chose.
    pub word: u64,
    /// What happened.
    pub result: Result<(), IoError>,
    /// What was found, where rows were compared.
    pub found: Scrubbed,
}

impl Ended {
    /// The end of something that has compared nothing.
    pub fn of(word: u64, result: Result<(), IoError>) -> Ended {
        Ended { word, result, found: Scrubbed::default() }
    }
}
