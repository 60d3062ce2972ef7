//! The whole of a cached drive-managed disk without time, requests or disks: caches as ordered
//! maps from the time of the last access, the log as a list of blocks. Written from the papers
//! and the rules that make two implementations comparable (`docs/models`), not from the layers.

use crate::simulate::Totals;
use imbrex_core::map::BandTable;
use imbrex_core::units::Lba;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Which block leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    Lru,
    LruBand,
    /// PORE with the balance of popularity and coverage (BL).
    Pore,
}

#[derive(Clone, Copy)]
struct Cached {
    last_access: u64,
    dirty: bool,
    /// Accesses in this period.
    accesses: u64,
}

/// Zones of 20 MiB, in blocks.
const ZONE_BLOCKS: u64 = 5120;

pub struct Reference<'a> {
    replacement: Replacement,
    /// Reads allocate and refresh.
    caches_reads: bool,
    capacity: usize,
    /// Dirty writes in a period of PORE; as long as the log.
    period: u64,
    bands: &'a BandTable,
    log_blocks: usize,
    now: u64,
    cached: HashMap<u64, Cached>,
    /// Blocks by last access: all, and those that PORE may evict.
    order: BTreeMap<u64, u64>,
    evictable: BTreeMap<u64, u64>,
    /// The open zones; before the first division, all are.
    open: Option<Vec<u64>>,
    counted: u64,
    /// The log from its oldest slot, and the slot that holds the newest copy of each block.
    log: VecDeque<u64>,
    log_head: u64,
    newest: BTreeMap<u64, u64>,
    pub totals: Totals,
}

impl<'a> Reference<'a> {
    pub fn new(
        replacement: Replacement,
        caches_reads: bool,
        (capacity, log_blocks): (u64, u64),
        bands: &'a BandTable,
    ) -> Reference<'a> {
        Reference {
            replacement,
            caches_reads,
            capacity: capacity as usize,
            period: log_blocks,
            bands,
            log_blocks: log_blocks as usize,
            now: 0,
            cached: HashMap::new(),
            order: BTreeMap::new(),
            evictable: BTreeMap::new(),
            open: None,
            counted: 0,
            log: VecDeque::new(),
            log_head: 0,
            newest: BTreeMap::new(),
            totals: Totals::default(),
        }
    }

    /// One block of a request.
    pub fn access(&mut self, block: u64, is_write: bool) {
        self.now += 1;
        let hit = self.cached.contains_key(&block);
        match is_write {
            true => self.totals.write_hits += u64::from(hit),
            false => self.totals.read_hits += u64::from(hit),
        }
        if !is_write && !self.caches_reads {
            return;
        }
        if !hit {
            while self.cached.len() >= self.capacity {
                self.evict();
            }
        }
        let before = self.cached.get(&block).copied().unwrap_or(Cached {
            last_access: 0,
            dirty: false,
            accesses: 0,
        });
        self.order.remove(&before.last_access);
        self.evictable.remove(&before.last_access);
        let after = Cached {
            last_access: self.now,
            dirty: before.dirty || is_write,
            accesses: before.accesses + 1,
        };
        self.cached.insert(block, after);
        self.order.insert(self.now, block);
        if self.may_leave(block) {
            self.evictable.insert(self.now, block);
        }
        self.counted += u64::from(is_write && !hit);
        if self.replacement == Replacement::Pore && !hit {
            let due = match self.open {
                None => self.cached.len() == self.capacity,
                Some(_) => self.counted >= self.period,
            };
            if due {
                self.divide();
            }
        }
    }

    fn may_leave(&self, block: u64) -> bool {
        let is_open = |open: &Vec<u64>| open.contains(&(block / ZONE_BLOCKS));
        !self.cached[&block].dirty || self.open.as_ref().is_none_or(is_open)
    }

    fn evict(&mut self) {
        let oldest = *self.order.first_key_value().expect("a full cache").1;
        match self.replacement {
            Replacement::Lru => self.remove(oldest),
            Replacement::LruBand => {
                let band = self.bands.extent_of(self.bands.band_of(Lba(oldest)));
                let mut victims: Vec<u64> = self.cached.keys().copied().collect();
                victims.retain(|block| band.contains(Lba(*block)));
                victims.sort_unstable();
                victims.into_iter().for_each(|block| self.remove(block));
            }
            Replacement::Pore => {
                if self.evictable.is_empty() {
                    self.totals.forced_evictions += 1;
                    self.divide();
                }
                let oldest = self.evictable.first_key_value();
                let block = *oldest.expect("a division opens a zone").1;
                self.remove(block);
            }
        }
    }

    fn remove(&mut self, block: u64) {
        let cached = self.cached.remove(&block).expect("a cached block");
        self.order.remove(&cached.last_access);
        self.evictable.remove(&cached.last_access);
        if cached.dirty {
            self.totals.dirty_evictions += 1;
            self.append(block);
        } else {
            self.totals.clean_evictions += 1;
        }
    }

    /// Opens the zones with the lowest popularity over coverage until they hold a period's worth
    /// of dirty blocks. With `d` dirty blocks, each credited with one access more than it had,
    /// a zone has popularity `a / d` and a coverage in proportion to `d`.
    fn divide(&mut self) {
        self.totals.divisions += 1;
        let mut zones: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (block, cached) in self.cached.iter().filter(|(_, cached)| cached.dirty) {
            let (accesses, dirty) = zones.entry(block / ZONE_BLOCKS).or_default();
            *accesses += cached.accesses + 1;
            *dirty += 1;
        }
        let mut ranked: Vec<(u64, (u64, u64))> = zones.into_iter().collect();
        ranked.sort_by_key(|(zone, _)| *zone);
        ranked.sort_by(|(_, (a, d)), (_, (b, e))| {
            let (a, b) = (u128::from(*a), u128::from(*b));
            let (d, e) = (u128::from(*d), u128::from(*e));
            (a * e * e).cmp(&(b * d * d))
        });
        let (mut open, mut dirty) = (Vec::new(), 0);
        for (zone, (_, zone_dirty)) in ranked {
            if dirty >= self.period {
                break;
            }
            open.push(zone);
            dirty += zone_dirty;
        }
        self.open = Some(open);
        self.counted = 0;
        let all = self.order.clone();
        self.evictable = all
            .into_iter()
            .filter(|(_, block)| self.may_leave(*block))
            .collect();
        for cached in self.cached.values_mut() {
            cached.accesses = 0;
        }
    }

    /// A block arrives at the drive.
    pub fn append(&mut self, block: u64) {
        if self.log.len() == self.log_blocks {
            let oldest = self.log[0];
            if self.newest.get(&oldest) == Some(&self.log_head) {
                self.rewrite_band_of(oldest);
            }
            self.log.pop_front();
            self.log_head += 1;
        }
        self.newest
            .insert(block, self.log_head + self.log.len() as u64);
        self.log.push_back(block);
        self.totals.appended += 1;
    }

    fn rewrite_band_of(&mut self, block: u64) {
        let band = self.bands.extent_of(self.bands.band_of(Lba(block)));
        let inside = self.newest.range(band.start.0..band.end().0);
        let merged: Vec<u64> = inside.map(|(block, _)| *block).collect();
        self.totals.merged += merged.len() as u64;
        for block in merged {
            self.newest.remove(&block);
        }
        self.totals.bands_rewritten += 1;
        self.totals.band_blocks_written += band.blocks.0;
    }
}
