//! Where the bands of the homes lie.

use super::settings::{BandSource, Raid4SmrError, Raid4SmrSettings};
use crate::disk::{Geometry, TrackTable};
use crate::extent::Extent;
use crate::units::{BlockCount, Lba};
use crate::zone::ZoneId;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The bands of one home.
#[derive(Clone, Debug)]
enum OfHome {
    /// One behind the other from its first block.
    Plain,
    /// Each from a track of the disk, which has so many blocks. Homes on equal disks share the list.
    Tracks { starts: Arc<[u64]>, tracks: Arc<TrackTable>, blocks: BlockCount },
    /// Its zones, and how many of them need not be written in sequence.
    Zones { zone_blocks: u64, conventional: u64 },
}

impl OfHome {
    /// Where bands of a disk of such tracks start, if this home is on an equal one.
    fn starts_on(&self, on: &TrackTable, of: BlockCount) -> Option<Arc<[u64]>> {
        match self {
            OfHome::Tracks { starts, tracks, blocks } if **tracks == *on && *blocks == of => {
                Some(Arc::clone(starts))
            }
            _ => None,
        }
    }
}

/// The bands of all homes. All are equally long, so that any band row can take the place of any other.
#[derive(Clone, Debug)]
pub struct HomeBands {
    homes: Vec<OfHome>,
    band_blocks: u64,
    track_blocks: u64,
    /// Band rows, one of them spare.
    band_rows: u64,
}

impl HomeBands {
    /// The bands of homes.
    ///
    /// # Errors
    /// When a home has no two bands, or tells no tracks where they are those of the disk.
    pub fn new(
        settings: &Raid4SmrSettings,
        homes: &[&Geometry],
    ) -> Result<HomeBands, Raid4SmrError> {
        let zoned = homes.iter().filter(|home| home.refuses_random_writes()).count();
        if zoned > 0 && zoned < homes.len() {
            return Err(Raid4SmrError::MixedZones);
        }
        let zones = homes.iter().filter_map(|home| home.zones.as_deref());
        let band_blocks = match zoned {
            0 => settings.band_blocks(),
            _ => zones.map(|zones| zones.zone_blocks.0).min().unwrap_or_default(),
        };
        let mut bands = HomeBands {
            homes: Vec::new(),
            band_blocks,
            track_blocks: settings.track_blocks,
            band_rows: u64::MAX,
        };
        for (home, geometry) in homes.iter().enumerate() {
            let (of_home, count) = of_home(settings, geometry, band_blocks, &bands.homes)?;
            if count < 2 {
                return Err(Raid4SmrError::ShortHome {
                    home,
                    blocks: geometry.blocks,
                    needed: BlockCount(2 * band_blocks),
                });
            }
            bands.homes.push(of_home);
            bands.band_rows = bands.band_rows.min(count);
        }
        Ok(bands)
    }

    /// Leaves out the band rows behind the first ones.
    pub fn shorten(&mut self, band_rows: u64) {
        self.band_rows = self.band_rows.min(band_rows);
    }

    /// How many homes there are.
    pub fn homes(&self) -> usize {
        self.homes.len()
    }

    /// Band rows, one of them spare.
    pub fn band_rows(&self) -> u64 {
        self.band_rows
    }

    /// Blocks of a band.
    pub fn band_blocks(&self) -> u64 {
        self.band_blocks
    }

    /// Rows of the homes.
    pub fn rows(&self) -> u64 {
        self.band_rows * self.band_blocks
    }

    /// Blocks that the host can have: all but the spare band row.
    pub fn host_blocks(&self) -> u64 {
        (self.band_rows - 1) * self.band_blocks * self.homes.len() as u64
    }

    /// The blocks of a home up to the end of its last band.
    pub fn end_of(&self, home: usize) -> u64 {
        let (start, _) = self.place_of(home, self.rows() - 1);
        start.0 + 1
    }

    /// Where a row of a home lies, and how many rows from there on lie one behind the other.
    #[inline]
    pub fn place_of(&self, home: usize, row: u64) -> (Lba, u64) {
        let (band, offset) = (row / self.band_blocks, row % self.band_blocks);
        let left = self.band_blocks - offset;
        match &self.homes[home] {
            OfHome::Plain => (Lba(row), u64::MAX),
            OfHome::Tracks { starts, .. } => (Lba(starts[band as usize] + offset), left),
            OfHome::Zones { zone_blocks, .. } => (Lba(band * zone_blocks + offset), left),
        }
    }

    /// The number of the track of a row, which says which of two rows of a band is on a later one.
    #[inline]
    pub fn track_of(&self, home: usize, row: u64) -> u64 {
        match &self.homes[home] {
            OfHome::Tracks { tracks, .. } => tracks.track_of(self.place_of(home, row).0.0),
            _ => row % self.band_blocks / self.track_blocks,
        }
    }

    /// The zone of a band, where it is one that must be reset before it is written again.
    pub fn zone_of(&self, home: usize, band: u64) -> Option<Extent> {
        match &self.homes[home] {
            OfHome::Zones { zone_blocks, conventional } if band >= *conventional => {
                Some(Extent::new(band * zone_blocks, *zone_blocks))
            }
            _ => None,
        }
    }

    /// True when bands are zones, which are written from their first block on.
    pub fn are_zones(&self) -> bool {
        matches!(self.homes[0], OfHome::Zones { .. })
    }
}

/// The bands of a home behind those `before` it, and how many there are.
fn of_home(
    settings: &Raid4SmrSettings,
    geometry: &Geometry,
    band_blocks: u64,
    before: &[OfHome],
) -> Result<(OfHome, u64), Raid4SmrError> {
    if geometry.refuses_random_writes()
        && let Some(zones) = geometry.zones.as_deref()
    {
        let whole = |zone: &u32| zones.extent_of(ZoneId(*zone)).blocks == zones.zone_blocks;
        let count = (0..zones.zones()).filter(whole).count() as u64;
        let (zone_blocks, conventional) = (zones.zone_blocks.0, zones.conventional_zones.into());
        return Ok((OfHome::Zones { zone_blocks, conventional }, count));
    }
    match settings.bands {
        BandSource::Assumed => Ok((OfHome::Plain, geometry.blocks.0 / band_blocks)),
        BandSource::OfDisk => {
            let home = before.len();
            let tracks = geometry.tracks.as_ref().ok_or(Raid4SmrError::NoTracks { home })?;
            let blocks = geometry.blocks;
            let of_equal_disk = before.iter().find_map(|other| other.starts_on(tracks, blocks));
            let starts =
                of_equal_disk.unwrap_or_else(|| on_tracks(tracks, blocks.0, band_blocks).into());
            let count = starts.len() as u64;
            Ok((OfHome::Tracks { starts, tracks: Arc::clone(tracks), blocks }, count))
        }
    }
}

/// Bands of so many blocks on tracks that are apart or overlap upwards, each from the start of a track. Behind
/// one whose writing would destroy them, tracks are left free.
fn on_tracks(tracks: &TrackTable, blocks: u64, band_blocks: u64) -> Vec<u64> {
    let mut starts = Vec::new();
    let mut track = 0;
    while track < tracks.tracks() {
        let start = tracks.extent_of(track).start.0;
        let end = start + band_blocks;
        if end > blocks.min(tracks.blocks()) {
            break;
        }
        let last = tracks.track_of(end - 1);
        if let Some(downwards) = tracks.next_downwards(track).filter(|it| it.start <= last) {
            track = downwards.end;
            continue;
        }
        starts.push(start);
        track = tracks.tracks_destroyed_by(last).end.max(last + 1);
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Shingling;

    #[test]
    fn bands_on_tracks_leave_free_what_their_last_track_destroys() {
        // Tracks of 4 blocks, of which each write destroys the next two; bands of 6 blocks, two tracks.
        let tracks = TrackTable::new([(12, 4)], BlockCount(0), 2);
        assert_eq!(on_tracks(&tracks, 48, 6), [0, 16, 32]);
        assert_eq!(on_tracks(&tracks, 37, 6), [0, 16]);
        // None lies on tracks that overlap downwards; those before and behind them take bands.
        let shingles =
            [(4, Shingling::Upwards), (3, Shingling::Downwards), (5, Shingling::Upwards)];
        let tracks = TrackTable::with_shingles([(12, 4)], shingles, 1);
        assert_eq!(on_tracks(&tracks, 48, 6), [0, 28, 40]);
        // Tracks apart need no guards.
        let tracks = TrackTable::new([(6, 4)], BlockCount(24), 2);
        assert_eq!(on_tracks(&tracks, 24, 6), [0, 8, 16]);
    }
}
