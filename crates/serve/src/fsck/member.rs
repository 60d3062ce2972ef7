//! The blocks of a member, read from its file.

use imbrex_core::units::BLOCK_BYTES;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of a block.
pub(super) const BLOCK: usize = BLOCK_BYTES as usize;

/// A file or block device that a layer keeps its state on.
#[derive(Debug)]
pub struct Member {
    name: String,
    file: File,
    blocks: u64,
}

impl Member {
    /// Opens a member, for writing only when it is to be repaired.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn open(name: &str, path: &Path, for_repair: bool) -> io::Result<Member> {
        let mut file = OpenOptions::new().read(true).write(for_repair).open(path)?;
        // The end of a block device is found in the same way as that of a file.
        let bytes = io::Seek::seek(&mut file, io::SeekFrom::End(0))?;
        Ok(Member {
            name: name.to_owned(),
            file,
            blocks: bytes / BLOCK_BYTES,
        })
    }

    /// The node of the stack that it is.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Blocks that are there.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Reads `count` blocks; what lies past the end is an error.
    ///
    /// # Errors
    /// When the member ends before, or the system cannot read.
    pub fn read(&self, address: u64, count: u64, into: &mut Vec<u8>) -> io::Result<()> {
        let end = address.checked_add(count);
        if end.is_none_or(|end| end > self.blocks) {
            let last = self.blocks;
            let words = format!("block {address} lies past the end of the member, {last} blocks");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, words));
        }
        into.resize(count as usize * BLOCK, 0);
        self.file.read_exact_at(into, address * BLOCK_BYTES)
    }

    /// Writes one block and makes it durable.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn write(&self, address: u64, block: &[u8]) -> io::Result<()> {
        self.file.write_all_at(block, address * BLOCK_BYTES)?;
        self.file.sync_data()
    }
}
