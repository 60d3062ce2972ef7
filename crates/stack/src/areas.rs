//! Where a translation puts its bands, where on its disk the statistics look for what, and what a share
//! is a share of.

use super::config::ConfigError;
use super::kinds::OnDisk;
use imbrex_core::extent::Extent;
use imbrex_core::layer::{Area, Port};
use imbrex_core::map::BandTable;
use imbrex_core::translation::{PersistentCache, bands_ascending, bands_fixed, bands_uniform};
use imbrex_core::units::{BLOCK_BYTES, BlockCount};
use imbrex_drives::quantity::{SizeOrShare, Whole};
use imbrex_drives::{Bands, HeatMapRecorder};

fn blocks(bytes: u64) -> BlockCount {
    BlockCount::from_bytes_floor(bytes)
}

/// Bytes of the bands that a workload uses: what shares are shares of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Footprint {
    /// Of the bands that reads or writes touch; that writes touch, where a cache takes only writes.
    pub touched_bytes: u64,
    /// Of the bands that writes touch.
    pub written_bytes: u64,
}

impl Footprint {
    /// Of a device of `bytes` whose workload is not known: everything.
    pub fn whole_device(bytes: u64) -> Footprint {
        Footprint { touched_bytes: bytes, written_bytes: bytes }
    }

    /// The size in bytes, a share resolved and rounded down.
    pub fn bytes_of(self, size: SizeOrShare) -> u64 {
        size.bytes_of(match size {
            SizeOrShare::Share { whole: Whole::WrittenBands, .. } => self.written_bytes,
            _ => self.touched_bytes,
        })
    }
}

/// The bytes of a share.
///
/// # Errors
/// Where what it is a share of is not known.
pub(super) fn share_bytes(
    footprint: Option<Footprint>,
    key: &str,
    share: SizeOrShare,
) -> Result<u64, ConfigError> {
    let footprint = footprint.ok_or_else(|| {
        ConfigError::words(format!(
            "{key} = \"{share}\" is a share of a workload, and there is none"
        ))
    })?;
    Ok(footprint.bytes_of(share))
}

/// The bands of a layout over `total` blocks.
///
/// # Errors
/// When the limits of a random layout are not in order.
pub fn lay_out(bands: Bands, total: BlockCount, seed: u64) -> Result<BandTable, ConfigError> {
    const MIB: u64 = 1 << 20;
    Ok(match bands {
        Bands::Fixed(size) => bands_fixed(total, blocks(size.bytes())),
        Bands::Ascending => bands_ascending(total, blocks(18 * MIB), blocks(36 * MIB)),
        Bands::Uniform { min, max } => {
            if min.bytes() % BLOCK_BYTES != 0 || max.bytes() % BLOCK_BYTES != 0 {
                return Err(ConfigError::words(format!(
                    "bands = \"uniform:{min}..{max}\": accepted: whole blocks of 4 KiB"
                )));
            }
            bands_uniform(total, blocks(min.bytes()), blocks(max.bytes()), seed)
        }
    })
}

/// Address bins of the heat map of band writes.
const HEAT_MAP_LBA_BINS: usize = 96;
/// Time bins of the heat map of band writes at most.
const HEAT_MAP_TIME_BINS: usize = 160;

/// Lets the statistics of the disk behind a port of a translation tell its areas apart.
pub(super) fn count_areas(disk: &OnDisk, port: Port, translation: &PersistentCache) {
    let areas = translation.areas();
    let on_disk = |area: Area| {
        let Extent { start, blocks } = area.extent;
        Extent::new(disk.start + start.0, blocks.0)
    };
    let all = [
        ("metadata", areas.metadata),
        ("persistent_cache", areas.persistent_cache),
        ("scratch", areas.scratch),
        ("bands", areas.bands),
    ];
    let here = all.into_iter().filter(|(_, area)| area.port == port);
    let named = here.map(|(name, area)| (format!("{}{name}", disk.area_prefix), on_disk(area)));
    disk.statistics.add_areas(named);
    if areas.bands.port == port {
        let map = HeatMapRecorder::new(HEAT_MAP_LBA_BINS, HEAT_MAP_TIME_BINS);
        disk.statistics.record_writes(on_disk(areas.bands), map);
    }
}
