//! Writes traces as Parquet, with the names and types that traces have in Python.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::columns::words;
use super::mapping::{DESCRIPTION_KEY, DEVICE_BYTES_KEY, KIND_KEY, MAP_KEY, NAME_KEY};
use crate::record::{TraceOperation, TraceRecord};
use crate::recording::RecordingHeader;

/// Records of a row group, which are held in memory until it is written.
const GROUP_RECORDS: usize = 1 << 18;

/// The columns of a trace; that of the time is left out where there are no times.
const TIME: &str = "required int64 time_ns (INTEGER(64,false));";
const COLUMNS: &str = "required binary operation (STRING);
    required int64 offset_bytes (INTEGER(64,false));
    required int64 length_bytes (INTEGER(64,false));
    required int32 device (INTEGER(16,false));
    optional int64 response_ns (INTEGER(64,false));
    required boolean fua;";

/// What the columns are, for who reads the file again.
const TIME_MAP: &str = "time=time_ns:ns,";
const MAP: &str = "op=operation:names,off=offset_bytes:bytes,len=length_bytes:bytes,dev=device,resp=response_ns:ns,fua=fua";

/// A Parquet file being written, a row group at a time.
pub(crate) struct ParquetWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    has_times: bool,
    /// The records of the row group to come.
    records: Vec<TraceRecord>,
    operations: [ByteArray; TraceOperation::ALL.len()],
}

fn refused(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        other => io::Error::other(words(&other)),
    }
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Begins a file that says of itself what the header says.
    ///
    /// # Errors
    /// The output refuses the bytes.
    pub(crate) fn new(output: W, header: &RecordingHeader) -> io::Result<Self> {
        let time = if header.has_times { TIME } else { "" };
        let schema = parse_message_type(&format!("message trace {{ {time} {COLUMNS} }}"));
        let schema = Arc::new(schema.map_err(refused)?);
        let time_map = if header.has_times { TIME_MAP } else { "" };
        let pairs = [
            (MAP_KEY, format!("{time_map}{MAP}")),
            (KIND_KEY, header.kind.to_string()),
            (NAME_KEY, header.name.clone()),
            (DESCRIPTION_KEY, header.description.clone()),
            (DEVICE_BYTES_KEY, header.device_bytes.to_string()),
        ];
        let pairs = pairs.map(|(key, value)| KeyValue::new(key.to_owned(), value)).to_vec();
        let file = SerializedFileWriter::new(output, schema, Arc::new(properties(pairs)));
        Ok(Self {
            file: file.map_err(refused)?,
            has_times: header.has_times,
            records: Vec::with_capacity(GROUP_RECORDS),
            operations: TraceOperation::ALL.map(|operation| ByteArray::from(operation.name())),
        })
    }

    /// Appends one record.
    ///
    /// # Errors
    /// The output refuses the bytes.
    pub(crate) fn write(&mut self, record: &TraceRecord) -> io::Result<()> {
        self.records.push(*record);
        if self.records.len() < GROUP_RECORDS { Ok(()) } else { self.write_group() }
    }

    /// Writes what is left and the footer, and returns the output.
    ///
    /// # Errors
    /// The output refuses the bytes.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        if !self.records.is_empty() {
            self.write_group()?;
        }
        self.file.into_inner().map_err(refused)
    }

    fn write_group(&mut self) -> io::Result<()> {
        let mut group = self.file.next_row_group().map_err(refused)?;
        let records = &self.records;
        write_columns(&mut group, records, &self.operations, self.has_times).map_err(refused)?;
        group.close().map_err(refused)?;
        self.records.clear();
        Ok(())
    }
}

/// How the columns are stored: addresses as they are, because few of them come twice; the others by what they have in common.
fn properties(pairs: Vec<KeyValue>) -> WriterProperties {
    let plain = |name: &str| ColumnPath::from(name);
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(pairs))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_column_dictionary_enabled(plain("time_ns"), false)
        .set_column_encoding(plain("time_ns"), Encoding::DELTA_BINARY_PACKED)
        .set_column_dictionary_enabled(plain("offset_bytes"), false)
        .set_column_dictionary_enabled(plain("response_ns"), false)
        .build()
}

fn write_columns<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    records: &[TraceRecord],
    operations: &[ByteArray],
    has_times: bool,
) -> Result<()> {
    if has_times {
        write::<Int64Type, _>(group, records.iter().map(|it| it.time_ns as i64).collect(), None)?;
    }
    let name = |operation| {
        let at = TraceOperation::ALL.iter().position(|it| *it == operation);
        operations[at.expect("every operation is among all")].clone()
    };
    let names = records.iter().map(|it| name(it.operation)).collect();
    write::<ByteArrayType, _>(group, names, None)?;
    write::<Int64Type, _>(group, records.iter().map(|it| it.offset_bytes as i64).collect(), None)?;
    write::<Int64Type, _>(group, records.iter().map(|it| it.length_bytes as i64).collect(), None)?;
    write::<Int32Type, _>(group, records.iter().map(|it| i32::from(it.device)).collect(), None)?;
    let levels: Vec<i16> = records.iter().map(|it| it.response_ns.is_some().into()).collect();
    let responses = records.iter().filter_map(|it| it.response_ns).map(|it| it as i64).collect();
    write::<Int64Type, _>(group, responses, Some(&levels))?;
    write::<BoolType, _>(group, records.iter().map(|it| it.fua).collect(), None)
}

/// Writes the next column of a row group.
fn write<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: Vec<T::T>,
    levels: Option<&[i16]>,
) -> Result<()> {
    let mut column = group.next_column()?.expect("the schema has the column");
    column.typed::<T>().write_batch(&values, levels, None)?;
    column.close()
}
