//! RAID 4SMR as the thesis tells it, a block at a time and without time: an independent model of its counts
//! and of where blocks are.

use imbrex_core::array::raid4smr::{FirstWrite, Placement, Raid4SmrSettings, SlotOrder};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    pub first_writes: u64,
    pub updates: u64,
    pub unsafe_first_writes: u64,
    pub redirected: u64,
    pub collections: u64,
    pub forced_collections: u64,
    pub collected_blocks: u64,
    pub map_entries: u64,
    pub slots_peak: u64,
}

pub struct Naive {
    pub settings: Raid4SmrSettings,
    pub band: u64,
    slots: u64,
    /// Place of each block that has one, and the blocks by place.
    place: BTreeMap<u64, u64>,
    block: BTreeMap<u64, u64>,
    written: BTreeSet<u64>,
    map: BTreeMap<u64, u64>,
    freed: Vec<u64>,
    new_slot: u64,
    /// Physical band of each logical band row, and the spare one.
    bands: BTreeMap<u64, u64>,
    spare: u64,
    /// Places of homes that hold something: (home, band, offset).
    pub at_home: BTreeSet<(u64, u64, u64)>,
    pub counts: Counts,
}

impl Naive {
    pub fn new(settings: Raid4SmrSettings, band: u64, slots: u64) -> Naive {
        Naive {
            settings,
            band,
            slots,
            place: BTreeMap::new(),
            block: BTreeMap::new(),
            written: BTreeSet::new(),
            map: BTreeMap::new(),
            freed: Vec::new(),
            new_slot: 0,
            bands: BTreeMap::new(),
            spare: 0,
            at_home: BTreeSet::new(),
            counts: Counts::default(),
        }
    }

    fn homes(&self) -> u64 {
        self.settings.homes as u64
    }

    fn physical(&self, band_row: u64) -> u64 {
        self.bands.get(&band_row).copied().unwrap_or(band_row + 1)
    }

    /// Home, logical band row and offset of a place.
    fn at(&self, place: u64) -> (u64, u64, u64) {
        let row = place / self.homes();
        (place % self.homes(), row / self.band, row % self.band)
    }

    pub fn write(&mut self, block: u64) {
        let place = match self.settings.placement {
            Placement::Static => Some(block),
            Placement::Append => self.place.get(&block).copied(),
        };
        let is_update = self.written.contains(&block);
        let goes_home = match (place, self.settings.placement, self.settings.first_write) {
            _ if is_update => false,
            (None, ..) => true,
            (Some(_), Placement::Append, _) => false,
            (_, _, FirstWrite::Free) => true,
            (Some(place), _, FirstWrite::Rule) => {
                let (home, row, offset) = self.at(place);
                let band = self.physical(row);
                let track = |offset: u64| offset / self.settings.track_blocks;
                let later = self.at_home.iter().any(|(other, at, written)| {
                    (*other, *at) == (home, band) && track(*written) > track(offset)
                });
                !later
            }
        };
        if goes_home {
            let place = place.unwrap_or(self.place.len() as u64);
            self.place.insert(block, place);
            self.block.insert(place, block);
            self.written.insert(block);
            let (home, row, offset) = self.at(place);
            self.at_home.insert((home, self.physical(row), offset));
            self.counts.first_writes += 1;
            return;
        }
        let place = place.expect("a block that has one");
        self.place.insert(block, place);
        self.block.insert(place, block);
        match is_update {
            true => self.counts.updates += 1,
            false => self.counts.unsafe_first_writes += 1,
        }
        self.counts.redirected += 1;
        if self.map.contains_key(&block) {
            return;
        }
        if self.freed.is_empty() && self.new_slot == self.slots {
            let mut mapped: BTreeMap<u64, u64> = BTreeMap::new();
            for block in self.map.keys() {
                *mapped.entry(self.at(self.place[block]).1).or_default() += 1;
            }
            let most = *mapped.values().max().expect("slots are in use");
            let row = mapped.iter().find(|(_, count)| **count == most).expect("the most");
            self.counts.forced_collections += 1;
            self.collect(*row.0);
        }
        let slot = match (self.freed.is_empty(), self.settings.slots) {
            (true, _) => {
                self.new_slot += 1;
                self.new_slot - 1
            }
            (false, SlotOrder::Fifo) => self.freed.remove(0),
            (false, SlotOrder::Lowest) => {
                let lowest = *self.freed.iter().min().expect("a freed slot");
                self.freed.retain(|slot| *slot != lowest);
                lowest
            }
        };
        self.map.insert(block, slot);
        self.written.insert(block);
        self.counts.slots_peak = self.counts.slots_peak.max(self.map.len() as u64);
        let row = self.at(place).1;
        let mapped = self.map.keys().filter(|block| self.at(self.place[*block]).1 == row).count();
        if self.settings.collect_at.is_some_and(|at| mapped as u64 >= at) {
            self.counts.collections += 1;
            self.collect(row);
        }
        self.counts.map_entries = self.map.len() as u64;
    }

    fn collect(&mut self, row: u64) {
        let target = self.spare;
        self.spare = self.physical(row);
        self.at_home.retain(|(_, band, _)| *band != target);
        self.bands.insert(row, target);
        let first = row * self.band * self.homes();
        for place in first..first + self.band * self.homes() {
            let Some(block) = self.block.get(&place).filter(|it| self.written.contains(it)) else {
                continue;
            };
            let (home, _, offset) = self.at(place);
            self.at_home.insert((home, target, offset));
            self.counts.collected_blocks += 1;
            if let Some(slot) = self.map.remove(block) {
                self.freed.push(slot);
            }
        }
        self.counts.map_entries = self.map.len() as u64;
    }

    /// Where a block is: column and row; none of one that was never written.
    pub fn find(&self, block: u64) -> Option<(usize, u64)> {
        if !self.written.contains(&block) {
            return None;
        }
        if let Some(slot) = self.map.get(&block) {
            return Some((self.settings.homes, *slot));
        }
        let (home, row, offset) = self.at(self.place[&block]);
        Some((home as usize, self.physical(row) * self.band + offset))
    }

    /// True when a column has something in a row that its parity covers.
    pub fn has(&self, column: usize, row: u64) -> bool {
        match column {
            home if home < self.settings.homes => {
                self.at_home.contains(&(home as u64, row / self.band, row % self.band))
            }
            data if data == self.settings.homes => row < self.new_slot,
            _ => (0..=self.settings.homes).any(|column| self.has(column, row)),
        }
    }
}
