//! Trace readers, writers, characteristics and synthetic workloads.

mod bad_input;
mod characteristics;
mod compression;
mod formats;
mod recording;
mod samples;
mod synthetic;

use std::path::PathBuf;

use imbrex_sim::trace::{ReadOptions, TraceError, TraceOperation, TraceReader, TraceRecord, open};

/// Path of a hand-written fixture.
fn fixture(name: &str) -> String {
    format!(
        "{}/tests/fixtures/traces/{name}",
        env!("CARGO_MANIFEST_DIR")
    )
}

/// All records of a fixture, and the reader with its counts.
fn read_fixture(name: &str, options: &ReadOptions) -> (Vec<TraceRecord>, TraceReader) {
    let mut reader = open(&fixture(name), options).unwrap_or_else(|error| panic!("{error}"));
    let records = reader
        .by_ref()
        .map(|record| record.unwrap_or_else(|error| panic!("{error}")))
        .collect();
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
    TraceRecord {
        time_ns,
        offset_bytes,
        length_bytes,
        response_ns,
        device,
        operation,
        fua: false,
    }
}

/// The folder of sample traces beside the repository, or `None`, loudly.
pub fn samples() -> Option<PathBuf> {
    let from_environment =
        std::env::var_os("IMBREX_SHARED").map(|shared| PathBuf::from(shared).join("traces"));
    let mut folders = from_environment.into_iter().chain(
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .map(|folder| folder.join("shared/traces"))
            .collect::<Vec<_>>(),
    );
    let found = folders.find(|folder| folder.is_dir());
    if found.is_none() {
        eprintln!(
            "SKIPPED: no folder shared/traces above the repository and no IMBREX_SHARED; sample traces are not tested"
        );
    }
    found
}
