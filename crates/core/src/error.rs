//! What can go wrong with an operation, as data that travels in a completion.

use core::fmt;

/// The result a client sees when an operation fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
}

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IoError::Medium => "medium error",
            IoError::NoSpace => "no space left below",
            IoError::NotPermitted => "operation not permitted",
            IoError::Invalid => "invalid extent",
            IoError::ShutDown => "device is shutting down",
        })
    }
}
