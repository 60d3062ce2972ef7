//! A read cache: a store of copies on flash.

use super::ports::{BelowNodes, Form, PortKey, PortNodes, Ports, one};
use super::segment_geometry::{block_default, blocks_of};
use super::{
    Asked, Below, Body, BufferedIn, Keeps, Kind, Known, Node, Offer, Part, Place, Planned,
    Reported, World, Writer, wrong,
};
use crate::config::ConfigError;
use imbrex_core::counters::{CACHED, Group, READ_CACHE, TABLES};
use imbrex_core::read_cache::{OnWrite, ReadCache, ReadCacheSettings};
use imbrex_core::units::BlockCount;
use imbrex_drives::keys;
use imbrex_drives::quantity::Size;
use imbrex_drives::{AnyWord, Word};

keys! {
    /// A read cache.
    pub struct ReadCacheConfig {
        /// Name of the node.
        name: String => "any";
        /// `{ flash = .. }`.
        below: BelowNodes<ReadCachePorts> => "the name of a node";
        /// Size of all copies; it needs 64 blocks more of its flash, for copies that were forgotten
        /// while the flash is still busy with them. While all are in use no block is taken in, which
        /// `skipped_fill_blocks` counts.
        capacity: Size => "a size; 0 for none";
        /// Length of a block; that of the nodes above.
        block: Size = block_default() => "a multiple of 4 KiB";
        /// What becomes of a copy when the host writes its block and a buffer keeps the data for now:
        /// it is forgotten, it stays, or it is written too. When the data goes home, an older copy is
        /// forgotten or, with `"update"`, overwritten in any case; so without a buffer above
        /// `"update"` writes every copy, and `"keep"` forgets it. Where the node below a buffer takes
        /// no store of copies itself (a disk), the buffer forgets the copy of each block that it hands
        /// down.
        on_write: Word<OnWrite> = Word(OnWrite::Invalidate) => AnyWord;
        /// Takes in what rewrites read from the disk.
        fill_from_rewrite: bool = false => "`true`, `false`";
    }
}

/// The flash of a read cache.
pub struct ReadCachePorts;

impl Ports for ReadCachePorts {
    const PORTS: &'static [PortKey] = &[one("flash")];
    const FORM: Form = Form::Table;
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
            on_write: self.on_write.0,
            fill_from_rewrite: self.fill_from_rewrite,
        })
    }
}

impl Kind for ReadCacheConfig {
    const NAME: &'static str = "read-cache";
    const PLACE: Place = Place::Cache;
}

impl Node for ReadCacheConfig {
    fn name(&self) -> &str {
        &self.name
    }

    fn ports(&self) -> Vec<PortNodes<'_>> {
        self.below.ports()
    }

    fn keeps_copies(&self) -> bool {
        true
    }

    /// It forgets them at every start, and compares what it reads between.
    fn checks(&self, _below: &str) -> bool {
        true
    }

    /// It has copies of what is elsewhere, however long that is.
    fn keeps(&self) -> Result<Keeps, ConfigError> {
        Ok(Keeps::Copies)
    }

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
                false => world.room(self.below.one("flash"), 1)?,
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
            facts: super::Facts::ReadCache(Facts {
                capacity_bytes: u64::from(self.settings.capacity_blocks)
                    * self.settings.block.bytes(),
            }),
        })
    }
}

/// What reports need to know of a read cache.
pub struct Facts {
    /// Bytes of the copies that it may hold.
    pub capacity_bytes: u64,
}

impl Reported for Facts {
    fn groups(&self) -> Vec<Group> {
        vec![READ_CACHE, CACHED, TABLES]
    }

    fn buffers(&self) -> Option<BufferedIn> {
        Some(BufferedIn::FirstPort(self.capacity_bytes))
    }
}
