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
use super::labels::{LABEL_BYTES, labels_behind};
use super::{Image, ImageDescription, ImageError, ImageNode, format, is_plain};
use crate::file_kind::{Accepted, open_to_read};
use crate::signals::say;
use crate::storage::Storage;
use imbrex_core::label::Label;
use imbrex_core::units::BlockCount;
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The count that a creation alone gives to labels. Every start that writes moves it on, an image that goes
/// over begins behind it, and a disk that takes the place of another one before.
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
            let Some(left) = self.left(&path, in_use) else {
                say(&format!(
                    "{shown} is no disk of the image, and nothing says that this program has left it: it \
                     stays; delete it if nobody needs it"
                ));
                continue;
            };
            match left.remove() {
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

    /// A file that this program has left, and nobody uses.
    pub(super) fn left(&self, path: &Path, in_use: &[PathBuf]) -> Option<Left> {
        let is_new = path.extension().is_some_and(|ending| ending == "new");
        let is_description = path == self.directory.new_description_path();
        Left::at(path, in_use, |file| match is_description {
            true => is_description_file(file),
            false => self.has_label_unlisted(file) || is_new && is_hole(file),
        })
    }

    /// The label at the end says that it is of this set, and the image does not list its number.
    fn has_label_unlisted(&self, storage: &Storage) -> bool {
        let Some(disks) = &self.description.disks else {
            return false;
        };
        labels_of(storage).iter().any(|label| {
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
        let mut left_new = None;
        let mut killed = None;
        if is_there(&new) {
            let Some(left) = Left::at(&new, in_use, is_description_file) else {
                return Err(ImageError::InTheWay { path: new });
            };
            left_new = Some(left);
            killed = format::decode(&read_description(&new)?).ok();
        }
        let mut leftovers: Vec<Left> = Vec::new();
        // Its disks may be others than those that are to be made, and have their names already.
        if let Some(killed) = &killed {
            for node in killed.nodes.iter().filter(|node| is_plain(&node.name)) {
                let (path, unnamed) = (self.node_path(node), self.new_node_path(&node.name));
                leftovers.extend(named_disk(&path, node, killed, in_use));
                leftovers.extend(unnamed_disk(&unnamed, in_use));
            }
        }
        for node in &description.nodes {
            let (path, unnamed) = (self.node_path(node), self.new_node_path(&node.name));
            let is_known = |path: &Path| leftovers.iter().any(|left| left.path == path);
            if is_there(&path) && !is_known(&path) {
                return Err(ImageError::InTheWay { path });
            }
            if !is_there(&unnamed) || is_known(&unnamed) {
                continue;
            }
            let Some(left) = unnamed_disk(&unnamed, in_use) else {
                return Err(ImageError::Stranger { path: unnamed });
            };
            leftovers.push(left);
        }
        // Last, because it explains the others.
        for left in leftovers.into_iter().chain(left_new) {
            let path = left.path.clone();
            left.remove().map_err(system("remove", &path))?;
            let shown = path.display();
            say(&format!("{shown} was removed: a creation that was killed has left it"));
        }
        Ok(())
    }
}

/// A file that this program has left.
#[derive(Debug)]
pub(super) struct Left {
    path: PathBuf,
    /// Locked: nobody else uses it until it is gone.
    storage: Storage,
}

impl Left {
    /// The regular file at a path that the stack does not use, nobody has locked, and of which that is
    /// true.
    fn at(path: &Path, in_use: &[PathBuf], is_left: impl Fn(&Storage) -> bool) -> Option<Left> {
        let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
        if !is_file || is_one_of(path, in_use) {
            return None;
        }
        let storage = Storage::File(open_to_read(path, Accepted::File).ok()?.into());
        storage.lock(true).ok()?;
        let path = path.to_owned();
        is_left(&storage).then_some(Left { path, storage })
    }

    /// Removes it.
    pub(super) fn remove(self) -> io::Result<()> {
        let removed = fs::remove_file(&self.path);
        drop(self.storage);
        removed
    }
}

/// A disk of a killed creation that has not got its name: nothing was written to it, or nobody was served
/// from it.
fn unnamed_disk(path: &Path, in_use: &[PathBuf]) -> Option<Left> {
    Left::at(path, in_use, |found| is_hole(found) || is_unserved(&labels_of(found)))
}

/// A disk that has got its name already: its label is the one that the description of the killed creation
/// means.
fn named_disk(
    path: &Path,
    node: &ImageNode,
    killed: &ImageDescription,
    in_use: &[PathBuf],
) -> Option<Left> {
    let disks = killed.disks.as_ref();
    let disk = disks.and_then(|disks| disks.of_node(&node.name))?;
    Left::at(path, in_use, |found| {
        let labels = labels_of(found);
        let is_it = |label: &Label| label.set == killed.uuid && label.disk == disk.number;
        is_unserved(&labels) && labels.iter().all(is_it)
    })
}

/// True of the labels of a disk that nobody was served from.
fn is_unserved(labels: &[Label]) -> bool {
    let is_of_creation = |label: &Label| label.mark.count == COUNT_OF_CREATION;
    !labels.is_empty() && labels.iter().all(is_of_creation)
}

/// The copies of the label at the end of a file that are whole.
fn labels_of(storage: &Storage) -> Vec<Label> {
    match storage.length().unwrap_or(0).checked_sub(LABEL_BYTES) {
        Some(offered) => labels_behind(storage, BlockCount::from_bytes_floor(offered)),
        None => vec![],
    }
}

/// True when nothing was ever written to a file.
fn is_hole(storage: &Storage) -> bool {
    let found = storage.file().map(|file| rustix::fs::seek(file, SeekFrom::Data(0)));
    matches!(found, Some(Err(Errno::NXIO)))
}

/// True of a description of an image, and of the beginning of one.
fn is_description_file(storage: &Storage) -> bool {
    let mut start = [0; 8];
    let length = storage.length().unwrap_or(0).min(8) as usize;
    let start = &mut start[..length];
    storage.read_exact_at(start, 0).is_ok() && format::may_be_cut(start)
}

/// True of a file that one of the paths leads to.
fn is_one_of(path: &Path, paths: &[PathBuf]) -> bool {
    let identity = |found: io::Result<Metadata>| found.ok().map(|it| (it.dev(), it.ino()));
    let Some(this) = identity(fs::metadata(path)) else {
        return false;
    };
    paths.iter().any(|path| identity(fs::metadata(path)) == Some(this))
}
