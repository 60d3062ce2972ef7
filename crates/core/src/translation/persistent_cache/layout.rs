//! Where a persistent cache keeps what on its disk, or on its two.

use super::areas::{conventional_band_blocks, conventional_bands, log_blocks_needed};
use super::disks::{Disks, LOG};
use super::layout_error::LayoutError;
use super::log::LBA_MAX;
use super::settings::PersistentCacheSettings;
use crate::disk::{Geometry, TrackRun, TrackTable, UNKNOWN_TRACK};
use crate::extent::Extent;
use crate::layer::{Area, Port};
use crate::map::{BandId, BandTable};
use crate::units::{BlockCount, Lba};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The parts of the disks under a persistent cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Areas {
    /// Records of the translation.
    pub metadata: Area,
    /// The log.
    pub persistent_cache: Area,
    /// The scratch band.
    pub scratch: Area,
    /// Every band with its guards.
    pub bands: Area,
}

/// The places of log, scratch band and bands:
///
/// ```text
/// | metadata | log | conventional bands | scratch band, guard | band, guard | ...
/// |------- tracks that do not overlap -| tracks that overlap ------------------
/// ```
///
/// Conventional are the conventional zones of a host-aware disk, or what is written in place: they are
/// its first bands. The metadata is one track, or what the journal and the tables of checksums need.
///
/// On two disks metadata and log are at the start of one. The other begins with the conventional bands,
/// where there are any; without, all its tracks may overlap:
///
/// ```text
/// | metadata | log |        | conventional bands | scratch band, guard | band, guard | ...
/// ```
///
/// With a `merge_buffer` that does not hold the longest band the scratch band has two places, each
/// with its guard: one is written while the other holds the only copy of some tracks.
///
/// The scratch band and every band start on a track of their own and are followed by as many
/// unused guard tracks as a write destroys, so that a write inside one never reaches the next.
#[derive(Clone, Debug)]
pub struct Layout {
    areas: Areas,
    /// First block of each band on its disk.
    band_starts: Vec<u64>,
    /// Tracks of the disk of the bands.
    tracks: Arc<TrackTable>,
    home_port: Port,
    /// Longest stretch of a band that is written home at a time.
    stretch_max: u64,
    /// Blocks of the longest stretch with the tracks that are carried on to the next.
    rewrite_blocks: u64,
    /// First block of each of the two places for a stretch in the scratch band.
    scratch_starts: [u64; 2],
}

/// A stretch of a band: what a rewrite holds in memory at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stretch {
    /// Blocks that are written home.
    pub home_blocks: u64,
    /// These, and the tracks behind them that the writing destroys.
    pub blocks: u64,
}

impl Layout {
    /// Places everything on one disk or two.
    ///
    /// # Errors
    /// When it does not fit, or tracks of the bands overlap downwards.
    pub fn new(
        settings: &PersistentCacheSettings,
        bands: &BandTable,
        below: Disks<'_>,
    ) -> Result<Layout, LayoutError> {
        let (in_place, device) = (settings.in_place_blocks, bands.blocks());
        if in_place > device {
            return Err(LayoutError::InPlacePastDevice { in_place, device });
        }
        let (home, home_port) = (below.home(), below.home_port());
        let tracks = tracks_of(home)?;
        check_bands(bands, &tracks)?;
        let (metadata, log) = front(settings, bands, below)?;
        let too_small = |bands_that_fit| LayoutError::DiskTooSmall {
            bands_that_fit,
            bands: bands.bands(),
            disk: home.blocks,
            has_log: home_port == LOG,
        };
        let conventional_bands = conventional_bands(settings, bands);
        let mut band_starts = Vec::with_capacity(bands.bands() as usize);
        let mut conventional_end = match home_port {
            LOG => log.end().0,
            _ => 0,
        };
        for band in 0..conventional_bands {
            band_starts.push(conventional_end);
            conventional_end += bands.extent_of(BandId(band)).blocks.0;
        }
        let (stretch_max, rewrite_blocks) = stretch_lengths(settings, bands, &tracks)?;
        let apart = tracks.conventional_prefix().min(home.blocks);
        if home_port != LOG && conventional_end > apart.0 {
            let needed = BlockCount(conventional_end);
            return Err(LayoutError::InPlacePastConventional { needed, conventional: apart });
        }
        let mut cursor = tracks.cursor();
        let scratch_start = cursor.start_after(conventional_end, 0);
        let room = tracks.blocks().min(home.blocks.0);
        let mut place = |start: u64, blocks: u64| {
            let end = start + blocks;
            (end <= room).then(|| cursor.start_after(end, tracks.overlap_tracks))
        };
        let mut scratch_end = scratch_start + rewrite_blocks;
        let mut next = place(scratch_start, rewrite_blocks).ok_or(too_small(0))?;
        let mut scratch_starts = [scratch_start; 2];
        if stretch_max < bands.largest().0 {
            scratch_starts[1] = next;
            scratch_end = next + rewrite_blocks;
            next = place(next, rewrite_blocks).ok_or(too_small(0))?;
        }
        let bands_start = next;
        for band in conventional_bands..bands.bands() {
            band_starts.push(next);
            let blocks = bands.extent_of(BandId(band)).blocks;
            next = place(next, blocks.0).ok_or(too_small(band))?;
        }
        let areas = Areas {
            metadata: behind(LOG, metadata),
            persistent_cache: behind(LOG, log),
            scratch: behind(home_port, Extent::between(Lba(scratch_start), Lba(scratch_end))),
            bands: behind(home_port, Extent::between(Lba(bands_start), Lba(next))),
        };
        Ok(Layout {
            areas,
            band_starts,
            tracks,
            home_port,
            stretch_max,
            rewrite_blocks,
            scratch_starts,
        })
    }

    /// The port of the bands.
    pub(super) fn home_port(&self) -> Port {
        self.home_port
    }

    /// Blocks that a rewrite needs memory for.
    pub fn rewrite_blocks(&self) -> BlockCount {
        BlockCount(self.rewrite_blocks)
    }

    /// True when there are bands that are rewritten in more than one stretch.
    pub(super) fn has_stretches(&self) -> bool {
        self.scratch_starts[0] != self.scratch_starts[1]
    }

    /// The place of the scratch band that begins at a block of its disk.
    pub(super) fn scratch_place(&self, start: u64) -> Option<usize> {
        self.scratch_starts.iter().position(|it| *it == start)
    }

    /// The first block of a place of the scratch band, as it is written down: not where a band
    /// always goes there whole.
    pub(super) fn recorded_place(&self, place: usize) -> Option<u64> {
        self.has_stretches().then(|| self.scratch_starts[place])
    }

    /// Where the first of `blocks` blocks of a stretch lie in a place of the scratch band.
    pub(super) fn scratch(&self, place: usize, offset: u64, blocks: u64) -> Area {
        let start = self.scratch_starts[place] + offset;
        behind(self.home_port, Extent::new(start, blocks))
    }

    /// The stretch at `from`, the start of a track, of a band that is rewritten up to `end`: whole
    /// tracks, unless all the rest fits.
    pub(super) fn stretch(&self, band: BandId, from: u64, end: u64) -> Stretch {
        let rest = Stretch { home_blocks: end - from, blocks: end - from };
        if rest.blocks <= self.stretch_max {
            return rest;
        }
        let home = self.band_starts[band.0 as usize];
        let stop = self.track_start(band, from + self.stretch_max);
        let tracks = &self.tracks;
        let destroyed = tracks.start_after(home + stop, tracks.overlap_tracks) - home;
        match destroyed < end {
            true => Stretch { home_blocks: stop - from, blocks: destroyed - from },
            false => rest,
        }
    }

    /// Of a stretch that ends before its rewrite does, at `end`, the offset at which the tracks
    /// begin that are carried on to the next.
    pub(super) fn carried_from(&self, band: BandId, end: u64) -> u64 {
        let home = self.band_starts[band.0 as usize];
        let track = self.tracks.track_of(home + end) - self.tracks.overlap_tracks;
        self.tracks.extent_of(track).start.0 - home
    }

    /// The parts of the disks.
    pub fn areas(&self) -> Areas {
        self.areas
    }

    /// Blocks of the shortest track.
    pub fn shortest_track(&self) -> u64 {
        let lengths = self.tracks.runs().iter().map(|run| run.blocks_per_track);
        lengths.min().unwrap_or(1)
    }

    /// Where `blocks` blocks of a band from `offset` lie.
    #[inline]
    pub fn home(&self, band: BandId, offset: u64, blocks: u64) -> Area {
        let start = self.band_starts[band.0 as usize] + offset;
        behind(self.home_port, Extent::new(start, blocks))
    }

    /// The offset in a band at which the track of the block at `offset` begins.
    pub fn track_start(&self, band: BandId, offset: u64) -> u64 {
        let home = self.band_starts[band.0 as usize];
        let track = self.tracks.extent_of(self.tracks.track_of(home + offset));
        track.start.0.saturating_sub(home)
    }

    /// True when a track of the disk of the bands begins in an extent that is not empty.
    pub(super) fn holds_track_start(&self, extent: Extent) -> bool {
        let last = extent.end().0 - 1;
        let track = self.tracks.extent_of(self.tracks.track_of(last));
        track.start >= extent.start
    }

    /// The offset in a band at which the track after that of the block at `offset` begins.
    pub fn track_end(&self, band: BandId, offset: u64) -> u64 {
        let home = self.band_starts[band.0 as usize];
        let track = self.tracks.extent_of(self.tracks.track_of(home + offset));
        track.end().0 - home
    }
}

/// Refuses bands that cannot be placed on such tracks, however many there are.
fn check_bands(bands: &BandTable, tracks: &TrackTable) -> Result<(), LayoutError> {
    if bands.bands() == 0 {
        return Err(LayoutError::NoBands);
    }
    if bands.blocks().0 > LBA_MAX {
        return Err(LayoutError::TooLarge(bands.blocks()));
    }
    match tracks.first_downwards() {
        Some(from) => Err(LayoutError::OverlapsDownwards(from)),
        None => Ok(()),
    }
}

/// The tracks of a disk; tracks that do not overlap where it tells of none.
fn tracks_of(below: &Geometry) -> Result<Arc<TrackTable>, LayoutError> {
    if let Some(tracks) = &below.tracks {
        return Ok(Arc::clone(tracks));
    }
    let no_track = LayoutError::DiskTooSmall {
        bands_that_fit: 0,
        bands: 0,
        disk: below.blocks,
        has_log: false,
    };
    Ok(Arc::new(TrackTable::unknown(below.blocks).ok_or(no_track)?))
}

/// The metadata and the log, on the tracks at the front of a disk that do not overlap. Where it is the only
/// one, what is written in place must have room there too.
fn front(
    settings: &PersistentCacheSettings,
    bands: &BandTable,
    below: Disks<'_>,
) -> Result<(Extent, Extent), LayoutError> {
    let disk = below.log();
    let (first_track, conventional) = match &disk.tracks {
        Some(tracks) => (tracks.extent_of(0).blocks, tracks.conventional_prefix()),
        None => (UNKNOWN_TRACK, disk.blocks),
    };
    let front = log_blocks_needed(settings, bands, first_track);
    let metadata = Extent::new(0, front.0 - settings.log_blocks.0);
    let log = Extent { start: metadata.end(), blocks: settings.log_blocks };
    let in_place = match below.home_port() {
        LOG => conventional_band_blocks(settings, bands),
        _ => BlockCount::ZERO,
    };
    let needed = BlockCount(front.0 + in_place.0);
    let conventional = conventional.min(disk.blocks);
    match needed > conventional {
        true => Err(LayoutError::LogPastConventional { needed, conventional }),
        false => Ok((metadata, log)),
    }
}

/// Blocks of the longest stretch that is written home at a time, and of the longest one with the
/// tracks that are carried on to the next.
fn stretch_lengths(
    settings: &PersistentCacheSettings,
    bands: &BandTable,
    tracks: &TrackTable,
) -> Result<(u64, u64), LayoutError> {
    let largest = bands.largest().0;
    let stretch_max = settings.rewrite.merge_buffer_blocks.map_or(largest, |it| it.0);
    let carried_max = tracks.overlap_tracks * longest_track(tracks);
    let needed = carried_max + longest_track(tracks);
    if stretch_max < needed.min(largest) {
        return Err(LayoutError::MergeBufferTooSmall {
            buffer: BlockCount(stretch_max),
            needed: BlockCount(needed),
        });
    }
    Ok((stretch_max, largest.min(stretch_max.saturating_add(carried_max))))
}

fn behind(port: Port, extent: Extent) -> Area {
    Area { port, extent }
}

/// Blocks of the longest track that overlaps the next; of any track where none does.
fn longest_track(tracks: &TrackTable) -> u64 {
    let runs = tracks.runs().iter();
    let overlaps = |run: &&TrackRun| {
        run.first_block + run.tracks * run.blocks_per_track > tracks.conventional_prefix().0
    };
    let lengths = runs.clone().filter(overlaps).map(|run| run.blocks_per_track);
    let all = runs.map(|run| run.blocks_per_track);
    lengths.max().or(all.max()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Media, Shingling};
    use crate::translation::persistent_cache::areas::conventional_blocks_needed;

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
        let layout = Layout::new(&settings, &bands, Disks::One(&geometry(32))).unwrap();
        let areas = layout.areas();
        assert_eq!(areas.metadata.extent, Extent::new(0, 8));
        assert_eq!(areas.persistent_cache.extent, Extent::new(8, 20));
        // Track 4 is the first behind the log; 13 blocks take 2 tracks, then 2 of guard.
        assert_eq!(areas.scratch.extent, Extent::new(32, 13));
        assert_eq!(layout.home(BandId(0), 0, 7).extent, Extent::new(64, 7));
        // One track and 2 of guard later the tracks are shorter.
        assert_eq!(layout.home(BandId(1), 1, 8).extent, Extent::new(80 + 6 + 1, 8));
        assert_eq!(layout.home(BandId(2), 0, 1).extent.start, Lba(80 + 5 * 6));
        assert_eq!(layout.track_start(BandId(2), 7), 6);
        assert_eq!(layout.track_end(BandId(2), 7), 12);
        // Track 9 is the blocks from 72 to 79.
        for (start, blocks, holds) in [(72, 1, true), (70, 3, true), (71, 1, false), (73, 7, false)]
        {
            assert_eq!(layout.holds_track_start(Extent::new(start, blocks)), holds);
        }
        assert_eq!(areas.bands.extent.end(), Lba(80 + 10 * 6));
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let settings = PersistentCacheSettings::new(BlockCount(20));
        let bands = BandTable::new([40; 4].map(BlockCount));
        let error = Layout::new(&settings, &bands, Disks::One(&geometry(32))).unwrap_err();
        assert_eq!(
            error,
            LayoutError::DiskTooSmall {
                bands_that_fit: 2,
                bands: 4,
                disk: BlockCount(200),
                has_log: true,
            }
        );
        let error = Layout::new(&settings, &bands, Disks::One(&geometry(24))).unwrap_err();
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
    fn tracks_that_overlap_downwards_are_refused() {
        let settings = PersistentCacheSettings::new(BlockCount(20));
        let bands = BandTable::new([7, 9, 13].map(BlockCount));
        let shingles = [(4, Shingling::Apart), (21, Shingling::Upwards), (5, Shingling::Downwards)];
        let tracks = |overlap| TrackTable::with_shingles([(10, 8), (20, 6)], shingles, overlap);
        let geometry =
            |overlap| Geometry { tracks: Some(Arc::new(tracks(overlap))), ..geometry(32) };
        let error = Layout::new(&settings, &bands, Disks::One(&geometry(2))).unwrap_err();
        assert_eq!(error, LayoutError::OverlapsDownwards(Lba(80 + 15 * 6)));
        assert!(Layout::new(&settings, &bands, Disks::One(&geometry(0))).is_ok());
    }

    #[test]
    fn a_disk_without_tracks_has_no_guards() {
        let settings = PersistentCacheSettings::new(BlockCount(20));
        let bands = BandTable::new([300, 300].map(BlockCount));
        let plain = Geometry::plain(BlockCount(4096), Media::SolidState);
        let layout = Layout::new(&settings, &bands, Disks::One(&plain)).unwrap();
        assert_eq!(layout.areas().scratch.extent, Extent::new(512, 300));
        assert_eq!(layout.home(BandId(1), 0, 300).extent, Extent::new(1536, 300));
    }
}
