//! The kinds of node a stack is made of, a file each: its keys, what it needs below, what it offers
//! above, and how it is planned, built and reported.
//!
//! A stack is planned in two folds. Needs go down: each node is [`Asked`] for a number of blocks and
//! asks the nodes below it ([`Node::plan`]). Geometries come up: each node is built over what the
//! nodes below it offer ([`Planned::build`]). No node knows more of the others than that.

mod checksums;
mod dedicated;
mod disk;
mod drive_managed;
mod facts;
mod host_managed;
mod idle_control;
mod keeps;
mod memory;
mod memory_buffer;
mod persistent_cache;
mod persistent_cache_config;
mod persistent_cache_settings;
pub(super) mod policies;
mod ports;
mod raid;
mod raid1;
mod raid4smr;
mod read_cache;
mod reported;
mod s_block;
mod scheduler;
mod segment_geometry;
mod segments;
mod slice;
mod span;
mod spare_slots;
mod stripe;
mod write_back_cache;
mod zone_lru_buffer;

pub(crate) use disk::Media;
pub use disk::{DescribeDisk, DiskConfig};
pub use keeps::{Keeps, Windows, WindowsBy};
pub use memory::DiskMedia;
pub(super) use memory::check_medium;
pub use memory_buffer::MemoryBufferConfig;
pub use persistent_cache::{Facts as TranslationFacts, LogUse};
pub use persistent_cache_config::PersistentCacheConfig;
pub use policies::{PolicyConfig, PoreConfig, policy_key};
pub use raid::{Raid4Config, Raid5Config};
pub use raid1::Raid1Config;
pub use raid4smr::Raid4SmrConfig;
pub use read_cache::ReadCacheConfig;
pub(super) use reported::{BufferedIn, Reported};
pub use s_block::SBlockConfig;
pub(crate) use scheduler::Facts as SchedulerFacts;
pub use scheduler::SchedulerConfig;
pub use segments::SegmentsConfig;
pub use slice::SliceConfig;
pub(super) use slice::check_overlaps;
pub use span::SpanConfig;
pub use stripe::StripeConfig;
pub use write_back_cache::{CacheConfig, CacheKeys, Destage};

use super::areas::Footprint;
use super::brought::BroughtName;
use super::config::{ConfigError, StackConfig};
use super::durability::JournalKeys;
use super::options::BuildOptions;
use dedicated::DedicatedConfig;
use idle_control::IdleControlConfig;
use imbrex_core::buffer::ContentKind;
use imbrex_core::disk::Geometry;
use imbrex_core::extent::Extent;
use imbrex_core::flush_failure::FlushFailure;
use imbrex_core::layer::{Layer, Port};
use imbrex_core::map::BandTable;
use imbrex_core::units::{BlockCount, Lba};
use imbrex_drives::keys::{Key, KeyError, Keys};
use imbrex_drives::quantity::SizeOrShare;
use imbrex_drives::toml_error::nearest;
use imbrex_drives::{DiskDesign, DiskStatistics, Drive, HostManagedConfig};
use imbrex_report::TableOfKind;
pub use ports::PortNodes;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use zone_lru_buffer::ZoneLruBufferConfig;

/// Makes the enum of the kinds, in which each has one line.
macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident($config:ty, $facts:ty)),* $(,)?) => {
        /// One node of a stack.
        #[derive(Clone, Debug)]
        pub enum NodeConfig {
            $($(#[$doc])* $variant(Box<$config>)),*
        }

        impl NodeConfig {
            /// What can be asked of the node, whatever its kind.
            pub(super) fn node(&self) -> &dyn Node {
                match self {
                    $(NodeConfig::$variant(node) => &**node),*
                }
            }

            /// The name of its kind.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(NodeConfig::$variant(_) => <$config as Kind>::NAME),*
                }
            }

            /// The keys of its kind, beside those of policies.
            pub(crate) fn keys(&self) -> Vec<Key> {
                match self {
                    $(NodeConfig::$variant(_) => <$config as Keys>::keys()),*
                }
            }

            /// The kinds of node that stand in the same place of a stack.
            fn place(&self) -> Place {
                match self {
                    $(NodeConfig::$variant(_) => <$config as Kind>::PLACE),*
                }
            }

            /// Reads the keys of a node of a kind.
            fn of_kind(kind: &str, keys: toml::Table) -> Result<NodeConfig, KeyError> {
                match kind {
                    $(<$config as Kind>::NAME => {
                        Ok(NodeConfig::$variant(Box::new(<$config as Keys>::read(keys)?)))
                    })*
                    _ => Err(unknown_kind(kind)),
                }
            }
        }

        /// What is known of a node that was built.
        pub enum Facts {
            $($(#[$doc])* $variant($facts)),*
        }

        impl Facts {
            /// How the node is reported, whatever its kind.
            pub(super) fn reported(&self) -> &dyn Reported {
                match self {
                    $(Facts::$variant(facts) => facts),*
                }
            }

            /// The name of its kind.
            pub(super) fn kind(&self) -> &'static str {
                match self {
                    $(Facts::$variant(_) => <$config as Kind>::NAME),*
                }
            }

            /// The tables that its kind declares.
            pub(super) fn tables_of_kind(&self) -> &'static [TableOfKind] {
                match self {
                    $(Facts::$variant(_) => <$config as Kind>::TABLES),*
                }
            }
        }

        impl Serialize for NodeConfig {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                let kind = self.kind();
                match self {
                    $(NodeConfig::$variant(node) => Tagged { kind, node: &**node }.serialize(to)),*
                }
            }
        }

        /// The kinds of node with their keys.
        pub fn kinds() -> &'static [KindKeys] {
            static KINDS: OnceLock<Vec<KindKeys>> = OnceLock::new();
            KINDS.get_or_init(|| vec![$(KindKeys {
                kind: <$config as Kind>::NAME,
                place: <$config as Kind>::PLACE,
                keys: <$config as Keys>::keys(),
                of_policies: <$config as Kind>::of_policies(),
                tables: <$config as Kind>::TABLES,
            }),*])
        }
    };
}

kinds! {
    /// A leaf.
    Disk(DiskConfig, DescribeDisk),
    /// The drive-managed translation with a persistent cache.
    PersistentCache(PersistentCacheConfig, persistent_cache::Facts),
    /// The zones of a host-managed drive.
    HostManaged(HostManagedConfig, host_managed::Facts),
    /// A write-back cache on a second disk.
    WriteBackCache(CacheConfig, write_back_cache::Facts),
    /// A write buffer on flash that gives up whole zones.
    ZoneLruBuffer(ZoneLruBufferConfig, write_back_cache::Facts),
    /// Copies of blocks on flash.
    ReadCache(ReadCacheConfig, read_cache::Facts),
    /// Regions that are circular logs of S-blocks.
    SBlock(SBlockConfig, s_block::Facts),
    /// Segments that are rewritten in place.
    Segments(SegmentsConfig, segments::Facts),
    /// The queue of a disk on the host's side.
    Scheduler(SchedulerConfig, scheduler::Facts),
    /// A controller that holds requests back while a drive cleans.
    IdleControl(IdleControlConfig, idle_control::Facts),
    /// A part of a node.
    Slice(SliceConfig, slice::Facts),
    /// Nodes joined one after another.
    Span(SpanConfig, span::Facts),
    /// The same, where the requests of each source go to one of the nodes.
    Dedicated(DedicatedConfig, span::Facts),
    /// Nodes joined chunk by chunk.
    Stripe(StripeConfig, stripe::Facts),
    /// Nodes with copies of the same blocks.
    Raid1(Raid1Config, raid1::Facts),
    /// Nodes with the parity on the last one.
    Raid4(Raid4Config, raid::Facts),
    /// Nodes with the parity on each by turns.
    Raid5(Raid5Config, raid::Facts),
    /// Shingled nodes with a data disk for updates and a parity disk.
    Raid4Smr(Raid4SmrConfig, raid4smr::Facts),
    /// A write buffer in memory.
    MemoryBuffer(MemoryBufferConfig, memory_buffer::Facts),
}

/// A node as TOML and JSON have it: its kind first.
#[derive(Serialize)]
struct Tagged<'a, T> {
    kind: &'static str,
    #[serde(flatten)]
    node: &'a T,
}

fn unknown_kind(kind: &str) -> KeyError {
    let known: Vec<&str> = kinds().iter().map(|known| known.kind).collect();
    let hint = nearest(kind, known.iter().copied());
    let hint = hint.map_or(String::new(), |name| format!("; did you mean \"{name}\"?"));
    let known: Vec<String> = known.into_iter().map(|name| format!("\"{name}\"")).collect();
    KeyError::of(KIND, format!("kind = \"{kind}\"{hint}; accepted: {}", known.join(", ")))
}

/// The key that says of which kind a node is.
const KIND: &str = "kind";

impl NodeConfig {
    /// Reads a node.
    ///
    /// # Errors
    /// When it has no kind, or a key that its kind does not have or take.
    pub(crate) fn read(mut keys: toml::Table) -> Result<NodeConfig, KeyError> {
        match keys.remove(KIND) {
            Some(toml::Value::String(kind)) => NodeConfig::of_kind(&kind, keys),
            Some(other) => Err(unknown_kind(&other.to_string())),
            None => Err(KeyError::of_none("missing field `kind`".to_string())),
        }
    }

    /// The name of the node.
    pub fn name(&self) -> &str {
        self.node().name()
    }

    /// The names of the nodes below, in the order of the ports. The last holds the data in the end.
    pub fn below(&self) -> Vec<&str> {
        self.node().below()
    }

    /// The disk, of a node that is one.
    pub fn disk(&self) -> Option<&DiskConfig> {
        self.node().disk()
    }

    /// The policy to which a key belongs that this node does not have under its own.
    pub fn owner_of(&self, key: &str) -> Option<&'static str> {
        self.node().owner_of(key)
    }

    /// The kind to which a key belongs that this node does not have under its own. The kinds stand in
    /// the same place of a stack, so that stacks of both are compared under one name of a node.
    pub fn kind_of(&self, key: &str) -> Option<&'static str> {
        let (own, place) = (self.kind(), self.place());
        let has = |kind: &KindKeys| {
            let mut policies = kind.of_policies.iter();
            has_key(&kind.keys, key) || policies.any(|(_, keys)| has_key(keys, key))
        };
        let is_there = |kind: &&KindKeys| kind.kind == own || place.is_shared_with(kind.place);
        let mut there = kinds().iter().filter(is_there);
        match there.clone().any(|kind| kind.kind == own && has(kind)) {
            true => None,
            false => there.find(|kind| has(kind)).map(|kind| kind.kind),
        }
    }

    /// The other name of a key that has two: an older one, or the one in whose place that was.
    pub(crate) fn other_name(&self, key: &str) -> Option<&'static str> {
        let own = kinds().iter().filter(|kind| kind.kind == self.kind());
        let mut keys = own.flat_map(|kind| {
            let of_policies = kind.of_policies.iter().flat_map(|(_, keys)| keys);
            kind.keys.iter().chain(of_policies)
        });
        keys.find_map(|known| match known.older {
            Some(older) if known.name == key => Some(older),
            Some(older) if older == key => Some(known.name),
            _ => None,
        })
    }

    /// What it says of its journal; none of a kind that never keeps one.
    pub(crate) fn journal_keys(&self) -> Option<JournalKeys<'_>> {
        self.node().journal()
    }

    /// The node below that holds its journal; none of a node that never keeps one.
    pub fn journal_below(&self) -> Option<&str> {
        self.node().journal().map(|journal| journal.below)
    }

    /// Why `create` and `serve` take no such node; nothing of one that they take.
    pub fn refused_by_serving(&self) -> Option<String> {
        self.node().refused_by_serving()
    }

    /// The nodes below that are devices of their own beside the whole where it is served.
    pub fn exports(&self) -> Vec<&str> {
        self.node().exports()
    }

    /// What it keeps on the nodes below, and where its blocks are.
    ///
    /// # Errors
    /// When a key has a value that cannot be.
    pub fn keeps(&self) -> Result<Keeps, ConfigError> {
        self.node().keeps()
    }

    /// The ports behind which there are nodes, the one that leads to the data last.
    pub fn ports(&self) -> Vec<PortNodes<'_>> {
        self.node().ports()
    }

    /// The node behind a port, if there is one.
    pub fn port(&self, name: &str) -> Option<&str> {
        let mut ports = self.ports().into_iter();
        ports.find(|port| port.key.name == name)?.nodes.first().copied()
    }

    /// The ports behind which it keeps state when it is durable, with the names that images give them.
    pub fn members(&self) -> Vec<(Cow<'static, str>, Port)> {
        self.node().members()
    }

    /// The disk, of a node that is one, to be changed.
    pub fn disk_mut(&mut self) -> Option<&mut DiskConfig> {
        match self {
            NodeConfig::Disk(disk) => Some(disk),
            _ => None,
        }
    }

    /// Whether nothing that translates addresses can stand below it: a disk, or zones of one.
    pub fn is_last_translation(&self) -> bool {
        self.disk().is_some() || self.node().shows_zones()
    }

    /// The nodes whose addresses lie one after another in those of this one.
    pub fn windows(&self) -> Option<Windows<'_>> {
        self.node().windows()
    }
}

/// Where in a stack a kind stands: kinds that stand in the same place are compared under one name of a
/// node, and a setting of one is left out of the stacks with another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// No other kind stands there.
    Own,
    /// Over a shingled disk.
    Translation,
    /// Over flash.
    Cache,
    /// Over several nodes.
    Joint,
}

impl Place {
    fn is_shared_with(self, other: Place) -> bool {
        self != Place::Own && self == other
    }
}

/// The keys of a kind of node, for what is said of them elsewhere.
pub struct KindKeys {
    /// The kind in TOML files.
    pub kind: &'static str,
    /// Where it stands.
    pub place: Place,
    /// The keys that every node of the kind has, beside `kind`.
    pub keys: Vec<Key>,
    /// Of a cache: the keys of each policy.
    pub of_policies: Vec<(&'static str, Vec<Key>)>,
    /// The tables and series that reports have of its nodes.
    pub tables: &'static [TableOfKind],
}

impl KindKeys {
    /// The names of the CSV files of its tables.
    pub fn table_files(&self) -> impl Iterator<Item = String> {
        self.tables.iter().map(|table| table.file(self.kind))
    }
}

/// Whether a key is among others, under its name or an older one.
pub(super) fn has_key(keys: &[Key], name: &str) -> bool {
    keys.iter().any(|key| key.name == name || key.older == Some(name))
}

/// What is the same of all nodes of a kind.
pub(super) trait Kind: Node + Keys {
    /// The kind in TOML files.
    const NAME: &'static str;

    /// Where it stands.
    const PLACE: Place = Place::Own;

    /// The tables and series of its own that reports have of its nodes. However long a run is, their rows are
    /// bounded.
    const TABLES: &'static [TableOfKind] = &[];

    /// The keys that it has under each policy alone.
    fn of_policies() -> Vec<(&'static str, Vec<Key>)> {
        vec![]
    }
}

/// What a kind of node says of itself before a stack is built.
pub(super) trait Node {
    /// The name of the node.
    fn name(&self) -> &str;

    /// The ports behind which there are nodes, the one that leads to the data last.
    fn ports(&self) -> Vec<PortNodes<'_>>;

    /// The names of the nodes below, in the order of the ports.
    fn below(&self) -> Vec<&str> {
        self.ports().into_iter().flat_map(|port| port.nodes).collect()
    }

    /// The disk, of a node that is one.
    fn disk(&self) -> Option<&DiskConfig> {
        None
    }

    /// Whether the node above sees the drive below through it: tracks, zones, bands, log and areas.
    fn is_clear(&self) -> bool {
        false
    }

    /// Whether it shows its host the zones of the drive below.
    fn shows_zones(&self) -> bool {
        false
    }

    /// Whether its addresses are others than those of the node below.
    fn moves_addresses(&self) -> bool {
        false
    }

    /// The bytes of the node below that it takes, where others may stand there beside it.
    fn part(&self) -> Option<Range<u64>> {
        None
    }

    /// What it keeps on the nodes below, and where its blocks are, for whoever reads them without it.
    ///
    /// # Errors
    /// When a key has a value that cannot be.
    fn keeps(&self) -> Result<Keeps, ConfigError> {
        Ok(Keeps::Nothing)
    }

    /// Whether it serves writes only.
    fn is_write_only(&self) -> bool {
        false
    }

    /// Whether what it has kept may be lost by a power cut after it has left for the node below.
    fn destages_into_caches(&self) -> bool {
        false
    }

    /// Finds what is wrong with the place where it stands: below `user`, or at the top.
    fn check_place(&self, _user: Option<&str>) -> Result<(), String> {
        Ok(())
    }

    /// Why `create` and `serve` take no such node; nothing of one that they take.
    fn refused_by_serving(&self) -> Option<String> {
        None
    }

    /// The nodes below that are devices of their own beside the whole where it is served.
    fn exports(&self) -> Vec<&str> {
        vec![]
    }

    /// The nodes whose addresses lie one after another in its own.
    fn windows(&self) -> Option<Windows<'_>> {
        None
    }

    /// The key with the size of the log that takes random writes, and what it says.
    fn log_size(&self) -> Option<(&'static str, Option<SizeOrShare>)> {
        None
    }

    /// What it says of its journal; none of a kind that never keeps one.
    fn journal(&self) -> Option<JournalKeys<'_>> {
        None
    }

    /// The ports behind which it keeps state when it is durable, or blocks of which it must know the disk, each with
    /// the name that images give it.
    fn members(&self) -> Vec<(Cow<'static, str>, Port)> {
        vec![]
    }

    /// Whether it notices when a block of a node below is not what it wrote there.
    fn checks(&self, _below: &str) -> bool {
        false
    }

    /// The kinds of record in its journal, each with its name on the page of its format.
    fn record_kinds(&self) -> &'static [(u8, &'static str)] {
        &[]
    }

    /// The node below with data of which the journal on another one speaks, and the kind of the
    /// records that do.
    fn data_off_journal(&self) -> Option<(&str, u8)> {
        None
    }

    /// Whether it keeps copies of blocks for several nodes above it, none of which needs them.
    fn keeps_copies(&self) -> bool {
        false
    }

    /// The policy to which a key belongs that this node would have under that policy alone.
    fn owner_of(&self, _key: &str) -> Option<&'static str> {
        None
    }

    /// Its policy, if a program brings that with it.
    fn brought_policy(&self) -> Option<&BroughtName> {
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
    /// Blocks of the nodes below that must not overlap where the disk is shingled, each with the port that
    /// leads to their node; `above` are those of this node.
    ///
    /// # Errors
    /// When a size is a share of a workload that is not known.
    fn conventional(
        &self,
        _known: &Known<'_>,
        _above: &[Extent],
    ) -> Result<Vec<(usize, Extent)>, ConfigError> {
        Ok(vec![])
    }

    /// Whether a size of it is a share of the workload's bands.
    fn has_share(&self) -> bool {
        false
    }

    /// Whether it must know what the host will ask for.
    fn needs_lookups(&self) -> bool {
        false
    }

    /// What makes its counters depend on time: the key with its value and what it does, and the value that
    /// does not, if there is one.
    fn depends_on_time(&self) -> Option<TimeKey> {
        None
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

/// A key of a node by which its counters depend on time.
pub(super) struct TimeKey {
    /// The key with its value, as a stack file states it.
    pub key: String,
    /// What it does with time.
    pub does: &'static str,
    /// What to state instead.
    pub instead: &'static str,
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

    /// The drive that a node shows to the node above: that of a disk, or of the disk below clear nodes.
    pub fn drive_of(&self, name: &str) -> Option<&Drive> {
        self.drives.get(self.below_clear(name))
    }

    /// The first node that is not clear, from a node down.
    pub fn below_clear<'b>(&'b self, name: &'b str) -> &'b str {
        match self.config.node(name) {
            Some(node) if node.node().is_clear() => {
                node.below().pop().map_or(name, |below| self.below_clear(below))
            }
            _ => name,
        }
    }

    /// Whether a node is a part of another one, which it shows.
    pub fn is_part(&self, name: &str) -> bool {
        let node = self.config.node(name).map(NodeConfig::node);
        node.is_some_and(|node| node.is_clear() && node.part().is_some())
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

/// An error about a node.
pub(super) fn wrong(node: &str, error: &dyn Display) -> ConfigError {
    ConfigError::words(format!("node `{node}`: {error}"))
}
