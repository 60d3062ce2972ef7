//! `--report`: the file that the report is written to.

use crate::failure::{Failure, usage};
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// What every report of a version begins with.
const REPORT_START: &[u8] = b"{\"schema\":\"imbrex.report/";

/// A file that may be written over: a new one, an earlier report, or something that keeps nothing.
/// One that is new goes away again unless the report is written.
pub struct ReportFile {
    path: PathBuf,
    file: File,
    is_new: bool,
}

impl ReportFile {
    /// Opens the file and leaves what it holds as it is. This comes before an image is opened for
    /// writing, so that a path that cannot be written leaves the image clean.
    pub fn open(path: &Path) -> Result<ReportFile, Failure> {
        let opened = |file, is_new| ReportFile { path: path.to_path_buf(), file, is_new };
        match File::create_new(path) {
            Ok(file) => return Ok(opened(file, true)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(wrong(path, &error)),
        }
        let mut options = File::options();
        options.write(true);
        let found = path.metadata().map_err(|error| wrong(path, &error))?;
        if found.is_file() {
            options.read(true);
        }
        let mut file = options.open(path).map_err(|error| wrong(path, &error))?;
        let is_harmless = if found.is_file() {
            holds_report(&mut file).map_err(|error| wrong(path, &error))?
        } else {
            // A pipe, a terminal or /dev/null holds nothing that could be lost.
            !found.file_type().is_block_device()
        };
        if !is_harmless {
            return Err(misplaced(
                path,
                &"there is a file that is no report; accepted: a path where none is, or an earlier \
                  report, which is replaced",
            ));
        }
        Ok(opened(file, false))
    }

    /// What kind of file it is, and which.
    pub fn metadata(&self) -> Result<Metadata, Failure> {
        let found = self.file.metadata();
        found.map_err(|error| wrong(&self.path, &error))
    }

    /// The error for a file that is a member of the image.
    pub fn is_member(&self, node: &str) -> Failure {
        misplaced(&self.path, &format_args!("it is the disk of node `{node}`"))
    }

    /// Writes the report in place of an earlier one.
    pub fn write(mut self, text: &str) -> Result<(), Failure> {
        let is_file = self.metadata()?.is_file();
        let mut write = || {
            if is_file {
                self.file.set_len(0)?;
                self.file.seek(SeekFrom::Start(0))?;
            }
            self.file.write_all(text.as_bytes())?;
            if is_file {
                self.file.sync_all()?;
            }
            Ok::<(), std::io::Error>(())
        };
        write().map_err(|error| wrong(&self.path, &error))?;
        self.is_new = false;
        Ok(())
    }
}

impl Drop for ReportFile {
    fn drop(&mut self) {
        if self.is_new {
            // What cannot be removed stays, empty or with the part of a report that had room.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// True for an empty file and for one that begins as a report does.
fn holds_report(file: &mut File) -> std::io::Result<bool> {
    let mut start = Vec::new();
    file.take(REPORT_START.len() as u64).read_to_end(&mut start)?;
    Ok(start.is_empty() || start == REPORT_START)
}

/// What went wrong with the file.
fn wrong(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    format!("--report {}: {error}", path.display()).into()
}

/// Why no report may go there.
fn misplaced(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    usage(wrong(path, why))
}
