//! A file or a block device as a disk.

use super::workers::{Task, Workers, read_at, write_at, zero_at};
use crate::clock::Waker;
use imbrex_core::buffer::{BufferSlice, Buffers};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::error::IoError;
use imbrex_core::operation::{Operation, RequestId};
use imbrex_core::units::{BLOCK_BYTES, Instant};
use rustix::fs::FlockOperation;
use rustix::io::{Errno, IoSliceMut, ReadWriteFlags};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bounce buffers kept for further reads that would block.
const SPARE_BUFFERS_MAX: usize = 64;
/// Longer bounce buffers are not kept.
const SPARE_BYTES_MAX: usize = 1 << 20;
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
}

enum Key {
    Read {
        id: RequestId,
        buffer: BufferSlice,
        /// Bytes at the start of the buffer that are already there.
        filled: usize,
    },
    Zero {
        id: RequestId,
        durable: bool,
    },
    Synchronise,
}

/// A file or a block device as a disk.
///
/// Reads of cached data and all writes happen at once, in the page cache, on the thread of the
/// engine. Reads that would wait for the medium, and synchronisations, go to threads. One
/// synchronisation at a time answers all flushes and durable writes that came before it began.
/// After one has failed nobody knows what the medium holds: from then on every write and flush
/// fails, and reads go on.
pub struct FileDisk {
    geometry: Geometry,
    file: Arc<File>,
    workers: Workers<Key>,
    done: VecDeque<DiskCompletion>,
    /// Written to since the last synchronisation began.
    dirty: bool,
    failed: bool,
    synchronising: bool,
    /// Answered by the synchronisation that is running.
    covered: Vec<RequestId>,
    /// To be answered by the next one.
    waiting: Vec<RequestId>,
    /// On a medium, so that a read may have to wait; memory file systems know no read that would not.
    may_block: bool,
    spare: Vec<Vec<u8>>,
}

impl FileDisk {
    /// Opens an existing file or block device as a disk of the given geometry. `waker` ends the
    /// wait of the loop when a thread has finished. The file is locked (`flock`) against other
    /// servers.
    ///
    /// # Errors
    /// When it cannot be opened for reading and writing, is locked, or is too short.
    pub fn open(path: &Path, geometry: Geometry, waker: Waker) -> Result<FileDisk, DiskError> {
        let error = |source: io::Error| DiskError::Open {
            path: path.to_owned(),
            source,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(error)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {
                let path = path.to_owned();
                return Err(DiskError::InUse { path });
            }
            result => result.map_err(|errno| error(errno.into()))?,
        }
        // The length in the metadata of a block device is zero; its end is not.
        let bytes = file.seek(SeekFrom::End(0)).map_err(error)?;
        let needed = geometry.blocks.bytes();
        if bytes < needed {
            return Err(DiskError::TooShort {
                path: path.to_owned(),
                bytes,
                needed,
            });
        }
        let file_system = rustix::fs::fstatfs(&file).map_err(|errno| error(errno.into()))?;
        let file = Arc::new(file);
        Ok(FileDisk {
            geometry,
            workers: Workers::new(Arc::clone(&file), waker),
            file,
            done: VecDeque::new(),
            dirty: true,
            failed: false,
            synchronising: false,
            covered: Vec::new(),
            waiting: Vec::new(),
            may_block: !MEMORY_FILE_SYSTEMS.contains(&(file_system.f_type as i64)),
            spare: Vec::new(),
        })
    }

    fn finish(&mut self, id: RequestId, result: Result<(), IoError>) {
        self.done.push_back(DiskCompletion { id, result });
    }

    fn read(&mut self, id: RequestId, offset: u64, buffer: BufferSlice, buffers: &mut Buffers) {
        let bytes = buffers.bytes_mut(buffer).expect(BYTES);
        if !self.may_block {
            let result = read_at(&self.file, offset, bytes).map_err(io_error);
            return self.finish(id, result);
        }
        let flags = ReadWriteFlags::NOWAIT;
        let filled = rustix::io::preadv2(
            &self.file,
            &mut [IoSliceMut::new(&mut *bytes)],
            offset,
            flags,
        );
        match filled {
            Ok(filled) if filled == bytes.len() => self.finish(id, Ok(())),
            // Nothing of it, or not all, is in memory; a thread waits for the rest.
            Ok(_) | Err(Errno::AGAIN | Errno::INTR | Errno::OPNOTSUPP) => {
                let filled = filled.unwrap_or(0);
                let mut bounce = self.spare.pop().unwrap_or_default();
                bounce.resize(bytes.len() - filled, 0);
                let task = Task::Read {
                    offset: offset + filled as u64,
                    bytes: bounce,
                };
                let key = Key::Read { id, buffer, filled };
                self.workers.start(key, task);
            }
            Err(errno) => self.finish(id, Err(io_error(errno))),
        }
    }

    fn zero(&mut self, id: RequestId, offset: u64, length: u64, operation: Operation) {
        let may_unmap = matches!(
            operation,
            Operation::Zero {
                may_unmap: true,
                ..
            }
        );
        self.dirty = true;
        match zero_at(&self.file, offset, length, may_unmap) {
            Ok(true) => self.finish_write(id, operation.is_durable(), Ok(())),
            Ok(false) => {
                let durable = operation.is_durable();
                let task = Task::WriteZeroes { offset, length };
                self.workers.start(Key::Zero { id, durable }, task);
            }
            Err(errno) => self.finish(id, Err(io_error(errno))),
        }
    }

    fn finish_write(&mut self, id: RequestId, durable: bool, result: Result<(), Errno>) {
        match result {
            Ok(()) if durable => self.make_durable(id),
            result => self.finish(id, result.map_err(io_error)),
        }
    }

    /// Answers `id` when everything written so far is durable.
    fn make_durable(&mut self, id: RequestId) {
        if self.failed {
            self.finish(id, Err(IoError::Medium));
        } else if self.dirty {
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
        if result.is_err() {
            self.failed = true;
            self.covered.append(&mut self.waiting);
        }
        let mut covered = std::mem::take(&mut self.covered);
        for id in covered.drain(..) {
            self.finish(id, result.map_err(io_error));
        }
        self.covered = covered;
        self.synchronise_if_idle();
    }
}

impl Disk for FileDisk {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    #[inline]
    fn submit(&mut self, _now: Instant, op: DiskOp, buffers: &mut Buffers) {
        let offset = op.extent.start.0 * BLOCK_BYTES;
        match op.operation {
            Operation::Read => self.read(op.id, offset, op.buffer, buffers),
            _ if self.failed => self.finish(op.id, Err(IoError::Medium)),
            Operation::Write { .. } => {
                self.dirty = true;
                let bytes = buffers.bytes(op.buffer).expect(BYTES);
                let result = write_at(&self.file, offset, bytes);
                self.finish_write(op.id, op.operation.is_durable(), result);
            }
            Operation::Zero { .. } => {
                self.zero(op.id, offset, op.extent.blocks.bytes(), op.operation);
            }
            Operation::Flush => self.make_durable(op.id),
            Operation::ZoneReset | Operation::ZoneFinish => {
                self.finish(op.id, Err(IoError::Invalid));
            }
        }
    }

    #[inline]
    fn poll(&mut self, _now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        while let Some(done) = self.workers.poll() {
            match done.key {
                Key::Read { id, buffer, filled } => {
                    buffers.bytes_mut(buffer).expect(BYTES)[filled..].copy_from_slice(&done.bytes);
                    if self.spare.len() < SPARE_BUFFERS_MAX && done.bytes.len() <= SPARE_BYTES_MAX {
                        self.spare.push(done.bytes);
                    }
                    self.finish(id, done.result.map_err(io_error));
                }
                Key::Zero { id, durable } => {
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
        (!self.done.is_empty()).then_some(Instant::ZERO)
    }
}

const BYTES: &str = "the buffers of a server hold bytes";

/// What a client is told of an error of the file system.
fn io_error(errno: Errno) -> IoError {
    match errno {
        Errno::NOSPC | Errno::DQUOT => IoError::NoSpace,
        _ => IoError::Medium,
    }
}
