//! What can be set on a host-managed disk, and why a set of settings may not fit a disk.

use crate::disk::{Geometry, TrackTable};
use crate::units::{BlockCount, Duration, Lba};
use crate::zone::{ZoneGeometry, ZoneId};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

/// What can be set on a [`HostManaged`](super::HostManaged) disk beside its zones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostManagedSettings {
    /// Whether reads may cross zones and reach past write pointers (URSWRZ of ZBC-2), where they
    /// find zeroes.
    pub unrestricted_reads: bool,
    /// Bytes per second at which reads of unwritten blocks are answered, one after another.
    pub unwritten_bytes_per_second: u64,
    /// Time of a zone command, and of a refusal.
    pub command: Duration,
    /// Time of a report of zones, once everything before it has finished.
    pub report: Duration,
    /// Zones that can only be read, from the start.
    pub read_only_zones: Vec<u32>,
    /// Zones that are lost, from the start.
    pub offline_zones: Vec<u32>,
}

/// Why zones cannot be put on a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ZoneLayoutError {
    /// A zone has no block, or more than a write pointer can count.
    ZoneLength(BlockCount),
    /// The device has no block.
    NoZone,
    /// More conventional zones than zones.
    Conventional {
        /// Conventional zones asked for.
        conventional: u32,
        /// Zones of the device.
        zones: u32,
    },
    /// No zone may be open, or fewer may be open or closed than open.
    Limits {
        /// Zones that may be open.
        open: Option<u32>,
        /// Zones that may be open or closed.
        active: Option<u32>,
    },
    /// The rate of reads of unwritten blocks is zero.
    NoRate,
    /// A zone to be read-only or offline does not exist.
    NoSuchZone {
        /// The zone.
        zone: u32,
        /// Zones of the device.
        zones: u32,
    },
    /// The conventional zones end beyond the tracks that do not overlap.
    PastConventional {
        /// Blocks of the conventional zones.
        needed: BlockCount,
        /// Blocks on tracks that do not overlap.
        conventional: BlockCount,
    },
    /// Tracks from this block on overlap towards lower addresses, and zones are written upwards.
    OverlapsDownwards(Lba),
    /// The zones end beyond the disk.
    DiskTooSmall {
        /// Zones that fit, from the first.
        zones_that_fit: u32,
        /// Zones asked for.
        zones: u32,
        /// Blocks of the disk.
        disk: BlockCount,
    },
}

impl fmt::Display for ZoneLayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ZoneLayoutError::ZoneLength(blocks) => {
                write!(f, "a zone of {blocks:?}; accepted: 1 to {}", u32::MAX)
            }
            ZoneLayoutError::NoZone => f.write_str("the device has no block"),
            ZoneLayoutError::Conventional { conventional, zones } => {
                write!(f, "{conventional} conventional zones on a device of {zones} zones")
            }
            ZoneLayoutError::Limits { open, active } => write!(
                f,
                "limits of {open:?} open and {active:?} active zones; accepted: at least 1 open, \
                 and at least as many active as open"
            ),
            ZoneLayoutError::NoRate => {
                f.write_str("reads of unwritten blocks need a rate above 0 bytes per second")
            }
            ZoneLayoutError::NoSuchZone { zone, zones } => {
                write!(f, "zone {zone} cannot be lost: the zones are 0 to {}", zones - 1)
            }
            ZoneLayoutError::PastConventional { needed, conventional } => write!(
                f,
                "the conventional zones take {needed:?}, and {conventional:?} lie on tracks that \
                 do not overlap"
            ),
            ZoneLayoutError::OverlapsDownwards(from) => write!(
                f,
                "the tracks from block {} of the disk on overlap downwards, and zones are written \
                 upwards; accepted: tracks that overlap upwards or not at all",
                from.0
            ),
            ZoneLayoutError::DiskTooSmall { zones_that_fit, zones, disk } => write!(
                f,
                "{zones_that_fit} of {zones} zones with their guard tracks fit the {disk:?} of the \
                 disk"
            ),
        }
    }
}

impl HostManagedSettings {
    /// Checks each setting against the zones.
    pub(super) fn check(&self, zones: &ZoneGeometry) -> Result<(), ZoneLayoutError> {
        if zones.zone_blocks.0 == 0 || zones.zone_blocks.0 > u64::from(u32::MAX) {
            return Err(ZoneLayoutError::ZoneLength(zones.zone_blocks));
        }
        if zones.blocks == BlockCount::ZERO {
            return Err(ZoneLayoutError::NoZone);
        }
        let count = zones.zones();
        if zones.conventional_zones > count {
            return Err(ZoneLayoutError::Conventional {
                conventional: zones.conventional_zones,
                zones: count,
            });
        }
        let (open, active) = (zones.open_max, zones.active_max);
        let below_open = active.is_some_and(|active| active < open.unwrap_or(1));
        if open == Some(0) || below_open {
            return Err(ZoneLayoutError::Limits { open, active });
        }
        if self.unwritten_bytes_per_second == 0 {
            return Err(ZoneLayoutError::NoRate);
        }
        let mut lost = self.read_only_zones.iter().chain(&self.offline_zones);
        match lost.find(|zone| **zone >= count) {
            Some(&zone) => Err(ZoneLayoutError::NoSuchZone { zone, zones: count }),
            None => Ok(()),
        }
    }
}

/// Where each zone that is written in sequence begins on the disk. Conventional zones lie at its
/// start, on tracks that do not overlap; every other zone starts on a track of its own and is
/// followed by as many unused guard tracks as a write destroys.
pub(super) fn place_zones(
    zones: &ZoneGeometry,
    below: &Geometry,
) -> Result<Vec<u64>, ZoneLayoutError> {
    let too_small = |zones_that_fit| ZoneLayoutError::DiskTooSmall {
        zones_that_fit,
        zones: zones.zones(),
        disk: below.blocks,
    };
    let tracks = match &below.tracks {
        Some(tracks) => Arc::clone(tracks),
        None => Arc::new(TrackTable::unknown(below.blocks).ok_or(too_small(0))?),
    };
    if let Some(from) = tracks.first_downwards() {
        return Err(ZoneLayoutError::OverlapsDownwards(from));
    }
    let conventional = zones.conventional_zones;
    let conventional_blocks = (u64::from(conventional) * zones.zone_blocks.0).min(zones.blocks.0);
    if conventional_blocks > tracks.conventional_prefix().0 {
        return Err(ZoneLayoutError::PastConventional {
            needed: BlockCount(conventional_blocks),
            conventional: tracks.conventional_prefix(),
        });
    }
    let mut cursor = tracks.cursor();
    let mut next = cursor.start_after(conventional_blocks, 0);
    let mut starts = Vec::with_capacity((zones.zones() - conventional) as usize);
    for zone in conventional..zones.zones() {
        let end = next + zones.extent_of(ZoneId(zone)).blocks.0;
        if end > tracks.blocks().min(below.blocks.0) {
            return Err(too_small(zone));
        }
        starts.push(next);
        next = cursor.start_after(end, tracks.overlap_tracks);
    }
    Ok(starts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Media, Shingling};
    use crate::zone::ZoneModel;

    fn zones(blocks: u64, conventional_zones: u32) -> ZoneGeometry {
        ZoneGeometry {
            model: ZoneModel::HostManaged,
            blocks: BlockCount(blocks),
            zone_blocks: BlockCount(10),
            conventional_zones,
            open_max: Some(2),
            active_max: None,
            optimal_open: None,
            optimal_non_sequential: None,
        }
    }

    fn disk() -> Geometry {
        // Tracks of 8 blocks, then of 6; a write destroys the 2 tracks after its own.
        let tracks = TrackTable::new([(10, 8), (20, 6)], BlockCount(24), 2);
        Geometry {
            tracks: Some(Arc::new(tracks)),
            ..Geometry::plain(BlockCount(200), Media::Shingled)
        }
    }

    #[test]
    fn zones_start_on_tracks_behind_their_guards() {
        // Two conventional zones end in the third track; each zone then takes 2 tracks and 2 of
        // guard, and the runt of 5 blocks one of each.
        let starts = place_zones(&zones(45, 2), &disk()).unwrap();
        assert_eq!(starts, [24, 24 + 4 * 8, 80 + 6]);
        let starts = place_zones(&zones(40, 0), &disk()).unwrap();
        assert_eq!(starts, [0, 32, 64, 80 + 2 * 6]);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        assert_eq!(
            place_zones(&zones(100, 3), &disk()).unwrap_err(),
            ZoneLayoutError::PastConventional {
                needed: BlockCount(30),
                conventional: BlockCount(24)
            }
        );
        assert_eq!(
            place_zones(&zones(100, 2), &disk()).unwrap_err(),
            ZoneLayoutError::DiskTooSmall { zones_that_fit: 9, zones: 10, disk: BlockCount(200) }
        );
    }

    #[test]
    fn tracks_that_overlap_downwards_are_refused() {
        let shingles = [(25, Shingling::Upwards), (5, Shingling::Downwards)];
        let tracks = TrackTable::with_shingles([(10, 8), (20, 6)], shingles, 2);
        let disk = Geometry { tracks: Some(Arc::new(tracks)), ..disk() };
        let error = place_zones(&zones(40, 0), &disk).unwrap_err();
        assert_eq!(error, ZoneLayoutError::OverlapsDownwards(Lba(170)));
    }

    #[test]
    fn settings_out_of_range_are_errors() {
        let settings = HostManagedSettings {
            unrestricted_reads: true,
            unwritten_bytes_per_second: 1,
            command: Duration::ZERO,
            report: Duration::ZERO,
            read_only_zones: Vec::new(),
            offline_zones: Vec::new(),
        };
        let good = zones(100, 2);
        assert_eq!(settings.check(&good), Ok(()));
        let check = |change: &dyn Fn(&mut HostManagedSettings, &mut ZoneGeometry)| {
            let (mut settings, mut zones) = (settings.clone(), good.clone());
            change(&mut settings, &mut zones);
            settings.check(&zones).unwrap_err().to_string()
        };
        let rows = [
            (check(&|_, z| z.zone_blocks.0 = 0), "a zone of 0 blocks"),
            (check(&|_, z| z.blocks.0 = 0), "no block"),
            (check(&|_, z| z.conventional_zones = 11), "11 conventional zones"),
            (check(&|_, z| z.open_max = Some(0)), "at least 1 open"),
            (check(&|_, z| z.active_max = Some(1)), "at least as many active"),
            (check(&|s, _| s.unwritten_bytes_per_second = 0), "above 0 bytes"),
            (check(&|s, _| s.offline_zones = vec![10]), "the zones are 0 to 9"),
        ];
        for (error, expected) in rows {
            assert!(error.contains(expected), "{error}");
        }
    }
}
