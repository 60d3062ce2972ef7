//! How a file is written: whole or not at all.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A file that is written beside the one it is to be and takes its name at the end. Until then, and when the writing fails, what was
/// there before stays. It is removed when it is dropped before it is [kept](Self::keep).
#[derive(Debug)]
pub struct PartialFile {
    file: PathBuf,
    /// Where the bytes go; none when they go to `file` itself.
    partial: Option<PathBuf>,
}

impl PartialFile {
    /// For the file `file`. A link is followed; what is no regular file, such as a pipe, is written to directly.
    pub fn of(file: &Path) -> Self {
        let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
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

impl Drop for PartialFile {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // There may be nothing to remove.
            let _ = fs::remove_file(partial);
        }
    }
}
