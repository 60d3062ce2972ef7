//! What a document of a comparison holds beside its text.

use crate::table::Table;
use imbrex_report::{Report, TableStyle};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;

/// A report that was read.
#[pyclass(frozen, module = "imbrex._imbrex")]
pub struct CompiledReport {
    report: Report,
}

#[pymethods]
impl CompiledReport {
    /// Of a JSON document.
    #[new]
    fn new(py: Python<'_>, document: &str) -> PyResult<CompiledReport> {
        let report = py.detach(|| Report::from_json(document));
        let report = report.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(CompiledReport { report })
    }

    /// Its tables by name, those of the files that `--out` writes.
    fn tables(&self) -> PyResult<Vec<(String, Table)>> {
        let tables = self.report.tables().into_iter();
        tables.map(|(name, columns)| Ok((name, Table::new(columns)?))).collect()
    }

    /// The table of a terminal.
    fn text(&self) -> String {
        self.report.to_table(TableStyle::Plain)
    }

    /// The table of the comparison as a piece of HTML.
    fn comparison_html(&self) -> String {
        self.report.comparison_html()
    }

    /// The page.
    fn page(&self, py: Python<'_>) -> String {
        py.detach(|| self.report.to_html())
    }

    /// Writes the files of `--out` into a folder; gives their paths.
    fn write(&self, py: Python<'_>, folder: PathBuf) -> PyResult<Vec<PathBuf>> {
        let written = py.detach(|| self.report.write_to(&folder));
        written.map_err(|error| PyOSError::new_err(error.to_string()))
    }
}
