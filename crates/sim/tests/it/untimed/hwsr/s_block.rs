//! The S-block baseline: each region a circular log of whole S-blocks.

use super::buffer::Counts;
use super::{Flash, Geometry, HomeCounters};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slots {
    Extra,
    Inside,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prefill {
    All,
    /// These S-blocks.
    Touched(BTreeSet<u64>),
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcOrder {
    RoomAfter,
    RoomFirst,
    InvalidateFirst,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    Disk,
    Flash,
}

#[derive(Clone, Debug)]
pub struct SBlockOptions {
    /// Spare slots as a share of the S-blocks of a region.
    pub spare: f64,
    pub slots: Slots,
    pub prefill: Prefill,
    pub gc_order: GcOrder,
    pub fill: Fill,
    /// Blocks of the ring of a region; a tenth of the region when absent.
    pub ring_blocks: Option<u64>,
}

impl SBlockOptions {
    pub fn new(spare: f64) -> SBlockOptions {
        SBlockOptions {
            spare,
            slots: Slots::Extra,
            prefill: Prefill::All,
            gc_order: GcOrder::RoomAfter,
            fill: Fill::Disk,
            ring_blocks: None,
        }
    }
}

#[derive(Default)]
struct Region {
    /// S-block and version in each slot in use, from the tail on.
    slots: VecDeque<(u64, u64)>,
    /// The version of each S-block that is valid.
    version: HashMap<u64, u64>,
    /// Without a buffer: block, and which of its pages are there, by age.
    ring: BTreeMap<u64, u64>,
    ring_pages: HashMap<u64, (u64, Vec<bool>)>,
}

pub struct SBlocks {
    options: SBlockOptions,
    geometry: Geometry,
    pub counters: HomeCounters,
    spare: u64,
    regions: HashMap<u64, Region>,
    now: u64,
    /// Blocks of the request that writes without a buffer: the flash knows of them already.
    under_way: Vec<u64>,
}

impl SBlocks {
    pub fn new(options: SBlockOptions, geometry: Geometry) -> SBlocks {
        let spare = ((options.spare * geometry.region_segments as f64).round() as u64).max(1);
        assert!(spare < geometry.region_segments);
        SBlocks {
            options,
            geometry,
            counters: HomeCounters::default(),
            spare,
            regions: HashMap::new(),
            now: 0,
            under_way: Vec::new(),
        }
    }

    /// A request without a buffer begins to write these blocks.
    pub fn begin(&mut self, blocks: Vec<u64>) {
        self.under_way = blocks;
    }

    /// S-blocks that a region holds.
    pub fn held(&self) -> u64 {
        match self.options.slots {
            Slots::Extra => self.geometry.region_segments,
            Slots::Inside => self.geometry.region_segments - self.spare,
        }
    }

    fn region(&mut self, segment: u64) -> &mut Region {
        let held = self.held();
        let number = segment / held;
        let prefill = &self.options.prefill;
        self.regions.entry(number).or_insert_with(|| {
            let mut region = Region::default();
            let all = number * held..(number + 1) * held;
            for segment in all.filter(|segment| match prefill {
                Prefill::All => true,
                Prefill::Touched(touched) => touched.contains(segment),
                Prefill::None => false,
            }) {
                region.slots.push_back((segment, 0));
                region.version.insert(segment, 0);
            }
            region
        })
    }

    /// Appends an S-block with these dirty blocks, given by their places in it.
    pub fn destage(&mut self, segment: u64, dirty: &[u64], flash: &mut Flash) {
        self.destage_parts(segment, dirty, &[], flash);
    }

    /// Of the partial ones among the dirty blocks the rest is yet to be read.
    fn destage_parts(&mut self, segment: u64, dirty: &[u64], partial: &[u64], flash: &mut Flash) {
        let first = segment * self.geometry.segment_blocks;
        let places = 0..self.geometry.segment_blocks;
        let missing = places.filter(|index| dirty.binary_search(index).is_err());
        let missing: Vec<u64> = missing.map(|index| first + index).collect();
        let held_data = self.region(segment).version.contains_key(&segment);
        let from_flash = self.options.fill == Fill::Flash;
        let is_read = |block: &u64| held_data && !(from_flash && flash.has(*block));
        let from_disk: Vec<u64> = missing.iter().copied().filter(is_read).collect();
        let rests = partial.iter().map(|index| first + index);
        let rests = rests.filter(is_read).count() as u64;
        self.counters.segments_rewritten += 1;
        self.counters.destaged_blocks += dirty.len() as u64;
        self.counters.rewrite_blocks_written += missing.len() as u64;
        self.counters.rewrite_blocks_read += from_disk.len() as u64 + rests;
        let is_known = |block: &u64| self.under_way.contains(block);
        let dirty = dirty.iter().map(|index| first + index);
        dirty.filter(|block| !is_known(block)).for_each(|block| flash.destaged(block));
        let older: Vec<u64> = from_disk.into_iter().filter(|b| !is_known(b)).collect();
        flash.read_by_rewrite(&older);
        self.append(segment);
    }

    fn append(&mut self, segment: u64) {
        self.now += 1;
        let now = self.now;
        match self.options.gc_order {
            GcOrder::RoomAfter => {}
            GcOrder::RoomFirst => self.make_room(segment),
            GcOrder::InvalidateFirst => {
                self.region(segment).version.remove(&segment);
                self.make_room(segment);
            }
        }
        let region = self.region(segment);
        region.slots.push_back((segment, now));
        region.version.insert(segment, now);
        if self.options.gc_order == GcOrder::RoomAfter {
            self.make_room(segment);
        }
    }

    /// Moves or drops the tail until a slot is free.
    fn make_room(&mut self, segment: u64) {
        let slots = (self.held() + self.spare) as usize;
        let region = self.region(segment);
        if region.slots.len() < slots {
            return;
        }
        let mut migrations = 0;
        while let Some((tail, version)) = region.slots.pop_front() {
            if region.version.get(&tail) != Some(&version) {
                break;
            }
            region.slots.push_back((tail, version));
            migrations += 1;
        }
        self.counters.gc_runs += 1;
        self.counters.gc_migrations += migrations;
        self.counters.segments_rewritten += migrations;
        let moved = migrations * self.geometry.segment_blocks;
        self.counters.rewrite_blocks_read += moved;
        self.counters.rewrite_blocks_written += moved;
    }

    /// Without a buffer: writes a part of a block to the ring of its region.
    pub fn ring_write(&mut self, segment: u64, index: u64, part: Range<u64>, flash: &mut Flash) {
        let Geometry { block_pages, segment_blocks, .. } = self.geometry;
        let block = segment * segment_blocks + index;
        let capacity =
            self.options.ring_blocks.unwrap_or((self.held() * segment_blocks / 10).max(1));
        let region = self.region(segment);
        let is_full = region.ring.len() as u64 >= capacity;
        if !region.ring_pages.contains_key(&block) && is_full {
            let segments = region.ring.values().map(|block| block / segment_blocks);
            let victim = Counts::default().fullest(segments);
            self.destage_of_ring(victim, flash);
        }
        self.now += 1;
        let now = self.now;
        let region = self.region(segment);
        let fresh = (0, vec![false; block_pages as usize]);
        let (age, pages) = region.ring_pages.entry(block).or_insert(fresh);
        pages[part.start as usize..part.end as usize].fill(true);
        if *age == 0 {
            *age = now;
            region.ring.insert(now, block);
        }
    }

    /// Without a buffer and without rings: the parts of a request in one S-block, ascending.
    pub fn write_through(&mut self, segment: u64, parts: &[(u64, Range<u64>)], flash: &mut Flash) {
        let pages = self.geometry.block_pages;
        let dirty: Vec<u64> = parts.iter().map(|(index, _)| *index).collect();
        let partial = parts.iter().filter(|(_, part)| part.end - part.start < pages);
        let partial: Vec<u64> = partial.map(|(index, _)| *index).collect();
        self.destage_parts(segment, &dirty, &partial, flash);
    }

    /// Whether writes without a buffer gather in rings.
    pub fn has_rings(&self) -> bool {
        self.options.ring_blocks != Some(0)
    }

    fn destage_of_ring(&mut self, victim: u64, flash: &mut Flash) {
        let segment_blocks = self.geometry.segment_blocks;
        let region = self.region(victim);
        let of_victim = region.ring.iter().filter(|(_, b)| **b / segment_blocks == victim);
        let leaving: Vec<(u64, u64)> = of_victim.map(|(age, block)| (*age, *block)).collect();
        let (mut dirty, mut partial) = (Vec::new(), Vec::new());
        for (age, block) in leaving {
            let region = self.region(victim);
            region.ring.remove(&age);
            let (_, pages) = region.ring_pages.remove(&block).expect("a block of the ring");
            let is_whole = pages.iter().all(|page| *page);
            dirty.push(block % segment_blocks);
            partial.extend((!is_whole).then_some(block % segment_blocks));
        }
        dirty.sort_unstable();
        self.destage_parts(victim, &dirty, &partial, flash);
    }
}
