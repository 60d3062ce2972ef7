//! Files that this program has left in the directory of an image.
//!
//! A name says nothing: a user may have put a copy of a disk beside it, or a disk of the stack may be
//! a file that happens to be called like one of the directory. So a file goes only if its label says
//! that it is of this set and has a number that the image does not list, or if nothing was written
//! to it yet; and never one that the stack uses, or that somebody has locked.
//!
//! Where there is no image yet, a creation that was killed may have left something. Its label is the
//! first thing that it writes to a file, and says that nobody was served from there yet.

use super::directory::{Directory, is_there, read_description, system};
use super::labels::LABEL_BYTES;
use super::{Image, ImageDescription, ImageError, ImageNode, format, is_plain};
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

/// The count that a creation gives to labels. Every start that writes moves it on.
const COUNT_OF_CREATION: u32 = 1;

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
        let Some(file) = open_unused(path, in_use) else {
            return false;
        };
        let is_new = path.extension().is_some_and(|ending| ending == "new");
        match path == self.directory.new_description_path() {
            true => is_description_file(&file),
            false => self.has_label_unlisted(&file) || is_new && is_hole(&file),
        }
    }

    /// The label at the end says that it is of this set, and the image does not list its number.
    fn has_label_unlisted(&self, file: &File) -> bool {
        let Some(disks) = &self.description.disks else {
            return false;
        };
        labels_of(file).iter().any(|label| {
            let is_listed = disks.list.iter().any(|disk| disk.number == label.disk);
            // A number that was not given out yet is no number of this program.
            label.set == self.description.uuid && !is_listed && label.disk < disks.next
        })
    }
}

impl Directory {
    /// Removes what a creation that was killed has left here and the creation of `description` would
    /// meet, and says so. `in_use` are the files and block devices of the stack.
    ///
    /// # Errors
    /// When a file is in the way that nothing says to be left of a creation; nothing is removed then.
    pub fn remove_killed_creation(
        &self,
        description: &ImageDescription,
        in_use: &[PathBuf],
    ) -> Result<(), ImageError> {
        let new = self.new_description_path();
        let is_there_new = is_there(&new);
        let mut killed = None;
        if is_there_new {
            if !open_unused(&new, in_use).is_some_and(|file| is_description_file(&file)) {
                return Err(ImageError::InTheWay { path: new });
            }
            killed = format::decode(&read_description(&new)?).ok();
        }
        let mut leftovers = Vec::new();
        // Its disks may be others than those that are to be made, and have their names already.
        if let Some(killed) = &killed {
            for node in killed.nodes.iter().filter(|node| is_plain(&node.name)) {
                let (path, unnamed) = (self.node_path(node), self.new_node_path(&node.name));
                let is_left = is_named_disk(&path, node, killed, in_use);
                leftovers.extend(is_left.then_some(path));
                leftovers.extend(is_unnamed_disk(&unnamed, in_use).then_some(unnamed));
            }
        }
        for node in &description.nodes {
            let (path, unnamed) = (self.node_path(node), self.new_node_path(&node.name));
            if is_there(&path) && !leftovers.contains(&path) {
                return Err(ImageError::InTheWay { path });
            }
            if !is_there(&unnamed) || leftovers.contains(&unnamed) {
                continue;
            }
            if !is_unnamed_disk(&unnamed, in_use) {
                return Err(ImageError::Stranger { path: unnamed });
            }
            leftovers.push(unnamed);
        }
        // Last, because it explains the others.
        leftovers.extend(is_there_new.then_some(new));
        for path in leftovers {
            fs::remove_file(&path).map_err(system("remove", &path))?;
            let shown = path.display();
            say(&format!(
                "{shown} was removed: a creation that was killed has left it"
            ));
        }
        Ok(())
    }
}

/// True of a disk of a killed creation that has not got its name: nothing was written to it, or nobody
/// was served from it.
fn is_unnamed_disk(path: &Path, in_use: &[PathBuf]) -> bool {
    open_unused(path, in_use).is_some_and(|file| is_hole(&file) || is_unserved(&labels_of(&file)))
}

/// True of a disk that has got its name already: its label is the one that the description of the killed
/// creation means.
fn is_named_disk(
    path: &Path,
    node: &ImageNode,
    killed: &ImageDescription,
    in_use: &[PathBuf],
) -> bool {
    let disks = killed.disks.as_ref();
    let Some(disk) = disks.and_then(|disks| disks.of_node(&node.name)) else {
        return false;
    };
    open_unused(path, in_use).is_some_and(|file| {
        let labels = labels_of(&file);
        let is_it = |label: &Label| label.set == killed.uuid && label.disk == disk.number;
        is_unserved(&labels) && labels.iter().all(is_it)
    })
}

/// True of the labels of a disk that nobody was served from.
fn is_unserved(labels: &[Label]) -> bool {
    let is_of_creation = |label: &Label| label.mark.count <= COUNT_OF_CREATION;
    !labels.is_empty() && labels.iter().all(is_of_creation)
}

/// The regular file at a path that the stack does not use and nobody has locked. Nobody else locks it
/// while it is open.
fn open_unused(path: &Path, in_use: &[PathBuf]) -> Option<File> {
    let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    if !is_file || is_one_of(path, in_use) {
        return None;
    }
    let file = open_to_read(path, Accepted::File).ok()?;
    let locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
    locked.ok().map(|()| file)
}

/// The copies of the label at the end of a file that are whole.
fn labels_of(file: &File) -> Vec<Label> {
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    let Some(offered) = bytes.checked_sub(LABEL_BYTES) else {
        return vec![];
    };
    let blocks = offered / BLOCK_BYTES;
    let copies = LabelCopy::ALL.iter().filter_map(|copy| {
        let mut block = vec![0; BLOCK_BYTES as usize];
        let at = copy.address(blocks) * BLOCK_BYTES;
        file.read_exact_at(&mut block, at).ok()?;
        Label::unseal(&block, *copy, blocks).ok()
    });
    copies.collect()
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
