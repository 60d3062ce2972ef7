//! The read cache in flash: a plain LRU list of clean blocks.

use std::collections::{BTreeMap, HashMap};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnWrite {
    Invalidate,
    Keep,
    Update,
}

#[derive(Clone, Copy, Debug)]
pub struct FlashOptions {
    pub capacity_blocks: u64,
    pub on_write: OnWrite,
    pub fill_from_rewrite: bool,
}

impl FlashOptions {
    pub fn new(capacity_blocks: u64) -> FlashOptions {
        FlashOptions { capacity_blocks, on_write: OnWrite::Invalidate, fill_from_rewrite: false }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlashCounters {
    pub hit_blocks: u64,
    pub miss_blocks: u64,
    pub fill_blocks: u64,
    pub dropped_blocks: u64,
    /// None: a place is free at once.
    pub skipped_fill_blocks: u64,
}

pub struct Flash {
    options: FlashOptions,
    pub counters: FlashCounters,
    now: u64,
    last_access: HashMap<u64, u64>,
    by_age: BTreeMap<u64, u64>,
}

impl Flash {
    pub fn new(options: FlashOptions) -> Flash {
        Flash {
            options,
            counters: FlashCounters::default(),
            now: 0,
            last_access: HashMap::new(),
            by_age: BTreeMap::new(),
        }
    }

    /// Whether a copy is there; moves and counts nothing.
    pub fn has(&self, block: u64) -> bool {
        self.last_access.contains_key(&block)
    }

    /// A read of the host: a hit refreshes the copy.
    pub fn look_up(&mut self, block: u64) -> bool {
        let is_hit = self.has(block);
        match is_hit {
            true => {
                self.counters.hit_blocks += 1;
                self.refresh(block);
            }
            // Without a cache nothing is looked up.
            false if self.options.capacity_blocks == 0 => {}
            false => self.counters.miss_blocks += 1,
        }
        is_hit
    }

    fn refresh(&mut self, block: u64) {
        self.now += 1;
        if let Some(before) = self.last_access.insert(block, self.now) {
            self.by_age.remove(&before);
        }
        self.by_age.insert(self.now, block);
    }

    /// A block that was read from the disk.
    pub fn insert(&mut self, block: u64) {
        self.reserve(block);
        self.fill(block);
    }

    /// A block that a request reads from the disk has a place at once.
    pub fn reserve(&mut self, block: u64) {
        if self.options.capacity_blocks == 0 {
            return;
        }
        let is_full = self.by_age.len() as u64 >= self.options.capacity_blocks;
        if !self.has(block) && is_full {
            let (_, oldest) = self.by_age.pop_first().expect("full");
            self.last_access.remove(&oldest);
        }
        self.refresh(block);
    }

    /// The block has come, and is taken in if it still has its place.
    pub fn fill(&mut self, block: u64) {
        self.counters.fill_blocks += u64::from(self.has(block));
    }

    /// The host has written a part of the block.
    pub fn written(&mut self, block: u64) {
        if self.options.on_write == OnWrite::Invalidate {
            self.discard(block);
        }
    }

    /// The block goes to the disk.
    pub fn destaged(&mut self, block: u64) {
        if self.options.on_write != OnWrite::Update {
            self.discard(block);
        }
    }

    /// Blocks that a rewrite read from the disk, ascending. One that has a copy all the same keeps it as it is.
    pub fn read_by_rewrite(&mut self, blocks: &[u64]) {
        for block in blocks {
            if self.options.fill_from_rewrite && !self.has(*block) {
                self.insert(*block);
            }
        }
    }

    /// There is no copy any more.
    pub fn discard(&mut self, block: u64) {
        if let Some(age) = self.last_access.remove(&block) {
            self.by_age.remove(&age);
            self.counters.dropped_blocks += 1;
        }
    }
}
