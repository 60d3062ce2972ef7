//! Whether the file of a disk is still all there.
//!
//! A disk may go while it is served: a device is unplugged, a server of files goes away, somebody
//! cuts a file. The first two are errors. The third is none: a read behind the new end is short, and
//! a write behind it leaves a hole of zeroes where there was data. So the length is looked at before
//! writes, once for all of an instant, and at every flush.

use super::open_files::{OpenFile, OpenFiles};
use crate::lockable_file::LockableFile;
use crate::signals::say;
use imbrex_core::error::IoError;
use imbrex_core::units::Instant;
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// Errors that say that the whole disk has gone, and not a part of it.
const GONE: [Errno; 11] = [
    Errno::NODEV,
    Errno::NXIO,
    Errno::STALE,
    Errno::REMOTEIO,
    Errno::NOMEDIUM,
    Errno::NOLINK,
    Errno::NOTCONN,
    Errno::CONNABORTED,
    Errno::SHUTDOWN,
    Errno::HOSTDOWN,
    Errno::HOSTUNREACH,
];

/// Looks after the file of a disk. That it is lost is for ever, and is said once on standard error.
pub(super) struct Watch {
    /// What others may ask of it. A block device cannot be cut or deleted; its errors tell.
    open: Rc<OpenFile>,
    needed_bytes: u64,
    is_lost: bool,
    looked_at: Option<Instant>,
}

impl Watch {
    /// Looks after a file that must hold `needed_bytes`.
    pub fn new(path: &Path, file: &Arc<LockableFile>, needed_bytes: u64) -> io::Result<Watch> {
        Ok(Watch {
            open: Rc::new(OpenFile::new(path, file, file.metadata()?.is_file())),
            needed_bytes,
            is_lost: false,
            looked_at: None,
        })
    }

    /// The node that the disk is, for what is said of it.
    pub fn set_node(&self, node: &str) {
        self.open.set_node(node);
    }

    /// Whoever has `files` looks after the file too.
    pub fn share(&self, files: &OpenFiles) {
        files.add(&self.open);
    }

    /// The file must hold so much.
    pub fn needs(&mut self, bytes: u64) {
        self.needed_bytes = bytes;
    }

    /// The file has no name that could be deleted, and nobody else can cut it.
    pub fn has_no_name(&self) {
        self.open.has_no_name();
    }

    /// True when the disk is lost.
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// What a client is told of an error of the system.
    #[cold]
    pub fn error(&mut self, file: &File, errno: Errno) -> IoError {
        if GONE.contains(&errno) {
            self.lose(&io::Error::from(errno).to_string());
        } else {
            self.look_at_length(file);
        }
        match errno {
            _ if self.is_lost => IoError::Lost,
            Errno::NOSPC | Errno::DQUOT => IoError::NoSpace,
            _ => IoError::Medium,
        }
    }

    /// Looks before something is written, once at an instant. `Err`: the disk is lost.
    #[inline]
    pub fn look_before_write(&mut self, file: &File, now: Instant) -> Result<(), IoError> {
        if self.looked_at == Some(now) {
            return Ok(());
        }
        self.looked_at = Some(now);
        self.look(file)
    }

    /// Looks at a flush, or before something is written. `Err`: the disk is lost.
    pub fn look(&mut self, file: &File) -> Result<(), IoError> {
        if self.open.has_name()
            && !self.is_lost
            && let Ok(stat) = rustix::fs::fstat(file)
        {
            self.judge_length(stat.st_size as u64);
            self.open.judge(&stat);
        }
        match self.is_lost {
            true => Err(IoError::Lost),
            false => Ok(()),
        }
    }

    /// Something is said of the disk, with its node and its file.
    pub fn say(&self, words: &str) {
        say(&self.open.sentence(words));
    }

    /// The end of a block device is found as that of a file is.
    fn look_at_length(&mut self, mut file: &File) {
        if let Ok(bytes) = file.seek(SeekFrom::End(0)) {
            self.judge_length(bytes);
        }
    }

    fn judge_length(&mut self, bytes: u64) {
        if bytes < self.needed_bytes {
            let needed = self.needed_bytes;
            self.lose(&format!(
                "it has become shorter, {bytes} bytes, and the disk needs {needed}"
            ));
        }
    }

    fn lose(&mut self, reason: &str) {
        if !self.is_lost {
            self.open.lose(&format!(" is lost: {reason}; from now on everything on it fails"));
        }
        self.is_lost = true;
    }
}
