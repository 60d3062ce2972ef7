//! The logs of the requests of several runs: one file, which is whole or not there, or one table.

use super::run::{RunError, Task};
use crate::replay::{Replayer, RequestLog};
use imbrex_report::{RequestRow, RequestTable};
use imbrex_traces::{PartialFile, TraceError, TraceRecord};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Where requests are logged.
#[derive(Clone, Copy, Debug)]
pub enum RequestSink<'a> {
    /// As lines of CSV in this file.
    File(&'a Path),
    /// As a table in memory.
    Table(&'a Mutex<RequestTable>),
}

impl RequestSink<'_> {
    /// Appends to a table in memory; a file has its rows already.
    pub(super) fn append(self, rows: &RequestTable) {
        if let RequestSink::Table(table) = self {
            table.lock().unwrap_or_else(PoisonError::into_inner).append(rows);
        }
    }
}

impl RunError {
    /// That a log of requests cannot be written.
    pub(super) fn of_log(log: Option<RequestSink<'_>>, error: io::Error) -> RunError {
        let path = match log {
            Some(RequestSink::File(path)) => path.to_path_buf(),
            Some(RequestSink::Table(_)) | None => PathBuf::new(),
        };
        RunError::RequestLog { path, error }
    }
}

impl Task<'_> {
    /// Has a row for each request from now on, if anybody wants that.
    pub(super) fn begin_log<I>(&self, replayer: &mut Replayer<I>) -> Result<(), RunError>
    where
        I: Iterator<Item = Result<TraceRecord, TraceError>>,
    {
        let label = imbrex_report::label(&self.case.config.name, &self.case.parameters);
        let log = match self.files.request_log {
            None => return Ok(()),
            Some(RequestSink::Table(_)) => Ok(RequestLog::in_memory(&label)),
            Some(RequestSink::File(path)) => RequestLog::create(path, &label),
        };
        replayer.log_to(log.map_err(|error| RunError::of_log(self.files.request_log, error))?);
        Ok(())
    }

    /// Writes the rows that are not written yet.
    pub(super) fn end_log<I>(&self, replayer: &mut Replayer<I>) -> Result<(), RunError>
    where
        I: Iterator<Item = Result<TraceRecord, TraceError>>,
    {
        let ended = replayer.take_log().map_or(Ok(None), RequestLog::finish);
        let rows = ended.map_err(|error| RunError::of_log(self.files.request_log, error))?;
        if let (Some(sink), Some(rows)) = (self.files.request_log, rows) {
            sink.append(&rows);
        }
        Ok(())
    }
}

/// The logs of runs that are made at the same time. Each has one of its own beside the one that holds all of them
/// in the end.
pub(super) struct RequestLogs<'a> {
    whole: RequestSink<'a>,
    /// By the number of the run; files are removed when this is dropped.
    parts: Vec<Part>,
}

enum Part {
    File(PartialFile),
    Table(Mutex<RequestTable>),
}

impl<'a> RequestLogs<'a> {
    /// The logs of so many runs, none of which is written yet.
    pub fn new(whole: RequestSink<'a>, runs: usize) -> RequestLogs<'a> {
        let part = |number: usize| match whole {
            RequestSink::Table(_) => Part::Table(Mutex::default()),
            RequestSink::File(file) => {
                let mut name = file.as_os_str().to_owned();
                name.push(format!(".{number}"));
                Part::File(PartialFile::of(Path::new(&name)))
            }
        };
        RequestLogs { whole, parts: (0..runs).map(part).collect() }
    }

    /// The log of one run.
    pub fn of_run(&self, number: usize) -> RequestSink<'_> {
        match &self.parts[number] {
            Part::File(file) => RequestSink::File(file.path()),
            Part::Table(table) => RequestSink::Table(table),
        }
    }

    /// Puts all into one, in the order of the runs: a file in place of what is there.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn finish(self) -> io::Result<()> {
        match self.whole {
            RequestSink::File(path) => self.finish_file(path),
            RequestSink::Table(_) => {
                for part in self.parts {
                    // Each is let go when it is in the whole.
                    if let Part::Table(rows) = part {
                        self.whole.append(&rows.into_inner().unwrap_or_else(PoisonError::into_inner));
                    }
                }
                Ok(())
            }
        }
    }

    fn finish_file(&self, path: &Path) -> io::Result<()> {
        let whole = PartialFile::of(path);
        let write = || -> io::Result<()> {
            let mut to = File::create(whole.path())?;
            writeln!(to, "{}", RequestRow::header())?;
            for part in &self.parts {
                if let Part::File(part) = part {
                    io::copy(&mut File::open(part.path())?, &mut to)?;
                }
            }
            Ok(())
        };
        write().and_then(|()| whole.keep())
    }
}
