//! Parquet: a file of columns, of which a map says what they hold.
//!
//! A file of our own says its map in its key-value metadata. The columns of another one are named by `--map`, or have names
//! that speak for themselves. Row groups are read one after another, a batch of rows at a time, and only the columns that are
//! named.

mod columns;
mod mapping;
mod pages;
mod words;
mod writer;

use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use super::TraceError;
use super::input::Input;
use super::options::ReadOptions;
use super::record::{Source, TraceOperation, TraceRecord};
use super::tally::{SkipReason, Tally};
use super::text::{POSSIBLE_RANGE, range_is_possible};
use columns::{Meaning, Numbers, Operations, Problem, words};
use mapping::Mapping;
use pages::Stored;

pub(super) use writer::ParquetWriter;

/// First and last bytes of a file.
const MAGIC: &[u8] = b"PAR1";
/// The same of one whose footer is encrypted.
const ENCRYPTED_MAGIC: &[u8] = b"PARE";

/// True of the first bytes of a file.
pub(super) fn looks_like(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) || bytes.starts_with(ENCRYPTED_MAGIC)
}

/// The columns of a trace, with the part that each plays.
struct Columns {
    time: Option<Numbers>,
    offset: Numbers,
    length: Numbers,
    operation: Option<Operations>,
    device: Option<Numbers>,
    response: Option<Numbers>,
    fua: Option<Numbers>,
}

impl Columns {
    fn numbers(&mut self) -> impl Iterator<Item = &mut Numbers> {
        let always = [&mut self.offset, &mut self.length];
        let others = [&mut self.time, &mut self.device, &mut self.response, &mut self.fua];
        always.into_iter().chain(others.into_iter().flatten())
    }

    /// The first rows of those that were read last.
    fn rows<'a>(&'a self, rows: usize, absent: &'a [u64]) -> Rows<'a> {
        let of = |column: &'a Option<Numbers>| {
            column.as_ref().map_or(&absent[..rows], |column| &column.values[..rows])
        };
        Rows {
            time: of(&self.time),
            offset: &self.offset.values[..rows],
            length: &self.length.values[..rows],
            operation: self.operation.as_ref().map(|column| &column.values[..rows]),
            device: of(&self.device),
            response: self.response.as_ref(),
            fua: of(&self.fua),
        }
    }
}

/// Some rows of a file.
struct Rows<'a> {
    time: &'a [u64],
    offset: &'a [u64],
    length: &'a [u64],
    operation: Option<&'a [Meaning]>,
    device: &'a [u64],
    response: Option<&'a Numbers>,
    fua: &'a [u64],
}

impl Rows<'_> {
    /// Appends the requests of the rows up to one that cannot be a request, which it returns.
    fn put(&self, tally: &mut Tally, batch: &mut Vec<TraceRecord>) -> Option<Problem> {
        batch.reserve(self.offset.len());
        for (row, (&offset_bytes, &length_bytes)) in self.offset.iter().zip(self.length).enumerate()
        {
            let operation = match self.operation.map_or(Ok(TraceOperation::Read), |them| them[row])
            {
                Ok(operation) => operation,
                Err(reason) => {
                    tally.counts.skipped.count(reason);
                    continue;
                }
            };
            if length_bytes == 0 && operation != TraceOperation::Flush {
                tally.counts.skipped.count(SkipReason::ZeroLength);
                continue;
            }
            if !range_is_possible(offset_bytes, length_bytes) {
                return Some(Problem {
                    row,
                    found: format!("a request of {length_bytes} bytes at byte {offset_bytes}"),
                    accepted: POSSIBLE_RANGE.to_owned(),
                });
            }
            let response = self.response.filter(|response| response.is_there(row));
            batch.push(tally.accept(TraceRecord {
                time_ns: self.time[row],
                offset_bytes,
                length_bytes,
                response_ns: response.map(|response| response.values[row]),
                device: self.device[row] as u16,
                operation,
                fua: self.fua[row] != 0,
            }));
        }
        None
    }
}

/// A Parquet file that is being read.
pub(super) struct ParquetTrace {
    path: String,
    sha256: Option<String>,
    stored: Arc<Stored>,
    metadata: ParquetMetaData,
    columns: Columns,
    /// The row group that comes next, and the rows that are left of the one at hand.
    next_group: usize,
    left: u64,
    /// Rows read.
    rows: u64,
    /// The values of a column that is not there: zeroes.
    absent: Vec<u64>,
    finished: bool,
}

impl ParquetTrace {
    /// Reads the footer; what it says of the columns is added to what was detected.
    pub(super) fn new(
        mut input: Input,
        options: &ReadOptions,
        detected: &mut String,
    ) -> Result<(Self, Source), TraceError> {
        let path = input.path().to_owned();
        let fail = |reason: String| TraceError::Format { path: path.clone(), reason };
        if input.bytes().starts_with(ENCRYPTED_MAGIC) {
            return Err(fail(
                "the footer of the Parquet file is encrypted; accepted: one that is not".to_owned(),
            ));
        }
        if !looks_like(input.bytes()) {
            return Err(fail(
                "the file does not start with PAR1; accepted: a Parquet file".to_owned(),
            ));
        }
        let stored = Arc::new(Stored::new(input.random_access()?));
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&stored.footer());
        let metadata = metadata.map_err(|error| {
            fail(format!("the footer of the Parquet file cannot be read: {}", words(&error)))
        })?;
        let mapping = Mapping::of(&path, &metadata, options.columns.as_deref())?;
        detected.push_str(&format!(", {}", mapping.describe()));
        let (columns, source) = (mapping.columns, mapping.source);
        let sha256 = input.sha256();
        let trace = Self {
            path,
            sha256,
            stored,
            metadata,
            columns,
            next_group: 0,
            left: 0,
            rows: 0,
            absent: Vec::new(),
            finished: false,
        };
        Ok((trace, source))
    }

    pub(super) fn has_times(&self) -> bool {
        self.columns.time.is_some()
    }

    /// SHA-256 of the file, once it has been read.
    pub(super) fn sha256(&self) -> Option<String> {
        self.sha256.clone().filter(|_| self.finished)
    }

    /// Appends records of up to `wanted` rows; true at the end of the file.
    pub(super) fn read(
        &mut self,
        wanted: usize,
        tally: &mut Tally,
        batch: &mut Vec<TraceRecord>,
    ) -> Result<bool, TraceError> {
        while self.left == 0 {
            if !self.open_next()? {
                self.finished = true;
                return Ok(true);
            }
        }
        let rows = usize::try_from(self.left).map_or(wanted, |left| left.min(wanted));
        let problem = self.read_columns(rows)?;
        let good = problem.as_ref().map_or(rows, |(_, problem)| problem.row);
        tally.counts.lines += good as u64;
        self.absent.resize(rows.max(self.absent.len()), 0);
        let impossible = self.columns.rows(good, &self.absent).put(tally, batch);
        if let Some(problem) = impossible {
            return Err(self.at(self.columns.offset.name(), problem));
        }
        if let Some((column, problem)) = problem {
            return Err(self.at(column, problem));
        }
        self.rows += rows as u64;
        self.left -= rows as u64;
        Ok(false)
    }

    /// Goes to the next row group; false behind the last one.
    fn open_next(&mut self) -> Result<bool, TraceError> {
        let Some(group) = self.metadata.row_groups().get(self.next_group) else {
            return Ok(false);
        };
        let damaged = |column: &str, error: &ParquetError| {
            damaged(&self.path, self.next_group, column, error)
        };
        self.left = u64::try_from(group.num_rows()).map_err(|_| TraceError::Format {
            path: self.path.clone(),
            reason: format!(
                "row group {}: num_rows is {}; accepted: 0 or more",
                self.next_group + 1,
                group.num_rows()
            ),
        })?;
        for column in self.columns.numbers() {
            let opened = column.open(&self.stored, group);
            opened.map_err(|error| damaged(&column.name(), &error))?;
        }
        if let Some(column) = &mut self.columns.operation {
            let opened = column.open(&self.stored, group);
            opened.map_err(|error| damaged(&column.name(), &error))?;
        }
        self.next_group += 1;
        Ok(true)
    }

    /// Reads so many rows of every column; the first row with a value that is not accepted, and its column.
    fn read_columns(&mut self, rows: usize) -> Result<Option<(String, Problem)>, TraceError> {
        let group = self.next_group - 1;
        let damaged =
            |column: &str, error: &ParquetError| damaged(&self.path, group, column, error);
        let mut first: Option<(String, Problem)> = None;
        let mut note = |name: String, problem: Option<Problem>| {
            let is_first =
                |problem: &Problem| first.as_ref().is_none_or(|(_, first)| problem.row < first.row);
            if let Some(problem) = problem.filter(is_first) {
                first = Some((name, problem));
            }
        };
        for column in self.columns.numbers() {
            match column.read(rows) {
                Ok(None) => {}
                Ok(problem) => note(column.name(), problem),
                Err(error) => return Err(damaged(&column.name(), &error)),
            }
        }
        if let Some(column) = &mut self.columns.operation {
            match column.read(rows) {
                Ok(None) => {}
                Ok(problem) => note(column.name(), problem),
                Err(error) => return Err(damaged(&column.name(), &error)),
            }
        }
        Ok(first)
    }

    fn at(&self, column: String, problem: Problem) -> TraceError {
        TraceError::Row {
            path: self.path.clone(),
            row: self.rows + problem.row as u64 + 1,
            column,
            found: problem.found,
            accepted: problem.accepted,
        }
    }
}

/// A row group, from 0, that cannot be read.
fn damaged(path: &str, group: usize, column: &str, error: &ParquetError) -> TraceError {
    let reason = format!("row group {}, column {column}: {}", group + 1, words(error));
    TraceError::Format { path: path.to_owned(), reason }
}
