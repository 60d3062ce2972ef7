//! The bytes of a trace that is read at any place, not from its start to its end.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// A file, or the bytes of what can be read only once. Copies are of the same bytes.
#[derive(Debug, Clone)]
pub(super) struct RandomAccess {
    bytes: Bytes,
    length: u64,
}

#[derive(Debug, Clone)]
enum Bytes {
    File(Arc<File>),
    Held(Arc<[u8]>),
}

impl RandomAccess {
    pub(super) fn of_file(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { bytes: Bytes::File(Arc::new(file)), length })
    }

    pub(super) fn of_bytes(bytes: Arc<[u8]>) -> Self {
        Self { length: bytes.len() as u64, bytes: Bytes::Held(bytes) }
    }

    /// Number of bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Reads some of the bytes from a place on; 0 at the end.
    pub(super) fn read_at(&self, start: u64, to: &mut [u8]) -> io::Result<usize> {
        match &self.bytes {
            Bytes::File(file) => file.read_at(to, start),
            Bytes::Held(bytes) => {
                let rest = usize::try_from(start).ok().and_then(|start| bytes.get(start..));
                let rest = rest.unwrap_or_default();
                let count = rest.len().min(to.len());
                to[..count].copy_from_slice(&rest[..count]);
                Ok(count)
            }
        }
    }

    /// The bytes from a place on, at most so many.
    pub(super) fn section(&self, start: u64, length: u64) -> Section {
        Section { of: self.clone(), start, at: 0, length }
    }
}

/// A part of the bytes, as a file of its own.
#[derive(Debug)]
pub(super) struct Section {
    of: RandomAccess,
    start: u64,
    at: u64,
    length: u64,
}

impl io::Read for Section {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let left = self.length.saturating_sub(self.at);
        let wanted = usize::try_from(left).map_or(to.len(), |left| left.min(to.len()));
        let start = self.start.saturating_add(self.at);
        let count = self.of.read_at(start, &mut to[..wanted])?;
        self.at += count as u64;
        Ok(count)
    }
}

impl io::Seek for Section {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        let at = match to {
            io::SeekFrom::Start(at) => Some(at),
            io::SeekFrom::End(by) => self.length.checked_add_signed(by),
            io::SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
