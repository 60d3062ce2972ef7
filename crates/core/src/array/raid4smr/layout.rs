//! Where a durable RAID 4SMR keeps what.

use super::bands::HomeBands;
use crate::array::COLUMNS_MAX;
use crate::array::bits::Bits;
use crate::array::member_record::MEMBER_BYTES;
use crate::durability::superblock::FEATURE_MIRRORED;
use crate::durability::{DurabilitySettings, JournalSettings, LayerKind};
use crate::extent::Extent;
use crate::layer::Port;
use crate::units::BlockCount;
use alloc::vec::Vec;

/// How a RAID 4SMR keeps what it knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raid4SmrKeeping {
    /// Its journal.
    pub durability: DurabilitySettings,
    /// Where that is.
    pub layout: Raid4SmrLayout,
}

/// The journal comes first on the data disk and on the parity disk, then come their rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raid4SmrLayout {
    /// Blocks of the area of the journal.
    pub journal_blocks: u64,
    checkpoint_blocks: u64,
}

impl Raid4SmrLayout {
    /// The layout for so many homes with so many band rows, and so many slots.
    pub fn new(
        durability: &DurabilitySettings,
        homes: usize,
        bands: &HomeBands,
        slots: u64,
    ) -> Raid4SmrLayout {
        let homes = homes as u64;
        let (places, band_rows) = (homes * bands.rows(), bands.band_rows());
        // A run of places has three words, and so has a block that stands alone.
        let of_places = 24 * places;
        let bits = Bits::bytes_max(places) + homes * Bits::bytes_max(bands.rows());
        let of_slots = Bits::bytes_max(slots) + 24 * slots;
        let of_bands = 8 * band_rows * (1 + homes);
        let members = (1 + COLUMNS_MAX * MEMBER_BYTES) as u64;
        let bytes = members + 64 + of_places + bits + of_slots + of_bands;
        let checkpoint_blocks = JournalSettings::checkpoint_blocks_for(bytes);
        let ring = durability.ring_blocks;
        let journal_blocks = JournalSettings::area_blocks_for(checkpoint_blocks, ring);
        Raid4SmrLayout { journal_blocks, checkpoint_blocks }
    }

    /// The copies of the journal, on the data disk and the parity disk with so many blocks.
    pub fn copies(&self, homes: usize, members: [BlockCount; 2]) -> Vec<JournalSettings> {
        let copy = |(at, blocks): (usize, BlockCount)| JournalSettings {
            layer: LayerKind::Array,
            port: Port((homes + at) as u8),
            member_blocks: blocks,
            area: Extent::new(0, self.journal_blocks),
            checkpoint_blocks: self.checkpoint_blocks,
            required_features: FEATURE_MIRRORED,
            data: None,
        };
        members.into_iter().enumerate().map(copy).collect()
    }
}
