//! Where each block of the device is.
//!
//! A block is in one of these states, in this order of precedence: *lost* when its last write
//! failed (reads fail until it is written again), *mapped* to the log, *zeroed*, or at home.

use super::log::Log;
use super::salvage::Salvage;
use super::shape::Shape;
use super::zones::Zones;
use crate::extent::Extent;
use crate::layer::Area;
use crate::map::{BandId, ExtentSet, Piece};
use crate::saved::{Saved, SavedValue};
use crate::units::{BlockCount, Lba};
use alloc::vec;
use alloc::vec::Vec;

/// Of a write that supersedes nothing.
pub(super) const SUPERSEDES_NOTHING: u64 = u64::MAX;

/// A run of blocks that is read from one place.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct ReadPiece {
    pub extent: Extent,
    pub source: Source,
}

/// Where a run of blocks is read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) enum Source {
    /// The log, from this position.
    Log(u64),
    /// The home blocks of a band.
    Home(BandId),
    /// Nowhere: they are zeroes.
    Zeroes,
}

/// The log and its map, what is zeroed, what is lost, and what is at home.
#[derive(Debug, Saved)]
pub(super) struct BlockMap {
    pub log: Log,
    /// Blocks that read as zeroes whatever lies at home; none of them is in the log.
    pub zeroed: ExtentSet,
    /// Blocks whose last write failed.
    pub lost: ExtentSet,
    /// For each band how many blocks from its start may hold data at home; empty where nothing
    /// asks.
    pointers: Vec<u32>,
    /// What lies above the write pointer of a band reads as zeroes without being read.
    pointers_bound_reads: bool,
    /// What the scratch band alone holds.
    #[saved(absent)]
    pub salvage: Option<Salvage>,
}

impl BlockMap {
    /// A device on which nothing was written.
    pub fn new(shape: &Shape, log: Log) -> BlockMap {
        let has_pointers = shape.conduct.pointers_bound_reads || shape.conduct.keeps_pointers;
        let pointers = match has_pointers {
            true => vec![0; shape.bands.bands() as usize],
            false => Vec::new(),
        };
        BlockMap {
            log,
            zeroed: ExtentSet::new(),
            lost: ExtentSet::new(),
            pointers,
            pointers_bound_reads: shape.conduct.pointers_bound_reads,
            salvage: None,
        }
    }

    /// The first so many bands take writes anywhere, so that all of them can be read.
    pub fn fill_conventional(&mut self, shape: &Shape, bands: u32) {
        for band in (0..bands).map(BandId) {
            self.set_pointer(band, shape.bands.extent_of(band).blocks.0);
        }
    }

    /// Bands hold data up to where the write pointers of their zones are at the start.
    pub fn fill_zones(&mut self, shape: &Shape, zones: &Zones) {
        for band in (0..shape.bands.bands()).map(BandId) {
            self.raise_pointer(band, zones.written_end(band));
        }
    }

    /// A write of `extent` failed after the maps were changed: what it overwrote is gone, and what
    /// is in its place is unknown.
    pub fn lose(&mut self, extent: Extent) {
        self.log.supersede(extent);
        self.zeroed.remove(extent);
        self.lost.insert(extent);
    }

    /// How many blocks are lost.
    pub fn lost_blocks(&self) -> u64 {
        self.lost.ranges().map(|range| range.blocks.0).sum()
    }

    /// Puts blocks into the log, which has room for them; returns their position.
    pub fn append(&mut self, extent: Extent) -> u64 {
        let position = self.log.append(extent);
        self.zeroed.remove(extent);
        self.lost.remove(extent);
        position
    }

    /// Blocks are about to be written home.
    pub fn send_home(&mut self, extent: Extent) {
        self.log.supersede(extent);
        self.zeroed.remove(extent);
        self.lost.remove(extent);
    }

    /// Makes blocks read as zeroes.
    pub fn zero(&mut self, extent: Extent) {
        self.log.supersede(extent);
        self.lost.remove(extent);
        self.zeroed.insert(extent);
    }

    /// Forgets everything of a band.
    pub fn empty(&mut self, band: BandId, whole: Extent) {
        self.send_home(whole);
        self.set_pointer(band, 0);
    }

    /// A write home destroys what follows it in a band and was never written: it reads as zeroes
    /// from now on without being read.
    pub fn zero_all_but_the_log(&mut self, part: Extent) {
        self.zeroed.insert(part);
        for piece in self.log.map().pieces(part) {
            self.zeroed.remove(piece.extent);
        }
        for lost in self.lost.pieces(part) {
            self.zeroed.remove(lost);
        }
    }

    /// The lowest log position that a write of `extent` supersedes. Its slot and those behind it are
    /// not free before the record of the write is durable; nobody asks where slots are free at once.
    pub fn lowest_position(&self, extent: Extent) -> u64 {
        if self.log.frees_at_once() {
            return SUPERSEDES_NOTHING;
        }
        let positions = self.log.map().pieces(extent).map(|piece| piece.position);
        positions.min().unwrap_or(SUPERSEDES_NOTHING)
    }

    /// The blocks of a band, from its start, that may hold data at home, where that is known.
    pub fn pointer(&self, band: BandId) -> Option<u64> {
        let pointer = self.pointers.get(band.0 as usize);
        pointer.map(|pointer| u64::from(*pointer))
    }

    /// The blocks of a band, from its start, that may be read at home; only asked where pointers
    /// bound reads.
    pub fn readable_blocks(&self, band: BandId) -> u64 {
        u64::from(self.pointers[band.0 as usize])
    }

    /// Sets the write pointer of a band.
    pub fn set_pointer(&mut self, band: BandId, blocks: u64) {
        self.pointers[band.0 as usize] = blocks as u32;
    }

    /// A band may hold data everywhere before `end`.
    pub fn raise_pointer(&mut self, band: BandId, end: u64) {
        if let Some(pointer) = self.pointers.get_mut(band.0 as usize) {
            *pointer = (*pointer).max(end as u32);
        }
    }

    /// A band holds nothing at home from `end` on.
    pub fn lower_pointer(&mut self, band: BandId, end: u64) {
        if let Some(pointer) = self.pointers.get_mut(band.0 as usize) {
            *pointer = (*pointer).min(end as u32);
        }
    }

    /// A zeroed range that reaches the end of a band leaves nothing live from its start on, unless
    /// the band is `busy`.
    pub fn lower_pointers(&mut self, shape: &Shape, zeroed: Extent, busy: Option<BandId>) {
        if self.pointers.is_empty() {
            return;
        }
        for band in shape.bands_of(zeroed) {
            let whole = shape.bands.extent_of(band);
            if zeroed.end() >= whole.end() && Some(band) != busy {
                let offset = zeroed.start.0.saturating_sub(whole.start.0);
                self.lower_pointer(band, offset);
            }
        }
    }

    /// The offset from which a band is rewritten, when its lowest block in the log would have it
    /// rewritten from `from`: nothing below may be left unwritten.
    pub fn rewrite_from(&self, shape: &Shape, band: BandId, from: u64) -> u64 {
        if !self.pointers_bound_reads {
            return from;
        }
        let readable = self.readable_blocks(band);
        match readable < from {
            true => shape.layout.track_start(band, readable).min(from),
            false => from,
        }
    }

    /// True when the scratch band alone holds tracks of a band behind which home is whole.
    pub fn is_amid_stretches(&self, band: BandId) -> bool {
        let salvage = self.salvage.filter(|salvage| salvage.band == band);
        salvage.is_some_and(|salvage| salvage.end() < salvage.end_of_rewrite)
    }

    /// True when the scratch band alone holds blocks of a band.
    pub fn is_salvaged(&self, band: BandId) -> bool {
        self.salvage.is_some_and(|salvage| salvage.band == band)
    }

    /// Where the first of `blocks` home blocks of a band are read from, as many as adjoin there:
    /// what the scratch band alone holds comes from there.
    pub fn home_source(&self, shape: &Shape, band: BandId, offset: u64, blocks: u64) -> Area {
        let layout = &shape.layout;
        match self.salvage {
            Some(salvage) if salvage.band == band && offset < salvage.end() => {
                match offset.checked_sub(salvage.from) {
                    Some(at) => {
                        let held = blocks.min(salvage.blocks - at);
                        layout.scratch(salvage.place, salvage.at + at, held)
                    }
                    None => {
                        let before = blocks.min(salvage.from - offset);
                        layout.home(band, offset, before)
                    }
                }
            }
            _ => layout.home(band, offset, blocks),
        }
    }

    /// Finds where each block of `extent` is: puts one piece for each run that is read from one
    /// place into `plan`.
    pub fn look_up(&self, shape: &Shape, extent: Extent, plan: &mut Vec<ReadPiece>) {
        plan.clear();
        let mut next = extent.start;
        for piece in self.log.map().pieces(extent) {
            self.look_up_unmapped(shape, Extent::between(next, piece.extent.start), plan);
            next = piece.extent.end();
            if let Some(last) = plan.last_mut()
                && let Source::Log(position) = last.source
                && self.log.adjoin(&Piece { extent: last.extent, position }, &piece)
            {
                last.extent = Extent::between(last.extent.start, next);
                continue;
            }
            plan.push(ReadPiece { extent: piece.extent, source: Source::Log(piece.position) });
        }
        self.look_up_unmapped(shape, Extent::between(next, extent.end()), plan);
    }

    fn look_up_unmapped(&self, shape: &Shape, extent: Extent, plan: &mut Vec<ReadPiece>) {
        if extent.is_empty() {
            return;
        }
        let mut next = extent.start;
        for zeroed in self.zeroed.pieces(extent) {
            self.look_up_home(shape, next, zeroed.start, plan);
            plan.push(ReadPiece { extent: zeroed, source: Source::Zeroes });
            next = zeroed.end();
        }
        self.look_up_home(shape, next, extent.end(), plan);
    }

    /// The blocks from `next` to `end`, neither in the log nor zeroed: a piece for each band.
    fn look_up_home(&self, shape: &Shape, mut next: Lba, end: Lba, plan: &mut Vec<ReadPiece>) {
        while next < end {
            let band = shape.bands.band_of(next);
            let whole = shape.bands.extent_of(band);
            let mut stop = end.min(whole.end());
            let mut source = Source::Home(band);
            if self.pointers_bound_reads {
                let readable = whole.start + BlockCount(self.readable_blocks(band));
                match readable <= next {
                    true => source = Source::Zeroes,
                    false => stop = stop.min(readable),
                }
            }
            plan.push(ReadPiece { extent: Extent::between(next, stop), source });
            next = stop;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Geometry, Media};
    use crate::map::BandTable;
    use crate::translation::persistent_cache::conduct::Conduct;
    use crate::translation::persistent_cache::disks::Disks;
    use crate::translation::persistent_cache::layout::Layout;
    use crate::translation::persistent_cache::settings::PersistentCacheSettings;
    use alloc::sync::Arc;

    /// Two bands of 64 blocks, a log of 16.
    fn shape(conduct: Conduct) -> Shape {
        let settings = PersistentCacheSettings::new(BlockCount(16));
        let bands = Arc::new(BandTable::new([64; 2].map(BlockCount)));
        let disk = Geometry::plain(BlockCount(8192), Media::SolidState);
        let layout = Layout::new(&settings, &bands, Disks::One(&disk)).expect("a layout");
        Shape::new(settings, conduct, bands, layout)
    }

    fn map(shape: &Shape) -> BlockMap {
        BlockMap::new(shape, Log::new(BlockCount(16), BlockCount(8), None))
    }

    fn look_up(map: &BlockMap, shape: &Shape, start: u64, blocks: u64) -> Vec<(u64, Source)> {
        let mut plan = Vec::new();
        map.look_up(shape, Extent::new(start, blocks), &mut plan);
        let mut next = start;
        for piece in &plan {
            assert_eq!(piece.extent.start.0, next, "pieces adjoin");
            next = piece.extent.end().0;
        }
        assert_eq!(next, start + blocks);
        let of = |piece: &ReadPiece| (piece.extent.blocks.0, piece.source);
        plan.iter().map(of).collect()
    }

    #[test]
    fn the_log_comes_before_zeroes_and_zeroes_before_home() {
        let shape = shape(Conduct::of_a_drive(&PersistentCacheSettings::new(BlockCount(16))));
        let mut map = map(&shape);
        map.zero(Extent::new(4, 8));
        map.append(Extent::new(6, 2));
        let (first, home) = (BandId(0), Source::Home);
        assert_eq!(
            look_up(&map, &shape, 0, 16),
            [
                (4, home(first)),
                (2, Source::Zeroes),
                (2, Source::Log(0)),
                (4, Source::Zeroes),
                (4, home(first)),
            ]
        );
        assert_eq!(
            look_up(&map, &shape, 62, 4),
            [(2, home(first)), (2, home(BandId(1)))],
            "a piece for each band"
        );
        map.lose(Extent::new(6, 2));
        assert_eq!(map.lost_blocks(), 2);
        map.append(Extent::new(6, 1));
        assert_eq!(map.lost_blocks(), 1, "what is written again is there");
    }

    #[test]
    fn what_lies_above_a_pointer_that_bounds_reads_is_zeroes() {
        let shape = shape(Conduct::with_a_journal());
        let mut map = map(&shape);
        map.raise_pointer(BandId(0), 10);
        let home = Source::Home(BandId(0));
        assert_eq!(look_up(&map, &shape, 8, 4), [(2, home), (2, Source::Zeroes)]);
        map.raise_pointer(BandId(0), 4);
        assert_eq!(map.readable_blocks(BandId(0)), 10, "it only rises");
        map.lower_pointer(BandId(0), 9);
        assert_eq!(look_up(&map, &shape, 8, 4), [(1, home), (3, Source::Zeroes)]);
    }

    #[test]
    fn what_the_scratch_band_alone_holds_is_read_there() {
        let shape = shape(Conduct::with_a_journal());
        let mut map = map(&shape);
        map.salvage = Some(Salvage {
            band: BandId(1),
            from: 8,
            blocks: 56,
            end_of_rewrite: 64,
            place: 0,
            at: 0,
        });
        let layout = &shape.layout;
        let source = |offset, blocks| map.home_source(&shape, BandId(1), offset, blocks);
        assert_eq!(source(0, 64), layout.home(BandId(1), 0, 8), "as far as home is whole");
        assert_eq!(source(8, 56), layout.scratch(0, 0, 56));
        assert_eq!(source(20, 4), layout.scratch(0, 12, 4));
        assert!(map.is_salvaged(BandId(1)) && !map.is_amid_stretches(BandId(1)));
    }
}
