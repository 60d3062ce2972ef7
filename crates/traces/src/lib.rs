//! Block traces: readers for the formats of the field, writers, characteristics and synthetic workloads.
//!
//! [`open`] recognises format and compression by content and returns a [`TraceReader`], an iterator of [`TraceRecord`]s
//! that reads in constant memory. Offsets and times are exact: nothing passes through a float that is none in the file. Lines without a request are
//! counted by reason; a line that is damaged ends the reading with an error that names it.

#![deny(unsafe_code)]

mod alibaba;
mod arc;
mod binary;
mod binary_records;
mod blkparse;
mod blktrace;
mod blktrace_event;
mod blktrace_window;
mod block_rule;
pub mod characterise;
mod column_map;
pub mod combine;
mod csv;
mod csv_plan;
mod detect;
mod devices;
mod disksim;
mod error;
mod fio_reader;
mod fio_writer;
mod fiu;
mod input;
mod line_parser;
mod log_line;
mod losses;
mod msr;
mod objects;
mod options;
mod parquet;
mod partial_file;
mod random_access;
mod read_watch;
mod reader;
mod record;
mod recording;
mod recording_writer;
mod spc;
mod srt;
mod stop_reading;
mod subsecond;
pub mod synthetic;
mod systor;
mod tally;
mod tar;
mod tencent;
mod text;
mod text_trace;
mod vscsi;
mod web_log;
mod write;
mod zip_members;

pub use block_rule::BlockRule;
pub use characterise::{Capacity, Characterise, DirectionInfo, TraceInfo, characterise};
pub use column_map::TimeUnit;
pub use error::TraceError;
pub use fio_reader::FioWait;
pub use losses::{Loss, Losses};
pub use options::{BlkEvent, Format, ObjectId, ReadOptions, parse_delimiter, parse_devices};
pub use partial_file::PartialFile;
pub use read_watch::ReadWatch;
pub use reader::{TraceReader, open, stored_sha256};
pub use record::{Source, SourceKind, TraceOperation, TraceRecord};
pub use recording::{RECORDING_VERSION, RecordingHeader};
pub use recording_writer::RecordingWriter;
pub use stop_reading::StopReading;
pub use subsecond::Subsecond;
pub use tally::{ReadCounts, SkipReason, SkippedLines};
pub use web_log::HttpWrites;
pub use write::{WriteFormat, WriteOptions, WriteSummary, numbered, write, write_to};
