//! The integration tests of `imbrex-sim`, one binary.

mod calibration;
mod disks;
mod experiments;
mod report;
mod traces;
