//! MOST: the zone of which the most blocks are cached leaves whole, so that one rewrite of its band
//! serves as many blocks as can be (a rival in SAC, ASPLOS 2020; `Most` in the prototype of PORE).
//! `docs/systems/policies.md` has the choices that its authors leave open.

use super::policy::{AccessKind, CachedBlock, EvictionPolicy, PolicyEvents};
use super::settings_error::CacheSettingsError;
use super::zone_ranking::ZoneRanking;
use super::zones::{ZONES_MAX, ZoneSettings, Zones};
use crate::disk::Geometry;
use crate::map::LruLists;
use crate::saved::{Saved, SavedValue};
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// Most cached blocks, by whole zones.
#[derive(Saved)]
pub(super) struct Most {
    #[saved(keep)]
    zones: Zones,
    /// The blocks of each zone.
    members: LruLists,
    /// By zone: how many blocks it has.
    counts: Vec<u32>,
    /// The zones by their counts.
    ranking: ZoneRanking,
    /// By entry.
    blocks: Vec<Block>,
}

/// A cached block.
#[derive(Clone, Copy, SavedValue)]
struct Block {
    lba: Lba,
    zone: u32,
}

impl Most {
    /// The policy over a device, empty.
    ///
    /// # Errors
    /// As [`ZoneSettings::of`].
    pub(super) fn build(
        zones: ZoneSettings,
        backing: &Geometry,
    ) -> Result<Box<dyn EvictionPolicy>, CacheSettingsError> {
        let zones = zones.of("most", backing, ZONES_MAX)?;
        let count = zones.count();
        Ok(Box::new(Most {
            zones,
            members: LruLists::new(count),
            counts: vec![0; count],
            ranking: ZoneRanking::new(count),
            blocks: Vec::new(),
        }))
    }

    fn add(&mut self, entry: u32, lba: Lba) {
        let block = Block { lba, zone: self.zones.zone_of(lba) };
        if entry as usize >= self.blocks.len() {
            self.blocks.resize(entry as usize + 1, block);
        }
        self.blocks[entry as usize] = block;
        self.members.push_newest(block.zone as usize, entry);
        let count = &mut self.counts[block.zone as usize];
        *count += 1;
        self.ranking.set(block.zone, *count);
    }
}

impl EvictionPolicy for Most {
    fn on_insert(&mut self, entry: u32, lba: Lba, _: AccessKind, _: &mut PolicyEvents) {
        self.add(entry, lba);
    }

    fn on_access(&mut self, _: u32, _: AccessKind, _: &mut PolicyEvents) {}

    fn victims(&mut self, victims: &mut Vec<u32>, _: &mut PolicyEvents) {
        let Some(zone) = self.ranking.first() else {
            return;
        };
        let from = victims.len();
        victims.extend(self.members.oldest_first(zone as usize));
        victims[from..].sort_unstable_by_key(|entry| self.blocks[*entry as usize].lba);
    }

    fn on_remove(&mut self, entry: u32) {
        let zone = self.blocks[entry as usize].zone;
        self.members.remove(zone as usize, entry);
        let count = &mut self.counts[zone as usize];
        *count -= 1;
        self.ranking.set(zone, *count);
    }

    /// What is cached is all that counts.
    fn save(&self, _: &[u32], _: &mut StateWriter) {}

    fn restore(
        &mut self,
        cached: &[CachedBlock],
        _: &mut StateReader<'_>,
    ) -> Result<(), StateError> {
        (0..).zip(cached).for_each(|(entry, block)| self.add(entry, block.lba));
        Ok(())
    }
}
