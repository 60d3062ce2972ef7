//! RIDE without time, requests or disks, over the log of the reference. Written from the page of the
//! system (`docs/systems/ride.md`), not from the policy.

use super::reference::{Reference, Replacement};
use crate::simulate::Totals;
use imbrex_core::map::{BandId, BandTable};
use imbrex_core::units::Lba;
use std::collections::{BTreeMap, HashMap};

const BATCH: usize = 32;
const REWRITE_OVER_READ: f64 = 80.0;

#[derive(Clone, Copy)]
struct Cached {
    last_access: u64,
    dirty: bool,
}

#[derive(Default)]
struct Band {
    /// Its dirty blocks by last access.
    dirty: BTreeMap<u64, u64>,
    sum_of_accesses: u64,
    open_until: u64,
}

pub struct RideReference<'a> {
    log: Reference<'a>,
    bands: &'a BandTable,
    /// How many blocks may be cached, and how many of them dirty.
    capacity: u64,
    allowed: u64,
    split: &'a str,
    caches_reads: bool,
    period: u64,
    now: u64,
    appended: u64,
    cached: HashMap<u64, Cached>,
    clean: BTreeMap<u64, u64>,
    of_band: BTreeMap<u32, Band>,
    ghost: Ghost,
    dirty_ghost: Ghost,
    learnt: Learnt,
}

#[derive(Default)]
struct Learnt {
    hits: u64,
    dirty_hits: u64,
    windows: u64,
    clean_gain: f64,
    dirty_gain: f64,
}

impl<'a> RideReference<'a> {
    pub fn new(
        caches_reads: bool,
        split: &'a str,
        (capacity, log_blocks): (u64, u64),
        bands: &'a BandTable,
    ) -> RideReference<'a> {
        let sizes = (capacity, log_blocks);
        RideReference {
            log: Reference::new(Replacement::Lru, caches_reads, sizes, bands),
            bands,
            capacity,
            allowed: capacity,
            split,
            caches_reads,
            period: log_blocks,
            now: 0,
            appended: 0,
            cached: HashMap::new(),
            clean: BTreeMap::new(),
            of_band: BTreeMap::new(),
            ghost: Ghost::default(),
            dirty_ghost: Ghost::default(),
            learnt: Learnt::default(),
        }
    }

    pub fn totals(&self) -> Totals {
        Totals { dirty_allowed: self.allowed, ..self.log.totals }
    }

    /// One block of a request.
    pub fn access(&mut self, block: u64, is_write: bool) {
        let before = self.cached.get(&block).copied();
        match is_write {
            true => self.log.totals.write_hits += u64::from(before.is_some()),
            false => self.log.totals.read_hits += u64::from(before.is_some()),
        }
        if !is_write && !self.caches_reads {
            return;
        }
        if before.is_none() {
            while self.cached.len() as u64 >= self.capacity {
                self.evict();
            }
            if !is_write && self.ghost.remembers(block, self.capacity / 8) {
                self.learnt.hits += 1;
            } else if self.dirty_ghost.remembers(block, self.capacity / 8) {
                self.learnt.dirty_hits += 1;
            }
        } else {
            self.forget(block);
        }
        self.now += 1;
        let dirty = is_write || before.is_some_and(|before| before.dirty);
        self.remember(block, dirty);
        let epoch = self.capacity / 8;
        if self.split != "fixed" && self.now.is_multiple_of(epoch) {
            self.learn(epoch);
        }
    }

    fn band_of(&self, block: u64) -> u32 {
        self.bands.band_of(Lba(block)).0
    }

    fn remember(&mut self, block: u64, dirty: bool) {
        let last_access = self.now;
        self.cached.insert(block, Cached { last_access, dirty });
        if dirty {
            let number = self.band_of(block);
            let band = self.of_band.entry(number).or_default();
            band.dirty.insert(last_access, block);
            band.sum_of_accesses += last_access;
        } else {
            self.clean.insert(last_access, block);
        }
    }

    fn forget(&mut self, block: u64) -> Cached {
        let cached = self.cached.remove(&block).expect("a cached block");
        if cached.dirty {
            let number = self.band_of(block);
            let band = self.of_band.entry(number).or_default();
            band.dirty.remove(&cached.last_access);
            band.sum_of_accesses -= cached.last_access;
        } else {
            self.clean.remove(&cached.last_access);
        }
        cached
    }

    fn learn(&mut self, epoch: u64) {
        let dirty = self.dirty_blocks();
        let it = &mut self.learnt;
        it.clean_gain = 0.8 * it.clean_gain + it.hits as f64 / epoch as f64;
        it.dirty_gain *= 0.8;
        if self.split == "two-ghosts" {
            it.dirty_gain += it.dirty_hits as f64 / epoch as f64;
        }
        it.dirty_gain += it.windows as f64 * REWRITE_OVER_READ / dirty.max(1) as f64;
        (it.hits, it.dirty_hits, it.windows) = (0, 0, 0);
        let step = (self.capacity / 64).max(1);
        if it.clean_gain > it.dirty_gain {
            let lower = self.allowed.min(dirty).saturating_sub(step);
            self.allowed = lower.max(self.capacity / 16);
        } else if it.clean_gain < it.dirty_gain {
            self.allowed = self.capacity.min(self.allowed + step);
        }
    }

    fn dirty_blocks(&self) -> u64 {
        (self.cached.len() - self.clean.len()) as u64
    }

    fn evict(&mut self) {
        let clean = self.clean.first_key_value().map(|(_, block)| *block);
        let chosen = match clean {
            Some(_) if self.dirty_blocks() <= self.allowed => None,
            _ => self.choose_band(),
        };
        let Some(number) = chosen else {
            let block = clean.expect("a full cache");
            self.forget(block);
            self.log.totals.clean_evictions += 1;
            self.ghost.add(block);
            return;
        };
        let dirty = &self.of_band[&number].dirty;
        let victims: Vec<u64> = dirty.values().copied().take(BATCH).collect();
        for block in victims {
            self.forget(block);
            self.send_down(number, block);
        }
    }

    fn choose_band(&self) -> Option<u32> {
        let with_dirty = || self.of_band.iter().filter(|(_, band)| !band.dirty.is_empty());
        let open = with_dirty().filter(|(_, band)| band.open_until > self.appended);
        let rider = open.min_by_key(|(_, band)| *band.dirty.keys().next().expect("a dirty block"));
        if let Some((number, _)) = rider {
            return Some(*number);
        }
        let mut best: Option<(f64, u32)> = None;
        for (number, band) in with_dirty() {
            let dirty = band.dirty.len() as u64;
            let idle = dirty * self.now - band.sum_of_accesses;
            let blocks = self.bands.extent_of(BandId(*number)).blocks.0;
            let key = dirty as f64 * idle as f64 / blocks as f64;
            if best.is_none_or(|(greatest, _)| key > greatest) {
                best = Some((key, *number));
            }
        }
        best.map(|(_, number)| number)
    }

    fn send_down(&mut self, number: u32, block: u64) {
        self.log.totals.dirty_evictions += 1;
        self.log.append(block);
        self.dirty_ghost.add(block);
        self.appended += 1;
        let band = self.of_band.get_mut(&number).expect("a band");
        if band.open_until < self.appended {
            band.open_until = self.appended + self.period;
            self.learnt.windows += 1;
            self.log.totals.windows_opened += 1;
        } else {
            self.log.totals.rides += 1;
        }
    }
}

/// Which blocks of a kind left, and at which number.
#[derive(Default)]
struct Ghost {
    left: u64,
    numbers: HashMap<u64, u64>,
}

impl Ghost {
    fn add(&mut self, block: u64) {
        self.left += 1;
        self.numbers.insert(block, self.left);
    }

    /// Whether a block left and fewer than `most` others since.
    fn remembers(&self, block: u64, most: u64) -> bool {
        let number = self.numbers.get(&block);
        number.is_some_and(|number| self.left - number < most)
    }
}
