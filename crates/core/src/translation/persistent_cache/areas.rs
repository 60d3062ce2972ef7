//! Where a durable translation keeps its journal and its tables, and how large they must be.

use super::disks::{Disks, LOG};
use super::open_bands::OPEN_BANDS_MAX;
use super::settings::PersistentCacheSettings;
use crate::checksums::pages_of;
use crate::durability::superblock::{FEATURE_HOME_APART, FEATURE_STRETCHES};
use crate::durability::{DurabilitySettings, JournalSettings, LayerKind};
use crate::extent::Extent;
use crate::layer::Area;
use crate::map::{BandId, BandTable};
use crate::units::{BlockCount, Lba};

/// Ranges in the set of zeroed blocks beyond which a zero is served by appending zeroes to the log.
pub(super) const ZEROED_RANGES_MAX: usize = 4096;
/// Blocks that may be lost at once, those of writes that may yet fail among them; also the ranges
/// of lost blocks that a checkpoint has room for.
pub(super) const LOST_BLOCKS_MAX: u64 = 4096;
/// Longest run of data that one record speaks of.
pub(super) const DATA_BLOCKS_MAX: u64 = 960;
/// Words of a checkpoint that every translation has: version, identity, log, counts of the lists
/// and the salvage. More than enough.
const FIXED_WORDS: u64 = 64;

/// The metadata of a durable translation, at the start of the disk of its log:
///
/// ```text
/// | journal | tables of band 0: place 0, place 1 | tables of band 1 | ...
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DurableAreas {
    /// The area of the journal.
    pub journal: Extent,
    /// Blocks of each of its two places for a checkpoint.
    pub checkpoint_blocks: u64,
    /// Two places of a checksum table for each band.
    pub tables: Extent,
    /// Blocks of each such place.
    pub table_blocks: u64,
    /// What a reader of the journal must know, whatever the disks are.
    pub required_features: u32,
}

impl DurableAreas {
    /// The areas for such settings and bands.
    pub fn new(
        settings: &PersistentCacheSettings,
        durability: &DurabilitySettings,
        bands: &BandTable,
    ) -> DurableAreas {
        let bytes = checkpoint_bytes_max(settings, bands);
        let checkpoint_blocks = JournalSettings::checkpoint_blocks_for(bytes);
        let blocks = JournalSettings::area_blocks_for(checkpoint_blocks, durability.ring_blocks);
        let journal = Extent::new(0, blocks);
        let buffer = settings.rewrite.merge_buffer_blocks;
        let in_stretches = buffer.is_some_and(|buffer| buffer < bands.largest());
        let table_blocks = pages_of(bands.largest().0);
        let tables = 2 * u64::from(bands.bands()) * table_blocks;
        DurableAreas {
            journal,
            checkpoint_blocks,
            tables: Extent::new(journal.end().0, tables),
            table_blocks,
            required_features: if in_stretches { FEATURE_STRETCHES } else { 0 },
        }
    }

    /// Some of their blocks, behind the port that they lie behind.
    pub fn area(&self, extent: Extent) -> Area {
        Area { port: LOG, extent }
    }

    /// All of them.
    pub fn whole(&self) -> Extent {
        Extent::between(self.journal.start, self.tables.end())
    }

    /// What the journal must know, on such disks, beside the data that is on another one.
    pub(super) fn journal_settings(&self, disks: Disks<'_>) -> JournalSettings {
        let is_apart = disks.home_port() != LOG;
        let feature = if is_apart { FEATURE_HOME_APART } else { 0 };
        JournalSettings {
            layer: LayerKind::PersistentCache,
            port: LOG,
            member_blocks: disks.log().blocks,
            area: self.journal,
            checkpoint_blocks: self.checkpoint_blocks,
            required_features: self.required_features | feature,
            data: None,
        }
    }

    /// The first page of a table of a band, in place 0 or 1.
    pub fn table_start(&self, band: BandId, place: u64) -> u64 {
        self.tables.start.0 + (2 * u64::from(band.0) + place) * self.table_blocks
    }
}

/// The most that a checkpoint can take: every slot live and alone in its entry, every list full.
fn checkpoint_bytes_max(settings: &PersistentCacheSettings, bands: &BandTable) -> u64 {
    let (log, blocks) = (settings.log_blocks.0, bands.blocks().0);
    // An entry is two words and its checksums, two to a word.
    let entries = 3 * log;
    // A write into a zeroed range splits it, until the band is rewritten.
    let zeroed = 2 * (ZEROED_RANGES_MAX as u64 + log).min(blocks / 2 + 1);
    let lost = 2 * LOST_BLOCKS_MAX.min(blocks);
    let open = if settings.bypass.is_some() { OPEN_BANDS_MAX as u64 } else { 0 };
    let open = open * (2 + bands.largest().0.div_ceil(2));
    let bands = 4 * u64::from(bands.bands());
    8 * (FIXED_WORDS + entries + zeroed + lost + open + bands)
}

/// Blocks that a persistent cache needs, on tracks that do not overlap, at the start of the disk of its log:
/// its metadata and its log. `first_track` is the length of the first track of that disk.
pub fn log_blocks_needed(
    settings: &PersistentCacheSettings,
    bands: &BandTable,
    first_track: BlockCount,
) -> BlockCount {
    let metadata = match &settings.durability {
        None => first_track,
        Some(durability) => DurableAreas::new(settings, durability, bands).whole().blocks,
    };
    BlockCount(metadata.0 + settings.log_blocks.0)
}

/// Blocks that a persistent cache on one disk needs at its start on tracks that do not overlap: the log
/// with its metadata, and the bands that take every write.
pub fn conventional_blocks_needed(
    settings: &PersistentCacheSettings,
    bands: &BandTable,
    first_track: BlockCount,
) -> BlockCount {
    let log = log_blocks_needed(settings, bands, first_track);
    BlockCount(log.0 + conventional_band_blocks(settings, bands).0)
}

/// How many bands, the first ones, lie on tracks that do not overlap: the conventional zones of a host-aware
/// disk, or as many as hold what is written in place.
pub(super) fn conventional_bands(settings: &PersistentCacheSettings, bands: &BandTable) -> u32 {
    if let Some(host_aware) = &settings.host_aware {
        return host_aware.zones.conventional_zones.min(bands.bands());
    }
    match settings.in_place_blocks.0 {
        0 => 0,
        // More than that is refused by the layout.
        blocks if blocks >= bands.blocks().0 => bands.bands(),
        blocks => bands.band_of(Lba(blocks - 1)).0 + 1,
    }
}

/// Blocks of the bands that take every write.
pub fn conventional_band_blocks(
    settings: &PersistentCacheSettings,
    bands: &BandTable,
) -> BlockCount {
    match conventional_bands(settings, bands) {
        0 => BlockCount::ZERO,
        count => BlockCount(bands.extent_of(BandId(count - 1)).end().0),
    }
}
