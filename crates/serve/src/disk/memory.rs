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
        let error = |path: &Path, source| DiskError::Open {
            path: path.to_owned(),
            source,
        };
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
    match options
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(path)
    {
        Ok(file) => file.set_len(bytes),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::WallClock;
    use imbrex_core::buffer::{Buffers, ContentKind};
    use imbrex_core::disk::{Disk, DiskOp, Media};
    use imbrex_core::error::IoError;
    use imbrex_core::extent::Extent;
    use imbrex_core::operation::{Cause, Durability, Operation, RequestId};
    use imbrex_core::units::{BLOCK_BYTES, BlockCount, Instant};

    const BLOCKS: u64 = 4;

    struct Opened {
        disk: FileDisk,
        buffers: Buffers,
        _clock: WallClock,
    }

    fn open(memory: &Memory) -> Opened {
        let (clock, waker) = WallClock::alone().expect("an epoll instance");
        let geometry = Geometry::plain(BlockCount(BLOCKS), Media::SolidState);
        Opened {
            disk: memory.open(geometry, false, waker).expect("memory"),
            buffers: Buffers::new(ContentKind::Bytes),
            _clock: clock,
        }
    }

    impl Opened {
        /// But for a read the answer must be there at once: nothing waits for a medium.
        fn run(&mut self, operation: Operation, byte: u8) -> (Result<(), IoError>, u8) {
            let extent = match operation {
                Operation::Flush => Extent::EMPTY,
                _ => Extent::new(1, 1),
            };
            let buffer = self.buffers.allocate(extent.blocks.0);
            if let Some(bytes) = self.buffers.bytes_mut(buffer) {
                bytes.fill(byte);
            }
            let op = DiskOp {
                id: RequestId(1),
                operation,
                extent,
                buffer,
                cause: Cause::Host,
            };
            self.disk.submit(Instant::ZERO, op, &mut self.buffers);
            let mut done = self.disk.poll(Instant::ZERO, &mut self.buffers);
            while done.is_none() && operation == Operation::Read {
                std::thread::sleep(std::time::Duration::from_millis(1));
                done = self.disk.poll(Instant::ZERO, &mut self.buffers);
            }
            let result = done.expect("an answer at once").result;
            let first = self.buffers.bytes(buffer).and_then(|bytes| bytes.first());
            (result, first.copied().unwrap_or_default())
        }

        fn byte(&mut self) -> u8 {
            self.run(Operation::Read, 9).1
        }

        fn write(&mut self) {
            let durability = Durability::Durable;
            assert_eq!(self.run(Operation::Write { durability }, 7).0, Ok(()));
            assert_eq!(self.run(Operation::Flush, 0).0, Ok(()));
        }
    }

    #[test]
    fn anonymous_memory_starts_as_zeroes_and_other_memory_goes_on() {
        let image = crate::image::new_uuid().expect("random numbers");
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("ram.img");
        make(&file, BLOCKS * BLOCK_BYTES).expect("a file");
        let of = |survives| Memory::of_node(survives, image, "ram", file.clone());
        let anonymous = of(Survival::Nothing);
        let shared = of(Survival::Process);
        let dumped = of(Survival::Power);
        let Memory::Shared(path) = &shared else {
            panic!("{shared:?}");
        };
        for (memory, kept) in [(&anonymous, 0), (&shared, 7), (&dumped, 7)] {
            let mut disk = open(memory);
            assert_eq!(disk.byte(), 0, "{memory:?}");
            disk.write();
            assert_eq!(disk.byte(), 7, "{memory:?}");
            drop(disk);
            assert_eq!(open(memory).byte(), kept, "{memory:?}");
        }
        assert!(path.starts_with("/dev/shm") && path.exists());
        std::fs::remove_file(path).expect("the file of the test");
    }
}
