//! Where new disks come from: only whoever made the stack knows.

use imbrex_core::disk::Disk;
use imbrex_core::engine::NewLabel;
use imbrex_core::stack::NodeId;
use std::path::Path;

/// A new disk that is to take the place of a lost one.
pub struct NewDisk {
    /// The disk. Nothing that a layer would know is on it.
    pub disk: Box<dyn Disk>,
    /// The number of the first member on it; further ones count up. No member of the set ever had
    /// one of these numbers.
    pub first_member: u16,
}

/// Makes a new disk for a node, in the folder or at the path that the command names.
pub type BeginReplacement = Box<dyn FnMut(NodeId, Option<&Path>) -> Result<NewDisk, String>>;

/// Makes the disk of a node the one that belongs there.
pub type FinishReplacement = Box<dyn FnMut(NodeId) -> Result<Option<NewLabel>, String>>;

/// Makes new disks and writes down which of them have taken their place. A server calls `begin`
/// before the layers hear of the disk, and afterwards either `finish` or `abort`; neither when it
/// dies in between. Errors are words for whoever gave the command.
pub struct Replacer {
    /// Makes the disk.
    pub begin: BeginReplacement,
    /// The layers have durably taken the disk: from now on the device is made of it. Returns its label,
    /// if it has one.
    pub finish: FinishReplacement,
    /// The layers have refused the disk: it is removed again.
    pub abort: Box<dyn FnMut(NodeId)>,
}
