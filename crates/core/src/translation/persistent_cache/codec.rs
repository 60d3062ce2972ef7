//! The fields of a durable translation's checkpoint, as the page of the format draws them: a row
//! of little-endian words, of which two hold more than one field.
//!
//! ```text
//! | head | (log entry, its checksums) ...
//! | ranges | zeroed range ... | ranges | lost range ...
//! | scratch held | scratch and stretch, when there is one | band ...
//! | open bands | (open band, its checksums) ...
//! ```
//!
//! Checksums are two to a word; one that stands alone fills the lower half of its word.

use crate::durability::block::{Field, field};

/// The head, offsets from the first byte of the checkpoint.
pub const HEAD_FIELDS: [Field; 11] = [
    field("words_version", 0, 8),
    field("log_blocks", 8, 8),
    field("device_blocks", 16, 8),
    field("bands", 24, 8),
    field("band_lengths_checksum", 32, 8),
    field("scratch_start", 40, 8),
    field("bands_end", 48, 8),
    field("newest_generation", 56, 8),
    field("log_head", 64, 8),
    field("log_tail", 72, 8),
    field("log_entries", 80, 8),
];
/// An entry of the log; the checksums of its blocks follow.
pub const ENTRY_FIELDS: [Field; 3] =
    [field("entry_blocks", 0, 3), field("entry_lba", 3, 5), field("entry_position", 8, 8)];
/// The checksum of a block.
pub const CHECKSUM_FIELDS: [Field; 1] = [field("block_checksum", 0, 4)];
/// What comes before zeroed ranges, and before lost ones.
pub const RANGES_FIELDS: [Field; 1] = [field("ranges", 0, 8)];
/// A zeroed or a lost range.
pub const RANGE_FIELDS: [Field; 2] = [field("range_lba", 0, 8), field("range_blocks", 8, 8)];
/// Whether the scratch band holds a band, and how: 1 when it holds the rest of it, 2 when a place
/// of it holds a stretch.
pub const SCRATCH_HELD_FIELDS: [Field; 1] = [field("scratch_held", 0, 8)];
/// What it holds, when it does.
pub const SCRATCH_FIELDS: [Field; 3] =
    [field("scratch_band", 0, 8), field("scratch_from", 8, 8), field("scratch_blocks", 16, 8)];
/// What follows when it is a stretch.
pub const STRETCH_FIELDS: [Field; 1] = [field("scratch_place", 0, 8)];
/// A band; as many as the head says.
pub const BAND_FIELDS: [Field; 4] = [
    field("band_table", 0, 8),
    field("band_write_pointer", 8, 8),
    field("band_home", 16, 8),
    field("band_blocks", 24, 8),
];
/// What comes before open bands.
pub const OPEN_BANDS_FIELDS: [Field; 1] = [field("open_bands", 0, 8)];
/// An open band; its checksums follow.
pub const OPEN_FIELDS: [Field; 2] = [field("open_band", 0, 8), field("open_checksums", 8, 8)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::translation::log::PACKET_BLOCKS_MAX;

    #[test]
    fn the_fields_leave_no_gap_and_end_with_a_word() {
        let tables: [&[Field]; 10] = [
            &HEAD_FIELDS,
            &ENTRY_FIELDS,
            &RANGES_FIELDS,
            &RANGE_FIELDS,
            &SCRATCH_HELD_FIELDS,
            &SCRATCH_FIELDS,
            &STRETCH_FIELDS,
            &BAND_FIELDS,
            &OPEN_BANDS_FIELDS,
            &OPEN_FIELDS,
        ];
        for fields in tables {
            let mut next = 0;
            for field in fields {
                assert_eq!(field.offset, next, "{}", field.name);
                next += field.bytes;
            }
            assert_eq!(next % 8, 0, "{}", fields[0].name);
        }
    }

    #[test]
    fn the_length_of_an_entry_fills_its_bytes() {
        assert_eq!(
            PACKET_BLOCKS_MAX,
            (1 << (8 * ENTRY_FIELDS[0].bytes)) - 1,
            "the rest of the word is the address"
        );
    }
}
