//! Trace readers, writers, characteristics and synthetic workloads.

mod bad_input;
mod binary_formats;
mod blkparse;
mod characteristics;
mod characteristics_bounds;
mod characteristics_sections;
mod characteristics_sketches;
mod characteristics_verdicts;
mod combine;
mod compression;
mod fio;
mod formats;
mod fuzz;
mod lru_curve;
mod parquet;
mod recording;
mod sample_traces;
mod samples;
mod synthetic;
mod tar;
mod volumes;
mod web_logs;
mod zip;

use imbrex_traces::{ReadOptions, TraceError, TraceOperation, TraceReader, TraceRecord, open};

use sample_traces::samples;

/// Path of a hand-written fixture.
fn fixture(name: &str) -> String {
    format!("{}/tests/fixtures/traces/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// All records of a fixture, and the reader with its counts.
fn read_fixture(name: &str, options: &ReadOptions) -> (Vec<TraceRecord>, TraceReader) {
    let mut reader = open(&fixture(name), options).unwrap_or_else(|error| panic!("{error}"));
    let records =
        reader.by_ref().map(|record| record.unwrap_or_else(|error| panic!("{error}"))).collect();
    (records, reader)
}

/// Reads bytes under the name `t` to the end, or to the first error.
fn read_bytes(bytes: &[u8], options: &ReadOptions) -> Result<Vec<TraceRecord>, TraceError> {
    TraceReader::from_read("t", std::io::Cursor::new(bytes.to_vec()), options)?.collect()
}

/// A record with everything said.
fn record(
    time_ns: u64,
    device: u16,
    operation: TraceOperation,
    offset_bytes: u64,
    length_bytes: u64,
    response_ns: Option<u64>,
) -> TraceRecord {
    TraceRecord { time_ns, offset_bytes, length_bytes, response_ns, device, operation, fua: false }
}
