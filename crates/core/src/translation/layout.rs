//! Where a persistent cache keeps what on its disk.

use super::durable::{conventional_blocks_needed, conventional_zone_blocks};
use super::settings::{LayoutError, PersistentCacheSettings};
use crate::disk::{Geometry, TrackTable};
use crate::extent::Extent;
use crate::map::{BandId, BandTable};
use crate::units::{BlockCount, Lba};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The parts of a disk under a persistent cache, in the disk's addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Areas {
    /// Records of the translation.
    pub metadata: Extent,
    /// The log.
    pub persistent_cache: Extent,
    /// The scratch band.
    pub scratch: Extent,
    /// Every band with its guards.
    pub bands: Extent,
}

/// The places of log, scratch band and bands:
///
/// ```text
/// | metadata | log | conventional zones | scratch band, guard | band, guard | ...
/// |------- tracks that do not overlap -| tracks that overlap ------------------
/// ```
///
/// Only a host-aware disk has conventional zones: they are its first bands. The metadata is one track, or what the journal and the tables of checksums need.
///
/// The scratch band and every band start on a track of their own and are followed by as many
/// unused guard tracks as a write destroys, so that a write inside one never reaches the next.
#[derive(Clone, Debug)]
pub struct Layout {
    areas: Areas,
    /// First block of each band on the disk.
    band_starts: Vec<u64>,
    tracks: Arc<TrackTable>,
}

impl Layout {
    /// Places everything on a disk.
    ///
    /// # Errors
    /// When it does not fit.
    pub fn new(
        settings: &PersistentCacheSettings,
        bands: &BandTable,
        below: &Geometry,
    ) -> Result<Layout, LayoutError> {
        let tracks = match &below.tracks {
            Some(tracks) => Arc::clone(tracks),
            None => {
                let no_track = LayoutError::DiskTooSmall {
                    bands_that_fit: 0,
                    bands: 0,
                    disk: below.blocks,
                };
                Arc::new(TrackTable::unknown(below.blocks).ok_or(no_track)?)
            }
        };
        if bands.bands() == 0 {
            return Err(LayoutError::NoBands);
        }
        if bands.blocks().0 > super::log::LBA_MAX {
            return Err(LayoutError::TooLarge(bands.blocks()));
        }
        let needed = conventional_blocks_needed(settings, bands, tracks.extent_of(0).blocks);
        let zones = conventional_zone_blocks(settings);
        let metadata = Extent::new(0, needed.0 - zones.0 - settings.log_blocks.0);
        let log = Extent {
            start: metadata.end(),
            blocks: settings.log_blocks,
        };
        if needed > tracks.conventional_blocks {
            return Err(LayoutError::LogPastConventional {
                needed,
                conventional: tracks.conventional_blocks,
            });
        }
        let too_small = |bands_that_fit| LayoutError::DiskTooSmall {
            bands_that_fit,
            bands: bands.bands(),
            disk: below.blocks,
        };
        let place = |start: u64, blocks: BlockCount| {
            let end = start + blocks.0;
            let fits = end <= tracks.blocks() && end <= below.blocks.0;
            fits.then(|| tracks.start_after(end, tracks.overlap_tracks))
        };
        let zones = settings.host_aware.as_ref().map(|it| &it.zones);
        let conventional_bands = zones.map_or(0, |zones| zones.conventional_zones);
        let mut band_starts = Vec::with_capacity(bands.bands() as usize);
        let mut conventional_end = log.end().0;
        for band in 0..conventional_bands {
            band_starts.push(conventional_end);
            conventional_end += bands.extent_of(BandId(band)).blocks.0;
        }
        let scratch_start = tracks.start_after(conventional_end, 0);
        let mut next = place(scratch_start, bands.largest()).ok_or(too_small(0))?;
        let bands_start = next;
        for band in conventional_bands..bands.bands() {
            band_starts.push(next);
            next = place(next, bands.extent_of(BandId(band)).blocks).ok_or(too_small(band))?;
        }
        let areas = Areas {
            metadata,
            persistent_cache: log,
            scratch: Extent::new(scratch_start, bands.largest().0),
            bands: Extent::between(Lba(bands_start), Lba(next)),
        };
        Ok(Layout {
            areas,
            band_starts,
            tracks,
        })
    }

    /// The parts of the disk.
    pub fn areas(&self) -> Areas {
        self.areas
    }

    /// Blocks of the shortest track.
    pub fn shortest_track(&self) -> u64 {
        let lengths = self.tracks.runs().iter().map(|run| run.blocks_per_track);
        lengths.min().unwrap_or(1)
    }

    /// Where `blocks` blocks of a band from `offset` lie on the disk.
    #[inline]
    pub fn home(&self, band: BandId, offset: u64, blocks: u64) -> Extent {
        Extent::new(self.band_starts[band.0 as usize] + offset, blocks)
    }

    /// The offset in a band at which the track of the block at `offset` begins.
    pub fn track_start(&self, band: BandId, offset: u64) -> u64 {
        let home = self.band_starts[band.0 as usize];
        let track = self.tracks.extent_of(self.tracks.track_of(home + offset));
        track.start.0.saturating_sub(home)
    }

    /// The offset in a band at which the track after that of the block at `offset` begins.
    pub fn track_end(&self, band: BandId, offset: u64) -> u64 {
        let home = self.band_starts[band.0 as usize];
        let track = self.tracks.extent_of(self.tracks.track_of(home + offset));
        track.end().0 - home
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Media;

    fn geometry(conventional: u64) -> Geometry {
        // Tracks of 8 blocks, then of 6; a write destroys the 2 tracks after its own.
        let tracks = TrackTable::new([(10, 8), (20, 6)], BlockCount(conventional), 2);
        Geometry {
            tracks: Some(Arc::new(tracks)),
            ..Geometry::plain(BlockCount(200), Media::Shingled)
        }
    }

    #[test]
    fn everything_starts_on_a_track_behind_its_guard() {
        let settings = PersistentCacheSettings::new(BlockCount(20));
        let bands = BandTable::new([7, 9, 13].map(BlockCount));
        let layout = Layout::new(&settings, &bands, &geometry(32)).unwrap();
        let areas = layout.areas();
        assert_eq!(areas.metadata, Extent::new(0, 8));
        assert_eq!(areas.persistent_cache, Extent::new(8, 20));
        // Track 4 is the first behind the log; 13 blocks take 2 tracks, then 2 of guard.
        assert_eq!(areas.scratch, Extent::new(32, 13));
        assert_eq!(layout.home(BandId(0), 0, 7), Extent::new(64, 7));
        // One track and 2 of guard later the tracks are shorter.
        assert_eq!(layout.home(BandId(1), 1, 8), Extent::new(80 + 6 + 1, 8));
        assert_eq!(layout.home(BandId(2), 0, 1).start, Lba(80 + 5 * 6));
        assert_eq!(layout.track_start(BandId(2), 7), 6);
        assert_eq!(layout.track_end(BandId(2), 7), 12);
        assert_eq!(areas.bands.end(), Lba(80 + 10 * 6));
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let settings = PersistentCacheSettings::new(BlockCount(20));
        let bands = BandTable::new([40; 4].map(BlockCount));
        let error = Layout::new(&settings, &bands, &geometry(32)).unwrap_err();
        assert_eq!(
            error,
            LayoutError::DiskTooSmall {
                bands_that_fit: 2,
                bands: 4,
                disk: BlockCount(200)
            }
        );
        let error = Layout::new(&settings, &bands, &geometry(24)).unwrap_err();
        assert_eq!(
            error,
            LayoutError::LogPastConventional {
                needed: BlockCount(28),
                conventional: BlockCount(24)
            }
        );
        let needed = conventional_blocks_needed(&settings, &bands, BlockCount(8));
        assert_eq!(needed, BlockCount(28), "up to the end of the log");
    }

    #[test]
    fn a_disk_without_tracks_has_no_guards() {
        let settings = PersistentCacheSettings::new(BlockCount(20));
        let bands = BandTable::new([300, 300].map(BlockCount));
        let plain = Geometry::plain(BlockCount(4096), Media::SolidState);
        let layout = Layout::new(&settings, &bands, &plain).unwrap();
        assert_eq!(layout.areas().scratch, Extent::new(512, 300));
        assert_eq!(layout.home(BandId(1), 0, 300), Extent::new(1536, 300));
    }
}
