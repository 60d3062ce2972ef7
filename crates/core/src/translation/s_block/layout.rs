//! Where everything lies: regions, their slots and rings, and the journal.
//!
//! ```text
//! dense:  | journal | tables | region 0: positions, ring | region 1: positions, ring | ...
//! disk:   | journal | tables | rings | ... | region 0: positions | guard tracks | region 1 ...
//! ```
//!
//! There are tables where there are checksums: one for each position, as long as an S-block needs.
//!
//! S-blocks lie in *positions*, each as long as one. A region has a position for each slot, one more,
//! so that an S-block is moved without being written over itself, and behind it as many as the writer
//! is wide (the internal guard): a write at the head destroys no more than the positions of the guard
//! in front of the oldest slot.

use super::records;
use super::settings::{RingSize, SBlockError, SBlockSettings, SpareSlots, TrackSource};
use crate::checksums::pages_of;
use crate::disk::{Geometry, Shingling, TrackTable};
use crate::durability::JournalSettings;
use crate::extent::Extent;
use crate::saved::SavedValue;
use crate::units::{BLOCK_BYTES, BlockCount};
use alloc::vec::Vec;

/// How the S-blocks of a region are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub struct Shape {
    /// S-blocks that it offers.
    pub data: u16,
    /// Slots: those, and the spare ones.
    pub slots: u16,
    /// Positions that a write may destroy behind its own.
    pub guard: u16,
}

impl Shape {
    /// Positions of a region.
    pub fn positions(self) -> u16 {
        self.slots + 1 + self.guard
    }
}

/// A region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// How its S-blocks are counted.
    pub shape: Shape,
    /// The number of its first S-block.
    pub first_segment: u32,
    /// Its first block on the disk.
    pub start: u64,
    /// The first block of its ring on the disk.
    pub ring: u64,
    /// The number of its first position among those of all regions.
    pub first_position: u32,
}

/// Where everything lies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Blocks of 4 KiB of a block.
    pub block: u64,
    /// Blocks of 4 KiB of an S-block.
    pub segment: u64,
    /// The regions.
    pub places: Vec<Place>,
    /// Blocks that a ring takes in.
    pub ring_blocks: u64,
    /// Places that it has for them.
    pub ring_places: u64,
    /// The area of the journal; empty without one.
    pub journal: Extent,
    /// Blocks of each of its two places for a checkpoint.
    pub checkpoint_blocks: u64,
    /// The tables of checksums; empty without them.
    pub tables: Extent,
    /// Blocks of each of them.
    pub table_blocks: u64,
    /// S-blocks in all.
    pub segments: u32,
    /// Blocks of tracks that are no whole region, as far as regions are wanted.
    pub unused: BlockCount,
}

/// S-blocks of a region with `n` of them on its tracks.
fn shape_of(n: u64, guard: u64, settings: &SBlockSettings) -> Result<Shape, SBlockError> {
    let million = super::settings::MILLION;
    let spare = ((n * settings.spare_ppm + million / 2) / million).max(1);
    let (data, slots) = match settings.slots {
        SpareSlots::Extra => (n, n + spare),
        SpareSlots::Inside if spare < n => (n - spare, n),
        SpareSlots::Inside => return Err(SBlockError::NoData { segments: n, spare }),
    };
    if slots + guard + 1 >= u64::from(u16::MAX) {
        return Err(SBlockError::TooManySlots(slots));
    }
    Ok(Shape { data: data as u16, slots: slots as u16, guard: guard as u16 })
}

impl Layout {
    /// Lays everything out on a disk.
    ///
    /// # Errors
    /// When a setting is out of range or the disk cannot hold a region.
    pub fn new(settings: &SBlockSettings, below: &Geometry) -> Result<Layout, SBlockError> {
        settings.check()?;
        let layout = match settings.track {
            TrackSource::Dense(track) => Layout::dense(settings, track, below)?,
            TrackSource::Disk => {
                let tracks = below.tracks.as_deref().ok_or(SBlockError::NoTracks)?;
                Layout::on_tracks(settings, tracks)?
            }
        };
        if layout.ring_places > u64::from(u16::MAX) {
            return Err(SBlockError::RingTooLong(layout.ring_blocks));
        }
        match layout.places.is_empty() {
            true => Err(SBlockError::NoRegion { blocks: below.blocks }),
            false => Ok(layout),
        }
    }

    fn empty(settings: &SBlockSettings) -> Layout {
        Layout {
            block: settings.block.0,
            segment: settings.segment(),
            places: Vec::new(),
            ring_blocks: 0,
            ring_places: 0,
            journal: Extent::EMPTY,
            checkpoint_blocks: 0,
            tables: Extent::EMPTY,
            table_blocks: match settings.keeping().checksums {
                None => 0,
                Some(_) => pages_of(settings.segment()),
            },
            segments: 0,
            unused: BlockCount::ZERO,
        }
    }

    /// Sets the room of each ring, for regions of at most `data` S-blocks.
    fn set_rings(&mut self, settings: &SBlockSettings, data: u64) {
        let blocks = data * settings.region_tracks;
        self.ring_blocks = match settings.ring {
            RingSize::Blocks(blocks) => blocks,
            RingSize::Share(0) => 0,
            RingSize::Share(ppm) => (blocks * ppm / super::settings::MILLION).max(1),
        };
        // A block that is written again goes to another place until that is durable.
        let more = match settings.keeping().in_place || self.ring_blocks == 0 {
            true => 0,
            false => (self.ring_blocks / 4).max(2),
        };
        self.ring_places = self.ring_blocks + more;
    }

    /// Blocks of 4 KiB of a ring.
    pub fn ring_length(&self) -> u64 {
        self.ring_places * self.block
    }

    fn wants_more(&self, settings: &SBlockSettings) -> bool {
        let told = u64::from(self.segments) * self.segment;
        settings.wanted.is_none_or(|wanted| told < wanted.0)
    }

    fn add(&mut self, shape: Shape, start: u64, ring: u64) {
        let first_position = self.positions();
        self.places.push(Place {
            shape,
            first_segment: self.segments,
            start,
            ring,
            first_position,
        });
        self.segments += u32::from(shape.data);
    }

    /// Takes the journal for so many regions of such a shape out of the start of the disk.
    fn set_journal(&mut self, settings: &SBlockSettings, regions: u64, shape: Shape) {
        let Some(journal) = settings.keeping().journal else {
            return;
        };
        let ring = (self.ring_places, self.block);
        let bytes = records::checkpoint_bytes_max(regions, shape, ring, self.has_sums());
        self.checkpoint_blocks = JournalSettings::checkpoint_blocks_for(bytes);
        let blocks = JournalSettings::area_blocks_for(self.checkpoint_blocks, journal.ring_blocks);
        self.journal = Extent::new(0, blocks);
    }

    /// Takes the tables of so many positions out of the disk, behind the journal.
    fn set_tables(&mut self, positions: u64) {
        let start = self.journal.end().0;
        self.tables = Extent::new(start, positions * self.table_blocks);
    }

    /// Positions of all regions.
    pub fn positions(&self) -> u32 {
        self.places.last().map_or(0, |last| last.first_position + u32::from(last.shape.positions()))
    }

    fn dense(
        settings: &SBlockSettings,
        track: BlockCount,
        below: &Geometry,
    ) -> Result<Layout, SBlockError> {
        let overlaps = below.tracks.as_deref().is_some_and(TrackTable::has_overlaps);
        if overlaps && !settings.keeping().in_place {
            return Err(SBlockError::DenseOverlaps);
        }
        let shape = shape_of(track.0 / settings.block.0, 0, settings)?;
        let mut layout = Layout::empty(settings);
        layout.set_rings(settings, u64::from(shape.data));
        let positions = u64::from(shape.positions()) * layout.segment;
        let stride = positions + layout.ring_length();
        let regions = below.blocks.0 / stride;
        layout.set_journal(settings, regions, shape);
        let wanted = settings.wanted.map_or(u64::MAX, |wanted| {
            let told = u64::from(shape.data) * layout.segment;
            wanted.0.div_ceil(told)
        });
        let mut most = regions.min(wanted);
        loop {
            layout.set_tables(most * u64::from(shape.positions()));
            let room = below.blocks.0.saturating_sub(layout.tables.end().0);
            if room / stride >= most {
                break;
            }
            most = room / stride;
        }
        let mut start = layout.tables.end().0;
        for _ in 0..most {
            layout.add(shape, start, start + positions);
            start += stride;
        }
        if start + stride > below.blocks.0 {
            layout.unused = BlockCount(below.blocks.0.saturating_sub(start));
        }
        Ok(layout)
    }

    fn on_tracks(settings: &SBlockSettings, tracks: &TrackTable) -> Result<Layout, SBlockError> {
        if let Some(from) = tracks.first_downwards() {
            return Err(SBlockError::OverlapsDownwards(from));
        }
        let overlaps = tracks.has_overlaps();
        let there = match overlaps {
            true => tracks.conventional_prefix().0,
            false => tracks.blocks(),
        };
        // Where nothing overlaps, the regions begin behind the journal and the rings, of which there
        // are as many as regions.
        let mut front = 0;
        loop {
            let layout = Layout::behind(settings, tracks, front)?;
            let needed = layout.front();
            if needed <= front || (overlaps && needed <= there) {
                return Ok(layout);
            }
            if overlaps || needed > there {
                return Err(SBlockError::FrontTooSmall {
                    needed: BlockCount(needed),
                    there: BlockCount(there),
                });
            }
            front = needed;
        }
    }

    /// True when there are checksums of all data.
    pub fn has_sums(&self) -> bool {
        self.table_blocks > 0
    }

    /// Blocks of the journal, the tables and all rings, where they lie at the start of the disk.
    pub fn front(&self) -> u64 {
        self.tables.end().0 + self.places.len() as u64 * self.ring_length()
    }

    /// Regions on the tracks behind the first `front` blocks.
    fn behind(
        settings: &SBlockSettings,
        tracks: &TrackTable,
        front: u64,
    ) -> Result<Layout, SBlockError> {
        let overlap = match tracks.has_overlaps() {
            true => settings.guard_tracks.max(tracks.overlap_tracks),
            false => settings.guard_tracks,
        };
        let mut layout = Layout::empty(settings);
        let zones: Vec<Zone> = zones(tracks, front).collect();
        let longest = zones.iter().map(|zone| zone.length).max().unwrap_or(0);
        if longest < settings.block.0 {
            return Ok(layout);
        }
        let segment = layout.segment;
        let guard = |zone: &Zone| (overlap * zone.length).div_ceil(segment);
        let mut most = shape_of(longest / settings.block.0, 0, settings)?;
        let rings = u64::from(most.data);
        layout.set_rings(settings, rings);
        for zone in &zones {
            let n = zone.length / settings.block.0;
            if n == 0 {
                continue;
            }
            let shape = match shape_of(n, guard(zone), settings) {
                Err(SBlockError::NoData { .. }) => continue,
                shape => shape?,
            };
            most.guard = most.guard.max(shape.guard);
            let length = u64::from(shape.positions()) * layout.segment;
            let stride = length.div_ceil(zone.length) + overlap;
            for at in 0..zone.tracks / stride {
                if layout.wants_more(settings) {
                    layout.add(shape, zone.start + at * stride * zone.length, 0);
                }
            }
            if layout.wants_more(settings) {
                layout.unused.0 += zone.tracks % stride * zone.length;
            }
        }
        layout.set_journal(settings, layout.places.len() as u64, most);
        layout.set_tables(layout.positions().into());
        let (rings, ring) = (layout.tables.end().0, layout.ring_length());
        for (at, place) in layout.places.iter_mut().enumerate() {
            place.ring = rings + at as u64 * ring;
        }
        Ok(layout)
    }

    /// The region that holds an S-block, and its number in there. Panics past the end.
    pub fn region_of(&self, segment: u32) -> (u32, u16) {
        let region = self.places.partition_point(|place| place.first_segment <= segment) - 1;
        let place = &self.places[region];
        let index = segment - place.first_segment;
        assert!(index < u32::from(place.shape.data), "past the last S-block");
        (region as u32, index as u16)
    }

    /// The blocks of a position.
    pub fn position(&self, region: u32, position: u16) -> Extent {
        let start = self.places[region as usize].start + u64::from(position) * self.segment;
        Extent::new(start, self.segment)
    }

    /// The number of a position among those of all regions.
    pub fn position_number(&self, region: u32, position: u16) -> u32 {
        self.places[region as usize].first_position + u32::from(position)
    }

    /// The blocks of a place in a ring.
    pub fn ring_place(&self, region: u32, place: u32) -> Extent {
        let start = self.places[region as usize].ring + u64::from(place) * self.block;
        Extent::new(start, self.block)
    }

    /// Blocks that it offers.
    pub fn blocks(&self) -> BlockCount {
        BlockCount(u64::from(self.segments) * self.segment)
    }

    /// The first block of the disk behind all that is used.
    pub fn end(&self) -> u64 {
        let end = |place: &Place| {
            let positions = u64::from(place.shape.positions()) * self.segment;
            (place.start + positions).max(place.ring + self.ring_length())
        };
        self.places.iter().map(end).max().unwrap_or(0)
    }

    /// Bytes of the tables of all regions.
    pub fn table_bytes(&self) -> u64 {
        let (table, sums) = match self.has_sums() {
            true => (8, 4 * self.block),
            false => (0, 0),
        };
        let maps = |place: &Place| {
            let (data, positions) = (place.shape.data, place.shape.positions());
            2 * u64::from(data) + (4 + table) * u64::from(positions)
        };
        let place = super::ring::PLACE_BYTES + sums;
        let rings = self.places.len() as u64 * self.ring_places * place;
        self.places.iter().map(maps).sum::<u64>() + rings
    }

    /// Bytes of the disk that nothing uses.
    pub fn unused_bytes(&self) -> u64 {
        self.unused.0 * BLOCK_BYTES
    }
}

/// Tracks of one length that overlap in one way.
struct Zone {
    start: u64,
    tracks: u64,
    length: u64,
}

/// The tracks on which regions may lie: those that overlap, or all where none does, behind `front`.
fn zones(tracks: &TrackTable, front: u64) -> impl Iterator<Item = Zone> + '_ {
    let overlaps = tracks.has_overlaps();
    let runs = tracks.runs().iter();
    let parts = runs.flat_map(move |run| {
        let shingles = tracks.shingle_runs().iter();
        shingles.map(move |shingle| (run, shingle))
    });
    parts.filter_map(move |(run, shingle)| {
        if overlaps && shingle.shingling != Shingling::Upwards {
            return None;
        }
        let mut first = run.first_track.max(shingle.first_track);
        let end = (run.first_track + run.tracks).min(shingle.first_track + shingle.tracks);
        let start_of =
            |track: u64| run.first_block + (track - run.first_track) * run.blocks_per_track;
        if first < end && start_of(first) < front {
            first += (front - start_of(first)).div_ceil(run.blocks_per_track);
        }
        (first < end).then(|| Zone {
            start: start_of(first),
            tracks: end - first,
            length: run.blocks_per_track,
        })
    })
}
