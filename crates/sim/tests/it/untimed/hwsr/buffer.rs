//! The write buffer: dirty blocks by the time of their last access, and which of them leave.

use super::Geometry;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Lwa,
    LruBlock,
    LruSegment,
    Most,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Window,
    WholeBuffer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartialRead {
    Memory,
    Flash,
}

#[derive(Clone, Copy, Debug)]
pub struct BufferOptions {
    pub capacity_blocks: u64,
    pub policy: Policy,
    /// Share of the buffer's blocks that LWA looks at.
    pub window: f64,
    pub scope: Scope,
    pub partial_read: PartialRead,
}

impl BufferOptions {
    /// What the paper says, and where it does not, what is adopted.
    pub fn new(capacity_blocks: u64, policy: Policy) -> BufferOptions {
        BufferOptions {
            capacity_blocks,
            policy,
            window: 0.25,
            scope: Scope::Window,
            partial_read: PartialRead::Memory,
        }
    }

    fn window_blocks(&self) -> usize {
        ((self.capacity_blocks as f64 * self.window + 1e-9) as usize).max(1)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferCounters {
    pub block_reads: u64,
    pub block_writes: u64,
    pub hit_block_reads: u64,
    pub hit_block_writes: u64,
    pub partial_reads: u64,
    pub evictions: u64,
    pub evicted_blocks: u64,
    pub destages: u64,
    pub fill_blocks_read: u64,
}

/// How much of a read the buffer had.
pub enum Found {
    All,
    /// Some of it; the rest is read for the memory or the flash.
    Part(PartialRead),
    Nothing,
}

/// The blocks that leave together, of one segment.
pub struct Victims {
    pub segment: u64,
    pub blocks: Vec<u64>,
}

struct Buffered {
    last_access: u64,
    valid: Vec<bool>,
}

pub struct Buffer {
    options: BufferOptions,
    geometry: Geometry,
    pub counters: BufferCounters,
    now: u64,
    blocks: HashMap<u64, Buffered>,
    /// The oldest first: the tail of the list.
    by_age: BTreeMap<u64, u64>,
    counts: Counts,
}

impl Buffer {
    pub fn new(options: BufferOptions, geometry: Geometry) -> Buffer {
        Buffer {
            options,
            geometry,
            counters: BufferCounters::default(),
            now: 0,
            blocks: HashMap::new(),
            by_age: BTreeMap::new(),
            counts: Counts::default(),
        }
    }

    /// Takes a written part of a block; whether the block was there, and what had to leave for it.
    pub fn write(&mut self, block: u64, part: Range<u64>) -> (bool, Option<Victims>) {
        self.counters.block_writes += 1;
        let is_hit = self.blocks.contains_key(&block);
        self.counters.hit_block_writes += u64::from(is_hit);
        let is_full = self.blocks.len() as u64 >= self.options.capacity_blocks;
        let victims = (!is_hit && is_full).then(|| self.evict());
        let pages = self.geometry.block_pages as usize;
        let buffered = self
            .blocks
            .entry(block)
            .or_insert_with(|| Buffered { last_access: 0, valid: vec![false; pages] });
        buffered.valid[part.start as usize..part.end as usize].fill(true);
        self.touch(block);
        (is_hit, victims)
    }

    pub fn read(&mut self, block: u64, part: Range<u64>) -> Found {
        self.counters.block_reads += 1;
        let Some(buffered) = self.blocks.get_mut(&block) else {
            return Found::Nothing;
        };
        let mut wanted = buffered.valid[part.start as usize..part.end as usize].iter();
        let has_all = wanted.all(|valid| *valid);
        if !has_all && self.options.partial_read == PartialRead::Memory {
            buffered.valid.fill(true);
        }
        self.touch(block);
        if has_all {
            self.counters.hit_block_reads += 1;
            return Found::All;
        }
        self.counters.partial_reads += 1;
        Found::Part(self.options.partial_read)
    }

    fn touch(&mut self, block: u64) {
        self.now += 1;
        let buffered = self.blocks.get_mut(&block).expect("a buffered block");
        self.by_age.remove(&buffered.last_access);
        buffered.last_access = self.now;
        self.by_age.insert(self.now, block);
    }

    fn evict(&mut self) -> Victims {
        let geometry = self.geometry;
        let segment_of = |block: &u64| geometry.place(*block).0;
        let window = self.options.window_blocks();
        let segment = match self.options.policy {
            Policy::Lwa => self.counts.fullest(self.by_age.values().take(window).map(segment_of)),
            Policy::Most => self.counts.fullest(self.by_age.values().map(segment_of)),
            Policy::LruBlock => self.by_age.values().map(segment_of).next().expect("full"),
            Policy::LruSegment => {
                // From the newest on, the segment that is seen last for the first time.
                let mut seen = std::collections::HashSet::new();
                let newest = self.by_age.values().rev().map(segment_of);
                newest.filter(|it| seen.insert(*it)).last().expect("full")
            }
        };
        let reach = match (self.options.policy, self.options.scope) {
            (Policy::Lwa, Scope::Window) => window,
            (Policy::LruBlock, _) => 1,
            _ => usize::MAX,
        };
        let of_segment = self.by_age.iter().take(reach);
        let leaving: Vec<(u64, u64)> = of_segment
            .filter(|(_, block)| segment_of(block) == segment)
            .map(|(age, block)| (*age, *block))
            .collect();
        let mut blocks = Vec::new();
        for (age, block) in leaving {
            self.by_age.remove(&age);
            let buffered = self.blocks.remove(&block).expect("a buffered block");
            let is_whole = buffered.valid.iter().all(|valid| *valid);
            self.counters.fill_blocks_read += u64::from(!is_whole);
            blocks.push(block);
        }
        self.counters.evictions += 1;
        self.counters.destages += 1;
        self.counters.evicted_blocks += blocks.len() as u64;
        Victims { segment, blocks }
    }
}

/// Counts segments; a number for each, so that counting is cheap.
#[derive(Default)]
pub struct Counts {
    of_segment: Vec<u32>,
    seen: Vec<u64>,
}

impl Counts {
    /// The segment that occurs most often; of several, the one that occurs first.
    pub fn fullest(&mut self, segments: impl Iterator<Item = u64>) -> u64 {
        for segment in segments {
            let index = segment as usize;
            if index >= self.of_segment.len() {
                self.of_segment.resize(index + 1, 0);
            }
            if self.of_segment[index] == 0 {
                self.seen.push(segment);
            }
            self.of_segment[index] += 1;
        }
        let mut best = (0, 0);
        for segment in self.seen.drain(..) {
            let count = std::mem::take(&mut self.of_segment[segment as usize]);
            if count > best.0 {
                best = (count, segment);
            }
        }
        best.1
    }
}
