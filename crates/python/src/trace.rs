//! Traces as streams of Arrow, in bounded memory.

use crate::arrow::capsule;
use crate::called::Failed;
use arrow_array::{
    ArrayRef, BooleanArray, RecordBatch, RecordBatchReader, StringArray, UInt16Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use imbrex_cli::Failure;
use imbrex_traces::{ReadOptions, TraceReader, TraceRecord};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// Records of a batch.
const BATCH_RECORDS: usize = 64 << 10;

/// A trace, which is read anew by whoever asks for it.
#[pyclass(frozen, module = "imbrex._imbrex")]
pub struct Trace {
    path: String,
    options: ReadOptions,
    limit: u64,
}

/// A trace by its path or recipe, read as the options of a command say; or why it cannot be read.
#[pyfunction]
pub fn open_trace(
    path: String,
    words: Vec<String>,
    limit: Option<u64>,
) -> (Option<Trace>, Option<Failed>) {
    match Trace::open(path, &words, limit) {
        Ok(trace) => (Some(trace), None),
        Err(failure) => (None, Some(Failed::of(&failure))),
    }
}

impl Trace {
    fn open(path: String, words: &[String], limit: Option<u64>) -> Result<Trace, Failure> {
        let options = imbrex_cli::read_options(words)?;
        // Errors come now, and not out of the middle of another library.
        imbrex_traces::open(&path, &options)?;
        Ok(Trace { path, options, limit: limit.unwrap_or(u64::MAX) })
    }
}

#[pymethods]
impl Trace {
    /// The records as a stream of Arrow, from the first.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let reader = imbrex_traces::open(&self.path, &self.options)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        capsule(py, Box::new(Batches { reader, left: self.limit, schema: schema() }))
    }
}

fn schema() -> SchemaRef {
    let field = |name, kind, is_nullable| Field::new(name, kind, is_nullable);
    Arc::new(Schema::new(vec![
        field("time_ns", DataType::UInt64, false),
        field("operation", DataType::Utf8, false),
        field("offset_bytes", DataType::UInt64, false),
        field("length_bytes", DataType::UInt64, false),
        field("device", DataType::UInt16, false),
        field("response_ns", DataType::UInt64, true),
        field("fua", DataType::Boolean, false),
    ]))
}

/// The batches of a trace, read as they are asked for.
struct Batches {
    reader: TraceReader,
    left: u64,
    schema: SchemaRef,
}

impl Batches {
    fn batch(&self, records: &[TraceRecord]) -> Result<RecordBatch, ArrowError> {
        let of = |value: fn(&TraceRecord) -> u64| -> ArrayRef {
            Arc::new(UInt64Array::from_iter_values(records.iter().map(value)))
        };
        let arrays: Vec<ArrayRef> = vec![
            of(|it| it.time_ns),
            Arc::new(StringArray::from_iter_values(records.iter().map(|it| it.operation.name()))),
            of(|it| it.offset_bytes),
            of(|it| it.length_bytes),
            Arc::new(UInt16Array::from_iter_values(records.iter().map(|it| it.device))),
            Arc::new(records.iter().map(|it| it.response_ns).collect::<UInt64Array>()),
            Arc::new(records.iter().map(|it| Some(it.fua)).collect::<BooleanArray>()),
        ];
        RecordBatch::try_new(Arc::clone(&self.schema), arrays)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let wanted = self.left.min(BATCH_RECORDS as u64) as usize;
        let mut records = Vec::with_capacity(wanted);
        for record in self.reader.by_ref().take(wanted) {
            match record {
                Ok(record) => records.push(record),
                Err(error) => return Some(Err(ArrowError::ExternalError(Box::new(error)))),
            }
        }
        self.left -= records.len() as u64;
        match records.is_empty() {
            true => None,
            false => Some(self.batch(&records)),
        }
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
