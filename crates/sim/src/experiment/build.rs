//! From a configuration to a stack: first a plan, which knows drives and bands but not yet the
//! workload, then the stack, in which every share is a number of blocks.

mod disks;

use super::areas::{Footprint, count_areas, lay_out, share_bytes};
use super::config::{
    CacheConfig, CacheMode, ConfigError, Destage, DiskConfig, NodeConfig, Policy, StackConfig,
};
use super::describe::{Describe, DescribeDisk};
use super::durability;
use super::pore_settings::{at_least_a_block, pore_settings};
use super::translation_settings::layer_settings;
use super::zones::{ZonePlan, bands_of_zones};
use imbrex_core::buffer::ContentKind;
use imbrex_core::cache::{self, Cache, CacheSettings, PolicySettings};
use imbrex_core::disk::Disk;
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::map::BandTable;
use imbrex_core::operation::Durability;
use imbrex_core::stack::{NodeId, Stack, StackBuilder};
use imbrex_core::translation::{
    HostAware, PersistentCache, PersistentCacheSettings, conventional_blocks_needed,
};
use imbrex_core::units::{BLOCK_BYTES, BlockCount, Lba};
use imbrex_drives::quantity::{SizeOrShare, Whole};
use imbrex_drives::{Bands, Drive, SimulatedDisk, TranslationSettings};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// What a stack is built for.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// Root seed of band layouts and of layers.
    pub seed: u64,
    /// Size of the device instead of what the stack or the drive says.
    pub size_bytes: Option<u64>,
    /// Divides capacity, persistent-cache bytes and entries; bands and mechanics stay.
    pub scale: u64,
    /// Makes each disk only as large as the device needs, as images are.
    pub trim_disks: bool,
    /// Keeps the contents of simulated disks in sparse files in this folder, instead of memory.
    pub contents_dir: Option<PathBuf>,
    /// Makes every layer durable, as images are, whether its node says so or not.
    pub durable: bool,
}

impl BuildOptions {
    /// Full-size drives.
    pub fn simulate(seed: u64) -> BuildOptions {
        BuildOptions {
            seed,
            size_bytes: None,
            scale: 1,
            trim_disks: false,
            contents_dir: None,
            durable: false,
        }
    }
}

/// A stack about to be built.
pub struct Plan {
    config: StackConfig,
    options: BuildOptions,
    /// Drive model of each disk node.
    drives: BTreeMap<String, Drive>,
    translation: Option<PlannedTranslation>,
    /// Size of the device.
    blocks: BlockCount,
}

struct PlannedTranslation {
    /// The settings of the node over those of the drive.
    settings: TranslationSettings,
    bands: Arc<BandTable>,
    /// What the band layout depends on, in words.
    key: String,
    /// Of a random layout.
    band_seed: Option<u64>,
    persistent_cache: SizeOrShare,
    /// Name of the node.
    node: String,
    /// Capacity of the drive below, unscaled.
    drive_bytes: u64,
    durability: Option<DurabilitySettings>,
    /// What a block takes on its innermost track.
    block_ns: u64,
    /// What the host sees of the bands, where it sees them.
    host_aware: Option<HostAware>,
}

/// Puts a disk in the place of a simulated one.
pub type PlaceDisk<'a> =
    dyn FnMut(&DiskConfig, SimulatedDisk) -> Result<Box<dyn Disk>, ConfigError> + 'a;

/// A stack that is ready to run.
pub struct Built {
    /// The layers.
    pub stack: Stack,
    /// The disks, simulated, in the order of their ids.
    pub disks: Vec<Box<dyn Disk>>,
    /// What reports need to know of it.
    pub describe: Describe,
}

fn blocks(bytes: u64) -> BlockCount {
    BlockCount::from_bytes_floor(bytes)
}

impl Plan {
    /// Loads the drives and lays out the bands.
    ///
    /// # Errors
    /// When a drive is unknown or the sizes do not fit.
    pub fn new(config: &StackConfig, options: &BuildOptions) -> Result<Plan, ConfigError> {
        durability::check_use(&config.node, options.durable)?;
        let mut drives = BTreeMap::new();
        for node in &config.node {
            if let NodeConfig::Disk(disk) = node {
                if disk.name == "total" {
                    return Err(ConfigError::words(
                        "a disk cannot be named `total`: reports use that name for the sum",
                    ));
                }
                let drive = Drive::open(&disk.drive).map_err(|error| {
                    ConfigError::words(format!("node `{}`: {error}", disk.name))
                })?;
                drives.insert(disk.name.clone(), drive);
            }
        }
        disks::check_shingles(config, &drives)?;
        let mut plan = Plan {
            config: config.clone(),
            options: options.clone(),
            drives,
            translation: None,
            blocks: BlockCount::ZERO,
        };
        let reserved = plan.reserved_blocks();
        let drive_blocks = plan.backing_drive_blocks()?;
        let drive_blocks = BlockCount(drive_blocks.0.saturating_sub(reserved));
        let asked = options.size_bytes.or(config.size.map(|size| size.bytes()));
        plan.blocks = match asked {
            Some(0) => {
                return Err(ConfigError::words(
                    "size: accepted: one block (4096 B) or more",
                ));
            }
            Some(bytes) if blocks(bytes) > drive_blocks => {
                return Err(ConfigError::words(format!(
                    "size: {bytes} B is more than the drive below holds ({} B)",
                    drive_blocks.bytes()
                )));
            }
            Some(bytes) => blocks(bytes),
            None if drive_blocks == BlockCount::ZERO => {
                return Err(ConfigError::words(format!(
                    "scale {}: leaves less than one block (4096 B) of the drive",
                    options.scale
                )));
            }
            None => drive_blocks,
        };
        plan.plan_bands()?;
        plan.zones().check(config)?;
        Ok(plan)
    }

    /// Blocks of the drive that holds the data in the end.
    fn backing_drive_blocks(&self) -> Result<BlockCount, ConfigError> {
        let mut node = self.config.top();
        loop {
            match node {
                NodeConfig::Disk(disk) => {
                    return Ok(self.drives[&disk.name]
                        .model
                        .user_blocks(self.options.scale));
                }
                _ => {
                    let below = node.below();
                    let backing = below.last().expect("a layer stands on something");
                    node = self.config.node(backing).expect("a checked stack");
                }
            }
        }
    }

    fn plan_bands(&mut self) -> Result<(), ConfigError> {
        let Some(config) = self.config.node.iter().find_map(|node| match node {
            NodeConfig::PersistentCache(config) => Some(config),
            _ => None,
        }) else {
            return Ok(());
        };
        let drive = self.drives.get(&config.below).ok_or_else(|| {
            ConfigError::words(format!("node `{}` must stand on a disk", config.name))
        })?;
        let settings = config.over(drive.model.translation.clone().unwrap_or_default());
        let missing = |key: &str| {
            ConfigError::words(format!(
                "node `{}`: `{key}` is needed, because the drive `{}` has none",
                config.name, drive.model.name
            ))
        };
        let check = settings.check_cleaning();
        check.map_err(|what| ConfigError::words(format!("node `{}`: {what}", config.name)))?;
        let host_aware = self.zones().host_aware(&drive.model, self.backing_blocks());
        let layout = match (&host_aware, settings.bands) {
            (Some(zones), bands) => bands_of_zones(&config.name, zones, bands)?,
            (None, bands) => bands.ok_or_else(|| missing("bands"))?,
        };
        let persistent_cache = settings
            .persistent_cache
            .ok_or_else(|| missing("persistent_cache"))?;
        let seed = config.band_seed.unwrap_or(self.options.seed);
        let random = matches!(layout, Bands::Uniform { .. });
        self.translation = Some(PlannedTranslation {
            bands: Arc::new(lay_out(layout, self.backing_blocks(), seed)?),
            key: format!("{layout:?}, seed {seed}, {:?}", self.blocks),
            band_seed: random.then_some(seed),
            settings,
            persistent_cache,
            node: config.name.clone(),
            drive_bytes: drive.model.capacity.bytes(),
            durability: config.durability(self.options.durable),
            block_ns: drive.model.slowest_block_ns(),
            host_aware,
        });
        Ok(())
    }

    fn zones(&self) -> ZonePlan<'_> {
        ZonePlan {
            drives: &self.drives,
            blocks: self.blocks,
            scale: self.options.scale,
        }
    }

    /// Size of the device.
    pub fn blocks(&self) -> BlockCount {
        self.blocks
    }

    /// What a cache keeps for itself of what it stands on.
    fn reserved_blocks(&self) -> u64 {
        let cache = self.config.cache();
        cache.map_or(0, |config| {
            CacheSettings::reserved_blocks(config.durability(self.options.durable))
        })
    }

    /// Size of what a cache stands on, or of the device without one.
    fn backing_blocks(&self) -> BlockCount {
        BlockCount(self.blocks.0 + self.reserved_blocks())
    }

    /// The bands of the translation, if there is one.
    pub fn bands(&self) -> Option<&BandTable> {
        self.translation
            .as_ref()
            .map(|translation| &*translation.bands)
    }

    /// What the band layout depends on, in words; empty without bands.
    pub fn bands_key(&self) -> &str {
        self.translation
            .as_ref()
            .map_or("", |translation| &translation.key)
    }

    /// True when the cache serves writes only.
    pub fn is_write_only(&self) -> bool {
        self.config
            .cache()
            .is_some_and(|cache| cache.mode == CacheMode::WriteOnly)
    }

    /// True when a size is a share of the bands of the workload.
    pub fn needs_footprint(&self) -> bool {
        let is_share = |size: SizeOrShare| matches!(size, SizeOrShare::Share { .. });
        let cache = self.config.cache();
        cache.is_some_and(|c| is_share(c.capacity) && c.policy != Policy::Unlimited)
            || self
                .translation
                .as_ref()
                .is_some_and(|t| is_share(t.persistent_cache))
    }

    /// True when the log is a share of the written bands.
    pub fn has_log_of_written_bands(&self) -> bool {
        self.translation.as_ref().is_some_and(|translation| {
            let log = translation.persistent_cache;
            matches!(
                log,
                SizeOrShare::Share {
                    whole: Whole::WrittenBands,
                    ..
                }
            )
        })
    }

    /// True when the cache must know the future.
    pub fn needs_lookups(&self) -> bool {
        self.config
            .cache()
            .is_some_and(|cache| cache.policy == Policy::Opt)
    }

    /// The drive of a disk node.
    pub fn drive(&self, node: &str) -> Option<&Drive> {
        self.drives.get(node)
    }

    /// Builds the stack over simulated disks. `footprint` is what shares are shares of;
    /// `lookups` the future of a clairvoyant cache.
    ///
    /// # Errors
    /// When the sizes do not fit.
    pub fn build(
        &self,
        footprint: Option<Footprint>,
        lookups: Option<&[Lba]>,
        contents: ContentKind,
    ) -> Result<Built, ConfigError> {
        self.build_on(footprint, lookups, contents, &mut |_, disk| {
            Ok(Box::new(disk))
        })
    }

    /// Like [`build`](Self::build), with other disks in the place of the simulated ones: `place`
    /// is given each disk node with the simulated disk, whose geometry and statistics the other
    /// one takes over.
    ///
    /// # Errors
    /// When the sizes do not fit, or as `place` says.
    pub fn build_on(
        &self,
        footprint: Option<Footprint>,
        lookups: Option<&[Lba]>,
        contents: ContentKind,
        place: &mut PlaceDisk<'_>,
    ) -> Result<Built, ConfigError> {
        let mut builder = StackBuilder::new(self.options.seed);
        let mut nodes: BTreeMap<&str, NodeId> = BTreeMap::new();
        let mut disks: Vec<SimulatedDisk> = Vec::new();
        let mut describe = Describe::new(&self.config);
        let log_blocks = self.log_blocks(footprint)?;
        for node in &self.config.node {
            let wrong = |error: &dyn std::fmt::Display| {
                ConfigError::words(format!("node `{}`: {error}", node.name()))
            };
            let id = match node {
                NodeConfig::Disk(config) => {
                    let disk = self.simulated_disk(config, log_blocks, footprint, contents)?;
                    let drive = &self.drives[&config.name];
                    describe.disks.push(DescribeDisk::new(config, drive, &disk));
                    let id = builder.disk(disk.geometry().clone());
                    disks.push(disk);
                    id
                }
                NodeConfig::PersistentCache(config) => {
                    let planned = self.planned();
                    let below = nodes[config.below.as_str()];
                    let settings = planned.layer_settings(log_blocks, self.options.scale);
                    let bands = Arc::clone(&planned.bands);
                    describe.bands = Some(u64::from(bands.bands()));
                    describe.band_seed = planned.band_seed;
                    describe.persistent_cache_blocks = Some(log_blocks.0);
                    describe.entries_max = settings.entries_max;
                    let (layer, geometry) =
                        PersistentCache::new(settings, bands, builder.geometry(below))
                            .map_err(|error| wrong(&error))?;
                    let index = disks
                        .iter()
                        .zip(&describe.disks)
                        .position(|(_, d)| d.name() == config.below);
                    count_areas(&disks[index.expect("the disk is built")], &layer);
                    let id = builder.layer(Box::new(layer), geometry, &[below]);
                    describe.translation = Some(id);
                    describe.zones = planned.host_aware.as_ref().map(|_| id);
                    id
                }
                NodeConfig::HostManaged(config) => {
                    let below = nodes[config.below.as_str()];
                    let (layer, geometry) = self.zones().layer(config, builder.geometry(below))?;
                    let id = builder.layer(Box::new(layer), geometry, &[below]);
                    describe.zones = Some(id);
                    id
                }
                NodeConfig::WriteBackCache(config) => {
                    let flash = nodes[config.below.flash.as_str()];
                    let backing = nodes[config.below.backing.as_str()];
                    let settings = self.cache_settings(config, footprint, log_blocks, lookups)?;
                    describe.capacity_blocks = Some(settings.capacity_blocks);
                    let (layer, geometry) =
                        Cache::new(settings, builder.geometry(flash), builder.geometry(backing))
                            .map_err(|error| wrong(&error))?;
                    let id = builder.layer(Box::new(layer), geometry, &[flash, backing]);
                    describe.cache = Some(id);
                    id
                }
            };
            nodes.insert(node.name(), id);
        }
        let top = nodes[self.config.top().name()];
        let configs = self.config.node.iter().filter_map(|node| match node {
            NodeConfig::Disk(config) => Some(config),
            _ => None,
        });
        let disks = configs
            .zip(disks)
            .map(|(config, disk)| place(config, disk))
            .collect::<Result<_, _>>()?;
        Ok(Built {
            stack: builder.build(top),
            disks,
            describe,
        })
    }

    fn planned(&self) -> &PlannedTranslation {
        self.translation
            .as_ref()
            .expect("a translation node was planned")
    }

    /// Slots of the persistent cache; zero without one.
    fn log_blocks(&self, footprint: Option<Footprint>) -> Result<BlockCount, ConfigError> {
        let Some(planned) = &self.translation else {
            return Ok(BlockCount::ZERO);
        };
        let bytes = match planned.persistent_cache {
            SizeOrShare::Size(size) => {
                let drive_bytes = planned.drive_bytes;
                let accepted = BLOCK_BYTES..=drive_bytes;
                if !accepted.contains(&size.bytes()) {
                    return Err(ConfigError::words(format!(
                        "node `{}`: persistent_cache = \"{size}\"; accepted: one block (4096 B) to \
                         the capacity of the drive ({drive_bytes} B)",
                        planned.node
                    )));
                }
                size.bytes() / self.options.scale
            }
            share => share_bytes(footprint, "persistent_cache", share)?,
        };
        Ok(BlockCount(blocks(bytes).0.max(1)))
    }

    /// Blocks of flash under a cache that holds `capacity`.
    fn flash_blocks(&self, config: &CacheConfig, capacity: BlockCount) -> BlockCount {
        let settings = CacheSettings {
            capacity_blocks: capacity.0,
            destage_slots_max: config.destage_slots,
            destage: Durability::Durable,
            mode: cache::CacheMode::ReadWrite,
            policy: PolicySettings::Lru,
            durability: config.durability(self.options.durable),
        };
        settings.flash_blocks()
    }

    fn cache_settings(
        &self,
        config: &CacheConfig,
        footprint: Option<Footprint>,
        log_blocks: BlockCount,
        lookups: Option<&[Lba]>,
    ) -> Result<CacheSettings, ConfigError> {
        let wrong = |message: String| {
            Err(ConfigError::words(format!(
                "node `{}`: {message}",
                config.name
            )))
        };
        let bytes = match config.capacity {
            SizeOrShare::Size(size) => at_least_a_block(config, "capacity", size)?.bytes(),
            share if config.policy != Policy::Unlimited => {
                share_bytes(footprint, "capacity", share)?
            }
            SizeOrShare::Share { .. } => 0,
        };
        let policy = match config.policy {
            Policy::Lru => PolicySettings::Lru,
            Policy::LruBand => PolicySettings::LruBand { bands: None },
            Policy::Unlimited => PolicySettings::Unlimited,
            Policy::Opt => {
                let Some(lookups) = lookups else {
                    return wrong("policy `opt` must know the future, so it needs a trace".into());
                };
                PolicySettings::Opt {
                    next_uses: cache::next_uses(lookups).into(),
                }
            }
            Policy::Pore => PolicySettings::Pore(pore_settings(config, log_blocks)?),
        };
        let capacity_blocks = match config.policy {
            Policy::Unlimited => self.backing_blocks().0,
            _ => blocks(bytes).0.max(1),
        };
        Ok(CacheSettings {
            capacity_blocks,
            destage_slots_max: config.destage_slots,
            destage: match config.destage {
                Destage::Durable => Durability::Durable,
                Destage::Cached => Durability::Cached,
            },
            mode: match config.mode {
                CacheMode::ReadWrite => cache::CacheMode::ReadWrite,
                CacheMode::WriteOnly => cache::CacheMode::WriteOnly,
            },
            policy,
            durability: config.durability(self.options.durable),
        })
    }
}

impl PlannedTranslation {
    fn layer_settings(&self, log_blocks: BlockCount, scale: u64) -> PersistentCacheSettings {
        let mut settings = layer_settings(&self.settings, log_blocks, scale);
        settings.durability = self.durability;
        settings.blocking = self.settings.blocking_cleaning();
        settings.idle = self.settings.idle_cleaning(self.block_ns);
        settings.host_aware = self.host_aware.clone();
        settings
    }
}
