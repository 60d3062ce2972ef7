//! Whether an output can be written: asked before the work, which may take hours.

use crate::Failure;
use imbrex_traces::PartialFile;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Refuses a file that could not be written, in the name of the option that names it. Nothing of it is
/// left: what is there stays as it is.
pub fn check_file(option: &str, file: &Path) -> Result<(), Failure> {
    let refused = |error: &dyn std::fmt::Display| {
        let words = format!(
            "{option} {}: {error}; accepted: a file in a folder that is there and can be written to",
            file.display()
        );
        Failure::from(words)
    };
    match fs::metadata(file) {
        Ok(found) if found.is_dir() => return Err(refused(&"it is a folder")),
        // A pipe or a terminal is opened when there is something to write.
        Ok(found) if !found.is_file() => return Ok(()),
        _ => {}
    }
    // It is removed when it is dropped.
    let partial = PartialFile::of(file);
    File::create(partial.path()).map_err(|error| refused(&error))?;
    Ok(())
}

/// Refuses a folder in which no files could be written, or that could not be made. It is not made yet.
pub fn check_folder(option: &str, folder: &Path) -> Result<(), Failure> {
    let refused = |error: &dyn std::fmt::Display| {
        let words = format!(
            "{option} {}: {error}; accepted: a folder that can be written to, or made",
            folder.display()
        );
        Failure::from(words)
    };
    let there = nearest_there(folder).map_err(|error| refused(&error))?;
    match fs::metadata(&there) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(refused(&format_args!("{} is no folder", there.display()))),
        Err(error) => return Err(refused(&error)),
    }
    let partial = PartialFile::of(&there.join("imbrex-output"));
    File::create(partial.path()).map_err(|error| refused(&error))?;
    Ok(())
}

/// The folder itself, or the nearest one above it that is there.
fn nearest_there(folder: &Path) -> io::Result<PathBuf> {
    for path in folder.ancestors() {
        let path = match path.as_os_str().is_empty() {
            true => Path::new("."),
            false => path,
        };
        // A link that leads nowhere is there too, and no folder.
        match fs::symlink_metadata(path) {
            Ok(_) => return Ok(path.to_path_buf()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(PathBuf::from("."))
}
