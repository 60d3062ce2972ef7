//! A request that waits for its turn.

use crate::extent::Extent;
use crate::saved::SavedValue;
use crate::units::{Duration, Instant, Lba};

/// A request that waits for its turn, as a policy sees it.
#[derive(Clone, Copy, Debug, SavedValue)]
pub struct Waiting {
    /// Its number at the layer.
    pub number: u32,
    /// Its blocks.
    pub extent: Extent,
    /// When it came.
    pub arrived: Instant,
    /// It only reads.
    pub is_read: bool,
    /// An older request must end first, because one of them changes a block of both.
    pub is_blocked: bool,
    /// It is part of a cleaning.
    pub is_cleaning: bool,
    /// Others go first for now.
    pub is_put_off: bool,
}

impl Waiting {
    /// Blocks between the head and its first one, in either direction.
    pub fn distance(&self, head: Lba) -> u64 {
        self.extent.start.0.abs_diff(head.0)
    }

    /// The head need not go back for it.
    pub fn is_ahead(&self, head: Lba) -> bool {
        self.extent.start >= head
    }
}

/// The requests that may go next, in the order in which they came, with their places among all.
pub fn ready(all: &[Waiting]) -> impl DoubleEndedIterator<Item = (usize, &Waiting)> + Clone {
    all.iter().enumerate().filter(|(_, it)| !it.is_blocked && !it.is_put_off)
}

/// Puts off those that clean, for as long as any other could go, and none that has waited for
/// so long.
pub fn put_off_cleaning(all: &mut [Waiting], wait: Duration, now: Instant) {
    let others_go = all.iter().any(|it| !it.is_blocked && !it.is_cleaning);
    for it in all {
        it.is_put_off = others_go && it.is_cleaning && now.since(it.arrived) < wait;
    }
}

/// The one with the lowest address of some, the oldest of several there.
pub fn lowest<'a>(some: impl Iterator<Item = (usize, &'a Waiting)>) -> Option<usize> {
    some.min_by_key(|(place, it)| (it.extent.start, *place)).map(|(place, _)| place)
}

/// The first of some from the head on, and the lowest where there is none: its place, and whether the head goes back.
pub fn next_or_lowest<'a>(
    some: impl Iterator<Item = (usize, &'a Waiting)> + Clone,
    head: Lba,
) -> Option<(usize, bool)> {
    let ahead = lowest(some.clone().filter(|(_, it)| it.is_ahead(head)));
    ahead.map(|place| (place, false)).or_else(|| lowest(some).map(|place| (place, true)))
}
