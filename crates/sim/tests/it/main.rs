//! The integration tests of `imbrex-sim`, one binary.

mod report;
mod traces;
