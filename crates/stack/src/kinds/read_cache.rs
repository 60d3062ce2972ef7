//! A read cache: a store of copies on flash.

use super::keys::words;
use super::segment_geometry::{block_default, blocks_of};
use super::{
    Asked, Below, Body, Known, Node, Offer, Part, Planned, Reported, World, Writer, wrong,
};
use crate::config::ConfigError;
use imbrex_core::counters::{Counter, Gauge};
use imbrex_core::read_cache::{OnWrite, ReadCache, ReadCacheSettings};
use imbrex_core::units::BlockCount;
use imbrex_drives::quantity::Size;
use serde::{Deserialize, Serialize};

/// A read cache.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReadCacheConfig {
    /// Name of the node.
    pub name: String,
    /// The flash.
    pub below: ReadCacheBelow,
    /// Size of all copies; 0 for none.
    pub capacity: Size,
    /// A block: as long as those of the nodes above.
    #[serde(default = "block_default")]
    pub block: Size,
    /// What becomes of a copy when its block is written.
    #[serde(default)]
    pub on_write: OnWriteKey,
    /// Whether it takes in what rewrites read from the disk.
    #[serde(default)]
    pub fill_from_rewrite: bool,
}

/// The node under a read cache.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReadCacheBelow {
    /// The flash.
    pub flash: String,
}

words! {
    /// What becomes of a copy when its block is written.
    OnWriteKey {
        /// It is forgotten.
        #[default]
        Invalidate,
        /// It stays until the new data goes home.
        Keep,
        /// It is written too.
        Update,
    }
}

/// More blocks than any device has.
const ANY: BlockCount = BlockCount(1 << 50);

impl ReadCacheConfig {
    fn settings(&self) -> Result<ReadCacheSettings, ConfigError> {
        let block = blocks_of(&self.name, "block", self.block)?;
        let copies = self.capacity.bytes() / block.bytes();
        let capacity_blocks = u32::try_from(copies).map_err(|_| {
            let words = format!("capacity = \"{}\"; accepted: fewer blocks", self.capacity);
            wrong(&self.name, &words)
        })?;
        if self.capacity.bytes() > 0 && capacity_blocks == 0 {
            let words = format!(
                "capacity = \"{}\"; accepted: 0, or one block (\"{}\") or more",
                self.capacity, self.block
            );
            return Err(wrong(&self.name, &words));
        }
        Ok(ReadCacheSettings {
            block,
            capacity_blocks,
            on_write: match self.on_write {
                OnWriteKey::Invalidate => OnWrite::Invalidate,
                OnWriteKey::Keep => OnWrite::Keep,
                OnWriteKey::Update => OnWrite::Update,
            },
            fill_from_rewrite: self.fill_from_rewrite,
        })
    }
}

impl Node for ReadCacheConfig {
    fn name(&self) -> &str {
        &self.name
    }

    fn below(&self) -> Vec<&str> {
        vec![&self.below.flash]
    }

    fn keeps_copies(&self) -> bool {
        true
    }

    /// It has copies of what is elsewhere, however long that is.
    fn room(&self, _: &World<'_>, _: u64) -> Result<BlockCount, ConfigError> {
        Ok(ANY)
    }

    fn plan(
        &self,
        asked: Asked,
        world: &World<'_>,
    ) -> Result<(Box<dyn Planned>, Vec<Asked>), ConfigError> {
        if asked.writer == Writer::Host {
            let words = "it keeps copies and no data; accepted: below a node that uses copies";
            return Err(wrong(&self.name, &words));
        }
        let settings = self.settings()?;
        let flash = Asked {
            blocks: match world.options.trim_disks {
                true => settings.flash_blocks(),
                false => world.room(&self.below.flash, 1)?,
            },
            scale: 1,
            writer: Writer::Layer,
            is_part: false,
        };
        let planned = PlannedReadCache { node: self.name.clone(), device: asked.blocks, settings };
        Ok((Box::new(planned), vec![flash]))
    }
}

struct PlannedReadCache {
    node: String,
    /// Blocks of what it has copies of.
    device: BlockCount,
    settings: ReadCacheSettings,
}

impl Planned for PlannedReadCache {
    fn build(&self, _: &Known<'_>, below: &Below<'_>) -> Result<Part, ConfigError> {
        let flash = &below.offers[0].geometry;
        let (layer, geometry) = ReadCache::new(self.settings, self.device, flash)
            .map_err(|error| wrong(&self.node, &error))?;
        Ok(Part {
            body: Body::Layer(Box::new(layer)),
            offer: Offer::over(geometry),
            facts: super::Facts::ReadCache(Facts),
        })
    }
}

/// What reports need to know of a read cache: nothing beside its counts.
pub struct Facts;

impl Reported for Facts {
    fn counters(&self) -> Vec<Counter> {
        vec![
            Counter::HitBlocks,
            Counter::MissBlocks,
            Counter::FillBlocks,
            Counter::DroppedBlocks,
            Counter::SkippedFillBlocks,
        ]
    }

    fn gauges(&self) -> Vec<Gauge> {
        vec![Gauge::CachedBlocks, Gauge::TableBytes]
    }
}
