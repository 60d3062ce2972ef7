//! Where a checkpoint stands.

use super::checkpoint_pages::Pages;
use super::ids::Lsn;
use super::superblock::Superblock;
use crate::saved::SavedValue;

/// Why a checkpoint is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) enum Occasion {
    /// The journal takes records when it is done.
    Begin,
    /// To make room in the ring.
    Running,
    /// To bring a new copy up, with every record before this place.
    Admission(Lsn),
    /// The last thing that is written.
    Close,
}

/// What is on its way, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) enum Step {
    Strays,
    StraysFlush,
    Pages,
    PagesFlush,
    FirstCopies,
    FirstFlush,
    SecondCopies,
    SecondFlush,
}

/// A checkpoint on its way.
#[derive(Debug, SavedValue)]
pub(super) struct Checkpoint {
    /// What the superblock will say.
    pub superblock: Superblock,
    pub occasion: Occasion,
    pub pages: Pages,
    pub step: Step,
    pub outstanding: u32,
}
