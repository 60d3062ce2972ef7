//! Where a journal lies on its member, and whose it is.

use super::block::PAYLOAD_BYTES;
use super::ids::Lsn;
use super::membership::PAGES;
use super::superblock::{COPIES, FEATURE_MIRRORED};
use crate::extent::Extent;
use crate::layer::Port;
use crate::units::BlockCount;

/// Which layer owns a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum LayerKind {
    /// A write-back cache; the member is its flash.
    Cache = 1,
    /// A persistent cache over bands; the member is its disk.
    PersistentCache = 2,
    /// An array; each copy of its journal is on a member of the array.
    Array = 3,
    /// A write buffer in memory; the member holds the log of what it has answered.
    MemoryBuffer = 4,
    /// Segments that are rewritten in place; the member is where what is to be written is kept first.
    Segments = 5,
    /// Circular logs of S-blocks; the member is their disk.
    SBlocks = 6,
}

impl LayerKind {
    /// The kind with a number.
    pub fn from_number(number: u32) -> Option<LayerKind> {
        [
            LayerKind::Cache,
            LayerKind::PersistentCache,
            LayerKind::Array,
            LayerKind::MemoryBuffer,
            LayerKind::Segments,
            LayerKind::SBlocks,
        ]
        .into_iter()
        .find(|kind| *kind as u32 == number)
    }
}

/// Another port than the journal's that holds data of which records speak.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataPort {
    /// The port.
    pub port: Port,
    /// Blocks of the node there.
    pub blocks: BlockCount,
    /// The kind of record whose data lies there; that of every other kind lies on the journal's
    /// own port.
    pub kind: u8,
}

/// Where a journal lies and whose it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalSettings {
    /// The layer.
    pub layer: LayerKind,
    /// The port of the member.
    pub port: Port,
    /// Blocks of the member.
    pub member_blocks: BlockCount,
    /// The area of the journal, in the addresses of the port. Its ends hold the superblocks, so it
    /// must not depend on anything that only the superblock knows.
    pub area: Extent,
    /// Blocks of each of the two places for a checkpoint.
    pub checkpoint_blocks: u64,
    /// What a reader must know of the layer: some of [`FEATURES`](super::superblock::FEATURES).
    pub required_features: u32,
    /// The port that is flushed together with the journal's, where a layer keeps data on two.
    pub data: Option<DataPort>,
}

impl JournalSettings {
    /// Blocks that a place for a checkpoint of at most `bytes` bytes needs.
    pub fn checkpoint_blocks_for(bytes: u64) -> u64 {
        bytes.div_ceil(PAYLOAD_BYTES as u64).max(1)
    }

    /// Blocks of an area with places for such checkpoints and a ring of `ring_blocks`. Where the
    /// journal is mirrored, its two membership pages are taken from the ring.
    pub fn area_blocks_for(checkpoint_blocks: u64, ring_blocks: u64) -> u64 {
        COPIES as u64 + 2 * checkpoint_blocks + ring_blocks
    }

    /// The block of each copy of the superblock.
    pub fn superblock_addresses(&self) -> [u64; COPIES] {
        let (start, end) = (self.area.start.0, self.area.end().0);
        [start, start + 1, end - 2, end - 1]
    }

    /// True when the journal has copies on other members.
    pub fn is_mirrored(&self) -> bool {
        self.required_features & FEATURE_MIRRORED != 0
    }

    /// True when a checkpoint may say what has changed by the records of it. A cache says so itself, slot by slot. The
    /// maps of segments and arrays are of regions and rows, that of a buffer is of what fits in memory: they are short.
    pub(super) fn may_have_record_parts(&self) -> bool {
        match self.layer {
            LayerKind::PersistentCache | LayerKind::SBlocks => true,
            LayerKind::Cache | LayerKind::Array | LayerKind::MemoryBuffer | LayerKind::Segments => {
                false
            }
        }
    }

    /// The blocks of the membership pages, which only a mirrored journal has.
    pub fn membership_addresses(&self) -> [u64; PAGES] {
        [self.area.start.0 + 2, self.area.end().0 - 3]
    }

    /// Blocks at each end of the area that are neither of a checkpoint nor of the ring.
    fn end_blocks(&self) -> u64 {
        2 + u64::from(self.is_mirrored())
    }

    /// First block of a place for a checkpoint.
    pub fn checkpoint_start(&self, place: u16) -> u64 {
        self.area.start.0 + self.end_blocks() + u64::from(place) * self.checkpoint_blocks
    }

    /// The ring of journal blocks.
    pub fn ring(&self) -> Extent {
        let before = self.end_blocks() + 2 * self.checkpoint_blocks;
        let blocks = self.area.blocks.0.saturating_sub(before + self.end_blocks());
        Extent::new(self.area.start.0 + before, blocks)
    }

    /// The port on which the data of a kind of record lies, and the blocks of the node there.
    pub(super) fn data_port(&self, kind: u8) -> (Port, BlockCount) {
        match self.data {
            Some(data) if data.kind == kind => (data.port, data.blocks),
            _ => (self.port, self.member_blocks),
        }
    }

    /// Where the journal block with a number lies.
    pub fn address_of(&self, lsn: Lsn) -> u64 {
        let ring = self.ring();
        ring.start.0 + lsn.0 % ring.blocks.0
    }
}
