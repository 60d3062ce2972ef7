//! The files of an image and who may touch them.

use super::{ImageError, ImageNode};
use crate::file_kind::{Accepted, open_to_read};
use crate::lockable_file::LockableFile;
use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The file that makes a directory an image.
const DESCRIPTION_FILE: &str = "image";
/// The description under the name that it is written with. It is there only when all disks are
/// whole, and until each of them and then itself have been renamed.
const NEW_DESCRIPTION_FILE: &str = "image.new";
/// The file that made a directory an image in version 1.
const FILE_OF_VERSION_1: &str = "state";
/// There while a server uses the image, and after one that did not end in order.
const IN_USE_FILE: &str = "in-use";
/// What the file of a disk is called after the name of its node.
const NODE_SUFFIX: &str = ".img";
/// The same while an image is created.
const NEW_NODE_SUFFIX: &str = ".img.new";
/// A longer description is none: this is many times what the largest stack file takes.
const DESCRIPTION_BYTES_MAX: u64 = 8 << 20;
/// Images and what belongs to them are their owner's alone, like the socket.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

/// Bytes that the file system of a path has left for who owns the files of an image; none where it does not say.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// The directory of an image, locked against other processes for as long as it is open.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    file: LockableFile,
    is_read_only: bool,
}

impl Directory {
    /// The directory at `path`, made durably if it is not there.
    pub fn create(path: &Path) -> Result<Directory, ImageError> {
        let absolute = std::path::absolute(path).map_err(system("find", path))?;
        let missing = absolute.ancestors().take_while(|at| !at.exists()).count();
        create_private_folder(path).map_err(system("create", path))?;
        // The name of a directory is durable when the directory it is in is. The first one may have
        // been made by a creation that was cut short, so its parent is never left out.
        for parent in absolute.ancestors().skip(1).take(missing.max(1)) {
            File::open(parent)
                .and_then(|parent| parent.sync_all())
                .map_err(system("synchronise", parent))?;
        }
        Directory::lock(path, false)
    }

    /// The directory of an existing image, and the file that describes it. With `is_read_only` others
    /// may read it at the same time.
    pub fn open(path: &Path, is_read_only: bool) -> Result<(Directory, PathBuf), ImageError> {
        match description_in(path) {
            Some(file) => {
                let directory = Directory::lock(path, is_read_only)?;
                directory.check_files()?;
                Ok((directory, file))
            }
            None => Err(ImageError::Missing { dir: path.to_owned() }),
        }
    }

    fn lock(path: &Path, is_read_only: bool) -> Result<Directory, ImageError> {
        let file = File::open(path).map_err(system("open", path))?;
        let file = LockableFile::from(file);
        match file.lock(!is_read_only) {
            Ok(()) => Ok(Directory { path: path.to_owned(), file, is_read_only }),
            Err(Errno::WOULDBLOCK) => Err(ImageError::InUse { dir: path.to_owned() }),
            Err(errno) => Err(system("lock", path)(errno.into())),
        }
    }

    /// Refuses what stands where files are written later, before anything is done.
    fn check_files(&self) -> Result<(), ImageError> {
        let written = [IN_USE_FILE, NEW_DESCRIPTION_FILE].iter();
        for path in written.map(|name| self.path.join(name)) {
            if !self.is_read_only {
                check_replaceable(&path).map_err(system("write", &path))?;
            }
        }
        Ok(())
    }

    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True when the directory is an image, of whatever version.
    pub fn holds_image(&self) -> bool {
        description_in(&self.path).is_some()
    }

    /// The file of a disk: a replacement bears its number, so that no name ever means two disks.
    pub fn node_path(&self, node: &ImageNode) -> PathBuf {
        let ImageNode { name, replacement, .. } = node;
        self.path.join(match replacement {
            0 => format!("{name}{NODE_SUFFIX}"),
            number => format!("{name}.{number}{NODE_SUFFIX}"),
        })
    }

    pub fn new_node_path(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}{NEW_NODE_SUFFIX}"))
    }

    /// The description under the name that does not count yet.
    pub fn new_description_path(&self) -> PathBuf {
        self.path.join(NEW_DESCRIPTION_FILE)
    }

    /// Makes the names of the files durable.
    pub fn synchronise(&self) -> Result<(), ImageError> {
        self.file.sync_all().map_err(system("synchronise", &self.path))
    }

    /// Writes the description under the name that does not count yet, durably with the names of
    /// all files.
    pub fn write_new_description(&self, bytes: &[u8]) -> Result<(), ImageError> {
        let new = self.new_description_path();
        create_private_file(&new)
            .and_then(|mut file| {
                file.write_all(bytes)?;
                file.sync_all()
            })
            .and_then(|()| self.file.sync_all())
            .map_err(system("write", &new))
    }

    /// Gives the description its name, which makes the directory an image: a crash leaves it or
    /// nothing.
    pub fn rename_description(&self) -> Result<(), ImageError> {
        let new = self.new_description_path();
        let path = self.path.join(DESCRIPTION_FILE);
        name_file(&new, &path)?;
        self.file.sync_all().map_err(|source| {
            let _ = fs::remove_file(&path);
            system("write", &path)(source)
        })
    }

    /// Writes another description in the place of the one that is there: a crash leaves either.
    pub fn replace_description(&self, bytes: &[u8]) -> Result<(), ImageError> {
        self.write_new_description(bytes)?;
        let new = self.new_description_path();
        let path = self.path.join(DESCRIPTION_FILE);
        fs::rename(&new, &path).map_err(system("write", &path))?;
        self.synchronise()
    }

    /// Files of these disks that the description does not mean, and a description that did not get
    /// its name.
    pub fn leftovers(&self, nodes: &[ImageNode]) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(&self.path) else {
            return vec![];
        };
        let is_left = |name: &str| {
            let is_new = |node: &ImageNode| name == format!("{}{NEW_NODE_SUFFIX}", node.name);
            if name == NEW_DESCRIPTION_FILE || nodes.iter().any(is_new) {
                return true;
            }
            let Some((node, replacement)) = node_of_file(name) else {
                return false;
            };
            let node = nodes.iter().find(|described| described.name == node);
            node.is_some_and(|node| node.replacement != replacement)
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let left = names.filter(|name| is_left(name));
        left.map(|name| self.path.join(name)).collect()
    }

    pub fn remove_new_description(&self) {
        let _ = fs::remove_file(self.new_description_path());
    }

    pub fn is_marked_in_use(&self) -> bool {
        is_there(&self.path.join(IN_USE_FILE))
    }

    /// Errors are nobody's business here: a full file system can still be read.
    pub fn mark_in_use(&self) {
        if !self.is_read_only {
            let _ = create_private_file(&self.path.join(IN_USE_FILE));
        }
    }

    pub fn remove_mark(&self) {
        if !self.is_read_only {
            let _ = fs::remove_file(self.path.join(IN_USE_FILE));
        }
    }
}

/// The disk that a file belongs to, and the number of the replacement that it is; no other way to
/// write a number counts.
fn node_of_file(name: &str) -> Option<(&str, u16)> {
    let stem = name.strip_suffix(NODE_SUFFIX)?;
    let Some((node, number)) = stem.split_once('.') else {
        return Some((stem, 0));
    };
    let replacement: u16 = number.parse().ok()?;
    (replacement > 0 && replacement.to_string() == number).then_some((node, replacement))
}

/// Makes a folder that is its owner's alone, unless there is one; the folders it lies in are made as
/// usual.
///
/// # Errors
/// As the system says.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        result => result,
    }
}

/// Makes a file that is its owner's alone, empty, in the place of one that is there. Of a symbolic
/// link only the link goes: what it leads to is somebody else's.
///
/// # Errors
/// As the system says, and when something else than a file or a link is there.
pub(super) fn create_private_file(path: &Path) -> io::Result<File> {
    check_replaceable(path)?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    // Never opens what is there, so never follows a link that somebody makes now.
    options.write(true).create_new(true);
    options.mode(FILE_MODE).open(path)
}

/// Gives a file a name that nothing has yet.
///
/// # Errors
/// When something has the name, which stays as it is, and when the system refuses.
pub(super) fn name_file(from: &Path, to: &Path) -> Result<(), ImageError> {
    let taken = || ImageError::NameTaken { path: to.to_owned() };
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => Err(taken()),
        // The file system cannot do that in one step.
        Err(Errno::INVAL | Errno::NOSYS) if is_there(to) => Err(taken()),
        Err(Errno::INVAL | Errno::NOSYS) => fs::rename(from, to).map_err(system("create", to)),
        Err(errno) => Err(system("create", to)(errno.into())),
    }
}

/// Refuses what a file of the image cannot take the place of.
fn check_replaceable(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => Ok(()),
        Ok(found) => Accepted::File.check(found.file_type()),
        Err(_) => Ok(()),
    }
}

/// The bytes of a description file; what no description can be is cut off.
pub(super) fn read_description(path: &Path) -> Result<Vec<u8>, ImageError> {
    let mut bytes = Vec::new();
    open_to_read(path, Accepted::File)
        .and_then(|file| file.take(DESCRIPTION_BYTES_MAX).read_to_end(&mut bytes))
        .map_err(system("read", path))?;
    Ok(bytes)
}

/// True of anything at the path, a link that leads nowhere included.
pub(super) fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// The file that makes a directory an image, if there is one.
pub(super) fn description_in(dir: &Path) -> Option<PathBuf> {
    let files = [DESCRIPTION_FILE, FILE_OF_VERSION_1].map(|name| dir.join(name));
    files.into_iter().find(|file| file.exists())
}

/// Names what was attempted, and with which file, beside what the system said.
pub(super) fn system(action: &'static str, path: &Path) -> impl Fn(io::Error) -> ImageError {
    let path = path.to_owned();
    move |source| ImageError::System { action, path: path.clone(), source }
}
