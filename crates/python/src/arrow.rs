//! Tables as Arrow streams, through the PyCapsule interface
//! (<https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>).

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, Float64Array, NullArray, RecordBatch, RecordBatchReader, StringArray, UInt64Array,
};
use arrow_schema::{ArrowError, Field, Schema};
use imbrex_report::{Columns, TableColumn};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// A capsule with a stream, which whoever takes the stream out of it reads and releases. One that nobody takes is
/// released with the capsule.
pub fn capsule(
    py: Python<'_>,
    batches: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(batches), c"arrow_array_stream")
}

/// A table as one batch.
///
/// # Errors
/// Those of Arrow.
pub fn batch(table: &Columns) -> Result<RecordBatch, ArrowError> {
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (name, column) in table.iter() {
        let array: ArrayRef = match column {
            TableColumn::Absent(rows) => Arc::new(NullArray::new(*rows)),
            TableColumn::Texts(texts) => Arc::new(texts.iter().collect::<StringArray>()),
            TableColumn::Counts(counts) => {
                Arc::new(counts.iter().copied().collect::<UInt64Array>())
            }
            TableColumn::Numbers(numbers) => {
                Arc::new(numbers.iter().copied().collect::<Float64Array>())
            }
        };
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}
