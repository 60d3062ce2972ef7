//! A write buffer in memory.

mod recency;
mod replacement;
mod segments;

pub use replacement::{BufferPolicy, Scope};
