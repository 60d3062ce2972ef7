//! What never changes of a persistent cache: its settings, its bands and where everything lies.

use super::areas::conventional_band_blocks;
use super::conduct::Conduct;
use super::layout::Layout;
use super::settings::{IdlePiece, PersistentCacheSettings};
use crate::extent::Extent;
use crate::layer::Area;
use crate::map::{BandId, BandTable};
use crate::units::Lba;
use alloc::sync::Arc;

/// Chunks of a rewrite in idle time that a track has at least.
const CHUNKS_PER_TRACK_MIN: u64 = 4;

/// The settings, the bands and the places on the disk.
#[derive(Debug)]
pub(super) struct Shape {
    pub settings: PersistentCacheSettings,
    pub conduct: Conduct,
    pub bands: Arc<BandTable>,
    pub layout: Layout,
    /// The device up to here takes every write home. Zones are not meant: they say that themselves.
    pub in_place_end: Lba,
    /// Longest operation of a rewrite in idle time.
    pub chunk_blocks: u64,
}

impl Shape {
    pub fn new(
        settings: PersistentCacheSettings,
        conduct: Conduct,
        bands: Arc<BandTable>,
        layout: Layout,
    ) -> Shape {
        let chunk_max = layout.shortest_track() / CHUNKS_PER_TRACK_MIN;
        let chunk_blocks = settings.idle.map_or(chunk_max, |idle| idle.chunk_blocks.0);
        let in_place_end = match settings.host_aware {
            Some(_) => Lba(0),
            None => Lba(conventional_band_blocks(&settings, &bands).0),
        };
        let chunk_blocks = chunk_blocks.min(chunk_max).max(1);
        Shape { settings, conduct, bands, layout, in_place_end, chunk_blocks }
    }

    /// True when the drive looks for requests before it moves these blocks in idle time.
    pub fn begins_piece(&self, area: Area) -> bool {
        let piece = self.settings.idle.map(|idle| idle.piece);
        piece == Some(IdlePiece::Track) && self.layout.holds_track_start(area.extent)
    }

    /// All blocks of the device.
    pub fn whole(&self) -> Extent {
        Extent::new(0, self.bands.blocks().0)
    }

    /// The band that holds a block, and the offset of the block in it.
    pub fn band_and_offset(&self, lba: Lba) -> (BandId, u64) {
        let band = self.bands.band_of(lba);
        (band, lba.offset_from(self.bands.extent_of(band).start))
    }

    /// The bands that hold blocks of an extent that is not empty.
    pub fn bands_of(&self, extent: Extent) -> impl Iterator<Item = BandId> + use<> {
        let last = Lba(extent.end().0 - 1);
        let (first, last) = (self.bands.band_of(extent.start), self.bands.band_of(last));
        (first.0..=last.0).map(BandId)
    }

    /// Where a run of blocks of one band, or of those that are written in place, lies at home.
    pub fn home_of(&self, extent: Extent) -> Area {
        let (band, offset) = self.band_and_offset(extent.start);
        self.layout.home(band, offset, extent.blocks.0)
    }

    /// The slot of a position in the log.
    #[inline]
    pub fn slot(&self, position: u64) -> u64 {
        position % self.settings.log_blocks.0
    }

    /// Where the slots of adjoining positions in the log lie on the disk.
    pub fn log_area(&self, position: u64, blocks: u64) -> Area {
        let log = self.layout.areas().persistent_cache;
        log.part(self.slot(position), blocks)
    }

    /// Where the slots from `position` to `end` lie on the disk, as far as the ring does not begin
    /// anew.
    pub fn log_area_to(&self, position: u64, end: u64) -> Area {
        let to_wrap = self.settings.log_blocks.0 - self.slot(position);
        self.log_area(position, to_wrap.min(end - position))
    }
}

#[cfg(test)]
mod tests {
    use super::super::disks::Disks;
    use super::super::settings::IdleCleaning;
    use super::*;
    use crate::disk::{Geometry, Media, TrackTable};
    use crate::units::{BlockCount, Duration};

    #[test]
    fn a_piece_begins_with_a_track_where_the_drive_goes_track_by_track() {
        // Tracks of 8 blocks.
        let tracks = TrackTable::new([(64, 8)], BlockCount(64), 1);
        let disk = Geometry {
            tracks: Some(Arc::new(tracks)),
            ..Geometry::plain(BlockCount(512), Media::Shingled)
        };
        let bands = Arc::new(BandTable::new([32; 4].map(BlockCount)));
        let ms = Duration::from_ms(1);
        for (piece, begins) in [(IdlePiece::Band, false), (IdlePiece::Track, true)] {
            let mut settings = PersistentCacheSettings::new(BlockCount(16));
            settings.idle =
                Some(IdleCleaning { piece, ..IdleCleaning::new(ms, BlockCount(2), ms) });
            let layout = Layout::new(&settings, &bands, Disks::One(&disk)).expect("a layout");
            let conduct = Conduct::of_a_drive(&settings);
            let shape = Shape::new(settings, conduct, Arc::clone(&bands), layout);
            let band = |offset, blocks| shape.layout.home(BandId(0), offset, blocks);
            assert_eq!(shape.begins_piece(band(8, 2)), begins, "the first of a track");
            assert_eq!(shape.begins_piece(band(7, 2)), begins, "over its end");
            assert!(!shape.begins_piece(band(9, 2)) && !shape.begins_piece(band(6, 2)));
        }
    }
}
