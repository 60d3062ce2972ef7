//! A file that can be locked against other processes.

use rustix::fs::{FlockOperation, flock};
use rustix::io;
use std::fs::File;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};

/// An open file or directory whose lock (`flock(2)`) ends when it is dropped.
///
/// To close the file would not always do. While another thread starts a command, the child that is not the
/// command yet has every file of this process open, and a lock lasts until the last of its owners has gone.
/// Who opens the file again in that moment would find it in use.
#[derive(Debug)]
pub struct LockableFile(File);

impl LockableFile {
    /// Keeps others out who lock it too, all of them or those who write. Does not wait.
    ///
    /// # Errors
    /// `WOULDBLOCK` when somebody else has locked it.
    pub fn lock(&self, against_readers: bool) -> io::Result<()> {
        flock(
            &self.0,
            match against_readers {
                true => FlockOperation::NonBlockingLockExclusive,
                false => FlockOperation::NonBlockingLockShared,
            },
        )
    }
}

impl From<File> for LockableFile {
    fn from(file: File) -> LockableFile {
        LockableFile(file)
    }
}

impl Deref for LockableFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl AsFd for LockableFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for LockableFile {
    fn drop(&mut self) {
        // A file without a lock takes this too. There is nothing to do about an error, and to close comes next.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_with_its_owner_though_a_child_has_the_file_open() {
        let place = tempfile::NamedTempFile::new().expect("a file");
        let open = || LockableFile::from(File::open(place.path()).expect("the file"));
        let first = open();
        first.lock(true).expect("nobody else's");
        // What a child has between its start and its command: the same open file.
        let of_child = first.try_clone().expect("another descriptor");
        assert_eq!(open().lock(false), Err(io::Errno::WOULDBLOCK));
        drop(first);
        open().lock(true).expect("free again");
        drop(of_child);
    }
}
