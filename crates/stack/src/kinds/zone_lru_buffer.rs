//! The SSD write buffer of Idler (IEEE TC 2020): a write-back cache that gives up whole zones, and rewrites
//! one of which much is given up.

use super::policies::zone::Zone;
use super::ports::{BelowNodes, PortNodes};
use super::write_back_cache::{self, CachePorts};
use super::{Asked, Below, Keeps, Kind, Known, Node, Offer, Part, Place, Planned, World, wrong};
use crate::config::ConfigError;
use crate::durability::{BLOCKS_MAX, JournalKeys};
use imbrex_core::cache::codec::RECORD_KINDS;
use imbrex_core::cache::{
    Cache, CacheMode, CacheSettings, PolicySettings, ZoneLruSettings, ZoneSettings,
};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::layer::Port;
use imbrex_core::operation::Durability;
use imbrex_core::units::BlockCount;
use imbrex_drives::keys;
use imbrex_drives::quantity::Size;
use std::borrow::Cow;

/// What is taken for a zone where the backing shows none: that of the drive of the paper.
const ZONE: Zone = Zone::Of(Size(256 << 20));

keys! {
    /// A write buffer on flash that gives up whole zones.
    pub struct ZoneLruBufferConfig {
        /// Name of the node.
        name: String => "any";
        /// The fast disk that keeps buffered blocks, and what is written late.
        below: BelowNodes<CachePorts> => r#"`{ flash = "NODE", backing = "NODE" }`; `flash` is a disk"#;
        /// Size of the buffer. A request that is larger goes around it.
        capacity: Size = Size(64 << 20) => "a size of at least `rewrite_pages` pages of 4 KiB";
        /// A zone below that has a write pointer is put together in flash, reset and rewritten when more pages
        /// (4 KiB) of it leave together; those that continue it do not count.
        rewrite_pages: u64 = 400 => 1..=1 << 32;
        /// What is taken for a zone where the backing shows none.
        #[serde(skip_serializing_if = "Option::is_none")]
        zone: Option<Zone> => r#"a size of at least 4 KiB, or `"bands"`: the bands of the translation below; not over a backing that shows zones"#, "`256 MiB`";
        /// Pages that may be on their way out at once, beside the capacity.
        destage_slots: u32 = 64 => "a whole number";
        /// Whether it keeps a journal, as it does when it is served from files; not when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        durable: Option<bool> => "`true`, `false`", "`false`; where it is served from files it always is durable";
        /// Blocks of the ring of its journal.
        #[serde(skip_serializing_if = "Option::is_none")]
        ring_blocks: Option<u64> => 1..=BLOCKS_MAX, "see [Durability](#durability)";
        /// Blocks of data it may write without a flush.
        #[serde(skip_serializing_if = "Option::is_none")]
        unflushed_blocks_max: Option<u64> => 1..=BLOCKS_MAX, "see [Durability](#durability)";
    }
}

impl Kind for ZoneLruBufferConfig {
    const NAME: &'static str = "zone-lru-buffer";
    const PLACE: Place = Place::Cache;
}

impl Node for ZoneLruBufferConfig {
    fn name(&self) -> &str {
        &self.name
    }

    fn ports(&self) -> Vec<PortNodes<'_>> {
        self.below.ports()
    }

    fn journal(&self) -> Option<JournalKeys<'_>> {
        Some(JournalKeys {
            below: self.below.one("flash"),
            durable: self.durable,
            ring_blocks: self.ring_blocks,
            unflushed_blocks_max: self.unflushed_blocks_max,
            others: vec![],
        })
    }

    fn members(&self) -> Vec<(Cow<'static, str>, Port)> {
        write_back_cache::members()
    }

    fn checks(&self, below: &str) -> bool {
        below == self.below.one("flash")
    }

    fn record_kinds(&self) -> &'static [(u8, &'static str)] {
        &RECORD_KINDS
    }

    fn keeps(&self) -> Result<Keeps, ConfigError> {
        Ok(Keeps::Cache)
    }

    fn room(&self, world: &World<'_>, scale: u64) -> Result<BlockCount, ConfigError> {
        let backing = world.room(self.below.one("backing"), scale)?;
        Ok(write_back_cache::served(backing, self.durability(world)))
    }

    fn plan(
        &self,
        asked: Asked,
        world: &World<'_>,
    ) -> Result<(Box<dyn Planned>, Vec<Asked>), ConfigError> {
        let pages = BlockCount::from_bytes_floor(self.capacity.bytes()).0;
        if pages < self.rewrite_pages {
            let words = format!(
                "capacity = \"{}\" holds {pages} pages of 4 KiB, and rewrite_pages = {}; accepted: a buffer \
                 that holds rewrite_pages",
                self.capacity, self.rewrite_pages
            );
            return Err(wrong(&self.name, &words));
        }
        let durability = self.durability(world);
        let zones = self.zone.unwrap_or(ZONE).settings(&self.name)?;
        let flash = match world.options.trim_disks {
            // No disk that keeps its zones over a power cut is known, so none is put together.
            true => self.settings(zones, 0, durability).flash_blocks(),
            false => world.room(self.below.one("flash"), 1)?,
        };
        let below = write_back_cache::asked_below(asked, flash, durability);
        Ok((Box::new(PlannedBuffer { config: self.clone(), zones, durability }), below))
    }
}

impl ZoneLruBufferConfig {
    fn durability(&self, world: &World<'_>) -> Option<DurabilitySettings> {
        self.journal().and_then(|it| it.settings(world.options))
    }

    fn settings(
        &self,
        zones: ZoneSettings,
        staging_blocks: u32,
        durability: Option<DurabilitySettings>,
    ) -> CacheSettings {
        CacheSettings {
            capacity_blocks: BlockCount::from_bytes_floor(self.capacity.bytes()).0,
            destage_slots_max: self.destage_slots,
            destage: Durability::Durable,
            mode: CacheMode::WriteAllocate,
            policy: PolicySettings::ZoneLru(ZoneLruSettings {
                zones,
                rewrite_blocks: self.rewrite_pages,
                staging_blocks,
            }),
            durability,
            spare_slots: None,
        }
    }
}

struct PlannedBuffer {
    config: ZoneLruBufferConfig,
    /// What is taken for a zone where the backing shows none.
    zones: ZoneSettings,
    durability: Option<DurabilitySettings>,
}

impl PlannedBuffer {
    fn settings(&self, backing: &Offer) -> Result<CacheSettings, ConfigError> {
        let config = &self.config;
        let Some(shown) = backing.geometry.zones.as_deref() else {
            return Ok(config.settings(self.zones, 0, self.durability));
        };
        if let Some(zone) = config.zone {
            let words = format!(
                "zone = \"{zone}\" is about a backing that shows no zones, and `{}` shows some; accepted: \
                 without it",
                config.below.one("backing")
            );
            return Err(wrong(&config.name, &words));
        }
        let zone_blocks = shown.zone_blocks.0;
        let staging_blocks = u32::try_from(zone_blocks).unwrap_or(u32::MAX);
        Ok(config.settings(ZoneSettings::Equal(zone_blocks), staging_blocks, self.durability))
    }
}

impl Planned for PlannedBuffer {
    fn build(&self, _: &Known<'_>, below: &Below<'_>) -> Result<Part, ConfigError> {
        let settings = self.settings(below.offers[Cache::BACKING.0 as usize])?;
        write_back_cache::build(&self.config.name, settings, below, super::Facts::ZoneLruBuffer)
    }
}

#[cfg(test)]
mod tests {
    use crate::{BuildOptions, Plan, Setting, StackConfig};
    use imbrex_core::buffer::ContentKind;

    fn build(stack: &str, settings: &[&str]) -> Result<(), String> {
        let settings = settings.iter().map(|text| Setting::parse(text).expect("a setting"));
        let settings: Vec<Setting> = settings.collect();
        let options = BuildOptions { scale: 1024, ..BuildOptions::simulate(1) };
        let config = StackConfig::load(stack, &settings).map_err(|error| error.to_string())?;
        let built = Plan::new(&config, &options)
            .and_then(|plan| plan.build(None, None, ContentKind::Counted));
        built.map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_buffer_holds_what_is_rewritten() {
        assert_eq!(build("idler-buffer", &[]), Ok(()));
        assert_eq!(build("idler-buffer", &["buffer.capacity=1600KiB"]), Ok(()));
        for (settings, expected) in [
            (
                &["buffer.capacity=1596KiB"][..],
                "node `buffer`: capacity = \"1596 KiB\" holds 399 pages of 4 KiB, and rewrite_pages = 400; \
                 accepted: a buffer that holds rewrite_pages",
            ),
            (
                &["buffer.rewrite_pages=16385"],
                "holds 16384 pages of 4 KiB, and rewrite_pages = 16385",
            ),
            (&["buffer.rewrite_pages=0"], "buffer.rewrite_pages=0: accepted: 1 to 4294967296"),
            (
                &["buffer.zone=1MiB"],
                "zone = \"1 MiB\" is about a backing that shows no zones, and `controller`",
            ),
        ] {
            let error = build("idler-buffer", settings).expect_err("a setting that cannot be");
            assert!(error.contains(expected), "{settings:?}: {error}");
        }
    }

    #[test]
    fn a_backing_without_zones_is_given_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../stacks/crash/zone-lru-buffer.toml");
        let text = std::fs::read_to_string(file).expect("the stack");
        let (text, _) = text.split_once("[draw]").expect("what is drawn comes last");
        let build = |zone: &str| {
            let setting = Setting::parse(&format!("buffer.zone={zone}")).expect("a setting");
            let config = StackConfig::from_text("file.toml", text, &[setting]).expect("a stack");
            let plan = Plan::new(&config, &BuildOptions::simulate(1));
            let built = plan.and_then(|plan| plan.build(None, None, ContentKind::Counted));
            built.map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!((build("48KiB"), build("bands")), (Ok(()), Ok(())));
        let error = build("4095B").expect_err("less than a block");
        assert!(
            error.contains("zone = \"4095 B\"; accepted: one block (4096 B) or more"),
            "{error}"
        );
    }
}
