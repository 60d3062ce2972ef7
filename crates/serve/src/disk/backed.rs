//! What holds the data of a disk: a file here, or an export of another server.

use super::FileDisk;
use crate::remote::RemoteDisk;
use imbrex_core::buffer::Buffers;
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::units::Instant;

/// A disk that holds what it is told beyond the end of the process.
pub enum BackedDisk {
    /// A file or block device.
    File(Box<FileDisk>),
    /// An export of another server.
    Remote(Box<RemoteDisk>),
}

impl BackedDisk {
    /// True when operations go round the page cache of this machine.
    pub fn is_direct(&self) -> bool {
        match self {
            BackedDisk::File(file) => file.is_direct(),
            BackedDisk::Remote(_) => false,
        }
    }

    /// Writes at once, on the calling thread.
    pub(super) fn write_now(&mut self, extent: Extent, bytes: &[u8]) -> Result<(), IoError> {
        match self {
            BackedDisk::File(file) => file.write_now(extent, bytes),
            BackedDisk::Remote(remote) => remote.write_now(extent, bytes),
        }
    }

    /// Zeroes at once, on the calling thread.
    pub(super) fn zero_now(&mut self, extent: Extent, may_unmap: bool) -> Result<(), IoError> {
        match self {
            BackedDisk::File(file) => file.zero_now(extent, may_unmap),
            BackedDisk::Remote(remote) => remote.zero_now(extent, may_unmap),
        }
    }

    /// Makes everything written so far durable, on the calling thread.
    pub(super) fn synchronise_now(&mut self) -> Result<(), IoError> {
        match self {
            BackedDisk::File(file) => file.synchronise_now(),
            BackedDisk::Remote(remote) => remote.synchronise_now(),
        }
    }
}

impl From<FileDisk> for BackedDisk {
    fn from(file: FileDisk) -> BackedDisk {
        BackedDisk::File(Box::new(file))
    }
}

impl Disk for BackedDisk {
    fn geometry(&self) -> &Geometry {
        match self {
            BackedDisk::File(file) => file.geometry(),
            BackedDisk::Remote(remote) => remote.geometry(),
        }
    }

    #[inline]
    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        match self {
            BackedDisk::File(file) => file.submit(now, op, buffers),
            BackedDisk::Remote(remote) => remote.submit(now, op, buffers),
        }
    }

    #[inline]
    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        match self {
            BackedDisk::File(file) => file.poll(now, buffers),
            BackedDisk::Remote(remote) => remote.poll(now, buffers),
        }
    }

    #[inline]
    fn next_event(&self) -> Option<Instant> {
        match self {
            BackedDisk::File(file) => file.next_event(),
            BackedDisk::Remote(remote) => remote.next_event(),
        }
    }

    fn abandon(&mut self) {
        match self {
            BackedDisk::File(file) => file.abandon(),
            BackedDisk::Remote(remote) => remote.abandon(),
        }
    }
}
