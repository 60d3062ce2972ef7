//! A line for each request of a replay.

use super::{InFlight, name};
use imbrex_core::activity::Activity;
use imbrex_core::operation::Operation;
use imbrex_core::units::{BLOCK_BYTES, Instant};
use imbrex_core::words::Words;
use imbrex_report::{RequestRow, RequestTable};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Has a row for each request that has ended, in the order of their ends.
pub struct RequestLog {
    /// The label of the run.
    run: String,
    rows: Rows,
    /// Of the requests that are open, by their number among those.
    open: Vec<Open>,
    /// Why the last line could not be written.
    error: Option<io::Error>,
}

/// Where the rows go.
enum Rows {
    /// Lines of CSV.
    File(BufWriter<File>),
    Table(RequestTable),
}

/// What is known of a request when it is issued.
#[derive(Clone, Copy, Default)]
struct Open {
    first_block: u64,
    issued: Instant,
}

impl RequestLog {
    /// A log of the run with this label in a new file, or in place of what is there.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create(path: &Path, run: &str) -> io::Result<RequestLog> {
        Ok(RequestLog::of(run, Rows::File(BufWriter::new(File::create(path)?))))
    }

    /// A log in memory of the run with this label.
    pub fn in_memory(run: &str) -> RequestLog {
        RequestLog::of(run, Rows::Table(RequestTable::default()))
    }

    fn of(run: &str, rows: Rows) -> RequestLog {
        RequestLog { run: run.to_string(), rows, open: Vec::new(), error: None }
    }

    /// A request is issued.
    pub(super) fn issued(&mut self, number: u32, first_block: u64, issued: Instant) {
        let number = number as usize;
        if number >= self.open.len() {
            self.open.resize(number + 1, Open::default());
        }
        self.open[number] = Open { first_block, issued };
    }

    /// A request has ended; what was measured began at `from`.
    pub(super) fn ended(
        &mut self,
        number: u32,
        request: &InFlight,
        waited_for: Option<Activity>,
        now: Instant,
        from: Instant,
    ) {
        if self.error.is_some() {
            return;
        }
        let Open { first_block, issued } = self.open[number as usize];
        let InFlight { record, due, operation, blocks, .. } = *request;
        let [arrival_s, start_s, end_s] =
            [due, issued, now].map(|at| at.since(from).0 as f64 / 1e9);
        let [offset_bytes, length_bytes] = match operation {
            Operation::Flush => [0, 0],
            _ => [first_block, blocks].map(|count| count * BLOCK_BYTES),
        };
        let row = RequestRow {
            request: record,
            operation: name(operation),
            offset_bytes,
            length_bytes,
            arrival_s,
            start_s,
            end_s,
            waited_for: waited_for.map(Activity::word),
        };
        match &mut self.rows {
            Rows::File(file) => self.error = row.write_csv(&self.run, file).err(),
            Rows::Table(table) => table.push(&self.run, &row),
        }
    }

    /// Writes what is not written yet; gives what is in memory.
    ///
    /// # Errors
    /// When a line could not be written.
    pub fn finish(self) -> io::Result<Option<RequestTable>> {
        if let Some(error) = self.error {
            return Err(error);
        }
        match self.rows {
            Rows::File(mut file) => file.flush().map(|()| None),
            Rows::Table(table) => Ok(Some(table)),
        }
    }
}
