//! Why a command failed.

/// Why a command failed, in words for the user.
pub type Failure = Box<dyn std::error::Error>;
