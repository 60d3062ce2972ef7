//! The records in the payload of a journal block.
//!
//! ```text
//! | kind 1 | has data 1 | payload bytes 2 | data blocks 4 | payload | start 8 | crc 4 x blocks |
//! ```
//!
//! The last two are there only when the record has data.

use super::block::{Field, PAYLOAD_BYTES, field};
use crate::error::IoError;
use crate::extent::Extent;
use alloc::vec::Vec;

/// Bytes before the payload of a record.
pub(super) const HEAD_BYTES: usize = 8;
/// Most bytes that a record may take, its head, payload and checksums together.
pub const RECORD_BYTES_MAX: usize = PAYLOAD_BYTES;

/// Most blocks of data that the records of one journal block can speak of: those of one record
/// without a payload.
pub const DATA_BLOCKS_PER_JOURNAL_BLOCK_MAX: u64 = ((PAYLOAD_BYTES - HEAD_BYTES - 8) / 4) as u64;

/// The fields at the start of a record, offsets from its start.
pub const FIELDS: [Field; 4] = [
    field("record_kind", 0, 1),
    field("record_has_data", 1, 1),
    field("record_payload_bytes", 2, 2),
    field("record_data_blocks", 4, 4),
];

/// The data a record speaks of: blocks of the journal's own port that were written before the
/// record, with their checksums. Recovery reads those that no flush had covered and says which of
/// them are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataRef<'a> {
    /// Where the data lies on the journal's port.
    pub extent: Extent,
    /// The checksum of each block, as [`Context::checksum`](crate::layer::Context::checksum)
    /// gives it.
    pub checksums: &'a [u32],
}

/// A record as it stands in a journal block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// What it says; the numbers are the layer's own.
    pub kind: u8,
    /// The words that belong to it.
    pub payload: &'a [u8],
    /// Where its data lies, when it has data.
    pub data: Option<Extent>,
    /// The checksums of the data, little-endian.
    pub checksums: &'a [u8],
}

impl Record<'_> {
    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        length(self.payload.len(), self.data.map(|_| self.checksums.len()))
    }

    /// The checksum of the data block with the given index.
    pub fn checksum(&self, index: usize) -> u32 {
        let at = index * 4;
        u32::from_le_bytes(self.checksums[at..at + 4].try_into().expect("4 bytes"))
    }
}

/// Bytes of a record.
pub(super) fn bytes_of(payload: &[u8], data: Option<DataRef<'_>>) -> usize {
    length(payload.len(), data.map(|data| 4 * data.checksums.len()))
}

/// The head, the payload, and with data where that begins and its checksums.
fn length(payload_bytes: usize, checksum_bytes: Option<usize>) -> usize {
    HEAD_BYTES + payload_bytes + checksum_bytes.map_or(0, |checksums| 8 + checksums)
}

/// Appends a record to the payload of a block.
pub(super) fn put(out: &mut Vec<u8>, kind: u8, payload: &[u8], data: Option<DataRef<'_>>) {
    out.push(kind);
    out.push(u8::from(data.is_some()));
    out.extend_from_slice(&(payload.len() as u16).to_le_bytes());
    let blocks = data.map_or(0, |data| data.extent.blocks.0 as u32);
    out.extend_from_slice(&blocks.to_le_bytes());
    out.extend_from_slice(payload);
    if let Some(data) = data {
        assert_eq!(data.checksums.len() as u64, data.extent.blocks.0, "a checksum for each block");
        out.extend_from_slice(&data.extent.start.0.to_le_bytes());
        for checksum in data.checksums {
            out.extend_from_slice(&checksum.to_le_bytes());
        }
    }
}

/// The records in the payload of a journal block. A payload that cannot be taken apart ends with an
/// error.
pub fn records(payload: &[u8]) -> impl Iterator<Item = Result<Record<'_>, IoError>> {
    let mut rest = payload;
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let record = take(rest);
        rest = record.as_ref().map_or(&[], |(_, rest)| *rest);
        Some(record.map(|(record, _)| record).ok_or(IoError::Medium))
    })
}

fn take(bytes: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
    let payload_bytes = usize::from(u16::from_le_bytes([head[2], head[3]]));
    let blocks = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    let (payload, rest) = rest.split_at_checked(payload_bytes)?;
    let (data, checksums, rest) = match (head[1], blocks) {
        (0, 0) => (None, &[][..], rest),
        (1, 1..) => {
            let (start, rest) = rest.split_first_chunk::<8>()?;
            let start = u64::from_le_bytes(*start);
            start.checked_add(u64::from(blocks))?;
            let (checksums, rest) = rest.split_at_checked((blocks as usize).checked_mul(4)?)?;
            (Some(Extent::new(start, u64::from(blocks))), checksums, rest)
        }
        _ => return None,
    };
    let record = Record { kind: head[0], payload, data, checksums };
    Some((record, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn records_come_back_in_order() {
        let mut bytes = Vec::new();
        put(&mut bytes, 3, b"abc", None);
        let data = DataRef { extent: Extent::new(70, 2), checksums: &[5, 6] };
        put(&mut bytes, 4, b"", Some(data));
        assert_eq!(bytes.len(), bytes_of(b"abc", None) + bytes_of(b"", Some(data)));
        let found: Vec<Record<'_>> = records(&bytes).map(|record| record.expect("whole")).collect();
        assert_eq!((found[0].kind, found[0].payload), (3, &b"abc"[..]));
        assert_eq!(found[0].data, None);
        assert_eq!(found[1].data, Some(Extent::new(70, 2)));
        assert_eq!((found[1].checksum(0), found[1].checksum(1)), (5, 6));
        assert_eq!(found.len(), 2);
    }

    proptest! {
        #[test]
        fn any_bytes_come_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut errors = 0;
            for record in records(&bytes) {
                errors += usize::from(record.is_err());
            }
            prop_assert!(errors <= 1);
        }
    }
}
