//! Where a replay ends, and whether the block there may have held something.

use super::block::BlockError;
use super::ids::Lsn;
use super::record::{self, DATA_BLOCKS_PER_JOURNAL_BLOCK_MAX};
use alloc::format;
use alloc::string::String;

/// A damaged or torn journal block at the end of a replay. A power cut leaves one when it tears a
/// write that no flush has covered. When the block was durable, what it said is rolled back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DamagedEnd {
    /// The number of the block.
    pub lsn: u64,
    /// Most blocks of data that it and the blocks behind it may have spoken of.
    pub data_blocks_max: u64,
}

impl DamagedEnd {
    /// What to tell a person of a damaged end that may have spoken of `data_blocks_max` blocks.
    pub fn words(data_blocks_max: u64) -> String {
        format!(
            "the newest journal block is damaged or torn: up to {data_blocks_max} blocks may have \
             been rolled back"
        )
    }
}

/// What lies in the ring from the end of a replay on.
#[derive(Clone, Copy, Default, Debug)]
pub struct ReplayEnd {
    damaged: Option<DamagedEnd>,
    is_over: bool,
}

impl ReplayEnd {
    /// The next block of the ring, `lsn`, cannot be replayed: it is whole and of this life, with
    /// this payload, or else it is wrong in this way; `None` for a whole block of an earlier lap
    /// or life.
    pub fn block(&mut self, lsn: Lsn, found: Result<&[u8], Option<&BlockError>>) {
        if self.is_over {
            return;
        }
        let data_blocks = match found {
            Ok(payload) => data_blocks(payload),
            Err(None | Some(BlockError::Zero | BlockError::Member(_))) => {
                self.is_over = true;
                return;
            }
            Err(Some(_)) => DATA_BLOCKS_PER_JOURNAL_BLOCK_MAX,
        };
        let damaged = self.damaged.get_or_insert(DamagedEnd { lsn: lsn.0, data_blocks_max: 0 });
        damaged.data_blocks_max += data_blocks;
    }

    /// The damaged block at the end, if one is there.
    pub fn damaged(&self) -> Option<DamagedEnd> {
        self.damaged
    }
}

/// Blocks of data that the records of a payload speak of.
fn data_blocks(payload: &[u8]) -> u64 {
    let extents = record::records(payload).filter_map(|record| record.ok()?.data);
    extents.map(|data| data.blocks.0).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durability::record::{DataRef, put};
    use crate::extent::Extent;
    use alloc::vec::Vec;

    #[test]
    fn a_replay_that_ends_at_an_older_block_or_zeroes_has_no_damaged_end() {
        for found in [None, Some(&BlockError::Zero)] {
            let mut end = ReplayEnd::default();
            end.block(Lsn(7), Err(found));
            end.block(Lsn(8), Err(Some(&BlockError::Checksum)));
            assert_eq!(end.damaged(), None);
        }
    }

    #[test]
    fn blocks_behind_a_damaged_one_count_what_they_name() {
        let mut payload = Vec::new();
        let data = DataRef { extent: Extent::new(70, 2), checksums: &[5, 6] };
        put(&mut payload, 1, b"", Some(data));
        let mut end = ReplayEnd::default();
        end.block(Lsn(7), Err(Some(&BlockError::Checksum)));
        end.block(Lsn(8), Ok(&payload));
        end.block(Lsn(9), Err(None));
        end.block(Lsn(10), Ok(&payload));
        let expected =
            DamagedEnd { lsn: 7, data_blocks_max: DATA_BLOCKS_PER_JOURNAL_BLOCK_MAX + 2 };
        assert_eq!(end.damaged(), Some(expected));
    }
}
