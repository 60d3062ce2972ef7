//! A table as a Parquet file.

use imbrex_report::{Columns, TableColumn};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use std::fs::File;
use std::io;
use std::sync::Arc;

/// Writes a table: texts as UTF-8, whole numbers without a sign in 64 bits, other numbers as doubles. What is absent in a row
/// is null. Tables that are equal give the same bytes.
///
/// # Errors
/// When the file cannot be written.
pub fn write_parquet(table: &Columns, file: File) -> io::Result<()> {
    let written = write(table, file);
    written.map_err(|error| match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error.to_string()),
        },
        error => io::Error::other(error.to_string()),
    })
}

fn write(table: &Columns, file: File) -> Result<(), ParquetError> {
    let compression = Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut writer = SerializedFileWriter::new(file, schema(table)?, Arc::new(properties))?;
    let mut rows = writer.next_row_group()?;
    for (_, column) in table.iter() {
        let mut writer = rows.next_column()?.ok_or_else(too_few)?;
        match column {
            TableColumn::Absent(rows) => {
                write_column::<DoubleType>(&mut writer, (0..*rows).map(|_| None))?;
            }
            TableColumn::Texts(texts) => {
                write_column::<ByteArrayType>(
                    &mut writer,
                    texts.iter().map(|text| text.map(ByteArray::from)),
                )?;
            }
            TableColumn::Counts(counts) => {
                let values = counts.iter().map(|count| count.map(u64::cast_signed));
                write_column::<Int64Type>(&mut writer, values)?;
            }
            TableColumn::Numbers(numbers) => {
                write_column::<DoubleType>(&mut writer, numbers.iter().copied())?;
            }
        }
        writer.close()?;
    }
    rows.close()?;
    writer.close()?;
    Ok(())
}

fn too_few() -> ParquetError {
    ParquetError::General("the schema has fewer columns than the table".to_string())
}

fn schema(table: &Columns) -> Result<TypePtr, ParquetError> {
    let field = |(name, column): (&str, &TableColumn)| {
        let (physical, logical) = match column {
            TableColumn::Absent(_) | TableColumn::Numbers(_) => (Physical::DOUBLE, None),
            TableColumn::Texts(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            TableColumn::Counts(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        field.build().map(Arc::new)
    };
    let fields = table.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(Type::group_type_builder("results").with_fields(fields).build()?))
}

/// Writes the values that are there, and for each row whether one is.
fn write_column<T: parquet::data_type::DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    rows: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    for value in rows {
        levels.push(i16::from(value.is_some()));
        values.extend(value);
    }
    writer.typed::<T>().write_batch(&values, Some(&levels), None)?;
    Ok(())
}
