//! Why a disk is refused by its label.

use super::compare::COUNT_BEFORE_START_MAX;
use super::{LabelError, Mark};
use crate::lifecycle::Uuid;
use core::fmt;

/// A disk that must not be used with the others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Its place among the disks of the stack.
    pub index: usize,
    /// Its number in the set.
    pub disk: u16,
    /// What is wrong with it.
    pub reason: Reason,
}

/// What is wrong with a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// It has no label, and the image says that it has one; what was found where it should be.
    NoLabel(LabelError),
    /// It is a disk of another set.
    Foreign(Uuid),
    /// It is another disk of the set.
    OtherDisk(u16),
    /// The other disks do not know of it.
    Unlisted {
        /// The mark on it.
        found: Mark,
    },
    /// It is an older copy of itself.
    Older {
        /// The newest mark on it.
        found: Mark,
        /// The mark at which it was last in.
        listed: Mark,
    },
    /// It went on without another disk, and that one without it.
    Apart {
        /// The mark on it.
        found: Mark,
        /// The number of the other disk.
        other: u16,
    },
    /// It was away while others went on, and none of those is here.
    Behind {
        /// The mark of the disks that are here.
        found: Mark,
        /// A mark that the set had come to without them.
        missed: Mark,
    },
    /// Another place has served it last, and may still do so.
    ServedElsewhere {
        /// That place.
        found: u64,
        /// This one.
        own: u64,
    },
    /// It says a count behind which there is no room for a start and its stop.
    CountUsedUp {
        /// The greatest count in its label.
        found: u32,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::NoLabel(error) => {
                write!(f, "it has no label ({error}); expected: the label of this disk")
            }
            Reason::Foreign(found) => write!(f, "it is a disk of image {found}"),
            Reason::OtherDisk(found) => write!(f, "it is disk {found} of this image"),
            Reason::Unlisted { .. } => f.write_str(
                "the other disks do not list it: it was replaced, or left out, and they went on \
                 without it",
            ),
            Reason::Older { found, listed } => write!(
                f,
                "it is an older copy of itself: its label has come to count {}; expected: count {}",
                found.count, listed.count
            ),
            Reason::Apart { found, other } => write!(
                f,
                "it and disk {other} went on without each other, it to count {} (random number \
                 {:#010x}); expected: one of the two alone",
                found.count, found.random
            ),
            Reason::Behind { found, missed } => write!(
                f,
                "it has come to count {}, and was away when others of this image went on to count \
                 {}; expected: one of those, too",
                found.count, missed.count
            ),
            Reason::ServedElsewhere { found, own } => write!(
                f,
                "another server had it last (its place is {found:016x}, this one {own:016x}), and nobody can \
                 lock it; accepted: that place, or --force when nothing serves it there any more"
            ),
            Reason::CountUsedUp { found } => write!(
                f,
                "its label has come to count {found}, and a start and its stop need two more; accepted: \
                 counts of at most {COUNT_BEFORE_START_MAX}"
            ),
        }
    }
}
