//! Leaves of the stack that are real.

mod bounce;
mod file;
mod held;
mod workers;

pub use file::{DirectIo, DiskError, FileDisk};
pub use held::{HeldDisk, HeldWrites};
