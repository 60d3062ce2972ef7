//! What can be set on a write buffer in memory, and what it refuses.

use super::replacement::BufferPolicy;
use crate::disk::{Geometry, Survival};
use crate::durability::{DurabilitySettings, JournalSettings, LayerKind};
use crate::extent::Extent;
use crate::layer::Port;
use crate::units::BlockCount;
use core::fmt;

/// The least and the greatest block, in blocks of 4 KiB: 4 KiB and 8 MiB.
const PARTS: core::ops::RangeInclusive<u64> = 1..=2048;
/// Blocks in a segment where the node below knows none: those of a region of the paper.
const BLOCKS_PER_SEGMENT: u64 = 32;
/// Bytes of a part in a checkpoint of the log, and of its head.
const CHECKPOINT_ENTRY_BYTES: u64 = 16;
/// The smallest ring of the journal, in which one block can be recorded however it lies in the log.
const BYTES_PER_PART_MAX: u64 = 40;

crate::words! {
    /// What is done with a read that finds its block in memory without some of what it asks for.
    pub enum PartialRead {
        /// The whole block is read, and memory keeps it.
        Memory = "memory",
        /// What is missing is read like any block that is not in memory.
        Flash = "flash",
    }
}

/// How a buffer keeps what it has promised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Persistence {
    /// It hands everything down before it answers a flush.
    Destage,
    /// Every write is in a log on another port too.
    Log(DurabilitySettings),
}

/// The settings of a write buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryBufferSettings {
    /// Blocks in memory; none takes the memory out and leaves the conduct of requests.
    pub capacity_blocks: u32,
    /// Blocks of 4 KiB in a block.
    pub block: BlockCount,
    /// Blocks among which [`BufferPolicy::Lwa`] chooses.
    pub window_blocks: u32,
    /// Who leaves.
    pub policy: BufferPolicy,
    /// What is done with reads of partly valid blocks.
    pub partial_read: PartialRead,
    /// How it keeps what it has promised; nothing at all without.
    pub persistence: Option<Persistence>,
}

/// What a buffer stands on.
#[derive(Clone, Copy, Debug)]
pub struct BufferBelow<'a> {
    /// The log, where the persistence is a log.
    pub log: Option<&'a Geometry>,
    /// A store of copies.
    pub copies: Option<&'a Geometry>,
    /// Where data is handed down.
    pub below: &'a Geometry,
}

/// The ports of a buffer: the log, the copies and what lies below, in this order, as far as they are
/// there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferPorts {
    /// The log.
    pub log: Option<Port>,
    /// The store of copies.
    pub copies: Option<Port>,
    /// Where data is handed down.
    pub below: Port,
    /// The node below does not tell the store of copies what it writes: the buffer does.
    pub drops_copies: bool,
}

impl BufferPorts {
    /// The ports of a buffer with a log or without, with a store of copies or without.
    pub fn new(has_log: bool, has_copies: bool) -> BufferPorts {
        let log = has_log.then_some(Port(0));
        let copies = has_copies.then_some(Port(u8::from(has_log)));
        let below = Port(u8::from(has_log) + u8::from(has_copies));
        BufferPorts { log, copies, below, drops_copies: false }
    }
}

/// Why a buffer cannot be built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryBufferError {
    /// The block is too small or too large.
    Block(BlockCount),
    /// The node below rewrites blocks of another size.
    RewriteBlock {
        /// Of the buffer.
        block: BlockCount,
        /// Of the node below.
        below: BlockCount,
    },
    /// The copies are of another size.
    CopyBlock {
        /// Of the buffer.
        block: BlockCount,
        /// Of the store.
        store: BlockCount,
    },
    /// The node that should keep copies keeps none.
    NoCopies,
    /// What is to keep the log is missing.
    NoLog,
    /// The log is too small.
    LogTooSmall {
        /// Its blocks.
        blocks: BlockCount,
        /// Those that are needed.
        needed: BlockCount,
    },
    /// The ring of the journal is too small.
    Ring {
        /// Its blocks.
        blocks: u64,
        /// Those that are needed.
        needed: u64,
    },
    /// The window is empty or larger than the memory.
    Window(u32),
    /// A node below has zones that must be written in sequence.
    Zones,
}

impl fmt::Display for MemoryBufferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryBufferError::Block(block) => {
                write!(f, "block = {} B; accepted: 4 KiB to 8 MiB", block.bytes())
            }
            MemoryBufferError::RewriteBlock { block, below } => write!(
                f,
                "block = {} B, and the node below rewrites blocks of {} B; accepted: the same",
                block.bytes(),
                below.bytes()
            ),
            MemoryBufferError::CopyBlock { block, store } => write!(
                f,
                "block = {} B, and its copies have {} B; accepted: the same",
                block.bytes(),
                store.bytes()
            ),
            MemoryBufferError::NoCopies => {
                write!(f, "copies: that node keeps none; accepted: a read cache")
            }
            MemoryBufferError::NoLog => write!(f, "it is durable and has no log below"),
            MemoryBufferError::LogTooSmall { blocks, needed } => write!(
                f,
                "its log has {} B; accepted: {} B or more",
                blocks.bytes(),
                needed.bytes()
            ),
            MemoryBufferError::Ring { blocks, needed } => {
                write!(f, "ring_blocks = {blocks}; accepted: {needed} or more")
            }
            MemoryBufferError::Window(window) => {
                write!(f, "a window of {window} blocks; accepted: one block to all of the memory")
            }
            MemoryBufferError::Zones => write!(
                f,
                "a buffer over zones that must be written in sequence; accepted: nodes that take \
                 writes anywhere"
            ),
        }
    }
}

impl MemoryBufferSettings {
    /// Places of its log, a block of 4 KiB each: twice the memory, so that all of it can be written
    /// anew, and room for what is on its way.
    pub fn log_places(&self) -> u64 {
        let parts = self.block.0;
        2 * u64::from(self.capacity_blocks) * parts + 4 * parts
    }

    /// Blocks that its log needs; none without one.
    pub fn log_blocks(&self) -> BlockCount {
        self.log_settings().map_or(BlockCount::ZERO, |durability| {
            let checkpoint = self.checkpoint_blocks();
            let journal = JournalSettings::area_blocks_for(checkpoint, durability.ring_blocks);
            BlockCount(journal + self.log_places())
        })
    }

    fn checkpoint_blocks(&self) -> u64 {
        JournalSettings::checkpoint_blocks_for((1 + self.log_places()) * CHECKPOINT_ENTRY_BYTES)
    }

    /// The journal of its log, if it keeps one: a buffer without memory has nothing to keep.
    pub(super) fn log_settings(&self) -> Option<DurabilitySettings> {
        match self.persistence {
            Some(Persistence::Log(durability)) if self.capacity_blocks > 0 => Some(durability),
            _ => None,
        }
    }

    /// True when it needs a log below.
    pub fn has_log(&self) -> bool {
        self.log_settings().is_some()
    }

    pub(super) fn destages_on_flush(&self) -> bool {
        self.persistence == Some(Persistence::Destage) && self.capacity_blocks > 0
    }

    pub(super) fn journal(&self, port: Port, durability: DurabilitySettings) -> JournalSettings {
        let checkpoint_blocks = self.checkpoint_blocks();
        let area = JournalSettings::area_blocks_for(checkpoint_blocks, durability.ring_blocks);
        JournalSettings {
            layer: LayerKind::MemoryBuffer,
            port,
            member_blocks: self.log_blocks(),
            area: Extent::new(0, area),
            checkpoint_blocks,
            required_features: 0,
            data: None,
        }
    }

    /// Blocks of the memory in 4 KiB, and of a segment of a node that knows none.
    pub(super) fn blocks_per_segment(&self) -> u64 {
        BLOCKS_PER_SEGMENT * self.block.0
    }

    pub(super) fn check(&self, below: &BufferBelow<'_>) -> Result<(), MemoryBufferError> {
        let block = self.block;
        if !PARTS.contains(&block.0) {
            return Err(MemoryBufferError::Block(block));
        }
        if self.capacity_blocks > 0 && !(1..=self.capacity_blocks).contains(&self.window_blocks) {
            return Err(MemoryBufferError::Window(self.window_blocks));
        }
        let mut nodes = [Some(below.below), below.log].into_iter().flatten();
        if nodes.any(Geometry::refuses_random_writes) {
            return Err(MemoryBufferError::Zones);
        }
        let other = below.below.rewrite_block.filter(|other| *other != block);
        if let Some(other) = other {
            let below = other;
            return Err(MemoryBufferError::RewriteBlock { block, below });
        }
        if let Some(copies) = below.copies {
            let store = copies.copies.ok_or(MemoryBufferError::NoCopies)?.block;
            if store != block {
                return Err(MemoryBufferError::CopyBlock { block, store });
            }
        }
        let Some(durability) = self.log_settings() else {
            return Ok(());
        };
        let log = below.log.ok_or(MemoryBufferError::NoLog)?;
        let needed = self.log_blocks();
        if log.blocks < needed {
            let blocks = log.blocks;
            return Err(MemoryBufferError::LogTooSmall { blocks, needed });
        }
        let blocks = durability.ring_blocks;
        let needed = 16 + block.0 * BYTES_PER_PART_MAX / 256;
        match blocks < needed {
            true => Err(MemoryBufferError::Ring { blocks, needed }),
            false => Ok(()),
        }
    }

    /// What the buffer tells the node above.
    pub(super) fn geometry(&self, below: &BufferBelow<'_>) -> Geometry {
        let mut geometry = below.below.clone();
        geometry.zones = None;
        geometry.rewrite_block = None;
        geometry.tells_copies = false;
        geometry.copies = None;
        if self.capacity_blocks > 0 {
            geometry.survives = match (self.persistence, below.log) {
                (None, _) => Survival::Nothing,
                (Some(Persistence::Log(_)), Some(log)) => geometry.survives.min(log.survives),
                (Some(_), _) => geometry.survives,
            };
        }
        geometry
    }
}
