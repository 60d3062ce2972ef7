//! The whole of a cached drive-managed disk without time, requests or disks: caches as ordered
//! maps from the time of the last access, the log as a list of blocks. Written from the papers
//! and the rules that make two implementations comparable (`docs/models`), not from the layers.

use crate::simulate::Totals;
use imbrex_core::map::{BandId, BandTable};
use imbrex_core::units::Lba;
use std::collections::{BTreeMap, VecDeque};

/// Which block leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    Lru,
    /// So many dirty blocks of the band at most.
    LruBand {
        batch: usize,
    },
    /// PORE with the balance of popularity and coverage (BL): one block of zones of 20 MiB at a time.
    Pore,
    /// The same with the bands as zones, and batches of their dirty blocks.
    PoreBands {
        batch: usize,
    },
}

impl Replacement {
    fn is_pore(self) -> bool {
        matches!(self, Replacement::Pore | Replacement::PoreBands { .. })
    }
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
    cached: BTreeMap<u64, Cached>,
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
            cached: BTreeMap::new(),
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
        if self.replacement.is_pore() && !hit {
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
        let is_open = |open: &Vec<u64>| open.contains(&self.zone_of(block));
        !self.cached[&block].dirty || self.open.as_ref().is_none_or(is_open)
    }

    fn zone_of(&self, block: u64) -> u64 {
        match self.replacement {
            Replacement::PoreBands { .. } => u64::from(self.bands.band_of(Lba(block)).0),
            _ => block / ZONE_BLOCKS,
        }
    }

    /// The length by which the coverage of a zone is reckoned.
    fn length_of(&self, zone: u64) -> u64 {
        match self.replacement {
            Replacement::PoreBands { .. } => self.bands.extent_of(BandId(zone as u32)).blocks.0,
            _ => ZONE_BLOCKS,
        }
    }

    fn evict(&mut self) {
        let oldest = *self.order.first_key_value().expect("a full cache").1;
        match self.replacement {
            Replacement::Lru => self.remove(oldest),
            Replacement::LruBand { batch } => {
                let band = self.bands.extent_of(self.bands.band_of(Lba(oldest)));
                let inside = self.cached.range(band.start.0..band.end().0);
                let clean = inside.filter(|(_, cached)| !cached.dirty);
                let mut victims: Vec<u64> = clean.map(|(block, _)| *block).collect();
                victims.extend(self.oldest_dirty_of_band(oldest, batch));
                victims.sort_unstable();
                victims.into_iter().for_each(|block| self.remove(block));
            }
            Replacement::Pore | Replacement::PoreBands { .. } => {
                if self.evictable.is_empty() {
                    self.totals.forced_evictions += 1;
                    self.divide();
                }
                let oldest = self.evictable.first_key_value();
                let block = *oldest.expect("a division opens a zone").1;
                match self.replacement {
                    Replacement::PoreBands { batch } if self.cached[&block].dirty => {
                        let victims = self.oldest_dirty_of_band(block, batch);
                        victims.into_iter().for_each(|block| self.remove(block));
                    }
                    _ => self.remove(block),
                }
            }
        }
    }

    /// The dirty blocks of the band of a block that were used least recently, up to a batch.
    fn oldest_dirty_of_band(&self, block: u64, batch: usize) -> Vec<u64> {
        let band = self.bands.extent_of(self.bands.band_of(Lba(block)));
        let inside = self.cached.range(band.start.0..band.end().0);
        let dirty = inside.filter(|(_, cached)| cached.dirty);
        let mut dirty: Vec<(u64, u64)> =
            dirty.map(|(b, cached)| (cached.last_access, *b)).collect();
        dirty.sort_unstable();
        dirty.into_iter().take(batch).map(|(_, block)| block).collect()
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
    /// a zone of `n` has popularity `a / d` and coverage `d / n`.
    fn divide(&mut self) {
        self.totals.divisions += 1;
        let mut zones: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (block, cached) in self.cached.iter().filter(|(_, cached)| cached.dirty) {
            let (accesses, dirty) = zones.entry(self.zone_of(*block)).or_default();
            *accesses += cached.accesses + 1;
            *dirty += 1;
        }
        let mut ranked: Vec<(u64, (u64, u64))> = zones.into_iter().collect();
        ranked.sort_by_key(|(zone, _)| *zone);
        ranked.sort_by(|(zone, (a, d)), (other, (b, e))| {
            let times =
                |accesses: u64, zone: u64| u128::from(accesses) * u128::from(self.length_of(zone));
            let (a, b) = (times(*a, *zone), times(*b, *other));
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
        self.evictable = all.into_iter().filter(|(_, block)| self.may_leave(*block)).collect();
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
        self.newest.insert(block, self.log_head + self.log.len() as u64);
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
