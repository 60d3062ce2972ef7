//! Which blocks hold data.

use super::settings::Holds;
use crate::saved::SavedValue;
use alloc::vec;
use alloc::vec::Vec;

/// Which blocks of all segments hold data.
#[derive(Debug, SavedValue)]
pub(super) struct Touched {
    /// A bit for each block; none where all hold data from the start.
    bits: Option<Vec<u64>>,
    blocks_of_segment: u64,
}

impl Touched {
    pub fn new(holds: Holds, segments: u64, blocks_of_segment: u64) -> Touched {
        let words = (segments * blocks_of_segment).div_ceil(64) as usize;
        Touched { bits: (holds == Holds::Touched).then(|| vec![0; words]), blocks_of_segment }
    }

    /// True when a block of a segment holds data.
    #[inline]
    pub fn holds(&self, segment: u64, block: u64) -> bool {
        let bit = segment * self.blocks_of_segment + block;
        let bits = self.bits.as_ref();
        bits.is_none_or(|bits| bits[(bit / 64) as usize] >> (bit % 64) & 1 == 1)
    }

    /// A block is written.
    #[inline]
    pub fn touch(&mut self, segment: u64, block: u64) {
        let bit = segment * self.blocks_of_segment + block;
        if let Some(bits) = &mut self.bits {
            bits[(bit / 64) as usize] |= 1 << (bit % 64);
        }
    }

    /// Blocks of a segment are zeroed, and hold no data any more.
    pub fn forget(&mut self, segment: u64) {
        let first = segment * self.blocks_of_segment;
        if let Some(bits) = &mut self.bits {
            for bit in first..first + self.blocks_of_segment {
                bits[(bit / 64) as usize] &= !(1 << (bit % 64));
            }
        }
    }

    /// Bytes that it takes.
    pub fn table_bytes(&self) -> u64 {
        self.bits.as_ref().map_or(0, |bits| bits.len() as u64 * 8)
    }
}
