//! A file or a block device as a disk.

use super::bounce::{Bounce, Spare};
use super::gathered::{Gathered, GatheredRead};
use super::large_writes::{LargeWrite, LargeWrites, Portion, is_large};
use super::open_files::OpenFiles;
use super::watch::Watch;
use super::workers::{Task, Workers, read_at, write_at, zero_anyhow, zero_at};
use crate::clock::Waker;
use crate::file_kind::{self, Accepted};
use crate::image::needed_bytes;
use crate::lockable_file::LockableFile;
use imbrex_core::buffer::{BufferSlice, Buffers};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Operation, RequestId};
use imbrex_core::units::{BLOCK_BYTES, Instant};
use rustix::fs::OFlags;
use rustix::io::{Errno, IoSliceMut, ReadWriteFlags};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// `f_type` of the file systems that live in memory (statfs(2)).
const MEMORY_FILE_SYSTEMS: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// Why a file cannot serve as a disk.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// It cannot be opened or measured.
    #[error("cannot open {path} as a disk: {source}", path = path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another server has it.
    #[error("{path} is in use by another process", path = path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// It is smaller than the disk it should hold.
    #[error("{path} holds {bytes} bytes, the disk needs {needed}", path = path.display())]
    TooShort {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
        /// The length of the disk.
        needed: u64,
    },
    /// It is at another server, which lets nobody write it.
    #[error("{path} can only be read; accepted: an export that can be written", path = path.display())]
    ReadOnlyExport {
        /// Its address.
        path: PathBuf,
    },
    /// Direct I/O was asked for, and there is none.
    #[error(
        "{path} cannot be opened with O_DIRECT: its file system has no direct I/O",
        path = path.display()
    )]
    NotDirect {
        /// The file.
        path: PathBuf,
    },
}

/// Whether operations go round the page cache (`O_DIRECT`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DirectIo {
    /// Where the file system can.
    Auto,
    /// Always; a file system that cannot is an error.
    On,
    /// Never.
    Off,
}

/// What may be done with a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    ReadWrite,
    ReadOnly,
}

enum Key {
    Read {
        id: RequestId,
        buffer: BufferSlice,
        /// Bytes at the start of the buffer that are already there.
        filled: usize,
    },
    Write {
        id: RequestId,
        durable: bool,
    },
    Synchronise,
}

/// A file or a block device as a disk.
///
/// With the page cache, reads of cached data and writes happen on the thread of the engine: small writes
/// at once, large ones in portions when the disk is polled, so that one may take several instants. Reads
/// that would wait for the medium go to threads. The reads of a round are made
/// together when the disk is polled: those that lie close to each other by one call. Behind what such
/// a call did not bring, because of an error or for what is not in memory, another one begins; the
/// reads of one that brought nothing are made one by one. To threads goes too what changes a block
/// device: one that hangs must not hold up the others. With direct I/O reads and writes all go
/// to threads. Every flush is an `fdatasync` on a thread, unless nothing was written since the
/// last one; one at a time answers all flushes and durable writes that came before it began.
/// After one has failed nobody knows what the medium holds: from then on every write and flush
/// fails, and reads go on. A disk that has gone, or a file that was cut, is lost: from then on
/// everything ends with [`IoError::Lost`]. Of memory ([`Memory`](super::Memory)) a flush waits
/// for nothing.
pub struct FileDisk {
    geometry: Geometry,
    watch: Watch,
    file: Arc<LockableFile>,
    direct: bool,
    workers: Workers<Key>,
    /// Reads of this round.
    gathered: Gathered,
    large_writes: LargeWrites,
    done: VecDeque<DiskCompletion>,
    /// Written to since the last synchronisation began.
    dirty: bool,
    failed: bool,
    synchronising: bool,
    /// Answered by the synchronisation that is running.
    covered: Vec<RequestId>,
    /// Reads and writes that threads carry out.
    on_threads: Vec<RequestId>,
    /// The nodes above have lost the disk: nobody waits for what threads still do.
    is_abandoned: bool,
    /// To be answered by the next one.
    waiting: Vec<RequestId>,
    /// What is written is as durable as it is to be.
    is_memory: bool,
    /// On a medium, so that a read may have to wait; memory file systems know no read that would not.
    may_block: bool,
    /// A block device. Where it hangs a write waits for it, even one into the page cache.
    is_device: bool,
    spare: Spare,
}

impl FileDisk {
    /// Opens an existing file or block device as a disk of the given geometry. `waker` ends the
    /// wait of the loop when a thread has finished. The file is locked (`flock`) against other
    /// servers. Nothing is written to it.
    ///
    /// # Errors
    /// When it cannot be opened for reading and writing, is locked, is too short, or has no direct
    /// I/O where that is asked for.
    pub fn open(
        path: &Path,
        geometry: Geometry,
        direct: DirectIo,
        waker: Waker,
    ) -> Result<FileDisk, DiskError> {
        FileDisk::open_for(Access::ReadWrite, path, geometry, direct, waker)
    }

    /// Opens a disk that is only read: the file needs no permission to write, and others may read it
    /// at the same time. A write to it fails.
    ///
    /// # Errors
    /// When it cannot be opened for reading, is locked by somebody who writes, is too short, or has
    /// no direct I/O where that is asked for.
    pub fn open_read_only(
        path: &Path,
        geometry: Geometry,
        direct: DirectIo,
        waker: Waker,
    ) -> Result<FileDisk, DiskError> {
        FileDisk::open_for(Access::ReadOnly, path, geometry, direct, waker)
    }

    fn open_for(
        access: Access,
        path: &Path,
        geometry: Geometry,
        direct: DirectIo,
        waker: Waker,
    ) -> Result<FileDisk, DiskError> {
        let error = |source: io::Error| DiskError::Open { path: path.to_owned(), source };
        let (file, direct) = open_file(path, direct, access)?;
        let file = LockableFile::from(file);
        match file.lock(access == Access::ReadWrite) {
            Err(Errno::WOULDBLOCK) => {
                let path = path.to_owned();
                return Err(DiskError::InUse { path });
            }
            result => result.map_err(|errno| error(errno.into()))?,
        }
        // The length in the metadata of a block device is zero; its end is not.
        let bytes = (&*file).seek(SeekFrom::End(0)).map_err(error)?;
        let needed = geometry.blocks.bytes();
        if bytes < needed {
            return Err(DiskError::TooShort { path: path.to_owned(), bytes, needed });
        }
        let file_system = rustix::fs::fstatfs(&file).map_err(|errno| error(errno.into()))?;
        // The node of a device lies on a file system in memory; its blocks do not.
        let is_device = !file.metadata().map_err(error)?.is_file();
        let file = Arc::new(file);
        let watch = Watch::new(path, &file, needed).map_err(error)?;
        Ok(FileDisk {
            geometry,
            watch,
            workers: Workers::new(Arc::clone(&file), direct, waker),
            file,
            direct,
            gathered: Gathered::default(),
            large_writes: LargeWrites::default(),
            done: VecDeque::new(),
            dirty: true,
            failed: false,
            synchronising: false,
            covered: Vec::new(),
            on_threads: Vec::new(),
            is_abandoned: false,
            waiting: Vec::new(),
            is_memory: false,
            may_block: is_device || !MEMORY_FILE_SYSTEMS.contains(&(file_system.f_type as i64)),
            is_device,
            spare: Spare::default(),
        })
    }

    /// The same disk, which holds its label behind what it offers.
    ///
    /// # Errors
    /// When it is too short for that.
    pub fn with_label(mut self, path: &Path) -> Result<FileDisk, DiskError> {
        let needed = needed_bytes(self.geometry.blocks, true);
        let end = (&**self.file).seek(SeekFrom::End(0));
        let bytes = end.map_err(|source| DiskError::Open { path: path.to_owned(), source })?;
        if bytes < needed {
            return Err(DiskError::TooShort { path: path.to_owned(), bytes, needed });
        }
        self.watch.needs(needed);
        Ok(self)
    }

    /// The same disk, which says the name of its node when it has something to say.
    #[must_use]
    pub fn of_node(self, node: &str) -> FileDisk {
        self.watch.set_node(node);
        self
    }

    /// The same disk, whose file is one of `files`: whoever serves looks after them.
    #[must_use]
    pub fn listed_in(self, files: &OpenFiles) -> FileDisk {
        self.watch.share(files);
        self
    }

    /// The same disk as memory: a flush waits for nothing. `has_no_name` where the file is no file of
    /// a folder.
    #[must_use]
    pub(super) fn of_memory(mut self, has_no_name: bool) -> FileDisk {
        self.is_memory = true;
        if has_no_name {
            self.watch.has_no_name();
        }
        self
    }

    /// True when operations go round the page cache.
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// Writes at once, on the calling thread.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn write_now(&mut self, extent: Extent, bytes: &[u8]) -> Result<(), IoError> {
        self.watch.look(&self.file)?;
        self.dirty = true;
        let mut bounce = self.spare.take(bytes.len());
        bounce.bytes_mut().copy_from_slice(bytes);
        let result = write_at(&self.file, offset_of(extent), bounce.bytes());
        self.spare.give_back(bounce);
        result.map_err(|errno| self.io_error(errno))
    }

    /// Zeroes at once, on the calling thread.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn zero_now(&mut self, extent: Extent, may_unmap: bool) -> Result<(), IoError> {
        self.watch.look(&self.file)?;
        self.dirty = true;
        let (offset, length) = (offset_of(extent), extent.blocks.bytes());
        zero_anyhow(&self.file, offset, length, may_unmap).map_err(|errno| self.io_error(errno))
    }

    /// Makes everything written so far durable, on the calling thread.
    ///
    /// # Errors
    /// As the system says; then nothing can be made durable any more.
    pub(super) fn synchronise_now(&mut self) -> Result<(), IoError> {
        self.dirty = false;
        let result = match self.is_memory {
            true => Ok(()),
            false => rustix::fs::fdatasync(&self.file),
        };
        self.synchronised(result)
    }

    /// A synchronisation has ended: whether what it was for is durable, and all there.
    fn synchronised(&mut self, result: Result<(), Errno>) -> Result<(), IoError> {
        if let Err(errno) = result {
            let error = self.io_error(errno);
            if error != IoError::Lost {
                self.fail(errno);
            }
            return Err(error);
        }
        self.watch.look(&self.file)
    }

    fn io_error(&mut self, errno: Errno) -> IoError {
        self.watch.error(&self.file, errno)
    }

    fn finish(&mut self, id: RequestId, result: Result<(), IoError>) {
        self.done.push_back(DiskCompletion { id, result });
    }

    fn finish_with(&mut self, id: RequestId, result: Result<(), Errno>) {
        let result = result.map_err(|errno| self.io_error(errno));
        self.finish(id, result);
    }

    /// Makes the reads of this round.
    fn make_gathered(&mut self, buffers: &mut Buffers) {
        let mut gathered = std::mem::take(&mut self.gathered);
        gathered.sort();
        let flags = match self.may_block {
            true => ReadWriteFlags::NOWAIT,
            false => ReadWriteFlags::empty(),
        };
        let mut first = 0;
        while first < gathered.reads().len() {
            let stretch = gathered.stretch(first);
            let filled = match stretch.len() {
                1 => 0,
                // A block in a gap may be one that cannot be read.
                _ => gathered.make(stretch.clone(), &self.file, flags, buffers).unwrap_or(0),
            };
            let reads = &gathered.reads()[stretch];
            let made = reads.iter().take_while(|read| read.end() <= filled).count();
            for read in &reads[..made] {
                self.finish(read.id, Ok(()));
            }
            first += made;
            if made == 0 {
                for read in reads {
                    self.read(read.id, read.offset, read.buffer, buffers);
                }
                first += reads.len();
            }
        }
        gathered.clear();
        self.gathered = gathered;
    }

    fn read(&mut self, id: RequestId, offset: u64, buffer: BufferSlice, buffers: &mut Buffers) {
        let bytes = buffers.bytes_mut(buffer).expect(BYTES);
        if !self.may_block {
            let result = read_at(&self.file, offset, bytes);
            return self.finish_with(id, result);
        }
        let flags = ReadWriteFlags::NOWAIT;
        let filled =
            rustix::io::preadv2(&self.file, &mut [IoSliceMut::new(&mut *bytes)], offset, flags);
        match filled {
            Ok(filled) if filled == bytes.len() => self.finish(id, Ok(())),
            // Nothing of it, or not all, is in memory; a thread waits for the rest.
            Ok(_) | Err(Errno::AGAIN | Errno::INTR | Errno::OPNOTSUPP) => {
                let length = bytes.len();
                self.read_on_thread(id, offset, buffer, length, filled.unwrap_or(0));
            }
            Err(errno) => self.finish_with(id, Err(errno)),
        }
    }

    fn read_on_thread(
        &mut self,
        id: RequestId,
        offset: u64,
        buffer: BufferSlice,
        length: usize,
        filled: usize,
    ) {
        let task =
            Task::Read { offset: offset + filled as u64, bytes: self.spare.take(length - filled) };
        self.on_threads.push(id);
        self.workers.start(Key::Read { id, buffer, filled }, task);
    }

    /// Makes as much of the large writes that wait as is to be made at this instant.
    fn make_large_writes(&mut self, now: Instant, buffers: &Buffers) {
        if self.watch.look_before_write(&self.file, now).is_err() {
            return self.lose_large_writes();
        }
        while let Some(Portion { offset, buffer, ends }) = self.large_writes.next_portion(now) {
            let bytes = buffers.bytes(buffer).expect(BYTES);
            self.dirty = true;
            let result = write_at(&self.file, offset, bytes);
            let ended = match result {
                Ok(()) => ends,
                Err(_) => ends.or_else(|| self.large_writes.give_up_first()),
            };
            if let Some(write) = ended {
                self.finish_write(write.id, write.is_durable, result);
            }
        }
    }

    fn lose_large_writes(&mut self) {
        while let Some(write) = self.large_writes.give_up_first() {
            self.finish(write.id, Err(IoError::Lost));
        }
    }

    /// True where the thread of the engine writes.
    fn writes_on_this_thread(&self) -> bool {
        !self.direct && !self.is_device
    }

    fn write(&mut self, id: RequestId, offset: u64, bytes: &[u8], durable: bool) {
        self.dirty = true;
        if self.writes_on_this_thread() {
            let result = write_at(&self.file, offset, bytes);
            return self.finish_write(id, durable, result);
        }
        let mut bounce = self.spare.take(bytes.len());
        bounce.bytes_mut().copy_from_slice(bytes);
        self.write_on_thread(id, durable, Task::Write { offset, bytes: bounce });
    }

    fn zero(&mut self, id: RequestId, offset: u64, length: u64, operation: Operation) {
        let may_unmap = matches!(operation, Operation::Zero { may_unmap: true, .. });
        self.dirty = true;
        let durable = operation.is_durable();
        if self.is_device {
            let task = Task::Zero { offset, length, may_unmap };
            return self.write_on_thread(id, durable, task);
        }
        match zero_at(&self.file, offset, length, may_unmap) {
            Ok(true) => self.finish_write(id, durable, Ok(())),
            Ok(false) => {
                let task = Task::WriteZeroes { offset, length };
                self.write_on_thread(id, durable, task);
            }
            Err(errno) => self.finish_with(id, Err(errno)),
        }
    }

    fn write_on_thread(&mut self, id: RequestId, durable: bool, task: Task) {
        self.on_threads.push(id);
        self.workers.start(Key::Write { id, durable }, task);
    }

    fn came_back(&mut self, id: RequestId) {
        let index = self.on_threads.iter().position(|other| *other == id);
        self.on_threads.swap_remove(index.expect("a thread had it"));
    }

    fn finish_write(&mut self, id: RequestId, durable: bool, result: Result<(), Errno>) {
        match result {
            Ok(()) if durable => self.make_durable(id),
            result => self.finish_with(id, result),
        }
    }

    /// Answers `id` when everything written so far is durable.
    fn make_durable(&mut self, id: RequestId) {
        if self.watch.look(&self.file).is_err() {
            self.finish(id, Err(IoError::Lost));
        } else if self.failed {
            self.finish(id, Err(IoError::Medium));
        } else if self.dirty && !self.is_memory {
            self.waiting.push(id);
            self.synchronise_if_idle();
        } else if self.synchronising {
            self.covered.push(id);
        } else {
            self.finish(id, Ok(()));
        }
    }

    fn synchronise_if_idle(&mut self) {
        if !self.synchronising && !self.waiting.is_empty() {
            std::mem::swap(&mut self.covered, &mut self.waiting);
            self.synchronising = true;
            self.dirty = false;
            self.workers.start(Key::Synchronise, Task::Synchronise);
        }
    }

    fn handle_synchronised(&mut self, result: Result<(), Errno>) {
        self.synchronising = false;
        let result = self.synchronised(result);
        if result.is_err() {
            self.covered.append(&mut self.waiting);
        }
        let mut covered = std::mem::take(&mut self.covered);
        for id in covered.drain(..) {
            self.finish(id, result);
        }
        self.covered = covered;
        self.synchronise_if_idle();
    }

    /// From now on nothing can be made durable, which the person who runs the server must know.
    fn fail(&mut self, errno: Errno) {
        if !self.failed {
            let error = io::Error::from(errno);
            self.watch.say(&format!(
                ": fdatasync failed: {error}; from now on writes and flushes of it fail, reads go on"
            ));
        }
        self.failed = true;
    }
}

/// The file, and whether it was opened for direct I/O.
fn open_file(path: &Path, direct: DirectIo, access: Access) -> Result<(File, bool), DiskError> {
    let mut options = OpenOptions::new();
    options.read(true).write(access == Access::ReadWrite);
    let mut open = |flags| file_kind::open(&mut options, flags, path, Accepted::Storage);
    // Without it first, so that an error is about the file and not about direct I/O.
    let file = open(OFlags::empty())
        .map_err(|source| DiskError::Open { path: path.to_owned(), source })?;
    if direct == DirectIo::Off {
        return Ok((file, false));
    }
    match open(OFlags::DIRECT) {
        // Some file systems take the flag and refuse the reads.
        Ok(direct_file) if reads_directly(&direct_file) => Ok((direct_file, true)),
        _ if direct == DirectIo::Auto => Ok((file, false)),
        _ => Err(DiskError::NotDirect { path: path.to_owned() }),
    }
}

fn reads_directly(file: &File) -> bool {
    let mut block = Bounce::new(BLOCK_BYTES as usize);
    rustix::io::pread(file, block.bytes_mut(), 0).is_ok()
}

fn offset_of(extent: Extent) -> u64 {
    extent.start.0 * BLOCK_BYTES
}

impl Disk for FileDisk {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    #[inline]
    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        let offset = offset_of(op.extent);
        match op.operation {
            // What a broken disk had held back may come after the disk was given up.
            _ if self.is_abandoned || self.watch.is_lost() => {
                self.finish(op.id, Err(IoError::Lost));
            }
            Operation::Read if self.direct => {
                let length = op.extent.blocks.bytes() as usize;
                self.read_on_thread(op.id, offset, op.buffer, length, 0);
            }
            Operation::Read => {
                let read = GatheredRead { id: op.id, offset, buffer: op.buffer };
                self.gathered.push(read);
            }
            _ if self.failed => self.finish(op.id, Err(IoError::Medium)),
            Operation::Write { .. } | Operation::Zero { .. }
                if self.watch.look_before_write(&self.file, now).is_err() =>
            {
                self.finish(op.id, Err(IoError::Lost));
            }
            Operation::Write { .. }
                if self.writes_on_this_thread() && is_large(op.buffer.blocks) =>
            {
                let is_durable = op.operation.is_durable();
                let write = LargeWrite { id: op.id, offset, buffer: op.buffer, is_durable };
                self.large_writes.push(write);
            }
            Operation::Write { .. } => {
                let bytes = buffers.bytes(op.buffer).expect(BYTES);
                self.write(op.id, offset, bytes, op.operation.is_durable());
            }
            Operation::Zero { .. } => {
                self.zero(op.id, offset, op.extent.blocks.bytes(), op.operation);
            }
            Operation::Flush => self.make_durable(op.id),
            Operation::ZoneOpen
            | Operation::ZoneClose
            | Operation::ZoneReset
            | Operation::ZoneFinish
            | Operation::ZoneReport
            | Operation::Copy(_) => {
                self.finish(op.id, Err(IoError::Invalid));
            }
        }
    }

    #[inline]
    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        if !self.large_writes.is_empty() {
            self.make_large_writes(now, buffers);
        }
        if !self.gathered.is_empty() {
            self.make_gathered(buffers);
        }
        while let Some(done) = self.workers.poll() {
            if self.is_abandoned {
                continue;
            }
            match done.key {
                Key::Read { id, buffer, filled } => {
                    self.came_back(id);
                    let bytes = buffers.bytes_mut(buffer).expect(BYTES);
                    bytes[filled..].copy_from_slice(done.bytes.bytes());
                    self.spare.give_back(done.bytes);
                    self.finish_with(id, done.result);
                }
                Key::Write { id, durable } => {
                    self.came_back(id);
                    self.spare.give_back(done.bytes);
                    // It was written at some time before now, perhaps during a synchronisation.
                    self.dirty = true;
                    self.finish_write(id, durable, done.result);
                }
                Key::Synchronise => self.handle_synchronised(done.result),
            }
        }
        self.done.pop_front()
    }

    fn next_event(&self) -> Option<Instant> {
        let has_news =
            !self.done.is_empty() || !self.gathered.is_empty() || !self.large_writes.is_empty();
        has_news.then_some(Instant::ZERO)
    }

    fn abandon(&mut self) {
        self.is_abandoned = true;
        let waiting = self.covered.drain(..).chain(self.waiting.drain(..));
        let gathered = self.gathered.reads().iter().map(|read| read.id);
        for id in self.on_threads.drain(..).chain(waiting).chain(gathered) {
            self.done.push_back(DiskCompletion { id, result: Err(IoError::Lost) });
        }
        self.gathered.clear();
        self.lose_large_writes();
    }
}

const BYTES: &str = "the buffers of a server hold bytes";
