//! What holds a disk, one request at a time: a file, a block device, or an export of another server, by the
//! place that a stack file names. Labels are read and written so, and `check` reads so.

use crate::file_kind::{self, Accepted};
use crate::lockable_file::LockableFile;
use crate::remote::{RemoteAddress, RemoteStorage};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What holds a disk.
#[derive(Debug)]
pub enum Storage {
    /// A file or block device.
    File(LockableFile),
    /// An export of another server.
    Remote(RemoteStorage),
}

impl Storage {
    /// Opens what is at a place, a path or the URI of an export, to read it.
    ///
    /// # Errors
    /// When it cannot be opened, or is something else.
    pub fn open(place: &Path) -> io::Result<Storage> {
        Storage::open_for(place, false)
    }

    /// The same, to write it too.
    ///
    /// # Errors
    /// When it cannot be opened, or is something else.
    pub fn open_to_write(place: &Path) -> io::Result<Storage> {
        Storage::open_for(place, true)
    }

    fn open_for(place: &Path, for_writing: bool) -> io::Result<Storage> {
        let address = RemoteAddress::of(place);
        match address.map_err(|words| io::Error::new(ErrorKind::InvalidInput, words))? {
            Some(address) => RemoteStorage::open(&address).map(Storage::Remote),
            None => {
                let mut options = OpenOptions::new();
                options.read(true).write(for_writing);
                let file =
                    file_kind::open(&mut options, OFlags::empty(), place, Accepted::Storage)?;
                Ok(Storage::File(file.into()))
            }
        }
    }

    /// The file, if it is one here.
    pub fn file(&self) -> Option<&File> {
        match self {
            Storage::File(file) => Some(file),
            Storage::Remote(_) => None,
        }
    }

    /// Keeps others out who lock it too, all of them or those who write. Nobody can be kept out of an export
    /// of another server.
    ///
    /// # Errors
    /// When somebody else has locked it.
    pub fn lock(&self, against_readers: bool) -> io::Result<()> {
        let Storage::File(file) = self else { return Ok(()) };
        file.lock(against_readers).map_err(|errno| match errno {
            Errno::WOULDBLOCK => io::Error::new(errno.kind(), "it is in use by another process"),
            errno => errno.into(),
        })
    }

    /// Its length in bytes.
    ///
    /// # Errors
    /// As the system says.
    pub fn length(&self) -> io::Result<u64> {
        match self {
            // The length in the metadata of a block device is zero; its end is not.
            Storage::File(file) => { &**file }.seek(SeekFrom::End(0)),
            Storage::Remote(remote) => Ok(remote.export().bytes),
        }
    }

    /// Fills `bytes` from an offset on.
    ///
    /// # Errors
    /// As the system says.
    pub fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Storage::File(file) => file.read_exact_at(bytes, offset),
            Storage::Remote(remote) => remote.read_exact_at(bytes, offset),
        }
    }

    /// Writes all of `bytes` from an offset on.
    ///
    /// # Errors
    /// As the system says.
    pub fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match self {
            Storage::File(file) => file.write_all_at(bytes, offset),
            Storage::Remote(remote) => remote.write_all_at(bytes, offset),
        }
    }

    /// Makes what was written durable.
    ///
    /// # Errors
    /// As the system says.
    pub fn sync_data(&self) -> io::Result<()> {
        match self {
            Storage::File(file) => file.sync_data(),
            Storage::Remote(remote) => remote.sync_data(),
        }
    }
}
