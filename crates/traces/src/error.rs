//! What can be wrong with a trace, for the person who gave it.

use std::io;

/// Why a trace could not be read or written.
///
/// Every message names the file and, where there is one, line and field, the value found and what is accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be opened or created.
    #[error("{path}: {source}")]
    Open {
        /// File as the user named it.
        path: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// Reading failed part way, or the compressed stream is damaged or truncated.
    #[error("{path}: {container} cannot be read to its end after {records} records: {source}")]
    Read {
        /// File as the user named it.
        path: String,
        /// Compression, or "the file".
        container: &'static str,
        /// Records read before.
        records: u64,
        /// What the decompressor or the operating system said.
        source: io::Error,
    },
    /// Writing failed.
    #[error("{path}: cannot be written after {records} records: {source}")]
    Write {
        /// File as the user named it.
        path: String,
        /// Records written before.
        records: u64,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file holds no byte.
    #[error("{path}: the file is empty; accepted: a trace with at least one request")]
    Empty {
        /// File as the user named it.
        path: String,
    },
    /// The file has lines, but every one of them was skipped.
    #[error(
        "{path}: no request in {lines} lines ({skipped}); accepted: a trace with at least one request"
    )]
    NoRequest {
        /// File as the user named it.
        path: String,
        /// Lines read.
        lines: u64,
        /// The skipped lines by reason.
        skipped: String,
    },
    /// No format fits, several do, or the format is one Imbrex does not read.
    #[error("{path}: {reason}")]
    Format {
        /// File as the user named it.
        path: String,
        /// What was found and what is accepted.
        reason: String,
    },
    /// A line is too short or too long.
    #[error("{path}, line {line}: {found}; accepted: {accepted}")]
    Line {
        /// File as the user named it.
        path: String,
        /// Line number, from 1.
        line: u64,
        /// What was found.
        found: String,
        /// What the format wants.
        accepted: String,
    },
    /// A field has a value the format does not know.
    #[error(
        "{path}, line {line}, field {field} ({name}): {value:?} is {problem}; accepted: {accepted}"
    )]
    Field {
        /// File as the user named it.
        path: String,
        /// Line number, from 1.
        line: u64,
        /// Field number, from 1.
        field: usize,
        /// The format's name for the field.
        name: Box<str>,
        /// Value found.
        value: Box<str>,
        /// What is wrong with it.
        problem: &'static str,
        /// What the format wants.
        accepted: Box<str>,
    },
    /// A record of a binary trace is cut short or has a value the format does not know.
    #[error("{path}, record {record} at byte {byte}: {found}; accepted: {accepted}")]
    BinaryRecord {
        /// File as the user named it.
        path: String,
        /// Record number, from 1.
        record: u64,
        /// Its first byte in the file, or in what the file holds when that is compressed.
        byte: u64,
        /// What was found.
        found: String,
        /// What the format wants.
        accepted: String,
    },
    /// A row of a table has a value that is no part of a request.
    #[error("{path}, row {row}, column {column}: {found}; accepted: {accepted}")]
    Row {
        /// File as the user named it.
        path: String,
        /// Row number, from 1.
        row: u64,
        /// Name of the column.
        column: String,
        /// What was found.
        found: String,
        /// What the map wants.
        accepted: String,
    },
    /// A column map that cannot be understood or does not fit the file.
    #[error("column map {map:?}: {reason}")]
    ColumnMap {
        /// The map as given.
        map: String,
        /// The entry, its value and what is accepted.
        reason: String,
    },
    /// An option the format has no use for, or an impossible value.
    #[error("{option}: {reason}")]
    Option {
        /// Option as the command line calls it.
        option: &'static str,
        /// Why it cannot be applied.
        reason: String,
    },
    /// A combination of traces that cannot be made.
    #[error("{reason}")]
    Combination {
        /// The source or the parameter, its value and what is accepted.
        reason: String,
    },
    /// A recording is damaged, truncated or of another version.
    #[error("{path}: {reason}, after {records} records")]
    Recording {
        /// File as the user named it.
        path: String,
        /// Whole records before the problem.
        records: u64,
        /// What was found and what is accepted.
        reason: String,
    },
    /// Somebody wanted no more of it.
    #[error("{path}: stopped after {records} records")]
    Stopped {
        /// File as the user named it.
        path: String,
        /// Records read before.
        records: u64,
    },
    /// No shipped recipe has the name.
    #[error(
        "no synthetic recipe is called {name:?}{hint}; accepted: {accepted}, or the path of a .toml file"
    )]
    UnknownRecipe {
        /// Name asked for.
        name: String,
        /// The name that was likely meant, in words; empty where none is near.
        hint: String,
        /// Shipped names.
        accepted: String,
    },
    /// A recipe's text is not usable.
    #[error("{path}: {reason}")]
    Recipe {
        /// Recipe file or name.
        path: String,
        /// Field, value and what is accepted.
        reason: String,
    },
}

impl TraceError {
    /// The file, as the user named it.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Open { path, .. }
            | Self::Read { path, .. }
            | Self::Write { path, .. }
            | Self::Empty { path }
            | Self::NoRequest { path, .. }
            | Self::Format { path, .. }
            | Self::Line { path, .. }
            | Self::Field { path, .. }
            | Self::BinaryRecord { path, .. }
            | Self::Row { path, .. }
            | Self::Recording { path, .. }
            | Self::Stopped { path, .. }
            | Self::Recipe { path, .. } => Some(path),
            Self::ColumnMap { .. }
            | Self::Option { .. }
            | Self::Combination { .. }
            | Self::UnknownRecipe { .. } => None,
        }
    }

    /// The line of the file, from 1.
    pub fn line(&self) -> Option<u64> {
        match self {
            Self::Line { line, .. } | Self::Field { line, .. } => Some(*line),
            _ => None,
        }
    }

    /// The value that was found.
    pub fn value(&self) -> Option<&str> {
        match self {
            Self::Field { value, .. } => Some(value),
            Self::Line { found: value, .. }
            | Self::BinaryRecord { found: value, .. }
            | Self::Row { found: value, .. }
            | Self::ColumnMap { map: value, .. }
            | Self::UnknownRecipe { name: value, .. } => Some(value),
            _ => None,
        }
    }
}
