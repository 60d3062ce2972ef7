//! What can be said of a trace alone, before any stack is run on it.

pub mod bound;
mod direct_write;

pub use direct_write::DirectWrite;
