//! Where a durable array of copies keeps what, on each of its members alike.

use super::records::checkpoint_bytes_max;
use crate::array::RegionShape;
use crate::durability::superblock::FEATURE_MIRRORED;
use crate::durability::{DurabilitySettings, JournalSettings, LayerKind};
use crate::extent::Extent;
use crate::layer::Port;
use crate::units::{BlockCount, Duration};
use alloc::vec::Vec;

/// How an array of copies keeps what it knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raid1Keeping {
    /// Its journal.
    pub durability: DurabilitySettings,
    /// Blocks of a region: what is compared after a crash where it was written.
    pub region_rows: u64,
    /// Bytes of tables of checksums that are kept in memory.
    pub memory_bytes: u64,
    /// A member of which an operation takes longer is lost.
    pub lost_after: Duration,
}

/// The journal, then the tables of checksums, then the blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raid1Layout {
    /// Blocks of the area of the journal.
    pub journal_blocks: u64,
    checkpoint_blocks: u64,
    /// The rows: tables and blocks.
    pub shape: RegionShape,
}

impl Raid1Layout {
    /// The layout for so many blocks of the host.
    pub fn new(keeping: &Raid1Keeping, blocks: u64) -> Raid1Layout {
        let shape = RegionShape::new(blocks, keeping.region_rows);
        let bytes = checkpoint_bytes_max(shape.regions);
        let checkpoint_blocks = JournalSettings::checkpoint_blocks_for(bytes);
        let ring = keeping.durability.ring_blocks;
        let journal_blocks = JournalSettings::area_blocks_for(checkpoint_blocks, ring);
        Raid1Layout { journal_blocks, checkpoint_blocks, shape }
    }

    /// Blocks that each member must have.
    pub fn member_blocks(&self) -> u64 {
        self.journal_blocks + self.shape.rows()
    }

    /// The layout that makes the most of members with so many blocks. None when there is no room for one block.
    pub fn within(keeping: &Raid1Keeping, member_blocks: u64) -> Option<Raid1Layout> {
        let fits = |blocks: u64| Raid1Layout::new(keeping, blocks).member_blocks() <= member_blocks;
        let (mut least, mut most) = (0, member_blocks);
        while least < most {
            let middle = least + (most - least).div_ceil(2);
            match fits(middle) {
                true => least = middle,
                false => most = middle - 1,
            }
        }
        (least > 0).then(|| Raid1Layout::new(keeping, least))
    }

    /// The copies of the journal, one for each member with so many blocks.
    pub fn copies(&self, members: &[BlockCount]) -> Vec<JournalSettings> {
        let copy = |(port, blocks): (usize, &BlockCount)| JournalSettings {
            layer: LayerKind::Array,
            port: Port(port as u8),
            member_blocks: *blocks,
            area: Extent::new(0, self.journal_blocks),
            checkpoint_blocks: self.checkpoint_blocks,
            required_features: FEATURE_MIRRORED,
            data: None,
        };
        members.iter().enumerate().map(copy).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_is_made_of_members() {
        let keeping = Raid1Keeping {
            durability: DurabilitySettings { ring_blocks: 16, unflushed_blocks_max: 16 },
            region_rows: 8,
            memory_bytes: 1 << 20,
            lost_after: Duration::from_ms(60_000),
        };
        let layout = Raid1Layout::within(&keeping, 200).expect("room");
        assert!(layout.member_blocks() <= 200);
        assert!(Raid1Layout::new(&keeping, layout.shape.data_rows + 1).member_blocks() > 200);
        assert_eq!(Raid1Layout::within(&keeping, 10), None);
    }
}
