//! Leaves of the stack that are real.

mod file;
mod workers;

pub use file::{DiskError, FileDisk};
