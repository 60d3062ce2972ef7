//! Small stacks in durable mode on disks of a few hundred blocks: the ready-made ones, and trees that
//! none of them is. Each kind of node is a file.

mod buffer;
mod cache;
mod disk;
mod s_block;
mod segments;
mod spanned;
mod striped;
mod translation;
mod two_on_one;

use super::subject::{Member, Parts, Subject};
use super::workload::Shape;
pub use buffer::LOG as BUFFER_LOG;
pub use cache::Policy;
use imbrex_core::planted::PlantedBug;
use imbrex_core::rng::Rng;
use imbrex_core::stack::{NodeId, StackBuilder};
use imbrex_core::units::BlockCount;

/// The stacks by name; the first is the default.
pub const NAMES: [&str; 15] = [
    "pore",
    "lru",
    "lru-band",
    "ride",
    "smr-only",
    "smr-two-ports",
    "lru-cmr",
    "cache-over-cache",
    TWO_ON_ONE_NAME,
    HWSR_NAME,
    "s-block",
    "segments-only",
    S_BLOCK_NAME,
    STRIPED_NAME,
    "spanned",
];

/// A disk without a layer. Nothing but the file that serves it remembers there that a flush has failed, so
/// only what happens between two starts is tried with it.
pub const BARE: &str = "cmr-only";

const TWO_ON_ONE_NAME: &str = "two-on-one";
const S_BLOCK_NAME: &str = "s-block-only";
const HWSR_NAME: &str = "hwsr";
const STRIPED_NAME: &str = "striped";

/// The stack that a bug is looked for on when it shows on few; none where it shows on most.
pub fn stack_of(bug: PlantedBug) -> Option<&'static str> {
    match bug {
        PlantedBug::SliceGuardLeftOut | PlantedBug::SliceFlushFailureForgotten => {
            Some(TWO_ON_ONE_NAME)
        }
        PlantedBug::StripeFlushesFirstAlone => Some(STRIPED_NAME),
        PlantedBug::UpOverLostNode => Some("s-block"),
        PlantedBug::LabelNotCompared | PlantedBug::CountMovedAfterFirstWrite => Some("spanned"),
        PlantedBug::SumOfWhatWasRead => Some("segments-only"),
        PlantedBug::HomeFlushSkipped => Some("smr-two-ports"),
        PlantedBug::SBlockRecordedUnflushed
        | PlantedBug::SBlockRingLeftOut
        | PlantedBug::SBlockReadsIgnored => Some(S_BLOCK_NAME),
        PlantedBug::SegmentTailLeftOut
        | PlantedBug::SegmentWrittenBeforeSlot
        | PlantedBug::SegmentSlotFreedEarly
        | PlantedBug::StaleCopyKept
        | PlantedBug::FillOverWritten => Some(HWSR_NAME),
        _ => None,
    }
}

/// Bands of a device.
const BANDS: u64 = 8;
/// Blocks of a band, on average.
const BAND_BLOCKS: u64 = 24;

/// What a stack is made of. A disk has the name of its member.
pub enum Tree {
    /// A flash disk, as large as the cache over it asks.
    Flash(&'static str),
    /// A conventional disk.
    Conventional(&'static str),
    /// A translation over a shingled disk.
    Translation(&'static str),
    /// A translation with its log on one disk and its bands on a shingled one.
    TranslationOnTwo(&'static str, &'static str),
    /// A translation by S-blocks over a shingled disk.
    SBlocks(&'static str),
    /// Segments over a shingled disk.
    Segments(&'static str),
    /// A write buffer in memory over segments or S-blocks, with a read cache.
    Buffered(&'static Tree),
    /// A cache over flash and backing.
    Cache(Policy, &'static Tree, &'static Tree),
    /// A stripe over nodes, with chunks of so many blocks.
    Striped(BlockCount, &'static [Tree]),
    /// Nodes one after another.
    Spanned(&'static [Tree]),
    /// Two caches over two translations, each on its slice of a flash and of a shingled disk.
    TwoOnOne {
        /// The flash.
        flash: &'static str,
        /// The shingled disk.
        shingled: &'static str,
    },
}

const FLASH: Tree = Tree::Flash("flash");
const CMR: Tree = Tree::Conventional("cmr");
const SMR: Tree = Tree::Translation("smr");
const SMR_TWO_PORTS: Tree = Tree::TranslationOnTwo("log", "home");
const S_BLOCKS_MEMBER: &str = "s-blocks";
const S_BLOCKS: Tree = Tree::SBlocks(S_BLOCKS_MEMBER);
const SEGMENTS_MEMBER: &str = "segments";
const SEGMENTS: Tree = Tree::Segments(SEGMENTS_MEMBER);
const HWSR: Tree = Tree::Buffered(&SEGMENTS);
const S_BLOCK: Tree = Tree::Buffered(&S_BLOCKS);
const PORE: Tree = Tree::Cache(Policy::Pore, &FLASH, &SMR);
const LRU: Tree = Tree::Cache(Policy::Lru, &FLASH, &SMR);
const LRU_BAND: Tree = Tree::Cache(Policy::LruBand, &FLASH, &SMR);
const RIDE: Tree = Tree::Cache(Policy::Ride, &FLASH, &SMR);
const LRU_CMR: Tree = Tree::Cache(Policy::Lru, &FLASH, &CMR);
const CACHE_OVER_CACHE: Tree = Tree::Cache(Policy::Lru, &Tree::Flash("outer-flash"), &LRU_CMR);
const STRIPED: Tree = Tree::Striped(
    STRIPED_CHUNK,
    &[
        Tree::Translation("smr-0"),
        Tree::Translation("smr-1"),
        Tree::Cache(Policy::Lru, &FLASH, &Tree::Translation("smr-2")),
    ],
);
const SPANNED: Tree = Tree::Spanned(&[
    Tree::Conventional("disk-0"),
    Tree::Conventional("disk-1"),
    Tree::Conventional("disk-2"),
]);
/// Requests are longer than three of them, so that a node has several chunks of one.
const STRIPED_CHUNK: BlockCount = BlockCount(2);
const TWO_ON_ONE: Tree = Tree::TwoOnOne { flash: "flash", shingled: "smr" };

/// What a stack of the name is made of.
pub fn tree(name: &str) -> Option<&'static Tree> {
    Some(match name {
        "pore" => &PORE,
        "lru" => &LRU,
        "lru-band" => &LRU_BAND,
        "ride" => &RIDE,
        "smr-only" => &SMR,
        "smr-two-ports" => &SMR_TWO_PORTS,
        "lru-cmr" => &LRU_CMR,
        "cache-over-cache" => &CACHE_OVER_CACHE,
        TWO_ON_ONE_NAME => &TWO_ON_ONE,
        STRIPED_NAME => &STRIPED,
        "spanned" => &SPANNED,
        BARE => &CMR,
        HWSR_NAME => &HWSR,
        "s-block" => &S_BLOCK,
        "segments-only" => &SEGMENTS,
        S_BLOCK_NAME => &S_BLOCKS,
        _ => return None,
    })
}

/// A stack by name.
pub fn subject(name: &str) -> Option<Subject> {
    let tree = tree(name)?;
    Some(Subject {
        name: name.to_string(),
        build: Box::new(move |seed| build(tree, seed)),
        record_name,
        check: None,
    })
}

/// The names of the formats' pages. A member that has no name of its own here has the journal of a
/// cache where it is flash, and of a translation where it is not.
fn record_name(member: &str, kind: u8) -> String {
    let name = match member {
        S_BLOCKS_MEMBER => s_block::record_name(kind),
        SEGMENTS_MEMBER => segments::record_name(kind),
        buffer::LOG => buffer::record_name(kind),
        flash if flash.ends_with("flash") => cache::record_name(kind),
        _ => translation::record_name(kind),
    };
    name.map_or(kind.to_string(), str::to_string)
}

/// A stack that is being built.
struct Assembly {
    builder: StackBuilder,
    members: Vec<Member>,
    translations: Vec<NodeId>,
    rng: Rng,
    seed: u64,
    /// Where the second of two windows begins.
    border: Option<u64>,
}

impl Assembly {
    /// Adds a node and all below it. A flash disk has the blocks that are `asked` of it.
    fn node(&mut self, tree: &Tree, asked: Option<BlockCount>) -> NodeId {
        match tree {
            Tree::Flash(name) => {
                let blocks = asked.expect("flash is below a cache");
                disk::flash(self, name, blocks)
            }
            Tree::Conventional(name) => disk::conventional(self, name),
            Tree::Translation(name) => translation::build(self, name),
            Tree::TranslationOnTwo(log, home) => translation::build_on_two(self, log, home),
            Tree::SBlocks(name) => s_block::build(self, name, None),
            Tree::Segments(name) => segments::build(self, name, None),
            Tree::Buffered(below) => buffer::build(self, below),
            Tree::Cache(policy, flash, backing) => cache::build(self, *policy, flash, backing),
            Tree::Striped(chunk, below) => striped::build(self, *chunk, below),
            Tree::Spanned(below) => spanned::build(self, below),
            Tree::TwoOnOne { flash, shingled } => two_on_one::build(self, flash, shingled),
        }
    }
}

fn build(tree: &Tree, seed: u64) -> Parts {
    let mut assembly = Assembly {
        builder: StackBuilder::new(seed),
        members: Vec::new(),
        translations: Vec::new(),
        rng: Rng::new(seed, 71),
        seed,
        border: None,
    };
    let top = assembly.node(tree, None);
    let blocks = assembly.builder.geometry(top).blocks.0;
    let border = assembly.border;
    Parts {
        stack: assembly.builder.build(top),
        members: assembly.members,
        translations: assembly.translations,
        shape: Shape { blocks, band_blocks: BAND_BLOCKS, border },
    }
}
