//! The members of a persistent cache: one for all, or one for the log and one for the bands.

use super::member::Member;
use imbrex_core::durability::superblock::{FEATURE_HOME_APART, Superblock};
use imbrex_core::translation::records;

/// What a persistent cache lies on.
#[derive(Clone)]
pub(super) enum Disks {
    /// A disk for all.
    One(Member),
    /// Two nodes.
    Two {
        /// Of journal, tables and log.
        log: Member,
        /// Of the bands, and of the scratch band.
        home: Member,
    },
}

/// A kind of record whose data does not lie on the member of the journal.
#[derive(Clone, Copy)]
pub(super) struct Elsewhere<'a> {
    /// The kind.
    pub kind: u8,
    /// The member that holds the data.
    pub member: &'a Member,
}

impl Disks {
    /// The member of journal, tables and log.
    pub fn log(&self) -> &Member {
        match self {
            Disks::One(disk) => disk,
            Disks::Two { log, .. } => log,
        }
    }

    /// The member of the bands.
    pub fn home(&self) -> &Member {
        match self {
            Disks::One(disk) => disk,
            Disks::Two { home, .. } => home,
        }
    }

    /// True when these are two.
    pub fn is_two(&self) -> bool {
        matches!(self, Disks::Two { .. })
    }

    /// Which records speak of data that is not on the member of the journal.
    pub fn elsewhere(&self) -> Option<Elsewhere<'_>> {
        self.is_two().then(|| Elsewhere { kind: records::BYPASS, member: self.home() })
    }

    /// What is wrong when the superblock says of one that these are two, or of two that it is one.
    pub fn problem(&self, superblock: &Superblock) -> Option<&'static str> {
        let says_two = superblock.required_features & FEATURE_HOME_APART != 0;
        match (says_two, self.is_two()) {
            (true, false) => Some("it is of a translation whose bands are on another disk"),
            (false, true) => Some("it is of a translation whose bands are on the same disk"),
            _ => None,
        }
    }
}
