//! HWSR's disk: segments that are rewritten in place.

use super::{Flash, Geometry, HomeCounters};
use std::collections::HashSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrite {
    Cascade,
    Whole,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Valid {
    All,
    Touched,
}

#[derive(Clone, Copy, Debug)]
pub struct SegmentsOptions {
    pub kappa: u64,
    pub rewrite: Rewrite,
    pub valid: Valid,
}

pub struct Segments {
    options: SegmentsOptions,
    geometry: Geometry,
    pub counters: HomeCounters,
    touched: HashSet<u64>,
}

impl Segments {
    pub fn new(options: SegmentsOptions, geometry: Geometry) -> Segments {
        Segments { options, geometry, counters: HomeCounters::default(), touched: HashSet::new() }
    }

    /// A block was written.
    pub fn touch(&mut self, block: u64) {
        self.touched.insert(block);
    }

    fn holds_data(&self, block: u64) -> bool {
        self.options.valid == Valid::All || self.touched.contains(&block)
    }

    /// Rewrites a segment with these dirty blocks, given by their places in it, ascending; of the partial ones
    /// among them the rest is yet to be read.
    pub fn destage(&mut self, segment: u64, dirty: &[u64], partial: &[u64], flash: &mut Flash) {
        let first = segment * self.geometry.segment_blocks;
        let written = self.written(first, dirty);
        let is_dirty = |index: &u64| dirty.binary_search(index).is_ok();
        let others = written.iter().filter(|index| !is_dirty(index));
        let others: Vec<u64> = others.map(|index| first + index).collect();
        let rests = partial.iter().map(|index| first + index);
        let rests = rests.filter(|block| self.holds_data(*block) && !flash.has(*block));
        let rests = rests.count() as u64;
        let from_disk: Vec<u64> = others.iter().copied().filter(|b| !flash.has(*b)).collect();
        self.counters.segments_rewritten += 1;
        self.counters.destaged_blocks += dirty.len() as u64;
        self.counters.rewrite_blocks_written += others.len() as u64;
        self.counters.rewrite_blocks_read += from_disk.len() as u64 + rests;
        for index in dirty {
            flash.destaged(first + index);
            self.touch(first + index);
        }
        flash.read_by_rewrite(&from_disk);
    }

    /// Places in the segment of the blocks that are written: the dirty ones, and those with data that a write before
    /// them in shingle order damages.
    fn written(&self, first: u64, dirty: &[u64]) -> Vec<u64> {
        let mut last_written = None;
        let mut written = Vec::new();
        for index in 0..self.geometry.segment_blocks {
            let holds_data = self.holds_data(first + index);
            let is_damaged = last_written.is_some_and(|last| index - last < self.options.kappa);
            let is_wanted = self.options.rewrite == Rewrite::Whole || is_damaged;
            if dirty.binary_search(&index).is_ok() || (holds_data && is_wanted) {
                last_written = Some(index);
                written.push(index);
            }
        }
        written
    }
}
