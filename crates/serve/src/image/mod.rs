//! The directory a stack is served from: one sparse file per disk, and what it was made for.
//!
//! What the layers know is on their members, so the directory itself has no state: it is described
//! when it is made, and again when a disk is replaced by a new one. A [`NewImage`] is one that is being made, under names of its own; it becomes
//! an image with [`NewImage::finish`], after its members were formatted, and leaves nothing behind
//! otherwise. What one leaves behind that was killed, the next one removes.

mod directory;
mod format;
mod labels;
mod leftovers;
mod replace;

use directory::{Directory, create_private_file, name_file, read_description, system};
use imbrex_core::lifecycle::Uuid;
use imbrex_core::units::BlockCount;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

pub use directory::{create_private_folder, free_bytes};
pub use format::FORMAT_VERSION;
pub use labels::{
    FoundLabel, LABEL_BYTES, LabelFiles, NoRoom, can_hold_label, find_label, make_room,
    needed_bytes, place_of,
};
pub use replace::{NewDisk, NewLabel};

/// What an image was made for. It changes when a disk is replaced, and in nothing else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageDescription {
    /// The name of the set that its members form.
    pub uuid: Uuid,
    /// The stack as TOML, resolved.
    pub stack_toml: String,
    /// The size of the device that is served.
    pub size_bytes: u64,
    /// The disks that live in the directory.
    pub nodes: Vec<ImageNode>,
    /// The members of the set.
    pub members: ImageMembers,
    /// The disks that have, or may get, a label; `None` of an image of version 3.
    pub disks: Option<ImageDisks>,
}

/// The disks of an image, those included that are not in the directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageDisks {
    /// The least number that no disk ever had.
    pub next: u16,
    /// The disks.
    pub list: Vec<ImageDisk>,
}

/// A disk of an image, as its label knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageDisk {
    /// Its number in the set, from 1. It is never used for another disk.
    pub number: u16,
    /// The name of its node.
    pub node: String,
    /// It has a label, and is refused without.
    pub is_labelled: bool,
}

impl ImageDisks {
    /// Disks without labels, numbered in their order.
    pub fn without_labels<'a>(nodes: impl Iterator<Item = &'a str>) -> ImageDisks {
        let disk = |(number, node): (u16, &str)| ImageDisk {
            number,
            node: node.to_owned(),
            is_labelled: false,
        };
        let list: Vec<ImageDisk> = (1..).zip(nodes).map(disk).collect();
        ImageDisks { next: list.len() as u16 + 1, list }
    }

    /// The disk of a node.
    pub fn of_node(&self, node: &str) -> Option<&ImageDisk> {
        self.list.iter().find(|disk| disk.node == node)
    }
}

impl ImageDescription {
    /// The length of the file of a disk.
    fn file_bytes(&self, node: &ImageNode) -> u64 {
        needed_bytes(node.blocks, self.is_labelled(&node.name))
    }

    /// What is wrong with the size of the device, where the stack makes another one.
    pub fn size_problem(&self, of_stack: BlockCount) -> Option<String> {
        let (said, made) = (self.size_bytes, of_stack.bytes());
        (said != made).then(|| {
            format!("it says that the device has {said} bytes; expected: the {made} of its stack")
        })
    }

    /// True when the image says that the disk of a node has a label.
    pub fn is_labelled(&self, node: &str) -> bool {
        let disk = self.disks.as_ref().and_then(|disks| disks.of_node(node));
        disk.is_some_and(|disk| disk.is_labelled)
    }
}

/// The members of an image: what lies behind each port of a layer that keeps state there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageMembers {
    /// The least number that no member ever had.
    pub next: u16,
    /// The members.
    pub list: Vec<ImageMember>,
}

/// A member of an image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageMember {
    /// Its number in the set, from 1.
    pub number: u16,
    /// The layer that keeps state on it.
    pub node: String,
    /// The port of the layer that leads to it.
    pub port: String,
}

/// A disk of an image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageNode {
    /// The name of the node in the stack, which names the file too.
    pub name: String,
    /// Its length.
    pub blocks: BlockCount,
    /// The number of the first member that a replacement brought; 0 of the disk that the image was
    /// made with. It is in the name of the file.
    pub replacement: u16,
}

/// Why an image cannot be made or used.
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
        "{path} has format version {found}; accepted: versions {oldest} and {newest}{hint}",
        path = path.display(),
        oldest = format::WITHOUT_LABELS,
        newest = FORMAT_VERSION,
        hint = match *found {
            1 => ": copy its data with the build that made it, and create it anew",
            2 => {
                ": the build of commit 66affc8 is the last one that serves version 2; copy the data with \
                 that one, and create the image anew"
            }
            _ => "",
        }
    )]
    OtherVersion {
        /// The description file.
        path: PathBuf,
        /// The version in the file.
        found: u32,
    },
    /// The description is not what was written.
    #[error("{path} is damaged: {what}", path = path.display())]
    Damaged {
        /// The description file.
        path: PathBuf,
        /// What was found.
        what: &'static str,
    },
    /// A file of the image would take the place of another.
    #[error(
        "cannot create {path}: there is such a file, and no image that it belongs to; delete it if nobody \
         needs it, or name another folder",
        path = path.display()
    )]
    InTheWay {
        /// The file.
        path: PathBuf,
    },
    /// A file has the name that a new disk would have at first.
    #[error(
        "cannot create {path}: there is such a file, and nothing says that this program has left it; delete it \
         if nobody needs it, or move it away",
        path = path.display()
    )]
    Stranger {
        /// The file.
        path: PathBuf,
    },
    /// A file of the image was to get a name that something else has got meanwhile.
    #[error(
        "cannot create {path}: something has got that name meanwhile; accepted: nothing there; move it away, and \
         try again",
        path = path.display()
    )]
    NameTaken {
        /// What is there.
        path: PathBuf,
    },
    /// A new member would have no number.
    #[error(
        "the image in {dir} has used up all 65534 numbers of members: copy its data to a new image",
        dir = dir.display()
    )]
    NumbersUsedUp {
        /// The directory.
        dir: PathBuf,
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

/// A name for a new set of members, random (RFC 9562, version 4).
///
/// # Errors
/// When the system has no random numbers.
pub fn new_uuid() -> io::Result<Uuid> {
    let mut bytes = [0; 16];
    let count = getrandom(&mut bytes, GetRandomFlags::empty())?;
    assert_eq!(count, bytes.len(), "a short request is answered whole");
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(Uuid(bytes))
}

/// A random number for the mark of the label of a new disk.
///
/// # Errors
/// When the system has no random numbers.
pub(super) fn new_random() -> io::Result<u32> {
    new_seed().map(|seed| seed as u32)
}

/// A seed for the marks of a start: no other one had it.
///
/// # Errors
/// When the system has no random numbers.
pub fn new_seed() -> io::Result<u64> {
    let mut bytes = [0; 8];
    let count = getrandom(&mut bytes, GetRandomFlags::empty())?;
    assert_eq!(count, bytes.len(), "a short request is answered whole");
    Ok(u64::from_le_bytes(bytes))
}

/// An image that is being made: its files are there, empty, under names of their own. Unless it is
/// finished they are removed again.
#[derive(Debug)]
pub struct NewImage {
    directory: Directory,
    description: ImageDescription,
    created: Vec<PathBuf>,
    is_finished: bool,
}

impl NewImage {
    /// Makes the directory if it is not there, and a sparse file per disk, all durably. What a
    /// creation that was killed has left in the directory is removed first, but for what is one of the
    /// files that are `in_use`.
    ///
    /// # Errors
    /// When there is an image already, a file is in the way, or the system refuses; then no file is
    /// left behind.
    pub fn begin(
        dir: &Path,
        description: ImageDescription,
        in_use: &[PathBuf],
    ) -> Result<NewImage, ImageError> {
        for node in &description.nodes {
            if !is_plain(&node.name) {
                let name = node.name.clone();
                return Err(ImageError::NodeName { name });
            }
        }
        let directory = Directory::create(dir)?;
        if directory.holds_image() {
            let dir = dir.to_owned();
            return Err(ImageError::Exists { dir });
        }
        directory.remove_killed_creation(&description, in_use)?;
        let mut image =
            NewImage { directory, description, created: Vec::new(), is_finished: false };
        image.create_files()?;
        Ok(image)
    }

    fn create_files(&mut self) -> Result<(), ImageError> {
        for node in &self.description.nodes {
            let path = self.directory.new_node_path(&node.name);
            let file = create_private_file(&path).map_err(system("create", &path))?;
            self.created.push(path.clone());
            let bytes = self.description.file_bytes(node);
            file.set_len(bytes).and_then(|()| file.sync_all()).map_err(system("create", &path))?;
        }
        self.directory.synchronise()
    }

    /// What all files take when every block of the disks was written.
    pub fn file_bytes(&self) -> u64 {
        self.description.nodes.iter().map(|node| self.description.file_bytes(node)).sum()
    }

    /// Takes the room of all files from the file system, so that a write to a disk does not find it full. No zeroes
    /// are written where the file system cannot set room aside: one that compresses would keep no room for them.
    ///
    /// # Errors
    /// When there is too little room, or the file system cannot set it aside; then no file is left behind.
    pub fn preallocate(&self) -> Result<(), ImageError> {
        for (node, path) in self.description.nodes.iter().zip(&self.created) {
            let bytes = self.description.file_bytes(node);
            set_aside(path, bytes).map_err(system("take the room of", path))?;
        }
        Ok(())
    }

    /// The file of a disk while the image is being made; `None` when the image has no such node.
    pub fn node_path(&self, name: &str) -> Option<PathBuf> {
        let node = self.description.nodes.iter().find(|node| node.name == name)?;
        Some(self.directory.new_node_path(&node.name))
    }

    /// Gives the files of the disks their names and describes the directory, durably, which makes
    /// it an image.
    ///
    /// # Errors
    /// When something has got a name of one meanwhile, or the system refuses; then no file is left behind.
    pub fn finish(mut self) -> Result<(), ImageError> {
        for path in &self.created {
            File::open(path)
                .and_then(|file| file.sync_all())
                .map_err(system("synchronise", path))?;
        }
        self.directory.write_new_description(&format::encode(&self.description))?;
        self.rename_files()?;
        self.directory.rename_description()?;
        self.is_finished = true;
        Ok(())
    }

    fn rename_files(&mut self) -> Result<(), ImageError> {
        for (node, created) in self.description.nodes.iter().zip(&mut self.created) {
            let path = self.directory.node_path(node);
            name_file(created, &path)?;
            *created = path;
        }
        self.directory.synchronise()
    }
}

fn set_aside(path: &Path, bytes: u64) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    loop {
        match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP) => {
                let words =
                    "the file system cannot set room aside; accepted here: no --preallocate";
                return Err(io::Error::new(ErrorKind::Unsupported, words));
            }
            result => return Ok(result?),
        }
    }
}

impl Drop for NewImage {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        for path in self.created.drain(..) {
            // What went wrong first is the error to report.
            let _ = fs::remove_file(path);
        }
        self.directory.remove_new_description();
    }
}

/// An image that nobody else can open, or that nobody else can open for writing.
#[derive(Debug)]
pub struct Image {
    directory: Directory,
    description: ImageDescription,
}

impl Image {
    /// Opens an image and keeps other processes out of it. Nothing is written.
    ///
    /// # Errors
    /// When there is none, another process has it, or its description cannot be read.
    pub fn open(dir: &Path) -> Result<Image, ImageError> {
        Image::open_for(dir, false)
    }

    /// Opens an image to read it, which others may do at the same time. Nothing is written, and
    /// nothing is marked.
    ///
    /// # Errors
    /// When there is none, another process may write to it, or its description cannot be read.
    pub fn open_read_only(dir: &Path) -> Result<Image, ImageError> {
        Image::open_for(dir, true)
    }

    fn open_for(dir: &Path, is_read_only: bool) -> Result<Image, ImageError> {
        let (directory, path) = Directory::open(dir, is_read_only)?;
        let bytes = read_description(&path)?;
        let description = format::decode(&bytes).map_err(|error| match error {
            format::FormatError::OtherVersion(found) => ImageError::OtherVersion { path, found },
            format::FormatError::Damaged(what) => ImageError::Damaged { path, what },
        })?;
        Ok(Image { directory, description })
    }

    /// True when a directory is an image, of whatever version.
    pub fn is_in(dir: &Path) -> bool {
        directory::description_in(dir).is_some()
    }

    /// The version of its format.
    pub fn version(&self) -> u32 {
        format::version_of(&self.description)
    }

    /// The directory.
    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// What it was made for.
    pub fn description(&self) -> &ImageDescription {
        &self.description
    }

    /// The file of a disk; `None` when the image has no such node.
    pub fn node_path(&self, name: &str) -> Option<PathBuf> {
        node_path(&self.directory, &self.description, name)
    }

    /// True when the last server that used it did not end in order.
    pub fn was_interrupted(&self) -> bool {
        self.directory.is_marked_in_use()
    }

    /// Marks the image as in use, unless it is only read. The mark is for the message at the next start alone, so no error
    /// stops a server; whether there is something to recover is written on the members.
    pub fn mark_in_use(&self) {
        self.directory.mark_in_use();
    }

    /// Removes the mark, when the layers have gone down in order; of an image that was only read it
    /// stays as it is.
    pub fn close(self) {
        self.directory.remove_mark();
    }
}

/// True of a name that can be part of a file's, and leads nowhere else.
fn is_plain(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.chars().all(is_plain)
}

fn node_path(directory: &Directory, of: &ImageDescription, name: &str) -> Option<PathBuf> {
    let node = of.nodes.iter().find(|node| node.name == name)?;
    Some(directory.node_path(node))
}
