//! Memory as a disk.

use super::file::{DirectIo, DiskError, FileDisk};
use crate::clock::Waker;
use imbrex_core::disk::{Geometry, Survival};
use imbrex_core::lifecycle::Uuid;
use rustix::fs::MemfdFlags;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where shared memory has names.
const SHARED: &str = "/dev/shm";
/// Contents are nobody else's business.
const FILE_MODE: u32 = 0o600;

/// Where the contents of a disk of memory are. A flush of such a disk waits for nothing: what has been
/// written is in memory, which is all that was promised.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Memory {
    /// Anonymous memory: zeroes at each start, gone with the process.
    Anonymous,
    /// A file in shared memory, made when it is not there: kept when the process dies and when it
    /// ends, gone when the machine starts anew. Nothing removes it.
    Shared(PathBuf),
    /// A file whose pages stay in memory as long as the system likes. Whoever opens it makes it
    /// durable at the end.
    Dumped(PathBuf),
}

impl Memory {
    /// The memory of a node of an image, in `file` when it is to survive a power cut.
    pub fn of_node(survives: Survival, image: Uuid, node: &str, file: PathBuf) -> Memory {
        match survives {
            Survival::Nothing => Memory::Anonymous,
            Survival::Process => {
                Memory::Shared(Path::new(SHARED).join(format!("imbrex-{image}-{node}")))
            }
            Survival::Power => Memory::Dumped(file),
        }
    }

    /// Opens the memory as a disk, as [`FileDisk::open`] does with a file; `is_read_only` as
    /// [`FileDisk::open_read_only`].
    ///
    /// # Errors
    /// As there, and when there is no such memory.
    pub fn open(
        &self,
        geometry: Geometry,
        is_read_only: bool,
        waker: Waker,
    ) -> Result<FileDisk, DiskError> {
        let bytes = geometry.blocks.bytes();
        let error = |path: &Path, source| DiskError::Open { path: path.to_owned(), source };
        let anonymous;
        let path = match self {
            Memory::Anonymous => {
                let name = Path::new("anonymous memory");
                anonymous = new_memory(bytes).map_err(|source| error(name, source))?;
                PathBuf::from(format!("/proc/self/fd/{}", anonymous.as_raw_fd()))
            }
            Memory::Shared(path) => {
                make(path, bytes).map_err(|source| error(path, source))?;
                path.clone()
            }
            Memory::Dumped(path) => path.clone(),
        };
        let file = match is_read_only {
            true => FileDisk::open_read_only(&path, geometry, DirectIo::Off, waker),
            false => FileDisk::open(&path, geometry, DirectIo::Off, waker),
        };
        Ok(file?.of_memory(*self == Memory::Anonymous))
    }
}

fn new_memory(bytes: u64) -> io::Result<File> {
    let file = File::from(rustix::fs::memfd_create("imbrex", MemfdFlags::CLOEXEC)?);
    file.set_len(bytes)?;
    Ok(file)
}

/// Makes a file of so many bytes unless it is there. One of another length is not touched.
fn make(path: &Path, bytes: u64) -> io::Result<()> {
    let mut options = OpenOptions::new();
    match options.write(true).create_new(true).mode(FILE_MODE).open(path) {
        Ok(file) => file.set_len(bytes),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}
