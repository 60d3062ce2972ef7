//! A line for each request of a replay.

use super::{InFlight, name};
use imbrex_core::activity::Activity;
use imbrex_core::operation::Operation;
use imbrex_core::units::{BLOCK_BYTES, Instant};
use imbrex_core::words::Words;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// The columns of a log, behind that of the run. Times are seconds from the start of what is measured.
pub const COLUMNS: &str =
    "request,operation,offset_bytes,length_bytes,arrival_s,start_s,end_s,waited_for";

/// Writes a line of CSV for each request that has ended, in the order of their ends.
pub struct RequestLog {
    /// What stands first in each line, with its comma.
    run: String,
    file: BufWriter<File>,
    /// Of the requests that are open, by their number among those.
    open: Vec<Open>,
    /// Why the last line could not be written.
    error: Option<io::Error>,
}

/// What is known of a request when it is issued.
#[derive(Clone, Copy, Default)]
struct Open {
    first_block: u64,
    issued: Instant,
}

impl RequestLog {
    /// A log in a new file, or in place of what is there. `run` is the first field of each line, as CSV has it.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create(path: &Path, run: &str) -> io::Result<RequestLog> {
        let file = BufWriter::new(File::create(path)?);
        Ok(RequestLog { run: format!("{run},"), file, open: Vec::new(), error: None })
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
        let (run, operation) = (&self.run, name(operation));
        let waited_for = waited_for.map_or("", Activity::word);
        let written = writeln!(
            self.file,
            "{run}{record},{operation},{offset_bytes},{length_bytes},{arrival_s},{start_s},{end_s},{waited_for}"
        );
        self.error = written.err();
    }

    /// Writes what is not written yet.
    ///
    /// # Errors
    /// When a line could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        let flushed = self.file.flush();
        self.error.map_or(flushed, Err)
    }
}
