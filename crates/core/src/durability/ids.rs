//! The numbers by which a journal names its blocks and its flushes.

use crate::saved::SavedValue;

/// A place in the journal: the number of a journal block since the member was formatted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, SavedValue)]
pub struct Lsn(pub u64);

/// Names a flush that was asked for; later ones are greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, SavedValue)]
pub struct FlushTicket(pub u64);
