//! `--record`: every request of a served device, in a file that can be replayed.

use crate::Failure;
use imbrex_core::operation::{Durability, Operation};
use imbrex_serve::connections::RequestRecord;
use imbrex_sim::trace::{
    RecordingHeader, RecordingWriter, SourceKind, TraceOperation, TraceRecord,
};
use std::cell::RefCell;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A recording in progress. A write error is kept until the end: it must not stop the device.
#[derive(Clone)]
pub struct Recording {
    path: PathBuf,
    writer: Rc<RefCell<Option<RecordingWriter<BufWriter<File>>>>>,
    error: Rc<RefCell<Option<std::io::Error>>>,
}

/// Creates the file of a recording. This comes before the image is opened for writing, so that a
/// path that cannot be written leaves the image clean.
pub fn create_file(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| format!("{}: {error}", path.display()).into())
}

impl Recording {
    /// Begins a recording in a new file: `path` as [`create_file`] opened it, for the device that
    /// `stack` makes, `device_bytes` long.
    pub fn begin(
        path: &Path,
        file: File,
        stack: &str,
        device_bytes: u64,
    ) -> Result<Recording, Failure> {
        let name = path
            .file_stem()
            .and_then(|name| name.to_str())
            .unwrap_or("recording");
        let header = RecordingHeader {
            kind: SourceKind::Recorded,
            name: name.to_string(),
            description: format!("requests of the clients of a served `{stack}` stack"),
            device_bytes,
            has_times: true,
        };
        let file = BufWriter::with_capacity(1 << 20, file);
        let writer = RecordingWriter::new(file, &header)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Recording {
            path: path.to_path_buf(),
            writer: Rc::new(RefCell::new(Some(writer))),
            error: Rc::default(),
        })
    }

    /// Appends a request.
    pub fn write(&self, request: &RequestRecord) {
        let (operation, fua) = match request.operation {
            Operation::Read => (TraceOperation::Read, false),
            Operation::Write { durability } => {
                (TraceOperation::Write, durability == Durability::Durable)
            }
            Operation::Zero {
                durability,
                may_unmap,
            } => {
                let kind = if may_unmap {
                    TraceOperation::Trim
                } else {
                    TraceOperation::WriteZeroes
                };
                (kind, durability == Durability::Durable)
            }
            Operation::Flush => (TraceOperation::Flush, false),
            Operation::ZoneOpen
            | Operation::ZoneClose
            | Operation::ZoneReset
            | Operation::ZoneFinish
            | Operation::ZoneReport => return,
        };
        let (offset, length) = (request.offset_bytes, u64::from(request.length_bytes));
        let mut record = TraceRecord::new(request.arrived.0, operation, offset, length);
        record.fua = fua;
        let mut error = self.error.borrow_mut();
        if error.is_none()
            && let Some(writer) = self.writer.borrow_mut().as_mut()
        {
            *error = writer.write(&record).err();
        }
    }

    /// Writes the end of the file, or says what went wrong on the way.
    pub fn finish(self) -> Result<(), Failure> {
        let named = |error| {
            format!(
                "{}: the recording is incomplete: {error}",
                self.path.display()
            )
        };
        if let Some(error) = self.error.borrow_mut().take() {
            return Err(named(error).into());
        }
        if let Some(writer) = self.writer.borrow_mut().take() {
            let file = writer.finish().map_err(named)?;
            let file = file
                .into_inner()
                .map_err(|error| named(error.into_error()))?;
            file.sync_all().map_err(named)?;
        }
        Ok(())
    }
}
