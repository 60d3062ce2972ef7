//! PORE: dirty blocks leave only from the *open* zones of the address space, which are chosen anew
//! once a period, so that the disk below sees random writes in a small range at a time (Wang,
//! Wang, Chai, Wang, Sun: Partially Open Region for Eviction, MSST 2017). Clean blocks may always
//! leave. Among the blocks that may, the least recently used one does. With batches, the dirty
//! blocks of its zone that are next in age leave with it.

mod key;

use super::batch::{BATCH, check_batch};
use super::policy::{AccessKind, CachedBlock, EvictionPolicy, PolicyEvents};
use super::policy_state::restore_each;
use super::settings_error::{CacheSettingsError, error};
use super::zones::{ZoneSettings, Zones};
use crate::counters::{Counter, PORE};
use crate::disk::Geometry;
use crate::map::{LruList, LruLists};
use crate::saved::{Saved, SavedValue};
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::boxed::Box;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use key::Key;

const REGION_DIVISIONS: usize = PORE.place(Counter::RegionDivisions);
const FORCED_EVICTIONS: usize = PORE.place(Counter::ForcedEvictions);

/// The options of PORE (MSST 2017).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoreSettings {
    /// The unit that is opened (20 MiB in the paper: 5120 blocks).
    pub zones: ZoneSettings,
    /// Length of a period, and dirty blocks that the open zones must hold together at its start:
    /// the blocks of the persistent cache below.
    pub period_blocks: u64,
    /// What counts towards the length of a period.
    pub period_counter: PeriodCounter,
    /// Which accesses make a block popular.
    pub popularity_window: PopularityWindow,
    /// Accesses that every dirty block is given on top, 0 or 1.
    pub access_floor: u64,
    /// Which zones are opened first.
    pub open_zones: OpenZones,
    /// Dirty blocks of a zone that leave together at most, 1 or more; 1 in the paper.
    pub batch: u64,
}

crate::words! {
    /// What counts towards the length of a period.
    pub enum PeriodCounter {
        /// Writes that missed.
        WriteMiss = "write_miss",
        /// Dirty blocks evicted.
        DirtyEvict = "dirty_evict",
        /// Blocks that became dirty in the cache, by insertion or by a write to a clean block.
        DirtyInsert = "dirty_insert",
    }

    /// Which accesses make a block popular.
    pub enum PopularityWindow {
        /// Those since the last division.
        Period = "period",
        /// All since the block came in, its insertion included.
        Lifetime = "lifetime",
    }

    /// Which zones are opened first.
    pub enum OpenZones {
        /// Coverage first: the largest share of dirty blocks.
        Cf = "cf",
        /// Popularity first: the fewest accesses a dirty block.
        Pf = "pf",
        /// Balanced: the fewest accesses a dirty block, divided by the coverage.
        Bl = "bl",
        /// Every zone, always: plain LRU.
        All = "all",
    }
}

impl PoreSettings {
    /// The settings as numbers, which a saved state keeps.
    pub(super) fn identity(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        let counter = match self.period_counter {
            PeriodCounter::WriteMiss => 0,
            PeriodCounter::DirtyEvict => 1,
            PeriodCounter::DirtyInsert => 2,
        };
        let window = match self.popularity_window {
            PopularityWindow::Period => 0,
            PopularityWindow::Lifetime => 1,
        };
        let open_zones = match self.open_zones {
            OpenZones::Cf => 0,
            OpenZones::Pf => 1,
            OpenZones::Bl => 2,
            OpenZones::All => 3,
        };
        let words = [
            ("zone_blocks", self.zones.identity()),
            ("period_blocks", self.period_blocks),
            ("period_counter number", counter),
            ("popularity_window number", window),
            ("access_floor", self.access_floor),
            ("open_zones number", open_zones),
        ];
        let batch = (self.batch != 1).then_some((BATCH, self.batch));
        words.into_iter().chain(batch)
    }

    /// The policy over a device, for a cache of so many blocks.
    ///
    /// # Errors
    /// When a setting is out of range, or the device below has no bands that are to be zones.
    pub(super) fn build(
        &self,
        capacity_blocks: u64,
        backing: &Geometry,
    ) -> Result<Box<dyn EvictionPolicy>, CacheSettingsError> {
        /// Zone numbers share a word with two flags.
        const ZONES_MAX: u64 = 1 << 30;
        let zones = self.zones.of("pore", backing, ZONES_MAX)?;
        self.check()?;
        Ok(Box::new(Pore::new(*self, capacity_blocks, zones)))
    }

    fn check(&self) -> Result<(), CacheSettingsError> {
        check_batch("pore", self.batch)?;
        if self.period_blocks == 0 {
            return error("period_blocks is 0: a period is at least 1 block long".into());
        }
        if self.access_floor > 1 {
            return error(format!("access_floor is {}: it is 0 or 1", self.access_floor));
        }
        Ok(())
    }
}

/// Partially open region for eviction.
#[derive(Saved)]
pub(super) struct Pore {
    #[saved(keep)]
    settings: PoreSettings,
    capacity_blocks: u64,
    /// False until the cache has filled for the first time: all zones are open.
    divided: bool,
    /// What has counted towards the period so far.
    period_count: u64,
    cached_blocks: u64,
    blocks: Vec<Block>,
    all: LruList,
    /// The block from which on one that may leave is looked for: those used longer ago must stay until the next
    /// division, or until they are used. None where all must.
    search_from: Option<u32>,
    #[saved(keep)]
    map: Zones,
    zones: Vec<Zone>,
    /// Zones with a cached dirty block at the last division, the ones opened first.
    candidates: Vec<u32>,
    /// The dirty blocks of each zone, where more than one leaves at once.
    batches: Option<LruLists>,
}

/// What is known of a cached block.
#[derive(Clone, Copy, SavedValue)]
struct Block {
    /// The zone, and two flags above it.
    zone_and_flags: u32,
    /// Accesses in the window.
    accesses: u32,
}

const DIRTY: u32 = 1 << 31;
const CACHED: u32 = 1 << 30;

impl Block {
    #[inline]
    fn zone(self) -> usize {
        (self.zone_and_flags & !(DIRTY | CACHED)) as usize
    }

    #[inline]
    fn is_dirty(self) -> bool {
        self.zone_and_flags & DIRTY != 0
    }
}

#[derive(Clone, Copy, Default, SavedValue)]
struct Zone {
    /// Accesses to its dirty blocks in the window, at the last division.
    accesses: u64,
    /// Its dirty blocks, at the last division.
    dirty: u32,
    open: bool,
}

impl Pore {
    fn new(settings: PoreSettings, capacity_blocks: u64, map: Zones) -> Pore {
        let zones = map.count();
        Pore {
            settings,
            capacity_blocks,
            divided: false,
            period_count: 0,
            cached_blocks: 0,
            blocks: Vec::new(),
            all: LruList::new(),
            search_from: None,
            zones: vec![Zone { open: true, ..Zone::default() }; zones],
            map,
            candidates: Vec::new(),
            batches: (settings.batch > 1).then(|| LruLists::new(zones)),
        }
    }

    #[inline]
    fn is_evictable(&self, block: Block) -> bool {
        !block.is_dirty() || self.zones[block.zone()].open
    }

    fn add(&mut self, entry: u32, lba: Lba, dirty: bool, accesses: u32) {
        let zone = self.map.zone_of(lba);
        let block =
            Block { zone_and_flags: zone | CACHED | if dirty { DIRTY } else { 0 }, accesses };
        if entry as usize >= self.blocks.len() {
            let free = Block { zone_and_flags: 0, accesses: 0 };
            self.blocks.resize(entry as usize + 1, free);
        }
        self.blocks[entry as usize] = block;
        self.cached_blocks += 1;
        self.all.push_newest(entry);
        self.search_from.get_or_insert(entry);
        if let (Some(batches), true) = (&mut self.batches, dirty) {
            batches.push_newest(block.zone(), entry);
        }
    }

    /// Makes a block the most recently used.
    #[inline]
    fn touch(&mut self, entry: u32) {
        self.search_behind(entry);
        self.all.touch(entry);
        self.search_from.get_or_insert(entry);
    }

    /// A block is about to leave its place in the order: the search begins behind it.
    #[inline]
    fn search_behind(&mut self, entry: u32) {
        if self.search_from == Some(entry) {
            self.search_from = self.all.next_newer(entry);
        }
    }

    /// The least recently used block that may leave. What is passed over is not looked at again before it is used, or
    /// the zones are divided anew: nothing else lets it leave.
    #[inline]
    fn oldest_evictable(&mut self) -> Option<u32> {
        while let Some(entry) = self.search_from
            && !self.is_evictable(self.blocks[entry as usize])
        {
            self.search_from = self.all.next_newer(entry);
        }
        self.search_from
    }

    #[inline]
    fn count(&mut self, counted: PeriodCounter) {
        self.period_count += u64::from(self.settings.period_counter == counted);
    }

    /// Divides when the cache has just filled for the first time, or when the period is over.
    #[inline]
    fn divide_if_due(&mut self, events: &mut PolicyEvents) {
        let due = match self.divided {
            true => self.period_count >= self.settings.period_blocks,
            false => self.cached_blocks >= self.capacity_blocks,
        };
        if due && self.settings.open_zones != OpenZones::All {
            self.divide(events);
        }
    }

    /// Chooses the zones to be open from now on: as many, the best first, as hold a period's worth
    /// of dirty blocks.
    fn divide(&mut self, events: &mut PolicyEvents) {
        events.count(PORE.counters, REGION_DIVISIONS);
        self.close_zones();
        self.divided = true;
        self.period_count = 0;
        self.rank_zones();
        let mut dirty = 0;
        for candidate in &self.candidates {
            if dirty >= self.settings.period_blocks {
                break;
            }
            let zone = &mut self.zones[*candidate as usize];
            zone.open = true;
            dirty += u64::from(zone.dirty);
        }
        self.search_from = self.all.oldest();
    }

    /// Closes every zone and forgets its sums.
    fn close_zones(&mut self) {
        if !self.divided {
            self.zones.fill(Zone::default());
        }
        // Only candidates were opened, and there are far fewer of them than zones.
        for candidate in self.candidates.drain(..) {
            self.zones[candidate as usize] = Zone::default();
        }
    }

    /// Collects the zones with a dirty block, the one to open first in front. A window that ends with the period
    /// begins anew.
    fn rank_zones(&mut self) {
        let new_period = self.settings.popularity_window == PopularityWindow::Period;
        // In the order of entry numbers, which is the order of memory: sums need no other.
        for block in &mut self.blocks {
            if block.zone_and_flags & (CACHED | DIRTY) == CACHED | DIRTY {
                let zone = &mut self.zones[block.zone()];
                if zone.dirty == 0 {
                    self.candidates.push(block.zone() as u32);
                }
                zone.dirty += 1;
                zone.accesses += u64::from(block.accesses) + self.settings.access_floor;
            }
            if new_period {
                block.accesses = 0;
            }
        }
        let (zones, map, open_zones) = (&self.zones, &self.map, self.settings.open_zones);
        self.candidates.sort_unstable_by(|a, b| {
            let key = |zone: u32| Key {
                accesses: zones[zone as usize].accesses,
                dirty: zones[zone as usize].dirty,
                blocks: match map {
                    // The shorter one at the end counts as the others do.
                    Zones::Equal { .. } => 1,
                    Zones::Bands(_) => map.blocks_of(zone),
                },
            };
            key(*a).compare(open_zones, &key(*b)).then(a.cmp(b))
        });
    }
}

impl EvictionPolicy for Pore {
    fn on_insert(&mut self, entry: u32, lba: Lba, kind: AccessKind, events: &mut PolicyEvents) {
        let dirty = kind == AccessKind::Write;
        self.add(entry, lba, dirty, 1);
        if dirty {
            self.count(PeriodCounter::WriteMiss);
            self.count(PeriodCounter::DirtyInsert);
        }
        self.divide_if_due(events);
    }

    fn on_access(&mut self, entry: u32, kind: AccessKind, events: &mut PolicyEvents) {
        let block = &mut self.blocks[entry as usize];
        block.accesses = block.accesses.saturating_add(1);
        let before = *block;
        self.touch(entry);
        if let Some(batches) = &mut self.batches {
            match (before.is_dirty(), kind) {
                (true, _) => batches.touch(before.zone(), entry),
                (false, AccessKind::Write) => batches.push_newest(before.zone(), entry),
                (false, AccessKind::Read) => {}
            }
        }
        if kind == AccessKind::Write && !before.is_dirty() {
            self.blocks[entry as usize].zone_and_flags |= DIRTY;
            self.count(PeriodCounter::DirtyInsert);
            self.divide_if_due(events);
        }
    }

    fn victims(&mut self, victims: &mut Vec<u32>, events: &mut PolicyEvents) {
        let oldest = self.oldest_evictable().unwrap_or_else(|| {
            // Every cached block is dirty and in a forbidden zone. The victim comes from a zone
            // that was closed, which a division opens: a period is at least one block long.
            events.count(PORE.counters, FORCED_EVICTIONS);
            self.divide(events);
            self.oldest_evictable().expect("a division opens a zone that holds a dirty block")
        });
        let block = self.blocks[oldest as usize];
        let from = victims.len();
        match &self.batches {
            // The zone is open, so that its oldest dirty block is the oldest that may leave.
            Some(batches) if block.is_dirty() => {
                let batch = usize::try_from(self.settings.batch).unwrap_or(usize::MAX);
                victims.extend(batches.oldest_first(block.zone()).take(batch));
            }
            _ => victims.push(oldest),
        }
        if block.is_dirty() {
            for _ in from..victims.len() {
                self.count(PeriodCounter::DirtyEvict);
            }
        }
    }

    fn on_remove(&mut self, entry: u32) {
        let block = self.blocks[entry as usize];
        if let (Some(batches), true) = (&mut self.batches, block.is_dirty()) {
            batches.remove(block.zone(), entry);
        }
        self.search_behind(entry);
        self.all.remove(entry);
        self.blocks[entry as usize].zone_and_flags = 0;
        self.cached_blocks -= 1;
    }

    fn save(&self, numbers: &[u32], state: &mut StateWriter) {
        state.put_u64(u64::from(self.divided));
        state.put_u64(self.period_count);
        let open = || (0..).zip(&self.zones).filter(|(_, zone)| zone.open);
        state.put_u64(open().count() as u64);
        open().for_each(|(zone, _)| state.put_u64(zone));
        for entry in self.all.oldest_first() {
            state.put_u64(u64::from(numbers[entry as usize]));
            state.put_u64(u64::from(self.blocks[entry as usize].accesses));
        }
    }

    fn restore(
        &mut self,
        cached: &[CachedBlock],
        state: &mut StateReader<'_>,
    ) -> Result<(), StateError> {
        self.divided = state.take_u64()? != 0;
        self.period_count = state.take_u64()?;
        for zone in &mut self.zones {
            zone.open = false;
        }
        for _ in 0..state.take_u64()? {
            let zone = state.take_u64()?;
            let index = usize::try_from(zone).unwrap_or(usize::MAX);
            let Some(open) = self.zones.get_mut(index) else {
                return Err(StateError::new(format!(
                    "open zone {zone} of the saved cache is past the end of the device"
                )));
            };
            open.open = true;
            self.candidates.push(index as u32);
        }
        restore_each(cached, state, |entry, block, state| {
            let accesses = u32::try_from(state.take_u64()?)
                .map_err(|_| StateError::new("a number of accesses is out of range"))?;
            self.add(entry, block.lba, block.dirty, accesses);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
