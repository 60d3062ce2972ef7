//! A read or write as the parts of the gatherer look at it.

use crate::BlockRule;
use crate::record::{TraceOperation, TraceRecord};

pub(super) const BLOCK_BYTES: u64 = 4096;
pub(super) const SECTOR_BYTES: u64 = 512;
/// 512-byte sectors in a block.
pub(super) const BLOCK_SECTORS: u64 = BLOCK_BYTES / SECTOR_BYTES;

/// A read or a write, with what it covers.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub(super) time_ns: u64,
    pub(super) device: u16,
    pub(super) write: bool,
    pub(super) offset_bytes: u64,
    pub(super) length_bytes: u64,
    pub(super) first_sector: u64,
    /// End of the range, in sectors.
    pub(super) end_sector: u64,
    pub(super) first_block: u64,
    /// Number of blocks.
    pub(super) blocks: u64,
}

impl Access {
    /// What a record covers by the rule; `None` if it is neither a read nor a write.
    pub(super) fn of(record: &TraceRecord, rule: BlockRule) -> Option<Self> {
        let write = match record.operation {
            TraceOperation::Read => false,
            TraceOperation::Write | TraceOperation::WriteZeroes => true,
            TraceOperation::Trim | TraceOperation::Flush => return None,
        };
        let end_bytes = record.offset_bytes + record.length_bytes;
        let (first_sector, end_sector) = match rule {
            BlockRule::Touched => {
                (record.offset_bytes / SECTOR_BYTES, end_bytes.div_ceil(SECTOR_BYTES))
            }
            BlockRule::Size => {
                let first_block = record.offset_bytes / BLOCK_BYTES;
                let end_block = first_block + record.length_bytes.div_ceil(BLOCK_BYTES);
                (first_block * BLOCK_SECTORS, end_block * BLOCK_SECTORS)
            }
        };
        let first_block = first_sector / BLOCK_SECTORS;
        let blocks = if first_sector == end_sector {
            0
        } else {
            end_sector.div_ceil(BLOCK_SECTORS) - first_block
        };
        Some(Self {
            time_ns: record.time_ns,
            device: record.device,
            write,
            offset_bytes: record.offset_bytes,
            length_bytes: record.length_bytes,
            first_sector,
            end_sector,
            first_block,
            blocks,
        })
    }

    /// 0 for a read, 1 for a write.
    pub(super) fn direction(&self) -> usize {
        usize::from(self.write)
    }
}
