//! Block traces: readers for the formats of the field, writers, characteristics and synthetic workloads.

mod error;
mod record;
pub mod synthetic;

pub use error::TraceError;
pub use record::{SourceKind, TraceOperation, TraceRecord};
