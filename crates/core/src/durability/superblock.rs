//! The superblock: the root of a member, of which four copies are kept.

use super::block::{self, BlockError, BlockKind, Expected, Field, HEADER_BYTES, Header, field};
use super::settings::{JournalSettings, LayerKind};
use crate::lifecycle::Uuid;
use crate::saved::SavedValue;
use alloc::vec::Vec;

/// Copies of the superblock.
pub const COPIES: usize = 4;

/// Bytes of the payload.
pub const BYTES: usize = 96;

/// The fields of the payload, in order and without gaps; offsets count from the start of the
/// block.
pub const FIELDS: [Field; 15] = [
    field("compatible_features", HEADER_BYTES, 4),
    field("read_only_features", HEADER_BYTES + 4, 4),
    field("required_features", HEADER_BYTES + 8, 4),
    field("layer", HEADER_BYTES + 12, 4),
    field("set", HEADER_BYTES + 16, 16),
    field("epoch", HEADER_BYTES + 32, 8),
    field("member_blocks", HEADER_BYTES + 40, 8),
    field("area_blocks", HEADER_BYTES + 48, 8),
    field("checkpoint_blocks", HEADER_BYTES + 56, 8),
    field("checkpoint_place", HEADER_BYTES + 64, 2),
    field("clean", HEADER_BYTES + 66, 2),
    field("checkpoint_checksum", HEADER_BYTES + 68, 4),
    field("checkpoint_bytes", HEADER_BYTES + 72, 8),
    field("replay_from", HEADER_BYTES + 80, 8),
    field("checkpoint_pages", HEADER_BYTES + 88, 8),
];

/// The feature that bands are rewritten in stretches, through two places of the scratch band.
pub const FEATURE_STRETCHES: u32 = 1;
/// The feature that the bands and the scratch band of a translation lie on another disk than its log.
pub const FEATURE_HOME_APART: u32 = 2;
/// The feature that the journal has copies on other members, and membership pages.
pub const FEATURE_MIRRORED: u32 = 4;
/// The feature that a translation which updates in place keeps tables of checksums.
pub const FEATURE_CHECKSUMS: u32 = 8;
/// The feature that the newest checkpoint has parts behind its first one. It comes and goes with the
/// checkpoints, and is no setting of a layer.
pub const FEATURE_PARTS: u32 = 16;
/// The feature that these parts are records. It comes and goes with them.
pub const FEATURE_RECORD_PARTS: u32 = 32;
/// The features that come and go with the checkpoints.
pub const FEATURES_OF_CHECKPOINT: u32 = FEATURE_PARTS | FEATURE_RECORD_PARTS;
/// All features that this build knows.
pub const FEATURES: u32 = FEATURE_STRETCHES
    | FEATURE_HOME_APART
    | FEATURE_MIRRORED
    | FEATURE_CHECKSUMS
    | FEATURES_OF_CHECKPOINT;

/// What the superblock says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub struct Superblock {
    /// Features a reader need not know.
    pub compatible_features: u32,
    /// Features a reader must know to write.
    pub read_only_features: u32,
    /// Features a reader must know at all.
    pub required_features: u32,
    /// The layer that owns the member, as a [`LayerKind`].
    pub layer: u32,
    /// The set of members that were formatted together.
    pub set: Uuid,
    /// The member.
    pub member: Uuid,
    /// Counts the checkpoints.
    pub generation: u64,
    /// Counts the times the member was opened; the journal blocks of other epochs are not
    /// replayed.
    pub epoch: u64,
    /// Blocks of the whole member.
    pub member_blocks: u64,
    /// Blocks of the area of the journal.
    pub area_blocks: u64,
    /// Blocks of each of the two places for a checkpoint.
    pub checkpoint_blocks: u64,
    /// Which of them holds the newest checkpoint: 0 or 1.
    pub checkpoint_place: u16,
    /// The checkpoint was written by a clean shutdown, and no record follows it.
    pub clean: bool,
    /// CRC-32C of the checkpoint's bytes.
    pub checkpoint_checksum: u32,
    /// Bytes of the checkpoint.
    pub checkpoint_bytes: u64,
    /// The first journal block that is not in the checkpoint.
    pub replay_from: u64,
    /// Pages of a checkpoint that has [parts](FEATURE_PARTS), each of which begins on a page of its
    /// own; 0 otherwise.
    pub checkpoint_pages: u64,
}

impl Superblock {
    /// True when the checkpoint has parts behind its first one.
    pub fn has_parts(&self) -> bool {
        self.required_features & FEATURE_PARTS != 0
    }

    /// True when these parts are records.
    pub fn has_record_parts(&self) -> bool {
        self.has_parts() && self.required_features & FEATURE_RECORD_PARTS != 0
    }

    /// Pages of the checkpoint.
    pub fn pages(&self) -> u64 {
        match self.has_parts() {
            true => self.checkpoint_pages,
            false => JournalSettings::checkpoint_blocks_for(self.checkpoint_bytes),
        }
    }

    /// True when the page with this index may have the header, apart from where it lies. The pages of
    /// a part have the generation of the checkpoint that added it: `before` is that of the page
    /// before, and the last page has that of the superblock.
    pub fn has_page(&self, index: u64, header: &Header, before: u64) -> bool {
        let least = if self.has_parts() { before } else { self.generation };
        let is_last = index + 1 == self.pages();
        let least = if is_last { self.generation } else { least };
        (least..=self.generation).contains(&header.generation)
    }

    /// The block of the copy at `address`.
    pub fn encode(&self, address: u64) -> Vec<u8> {
        let mut payload = Vec::with_capacity(BYTES);
        payload.extend_from_slice(&self.compatible_features.to_le_bytes());
        payload.extend_from_slice(&self.read_only_features.to_le_bytes());
        payload.extend_from_slice(&self.required_features.to_le_bytes());
        payload.extend_from_slice(&self.layer.to_le_bytes());
        payload.extend_from_slice(&self.set.0);
        payload.extend_from_slice(&self.epoch.to_le_bytes());
        payload.extend_from_slice(&self.member_blocks.to_le_bytes());
        payload.extend_from_slice(&self.area_blocks.to_le_bytes());
        payload.extend_from_slice(&self.checkpoint_blocks.to_le_bytes());
        payload.extend_from_slice(&self.checkpoint_place.to_le_bytes());
        payload.extend_from_slice(&u16::from(self.clean).to_le_bytes());
        payload.extend_from_slice(&self.checkpoint_checksum.to_le_bytes());
        payload.extend_from_slice(&self.checkpoint_bytes.to_le_bytes());
        payload.extend_from_slice(&self.replay_from.to_le_bytes());
        payload.extend_from_slice(&self.checkpoint_pages.to_le_bytes());
        debug_assert_eq!(payload.len(), BYTES);
        let header = Header {
            kind: BlockKind::Superblock,
            member: self.member,
            address,
            generation: self.generation,
            sequence: 0,
            mark: 0,
        };
        block::seal(&header, &payload)
    }

    /// The superblock in a block that was read at `address`, of whatever member.
    ///
    /// # Errors
    /// When the block is not a whole superblock.
    pub fn decode(
        bytes: &[u8],
        address: u64,
        ignore_address: bool,
    ) -> Result<Superblock, BlockError> {
        let expected =
            Expected { ignore_address, ..Expected::new(BlockKind::Superblock, None, address) };
        let (header, payload) = block::unseal(bytes, expected)?;
        if payload.len() != BYTES {
            return Err(BlockError::Length(payload.len() as u32));
        }
        let u16_at = |at: usize| u16::from_le_bytes([payload[at], payload[at + 1]]);
        let u32_at =
            |at: usize| u32::from_le_bytes(payload[at..at + 4].try_into().expect("4 bytes"));
        let u64_at =
            |at: usize| u64::from_le_bytes(payload[at..at + 8].try_into().expect("8 bytes"));
        Ok(Superblock {
            compatible_features: u32_at(0),
            read_only_features: u32_at(4),
            required_features: u32_at(8),
            layer: u32_at(12),
            set: Uuid(payload[16..32].try_into().expect("16 bytes")),
            member: header.member,
            generation: header.generation,
            epoch: u64_at(32),
            member_blocks: u64_at(40),
            area_blocks: u64_at(48),
            checkpoint_blocks: u64_at(56),
            checkpoint_place: u16_at(64),
            clean: u16_at(66) != 0,
            checkpoint_checksum: u32_at(68),
            checkpoint_bytes: u64_at(72),
            replay_from: u64_at(80),
            checkpoint_pages: u64_at(88),
        })
    }

    /// The kind of layer, when it is known.
    pub fn layer_kind(&self) -> Option<LayerKind> {
        LayerKind::from_number(self.layer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_leave_no_gap() {
        let mut next = HEADER_BYTES;
        for field in FIELDS {
            assert_eq!(field.offset, next, "{}", field.name);
            next += field.bytes;
        }
        assert_eq!(next, HEADER_BYTES + BYTES);
    }

    #[test]
    fn a_superblock_comes_back() {
        let superblock = Superblock {
            compatible_features: 1,
            read_only_features: 2,
            required_features: 3,
            layer: LayerKind::Cache as u32,
            set: Uuid([1; 16]),
            member: Uuid([2; 16]),
            generation: 5,
            epoch: 6,
            member_blocks: 7,
            area_blocks: 8,
            checkpoint_blocks: 9,
            checkpoint_place: 1,
            clean: true,
            checkpoint_checksum: 10,
            checkpoint_bytes: 11,
            replay_from: 12,
            checkpoint_pages: 13,
        };
        let block = superblock.encode(40);
        assert_eq!(Superblock::decode(&block, 40, false), Ok(superblock));
        assert_eq!(Superblock::decode(&block, 41, false), Err(BlockError::Address(40)));
    }
}
