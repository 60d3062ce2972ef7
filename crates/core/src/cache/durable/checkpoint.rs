//! When a checkpoint is taken, and what it says.

use super::codec::{self, CacheCheckpoint, Mapping};
use super::{Cache, Durable, Life};
use crate::cache::entries::Flag;
use crate::durability::JournalSettings;
use crate::layer::Context;
use crate::state::StateWriter;
use alloc::vec::Vec;

/// Words before the blocks in the state of a clean shutdown, and some to spare.
const STATE_BYTES_MAX: u64 = 512;
/// Bytes that a clean shutdown may need for a slot beyond the mapping: its address, its slot, and
/// what the policy knows of it.
const STATE_BYTES_PER_SLOT: u64 = 32;

/// Blocks of a place for any checkpoint of a cache with `slots` slots.
pub(in crate::cache) fn checkpoint_blocks(slots: u64) -> u64 {
    let per_slot = codec::MAPPING_BYTES + STATE_BYTES_PER_SLOT;
    let bytes = codec::CHECKPOINT_HEAD_BYTES + STATE_BYTES_MAX + slots * per_slot;
    JournalSettings::checkpoint_blocks_for(bytes)
}

/// How far a checkpoint has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Checkpointing {
    No,
    /// The write-intent page that says so is on its way.
    Announced,
    /// The journal is writing it.
    Writing,
}

impl Durable {
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

    /// Begins a checkpoint when the journal wants one, or goes on with it.
    pub(super) fn checkpoint_if_wanted(&mut self, ctx: &mut Context<'_>) -> bool {
        match self.checkpointing {
            Checkpointing::No if self.journal.wants_checkpoint() => {
                if !matches!(self.life, Life::Running) {
                    return false;
                }
                self.checkpointing = Checkpointing::Announced;
                self.intent.announce(self.journal.next_generation());
                true
            }
            Checkpointing::Announced if self.intent.is_settled() => {
                self.checkpointing = Checkpointing::Writing;
                let checkpoint = self.mappings().encode();
                self.journal.checkpoint(checkpoint, ctx);
                true
            }
            _ => false,
        }
    }
}

impl Cache {
    /// The checkpoint of a clean shutdown: everything, so that the cache goes on as if nothing had
    /// happened. Without the clean blocks and the policy's state when these need more room than
    /// there is, which only a policy that keeps more than its blocks can bring about.
    pub(super) fn closing_checkpoint(&self) -> CacheCheckpoint {
        let durable = self.durable.as_deref().expect("a durable cache");
        let mut checkpoint = durable.mappings();
        let mut state = StateWriter::default();
        self.save_state(&mut state);
        checkpoint.state = state.into_bytes();
        checkpoint.clean = self
            .entries
            .cached()
            .filter(|(_, entry)| entry.is(Flag::HoldsData))
            .filter(|(_, entry)| durable.table.owner(entry.slot).is_none())
            .map(|(_, entry)| (entry.slot, durable.table.checksum(entry.slot)))
            .collect();
        let place = durable.journal.settings().checkpoint_blocks;
        if JournalSettings::checkpoint_blocks_for(checkpoint.bytes()) > place {
            return durable.mappings();
        }
        checkpoint
    }
}
