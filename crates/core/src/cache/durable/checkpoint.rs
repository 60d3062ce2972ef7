//! What a checkpoint of the cache says.

use super::codec::{CacheCheckpoint, Mapping};
use crate::cache::Cache;
use crate::cache::entries::Flag;
use crate::durability::JournalSettings;
use crate::state::StateWriter;
use alloc::vec::Vec;

impl Cache {
    /// What the records appended so far lead to.
    pub(super) fn mappings(&self) -> CacheCheckpoint {
        let mappings: Vec<Mapping> = self.table.mappings().collect();
        CacheCheckpoint {
            slots: self.table.slots(),
            mappings,
            clean: Vec::new(),
            state: Vec::new(),
        }
    }

    /// The checkpoint of a clean shutdown: everything, so that the cache goes on as if nothing had
    /// happened. Without the clean blocks and the policy's state when these need more room than
    /// there is, which only a policy that keeps more than its blocks can bring about.
    pub(super) fn closing_checkpoint(&self) -> CacheCheckpoint {
        let mut checkpoint = self.mappings();
        let mut state = StateWriter::default();
        self.save_state(&mut state);
        checkpoint.state = state.into_bytes();
        checkpoint.clean = self
            .entries
            .cached()
            .filter(|(_, entry)| entry.is(Flag::HoldsData))
            .map(|(id, _)| self.entries.slot(id))
            .filter(|slot| self.table.owner(*slot).is_none())
            .map(|slot| (slot, self.table.checksum(slot)))
            .collect();
        let place = self.ledger.checkpoint_blocks();
        if JournalSettings::checkpoint_blocks_for(checkpoint.bytes()) > place {
            return self.mappings();
        }
        checkpoint
    }
}
