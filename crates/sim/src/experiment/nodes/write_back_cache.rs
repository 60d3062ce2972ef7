//! A write-back cache on a second disk, or on anything that takes writes anywhere.

use super::{
    Asked, Below, Body, Known, Node, Offer, Part, Planned, Reported, World, Writer, wrong,
};
use crate::experiment::areas::{Footprint, share_bytes};
use crate::experiment::config::ConfigError;
use crate::experiment::durability::JournalKeys;
use crate::report::Run;
use imbrex_core::cache::{self, Cache, CacheSettings, PolicySettings, PoreSettings};
use imbrex_core::counters::{Counter, Counts, Gauge};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::operation::Durability;
use imbrex_core::units::{BLOCK_BYTES, BlockCount};
use imbrex_drives::quantity::{Size, SizeOrShare};
use serde::{Deserialize, Serialize};

/// A write-back cache.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CacheConfig {
    /// Name of the node.
    pub name: String,
    /// Where data is kept, and where it belongs.
    pub below: CacheBelow,
    /// Size of the cache.
    pub capacity: SizeOrShare,
    /// Which requests it serves.
    #[serde(default)]
    pub mode: CacheMode,
    /// Which block it gives up.
    pub policy: Policy,
    /// Blocks that may be on their way out at once, beside the capacity.
    #[serde(default = "destage_slots_default")]
    pub destage_slots: u32,
    /// When a destage counts as done.
    #[serde(default)]
    pub destage: Destage,
    /// PORE's unit of address space.
    #[serde(default = "zone_default")]
    pub zone: Size,
    /// Length of a PORE period, as a multiple of the persistent cache below (in blocks).
    #[serde(default = "one")]
    pub period_persistent_caches: f64,
    /// Length of a PORE period in blocks, instead.
    pub period_blocks: Option<u64>,
    /// Which zones PORE opens first.
    #[serde(default)]
    pub open_zones: OpenZones,
    /// What a PORE period counts.
    #[serde(default)]
    pub period_counter: PeriodCounter,
    /// Which accesses count for a zone's popularity.
    #[serde(default)]
    pub popularity_window: PopularityWindow,
    /// Accesses that every dirty block is credited with at a division.
    #[serde(default = "access_floor_default")]
    pub access_floor: u32,
    /// Whether it keeps a journal, as it does when it is served from files; not when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durable: Option<bool>,
    /// Blocks of the ring of its journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ring_blocks: Option<u64>,
    /// Blocks of data it may write without a flush.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unflushed_blocks_max: Option<u64>,
}

fn destage_slots_default() -> u32 {
    64
}

fn zone_default() -> Size {
    Size(20 << 20)
}

fn one() -> f64 {
    1.0
}

fn access_floor_default() -> u32 {
    1
}

/// The nodes under a cache.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CacheBelow {
    /// The fast disk that keeps cached blocks.
    pub flash: String,
    /// What it caches.
    pub backing: String,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[$vdoc])* $variant),* }
    };
}

words! {
    /// Which requests a cache serves.
    CacheMode {
        /// Reads and writes allocate.
        #[default]
        ReadWrite,
        /// Reads never allocate nor refresh, but are served from cached blocks.
        WriteOnly,
    }
}

words! {
    /// Which block a cache gives up.
    Policy {
        /// The least recently used.
        #[default]
        Lru,
        /// All blocks of the band of the least recently used.
        LruBand,
        /// The least recently used that is clean or in an open zone.
        Pore,
        /// None: the cache is as large as it must be.
        Unlimited,
        /// The one used again last, known from the trace.
        Opt,
    }
}

words! {
    /// When a destage counts as done.
    Destage {
        /// When it is durable below, so that what was durable in the cache always is.
        #[default]
        Durable,
        /// When the write cache of the drive below has it, as in PORE's prototype (MSST 2017):
        /// quicker, but a power cut can lose what was durable before.
        Cached,
    }
}

words! {
    /// Which zones PORE opens first.
    OpenZones {
        /// Highest coverage.
        Cf,
        /// Lowest popularity.
        Pf,
        /// Lowest popularity over coverage.
        #[default]
        Bl,
        /// All of them, which makes PORE plain LRU.
        All,
    }
}

/// What a PORE period counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PeriodCounter {
    /// Write misses.
    #[default]
    WriteMiss,
    /// Dirty evictions.
    DirtyEvict,
    /// Blocks that become dirty.
    DirtyInsert,
}

words! {
    /// Which accesses count for a zone's popularity.
    PopularityWindow {
        /// Those of the last period.
        #[default]
        Period,
        /// All since the block entered the cache.
        Lifetime,
    }
}

impl Node for CacheConfig {
    fn name(&self) -> &str {
        &self.name
    }

    fn below(&self) -> Vec<&str> {
        vec![&self.below.flash, &self.below.backing]
    }

    fn journal(&self) -> Option<JournalKeys<'_>> {
        Some(JournalKeys {
            below: &self.below.flash,
            durable: self.durable,
            ring_blocks: self.ring_blocks,
            unflushed_blocks_max: self.unflushed_blocks_max,
        })
    }

    fn room(&self, world: &World<'_>, scale: u64) -> Result<BlockCount, ConfigError> {
        let room = world.room(&self.below.backing, scale)?;
        let reserved = CacheSettings::reserved_blocks(self.durability(world));
        Ok(BlockCount(room.0.saturating_sub(reserved)))
    }

    fn plan(
        &self,
        asked: Asked,
        world: &World<'_>,
    ) -> Result<(Box<dyn Planned>, Vec<Asked>), ConfigError> {
        if self.policy == Policy::Opt && asked.writer != Writer::Host {
            return Err(wrong(
                &self.name,
                &"policy = \"opt\" knows what the host will ask for; accepted: in the cache at the \
                  top of the stack",
            ));
        }
        let durability = self.durability(world);
        let reserved = CacheSettings::reserved_blocks(durability);
        let backing_blocks = BlockCount(asked.blocks.0 + reserved);
        let backing = Asked {
            blocks: backing_blocks,
            scale: asked.scale,
            writer: Writer::Layer,
        };
        let flash = Asked {
            blocks: self.flash_asked(backing_blocks, world)?,
            // A cache is as large as it is told to be, whatever the scale of what it caches.
            scale: 1,
            writer: Writer::Layer,
        };
        let planned = PlannedCache {
            config: self.clone(),
            backing_blocks,
            durability,
        };
        Ok((Box::new(planned), vec![flash, backing]))
    }
}

impl CacheConfig {
    fn durability(&self, world: &World<'_>) -> Option<DurabilitySettings> {
        self.journal().and_then(|it| it.settings(world.options))
    }

    /// Blocks of flash that it asks for.
    fn flash_asked(
        &self,
        backing: BlockCount,
        world: &World<'_>,
    ) -> Result<BlockCount, ConfigError> {
        let durability = self.durability(world);
        // A cache without a bound is as large as what it caches, which no drive may be.
        if self.policy == Policy::Unlimited {
            return Ok(self.flash_blocks(backing, durability));
        }
        if world.options.trim_disks {
            // No workload is known of what is served.
            let whole = Footprint::whole_device(world.device.bytes());
            let capacity = BlockCount::from_bytes_floor(match self.capacity {
                SizeOrShare::Size(size) => size.bytes(),
                share => whole.bytes_of(share),
            });
            return Ok(self.flash_blocks(BlockCount(capacity.0.max(1)), durability));
        }
        world.room(&self.below.flash, 1)
    }

    /// Blocks of flash under a cache that holds `capacity`.
    fn flash_blocks(
        &self,
        capacity: BlockCount,
        durability: Option<DurabilitySettings>,
    ) -> BlockCount {
        let settings = CacheSettings {
            capacity_blocks: capacity.0,
            destage_slots_max: self.destage_slots,
            destage: Durability::Durable,
            mode: cache::CacheMode::ReadWrite,
            policy: PolicySettings::Lru,
            durability,
        };
        settings.flash_blocks()
    }
}

struct PlannedCache {
    config: CacheConfig,
    /// Blocks of what it caches.
    backing_blocks: BlockCount,
    durability: Option<DurabilitySettings>,
}

impl PlannedCache {
    fn settings(
        &self,
        known: &Known<'_>,
        log_blocks: BlockCount,
    ) -> Result<CacheSettings, ConfigError> {
        let config = &self.config;
        let bytes = match config.capacity {
            SizeOrShare::Size(size) => at_least_a_block(config, "capacity", size)?.bytes(),
            share if config.policy != Policy::Unlimited => {
                share_bytes(known.footprint, "capacity", share)?
            }
            SizeOrShare::Share { .. } => 0,
        };
        let policy = match config.policy {
            Policy::Lru => PolicySettings::Lru,
            Policy::LruBand => PolicySettings::LruBand { bands: None },
            Policy::Unlimited => PolicySettings::Unlimited,
            Policy::Opt => {
                let Some(lookups) = known.lookups else {
                    let words = "policy `opt` must know the future, so it needs a trace";
                    return Err(wrong(&config.name, &words));
                };
                PolicySettings::Opt {
                    next_uses: cache::next_uses(lookups).into(),
                }
            }
            Policy::Pore => PolicySettings::Pore(pore_settings(config, log_blocks)?),
        };
        let capacity_blocks = match config.policy {
            Policy::Unlimited => self.backing_blocks.0,
            _ => BlockCount::from_bytes_floor(bytes).0.max(1),
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
            durability: self.durability,
        })
    }
}

impl Planned for PlannedCache {
    fn has_share(&self) -> bool {
        matches!(self.config.capacity, SizeOrShare::Share { .. })
            && self.config.policy != Policy::Unlimited
    }

    fn build(&self, known: &Known<'_>, below: &Below<'_>) -> Result<Part, ConfigError> {
        let (flash, backing) = (below.offers[0], below.offers[1]);
        let settings = self.settings(known, backing.log_blocks)?;
        let facts = Facts {
            capacity_blocks: settings.capacity_blocks,
            is_durable: self.durability.is_some(),
        };
        let (layer, geometry) = Cache::new(settings, &flash.geometry, &backing.geometry)
            .map_err(|error| wrong(&self.config.name, &error))?;
        Ok(Part {
            body: Body::Layer(Box::new(layer)),
            offer: Offer::over(backing, geometry),
            facts: super::Facts::WriteBackCache(facts),
        })
    }
}

/// What a report needs to know of a cache.
pub struct Facts {
    /// Capacity; one without a bound has that of the device.
    pub capacity_blocks: u64,
    /// Whether it keeps a journal.
    pub is_durable: bool,
}

impl Reported for Facts {
    fn counters(&self) -> Vec<Counter> {
        vec![
            Counter::ReadLookups,
            Counter::ReadHits,
            Counter::WriteLookups,
            Counter::WriteHits,
            Counter::CleanEvictions,
            Counter::DirtyEvictions,
            Counter::CacheBypassedBlocks,
            Counter::RegionDivisions,
            Counter::ForcedEvictions,
        ]
    }

    fn gauges(&self) -> Vec<Gauge> {
        let own = [Gauge::CachedBlocks, Gauge::DirtyBlocks];
        let journal = [Gauge::RolledBackBlocksMax];
        let journal = journal.iter().filter(|_| self.is_durable);
        own.iter().chain(journal).copied().collect()
    }

    fn tell(&self, counts: &Counts, run: &mut Run) {
        run.cache.capacity_blocks = Some(self.capacity_blocks);
        run.hits.read_hits = counts.counter(Counter::ReadHits);
        run.hits.write_hits = counts.counter(Counter::WriteHits);
        run.cache.forced_evictions = counts.counter(Counter::ForcedEvictions);
        run.cache.dirty_blocks_left = counts.gauge(Gauge::DirtyBlocks);
    }
}

/// The settings of PORE in `config`, over a persistent cache of `log_blocks` (zero without one).
///
/// # Errors
/// When a zone or a period would be empty.
fn pore_settings(
    config: &CacheConfig,
    log_blocks: BlockCount,
) -> Result<PoreSettings, ConfigError> {
    let wrong = |message: &str| {
        Err(ConfigError::words(format!(
            "node `{}`: {message}",
            config.name
        )))
    };
    let multiple = config.period_persistent_caches;
    if !(multiple > 0.0 && multiple.is_finite()) {
        return wrong(&format!(
            "period_persistent_caches = {multiple}; accepted: a number above 0"
        ));
    }
    let period_blocks = match config.period_blocks {
        Some(0) => return wrong("period_blocks = 0; accepted: 1 or more"),
        Some(blocks) => blocks,
        None if log_blocks == BlockCount::ZERO => {
            return wrong(
                "a period is a multiple of the persistent cache, and there is none below; set \
                 period_blocks",
            );
        }
        // A tiny multiple of a small persistent cache is one block.
        None => ((log_blocks.0 as f64 * multiple) as u64).max(1),
    };
    Ok(PoreSettings {
        zone_blocks: BlockCount::from_bytes_floor(
            at_least_a_block(config, "zone", config.zone)?.bytes(),
        )
        .0,
        period_blocks,
        period_counter: match config.period_counter {
            PeriodCounter::WriteMiss => cache::PeriodCounter::WriteMiss,
            PeriodCounter::DirtyEvict => cache::PeriodCounter::DirtyEvict,
            PeriodCounter::DirtyInsert => cache::PeriodCounter::DirtyInsert,
        },
        popularity_window: match config.popularity_window {
            PopularityWindow::Period => cache::PopularityWindow::Period,
            PopularityWindow::Lifetime => cache::PopularityWindow::Lifetime,
        },
        access_floor: u64::from(config.access_floor),
        open_zones: match config.open_zones {
            OpenZones::Cf => cache::OpenZones::Cf,
            OpenZones::Pf => cache::OpenZones::Pf,
            OpenZones::Bl => cache::OpenZones::Bl,
            OpenZones::All => cache::OpenZones::All,
        },
    })
}

/// A size of a cache that must hold something.
///
/// # Errors
/// When it is less than one block.
fn at_least_a_block(config: &CacheConfig, key: &str, size: Size) -> Result<Size, ConfigError> {
    if size.bytes() < BLOCK_BYTES {
        return Err(ConfigError::words(format!(
            "node `{}`: {key} = \"{size}\"; accepted: one block (4096 B) or more",
            config.name
        )));
    }
    Ok(size)
}
