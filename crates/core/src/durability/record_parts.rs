//! Parts of a checkpoint that are records: what was recorded since the checkpoint before, once more.
//!
//! A journal block is a block of its own however little it holds, and the ring has room for few. Behind the map
//! the same records lie close together. The map and they say what a new map would say, so a map is written only
//! when they have become many.

use super::block::PAYLOAD_BYTES;
use super::record::{self, DataRef};
use crate::saved::SavedValue;
use alloc::vec::Vec;

/// All parts together may be as long as the map divided by this, for recovery keeps and replays each record; and
/// as long as a page in any case, for the shortest map takes one.
const MAP_BYTES_PER_BYTE: u64 = 4;

/// The records that the next checkpoint may have as its part.
#[derive(Debug, Default, SavedValue)]
pub(super) struct RecordParts {
    /// The records since the newest checkpoint has begun, in their order.
    records: Vec<u8>,
    /// There are more, so they cannot be a part.
    are_too_many: bool,
    /// Bytes that parts may still add behind the newest map.
    left: u64,
}

impl RecordParts {
    /// A map of so many bytes is being written, which says what every record so far says.
    pub fn begin_map(&mut self, bytes: u64) {
        self.records.clear();
        self.are_too_many = false;
        self.left = (bytes / MAP_BYTES_PER_BYTE).max(PAYLOAD_BYTES as u64);
    }

    /// A record is appended.
    #[inline]
    pub fn note(&mut self, kind: u8, payload: &[u8], data: Option<DataRef<'_>>) {
        let bytes = record::bytes_of(payload, data) + self.records.len();
        if self.are_too_many || bytes as u64 > self.left {
            self.are_too_many = true;
            self.records.clear();
            return;
        }
        record::put(&mut self.records, kind, payload, data);
    }

    /// Bytes of the part that the next checkpoint may have; none when it needs a new map.
    pub fn bytes(&self) -> Option<u64> {
        let can_be = !self.are_too_many && !self.records.is_empty();
        can_be.then_some(self.records.len() as u64)
    }

    /// The part of the checkpoint that begins now. Later records are for the next one.
    pub fn take(&mut self) -> Vec<u8> {
        let records = core::mem::take(&mut self.records);
        self.left -= records.len() as u64;
        records
    }

    /// A planted bug: the newest record is not told.
    pub fn leave_out_newest(&mut self) {
        if let Some(Ok(newest)) = record::records(&self.records).last() {
            let kept = self.records.len() - newest.bytes();
            self.records.truncate(kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durability::record::HEAD_BYTES;
    use crate::extent::Extent;

    #[test]
    fn records_are_kept_up_to_a_share_of_the_map() {
        let mut parts = RecordParts::default();
        parts.note(1, b"ab", None);
        assert_eq!(parts.bytes(), None, "there is no map yet");
        parts.begin_map(4 * 5000);
        assert_eq!(parts.bytes(), None, "a map says it all");
        parts.note(1, b"ab", None);
        parts.note(2, b"", None);
        let first = parts.take();
        assert_eq!(first.len(), 18);
        let kinds: Vec<u8> =
            record::records(&first).map(|record| record.expect("whole").kind).collect();
        assert_eq!(kinds, [1, 2]);
        assert_eq!(parts.bytes(), None, "they are told");
        parts.note(3, &[0; 3000 - HEAD_BYTES], None);
        parts.note(4, &[0; 1982 - HEAD_BYTES], None);
        assert_eq!(parts.bytes(), Some(4982), "with the first part they are 5000");
        parts.note(5, b"", None);
        assert_eq!(parts.bytes(), None, "and now they are too many");
        parts.begin_map(32);
        parts.note(3, b"", None);
        assert_eq!(parts.bytes(), Some(8), "a page has room for it");
    }

    #[test]
    fn the_bug_leaves_out_one_record() {
        let mut parts = RecordParts::default();
        parts.begin_map(1000);
        parts.note(1, b"ab", None);
        let data = DataRef { extent: Extent::new(70, 2), checksums: &[5, 6] };
        parts.note(4, b"abc", Some(data));
        parts.leave_out_newest();
        assert_eq!(parts.bytes(), Some(10));
    }
}
