//! Block traces: readers for the formats of the field, writers, characteristics and synthetic workloads.
//!
//! [`open`] recognises format and compression by content and returns a [`TraceReader`], an iterator of [`TraceRecord`]s
//! that reads in constant memory. Offsets and times are exact: nothing passes through a float. Lines without a request are
//! counted by reason; a line that is damaged ends the reading with an error that names it.

mod arc;
pub mod characterise;
mod column_map;
mod csv;
mod detect;
mod disksim;
mod error;
mod fio;
mod input;
mod msr;
mod options;
mod reader;
mod record;
mod recording;
mod recording_writer;
mod spc;
pub mod synthetic;
mod tally;
mod text;
mod write;

pub use characterise::{
    Activity, Adjacent, AdjacentAccesses, Aggregation, Bin, BlockRule, Capacity, CdfPoint,
    Characterise, DirectionInfo, Distribution, DriveKind, Gaps, Heat, Idle, LoadSeries, LruPoint,
    Method, Methods, Mostly, Peak, Popularity, Randomness, RequestSizes, Reuse, Sections, Share,
    Shares, Suits, TraceInfo, Verdict, WorkingSetSeries, characterise,
};
pub use column_map::TimeUnit;
pub use error::TraceError;
pub use options::{Format, ReadOptions};
pub use reader::{Source, TraceReader, open};
pub use record::{SourceKind, TraceOperation, TraceRecord};
pub use recording::{RECORDING_VERSION, RecordingHeader};
pub use recording_writer::RecordingWriter;
pub use tally::{ReadCounts, SkipReason, SkippedLines};
pub use write::{WriteFormat, WriteOptions, WriteSummary, write, write_to};
