//! The replacement algorithms once more, untimed, as plainly as they can be written: a vector in
//! the order of the last use, searched from end to end.

use crate::common::harness::Step;
use imbrex_core::cache::{
    CacheMode, CacheSettings, OpenZones, PeriodCounter, PolicySettings, PopularityWindow,
    PoreSettings, ZoneLruSettings, ZoneSettings,
};
use imbrex_core::map::{BandId, BandTable};
use imbrex_core::units::Lba;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a cache has counted, and the blocks it has written below, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    pub read_hits: u64,
    pub write_hits: u64,
    pub read_lookups: u64,
    pub write_lookups: u64,
    pub dirty_evictions: u64,
    pub clean_evictions: u64,
    pub forced_evictions: u64,
    pub region_divisions: u64,
    pub bypassed: u64,
    pub cached: u64,
    pub dirty: u64,
    pub written_below: Vec<u64>,
}

struct Block {
    lba: u64,
    dirty: bool,
    accesses: u64,
    next_use: u32,
}

/// An untimed cache.
pub struct Reference {
    settings: CacheSettings,
    /// The bands of the device below.
    bands: Arc<BandTable>,
    /// The least recently used block first.
    blocks: Vec<Block>,
    /// `None` until the first division.
    open: Option<BTreeSet<u64>>,
    period_count: u64,
    looked_up: usize,
    /// By zone of a zone-LRU buffer: when a block of it was used last.
    used_at: BTreeMap<u64, u64>,
    accesses: u64,
    outcome: Outcome,
}

impl Reference {
    pub fn run(settings: CacheSettings, bands: Arc<BandTable>, steps: &[Step]) -> Outcome {
        let mut cache = Reference {
            settings,
            bands,
            blocks: Vec::new(),
            open: None,
            period_count: 0,
            looked_up: 0,
            used_at: BTreeMap::new(),
            accesses: 0,
            outcome: Outcome::default(),
        };
        steps.iter().for_each(|step| cache.step(*step));
        cache.outcome.cached = cache.blocks.len() as u64;
        cache.outcome.dirty = cache.blocks.iter().filter(|block| block.dirty).count() as u64;
        cache.outcome
    }

    fn step(&mut self, step: Step) {
        let (extent, write) = match step {
            Step::Read(extent) => (extent, false),
            Step::Write(extent) | Step::WriteDurable(extent) => (extent, true),
            Step::Zero(extent) => {
                return self.blocks.retain(|b| !extent.contains(Lba(b.lba)));
            }
            Step::Flush => return,
        };
        let range = extent.start.0..extent.end().0;
        if extent.blocks.0 > self.settings.capacity_blocks {
            self.outcome.bypassed += extent.blocks.0;
            if write {
                self.blocks.retain(|b| !range.contains(&b.lba));
                self.outcome.written_below.extend(range);
            }
            return;
        }
        range.for_each(|lba| self.access(lba, write));
    }

    fn access(&mut self, lba: u64, write: bool) {
        let found = self.blocks.iter().position(|block| block.lba == lba);
        let hit = u64::from(found.is_some());
        if write {
            self.outcome.write_lookups += 1;
            self.outcome.write_hits += hit;
        } else {
            self.outcome.read_lookups += 1;
            self.outcome.read_hits += hit;
            let is_kept = match self.settings.mode {
                CacheMode::ReadWrite => true,
                CacheMode::WriteOnly => false,
                CacheMode::WriteAllocate => found.is_some(),
            };
            if !is_kept {
                return;
            }
        }
        let next_use = self.next_use();
        let became_dirty = match found {
            Some(at) => {
                let mut block = self.blocks.remove(at);
                let became_dirty = write && !block.dirty;
                block.dirty |= write;
                block.accesses += 1;
                block.next_use = next_use;
                self.blocks.push(block);
                became_dirty
            }
            None => {
                if self.blocks.len() as u64 == self.settings.capacity_blocks {
                    self.evict();
                }
                self.blocks.push(Block { lba, dirty: write, accesses: 1, next_use });
                self.count(PeriodCounter::WriteMiss, write);
                write
            }
        };
        self.accesses += 1;
        if let PolicySettings::ZoneLru(ZoneLruSettings {
            zones: ZoneSettings::Equal(length), ..
        }) = self.settings.policy
        {
            self.used_at.insert(lba / length, self.accesses);
        }
        self.count(PeriodCounter::DirtyInsert, became_dirty);
        self.divide_if_due();
    }

    fn next_use(&mut self) -> u32 {
        self.looked_up += 1;
        match &self.settings.policy {
            PolicySettings::Opt { next_uses } => {
                next_uses.get(self.looked_up - 1).copied().unwrap_or(u32::MAX)
            }
            _ => 0,
        }
    }

    fn evict(&mut self) {
        let victims = match self.settings.policy.clone() {
            PolicySettings::LRU => vec![self.blocks[0].lba],
            PolicySettings::LruBand { bands, batch } => {
                let bands = bands.unwrap_or(Arc::clone(&self.bands));
                let band = bands.band_of(Lba(self.blocks[0].lba));
                self.oldest_of(|lba| bands.band_of(Lba(lba)) == band, batch.unwrap_or(u64::MAX))
            }
            PolicySettings::Pore(pore) => self.pore_victims(&pore),
            PolicySettings::ZoneLru(zone_lru) => {
                let ZoneSettings::Equal(length) = zone_lru.zones else {
                    panic!("zones of one length");
                };
                let zones = self.blocks.iter().map(|b| b.lba / length);
                let zone = zones.min_by_key(|zone| self.used_at[zone]).expect("a zone");
                self.oldest_of(|lba| lba / length == zone, u64::MAX)
            }
            PolicySettings::Opt { .. } => {
                let last = self.blocks.iter().map(|block| block.next_use).max();
                let last = self.blocks.iter().filter(|b| Some(b.next_use) == last);
                vec![last.map(|block| block.lba).min().expect("a block")]
            }
            other => panic!("{other:?} is never full, or has a model of its own"),
        };
        for victim in victims {
            let at = self.blocks.iter().position(|block| block.lba == victim);
            if self.blocks.remove(at.expect("a cached victim")).dirty {
                self.outcome.dirty_evictions += 1;
                self.outcome.written_below.push(victim);
                self.count(PeriodCounter::DirtyEvict, true);
            } else {
                self.outcome.clean_evictions += 1;
            }
        }
    }

    /// The blocks of a part of the device: the clean ones, and the oldest dirty ones up to a batch,
    /// in the order of their addresses.
    fn oldest_of(&self, is_inside: impl Fn(u64) -> bool, batch: u64) -> Vec<u64> {
        let inside = || self.blocks.iter().filter(|block| is_inside(block.lba));
        let dirty = inside().filter(|block| block.dirty);
        let batch = usize::try_from(batch).unwrap_or(usize::MAX);
        let clean = inside().filter(|block| !block.dirty);
        let mut victims: Vec<u64> = dirty.take(batch).chain(clean).map(|b| b.lba).collect();
        victims.sort_unstable();
        victims
    }

    /// The block that PORE gives up, and when it is dirty the oldest dirty ones of its zone.
    fn pore_victims(&mut self, pore: &PoreSettings) -> Vec<u64> {
        let victim = self.pore_victim(pore);
        let block = self.blocks.iter().find(|block| block.lba == victim);
        if !block.expect("a cached victim").dirty {
            return vec![victim];
        }
        let (zone, dirty) = (self.zone_of(pore, victim), |block: &&Block| block.dirty);
        let lbas = self.blocks.iter().filter(dirty).map(|block| block.lba);
        lbas.filter(|lba| self.zone_of(pore, *lba) == zone).take(pore.batch as usize).collect()
    }

    fn zone_of(&self, pore: &PoreSettings, lba: u64) -> u64 {
        match pore.zones {
            ZoneSettings::Equal(length) => lba / length,
            ZoneSettings::Bands => u64::from(self.bands.band_of(Lba(lba)).0),
        }
    }

    /// How long a zone counts as.
    fn length_of(&self, pore: &PoreSettings, zone: u64) -> u128 {
        match pore.zones {
            ZoneSettings::Equal(_) => 1,
            ZoneSettings::Bands => u128::from(self.bands.extent_of(BandId(zone as u32)).blocks.0),
        }
    }

    fn pore_victim(&mut self, pore: &PoreSettings) -> u64 {
        if let Some(victim) = self.first_evictable(pore) {
            return victim;
        }
        self.outcome.forced_evictions += 1;
        self.divide(pore);
        self.first_evictable(pore).expect("an open zone with a dirty block")
    }

    fn first_evictable(&self, pore: &PoreSettings) -> Option<u64> {
        let is_open = |lba: u64| {
            let zone = self.zone_of(pore, lba);
            self.open.as_ref().is_none_or(|open| open.contains(&zone))
        };
        let mut blocks = self.blocks.iter();
        blocks.find(|block| !block.dirty || is_open(block.lba)).map(|block| block.lba)
    }

    fn count(&mut self, what: PeriodCounter, happened: bool) {
        if let PolicySettings::Pore(pore) = &self.settings.policy
            && pore.period_counter == what
        {
            self.period_count += u64::from(happened);
        }
    }

    fn divide_if_due(&mut self) {
        let PolicySettings::Pore(pore) = self.settings.policy else {
            return;
        };
        let full = self.blocks.len() as u64 == self.settings.capacity_blocks;
        let due = match self.open {
            None => full,
            Some(_) => self.period_count >= pore.period_blocks,
        };
        if due && pore.open_zones != OpenZones::All {
            self.divide(&pore);
        }
    }

    fn divide(&mut self, pore: &PoreSettings) {
        self.outcome.region_divisions += 1;
        self.period_count = 0;
        let mut zones: BTreeMap<u64, (u128, u128)> = BTreeMap::new();
        for block in self.blocks.iter().filter(|block| block.dirty) {
            let (dirty, accesses) = zones.entry(self.zone_of(pore, block.lba)).or_default();
            *dirty += 1;
            *accesses += u128::from(block.accesses + pore.access_floor);
        }
        let mut open = BTreeSet::new();
        let mut opened = 0;
        while opened < u128::from(pore.period_blocks) && !zones.is_empty() {
            let mut best = *zones.first_key_value().expect("a zone").0;
            for (zone, (d, a)) in &zones {
                let (best_d, best_a) = zones[&best];
                let (n, best_n) = (self.length_of(pore, *zone), self.length_of(pore, best));
                let better = match pore.open_zones {
                    OpenZones::Cf => d * best_n > best_d * n,
                    OpenZones::Pf => a * best_d < best_a * d,
                    OpenZones::Bl => a * n * best_d * best_d < best_a * best_n * d * d,
                    OpenZones::All => panic!("nothing to divide"),
                };
                if better {
                    best = *zone;
                }
            }
            opened += zones.remove(&best).expect("the best zone").0;
            open.insert(best);
        }
        self.open = Some(open);
        if pore.popularity_window == PopularityWindow::Period {
            self.blocks.iter_mut().for_each(|block| block.accesses = 0);
        }
    }
}
