//! What can be said of a trace alone, before any stack is run on it, and of a layout without a trace.

pub mod array_forms;
pub mod bound;
mod direct_write;
pub mod log_placement;
pub mod movement;
pub mod segment_forms;

pub use direct_write::DirectWrite;
