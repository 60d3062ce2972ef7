//! The translation of a drive-managed disk: a log that takes random writes, and bands.

use super::persistent_cache_settings::layer_settings;
use super::ports::PortNodes;
use super::{
    Asked, Below, Body, Keeps, Kind, Known, Node, Offer, Part, PersistentCacheConfig, Place,
    Planned, PlannedBands, Reported, TimeKey, World, Writer, wrong,
};
use crate::areas::{Footprint, count_areas, lay_out, share_bytes};
use crate::config::ConfigError;
use crate::durability::JournalKeys;
use crate::roles::NodeRole;
use imbrex_core::buffer::ContentKind;
use imbrex_core::counters::{
    CLEANING, Counts, Gauge, Group, IN_PLACE, JOURNAL, MOVES, PERSISTENT_CACHE, STREAM_CLASSES,
    ZONES,
};
use imbrex_core::disk::UNKNOWN_TRACK;
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::extent::Extent;
use imbrex_core::layer::Port;
use imbrex_core::translation::records::{BYPASS, RECORD_KINDS};
use imbrex_core::translation::{
    CleanTo, HostAware, LayoutError, PersistentCache, PersistentCacheSettings, RewriteExtent,
    conventional_band_blocks, log_blocks_needed,
};
use imbrex_core::units::{BLOCK_BYTES, BlockCount, Duration};
use imbrex_core::words::Words;
use imbrex_drives::quantity::{Size, SizeOrShare, Whole};
use imbrex_drives::{Bands, DriveModel, IdleAfter, TranslationSettings};
use imbrex_report::Run;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

impl Kind for PersistentCacheConfig {
    const NAME: &'static str = "persistent-cache";
    const PLACE: Place = Place::Translation;
}

impl Node for PersistentCacheConfig {
    fn name(&self) -> &str {
        &self.name
    }

    fn ports(&self) -> Vec<PortNodes<'_>> {
        self.below.ports()
    }

    fn journal(&self) -> Option<JournalKeys<'_>> {
        Some(JournalKeys {
            below: self.below.one("log"),
            durable: self.durable,
            ring_blocks: self.ring_blocks,
            unflushed_blocks_max: self.unflushed_blocks_max,
            others: vec![],
        })
    }

    fn members(&self) -> Vec<(Cow<'static, str>, Port)> {
        match self.below.is_short() {
            true => vec![("below".into(), PersistentCache::LOG)],
            false => {
                vec![("log".into(), PersistentCache::LOG), ("home".into(), PersistentCache::HOME)]
            }
        }
    }

    fn checks(&self, _below: &str) -> bool {
        true
    }

    fn record_kinds(&self) -> &'static [(u8, &'static str)] {
        &RECORD_KINDS
    }

    fn data_off_journal(&self) -> Option<(&str, u8)> {
        (!self.below.is_short()).then(|| (self.below.one("home"), BYPASS))
    }

    fn log_size(&self) -> Option<(&'static str, Option<SizeOrShare>)> {
        Some(("persistent_cache", self.persistent_cache))
    }

    fn keeps(&self) -> Result<Keeps, ConfigError> {
        Ok(Keeps::Translation)
    }

    fn room(&self, world: &World<'_>, scale: u64) -> Result<BlockCount, ConfigError> {
        world.drive_below(self)?;
        let home = self.below.one("home");
        let below = world.room(home, scale)?;
        match world.is_part(home) {
            true => self.room_in_slice(below, world, scale),
            false => Ok(below),
        }
    }

    fn plan(
        &self,
        asked: Asked,
        world: &World<'_>,
    ) -> Result<(Box<dyn Planned>, Vec<Asked>), ConfigError> {
        let planned = self.planned(asked, world)?;
        // The log and the scratch bands take from a drive what the bands leave, so all of it is used.
        let room = self.room(world, asked.scale)?;
        let whole = !world.options.trim_disks && asked.blocks <= room;
        let home = Asked { writer: Writer::Tracks { whole }, is_part: false, ..asked };
        let mut below = vec![home];
        if !self.below.is_short() {
            below.insert(0, self.log_asked(&planned, asked, world)?);
        }
        Ok((Box::new(planned), below))
    }
}

impl PersistentCacheConfig {
    /// What the translation asks of a node that holds its log alone: all that is there, or no more
    /// than it needs where disks are as small as they can be.
    fn log_asked(
        &self,
        planned: &PlannedTranslation,
        asked: Asked,
        world: &World<'_>,
    ) -> Result<Asked, ConfigError> {
        if planned.host_aware.is_some() {
            return Err(wrong(&self.name, &LayoutError::ZonesOnTwoDisks));
        }
        let room = world.room(self.below.one("log"), asked.scale)?;
        if !world.options.trim_disks {
            return Ok(Asked {
                blocks: room,
                scale: asked.scale,
                writer: Writer::Tracks { whole: true },
                is_part: false,
            });
        }
        // No workload is known of what is served.
        let known = Known {
            options: world.options,
            footprint: Some(Footprint::whole_device(world.device.bytes())),
            lookups: None,
            contents: ContentKind::Counted,
        };
        let blocks = planned.log_and_metadata(&known)?;
        if blocks > room {
            return Err(wrong(
                &self.name,
                &format_args!(
                    "its log and journal need {} B of node `{}`, which has {} B",
                    blocks.bytes(),
                    self.below.one("log"),
                    room.bytes()
                ),
            ));
        }
        Ok(Asked {
            blocks,
            scale: asked.scale,
            writer: Writer::Tracks { whole: false },
            is_part: false,
        })
    }

    /// Bytes of the node that holds the log, and the longest track there.
    fn log_disk(&self, world: &World<'_>) -> Result<(u64, BlockCount), ConfigError> {
        Ok(match world.drive_of(self.below.one("log")) {
            Some(drive) => (drive.model.capacity.bytes(), longest_track(&drive.model)),
            None => (world.room(self.below.one("log"), 1)?.bytes(), UNKNOWN_TRACK),
        })
    }

    /// Blocks that surely have room in a slice beside the log, the scratch band and all guards: the
    /// drive's own spare room is not the slice's.
    fn room_in_slice(
        &self,
        slice: BlockCount,
        world: &World<'_>,
        scale: u64,
    ) -> Result<BlockCount, ConfigError> {
        let model = &world.drive_below(self)?.model;
        let overlap_tracks = model.shingles.as_ref().map_or(0, |it| it.overlap_tracks);
        let guard = longest_track(model).0 * (overlap_tracks + 1);
        let asked = Asked { blocks: slice, scale, writer: Writer::Layer, is_part: false };
        let planned = self.planned(asked, world)?;
        let bands = &planned.bands.table;
        // Two places for a stretch; the slice and its conventional part are rounded to tracks.
        let scratch = 2 * (bands.largest().0 + guard);
        let rounding = guard + 2 * longest_track(model).0;
        let settings = planned.layer_settings(planned.log_blocks_max(slice));
        let log = match self.below.is_short() {
            true => log_blocks_needed(&settings, bands, planned.track_blocks),
            false => BlockCount::ZERO,
        };
        let kept = u64::from(bands.bands()) * guard + scratch + rounding + log.0;
        match slice.0.checked_sub(kept).filter(|room| *room > 0) {
            Some(room) => Ok(BlockCount(room)),
            None => Err(wrong(
                &self.name,
                &format_args!(
                    "`{}` has {} B, and the log, the scratch band and the guards of bands may need {} B of \
                     it; accepted: a longer slice, a smaller `persistent_cache` or other `bands`",
                    self.below.one("home"),
                    slice.bytes(),
                    BlockCount(kept).bytes()
                ),
            )),
        }
    }

    fn planned(&self, asked: Asked, world: &World<'_>) -> Result<PlannedTranslation, ConfigError> {
        let model = &world.drive_below(self)?.model;
        let mut of_drive = model.translation.clone().unwrap_or_default();
        if self.bypass_streams.is_some() {
            // The drive file says how long a stream lasts, where no write is judged by itself.
            (of_drive.bypass_after, of_drive.bypass_after_max) = (None, None);
        }
        let settings = self.over(of_drive);
        let missing = |key: &str| {
            wrong(
                &self.name,
                &format_args!("`{key}` is needed, because the drive `{}` has none", model.name),
            )
        };
        let check = settings.check_cleaning().and_then(|()| settings.check_bypass());
        check.map_err(|what| wrong(&self.name, &what))?;
        let mut host_aware = host_aware(model, asked);
        let not_shown = |words: String| {
            let drive = &model.name;
            let words = format!(
                "{words}, and the drive `{drive}` shows none; accepted: over a host-aware drive"
            );
            wrong(&self.name, &words)
        };
        if let Some(filled) = settings.zones_filled {
            let zones = host_aware.as_mut().ok_or_else(|| {
                not_shown(format!("zones_filled = {filled} says how full zones are at the start"))
            })?;
            zones.filled_permille = (filled * 1000.0).round() as u32;
        }
        if let Some(reclaim) = settings.reclaim {
            let zones = host_aware.as_mut().ok_or_else(|| {
                let name = reclaim.0.word();
                not_shown(format!(
                    "reclaim = \"{name}\" says when the log has room for zones again"
                ))
            })?;
            zones.reclaim = reclaim.0;
        }
        let layout = match (&host_aware, settings.bands) {
            (Some(zones), bands) => self.bands_of_zones(zones, bands)?,
            (None, bands) => bands.ok_or_else(|| missing("bands"))?,
        };
        let persistent_cache =
            settings.persistent_cache.ok_or_else(|| missing("persistent_cache"))?;
        let (log_bytes, track_blocks) = self.log_disk(world)?;
        let seed = self.band_seed.unwrap_or(world.options.seed);
        let random = matches!(layout, Bands::Uniform { .. });
        Ok(PlannedTranslation {
            bands: PlannedBands {
                table: Arc::new(lay_out(layout, asked.blocks, seed)?),
                key: format!("{layout:?}, seed {seed}, {:?} of {:?}", world.device, asked.blocks),
                log_is_of_written: is_of_written(persistent_cache),
            },
            band_seed: random.then_some(seed),
            persistent_cache,
            node: self.name.clone(),
            log_bytes,
            track_blocks,
            home_is_apart: !self.below.is_short(),
            is_below_layer: asked.writer != Writer::Host,
            scale: asked.scale,
            durability: self.journal().and_then(|it| it.settings(world.options)),
            block_ns: model.slowest_block_ns(),
            host_aware,
            settings,
        })
    }

    /// The bands of a translation with zones: they are the zones.
    fn bands_of_zones(
        &self,
        zones: &HostAware,
        bands: Option<Bands>,
    ) -> Result<Bands, ConfigError> {
        match bands {
            None => Ok(Bands::Fixed(Size(zones.zones.zone_blocks.bytes()))),
            Some(_) => Err(wrong(
                &self.name,
                &"`bands` has no meaning over a host-aware drive: its zones are the bands",
            )),
        }
    }
}

/// What makes the translation of a host-aware drive so; none of another drive.
fn host_aware(drive: &DriveModel, asked: Asked) -> Option<HostAware> {
    let queue = drive.queue.as_ref();
    let command = queue.map_or(Duration::ZERO, |queue| queue.command_overhead.0);
    let zones = drive.zones.as_ref()?;
    zones.host_aware(asked.blocks, asked.scale, command)
}

pub(super) fn longest_track(drive: &DriveModel) -> BlockCount {
    let platters = drive.platters.as_ref();
    platters.map_or(UNKNOWN_TRACK, |platters| {
        BlockCount::from_bytes_floor(platters.longest_track_bytes())
    })
}

fn is_of_written(size: SizeOrShare) -> bool {
    matches!(size, SizeOrShare::Share { whole: Whole::WrittenBands, .. })
}

struct PlannedTranslation {
    /// The settings of the node over those of the drive.
    settings: TranslationSettings,
    bands: PlannedBands,
    /// Of a random layout.
    band_seed: Option<u64>,
    persistent_cache: SizeOrShare,
    /// Name of the node.
    node: String,
    /// Capacity of the drive that holds the log, unscaled.
    log_bytes: u64,
    /// The longest track of it.
    track_blocks: BlockCount,
    /// The bands are on another disk.
    home_is_apart: bool,
    /// It does not stand right below the host.
    is_below_layer: bool,
    scale: u64,
    durability: Option<DurabilitySettings>,
    /// What a block takes on its innermost track.
    block_ns: u64,
    /// What the host sees of the bands, where it sees them.
    host_aware: Option<HostAware>,
}

impl PlannedTranslation {
    /// Slots of the persistent cache.
    fn log_blocks(&self, known: &Known<'_>) -> Result<BlockCount, ConfigError> {
        let bytes = match self.persistent_cache {
            SizeOrShare::Size(size) => {
                let log_bytes = self.log_bytes;
                let accepted = BLOCK_BYTES..=log_bytes;
                if !accepted.contains(&size.bytes()) {
                    return Err(wrong(
                        &self.node,
                        &format_args!(
                            "persistent_cache = \"{size}\"; accepted: one block (4096 B) to the \
                             capacity of the drive ({log_bytes} B)"
                        ),
                    ));
                }
                size.bytes() / self.scale
            }
            share => share_bytes(known.footprint, "persistent_cache", share)?,
        };
        Ok(BlockCount(BlockCount::from_bytes_floor(bytes).0.max(1)))
    }

    /// Slots of the persistent cache at most, on a device of so many blocks.
    fn log_blocks_max(&self, device: BlockCount) -> BlockCount {
        let bytes = match self.persistent_cache {
            SizeOrShare::Size(size) => size.bytes() / self.scale,
            share => share.bytes_of(device.bytes()),
        };
        BlockCount(BlockCount::from_bytes_floor(bytes).0.max(1))
    }

    /// The keys of the node over those of the drive, with sizes as the layer gets them.
    fn resolved(
        &self,
        settings: &PersistentCacheSettings,
        log_blocks: BlockCount,
    ) -> Map<String, Value> {
        let effective = serde_json::to_value(&self.settings).expect("keys are texts");
        let mut keys = match effective {
            Value::Object(keys) => keys,
            _ => unreachable!("settings are a table"),
        };
        let entries = settings.entries_max;
        let sizes = [
            ("persistent_cache", Size(log_blocks.bytes()).to_string().into()),
            ("entries", entries.map_or("unlimited".into(), Value::from)),
            ("band_seed", self.band_seed.map_or(Value::Null, Value::from)),
        ];
        keys.extend(sizes.map(|(key, value)| (key.to_owned(), value)));
        keys.retain(|_, value| !value.is_null());
        keys
    }

    /// Blocks at the start of the disk of the log.
    fn log_and_metadata(&self, known: &Known<'_>) -> Result<BlockCount, ConfigError> {
        let settings = self.layer_settings(self.log_blocks(known)?);
        Ok(log_blocks_needed(&settings, &self.bands.table, self.track_blocks))
    }

    fn layer_settings(&self, log_blocks: BlockCount) -> PersistentCacheSettings {
        let mut settings = layer_settings(&self.settings, log_blocks, self.scale);
        settings.durability = self.durability;
        settings.blocking = self.settings.blocking_cleaning();
        settings.idle = self.settings.idle_cleaning(self.block_ns);
        settings.host_aware = self.host_aware.clone();
        settings
    }
}

impl Planned for PlannedTranslation {
    fn depends_on_time(&self) -> Option<TimeKey> {
        if let Some(slice) = &self.settings.blocking_slice {
            return Some(TimeKey {
                key: format!("blocking_slice = \"{slice}\""),
                does: "cleans bands for so long at a time",
                instead: "a translation without the key",
            });
        }
        if let Some(IdleAfter::After(after)) = self.settings.idle_after {
            return Some(TimeKey {
                key: format!("idle_after = \"{after}\""),
                does: "cleans bands when nothing was asked for so long",
                instead: "idle_after = \"off\"",
            });
        }
        // What a layer above writes in the background is on its way when the host goes on.
        if !self.is_below_layer {
            return None;
        }
        if let Some(records) = self.settings.journal_every_records.filter(|records| *records > 0) {
            return Some(TimeKey {
                key: format!("journal_every_records = {records}"),
                does: "holds up what comes after so many records",
                instead: "journal_every_records = 0, or the translation right below the host",
            });
        }
        let size = self.settings.log_per_flush.filter(|size| size.bytes() > 0)?;
        Some(TimeKey {
            key: format!("log_per_flush = \"{size}\""),
            does: "takes a piece of the log for what has come before a flush",
            instead: "log_per_flush = \"0\", or the translation right below the host",
        })
    }

    fn conventional(
        &self,
        known: &Known<'_>,
        _above: &[Extent],
    ) -> Result<Vec<(usize, Extent)>, ConfigError> {
        let settings = self.layer_settings(self.log_blocks(known)?);
        let bands = conventional_band_blocks(&settings, &self.bands.table).0;
        let log = self.log_and_metadata(known)?.0;
        Ok(match self.home_is_apart {
            true => vec![(0, Extent::new(0, log)), (1, Extent::new(0, bands))],
            false => vec![(0, Extent::new(0, log + bands))],
        })
    }

    fn has_share(&self) -> bool {
        matches!(self.persistent_cache, SizeOrShare::Share { .. })
    }

    fn bands(&self) -> Option<&PlannedBands> {
        Some(&self.bands)
    }

    fn build(&self, known: &Known<'_>, below: &Below<'_>) -> Result<Part, ConfigError> {
        let (log, home) = match below.offers[..] {
            [disk] => (disk, disk),
            [log, home] => (log, home),
            _ => unreachable!("a translation has one port or two"),
        };
        let log_blocks = self.log_blocks(known)?;
        let settings = self.layer_settings(log_blocks);
        let facts = Facts {
            resolved: self.resolved(&settings, log_blocks),
            log_blocks: log_blocks.0,
            entries_max: settings.entries_max,
            bands: u64::from(self.bands.table.bands()),
            band_seed: self.band_seed,
            counts_cleaning: settings.idle.is_some()
                || settings.blocking.low_permille < 1000
                || settings.blocking.slice.is_some()
                || self.host_aware.is_some(),
            writes_in_place: settings.in_place_blocks.0 > 0,
            moves_in_log: settings.blocking.to == CleanTo::Log,
            has_classes: settings.bypass.is_some_and(|bypass| bypass.classes.is_some()),
            has_zones: self.host_aware.is_some(),
            unbounded_by: unbounded_by(&settings),
            rewrites_whole_bands: settings.rewrite.extent == RewriteExtent::Band,
            is_durable: self.durability.is_some(),
        };
        let table = Arc::clone(&self.bands.table);
        let built = match below.offers.len() {
            1 => PersistentCache::new(settings, table, &home.geometry),
            _ => PersistentCache::on_two(settings, table, &log.geometry, &home.geometry),
        };
        let (layer, geometry) = built.map_err(|error| wrong(&self.node, &error))?;
        for (port, offer) in (0..).map(Port).zip(&below.offers) {
            if let Some(disk) = &offer.on_disk {
                count_areas(disk, port, &layer);
            }
        }
        Ok(Part {
            body: Body::Layer(Box::new(layer)),
            offer: Offer::over(geometry),
            facts: super::Facts::PersistentCache(facts),
        })
    }
}

/// See [`Facts::unbounded_by`].
fn unbounded_by(settings: &PersistentCacheSettings) -> Option<(&'static str, &'static str)> {
    if settings.host_aware.is_some() {
        // Writes at the write pointer of a zone go home.
        Some(("the zones of a host-aware drive", "a drive without zones"))
    } else if settings.bypass.is_some() {
        Some(("bypass = \"on\"", "\"off\""))
    } else if settings.rewrite.merge_buffer_blocks.is_some() {
        // A rewrite that is given up may have brought some stretches home.
        Some(("merge_buffer", "\"none\""))
    } else {
        None
    }
}

/// What a report needs to know of a translation.
pub struct Facts {
    resolved: Map<String, Value>,
    /// Slots of the persistent cache.
    pub log_blocks: u64,
    /// Map entries the persistent cache may hold.
    pub entries_max: Option<u64>,
    /// Bands.
    pub bands: u64,
    /// Seed of the band layout; none of a layout that is not random.
    pub band_seed: Option<u64>,
    /// Whether it tells sequential writes from random ones one by one.
    counts_cleaning: bool,
    writes_in_place: bool,
    moves_in_log: bool,
    has_classes: bool,
    /// Whether the host sees the bands as zones.
    pub has_zones: bool,
    /// What brings blocks home without a rewrite that is counted, so that no bound holds; the setting
    /// and what a bound accepts.
    pub unbounded_by: Option<(&'static str, &'static str)>,
    /// Whether a rewrite writes all blocks of its band.
    pub rewrites_whole_bands: bool,
    /// Whether it keeps a journal.
    pub is_durable: bool,
}

/// How full the persistent cache of a stack is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogUse {
    /// Slots it has.
    pub blocks: u64,
    /// Slots in use, superseded ones included.
    pub used_blocks: u64,
    /// Slots with the newest block of their address.
    pub live_blocks: u64,
    /// Entries of the map it may have; none for no limit.
    pub entries_max: Option<u64>,
    /// Entries of the map it has.
    pub entries: u64,
}

impl Facts {
    /// How full it is.
    pub(crate) fn log_use(&self, counts: &Counts) -> LogUse {
        LogUse {
            blocks: self.log_blocks,
            used_blocks: counts.gauge(Gauge::PersistentCacheUsedBlocks),
            live_blocks: counts.gauge(Gauge::PersistentCacheLiveBlocks),
            entries_max: self.entries_max,
            entries: counts.gauge(Gauge::PersistentCacheEntries),
        }
    }
}

impl Reported for Facts {
    fn resolved(&self) -> Map<String, Value> {
        self.resolved.clone()
    }

    fn groups(&self) -> Vec<Group> {
        let mut groups = vec![PERSISTENT_CACHE];
        groups.extend(self.counts_cleaning.then_some(CLEANING));
        groups.extend(self.writes_in_place.then_some(IN_PLACE));
        groups.extend(self.moves_in_log.then_some(MOVES));
        groups.extend(self.has_classes.then_some(STREAM_CLASSES));
        groups.extend(self.has_zones.then_some(ZONES));
        groups.extend(self.is_durable.then_some(JOURNAL));
        groups
    }

    fn roles(&self) -> Vec<NodeRole> {
        let mut roles = vec![NodeRole::Translation];
        roles.extend(self.has_zones.then_some(NodeRole::Zones));
        roles
    }

    fn tell(&self, run: &mut Run) {
        let log = &mut run.log;
        // Several layouts have no seed in common.
        log.band_seed = self.band_seed.filter(|_| log.bands.is_none());
        log.bands = Some(log.bands.unwrap_or(0) + self.bands);
        let others = log.persistent_cache_bytes.unwrap_or(0);
        log.persistent_cache_bytes = Some(others + self.log_blocks * BLOCK_BYTES);
    }
}
