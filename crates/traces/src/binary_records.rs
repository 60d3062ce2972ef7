//! Binary records, cut off a file one after another, and the numbers in them.

use super::TraceError;
use super::input::Input;

/// What is wrong with a record, and what the format wants instead.
#[derive(Debug)]
pub(super) struct RecordProblem {
    pub found: String,
    pub accepted: String,
}

impl RecordProblem {
    pub(super) fn new(found: String, accepted: &str) -> Box<Self> {
        let accepted = accepted.to_owned();
        Box::new(Self { found, accepted })
    }
}

/// Cuts an [`Input`] into records.
pub(super) struct Records {
    pub(super) input: Input,
    /// Number of the record returned last, from 1.
    number: u64,
    /// First byte of the record returned last, and the one behind everything taken so far.
    record_byte: u64,
    next_byte: u64,
    taken: usize,
}

impl Records {
    /// Passes over a header, which must be at hand.
    pub(super) fn new(input: Input, header_bytes: usize) -> Self {
        Self { input, number: 0, record_byte: 0, next_byte: 0, taken: header_bytes }
    }

    /// The next record, or `None` at the end of the file. A file may not end inside a record.
    #[inline]
    pub(super) fn next(&mut self, length: usize) -> Result<Option<&[u8]>, TraceError> {
        self.drop_taken();
        let found = self.gather(length)?;
        if found == 0 {
            return Ok(None);
        }
        self.record_byte = self.next_byte;
        self.number += 1;
        if found < length {
            return Err(self.at(*RecordProblem::new(
                format!("the file ends after {found} bytes of the record"),
                &format!("whole records of {length} bytes"),
            )));
        }
        self.taken = length;
        Ok(Some(&self.input.bytes()[..length]))
    }

    /// The first bytes of the next record; fewer only at the end of the file.
    #[inline]
    pub(super) fn peek(&mut self, length: usize) -> Result<&[u8], TraceError> {
        self.drop_taken();
        let found = self.gather(length)?;
        Ok(&self.input.bytes()[..found])
    }

    /// Passes over bytes that belong to the record returned last; they must fit half a buffer.
    pub(super) fn skip(&mut self, length: usize) -> Result<(), TraceError> {
        self.drop_taken();
        let found = self.gather(length)?;
        if found < length {
            return Err(self.at(*RecordProblem::new(
                format!("the file ends after {found} bytes of the data behind the record"),
                &format!("{length} bytes, as the record says"),
            )));
        }
        self.taken = length;
        Ok(())
    }

    /// A problem of the record returned last.
    pub(super) fn at(&self, problem: RecordProblem) -> TraceError {
        TraceError::BinaryRecord {
            path: self.input.path().to_owned(),
            record: self.number,
            byte: self.record_byte,
            found: problem.found,
            accepted: problem.accepted,
        }
    }

    fn drop_taken(&mut self) {
        self.input.consume(self.taken);
        self.next_byte += self.taken as u64;
        self.taken = 0;
    }

    /// Brings this many bytes to hand, or as many as there are; returns how many those are.
    #[inline]
    fn gather(&mut self, length: usize) -> Result<usize, TraceError> {
        while self.input.bytes().len() < length && self.input.fill(self.number)? {}
        Ok(self.input.bytes().len().min(length))
    }
}

/// The number at a place of a record, little-endian. The caller knows that the record is long enough.
#[inline]
pub(super) fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(record[at..at + 2].try_into().expect("two bytes"))
}

/// As [`u16_at`].
#[inline]
pub(super) fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"))
}

/// As [`u32_at`], big-endian.
#[inline]
pub(super) fn u32_be_at(record: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(record[at..at + 4].try_into().expect("four bytes"))
}

/// As [`u16_at`].
#[inline]
pub(super) fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"))
}
