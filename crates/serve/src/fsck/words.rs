//! Little-endian numbers from the front of bytes that may hold anything.

/// What is left to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'a> {
    bytes: &'a [u8],
}

impl<'a> Words<'a> {
    /// All of them.
    pub fn new(bytes: &'a [u8]) -> Words<'a> {
        Words { bytes }
    }

    /// The next number of 8 bytes.
    pub fn u64(&mut self) -> Option<u64> {
        let (word, rest) = self.bytes.split_first_chunk::<8>()?;
        self.bytes = rest;
        Some(u64::from_le_bytes(*word))
    }

    /// The next number of 4 bytes.
    pub fn u32(&mut self) -> Option<u32> {
        let (word, rest) = self.bytes.split_first_chunk::<4>()?;
        self.bytes = rest;
        Some(u32::from_le_bytes(*word))
    }

    /// The next number of 2 bytes.
    pub fn u16(&mut self) -> Option<u16> {
        let (word, rest) = self.bytes.split_first_chunk::<2>()?;
        self.bytes = rest;
        Some(u16::from_le_bytes(*word))
    }

    /// The next so many bytes.
    pub fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(usize::try_from(count).ok()?)?;
        self.bytes = rest;
        Some(taken)
    }

    /// Bytes that are left.
    pub fn left(&self) -> u64 {
        self.bytes.len() as u64
    }
}
