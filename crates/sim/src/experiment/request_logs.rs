//! The logs of the requests of several runs: one file, which is whole or not there, or one table.

use imbrex_report::{RequestRow, RequestTable};
use imbrex_traces::PartialFile;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
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
                        self.whole
                            .append(&rows.into_inner().unwrap_or_else(PoisonError::into_inner));
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
