//! fio iolog version 3: what `fio --read_iolog` replays, with times in microseconds and a file for each device.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::record::{TraceOperation, TraceRecord};

/// fio reads the length of a request as 32 bits; longer ones are written in pieces of this size.
pub(super) const LENGTH_BYTES_MAX: u64 = 1 << 30;

/// The name of the file that stands for device 0; users replace it by their device.
const FILE: &str = "imbrex-trace";

/// The name of the file that stands for a device.
fn file_of(device: u16) -> String {
    match device {
        0 => FILE.to_owned(),
        other => format!("{FILE}-{other}"),
    }
}

/// An iolog being written. The file of a device is added and opened before the first request to it.
pub(super) struct FioWriter<W: Write> {
    output: W,
    opened: BTreeSet<u16>,
    /// The device of the record before, with the name of its file.
    last: Option<(u16, String)>,
    time_us: u64,
}

impl<W: Write> FioWriter<W> {
    /// Writes the line before all others.
    pub fn new(mut output: W) -> io::Result<FioWriter<W>> {
        writeln!(output, "fio version 3 iolog")?;
        Ok(FioWriter { output, opened: BTreeSet::new(), last: None, time_us: 0 })
    }

    /// Writes one record. A write of zeroes becomes a write.
    pub fn write(&mut self, record: &TraceRecord) -> io::Result<()> {
        self.time_us = record.time_ns / 1000;
        self.turn_to(record.device)?;
        let FioWriter { output, last: Some((_, file)), time_us, .. } = self else {
            unreachable!("a file was turned to")
        };
        let action = match record.operation {
            TraceOperation::Read => "read",
            TraceOperation::Write | TraceOperation::WriteZeroes => "write",
            TraceOperation::Trim => "trim",
            TraceOperation::Flush => return writeln!(output, "{time_us} {file} sync 0 0"),
        };
        let mut at = 0;
        while at < record.length_bytes {
            let length = (record.length_bytes - at).min(LENGTH_BYTES_MAX);
            writeln!(output, "{time_us} {file} {action} {} {length}", record.offset_bytes + at)?;
            at += length;
        }
        Ok(())
    }

    /// Makes the file of a device the last one, and adds it if it is new.
    fn turn_to(&mut self, device: u16) -> io::Result<()> {
        if (self.last.as_ref()).is_some_and(|(last, _)| *last == device) {
            return Ok(());
        }
        let file = file_of(device);
        if self.opened.insert(device) {
            let time_us = self.time_us;
            writeln!(self.output, "{time_us} {file} add\n{time_us} {file} open")?;
        }
        self.last = Some((device, file));
        Ok(())
    }

    /// Writes the lines after the last request and gives the output back.
    pub fn finish(mut self) -> io::Result<W> {
        for device in &self.opened {
            writeln!(self.output, "{} {} close", self.time_us, file_of(*device))?;
        }
        Ok(self.output)
    }
}
