//! How each kind of node is read, a file each. A node is read after those below it, through what
//! they offer.

pub(super) mod cache;
pub(super) mod disk;
pub(super) mod joined;
pub(super) mod memory_buffer;
pub(super) mod persistent_cache;
pub(super) mod raid1;
pub(super) mod raid4smr;
pub(super) mod read_cache;
pub(super) mod s_blocks;
pub(super) mod segments;
pub(super) mod slice;

use super::member::{BLOCK, Member};
use std::rc::Rc;

/// Reads one block.
pub(super) type ReadDevice = Rc<dyn Fn(u64, &mut Vec<u8>) -> Result<(), String>>;

/// A block of zeroes.
pub(super) fn zeroes(into: &mut Vec<u8>) {
    into.clear();
    into.resize(BLOCK, 0);
}

/// The blocks that a node offers to the node above, as a reader sees them.
#[derive(Clone)]
pub(super) struct Device {
    /// The disk that they lie on in the end, for findings.
    pub disk: String,
    /// How many there are.
    pub blocks: u64,
    /// Reads one of them.
    pub read: ReadDevice,
    /// The disk, where nothing is between.
    pub is_disk: Option<Member>,
}

impl Device {
    /// The device as a member that holds a journal.
    pub fn member(&self) -> Member {
        self.is_disk.clone().unwrap_or_else(|| {
            let name = format!("{}, through its layers", self.disk);
            Member::through(&name, self.blocks, Rc::clone(&self.read))
        })
    }
}
