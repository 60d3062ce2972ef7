//! Opening files that may turn out to be something else.
//!
//! The system waits in `open` of a FIFO until somebody opens its other end, and `open` of some
//! devices does something. So what is at a path is looked at first, and the open does not wait.

use rustix::fs::OFlags;
use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// What may be opened at a path; a symbolic link stands for what it leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accepted {
    /// A regular file.
    File,
    /// A regular file or a block device: what can hold a disk.
    Storage,
}

impl Accepted {
    /// # Errors
    /// When it is something else; says what it is and what is accepted.
    pub(crate) fn check(self, found: FileType) -> io::Result<()> {
        let accepted = match self {
            _ if found.is_file() => return Ok(()),
            Accepted::Storage if found.is_block_device() => return Ok(()),
            Accepted::File => "a regular file",
            Accepted::Storage => "a regular file or a block device",
        };
        let words = format!("it is {}; accepted: {accepted}", name_of(found));
        Err(io::Error::new(ErrorKind::InvalidInput, words))
    }
}

/// Opens what is at a path without waiting for anybody. Flags that the options have of
/// [`custom_flags`](OpenOptionsExt::custom_flags) are replaced by `flags`.
///
/// # Errors
/// When the system refuses, and when it is not of a kind that is accepted.
pub(crate) fn open(
    options: &mut OpenOptions,
    flags: OFlags,
    path: &Path,
    accepted: Accepted,
) -> io::Result<File> {
    accepted.check(fs::metadata(path)?.file_type())?;
    let flags = flags | OFlags::NONBLOCK;
    let file = options.custom_flags(flags.bits() as i32).open(path)?;
    // It may have been exchanged since.
    accepted.check(file.metadata()?.file_type())?;
    Ok(file)
}

/// Opens a file or block device to read it. One of another kind is an error at once: nobody waits
/// for the other end of a FIFO.
///
/// # Errors
/// As [`Accepted`] says, and when the system refuses.
pub fn open_to_read(path: &Path, accepted: Accepted) -> io::Result<File> {
    open(OpenOptions::new().read(true), OFlags::empty(), path, accepted)
}

/// What a person calls a kind of file.
fn name_of(found: FileType) -> &'static str {
    match found {
        _ if found.is_dir() => "a folder",
        _ if found.is_fifo() => "a FIFO",
        _ if found.is_socket() => "a socket",
        _ if found.is_char_device() => "a character device",
        _ if found.is_block_device() => "a block device",
        _ if found.is_symlink() => "a symbolic link",
        _ => "a regular file",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    fn make_fifo(path: &Path) {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
    }

    #[test]
    fn what_is_no_storage_is_an_error_at_once_with_what_it_is() {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |name: &str| dir.path().join(name);
        make_fifo(&at("fifo"));
        let _listener = UnixListener::bind(at("socket")).expect("a socket");
        symlink("fifo", at("link-to-fifo")).expect("a link");
        symlink("/dev/null", at("link-to-null")).expect("a link");
        fs::create_dir(at("folder")).expect("a folder");
        for (name, words) in [
            ("fifo", "it is a FIFO"),
            ("socket", "it is a socket"),
            ("link-to-fifo", "it is a FIFO"),
            ("link-to-null", "it is a character device"),
            ("folder", "it is a folder"),
        ] {
            for (accepted, what) in [
                (Accepted::File, "; accepted: a regular file"),
                (Accepted::Storage, "; accepted: a regular file or a block device"),
            ] {
                let error = open_to_read(&at(name), accepted).expect_err(name);
                assert_eq!(error.to_string(), format!("{words}{what}"));
            }
        }
        fs::write(at("file"), "here").expect("a file");
        symlink("file", at("link-to-file")).expect("a link");
        for name in ["file", "link-to-file"] {
            open_to_read(&at(name), Accepted::File).expect("a file");
            open_to_read(&at(name), Accepted::Storage).expect("a file");
        }
    }
}
