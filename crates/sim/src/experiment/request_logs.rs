//! The log of the requests of several runs: one file, which is whole or not there.

use crate::replay::REQUEST_LOG_COLUMNS;
use imbrex_traces::PartialFile;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The logs of runs that are made at the same time. Each has a file of its own beside the one that holds all of them
/// in the end.
pub(super) struct RequestLogs {
    file: PathBuf,
    /// By the number of the run; they are removed when this is dropped.
    parts: Vec<PartialFile>,
}

impl RequestLogs {
    /// The logs of so many runs, none of which is written yet.
    pub fn new(file: &Path, runs: usize) -> RequestLogs {
        let part = |number: usize| {
            let mut name = file.as_os_str().to_owned();
            name.push(format!(".{number}"));
            PartialFile::of(Path::new(&name))
        };
        RequestLogs { file: file.to_path_buf(), parts: (0..runs).map(part).collect() }
    }

    /// The file of one run.
    pub fn of_run(&self, number: usize) -> &Path {
        self.parts[number].path()
    }

    /// Puts all into one file, in the order of the runs, in place of what is there.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn finish(self) -> io::Result<()> {
        let whole = PartialFile::of(&self.file);
        let write = || -> io::Result<()> {
            let mut to = File::create(whole.path())?;
            writeln!(to, "run,{REQUEST_LOG_COLUMNS}")?;
            for part in &self.parts {
                io::copy(&mut File::open(part.path())?, &mut to)?;
            }
            Ok(())
        };
        write().and_then(|()| whole.keep())
    }
}
