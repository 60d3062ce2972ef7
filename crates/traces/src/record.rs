//! One request of a trace.

use serde::{Deserialize, Serialize};

/// What a traced request asks of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceOperation {
    /// Read `length_bytes` from `offset_bytes`.
    Read,
    /// Write `length_bytes` at `offset_bytes`.
    Write,
    /// Write zeroes: like a write, without data on the wire.
    WriteZeroes,
    /// Discard a range; it may read back as zeroes.
    Trim,
    /// Make every completed write durable; offset and length are 0.
    Flush,
}

impl TraceOperation {
    pub(super) const ALL: [Self; 5] =
        [Self::Read, Self::Write, Self::WriteZeroes, Self::Trim, Self::Flush];

    /// The operation of a name.
    pub(super) fn of_name(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.name().as_bytes() == name)
    }

    /// The name of the operation where it stands in text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::WriteZeroes => "write-zeroes",
            Self::Trim => "trim",
            Self::Flush => "flush",
        }
    }

    /// True for the operations that change what the range holds: write, write zeroes and trim.
    pub fn changes_data(self) -> bool {
        matches!(self, Self::Write | Self::WriteZeroes | Self::Trim)
    }
}

/// One request of a trace.
///
/// Offsets and lengths are in bytes and need not be aligned: replay rounds outward to whole 4 KiB blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRecord {
    /// Arrival, nanoseconds after the first record. Never decreases (a reader clamps and counts inversions) and is 0
    /// throughout where the format has no times.
    pub time_ns: u64,
    /// First byte.
    pub offset_bytes: u64,
    /// Number of bytes.
    pub length_bytes: u64,
    /// Response time measured when the trace was taken, nanoseconds.
    pub response_ns: Option<u64>,
    /// Device (disk number, application storage unit, volume) the request went to.
    pub device: u16,
    /// What was asked.
    pub operation: TraceOperation,
    /// Forced unit access: the request is durable when it completes.
    pub fua: bool,
}

impl TraceRecord {
    /// A plain read or write of device 0 without a measured response time.
    pub fn new(
        time_ns: u64,
        operation: TraceOperation,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Self {
        Self {
            time_ns,
            offset_bytes,
            length_bytes,
            response_ns: None,
            device: 0,
            operation,
            fua: false,
        }
    }
}

/// Where a workload comes from; every report states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// Taken from a production system by others.
    Captured,
    /// Recorded by Imbrex itself under real software.
    Recorded,
    /// Generated from a recipe.
    Synthetic,
}

impl std::fmt::Display for SourceKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Captured => "captured",
            Self::Recorded => "recorded",
            Self::Synthetic => "synthetic",
        })
    }
}

/// Where a workload comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Captured, recorded or synthetic.
    pub kind: SourceKind,
    /// What it is, for people.
    pub label: String,
    /// Size of the device it was taken from, bytes, where the trace says.
    pub device_bytes: Option<u64>,
}
