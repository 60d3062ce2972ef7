//! Images that get labels after they were made.

use super::directory::system;
use super::{Image, ImageDisks, ImageError, format};
use crate::storage::Storage;
use imbrex_core::crc;
use imbrex_core::durability::block::MAGIC;
use imbrex_core::error::IoError;
use imbrex_core::label::{LABEL_BLOCKS, Label, LabelCopy, LabelStore};
use imbrex_core::lifecycle::Uuid;
use imbrex_core::units::{BLOCK_BYTES, BlockCount};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes of both copies of a label, behind a disk.
pub const LABEL_BYTES: u64 = LABEL_BLOCKS * BLOCK_BYTES;
/// What tells machines apart: machine-id(5), or else the name of the host.
const MACHINE_FILES: [&str; 2] = ["/etc/machine-id", "/proc/sys/kernel/hostname"];
/// Where the name of the set lies in a sealed block.
const SET_AT: usize = 16;

/// Why a disk cannot get a label.
#[derive(Debug, thiserror::Error)]
pub enum NoRoom {
    /// It is a block device that ends with the disk.
    #[error("it ends with the disk, and a label needs 8 KiB behind it")]
    Full,
    /// Something lies there.
    #[error("the 8 KiB behind the disk, where a label would lie, are not zero")]
    Used,
    /// The system refused.
    #[error("{0}")]
    System(#[from] io::Error),
}

/// Looks whether a file or block device that offers `blocks` can get a label of a set: a file can be
/// made longer, and what is there must be zero, or what a cut has left of such a label.
///
/// # Errors
/// The reason, if it cannot.
pub fn can_hold_label(path: &Path, blocks: BlockCount, set: Uuid) -> Result<(), NoRoom> {
    let storage = Storage::open(path)?;
    let end = storage.length()?;
    let start = blocks.bytes();
    if end < start + LABEL_BYTES && !can_grow(&storage)? {
        return Err(NoRoom::Full);
    }
    let there = end.saturating_sub(start).min(LABEL_BYTES) as usize;
    let mut bytes = vec![0; there];
    storage.read_exact_at(&mut bytes, start)?;
    let is_own = |block: &[u8]| {
        block.starts_with(&MAGIC.to_le_bytes()) && block[SET_AT..].starts_with(&set.0)
    };
    let is_free = |block: &[u8]| block.iter().all(|byte| *byte == 0);
    match bytes
        .chunks(BLOCK_BYTES as usize)
        .all(|block| is_free(block) || block.len() as u64 == BLOCK_BYTES && is_own(block))
    {
        true => Ok(()),
        false => Err(NoRoom::Used),
    }
}

/// True of a file here; what else holds disks has its length.
fn can_grow(storage: &Storage) -> io::Result<bool> {
    let metadata = storage.file().map(File::metadata).transpose()?;
    Ok(metadata.is_some_and(|metadata| metadata.is_file()))
}

/// Writes both copies of the label of a new disk.
pub(super) fn write_label(storage: &Storage, label: &Label, blocks: BlockCount) -> io::Result<()> {
    for copy in LabelCopy::ALL {
        let block = label.seal(copy, blocks.0).expect("a label without entries");
        let at = copy.address(blocks.0) * BLOCK_BYTES;
        storage.write_all_at(&block, at)?;
    }
    Ok(())
}

/// The copies of the label behind `blocks` blocks of what holds a disk that are whole.
pub(super) fn labels_behind(storage: &Storage, blocks: BlockCount) -> Vec<Label> {
    let copies = LabelCopy::ALL.iter().filter_map(|copy| {
        let mut block = vec![0; BLOCK_BYTES as usize];
        let at = copy.address(blocks.0) * BLOCK_BYTES;
        storage.read_exact_at(&mut block, at).ok()?;
        Label::unseal(&block, *copy, blocks.0).ok()
    });
    copies.collect()
}

/// A label that says whose a file or block device is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundLabel {
    /// The image.
    pub image: Uuid,
    /// The number of the disk in it.
    pub disk: u16,
    /// The block in which the label begins.
    pub block: u64,
}

/// The label of a file or block device: at its end, or behind `blocks` blocks.
///
/// # Errors
/// When it cannot be opened.
pub fn find_label(path: &Path, blocks: BlockCount) -> io::Result<Option<FoundLabel>> {
    let storage = Storage::open(path)?;
    let end = storage.length()?.saturating_sub(LABEL_BYTES);
    let places = [BlockCount::from_bytes_floor(end), blocks];
    let found = places.into_iter().find_map(|blocks| {
        let label = labels_behind(&storage, blocks).into_iter().next()?;
        Some(FoundLabel { image: label.set, disk: label.disk, block: blocks.0 })
    });
    Ok(found)
}

/// Makes room for a label behind a disk of `blocks`: a file that ends before is made longer.
///
/// # Errors
/// When the system refuses.
pub fn make_room(path: &Path, blocks: BlockCount) -> Result<(), ImageError> {
    let lengthened = Storage::open_to_write(path).and_then(|storage| {
        let needed = blocks.bytes() + LABEL_BYTES;
        if let Some(file) = storage.file()
            && can_grow(&storage)?
            && storage.length()? < needed
        {
            file.set_len(needed)?;
            file.sync_all()?;
        }
        Ok(())
    });
    lengthened.map_err(system("make room for a label in", path))
}

/// The number of the place that a folder is, for labels of disks that nobody can lock: the folder on this
/// machine, not a copy of it and not the same path elsewhere. Never 0.
///
/// # Errors
/// When the folder cannot be looked at.
pub fn place_of(folder: &Path) -> io::Result<u64> {
    let read = |path: &&str| std::fs::read(path).ok().filter(|bytes| !bytes.is_empty());
    let mut bytes = MACHINE_FILES.iter().find_map(read).unwrap_or_default();
    bytes.extend(std::fs::metadata(folder)?.ino().to_le_bytes());
    let high = crc::crc32c(&bytes);
    bytes.reverse();
    let low = crc::crc32c(&bytes);
    Ok((u64::from(high) << 32 | u64::from(low)).max(1))
}

/// What the file or block device of a disk that offers `blocks` must hold.
pub fn needed_bytes(blocks: BlockCount, is_labelled: bool) -> u64 {
    blocks.bytes() + if is_labelled { LABEL_BYTES } else { 0 }
}

/// Files and block devices of which the labels are only read, by the places of their disks: `None` of one
/// that is not there.
pub struct LabelFiles(pub Vec<Option<(Storage, BlockCount)>>);

impl LabelStore for LabelFiles {
    fn is_absent(&self, disk: usize) -> bool {
        self.0[disk].is_none()
    }

    fn blocks(&self, disk: usize) -> u64 {
        self.0[disk].as_ref().map_or(0, |(_, blocks)| blocks.0)
    }

    fn read(&mut self, disk: usize, block: u64) -> Result<Vec<u8>, IoError> {
        let Some((storage, _)) = &self.0[disk] else {
            return Err(IoError::Lost);
        };
        let mut bytes = vec![0; BLOCK_BYTES as usize];
        let read = storage.read_exact_at(&mut bytes, block * BLOCK_BYTES);
        read.map(|()| bytes).map_err(|_| IoError::Medium)
    }

    fn write(&mut self, _disk: usize, _block: u64, _bytes: &[u8]) -> Result<(), IoError> {
        Err(IoError::NotPermitted)
    }

    fn flush(&mut self, _disk: usize) -> Result<(), IoError> {
        Err(IoError::NotPermitted)
    }
}

impl Image {
    /// Writes down which disks have labels, and whether that is news. They must be durable there.
    ///
    /// # Errors
    /// When the system refuses. The image says the old or the new then.
    pub fn describe_labels(&mut self, disks: ImageDisks) -> Result<bool, ImageError> {
        if self.description.disks.as_ref() == Some(&disks) {
            return Ok(false);
        }
        let mut description = self.description.clone();
        description.disks = Some(disks);
        self.directory.replace_description(&format::encode(&description))?;
        self.description = description;
        Ok(true)
    }
}
