//! The files of an image and who may touch them.

use super::ImageError;
use rustix::fs::FlockOperation;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file that makes a directory an image.
const DESCRIPTION_FILE: &str = "image";
/// It is written under this name first, and renamed.
const NEW_DESCRIPTION_FILE: &str = "image.new";
/// The file that made a directory an image in version 1.
const FILE_OF_VERSION_1: &str = "state";
/// There while a server uses the image, and after one that did not end in order.
const IN_USE_FILE: &str = "in-use";
/// What the file of a disk is called after the name of its node.
const NODE_SUFFIX: &str = ".img";

/// The directory of an image, locked against other processes for as long as it is open.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    file: File,
    is_read_only: bool,
}

impl Directory {
    /// The directory at `path`, made durably if it is not there.
    pub fn create(path: &Path) -> Result<Directory, ImageError> {
        let absolute = std::path::absolute(path).map_err(system("find", path))?;
        let missing = absolute.ancestors().take_while(|at| !at.exists()).count();
        fs::create_dir_all(path).map_err(system("create", path))?;
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
            Some(file) => Ok((Directory::lock(path, is_read_only)?, file)),
            None => Err(ImageError::Missing {
                dir: path.to_owned(),
            }),
        }
    }

    fn lock(path: &Path, is_read_only: bool) -> Result<Directory, ImageError> {
        let file = File::open(path).map_err(system("open", path))?;
        let lock = match is_read_only {
            true => FlockOperation::NonBlockingLockShared,
            false => FlockOperation::NonBlockingLockExclusive,
        };
        match rustix::fs::flock(&file, lock) {
            Ok(()) => Ok(Directory {
                path: path.to_owned(),
                file,
                is_read_only,
            }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(ImageError::InUse {
                dir: path.to_owned(),
            }),
            Err(errno) => Err(system("lock", path)(errno.into())),
        }
    }

    /// True when the directory is an image, of whatever version.
    pub fn holds_image(&self) -> bool {
        description_in(&self.path).is_some()
    }

    pub fn node_path(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}{NODE_SUFFIX}"))
    }

    /// Makes the names of the files durable.
    pub fn synchronise(&self) -> Result<(), ImageError> {
        self.file
            .sync_all()
            .map_err(system("synchronise", &self.path))
    }

    /// Writes the description as a whole: a crash leaves it or nothing.
    pub fn describe(&self, bytes: &[u8]) -> Result<(), ImageError> {
        let new = self.path.join(NEW_DESCRIPTION_FILE);
        let path = self.path.join(DESCRIPTION_FILE);
        File::create(&new)
            .and_then(|mut file| {
                file.write_all(bytes)?;
                file.sync_all()
            })
            .and_then(|()| fs::rename(&new, &path))
            .and_then(|()| self.file.sync_all())
            .map_err(|source| {
                let _ = fs::remove_file(&new);
                let _ = fs::remove_file(&path);
                system("write", &path)(source)
            })
    }

    pub fn is_marked_in_use(&self) -> bool {
        self.path.join(IN_USE_FILE).exists()
    }

    /// Errors are nobody's business here: a full file system can still be read.
    pub fn mark_in_use(&self) {
        if !self.is_read_only {
            let _ = File::create(self.path.join(IN_USE_FILE));
        }
    }

    pub fn remove_mark(&self) {
        if !self.is_read_only {
            let _ = fs::remove_file(self.path.join(IN_USE_FILE));
        }
    }
}

/// The file that makes a directory an image, if there is one.
pub(super) fn description_in(dir: &Path) -> Option<PathBuf> {
    let files = [DESCRIPTION_FILE, FILE_OF_VERSION_1].map(|name| dir.join(name));
    files.into_iter().find(|file| file.exists())
}

/// Names what was attempted, and with which file, beside what the system said.
pub(super) fn system(action: &'static str, path: &Path) -> impl Fn(io::Error) -> ImageError {
    let path = path.to_owned();
    move |source| ImageError::System {
        action,
        path: path.clone(),
        source,
    }
}
