//! The columns of a Parquet trace: their types, and how their values become numbers and operations.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, TimeUnit as TypeUnit, Type};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{BoolType, DataType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::RowGroupMetaData;
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};

use super::pages::{Pages, Stored, wrong};
use super::words::Words;
use crate::column_map::{OperationCode, TimeUnit};
use crate::csv::{Refused, operation, scsi_operation};
use crate::record::TraceOperation;
use crate::tally::SkipReason;

/// What is wrong with a column at one of the rows that were read last.
#[derive(Debug)]
pub(super) struct Problem {
    /// Number of the row among those, from 0.
    pub row: usize,
    pub found: String,
    pub accepted: String,
}

/// The values of one type, read a few at a time into the same memory.
struct Typed<T: DataType> {
    reader: Option<ColumnReaderImpl<T>>,
    /// The values that are there.
    values: Vec<T::T>,
}

impl<T: DataType> Default for Typed<T> {
    fn default() -> Self {
        Self { reader: None, values: Vec::new() }
    }
}

impl<T: DataType> Typed<T> {
    fn open(&mut self, column: &ColumnDescPtr, pages: Pages) {
        self.reader = Some(ColumnReaderImpl::new(Arc::clone(column), Box::new(pages)));
    }

    /// Reads values and levels of up to so many rows; the number of rows.
    fn read(&mut self, rows: usize, levels: &mut Vec<i16>) -> Result<usize> {
        self.values.clear();
        let reader =
            self.reader.as_mut().ok_or_else(|| wrong("no row group is open".to_owned()))?;
        // The library asserts a few things that damage of a page may break, a few times in a million damaged files. That is an
        // error of the file; nothing is read of the column afterwards.
        let values = &mut self.values;
        let read = || reader.read_records(rows, Some(levels), None, values);
        let read = catch_unwind(AssertUnwindSafe(read));
        Ok(read.unwrap_or_else(|_| Err(wrong("a page is damaged".to_owned())))?.0)
    }
}

/// The values of a column, by its type in the file.
enum Values {
    Bool(Typed<BoolType>),
    Int32(Typed<Int32Type>),
    Uint32(Typed<Int32Type>),
    Int64(Typed<Int64Type>),
    Uint64(Typed<Int64Type>),
    Float(Typed<FloatType>),
    Double(Typed<DoubleType>),
    /// Strings, as the numbers of words.
    Strings(Typed<Int32Type>),
}

/// A column that is read.
struct Column {
    descriptor: ColumnDescPtr,
    /// Number of the column in the file.
    leaf: usize,
    values: Values,
    words: Words,
    /// Of each row whether it has a value; empty where all have.
    levels: Vec<i16>,
    /// The level of a row that has a value.
    level_max: i16,
}

impl Column {
    /// `Err` holds the type of a column that cannot be read.
    fn new(descriptor: ColumnDescPtr, leaf: usize) -> std::result::Result<Self, String> {
        let of = type_name(&descriptor);
        if descriptor.max_rep_level() > 0 {
            return Err(format!("a list of {of}"));
        }
        let is_unsigned = is_unsigned(&descriptor);
        let is_decimal = descriptor.converted_type() == ConvertedType::DECIMAL
            || matches!(descriptor.logical_type_ref(), Some(LogicalType::Decimal { .. }));
        let values = match descriptor.physical_type() {
            Type::BOOLEAN => Values::Bool(Typed::default()),
            Type::INT32 if is_decimal => return Err(of),
            Type::INT64 if is_decimal => return Err(of),
            Type::INT32 if is_unsigned => Values::Uint32(Typed::default()),
            Type::INT32 => Values::Int32(Typed::default()),
            Type::INT64 if is_unsigned => Values::Uint64(Typed::default()),
            Type::INT64 => Values::Int64(Typed::default()),
            Type::FLOAT => Values::Float(Typed::default()),
            Type::DOUBLE => Values::Double(Typed::default()),
            Type::BYTE_ARRAY if !is_decimal => Values::Strings(Typed::default()),
            Type::BYTE_ARRAY | Type::INT96 | Type::FIXED_LEN_BYTE_ARRAY => return Err(of),
        };
        let level_max = descriptor.max_def_level();
        let (words, levels) = (Words::default(), Vec::new());
        Ok(Self { descriptor, leaf, values, words, levels, level_max })
    }

    fn open(&mut self, stored: &Arc<Stored>, group: &RowGroupMetaData) -> Result<()> {
        let chunk = group.columns().get(self.leaf);
        let chunk = chunk.ok_or_else(|| wrong("the row group lacks the column".to_owned()))?;
        let pages = Pages::new(stored, chunk, self.words.clone())?;
        let column = &self.descriptor;
        match &mut self.values {
            Values::Bool(typed) => typed.open(column, pages),
            Values::Int32(typed) | Values::Uint32(typed) => typed.open(column, pages),
            Values::Int64(typed) | Values::Uint64(typed) => typed.open(column, pages),
            Values::Float(typed) => typed.open(column, pages),
            Values::Double(typed) => typed.open(column, pages),
            Values::Strings(typed) => typed.open(column, pages),
        }
        Ok(())
    }

    /// Reads so many rows, no fewer.
    fn read(&mut self, rows: usize) -> Result<()> {
        self.levels.clear();
        let levels = &mut self.levels;
        let found = match &mut self.values {
            Values::Bool(typed) => typed.read(rows, levels),
            Values::Int32(typed) | Values::Uint32(typed) => typed.read(rows, levels),
            Values::Int64(typed) | Values::Uint64(typed) => typed.read(rows, levels),
            Values::Float(typed) => typed.read(rows, levels),
            Values::Double(typed) => typed.read(rows, levels),
            Values::Strings(typed) => typed.read(rows, levels),
        }?;
        match found == rows {
            true => Ok(()),
            false => Err(wrong(
                "the column has fewer rows than num_rows of its row group says".to_owned(),
            )),
        }
    }

    /// The first row without a value.
    fn first_null(&self) -> Option<usize> {
        self.levels.iter().position(|&level| level < self.level_max)
    }
}

/// What a number of a column counts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unit {
    /// So many bytes.
    Bytes(u64),
    /// A time, where the map says its unit.
    Time(Option<TimeUnit>),
    /// Nothing: it is a number up to this one.
    UpTo(u64),
}

/// A column of numbers.
pub(super) struct Numbers {
    column: Column,
    /// What one counts.
    scale: u64,
    value_max: u64,
    /// Floats are read, as the unit is one of time.
    is_time: bool,
    may_be_null: bool,
    /// A number for each row; 0 where none is.
    pub values: Vec<u64>,
}

/// What is accepted of a column of numbers, for messages.
const INTEGERS: &str = "an integer column";
const TIMES: &str = "a column of integers, timestamps or floats";

impl Numbers {
    /// `Err` holds why the column does not fit.
    pub(super) fn new(
        descriptor: ColumnDescPtr,
        leaf: usize,
        unit: Unit,
        may_be_null: bool,
    ) -> std::result::Result<Self, String> {
        let is_time = matches!(unit, Unit::Time(_));
        let accepted = if is_time { TIMES } else { INTEGERS };
        let (own, of) = (type_unit(&descriptor), type_name(&descriptor));
        let refused = |of: &str| format!("is {of}; accepted: {accepted}");
        let column = Column::new(descriptor, leaf).map_err(|of| refused(&of))?;
        let is_number = match column.values {
            Values::Strings(_) => false,
            Values::Bool(_) => matches!(unit, Unit::UpTo(_)),
            Values::Float(_) | Values::Double(_) => is_time,
            _ => is_time || own.is_none(),
        };
        if !is_number {
            return Err(refused(&of));
        }
        let (scale, value_max) = match unit {
            Unit::Bytes(bytes) => (bytes, u64::MAX),
            Unit::UpTo(most) => (1, most),
            Unit::Time(unit) => {
                if let (Some(unit), Some(own)) = (unit, own)
                    && unit != own
                {
                    let (unit, own) = (unit.name(), own.name());
                    return Err(format!(
                        "is {of}, whose unit is {own} and not {unit}; accepted: :{own}, or no unit"
                    ));
                }
                (unit.or(own).unwrap_or(TimeUnit::Seconds).nanoseconds(), u64::MAX)
            }
        };
        Ok(Self { column, scale, value_max, is_time, may_be_null, values: Vec::new() })
    }

    pub(super) fn name(&self) -> String {
        name(&self.column.descriptor)
    }

    pub(super) fn open(&mut self, stored: &Arc<Stored>, group: &RowGroupMetaData) -> Result<()> {
        self.column.open(stored, group)
    }

    /// Reads so many rows; the first one that has no number that is accepted.
    ///
    /// # Errors
    /// The file is damaged.
    pub(super) fn read(&mut self, rows: usize) -> Result<Option<Problem>> {
        self.column.read(rows)?;
        let (scale, most) = (self.scale, self.value_max);
        let scaled = |value: u64| {
            if value > most { None } else { value.checked_mul(scale) }
        };
        let signed = |value: i64| u64::try_from(value).ok().and_then(scaled);
        let to = &mut self.values;
        to.clear();
        // A float that is negative, no number or too large becomes none.
        let float = |value: f64| {
            let scaled = (value * scale as f64).round();
            (scaled >= 0.0 && scaled < i64::MAX as f64).then_some(scaled as u64)
        };
        let bad = match &self.column.values {
            Values::Bool(typed) => convert(&typed.values, to, |&it| scaled(u64::from(it))),
            Values::Int32(typed) => convert(&typed.values, to, |&it| signed(i64::from(it))),
            Values::Uint32(typed) => convert(&typed.values, to, |&it| scaled(u64::from(it as u32))),
            Values::Int64(typed) => convert(&typed.values, to, |&it| signed(it)),
            Values::Uint64(typed) => convert(&typed.values, to, |&it| scaled(it as u64)),
            Values::Float(typed) => convert(&typed.values, to, |&it| float(f64::from(it))),
            Values::Double(typed) => convert(&typed.values, to, |&it| float(it)),
            Values::Strings(_) => None,
        };
        let bad = bad.map(|value| (self.row_of(value), self.shown(value)));
        let null = if self.may_be_null { None } else { self.column.first_null() };
        self.spread(rows);
        let null = null.map(|row| (row, "no value".to_owned()));
        let first = bad.into_iter().chain(null).min();
        Ok(first.map(|(row, found)| Problem { row, found, accepted: self.accepted() }))
    }

    /// Whether a row has a value.
    #[inline]
    pub(super) fn is_there(&self, row: usize) -> bool {
        self.column.levels.get(row).is_none_or(|&level| level == self.column.level_max)
    }

    /// Puts each value in its row, from the last one on.
    fn spread(&mut self, rows: usize) {
        let mut next = self.values.len();
        if next == rows || self.column.levels.len() != rows {
            return;
        }
        self.values.resize(rows, 0);
        for row in (0..rows).rev() {
            let is_there = self.column.levels[row] == self.column.level_max;
            next -= usize::from(is_there && next > 0);
            self.values[row] = if is_there { self.values[next] } else { 0 };
        }
    }

    /// The row of a value.
    fn row_of(&self, value: usize) -> usize {
        let is_there = |&(_, &level): &(usize, &i16)| level == self.column.level_max;
        let mut rows = self.column.levels.iter().enumerate().filter(is_there);
        rows.nth(value).map_or(value, |(row, _)| row)
    }

    fn shown(&self, value: usize) -> String {
        match &self.column.values {
            Values::Bool(typed) => typed.values[value].to_string(),
            Values::Int32(typed) => typed.values[value].to_string(),
            Values::Uint32(typed) => (typed.values[value] as u32).to_string(),
            Values::Int64(typed) => typed.values[value].to_string(),
            Values::Uint64(typed) => (typed.values[value] as u64).to_string(),
            Values::Float(typed) => typed.values[value].to_string(),
            Values::Double(typed) => typed.values[value].to_string(),
            Values::Strings(_) => String::new(),
        }
    }

    fn accepted(&self) -> String {
        match self.value_max {
            u64::MAX if self.is_time => "a number from 0 that fits 64 bits in ns".to_owned(),
            u64::MAX => "a number from 0 that fits 64 bits in bytes".to_owned(),
            most => format!("a number from 0 to {most}"),
        }
    }
}

/// Converts values; the first one that does not fit.
#[inline]
fn convert<T>(from: &[T], to: &mut Vec<u64>, number: impl Fn(&T) -> Option<u64>) -> Option<usize> {
    let mut fit = true;
    to.extend(from.iter().map(|value| {
        let number = number(value);
        fit &= number.is_some();
        number.unwrap_or(0)
    }));
    if fit { None } else { from.iter().position(|value| number(value).is_none()) }
}

/// What an operation means.
pub(super) type Meaning = std::result::Result<TraceOperation, SkipReason>;

/// What a value means; `Err` holds the value and what would be accepted.
type Known = std::result::Result<Meaning, (String, String)>;

/// A column of operations.
pub(super) struct Operations {
    column: Column,
    code: OperationCode,
    /// What the words mean, by their numbers.
    words: Vec<Known>,
    /// What numbers mean. They stay few, because one that means nothing ends the reading.
    numbers: Vec<(i64, Known)>,
    /// An operation for each row, or why it is none of a request.
    pub values: Vec<Meaning>,
}

impl Operations {
    /// `Err` holds why the column does not fit.
    pub(super) fn new(
        descriptor: ColumnDescPtr,
        leaf: usize,
        code: OperationCode,
    ) -> std::result::Result<Self, String> {
        let refused =
            |of: String| format!("is {of}; accepted: a column of strings, integers or booleans");
        let of = type_name(&descriptor);
        let column = Column::new(descriptor, leaf).map_err(refused)?;
        match column.values {
            Values::Float(_) | Values::Double(_) => Err(refused(of)),
            _ => Ok(Self {
                column,
                code,
                words: Vec::new(),
                numbers: Vec::new(),
                values: Vec::new(),
            }),
        }
    }

    pub(super) fn name(&self) -> String {
        name(&self.column.descriptor)
    }

    pub(super) fn open(&mut self, stored: &Arc<Stored>, group: &RowGroupMetaData) -> Result<()> {
        self.column.open(stored, group)
    }

    /// Reads so many rows; the first one that has no operation.
    ///
    /// # Errors
    /// The file is damaged.
    pub(super) fn read(&mut self, rows: usize) -> Result<Option<Problem>> {
        self.column.read(rows)?;
        let (code, to) = (&self.code, &mut self.values);
        to.clear();
        let bad = match &self.column.values {
            Values::Strings(typed) => {
                let new = self.column.words.from(self.words.len());
                self.words.extend(new.iter().map(|word| of_word(word, code)));
                let words = &self.words;
                means(&typed.values, to, |&number| &words[number as usize])
            }
            Values::Bool(typed) => {
                let flags = [&b"false"[..], b"true"].map(|word| of_word(word, code));
                means(&typed.values, to, |&flag| &flags[usize::from(flag)])
            }
            Values::Int32(typed) | Values::Uint32(typed) => {
                let wide = typed.values.iter().map(|&number| number.into());
                learn(&mut self.numbers, wide, code);
                means(&typed.values, to, |&number| find(&self.numbers, number.into()))
            }
            Values::Int64(typed) | Values::Uint64(typed) => {
                learn(&mut self.numbers, typed.values.iter().copied(), code);
                means(&typed.values, to, |&number| find(&self.numbers, number))
            }
            Values::Float(_) | Values::Double(_) => None,
        };
        // Where every row has a value, the number of the value is that of the row.
        let null = self.column.first_null().map(|row| Problem {
            row,
            found: "no value".to_owned(),
            accepted: "an operation".to_owned(),
        });
        Ok(bad.into_iter().chain(null).min_by_key(|problem| problem.row))
    }
}

/// Finds what values mean, until one means nothing.
#[inline]
fn means<'a, T>(
    values: &[T],
    to: &mut Vec<Meaning>,
    meaning: impl Fn(&T) -> &'a Known,
) -> Option<Problem> {
    to.reserve(values.len());
    for (row, value) in values.iter().enumerate() {
        match meaning(value) {
            Ok(meaning) => to.push(*meaning),
            Err((found, accepted)) => {
                let (found, accepted) = (found.clone(), accepted.clone());
                return Some(Problem { row, found, accepted });
            }
        }
    }
    None
}

fn of_word(word: &[u8], code: &OperationCode) -> Known {
    match operation(word.trim_ascii(), code) {
        Ok(operation) => Ok(Ok(operation)),
        Err(Refused::Skip(reason)) => Ok(Err(reason)),
        Err(Refused::Unknown(accepted)) => Err((format!("\"{}\"", word.escape_ascii()), accepted)),
    }
}

/// Adds numbers that are met for the first time.
fn learn(known: &mut Vec<(i64, Known)>, numbers: impl Iterator<Item = i64>, code: &OperationCode) {
    for number in numbers {
        if known.iter().all(|(known, _)| *known != number) {
            known.push((number, of_number(number, code)));
        }
    }
}

/// What a number means that was learned.
fn find(known: &[(i64, Known)], number: i64) -> &Known {
    let found = known.iter().find(|(known, _)| *known == number);
    &found.expect("every number is learned").1
}

fn of_number(number: i64, code: &OperationCode) -> Known {
    match code {
        OperationCode::Scsi => match u8::try_from(number) {
            Ok(code) => Ok(scsi_operation(code).ok_or(SkipReason::ScsiOpcode(code))),
            Err(_) => Err((number.to_string(), "a SCSI operation code, 0 to 255".to_owned())),
        },
        _ => of_word(number.to_string().as_bytes(), code),
    }
}

/// The unit of a column of timestamps.
fn type_unit(column: &ColumnDescriptor) -> Option<TimeUnit> {
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Timestamp(timestamp)), _) => Some(match timestamp.unit {
            TypeUnit::MILLIS => TimeUnit::Milliseconds,
            TypeUnit::MICROS => TimeUnit::Microseconds,
            TypeUnit::NANOS => TimeUnit::Nanoseconds,
        }),
        (_, ConvertedType::TIMESTAMP_MILLIS) => Some(TimeUnit::Milliseconds),
        (_, ConvertedType::TIMESTAMP_MICROS) => Some(TimeUnit::Microseconds),
        _ => None,
    }
}

fn is_unsigned(column: &ColumnDescriptor) -> bool {
    match column.logical_type_ref() {
        Some(LogicalType::Integer(integer)) => !integer.is_signed,
        _ => matches!(
            column.converted_type(),
            ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64
        ),
    }
}

/// The type of a column as the format calls it.
fn type_name(column: &ColumnDescriptor) -> String {
    match column.converted_type() {
        ConvertedType::NONE => column.physical_type().to_string(),
        converted => format!("{} ({converted})", column.physical_type()),
    }
}

/// The name of a column, with those of what it is in.
pub(super) fn name(column: &ColumnDescriptor) -> String {
    column.path().string()
}

/// What an error of the library says, as one line.
pub(super) fn words(error: &ParquetError) -> String {
    let text = match error {
        ParquetError::General(text) | ParquetError::EOF(text) | ParquetError::NYI(text) => {
            text.clone()
        }
        ParquetError::External(error) => error.to_string(),
        other => other.to_string(),
    };
    let printable = |letter: char| if letter.is_control() { '?' } else { letter };
    text.chars().map(printable).take(400).collect()
}
