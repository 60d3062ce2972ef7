//! How a file is written: whole or not at all.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Links in a row that are followed: as many as the system follows.
const LINKS_MAX: usize = 40;

/// A file that is written beside the one it is to be and takes its name at the end. Until then, and when the writing fails, what was
/// there before stays. It is removed when it is dropped before it is [kept](Self::keep).
#[derive(Debug)]
pub struct PartialFile {
    file: PathBuf,
    /// Where the bytes go; none when they go to `file` itself.
    partial: Option<PathBuf>,
}

impl PartialFile {
    /// For the file `file`. A link is followed, to a file that is not there as well; what is no regular file, such
    /// as a pipe, is written to directly.
    pub fn of(file: &Path) -> Self {
        let file = file.canonicalize().unwrap_or_else(|_| end_of_links(file));
        let is_other = fs::symlink_metadata(&file).is_ok_and(|found| !found.is_file());
        let partial = file.file_name().filter(|_| !is_other).map(|name| {
            let mut partial = OsString::from(".");
            partial.push(name);
            partial.push(format!(".{}.partial", std::process::id()));
            file.with_file_name(partial)
        });
        Self { file, partial }
    }

    /// Where to write.
    pub fn path(&self) -> &Path {
        self.partial.as_deref().unwrap_or(&self.file)
    }

    /// Gives the file its name, in place of what is there.
    ///
    /// # Errors
    /// The file cannot be renamed.
    pub fn keep(mut self) -> io::Result<()> {
        if let Some(partial) = &self.partial {
            fs::rename(partial, &self.file)?;
        }
        self.partial = None;
        Ok(())
    }
}

/// The file that a link leads to, which need not be there; the link itself where it leads back to itself.
fn end_of_links(file: &Path) -> PathBuf {
    let mut at = file.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = fs::read_link(&at) else {
            return at;
        };
        at = at.parent().unwrap_or(Path::new("")).join(target);
    }
    file.to_owned()
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // There may be nothing to remove.
            let _ = fs::remove_file(partial);
        }
    }
}
