//! Files that this program has left in the directory of an image.
//!
//! A name says nothing: a user may have put a copy of a disk beside it, or a disk of the stack may be
//! a file that happens to be called like one of the directory. So a file goes only if its label says
//! that it is of this set and has a number that the image does not list, or if nothing was written
//! to it yet; and never one that the stack uses, or that somebody has locked.

use super::labels::LABEL_BYTES;
use super::{Image, format};
use crate::file_kind::{Accepted, open_to_read};
use crate::signals::say;
use imbrex_core::label::{Label, LabelCopy};
use imbrex_core::units::BLOCK_BYTES;
use rustix::fs::{FlockOperation, SeekFrom};
use rustix::io::Errno;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

impl Image {
    /// Removes what is left here of disks that came too late or were replaced, unless the image is only
    /// read, and says of each file that it is gone, or why it stays. `in_use` are the files and block
    /// devices of the stack.
    pub fn remove_leftovers(&self, in_use: &[PathBuf]) {
        if self.directory.is_read_only() {
            return;
        }
        let mut has_removed = false;
        for path in self.directory.leftovers(&self.description.nodes) {
            if is_one_of(&path, in_use) {
                continue;
            }
            let shown = path.display();
            if !self.is_left(&path, in_use) {
                say(&format!(
                    "{shown} is no disk of the image, and nothing says that this program has left it: it \
                     stays; delete it if nobody needs it"
                ));
                continue;
            }
            match fs::remove_file(&path) {
                Ok(()) => {
                    has_removed = true;
                    say(&format!(
                        "{shown} was removed: it was left of a disk that the image does not have"
                    ));
                }
                Err(error) => say(&format!("{shown} cannot be removed: {error}")),
            }
        }
        if has_removed {
            let _ = self.directory.synchronise();
        }
    }

    /// True of a file that this program has left, and nobody uses.
    pub(super) fn is_left(&self, path: &Path, in_use: &[PathBuf]) -> bool {
        let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
        if !is_file || is_one_of(path, in_use) {
            return false;
        }
        let Ok(file) = open_to_read(path, Accepted::File) else {
            return false;
        };
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return false;
        }
        let is_new = path.extension().is_some_and(|ending| ending == "new");
        let is_description = path == self.path().join("image.new");
        match is_description {
            true => is_description_file(&file),
            false => self.has_label_unlisted(&file) || is_new && is_hole(&file),
        }
    }

    /// The label at the end says that it is of this set, and the image does not list its number.
    fn has_label_unlisted(&self, file: &File) -> bool {
        let Some(disks) = &self.description.disks else {
            return false;
        };
        let bytes = file.metadata().map_or(0, |metadata| metadata.len());
        let Some(offered) = bytes.checked_sub(LABEL_BYTES) else {
            return false;
        };
        let blocks = offered / BLOCK_BYTES;
        LabelCopy::ALL.iter().any(|copy| {
            let mut block = vec![0; BLOCK_BYTES as usize];
            let at = copy.address(blocks) * BLOCK_BYTES;
            if file.read_exact_at(&mut block, at).is_err() {
                return false;
            }
            Label::unseal(&block, *copy, blocks).is_ok_and(|label| {
                let is_listed = disks.list.iter().any(|disk| disk.number == label.disk);
                // A number that was not given out yet is no number of this program.
                label.set == self.description.uuid && !is_listed && label.disk < disks.next
            })
        })
    }
}

/// True when nothing was ever written to a file.
fn is_hole(file: &File) -> bool {
    matches!(rustix::fs::seek(file, SeekFrom::Data(0)), Err(Errno::NXIO))
}

/// True of a description of an image, and of the beginning of one.
fn is_description_file(file: &File) -> bool {
    let mut start = [0; 8];
    let length = file.metadata().map_or(0, |found| found.len()).min(8) as usize;
    let start = &mut start[..length];
    file.read_exact_at(start, 0).is_ok() && format::may_be_cut(start)
}

/// True of a file that one of the paths leads to.
fn is_one_of(path: &Path, paths: &[PathBuf]) -> bool {
    let identity = |found: io::Result<Metadata>| found.ok().map(|it| (it.dev(), it.ino()));
    let Some(this) = identity(fs::metadata(path)) else {
        return false;
    };
    paths
        .iter()
        .any(|path| identity(fs::metadata(path)) == Some(this))
}
