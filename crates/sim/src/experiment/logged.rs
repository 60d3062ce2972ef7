//! Runs that have a row for each request.

use super::request_logs::RequestSink;
use super::run::{RunError, Task};
use crate::record_source::RecordSource;
use crate::replay::{Replayer, RequestLog};
use std::io;
use std::path::PathBuf;

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
        I: RecordSource,
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
        I: RecordSource,
    {
        let ended = replayer.take_log().map_or(Ok(None), RequestLog::finish);
        let rows = ended.map_err(|error| RunError::of_log(self.files.request_log, error))?;
        if let (Some(sink), Some(rows)) = (self.files.request_log, rows) {
            sink.append(&rows);
        }
        Ok(())
    }
}
