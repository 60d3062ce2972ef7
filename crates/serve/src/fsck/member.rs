//! The blocks of a member, read from what holds it or from memory.

use super::kinds::ReadDevice;
use crate::storage::Storage;
use imbrex_core::crc;
use imbrex_core::units::BLOCK_BYTES;
use std::io;
use std::path::Path;
use std::rc::Rc;

/// Bytes of a block.
pub(super) const BLOCK: usize = BLOCK_BYTES as usize;

/// A file or block device that a layer keeps its state on, or what such a one holds.
#[derive(Clone)]
pub struct Member {
    name: String,
    source: Source,
    /// Where its first block lies in the source.
    first: u64,
    blocks: u64,
    /// Blocks of the disk that it holds.
    disk_blocks: u64,
}

/// Fills a buffer with the block at an address.
type ReadInto = dyn Fn(u64, &mut [u8]);
/// Fills a buffer with the block at an address.
pub type ReadBlock = Box<ReadInto>;

#[derive(Clone)]
enum Source {
    Storage(Rc<Storage>),
    Memory(Rc<ReadInto>),
    /// What layers below offer.
    Layers(ReadDevice),
}

impl Member {
    /// Opens a member, for writing only when it is to be repaired. Nobody may write to it while it
    /// is open, and nobody may read it while it is repaired.
    ///
    /// # Errors
    /// When the system refuses, and when another process uses the member.
    pub fn open(name: &str, path: &Path, for_repair: bool) -> io::Result<Member> {
        let storage = match for_repair {
            true => Storage::open_to_write(path)?,
            false => Storage::open(path)?,
        };
        storage.lock(for_repair)?;
        let bytes = storage.length()?;
        Ok(Member {
            name: name.to_owned(),
            source: Source::Storage(Rc::new(storage)),
            first: 0,
            blocks: bytes / BLOCK_BYTES,
            disk_blocks: bytes / BLOCK_BYTES,
        })
    }

    /// A member of `blocks` blocks in memory, which cannot be repaired.
    pub fn in_memory(name: &str, blocks: u64, read: ReadBlock) -> Member {
        Member {
            name: name.to_owned(),
            source: Source::Memory(Rc::from(read)),
            first: 0,
            blocks,
            disk_blocks: blocks,
        }
    }

    /// A member of `blocks` blocks that is read through layers, which cannot be repaired.
    pub(super) fn through(name: &str, blocks: u64, read: ReadDevice) -> Member {
        Member {
            name: name.to_owned(),
            source: Source::Layers(read),
            first: 0,
            blocks,
            disk_blocks: blocks,
        }
    }

    /// The part of the member that a slice is, under the name of the slice.
    #[must_use]
    pub fn window(&self, name: &str, start: u64, blocks: u64) -> Member {
        let blocks = blocks.min(self.blocks.saturating_sub(start));
        Member {
            name: name.to_owned(),
            source: self.source.clone(),
            first: self.first + start,
            blocks,
            disk_blocks: blocks,
        }
    }

    /// The member of a disk of `blocks` blocks. What a member holds behind its disk is not of the
    /// image; without this call the disk is taken to be as long as the member.
    #[must_use]
    pub fn of_disk(self, blocks: u64) -> Member {
        Member { disk_blocks: blocks, ..self }
    }

    /// The node of the stack that it is.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Blocks that are there.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Blocks of the disk that the member holds; places that are counted from the end go by it.
    pub fn disk_blocks(&self) -> u64 {
        self.disk_blocks
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
        let address = self.first + address;
        match &self.source {
            Source::Storage(storage) => storage.read_exact_at(into, address * BLOCK_BYTES),
            Source::Memory(read) => {
                let blocks = (address..).zip(into.chunks_exact_mut(BLOCK));
                blocks.for_each(|(at, block)| read(at, block));
                Ok(())
            }
            Source::Layers(read) => {
                let mut bytes = Vec::new();
                for (at, block) in (address..).zip(into.chunks_exact_mut(BLOCK)) {
                    read(at, &mut bytes).map_err(io::Error::other)?;
                    block.copy_from_slice(&bytes);
                }
                Ok(())
            }
        }
    }

    /// Reads a block and compares it with its checksum, where that is known.
    pub(super) fn read_checked(
        &self,
        address: u64,
        checksum: Option<u32>,
        into: &mut Vec<u8>,
    ) -> Result<(), String> {
        let read = self.read(address, 1, into);
        read.map_err(|error| error.to_string())?;
        match checksum {
            Some(checksum) if crc::crc32c(into) != checksum => {
                Err("its data does not match its checksum".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// The end of the hole of the file that a block is in; the block itself where it is in none.
    pub(super) fn hole_end(&self, address: u64) -> u64 {
        let Source::Storage(storage) = &self.source else {
            return address;
        };
        let Some(file) = storage.file() else {
            return address;
        };
        let from = rustix::fs::SeekFrom::Data((self.first + address) * BLOCK_BYTES);
        match rustix::fs::seek(file, from) {
            Ok(data) => (data / BLOCK_BYTES).saturating_sub(self.first).min(self.blocks),
            // There is no data up to the end.
            Err(rustix::io::Errno::NXIO) => self.blocks,
            Err(_) => address,
        }
    }

    /// Writes one block and makes it durable.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn write(&self, address: u64, block: &[u8]) -> io::Result<()> {
        match &self.source {
            Source::Storage(storage) => {
                storage.write_all_at(block, (self.first + address) * BLOCK_BYTES)?;
                storage.sync_data()
            }
            Source::Memory(_) | Source::Layers(_) => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
        }
    }
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "member {} of {} blocks", self.name, self.blocks)
    }
}
