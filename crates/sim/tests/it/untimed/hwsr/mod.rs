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
//! | when a write acts on the flash copy | after the buffer took the block, so after an eviction that this write caused |
//! | `on_write = "keep"` | the copy stays until destage, and is dropped there |
//! | `on_write = "update"` | the copy takes the new pages, its recency stays; at destage it stays too |
//! | `dropped_blocks` | copies that a write or a destage dropped, not those that made room for others |
//! | LWA, `scope = "whole-buffer"` | the window chooses the segment; all its buffered blocks leave |
//! | a rewrite that needs a block which is dirty in the buffer and no victim | its old content is read from flash or disk |
//! | `fill_from_rewrite` | all blocks of a rewrite are looked up, those destaged dropped, then those from disk inserted, ascending |
//! | `valid = "touched"` | what a destage has written or a read has fetched from the disk, so far |
//! | `rewrite = "whole"` | all blocks of the segment that hold data, and the dirty ones |
//! | `prefill = "touched"` | the S-blocks that any request of the trace touches hold data at the start |
//! | an S-block that held nothing | is written whole, nothing is read for it |
//! | the order of an S-block's write | append, invalidate, then make room if no slot is free (*room after*, settled) |
//! | `gc_order = "room-first"` | make room if no slot is free, append, invalidate: the same moves, the last ones not yet made |
//! | `gc_order = "invalidate-first"` | invalidate, make room if no slot is free, then append |
//! | `slots = "inside"` | the spare slots are taken from those of the track, so a region holds fewer S-blocks |
//! | the ring of S-blocks without a buffer | one of each region; a block written again takes its old slot and is the newest |
//! | the ring is full | the S-block with most blocks in it is destaged, by ties that of the oldest block |
//! | a block written in part without a buffer | its rest is read first, from flash if it is there, else counted in `rewrite_blocks_read` |

mod buffer;
mod figures;
mod flash;
mod s_block;
mod segments;
mod tests;

pub use buffer::{Buffer, BufferCounters, BufferOptions, PartialRead, Policy, Scope};
pub use flash::{Flash, FlashCounters, FlashOptions, OnWrite};
pub use s_block::{Fill, GcOrder, Prefill, SBlockOptions, SBlocks, Slots};
pub use segments::{Rewrite, Segments, SegmentsOptions, Valid};

use std::collections::BTreeMap;

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
            Home::Segments(home) => home.destage(segment, dirty, flash),
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
            flash: Flash::new(cache),
            home: match home {
                HomeOptions::Segments(options) => Home::Segments(Segments::new(options, geometry)),
                HomeOptions::SBlock(options) => Home::SBlocks(SBlocks::new(options, geometry)),
            },
        }
    }

    pub fn counters(&mut self) -> Counters {
        Counters {
            buffer: self.buffer.as_ref().map(|b| b.counters).unwrap_or_default(),
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
        if is_write && self.buffer.is_none() {
            self.write_through(parts.collect());
            return;
        }
        for (block, part) in parts {
            match is_write {
                true => self.write(block, part),
                false => self.read(block, part),
            }
        }
    }

    fn write(&mut self, block: u64, part: std::ops::Range<u64>) {
        let buffer = self.buffer.as_mut().expect("a buffer");
        if let Some(victims) = buffer.write(block, part) {
            for victim in victims.blocks.iter().filter(|victim| !victim.is_whole) {
                // A fill moves nothing in the cache, and costs the same wherever it comes from.
                let (home, flash) = (&mut self.home, &self.flash);
                fetch_unless_cached(home, flash, victim.block);
            }
            let mut dirty: Vec<u64> = victims
                .blocks
                .iter()
                .map(|victim| self.geometry.place(victim.block).1)
                .collect();
            dirty.sort_unstable();
            self.home.destage(victims.segment, &dirty, &mut self.flash);
        }
        self.flash.written(block);
    }

    fn read(&mut self, block: u64, part: std::ops::Range<u64>) {
        let mut inserts = true;
        if let Some(buffer) = &mut self.buffer {
            match buffer.read(block, part) {
                buffer::Found::All => return,
                buffer::Found::Part(to) => inserts = to == PartialRead::Flash,
                buffer::Found::Nothing => {}
            }
        }
        let was_cached = self.flash.look_up(block);
        if !was_cached {
            fetch_unless_cached(&mut self.home, &self.flash, block);
            if inserts {
                self.flash.insert(block);
            }
        }
    }

    /// A write request without a buffer.
    fn write_through(&mut self, parts: Vec<(u64, std::ops::Range<u64>)>) {
        let mut of_segment: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (block, part) in parts {
            let (segment, index) = self.geometry.place(block);
            let is_whole = part.end - part.start == self.geometry.block_pages;
            if let Home::SBlocks(home) = &mut self.home {
                home.ring_write(segment, index, part, &mut self.flash);
                self.flash.written(block);
                continue;
            }
            if !is_whole && !self.flash.has(block) {
                fetch_unless_cached(&mut self.home, &self.flash, block);
                self.home.counters_mut().rewrite_blocks_read += 1;
            }
            of_segment.entry(segment).or_default().push(index);
        }
        for (segment, dirty) in of_segment {
            self.home.destage(segment, &dirty, &mut self.flash);
        }
    }
}

/// A read that goes down to the disk makes its block one that holds data.
fn fetch_unless_cached(home: &mut Home, flash: &Flash, block: u64) {
    if let (Home::Segments(segments), false) = (home, flash.has(block)) {
        segments.fetched(block);
    }
}
