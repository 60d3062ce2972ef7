//! By what an array of copies knows its own operations again, and what waits for its ledger.

/// What waits for the ledger: that regions are marked, that a member has all of its rows, and that the array
/// is up.
pub(super) const TOKEN_MARKS: u64 = 0;
pub(super) const TOKEN_WHOLE: u64 = 1;
pub(super) const TOKEN_OPENED: u64 = 2;

/// What an operation of the layer's own is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Word {
    /// The table of a region is read.
    Table(u64),
    /// Regions are cleared.
    Clearing,
    /// What was rebuilt becomes durable.
    Progress,
    /// All rows of a member become durable.
    Whole,
    /// What may differ after a crash is made the same.
    AfterCrash,
    /// A scrub.
    Scrub,
    /// Rows with a block that a read has found to be wrong.
    Repair,
    /// The array goes down.
    Close,
}

impl Word {
    const SHIFT: u32 = 56;

    /// As a number.
    pub fn number(self) -> u64 {
        let (kind, region) = match self {
            Word::Table(region) => (0, region),
            Word::Clearing => (1, 0),
            Word::Progress => (2, 0),
            Word::Whole => (3, 0),
            Word::AfterCrash => (4, 0),
            Word::Scrub => (5, 0),
            Word::Repair => (6, 0),
            Word::Close => (7, 0),
        };
        kind << Word::SHIFT | region
    }

    /// From a number.
    pub fn of(number: u64) -> Word {
        let region = number & ((1 << Word::SHIFT) - 1);
        match number >> Word::SHIFT {
            0 => Word::Table(region),
            1 => Word::Clearing,
            2 => Word::Progress,
            3 => Word::Whole,
            4 => Word::AfterCrash,
            5 => Word::Scrub,
            6 => Word::Repair,
            _ => Word::Close,
        }
    }
}
