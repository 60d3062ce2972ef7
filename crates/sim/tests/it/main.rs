//! The integration tests of `imbrex-sim`, one binary.

mod disks;
mod report;
mod traces;
