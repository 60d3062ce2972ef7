//! What can be set on a read cache, and what cannot be.

use crate::disk::Geometry;
use crate::units::{BLOCK_BYTES, BlockCount};
use core::fmt;

crate::words! {
    /// What becomes of a copy when the host writes its block and a layer above keeps the data for now. When
    /// that data goes home, an older copy is forgotten in any case, or overwritten.
    pub enum OnWrite {
        /// It is forgotten.
        Invalidate = "invalidate",
        /// It stays as it is: as old as the block at home.
        Keep = "keep",
        /// It is written too.
        Update = "update",
    }
}

/// The settings of a read cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadCacheSettings {
    /// Blocks of 4 KiB of a block.
    pub block: BlockCount,
    /// Copies it keeps; none with 0.
    pub capacity_blocks: u32,
    /// What becomes of a copy when its block is written.
    pub on_write: OnWrite,
    /// It takes in what rewrites have read from the disk.
    pub fill_from_rewrite: bool,
}

/// Most copies. *Estimated*: 1 TiB of blocks of 64 KiB.
pub const CAPACITY_BLOCKS_MAX: u32 = 1 << 24;
/// Places beside those of the copies: a copy may be forgotten while its place is still in use.
const SPARE_PLACES: u32 = 64;

/// Why a read cache cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadCacheError {
    /// More copies than can be.
    Capacity {
        /// Copies that were asked for.
        blocks: u32,
    },
    /// The flash is too small.
    Flash {
        /// Blocks of 4 KiB that are needed.
        needed: BlockCount,
        /// Blocks of the flash.
        blocks: BlockCount,
    },
}

impl fmt::Display for ReadCacheError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadCacheError::Capacity { blocks } => {
                write!(f, "capacity: {blocks} blocks; accepted: at most {CAPACITY_BLOCKS_MAX}")
            }
            ReadCacheError::Flash { needed, blocks } => write!(
                f,
                "the copies and the places beside them need {} B, and the flash has {} B; accepted: a \
                 smaller capacity, or a larger flash",
                needed.0 * BLOCK_BYTES,
                blocks.0 * BLOCK_BYTES
            ),
        }
    }
}

impl ReadCacheSettings {
    /// Places for copies on the flash.
    pub(super) fn places(&self) -> u32 {
        match self.capacity_blocks {
            0 => 0,
            blocks => blocks + SPARE_PLACES,
        }
    }

    /// Blocks of 4 KiB that its flash must have.
    pub fn flash_blocks(&self) -> BlockCount {
        BlockCount((u64::from(self.places()) * self.block.0).max(1))
    }

    pub(super) fn check(&self, flash: &Geometry) -> Result<(), ReadCacheError> {
        let blocks = self.capacity_blocks;
        if blocks > CAPACITY_BLOCKS_MAX {
            return Err(ReadCacheError::Capacity { blocks });
        }
        let (needed, blocks) = (self.flash_blocks(), flash.blocks);
        match needed > blocks {
            true => Err(ReadCacheError::Flash { needed, blocks }),
            false => Ok(()),
        }
    }
}
