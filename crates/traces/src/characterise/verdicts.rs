//! Which kind of drive a workload suits, judged from the trace alone.

use serde::Serialize;

/// A kind of drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriveKind {
    /// A disk without shingles.
    Plain,
    /// A drive-managed shingled disk with a persistent cache.
    DriveManaged,
    /// A host-managed shingled disk that is written as a log.
    HostManaged,
    /// An SSD as a cache in front of a disk.
    SsdCache,
}

/// How well a workload suits a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Suits {
    /// Every rule speaks for it.
    Well,
    /// Some rules speak against it.
    Partly,
    /// The rules speak against it.
    Badly,
    /// The trace does not say enough.
    Unknown,
}

/// One drive, a verdict from the trace alone, and the numbers that made it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The kind of drive.
    pub drive: DriveKind,
    /// How well it suits.
    pub verdict: Suits,
    /// The verdict in one sentence.
    pub words: String,
    /// The rules that made it, each with its number and threshold.
    pub evidence: Vec<String>,
}
