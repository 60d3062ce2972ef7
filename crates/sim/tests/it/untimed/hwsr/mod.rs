//! HWSR and its S-block baseline without time, requests in flight or disks: a write buffer in memory, a read cache in flash
//! and a shingled disk, over (is it a write, first 4 KiB block, count) requests. Written from the description of the system,
//! not from the layers.
//!
//! A *page* is 4 KiB, a *block* a block of the translation (64 KiB), a *segment* the blocks of one segment or S-block. Where the
//! description leaves something open, the model does this:
//!
//! Two choices are no longer open: on `financial1-dense` they alone give the numbers of segments rewritten that another model
//! gives (`figures.rs`). They are marked *settled*.
//!
//! | Open | Chosen |
//! |---|---|
//! | a partial read of a buffered block | no hit; the block becomes the most recent of the buffer all the same (settled) |
//! | `partial_read = "flash"` | the whole block is read into the flash cache, the buffered block stays partly valid |
//! | what a partial read counts in the cache | a lookup: a hit, or a miss (and a fill only with `"flash"`) |
//! | what a fill at destage counts | `fill_blocks_read` whether flash or disk gives it; no hit or miss of the cache, nothing moves there |
//! | when a write acts on the flash copy | of a block that has memory: at once; of one that waits for it: after the eviction it waits for |
//! | when a read takes its place in flash | when it has missed; it counts as a fill when the request ends, if the place is still its own |
//! | `on_write = "keep"` | the copy stays until destage, and is dropped there |
//! | `on_write = "update"` | the copy takes the new pages, its recency stays; at destage it stays too |
//! | `dropped_blocks` | copies that a write or a destage dropped, not those that made room for others |
//! | LWA, `scope = "whole-buffer"` | the window chooses the segment; all its buffered blocks leave |
//! | a rewrite that needs a block which is dirty in the buffer and no victim | its old content is read from flash or disk |
//! | `fill_from_rewrite` | all blocks of a rewrite are looked up, those destaged dropped, then those from disk inserted, ascending |
//! | a block that a rewrite reads from the disk though flash has a copy | the copy stays as it is and is no fill |
//! | `valid = "touched"` | what a destage has written so far; reading does not touch a block |
//! | `rewrite = "whole"` | all blocks of the segment that hold data, and the dirty ones |
//! | `prefill = "touched"` | the S-blocks that any request of the trace touches hold data at the start |
//! | an S-block that held nothing | is written whole, nothing is read for it |
//! | the order of an S-block's write | append, invalidate, then make room if no slot is free (*room after*, settled) |
//! | the stacks' `gc_order = "room-first"` | that order (*room after*) |
//! | *room first* | make room if no slot is free, append, invalidate: the same moves, the last ones not yet made |
//! | `gc_order = "invalidate-first"` | invalidate, make room if no slot is free, then append |
//! | `slots = "inside"` | the spare slots are taken from those of the track, so a region holds fewer S-blocks |
//! | the ring of S-blocks without a buffer | one of each region, a tenth of the blocks that it holds; a block written again keeps its place and its age |
//! | the ring is full | the S-block with most blocks in it is destaged, by ties that of the oldest block |
//! | `ring = 0` | a request rewrites each S-block it touches |
//! | a write without a buffer | acts on all copies of its blocks by `on_write`, then as a destage of each, in whole or in part: with `"update"` all stay, else none |
//! | a block written in part without a buffer | its rest is read if it holds data, as a block of the rewrite that is not dirty |
//! | a block that leaves a ring | its copy, made by a read since, goes as at any destage |
//! | blocks of the request that writes without a buffer | are not taken into flash by a rewrite of S-blocks that it causes |
//! | what is counted without a buffer | `block_reads` and `block_writes` |

mod buffer;
mod equal;
mod figures;
mod flash;
mod gates;
mod random;
mod s_block;
mod segments;
mod tests;

pub use buffer::{Buffer, BufferCounters, BufferOptions, PartialRead, Policy, Scope};
pub use flash::{Flash, FlashCounters, FlashOptions, OnWrite};
pub use s_block::{Fill, GcOrder, Prefill, SBlockOptions, SBlocks, Slots};
pub use segments::{Rewrite, Segments, SegmentsOptions, Valid};

use std::collections::BTreeMap;
use std::ops::Range;

/// Sizes that both translations share.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// Pages of a block.
    pub block_pages: u64,
    /// Blocks of a segment, which are the tracks of a region.
    pub segment_blocks: u64,
    /// Segments of a region, which are the blocks of a track.
    pub region_segments: u64,
}

impl Geometry {
    /// From sizes in bytes.
    pub fn new(track_bytes: u64, block_bytes: u64, region_tracks: u64) -> Geometry {
        assert!(track_bytes.is_multiple_of(block_bytes) && block_bytes.is_multiple_of(4096));
        Geometry {
            block_pages: block_bytes / 4096,
            segment_blocks: region_tracks,
            region_segments: track_bytes / block_bytes,
        }
    }

    /// The segment of a block, and its place in the segment.
    fn place(&self, block: u64) -> (u64, u64) {
        (block / self.segment_blocks, block % self.segment_blocks)
    }
}

/// Which translation, and how.
#[derive(Clone, Debug)]
pub enum HomeOptions {
    /// HWSR.
    Segments(SegmentsOptions),
    /// The baseline.
    SBlock(SBlockOptions),
}

/// What the translation counts; `gc_runs` and `gc_migrations` are of S-blocks only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HomeCounters {
    pub segments_rewritten: u64,
    pub gc_runs: u64,
    pub gc_migrations: u64,
    pub rewrite_blocks_read: u64,
    pub destaged_blocks: u64,
    pub rewrite_blocks_written: u64,
}

/// All that is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub buffer: BufferCounters,
    pub cache: FlashCounters,
    pub home: HomeCounters,
}

enum Home {
    Segments(Segments),
    SBlocks(SBlocks),
}

impl Home {
    fn destage(&mut self, segment: u64, dirty: &[u64], flash: &mut Flash) {
        match self {
            Home::Segments(home) => home.destage(segment, dirty, &[], flash),
            Home::SBlocks(home) => home.destage(segment, dirty, flash),
        }
    }

    fn counters_mut(&mut self) -> &mut HomeCounters {
        match self {
            Home::Segments(home) => &mut home.counters,
            Home::SBlocks(home) => &mut home.counters,
        }
    }
}

/// A buffer, a cache and a translation.
pub struct Model {
    geometry: Geometry,
    buffer: Option<Buffer>,
    /// What is counted without a buffer.
    around: BufferCounters,
    flash: Flash,
    home: Home,
}

impl Model {
    pub fn new(
        geometry: Geometry,
        buffer: BufferOptions,
        cache: FlashOptions,
        home: HomeOptions,
    ) -> Model {
        let has_buffer = buffer.capacity_blocks > 0;
        Model {
            geometry,
            buffer: has_buffer.then(|| Buffer::new(buffer, geometry)),
            around: BufferCounters::default(),
            flash: Flash::new(cache),
            home: match home {
                HomeOptions::Segments(options) => Home::Segments(Segments::new(options, geometry)),
                HomeOptions::SBlock(options) => Home::SBlocks(SBlocks::new(options, geometry)),
            },
        }
    }

    pub fn counters(&mut self) -> Counters {
        Counters {
            buffer: self.buffer.as_ref().map_or(self.around, |b| b.counters),
            cache: self.flash.counters,
            home: *self.home.counters_mut(),
        }
    }

    /// One request, already rounded outward to pages.
    pub fn request(&mut self, is_write: bool, first_page: u64, pages: u64) {
        if pages == 0 {
            return;
        }
        let size = self.geometry.block_pages;
        let end_page = first_page + pages;
        let blocks = first_page / size..end_page.div_ceil(size);
        let parts = blocks.map(|block| {
            let from = first_page.max(block * size) - block * size;
            let to = end_page.min((block + 1) * size) - block * size;
            (block, from..to)
        });
        let parts: Vec<(u64, Range<u64>)> = parts.collect();
        match (is_write, self.buffer.is_some()) {
            (false, _) => self.read(parts),
            (true, true) => self.write(parts),
            (true, false) => self.write_through(parts),
        }
    }

    /// A write acts on the copies of the blocks that have memory at once; those that wait for it follow, each
    /// after what had to leave for it.
    fn write(&mut self, parts: Vec<(u64, Range<u64>)>) {
        let buffer = self.buffer.as_mut().expect("a buffer");
        let mut later = Vec::new();
        for (block, part) in parts {
            let (is_hit, victims) = buffer.write(block, part);
            match is_hit || (victims.is_none() && later.is_empty()) {
                true => self.flash.written(block),
                false => later.push((block, victims)),
            }
        }
        for (block, victims) in later {
            if let Some(victims) = victims {
                let places = victims.blocks.iter();
                let mut dirty: Vec<u64> =
                    places.map(|block| self.geometry.place(*block).1).collect();
                dirty.sort_unstable();
                self.home.destage(victims.segment, &dirty, &mut self.flash);
            }
            self.flash.written(block);
        }
    }

    fn read(&mut self, parts: Vec<(u64, Range<u64>)>) {
        let mut reserved = Vec::new();
        for (block, part) in parts {
            let found = match &mut self.buffer {
                Some(buffer) => buffer.read(block, part),
                None => {
                    self.around.block_reads += 1;
                    buffer::Found::Nothing
                }
            };
            let inserts = match found {
                buffer::Found::All => continue,
                buffer::Found::Part(to) => to == PartialRead::Flash,
                buffer::Found::Nothing => true,
            };
            if !self.flash.look_up(block) && inserts {
                self.flash.reserve(block);
                reserved.push(block);
            }
        }
        reserved.iter().for_each(|block| self.flash.fill(*block));
    }

    /// A write request without a buffer.
    fn write_through(&mut self, parts: Vec<(u64, Range<u64>)>) {
        self.around.block_writes += parts.len() as u64;
        let whole = self.geometry.block_pages;
        for (block, _) in &parts {
            self.flash.written(*block);
        }
        if let Home::SBlocks(home) = &mut self.home {
            home.begin(parts.iter().map(|(block, _)| *block).collect());
            for (block, _) in &parts {
                self.flash.destaged(*block);
            }
        }
        let mut of_segment: BTreeMap<u64, Vec<(u64, Range<u64>)>> = BTreeMap::new();
        for (block, part) in parts {
            let (segment, index) = self.geometry.place(block);
            if let Home::SBlocks(home) = &mut self.home
                && home.has_rings()
            {
                home.ring_write(segment, index, part, &mut self.flash);
                continue;
            }
            of_segment.entry(segment).or_default().push((index, part));
        }
        for (segment, parts) in of_segment {
            match &mut self.home {
                Home::SBlocks(home) => home.write_through(segment, &parts, &mut self.flash),
                Home::Segments(home) => {
                    let dirty: Vec<u64> = parts.iter().map(|(index, _)| *index).collect();
                    let partial = parts.iter().filter(|(_, part)| part.end - part.start < whole);
                    let partial: Vec<u64> = partial.map(|(index, _)| *index).collect();
                    home.destage(segment, &dirty, &partial, &mut self.flash);
                }
            }
        }
    }
}
