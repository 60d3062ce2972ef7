//! The Python package `imbrex`, as far as it is compiled: commands, tables and traces. `python/imbrex` has the names
//! that users write.

mod arrow;
mod called;
mod policy;
mod report;
mod table;
mod trace;

use pyo3::prelude::*;

/// What is compiled of the package `imbrex`.
#[pymodule]
mod _imbrex {
    use super::*;

    #[pymodule_export]
    use super::called::{Answer, Failed, answer, main, options};
    #[pymodule_export]
    use super::policy::Cache;
    #[pymodule_export]
    use super::report::CompiledReport;
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::trace::{Trace, open_trace};

    /// The version of Imbrex, with the commit it was built from.
    #[pyfunction]
    fn version() -> &'static str {
        imbrex_cli::version()
    }
}
