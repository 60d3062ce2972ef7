//! `--record`: every request of a served device, in a file that can be replayed.

use crate::failure::{Failure, usage};
use imbrex_core::operation::{Durability, Operation};
use imbrex_serve::connections::RequestRecord;
use imbrex_traces::{RecordingHeader, RecordingWriter, SourceKind, TraceOperation, TraceRecord};
use std::cell::RefCell;
use std::fs::File;
use std::io::{BufWriter, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A recording in progress. A write error is kept until the end: it must not stop the device.
#[derive(Clone)]
pub struct Recording {
    path: PathBuf,
    writer: Rc<RefCell<Option<RecordingWriter<BufWriter<File>>>>>,
    error: Rc<RefCell<Option<std::io::Error>>>,
}

/// The new file of a recording; it goes away again unless the recording begins.
pub struct NewFile {
    path: PathBuf,
    file: File,
    is_wanted: bool,
}

/// Creates the file of a recording, and refuses to write over one that is there: it might be an
/// earlier recording, or a member of the image. This comes before the image is opened for writing,
/// so that a path that cannot be written leaves the image clean.
pub fn create_file(path: &Path) -> Result<NewFile, Failure> {
    let named = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => usage(format!(
            "--record {}: there is such a file already; accepted: a path where none is",
            path.display()
        )),
        _ => format!("--record {}: {error}", path.display()).into(),
    };
    // A pipe or a terminal holds nothing that could be lost.
    let is_special =
        path.metadata().is_ok_and(|found| !found.is_file() && !found.file_type().is_block_device());
    let mut options = File::options();
    let file = options.write(true).create_new(!is_special).open(path).map_err(named)?;
    Ok(NewFile { path: path.to_path_buf(), file, is_wanted: is_special })
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_wanted {
            // What cannot be removed stays, empty.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Recording {
    /// Begins a recording for the device that `stack` makes, `device_bytes` long.
    pub fn begin(mut new: NewFile, stack: &str, device_bytes: u64) -> Result<Recording, Failure> {
        let path = new.path.clone();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or("recording");
        let header = RecordingHeader {
            kind: SourceKind::Recorded,
            name: name.to_string(),
            description: format!("requests of the clients of a served `{stack}` stack"),
            device_bytes,
            has_times: true,
        };
        let file = new.file.try_clone();
        let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
        let file = BufWriter::with_capacity(1 << 20, file);
        let writer = RecordingWriter::new(file, &header)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        new.is_wanted = true;
        Ok(Recording { path, writer: Rc::new(RefCell::new(Some(writer))), error: Rc::default() })
    }

    /// Appends a request.
    pub fn write(&self, request: &RequestRecord) {
        let (operation, fua) = match request.operation {
            Operation::Read => (TraceOperation::Read, false),
            Operation::Write { durability } => {
                (TraceOperation::Write, durability == Durability::Durable)
            }
            Operation::Zero { durability, may_unmap } => {
                let kind =
                    if may_unmap { TraceOperation::Trim } else { TraceOperation::WriteZeroes };
                (kind, durability == Durability::Durable)
            }
            Operation::Flush => (TraceOperation::Flush, false),
            Operation::ZoneOpen
            | Operation::ZoneClose
            | Operation::ZoneReset
            | Operation::ZoneFinish
            | Operation::ZoneReport
            | Operation::Copy(_) => return,
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
        let named =
            |error| format!("{}: the recording is incomplete: {error}", self.path.display());
        if let Some(error) = self.error.borrow_mut().take() {
            return Err(named(error).into());
        }
        if let Some(writer) = self.writer.borrow_mut().take() {
            let file = writer.finish().map_err(named)?;
            let file = file.into_inner().map_err(|error| named(error.into_error()))?;
            file.sync_all().map_err(named)?;
        }
        Ok(())
    }
}
