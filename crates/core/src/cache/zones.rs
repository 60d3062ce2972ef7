//! The parts of the address space that a policy tells apart: equal zones, or the bands below.

use super::settings_error::{CacheSettingsError, error};
use crate::disk::{Geometry, LogSize};
use crate::map::{BandId, BandTable};
use crate::units::{BlockCount, Lba};
use alloc::format;
use alloc::sync::Arc;

/// Zones at most, of a policy with arrays over them: each takes up to some 60 bytes of memory.
pub(super) const ZONES_MAX: u64 = 1 << 24;

/// The parts of the address space that a policy tells apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneSettings {
    /// Zones of so many blocks each, from address 0 up.
    Equal(u64),
    /// The bands that the device below publishes.
    Bands,
}

impl ZoneSettings {
    /// The settings as a number, which a saved state keeps: no zone is 0 blocks long.
    pub(super) fn identity(&self) -> u64 {
        match self {
            ZoneSettings::Bands => 0,
            ZoneSettings::Equal(length) => *length,
        }
    }

    /// The zones of a device.
    ///
    /// # Errors
    /// When a zone has no block, when there are more zones than `zones_max`, or when the device
    /// below has no bands.
    pub(super) fn of(
        &self,
        policy: &str,
        backing: &Geometry,
        zones_max: u64,
    ) -> Result<Zones, CacheSettingsError> {
        match self {
            ZoneSettings::Equal(0) => {
                error("zone is 0 blocks: a zone holds at least 1 block".into())
            }
            ZoneSettings::Equal(length) => {
                let zones = backing.blocks.0.div_ceil(*length);
                if zones > zones_max {
                    return error(format!(
                        "a zone of {length} blocks makes {zones} zones of the device below: at most \
                         {zones_max}"
                    ));
                }
                Ok(Zones::Equal { length: *length, device: backing.blocks })
            }
            ZoneSettings::Bands => {
                let remedy = "set zone to a size";
                Ok(Zones::Bands(bands_for(policy, None, backing, remedy)?))
            }
        }
    }
}

/// The bands for a policy: those it was `given`, or those of the device below. The `remedy` is what
/// to do when there are none.
///
/// # Errors
/// When there are none, or they do not cover the device.
pub(super) fn bands_for(
    policy: &str,
    given: Option<&Arc<BandTable>>,
    backing: &Geometry,
    remedy: &str,
) -> Result<Arc<BandTable>, CacheSettingsError> {
    let Some(bands) = given.or(backing.bands.as_ref()) else {
        return error(format!(
            "the policy {policy} needs bands, and the device below has none: {remedy}"
        ));
    };
    if bands.blocks() < backing.blocks {
        return error(format!(
            "the bands of the policy {policy} cover {} blocks, the device below has {}",
            bands.blocks().0,
            backing.blocks.0
        ));
    }
    Ok(Arc::clone(bands))
}

/// The size of the log for a policy: the `given` one, or that of the device below.
///
/// # Errors
/// When there is none.
pub(super) fn log_for(
    policy: &str,
    given: Option<u64>,
    backing: &Geometry,
) -> Result<LogSize, CacheSettingsError> {
    let given = given.map(|blocks| LogSize { blocks: BlockCount(blocks), entries: None });
    given.or(backing.log).map_or_else(
        || {
            error(format!(
                "the policy {policy} needs the size of the log, and the device below has none: give \
                 log_blocks"
            ))
        },
        Ok,
    )
}

/// The zones of a device, numbered from 0 at address 0.
pub(super) enum Zones {
    /// All of one length, but for a shorter one at the end.
    Equal {
        /// Blocks in a zone.
        length: u64,
        /// Blocks in all.
        device: BlockCount,
    },
    /// The bands of a translation.
    Bands(Arc<BandTable>),
}

impl Zones {
    /// How many there are.
    pub fn count(&self) -> usize {
        match self {
            Zones::Equal { length, device } => device.0.div_ceil(*length) as usize,
            Zones::Bands(bands) => bands.bands() as usize,
        }
    }

    /// The zone of a block.
    #[inline]
    pub fn zone_of(&self, lba: Lba) -> u32 {
        match self {
            Zones::Equal { length, .. } => (lba.0 / length) as u32,
            Zones::Bands(bands) => bands.band_of(lba).0,
        }
    }

    /// Blocks of a zone.
    #[inline]
    pub fn blocks_of(&self, zone: u32) -> u64 {
        match self {
            Zones::Equal { length, device } => (device.0 - u64::from(zone) * length).min(*length),
            Zones::Bands(bands) => bands.extent_of(BandId(zone)).blocks.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Media;

    #[test]
    fn equal_zones_end_in_a_shorter_one() {
        let backing = Geometry::plain(BlockCount(10), Media::Conventional);
        let zones = ZoneSettings::Equal(4).of("ride", &backing, 100);
        let zones = zones.expect("zones that fit");
        assert_eq!(zones.count(), 3);
        assert_eq!(zones.zone_of(Lba(9)), 2);
        let lengths: Vec<u64> = (0..3).map(|zone| zones.blocks_of(zone)).collect();
        assert_eq!(lengths, [4, 4, 2]);
    }

    #[test]
    fn bands_are_those_of_the_device_and_needed() {
        let mut backing = Geometry::plain(BlockCount(5), Media::Conventional);
        let refused = ZoneSettings::Bands.of("ride", &backing, 100);
        assert!(refused.is_err_and(|error| error.message.contains("needs bands")));
        backing.bands = Some(Arc::new(BandTable::new([2, 3].map(BlockCount))));
        let zones = ZoneSettings::Bands.of("ride", &backing, 100);
        let zones = zones.expect("bands that cover the device");
        assert_eq!((zones.count(), zones.zone_of(Lba(2)), zones.blocks_of(1)), (2, 1, 3));
    }
}
