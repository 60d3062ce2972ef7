//! How the nodes of a stack are named.

use crate::saved::SavedValue;

/// Names a node of a stack.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, SavedValue)]
pub struct NodeId(pub(crate) u16);

/// Names a leaf of a stack; disks are numbered from 0 in the order they were added.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DiskId(pub u16);
