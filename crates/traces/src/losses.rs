//! What of a trace gets lost in the format it is written in.

use std::collections::BTreeMap;
use std::fmt;

use super::fio_writer;
use super::record::{SourceKind, TraceOperation, TraceRecord};
use super::recording::RecordingHeader;
use super::write::WriteFormat;

/// Something that a format cannot say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loss {
    /// A flush, which is left out.
    Flush,
    /// A trim, which is left out.
    Trim,
    /// A request at no multiple of 512 bytes, which is left out.
    OffSector,
    /// A write of zeroes, which becomes a write.
    WriteZeroes,
    /// That a request is durable when it completes.
    ForcedUnitAccess,
    /// A request that is longer than the format allows, which becomes several.
    Split,
    /// The part of a time below the unit of the format.
    FineTime,
    /// A measured response time.
    Response,
    /// That no response time was measured: the format has a column for it, which gets a 0.
    NoResponse,
    /// That the trace has no times: every request is at 0.
    NoTimes,
    /// That the trace is synthetic, or was recorded by Imbrex.
    Kind,
    /// The size of the device.
    DeviceSize,
}

impl Loss {
    /// What was lost so many times, in words.
    fn words(self, times: u64) -> String {
        let text = match self {
            Loss::Flush => "flushes (left out)",
            Loss::Trim => "trims (left out)",
            Loss::OffSector => "requests off a multiple of 512 bytes (left out)",
            Loss::WriteZeroes => "writes of zeroes (now writes)",
            Loss::ForcedUnitAccess => "marks of forced unit access",
            Loss::Split => "requests as one (now several)",
            Loss::FineTime => "times below the unit of the format",
            Loss::Response => "response times",
            Loss::NoResponse => "unknown response times (now 0)",
            Loss::NoTimes => return "that there are no times (now all 0)".to_owned(),
            Loss::Kind => return "that it is synthetic or recorded".to_owned(),
            Loss::DeviceSize => return "the size of the device".to_owned(),
        };
        format!("{text}: {times}")
    }

    /// Whether the record itself is left out of the file.
    pub(super) fn leaves_out(self) -> bool {
        matches!(self, Loss::Flush | Loss::Trim | Loss::OffSector)
    }

    /// Whether this record has what would be lost.
    fn is_in(self, record: &TraceRecord, format: WriteFormat) -> bool {
        match self {
            Loss::Flush => record.operation == TraceOperation::Flush,
            Loss::Trim => record.operation == TraceOperation::Trim,
            Loss::OffSector => !record.offset_bytes.is_multiple_of(512),
            Loss::WriteZeroes => record.operation == TraceOperation::WriteZeroes,
            Loss::ForcedUnitAccess => record.fua,
            Loss::Split => record.length_bytes > fio_writer::LENGTH_BYTES_MAX,
            Loss::FineTime => {
                let is_fine = |time_ns: u64| !time_ns.is_multiple_of(format.time_unit_ns());
                let is_kept = format == WriteFormat::Msr;
                is_fine(record.time_ns) || is_kept && record.response_ns.is_some_and(is_fine)
            }
            Loss::Response => record.response_ns.is_some(),
            Loss::NoResponse => record.response_ns.is_none(),
            Loss::NoTimes | Loss::Kind | Loss::DeviceSize => false,
        }
    }

    /// Whether the trace as a whole has what would be lost.
    fn is_in_header(self, header: &RecordingHeader, format: WriteFormat) -> bool {
        match self {
            Loss::NoTimes => !header.has_times,
            Loss::Kind => match header.kind {
                SourceKind::Captured => false,
                SourceKind::Recorded => true,
                // The host column says so.
                SourceKind::Synthetic => format != WriteFormat::Msr,
            },
            Loss::DeviceSize => header.device_bytes > 0,
            _ => false,
        }
    }
}

impl WriteFormat {
    /// What the format has no place for; `docs/formats/traces.md` has the table.
    fn cannot_say(self) -> &'static [Loss] {
        match self {
            WriteFormat::Recording => &[Loss::FineTime, Loss::Response],
            WriteFormat::Msr => &[
                Loss::Flush,
                Loss::Trim,
                Loss::WriteZeroes,
                Loss::ForcedUnitAccess,
                Loss::FineTime,
                Loss::NoResponse,
                Loss::NoTimes,
                Loss::Kind,
                Loss::DeviceSize,
            ],
            WriteFormat::Spc => &[
                Loss::Flush,
                Loss::Trim,
                Loss::OffSector,
                Loss::WriteZeroes,
                Loss::ForcedUnitAccess,
                Loss::Response,
                Loss::NoTimes,
                Loss::Kind,
                Loss::DeviceSize,
            ],
            WriteFormat::Fio => &[
                Loss::WriteZeroes,
                Loss::ForcedUnitAccess,
                Loss::Split,
                Loss::FineTime,
                Loss::Response,
                Loss::NoTimes,
                Loss::Kind,
                Loss::DeviceSize,
            ],
            WriteFormat::Parquet => &[],
        }
    }

    /// The unit of times in the format.
    fn time_unit_ns(self) -> u64 {
        match self {
            WriteFormat::Recording | WriteFormat::Fio => 1000,
            WriteFormat::Msr => 100,
            WriteFormat::Spc | WriteFormat::Parquet => 1,
        }
    }
}

/// What was lost of one trace, and how often.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses(BTreeMap<Loss, u64>);

impl Losses {
    /// What is lost before the first record.
    pub(super) fn of_header(header: &RecordingHeader, format: WriteFormat) -> Losses {
        let lost = format.cannot_say().iter();
        let lost = lost.filter(|loss| loss.is_in_header(header, format));
        Losses(lost.map(|loss| (*loss, 1)).collect())
    }

    /// Counts what of a record is lost; false if it is left out altogether, which is then all that is said of it.
    pub(super) fn count(&mut self, record: &TraceRecord, format: WriteFormat) -> bool {
        for loss in format.cannot_say() {
            if loss.is_in(record, format) {
                *self.0.entry(*loss).or_default() += 1;
                if loss.leaves_out() {
                    return false;
                }
            }
        }
        true
    }

    /// How often this was lost.
    pub fn of(&self, loss: Loss) -> u64 {
        self.0.get(&loss).copied().unwrap_or(0)
    }

    /// Whether the file says all that the trace said.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (loss, times)) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{}", loss.words(*times))?;
        }
        Ok(())
    }
}
