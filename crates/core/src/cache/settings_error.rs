//! Why a cache cannot be as its settings say.

use alloc::string::String;
use core::fmt;

/// A setting that cannot be: the words say which, its value and what is accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheSettingsError {
    /// The setting, its value and what is accepted.
    pub message: String,
}

impl fmt::Display for CacheSettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

pub(super) fn error<T>(message: String) -> Result<T, CacheSettingsError> {
    Err(CacheSettingsError { message })
}
