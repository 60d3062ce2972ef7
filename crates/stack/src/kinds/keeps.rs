//! What nodes keep, for whoever reads disks without them.

use imbrex_core::units::BlockCount;

/// What a node keeps on the nodes below, in which format, and where its blocks are. Whoever checks an
/// image reads it so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keeps {
    /// It is a disk.
    Disk,
    /// Nothing: its blocks are those of the node behind its last port.
    Nothing,
    /// Nothing: its blocks are a part of those.
    Part,
    /// Nothing: its nodes lie one after another.
    Spanned,
    /// Nothing: its nodes lie chunk by chunk, with so many blocks in each.
    Striped(BlockCount),
    /// Copies, which it forgets.
    Copies,
    /// A log and bands.
    Translation,
    /// A cache with its journal on flash, and marks on what it caches.
    Cache,
    /// Segments with their slots and their journal.
    Segments,
    /// S-blocks with their rings and their journal.
    SBlocks,
    /// Copies of all blocks on each member, which survive the loss of members.
    ArrayOfCopies,
    /// Blocks and their sum, on homes, a data disk and a parity disk.
    ParityArray,
    /// The log of a buffer in memory.
    BufferLog,
    /// What nobody else can read, with the reason.
    Unreadable(&'static str),
}

/// Nodes whose addresses lie one after another in those of the node above.
pub struct Windows<'a> {
    /// The names of the nodes.
    pub nodes: Vec<&'a str>,
    /// Which requests go to which of them.
    pub by: WindowsBy,
}

/// Which requests go to which window of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowsBy {
    /// Those to its addresses.
    Address,
    /// Those of the source with its number, at addresses of the window.
    Source,
    /// One after the other in turn, at addresses of the window.
    Turn,
}
