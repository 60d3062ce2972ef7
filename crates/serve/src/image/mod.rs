//! The directory a stack is served from: one sparse file per disk, and what the layers left behind
//! at the last clean shutdown.
//!
//! An [`Image`] is closed: it can be looked at. [`Image::begin_use`] removes its clean mark from
//! the medium and gives an [`ImageInUse`], whose disks may be written to. Only
//! [`ImageInUse::close_cleanly`] sets the mark again, so a server that ends in any other way
//! leaves an image that will be refused.

mod format;

use imbrex_core::units::BlockCount;
use rustix::fs::FlockOperation;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub use format::FORMAT_VERSION;

/// The file that makes a directory an image.
const STATE_FILE: &str = "state";
/// It is written under this name first, and renamed.
const NEW_STATE_FILE: &str = "state.new";
/// What the file of a disk is called after the name of its node.
const NODE_SUFFIX: &str = ".img";

/// What an image was made for. It does not change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageDescription {
    /// The stack as TOML, resolved.
    pub stack_toml: String,
    /// The size of the device that is served.
    pub size_bytes: u64,
    /// The disks that live in the directory.
    pub nodes: Vec<ImageNode>,
}

/// A disk of an image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageNode {
    /// The name of the node in the stack, which names the file too.
    pub name: String,
    /// Its length.
    pub blocks: BlockCount,
}

/// Why an image cannot be made, used or closed.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// There is nothing to open.
    #[error("there is no image in {dir}", dir = dir.display())]
    Missing {
        /// The directory.
        dir: PathBuf,
    },
    /// There is one already.
    #[error("there is already an image in {dir}", dir = dir.display())]
    Exists {
        /// The directory.
        dir: PathBuf,
    },
    /// Another process has it.
    #[error("the image in {dir} is in use by another process", dir = dir.display())]
    InUse {
        /// The directory.
        dir: PathBuf,
    },
    /// It was made by a build with another format.
    #[error(
        "the image in {dir} has format version {found}, this build reads version {expected}",
        dir = dir.display(),
        expected = FORMAT_VERSION
    )]
    OtherVersion {
        /// The directory.
        dir: PathBuf,
        /// The version in the file.
        found: u32,
    },
    /// The server that used it last did not end in order.
    #[error(
        "the image in {dir} was not closed cleanly: what it holds may be stale, so it is refused",
        dir = dir.display()
    )]
    NotClosedCleanly {
        /// The directory.
        dir: PathBuf,
    },
    /// The state file is not what was written.
    #[error("{path} is damaged: {what}", path = path.display())]
    Damaged {
        /// The state file.
        path: PathBuf,
        /// What was found.
        what: &'static str,
    },
    /// A name that cannot be a file name.
    #[error("the node name `{name}` cannot name a file: use letters, digits, `-` and `_`")]
    NodeName {
        /// The name.
        name: String,
    },
    /// The system refused.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    System {
        /// What was attempted.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// An image that was closed cleanly and that nobody else can open.
#[derive(Debug)]
pub struct Image {
    directory: Directory,
    description: ImageDescription,
    states: Vec<Vec<u8>>,
}

/// An image whose disks may be written to.
#[derive(Debug)]
pub struct ImageInUse {
    directory: Directory,
    description: ImageDescription,
}

impl Image {
    /// Makes an image: the directory if it is not there, a sparse file per disk, and the state.
    ///
    /// # Errors
    /// When there is one already or the system refuses; then no file is left behind.
    pub fn create(dir: &Path, description: &ImageDescription) -> Result<(), ImageError> {
        for node in &description.nodes {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if node.name.is_empty() || !node.name.chars().all(plain) {
                let name = node.name.clone();
                return Err(ImageError::NodeName { name });
            }
        }
        fs::create_dir_all(dir).map_err(system("create", dir))?;
        let directory = Directory::lock(dir)?;
        if directory.state_path().exists() {
            let dir = dir.to_owned();
            return Err(ImageError::Exists { dir });
        }
        let mut created = Vec::new();
        let result = create_files(&directory, description, &mut created);
        if result.is_err() {
            for path in created {
                // The first error is the one to report.
                let _ = fs::remove_file(path);
            }
        }
        result
    }

    /// Opens an image and keeps other processes out of it.
    ///
    /// # Errors
    /// When there is none, another process has it, or it was not closed cleanly.
    pub fn open(dir: &Path) -> Result<Image, ImageError> {
        let missing = || ImageError::Missing {
            dir: dir.to_owned(),
        };
        if !dir.join(STATE_FILE).exists() {
            return Err(missing());
        }
        let directory = Directory::lock(dir)?;
        let path = directory.state_path();
        let bytes = fs::read(&path).map_err(system("read", &path))?;
        let state = match format::decode(&bytes) {
            Ok(state) => state,
            Err(format::FormatError::OtherVersion(found)) => {
                let dir = dir.to_owned();
                return Err(ImageError::OtherVersion { dir, found });
            }
            Err(format::FormatError::Damaged(what)) => {
                return Err(ImageError::Damaged { path, what });
            }
        };
        if !state.clean {
            let dir = dir.to_owned();
            return Err(ImageError::NotClosedCleanly { dir });
        }
        Ok(Image {
            directory,
            description: state.description,
            states: state.layers,
        })
    }

    /// What it was made for.
    pub fn description(&self) -> &ImageDescription {
        &self.description
    }

    /// What the layers left behind, as [`Stack::save`](imbrex_core::stack::Stack::save) returned
    /// it; empty when the image was never used.
    pub fn layer_states(&self) -> &[Vec<u8>] {
        &self.states
    }

    /// The file of a disk; `None` when the image has no such node.
    pub fn node_path(&self, name: &str) -> Option<PathBuf> {
        node_path(&self.directory, &self.description, name)
    }

    /// Removes the clean mark, durably. To be called when all else that can fail is done.
    ///
    /// # Errors
    /// When the system refuses; the image is then as it was.
    pub fn begin_use(self) -> Result<ImageInUse, ImageError> {
        self.directory
            .replace_state(&format::encode(&self.description, None))?;
        Ok(ImageInUse {
            directory: self.directory,
            description: self.description,
        })
    }
}

impl ImageInUse {
    /// The file of a disk; `None` when the image has no such node.
    pub fn node_path(&self, name: &str) -> Option<PathBuf> {
        node_path(&self.directory, &self.description, name)
    }

    /// Makes the files of all disks durable, then keeps the states of the layers beside them and
    /// sets the clean mark.
    ///
    /// # Errors
    /// When the system refuses; the image is then not clean.
    pub fn close_cleanly(self, layer_states: &[Vec<u8>]) -> Result<(), ImageError> {
        for node in &self.description.nodes {
            let path = self.directory.node_path(&node.name);
            OpenOptions::new()
                .write(true)
                .open(&path)
                .and_then(|file| file.sync_all())
                .map_err(system("synchronise", &path))?;
        }
        let bytes = format::encode(&self.description, Some(layer_states));
        self.directory.replace_state(&bytes)
    }
}

fn node_path(directory: &Directory, of: &ImageDescription, name: &str) -> Option<PathBuf> {
    let node = of.nodes.iter().find(|node| node.name == name)?;
    Some(directory.node_path(&node.name))
}

fn create_files(
    directory: &Directory,
    description: &ImageDescription,
    created: &mut Vec<PathBuf>,
) -> Result<(), ImageError> {
    for node in &description.nodes {
        let path = directory.node_path(&node.name);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(system("create", &path))?;
        created.push(path.clone());
        file.set_len(node.blocks.bytes())
            .and_then(|()| file.sync_all())
            .map_err(system("create", &path))?;
    }
    created.push(directory.state_path());
    directory.replace_state(&format::encode(description, Some(&[])))
}

/// The directory of an image, locked against other processes for as long as it is open.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
    file: File,
}

impl Directory {
    fn lock(path: &Path) -> Result<Directory, ImageError> {
        let file = File::open(path).map_err(system("open", path))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Directory {
                path: path.to_owned(),
                file,
            }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(ImageError::InUse {
                dir: path.to_owned(),
            }),
            Err(errno) => Err(system("lock", path)(errno.into())),
        }
    }

    fn state_path(&self) -> PathBuf {
        self.path.join(STATE_FILE)
    }

    fn node_path(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}{NODE_SUFFIX}"))
    }

    /// Replaces the state file as a whole: a crash leaves the old one or the new one.
    fn replace_state(&self, bytes: &[u8]) -> Result<(), ImageError> {
        let (new, path) = (self.path.join(NEW_STATE_FILE), self.state_path());
        File::create(&new)
            .and_then(|mut file| {
                file.write_all(bytes)?;
                file.sync_all()
            })
            .and_then(|()| fs::rename(&new, &path))
            .and_then(|()| self.file.sync_all())
            .map_err(|source| {
                let _ = fs::remove_file(&new);
                system("write", &path)(source)
            })
    }
}

fn system(action: &'static str, path: &Path) -> impl Fn(io::Error) -> ImageError {
    let path = path.to_owned();
    move |source| ImageError::System {
        action,
        path: path.clone(),
        source,
    }
}
