//! The kinds of node a stack is made of, a file each: its keys, what it needs below, what it offers
//! above, and how it is planned, built and reported.
//!
//! A stack is planned in two folds. Needs go down: each node is [`Asked`] for a number of blocks and
//! asks the nodes below it ([`Node::plan`]). Geometries come up: each node is built over what the
//! nodes below it offer ([`Planned::build`]). No node knows more of the others than that.

mod checksums;
mod disk;
mod drive_managed;
mod host_managed;
mod keys;
mod memory;
mod memory_buffer;
mod persistent_cache;
mod persistent_cache_config;
mod persistent_cache_settings;
pub(super) mod policies;
mod read_cache;
mod s_block;
mod segment_geometry;
mod segments;
mod slice;
mod span;
mod stripe;
mod translation_below;
mod write_back_cache;

pub use checksums::ChecksumsKey;
pub use disk::{DescribeDisk, DiskConfig};
pub(super) use memory::check_medium;
pub use memory::{DiskMedia, Survives};
pub use memory_buffer::MemoryBufferConfig;
pub use persistent_cache::{Facts as TranslationFacts, LogUse};
pub use persistent_cache_config::PersistentCacheConfig;
pub use policies::{OpenZones, PeriodCounter, PolicyConfig, PopularityWindow, PoreConfig};
pub use read_cache::ReadCacheConfig;
pub use s_block::SBlockConfig;
pub use segments::SegmentsConfig;
pub use slice::SliceConfig;
pub(super) use slice::check_overlaps;
pub use span::SpanConfig;
pub use stripe::StripeConfig;
pub use translation_below::{TranslationBelow, TranslationPorts};
pub use write_back_cache::{CacheBelow, CacheConfig, CacheKeys, CacheMode, Destage};

use super::areas::Footprint;
use super::config::{ConfigError, StackConfig};
use super::durability::JournalKeys;
use super::plan::BuildOptions;
use imbrex_core::buffer::ContentKind;
use imbrex_core::counters::{Counter, Counts, Gauge};
use imbrex_core::disk::Geometry;
use imbrex_core::extent::Extent;
use imbrex_core::layer::{Layer, Port};
use imbrex_core::map::BandTable;
use imbrex_core::slice::FlushFailure;
use imbrex_core::units::{BlockCount, Lba};
use imbrex_drives::{DiskDesign, DiskStatistics, Drive, HostManagedConfig};
use imbrex_report::Run;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::rc::Rc;
use std::sync::Arc;

/// One node of a stack.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum NodeConfig {
    /// A leaf.
    Disk(DiskConfig),
    /// The drive-managed translation with a persistent cache.
    PersistentCache(Box<PersistentCacheConfig>),
    /// The zones of a host-managed drive.
    HostManaged(Box<HostManagedConfig>),
    /// A write-back cache on a second disk.
    WriteBackCache(Box<CacheConfig>),
    /// Copies of blocks on flash.
    ReadCache(ReadCacheConfig),
    /// Regions that are circular logs of S-blocks.
    SBlock(Box<SBlockConfig>),
    /// Segments that are rewritten in place.
    Segments(Box<SegmentsConfig>),
    /// A part of a node.
    Slice(SliceConfig),
    /// Nodes joined one after another.
    Span(SpanConfig),
    /// The same, where the requests of each source go to one of the nodes.
    Dedicated(SpanConfig),
    /// Nodes joined chunk by chunk.
    Stripe(StripeConfig),
    /// A write buffer in memory.
    MemoryBuffer(Box<MemoryBufferConfig>),
}

impl NodeConfig {
    /// What can be asked of the node, whatever its kind.
    pub(super) fn node(&self) -> &dyn Node {
        match self {
            NodeConfig::Disk(disk) => disk,
            NodeConfig::PersistentCache(translation) => &**translation,
            NodeConfig::HostManaged(zones) => &**zones,
            NodeConfig::WriteBackCache(cache) => &**cache,
            NodeConfig::ReadCache(cache) => cache,
            NodeConfig::SBlock(translation) => &**translation,
            NodeConfig::Segments(segments) => &**segments,
            NodeConfig::Slice(slice) => slice,
            NodeConfig::Span(span) | NodeConfig::Dedicated(span) => span,
            NodeConfig::Stripe(stripe) => stripe,
            NodeConfig::MemoryBuffer(buffer) => &**buffer,
        }
    }

    /// The name of the node.
    pub fn name(&self) -> &str {
        self.node().name()
    }

    /// The names of the nodes below, in the order of the ports. The last one holds the data in the
    /// end.
    pub fn below(&self) -> Vec<&str> {
        self.node().below()
    }

    /// The policy to which a key belongs that this node does not have under its own.
    pub fn owner_of(&self, key: &str) -> Option<&'static str> {
        self.node().owner_of(key)
    }

    /// The kind to which a key belongs that this node does not have under its own. The kinds stand in
    /// the same place of a stack, so that stacks of both are compared under one name of a node.
    pub fn kind_of(&self, key: &str) -> Option<&'static str> {
        const PLACES: [&[&str]; 3] = [
            &["persistent-cache", "segments", "s-block"],
            &["write-back-cache", "read-cache"],
            &["span", "dedicated", "stripe"],
        ];
        let table = toml::Table::try_from(self).ok()?;
        let own = table.get("kind")?.as_str()?;
        let place = PLACES.iter().find(|place| place.contains(&own))?;
        let kinds = kinds();
        let has = |kind: &KindKeys| {
            let mut policies = kind.of_policies.iter();
            kind.keys.contains(&key) || policies.any(|(_, keys)| keys.contains(&key))
        };
        let mut there = kinds.iter().filter(|kind| place.contains(&kind.kind));
        match there.clone().any(|kind| kind.kind == own && has(kind)) {
            true => None,
            false => there.find(|kind| has(kind)).map(|kind| kind.kind),
        }
    }

    /// The name of the node below that holds the journal of this one; none of a node that never
    /// keeps one.
    pub fn journal_below(&self) -> Option<&str> {
        let journal = self.node().journal()?;
        Some(journal.below)
    }
}

/// The keys of a kind of node, for what is said of them elsewhere.
pub struct KindKeys {
    /// The kind in TOML files.
    pub kind: &'static str,
    /// The keys that every node of the kind has, beside `kind`.
    pub keys: &'static [&'static str],
    /// Of a cache: the keys of each policy.
    pub of_policies: Vec<(&'static str, &'static [&'static str])>,
}

/// The kinds of node with their keys.
pub fn kinds() -> Vec<KindKeys> {
    let plain = |kind, keys| KindKeys { kind, keys, of_policies: vec![] };
    vec![
        plain("disk", keys::keys_of::<DiskConfig>()),
        plain("persistent-cache", keys::keys_of::<PersistentCacheConfig>()),
        plain("host-managed", keys::keys_of::<HostManagedConfig>()),
        KindKeys {
            of_policies: policies::policies(),
            ..plain("write-back-cache", keys::keys_of::<CacheKeys>())
        },
        plain("read-cache", keys::keys_of::<ReadCacheConfig>()),
        plain("s-block", keys::keys_of::<SBlockConfig>()),
        plain("segments", keys::keys_of::<SegmentsConfig>()),
        plain("slice", keys::keys_of::<SliceConfig>()),
        plain("span", keys::keys_of::<SpanConfig>()),
        plain("dedicated", keys::keys_of::<SpanConfig>()),
        plain("stripe", keys::keys_of::<StripeConfig>()),
        plain("memory-buffer", keys::keys_of::<MemoryBufferConfig>()),
    ]
}

/// What a kind of node says of itself before a stack is built.
pub(super) trait Node {
    /// The name of the node.
    fn name(&self) -> &str;

    /// The names of the nodes below, in the order of the ports, the one that holds the data last.
    fn below(&self) -> Vec<&str>;

    /// What it says of its journal; none of a kind that never keeps one.
    fn journal(&self) -> Option<JournalKeys<'_>> {
        None
    }

    /// The ports behind which it keeps state when it is durable, each with its name.
    fn members(&self) -> Vec<(&'static str, Port)> {
        vec![]
    }

    /// Whether it keeps copies of blocks for several nodes above it, none of which needs them.
    fn keeps_copies(&self) -> bool {
        false
    }

    /// The policy to which a key belongs that this node would have under that policy alone.
    fn owner_of(&self, _key: &str) -> Option<&'static str> {
        None
    }

    /// Blocks it can offer at most, when the drives below are divided by `scale`.
    ///
    /// # Errors
    /// When it cannot stand on what is below it.
    fn room(&self, world: &World<'_>, scale: u64) -> Result<BlockCount, ConfigError>;

    /// The node as it will be built, and what it asks of the nodes below, in the order of the ports.
    ///
    /// # Errors
    /// When it cannot be as it is asked to be.
    fn plan(
        &self,
        asked: Asked,
        world: &World<'_>,
    ) -> Result<(Box<dyn Planned>, Vec<Asked>), ConfigError>;
}

/// What a node is asked for by the node above it, or by the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Asked {
    /// Blocks that it is to offer.
    pub blocks: BlockCount,
    /// By how much the drives below it are divided.
    pub scale: u64,
    /// Who writes to it.
    pub writer: Writer,
    /// The nodes above are parts of it that stand at their own addresses, up to `blocks`.
    pub is_part: bool,
}

impl Asked {
    /// What two parts of one node ask of it together; `None` where they divide its drive in two ways.
    pub fn with(self, other: Asked) -> Option<Asked> {
        let writer = match (self.writer, other.writer) {
            (Writer::Tracks { .. }, weaker) | (weaker, _) => weaker,
        };
        (self.scale == other.scale).then(|| Asked {
            blocks: self.blocks.max(other.blocks),
            writer,
            ..self
        })
    }
}

/// Who writes to a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Writer {
    /// The host: the node is the device.
    Host,
    /// A layer that writes anywhere.
    Layer,
    /// A layer that knows which tracks overlap. It uses the blocks it asks for, or the whole drive.
    Tracks { whole: bool },
}

/// A node whose size is known, and the workload not yet.
pub(super) trait Planned {
    /// Blocks of the nodes below that must not overlap where the disk is shingled; `above` are those
    /// of this node.
    ///
    /// # Errors
    /// When a size is a share of a workload that is not known.
    fn conventional(
        &self,
        _known: &Known<'_>,
        _above: &[Extent],
    ) -> Result<Vec<Extent>, ConfigError> {
        Ok(vec![])
    }

    /// The port that leads to the node of which it wants blocks that do not overlap.
    fn conventional_port(&self) -> usize {
        0
    }

    /// Whether a size of it is a share of the workload's bands.
    fn has_share(&self) -> bool {
        false
    }

    /// Whether it must know what the host will ask for.
    fn needs_lookups(&self) -> bool {
        false
    }

    /// Its bands, if it has any.
    fn bands(&self) -> Option<&PlannedBands> {
        None
    }

    /// Builds it over what the nodes below offer.
    ///
    /// # Errors
    /// When the sizes do not fit.
    fn build(&self, known: &Known<'_>, below: &Below<'_>) -> Result<Part, ConfigError>;
}

/// The bands of a translation.
pub(super) struct PlannedBands {
    /// Where they lie.
    pub table: Arc<BandTable>,
    /// What the layout depends on, in words.
    pub key: String,
    /// Whether the log of the translation is a share of the bands that are written.
    pub log_is_of_written: bool,
}

/// What is known while needs go down.
pub(super) struct World<'a> {
    pub config: &'a StackConfig,
    pub options: &'a BuildOptions,
    /// Drive model of each disk node.
    pub drives: &'a BTreeMap<String, Drive>,
    /// Size of the device; zero while it is being found.
    pub device: BlockCount,
}

impl World<'_> {
    /// Blocks that a node can offer at most.
    pub fn room(&self, name: &str, scale: u64) -> Result<BlockCount, ConfigError> {
        let node = self.config.node(name).expect("a checked stack");
        node.node().room(self, scale)
    }

    /// The drive of the disk below a node that stands on disks or on slices of disks.
    pub fn drive_below(&self, node: &dyn Node) -> Result<&Drive, ConfigError> {
        let drive = node.below().pop().and_then(|name| self.drive_of(name));
        drive.ok_or_else(|| wrong(node.name(), &"must stand on a disk"))
    }

    /// The drive of a disk, or of the disk that a slice is cut from; `None` of another node.
    pub fn drive_of(&self, name: &str) -> Option<&Drive> {
        match self.slice(name) {
            Some(slice) => self.drive_of(&slice.below),
            None => self.drives.get(name),
        }
    }

    /// The slice of a name.
    pub fn slice(&self, name: &str) -> Option<&SliceConfig> {
        match self.config.node(name)? {
            NodeConfig::Slice(slice) => Some(slice),
            _ => None,
        }
    }
}

/// What is known when the stack is built.
pub(super) struct Known<'a> {
    pub options: &'a BuildOptions,
    /// What shares are shares of.
    pub footprint: Option<Footprint>,
    /// The future of a clairvoyant cache.
    pub lookups: Option<&'a [Lba]>,
    /// What simulated disks hold.
    pub contents: ContentKind,
}

/// What a node is built over.
pub(super) struct Below<'a> {
    /// What the nodes below offer, in the order of the ports.
    pub offers: Vec<&'a Offer>,
    /// Of a disk: blocks that must not overlap.
    pub conventional: &'a [Extent],
}

/// What a node offers to the node above.
pub(super) struct Offer {
    pub geometry: Geometry,
    /// Of a disk or a slice of one.
    pub on_disk: Option<OnDisk>,
    /// Of a drive that hides its bands: their mean length, where its file says it.
    pub mean_band: Option<BlockCount>,
    /// What all slices of it know of its flushes.
    pub flush_failure: FlushFailure,
}

/// Where on which disk a node lies.
pub(super) struct OnDisk {
    /// What the disk counts.
    pub statistics: Rc<DiskStatistics>,
    /// The first block.
    pub start: u64,
    /// What the names of areas there begin with.
    pub area_prefix: String,
}

impl Offer {
    /// What a layer offers.
    pub fn over(geometry: Geometry) -> Offer {
        Offer { geometry, on_disk: None, mean_band: None, flush_failure: FlushFailure::default() }
    }
}

/// A node that was built.
pub(super) struct Part {
    pub body: Body,
    pub offer: Offer,
    pub facts: Facts,
}

/// What a node is made of.
pub(super) enum Body {
    Disk(Box<DiskDesign>),
    Layer(Box<dyn Layer>),
    /// A layer over a part of a node that has other parents.
    Part(Box<dyn Layer>),
}

/// What reports know of a node beside its counts.
pub enum Facts {
    /// Of a disk.
    Disk(DescribeDisk),
    /// Of a drive-managed translation.
    PersistentCache(persistent_cache::Facts),
    /// Of the zones of a host-managed disk.
    HostManaged(host_managed::Facts),
    /// Of a write-back cache.
    WriteBackCache(write_back_cache::Facts),
    /// Of a read cache.
    ReadCache(read_cache::Facts),
    /// Of a segment layout.
    Segments(segments::Facts),
    /// Of a translation by S-blocks.
    SBlock(s_block::Facts),
    /// Of a slice.
    Slice(slice::Facts),
    /// Of a span.
    Span(span::Facts),
    /// Of a stripe.
    Stripe(stripe::Facts),
    /// Of a write buffer in memory.
    MemoryBuffer(memory_buffer::Facts),
}

impl Facts {
    /// How a node is reported, whatever its kind.
    pub(super) fn reported(&self) -> &dyn Reported {
        match self {
            Facts::Disk(facts) => facts,
            Facts::PersistentCache(facts) => facts,
            Facts::HostManaged(facts) => facts,
            Facts::WriteBackCache(facts) => facts,
            Facts::ReadCache(facts) => facts,
            Facts::SBlock(facts) => facts,
            Facts::Segments(facts) => facts,
            Facts::Slice(facts) => facts,
            Facts::Span(facts) => facts,
            Facts::Stripe(facts) => facts,
            Facts::MemoryBuffer(facts) => facts,
        }
    }
}

/// How a kind of node is reported.
pub(super) trait Reported {
    /// Its counters in the core.
    fn counters(&self) -> Vec<Counter> {
        vec![]
    }

    /// Its gauges in the core.
    fn gauges(&self) -> Vec<Gauge> {
        vec![]
    }

    /// Whether the host sees zones there.
    fn has_zones(&self) -> bool {
        false
    }

    /// What is counted outside of the core, with its name.
    fn others(&self) -> Vec<(&'static str, u64)> {
        vec![]
    }

    /// Fills in the keys of a run that are about the only node of this kind.
    fn tell(&self, _counts: &Counts, _run: &mut Run) {}
}

/// An error about a node.
pub(super) fn wrong(node: &str, error: &dyn Display) -> ConfigError {
    ConfigError::words(format!("node `{node}`: {error}"))
}
