//! What can go wrong with an operation, as data that travels in a completion.

use crate::saved::SavedValue;
use alloc::sync::Arc;
use core::error::Error;
use core::fmt;

/// Why code has failed that a program brought with it, as the program says it.
pub type BroughtFailure = Arc<dyn Error + Send + Sync>;

/// The result a client sees when an operation fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub enum IoError {
    /// The medium could not read or write (EIO).
    Medium,
    /// There is no room left below (ENOSPC).
    NoSpace,
    /// The operation is not permitted on this device (EPERM).
    NotPermitted,
    /// The extent or alignment is not acceptable (EINVAL).
    Invalid,
    /// The device is shutting down (ESHUTDOWN).
    ShutDown,
    /// A write does not start at the write pointer of its zone.
    UnalignedWrite,
    /// A write goes past the end of its zone.
    WriteBoundary,
    /// A read goes past the end of its zone, on a drive that refuses that.
    ReadBoundary,
    /// A read goes past the write pointer, on a drive that refuses that.
    ReadInvalidData,
    /// A write to a full zone, or a zone command for what is no sequential zone.
    InvalidField,
    /// No zone can be opened any more: all that are open were opened explicitly.
    ZoneResources,
    /// The zone can only be read.
    ZoneReadOnly,
    /// The zone is lost.
    ZoneOffline,
    /// The disk is lost: it could not be opened, it has gone, or it was told to fail (EIO). Nothing
    /// that was on it can be reached.
    Lost,
    /// A store of copies has none of the block. It never reaches a client.
    NoCopy,
}

/// What a SCSI drive says of a refused command: a sense key and an additional sense code by their
/// names in SPC-5 and ZBC-2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sense {
    /// The class of the error.
    pub key: &'static str,
    /// The error.
    pub additional: &'static str,
}

impl IoError {
    /// The sense data of CHECK CONDITION with which a zoned drive reports this error; `None` for
    /// errors that do not come from the rules of zones.
    pub fn sense(self) -> Option<Sense> {
        const ILLEGAL_REQUEST: &str = "ILLEGAL REQUEST";
        const DATA_PROTECT: &str = "DATA PROTECT";
        let (key, additional) = match self {
            IoError::UnalignedWrite => (ILLEGAL_REQUEST, "UNALIGNED WRITE COMMAND"),
            IoError::WriteBoundary => (ILLEGAL_REQUEST, "WRITE BOUNDARY VIOLATION"),
            IoError::ReadBoundary => (ILLEGAL_REQUEST, "READ BOUNDARY VIOLATION"),
            IoError::ReadInvalidData => (ILLEGAL_REQUEST, "ATTEMPT TO READ INVALID DATA"),
            IoError::InvalidField => (ILLEGAL_REQUEST, "INVALID FIELD IN CDB"),
            IoError::ZoneResources => (DATA_PROTECT, "INSUFFICIENT ZONE RESOURCES"),
            IoError::ZoneReadOnly => (DATA_PROTECT, "ZONE IS READ ONLY"),
            IoError::ZoneOffline => (DATA_PROTECT, "ZONE IS OFFLINE"),
            _ => return None,
        };
        Some(Sense { key, additional })
    }
}

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IoError::Medium => "medium error",
            IoError::NoSpace => "no space left below",
            IoError::NotPermitted => "operation not permitted",
            IoError::Invalid => "invalid extent",
            IoError::ShutDown => "device is shutting down",
            IoError::UnalignedWrite => "write not at the write pointer of its zone",
            IoError::WriteBoundary => "write past the end of its zone",
            IoError::ReadBoundary => "read past the end of its zone",
            IoError::ReadInvalidData => "read past the write pointer of its zone",
            IoError::InvalidField => "write to a full zone, or command for no sequential zone",
            IoError::ZoneResources => "no further zone can be open",
            IoError::ZoneReadOnly => "zone can only be read",
            IoError::ZoneOffline => "zone is lost",
            IoError::Lost => "disk is lost",
            IoError::NoCopy => "no copy is kept",
        })?;
        match self.sense() {
            Some(Sense { key, additional }) => {
                write!(f, " (CHECK CONDITION, {key}, {additional})")
            }
            None => Ok(()),
        }
    }
}
