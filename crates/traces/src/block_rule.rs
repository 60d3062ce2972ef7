//! Which blocks a request has.

use serde::{Deserialize, Serialize};

const BLOCK_BYTES: u64 = 4096;

/// Which 4 KiB blocks a request covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BlockRule {
    /// Every block it touches: offset and end rounded outward.
    #[default]
    #[serde(rename = "cover")]
    Touched,
    /// As many as its size fills, from the block of its offset: floor(offset), ceil(size). Le's thesis counts so.
    Size,
}

impl BlockRule {
    /// The name by which options and files know it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Touched => "cover",
            Self::Size => "size",
        }
    }

    /// The blocks of a request by this rule; none of a request without bytes.
    #[inline(always)]
    pub fn blocks(self, offset_bytes: u64, length_bytes: u64) -> std::ops::Range<u64> {
        let first = offset_bytes / BLOCK_BYTES;
        let end = match self {
            _ if length_bytes == 0 => first,
            Self::Touched => offset_bytes.saturating_add(length_bytes).div_ceil(BLOCK_BYTES),
            Self::Size => first + length_bytes.div_ceil(BLOCK_BYTES),
        };
        first..end
    }
}
