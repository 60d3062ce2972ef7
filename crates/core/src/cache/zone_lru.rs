//! With the least recently used zone leave all blocks that are cached of it, in ascending order
//! (ZLRU; Idler, IEEE TC 2020, section on the SSD write buffer).

use super::policy::{AccessKind, CachedBlock, EvictionPolicy, PolicyEvents};
use super::policy_state::restore_order;
use super::settings_error::CacheSettingsError;
use super::zones::{ZONES_MAX, ZoneSettings, Zones};
use crate::counters::{Counter, ZONE_BUFFER};
use crate::disk::Geometry;
use crate::map::{LruList, LruLists};
use crate::saved::{Saved, SavedValue};
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// Where the policy counts in its counters.
const ZONES_EVICTED: usize = ZONE_BUFFER.place(Counter::ZonesEvicted);

/// What a zone-LRU buffer can be told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneLruSettings {
    /// The zones. Where the node below shows zones they are those.
    pub zones: ZoneSettings,
    /// A zone below that has a write pointer is rewritten when more blocks of it leave together; not
    /// more than the capacity.
    pub rewrite_blocks: u64,
    /// Blocks of flash in which a zone is put together that is to be rewritten: at least those of a zone
    /// below, or 0 where the node below shows none.
    pub staging_blocks: u32,
}

impl ZoneLruSettings {
    /// The policy, empty.
    ///
    /// # Errors
    /// As [`ZoneSettings::of`].
    pub(super) fn build(
        &self,
        backing: &Geometry,
    ) -> Result<Box<dyn EvictionPolicy>, CacheSettingsError> {
        let zones = self.zones.of("zone-lru", backing, ZONES_MAX)?;
        Ok(Box::new(ZoneLru {
            recency: LruList::new(),
            members: LruLists::new(zones.count()),
            counts: vec![0; zones.count()],
            blocks: Vec::new(),
            zones,
        }))
    }

    /// The settings that a saved state must share with the cache that takes it back. The number of
    /// slots tells of the staging blocks.
    pub(super) fn identity(&self) -> [(&'static str, u64); 1] {
        [("zone", self.zones.identity())]
    }
}

/// Least recently used, by whole zones.
#[derive(Saved)]
struct ZoneLru {
    #[saved(keep)]
    zones: Zones,
    /// The zones that have blocks.
    recency: LruList,
    /// The blocks of each zone.
    members: LruLists,
    /// By zone: how many blocks it has.
    counts: Vec<u32>,
    /// By entry.
    blocks: Vec<Block>,
}

/// A cached block.
#[derive(Clone, Copy, SavedValue)]
struct Block {
    lba: Lba,
    zone: u32,
}

impl ZoneLru {
    fn add(&mut self, entry: u32, lba: Lba) {
        let block = Block { lba, zone: self.zones.zone_of(lba) };
        if entry as usize >= self.blocks.len() {
            self.blocks.resize(entry as usize + 1, block);
        }
        self.blocks[entry as usize] = block;
        self.members.push_newest(block.zone as usize, entry);
        let count = &mut self.counts[block.zone as usize];
        *count += 1;
        match *count {
            1 => self.recency.push_newest(block.zone),
            _ => self.recency.touch(block.zone),
        }
    }
}

impl EvictionPolicy for ZoneLru {
    fn on_insert(&mut self, entry: u32, lba: Lba, _: AccessKind, _: &mut PolicyEvents) {
        self.add(entry, lba);
    }

    fn on_access(&mut self, entry: u32, _: AccessKind, _: &mut PolicyEvents) {
        self.recency.touch(self.blocks[entry as usize].zone);
    }

    fn victims(&mut self, victims: &mut Vec<u32>, events: &mut PolicyEvents) {
        let Some(zone) = self.recency.oldest() else {
            return;
        };
        events.count(ZONE_BUFFER.counters, ZONES_EVICTED);
        let from = victims.len();
        victims.extend(self.members.oldest_first(zone as usize));
        victims[from..].sort_unstable_by_key(|entry| self.blocks[*entry as usize].lba);
    }

    fn on_remove(&mut self, entry: u32) {
        let zone = self.blocks[entry as usize].zone;
        self.members.remove(zone as usize, entry);
        let count = &mut self.counts[zone as usize];
        *count -= 1;
        if *count == 0 {
            self.recency.remove(zone);
        }
    }

    fn save(&self, numbers: &[u32], state: &mut StateWriter) {
        for zone in self.recency.oldest_first() {
            for entry in self.members.oldest_first(zone as usize) {
                state.put_u64(u64::from(numbers[entry as usize]));
            }
        }
    }

    fn restore(
        &mut self,
        cached: &[CachedBlock],
        state: &mut StateReader<'_>,
    ) -> Result<(), StateError> {
        // The blocks of a zone follow each other, so the zones get back their order.
        restore_order(cached, state, |entry, block| self.add(entry, block.lba))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Media;
    use crate::units::BlockCount;

    fn empty() -> Box<dyn EvictionPolicy> {
        let zones = ZoneSettings::Equal(8);
        let settings = ZoneLruSettings { zones, rewrite_blocks: 1, staging_blocks: 0 };
        let backing = Geometry::plain(BlockCount(40), Media::Conventional);
        settings.build(&backing).expect("zones that fit")
    }

    /// The blocks that leave, zone by zone, until nothing is cached.
    fn drain(mut policy: Box<dyn EvictionPolicy>) -> Vec<Vec<u32>> {
        let mut events = PolicyEvents::default();
        let mut zones = Vec::new();
        loop {
            let mut victims = Vec::new();
            policy.victims(&mut victims, &mut events);
            if victims.is_empty() {
                assert_eq!(events.amount(Counter::ZonesEvicted), zones.len() as u64);
                return zones;
            }
            victims.iter().for_each(|entry| policy.on_remove(*entry));
            zones.push(victims);
        }
    }

    #[test]
    fn zones_leave_in_the_order_of_their_last_use_and_come_back_in_it() {
        let mut policy = empty();
        let mut events = PolicyEvents::default();
        let blocks = [12, 20, 9, 30, 8].map(Lba);
        for (entry, lba) in (0..).zip(blocks) {
            policy.on_insert(entry, lba, AccessKind::Write, &mut events);
        }
        policy.on_access(1, AccessKind::Read, &mut events);
        let order = vec![vec![3], vec![4, 2, 0], vec![1]];
        let mut state = StateWriter::default();
        policy.save(&[0, 1, 2, 3, 4], &mut state);
        let bytes = state.into_bytes();
        let mut restored = empty();
        let cached = blocks.map(|lba| CachedBlock { lba, dirty: true });
        restored.restore(&cached, &mut StateReader::new(&bytes)).expect("what was saved");
        assert_eq!(drain(restored), order);
        assert_eq!(drain(policy), order);
        let cut = empty().restore(&cached, &mut StateReader::new(&bytes[..bytes.len() - 1]));
        cut.expect_err("a state that ends too early");
    }
}
