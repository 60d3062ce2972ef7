//! The log of the requests of several runs: one file, which is whole or not there.

use super::run::{RunError, Task};
use crate::replay::{REQUEST_LOG_COLUMNS, RequestLog};
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
    pub fn finish(self) -> Result<(), RunError> {
        let whole = PartialFile::of(&self.file);
        let write = || {
            let mut to = File::create(whole.path())?;
            writeln!(to, "run,{REQUEST_LOG_COLUMNS}")?;
            for part in &self.parts {
                io::copy(&mut File::open(part.path())?, &mut to)?;
            }
            Ok(())
        };
        let written = write().and_then(|()| whole.keep());
        written.map_err(|error| RunError::RequestLog { path: self.file.clone(), error })
    }
}

impl Task<'_> {
    /// The log of the run, if anybody wants it.
    pub(super) fn request_log(&self) -> Result<Option<RequestLog>, RunError> {
        let Some(path) = self.request_log else {
            return Ok(None);
        };
        let label = imbrex_report::label(&self.case.config.name, &self.case.parameters);
        let log = RequestLog::create(path, &imbrex_report::csv_cell(&label));
        log.map(Some).map_err(|error| RunError::RequestLog { path: path.to_path_buf(), error })
    }
}
