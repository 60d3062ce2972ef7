//! Tables for pandas, polars, DuckDB and whatever else reads Arrow.

use crate::arrow::{batch, capsule};
use arrow_array::{RecordBatch, RecordBatchIterator};
use imbrex_report::Columns;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use serde_json::Value;

/// A table whose columns others read where they are, without a copy.
#[pyclass(frozen, module = "imbrex._imbrex")]
pub struct Table {
    batch: RecordBatch,
    columns: Columns,
}

impl Table {
    /// Of columns.
    pub fn new(columns: Columns) -> PyResult<Table> {
        let batch = batch(&columns).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Table { batch, columns })
    }
}

#[pymethods]
impl Table {
    /// A table of a JSON list of objects, a row each, with columns for these of their keys.
    #[staticmethod]
    fn of_json(keys: Vec<String>, text: &str) -> PyResult<Table> {
        let wrong = |error: &dyn std::fmt::Display| PyValueError::new_err(format!("{error}"));
        let records: Vec<serde_json::Map<String, Value>> =
            serde_json::from_str(text).map_err(|error| wrong(&error))?;
        Table::new(Columns::of_records(keys, &records))
    }

    /// How many rows it has.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// The names of its columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The table as CSV with a header.
    fn to_csv(&self) -> String {
        self.columns.to_csv()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The table as a stream of Arrow. Who asks for another schema gets this one, which the interface allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        capsule(py, Box::new(batches))
    }
}
