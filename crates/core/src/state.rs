//! The words of a checkpoint.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Collects the state of a layer as little-endian numbers.
#[derive(Debug, Default)]
pub struct StateWriter {
    bytes: Vec<u8>,
}

impl StateWriter {
    /// Appends one number.
    pub fn put_u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// What was written so far.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads back what a [`StateWriter`] wrote.
#[derive(Clone, Debug)]
pub struct StateReader<'a> {
    bytes: &'a [u8],
}

/// Why a saved state cannot be taken back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateError {
    /// The layer's own words: what was found and what was expected.
    pub message: String,
}

impl StateError {
    /// An error with the given words.
    pub fn new(message: impl Into<String>) -> StateError {
        StateError { message: message.into() }
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<'a> StateReader<'a> {
    /// A reader over saved bytes.
    pub fn new(bytes: &'a [u8]) -> StateReader<'a> {
        StateReader { bytes }
    }

    /// The next number.
    ///
    /// # Errors
    /// When the state ends before it.
    pub fn take_u64(&mut self) -> Result<u64, StateError> {
        let (word, rest) = self
            .bytes
            .split_first_chunk::<8>()
            .ok_or_else(|| StateError::new("the saved state ends too early"))?;
        self.bytes = rest;
        Ok(u64::from_le_bytes(*word))
    }

    /// True when all was read.
    pub fn is_at_end(&self) -> bool {
        self.bytes.is_empty()
    }
}
