//! What can be set on a persistent cache, and why a set of settings may not fit a disk.

use super::map_journal::MapJournalSettings;
use crate::durability::DurabilitySettings;
use crate::units::{BlockCount, Duration};
use core::fmt;

/// Smallest ring of a journal: a band rewrite and a few writes fit in the half that is filled
/// before a checkpoint.
const RING_BLOCKS_MIN: u64 = 12;

/// What happens to a block that is written while it is in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UpdateMethod {
    /// It is appended and its old slot is superseded, as in a log-structured drive.
    Append,
    /// It is overwritten in its slot, which keeps its place in the queue (the prototype of PORE).
    InPlace,
}

/// How a band is rewritten.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RewriteMethod {
    /// The merged copy goes to the scratch band first, so that the old content lives until the
    /// new is complete.
    CopyThenHome,
    /// The merged copy goes straight over the old content (the emulator of PORE): a rewrite that
    /// fails in the middle loses what it had not written again.
    InPlace,
}

/// Which part of a band is rewritten.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RewriteExtent {
    /// All of it.
    Band,
    /// From the start of the track of the lowest block to be merged to the end of the band.
    FromFirstDirty,
}

/// What can be set on a [`PersistentCache`](super::PersistentCache).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PersistentCacheSettings {
    /// Slots of the log, one block each.
    pub log_blocks: BlockCount,
    /// How many map entries the drive has memory for; `None` for no limit.
    pub entries_max: Option<u64>,
    /// What happens to a block that is written while it is in the log.
    pub update: UpdateMethod,
    /// Whether sequential streams go around the log.
    pub bypass: bool,
    /// How long a stream must have been sequential before it may go around the log.
    pub bypass_after_blocks: BlockCount,
    /// How a band is rewritten.
    pub rewrite: RewriteMethod,
    /// Which part of a band is rewritten.
    pub rewrite_extent: RewriteExtent,
    /// Longest run of blocks that is one log entry and one write; published drives take 512 KiB.
    pub packet_blocks_max: BlockCount,
    /// Time the firmware takes for each band rewrite beside its disk operations: a calibrated
    /// parameter of a drive.
    pub rewrite_overhead: Duration,
    /// What the drive does to keep its map over a power cut.
    pub map_journal: MapJournalSettings,
    /// How the map outlives a crash; `None` keeps it until the translation is dropped.
    pub durability: Option<DurabilitySettings>,
}

impl PersistentCacheSettings {
    /// Append and invalidate, whole bands, copy then home, packets of 512 KiB, no limit on
    /// entries, no bypass.
    pub fn new(log_blocks: BlockCount) -> PersistentCacheSettings {
        PersistentCacheSettings {
            log_blocks,
            entries_max: None,
            update: UpdateMethod::Append,
            bypass: false,
            bypass_after_blocks: BlockCount(256),
            rewrite: RewriteMethod::CopyThenHome,
            rewrite_extent: RewriteExtent::Band,
            packet_blocks_max: BlockCount(128),
            rewrite_overhead: Duration::ZERO,
            map_journal: MapJournalSettings::default(),
            durability: None,
        }
    }

    /// Checks each setting by itself.
    ///
    /// # Errors
    /// When a value is out of its range.
    pub fn check(&self) -> Result<(), LayoutError> {
        let blocks_max = super::log::PACKET_BLOCKS_MAX;
        if self.log_blocks.0 == 0 {
            return Err(LayoutError::NoLog);
        }
        if self.entries_max == Some(0) {
            return Err(LayoutError::NoEntries);
        }
        if !(1..=blocks_max).contains(&self.packet_blocks_max.0) {
            return Err(LayoutError::PacketLength(self.packet_blocks_max));
        }
        let log_per_flush = self.map_journal.log_per_flush;
        if log_per_flush >= self.log_blocks {
            return Err(LayoutError::LogPerFlush(log_per_flush));
        }
        let Some(durability) = self.durability else {
            return Ok(());
        };
        if self.update == UpdateMethod::InPlace {
            return Err(LayoutError::UpdateNotDurable);
        }
        if self.rewrite == RewriteMethod::InPlace {
            return Err(LayoutError::RewriteNotDurable);
        }
        if durability.ring_blocks < RING_BLOCKS_MIN {
            return Err(LayoutError::RingTooSmall(durability.ring_blocks));
        }
        Ok(())
    }
}

/// Why a persistent cache cannot be built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LayoutError {
    /// The log has no slot.
    NoLog,
    /// The map may hold no entry.
    NoEntries,
    /// A packet is empty or too long for an entry.
    PacketLength(BlockCount),
    /// The record of one flush fills the log.
    LogPerFlush(BlockCount),
    /// There is no band.
    NoBands,
    /// Blocks are updated in place, and a power cut in such a write would lose what was durable.
    UpdateNotDurable,
    /// Bands are rewritten in place, and a power cut in a rewrite would lose what was durable.
    RewriteNotDurable,
    /// The ring of journal blocks is too small.
    RingTooSmall(u64),
    /// The addresses are too large for the log's records.
    TooLarge(BlockCount),
    /// The log ends beyond the tracks that do not overlap.
    LogPastConventional {
        /// First block after the log.
        needed: BlockCount,
        /// Blocks on tracks that do not overlap.
        conventional: BlockCount,
    },
    /// The bands end beyond the disk.
    DiskTooSmall {
        /// Bands that fit, from the first.
        bands_that_fit: u32,
        /// Bands asked for.
        bands: u32,
        /// Blocks of the disk.
        disk: BlockCount,
    },
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LayoutError::NoLog => f.write_str("the persistent cache needs at least one block"),
            LayoutError::NoEntries => {
                f.write_str("the persistent cache needs room for at least one entry")
            }
            LayoutError::PacketLength(blocks) => write!(
                f,
                "a packet of {blocks:?} is not between 1 and {} blocks",
                super::log::PACKET_BLOCKS_MAX
            ),
            LayoutError::LogPerFlush(blocks) => write!(
                f,
                "a flush takes {blocks:?} of the persistent cache, which has no more; accepted: \
                 less than the persistent cache"
            ),
            LayoutError::UpdateNotDurable => f.write_str(
                "a persistent cache that updates blocks in place cannot outlive a power cut; \
                 accepted with durability: update = append",
            ),
            LayoutError::RewriteNotDurable => f.write_str(
                "a persistent cache that rewrites bands in place, without a scratch copy, cannot \
                 outlive a power cut; accepted with durability: rewrite = copy-then-home",
            ),
            LayoutError::RingTooSmall(blocks) => write!(
                f,
                "a journal ring of {blocks} blocks is too small; accepted: {RING_BLOCKS_MIN} or more"
            ),
            LayoutError::NoBands => f.write_str("the disk needs at least one band"),
            LayoutError::TooLarge(blocks) => {
                write!(f, "{blocks:?} are more than a persistent cache can address")
            }
            LayoutError::LogPastConventional {
                needed,
                conventional,
            } => write!(
                f,
                "the persistent cache needs {needed:?} on tracks that do not overlap, \
                 the disk has {conventional:?}"
            ),
            LayoutError::DiskTooSmall {
                bands_that_fit,
                bands,
                disk,
            } => write!(
                f,
                "{bands_that_fit} of {bands} bands fit on the disk of {disk:?} \
                 beside the persistent cache, the scratch band and the guard tracks"
            ),
        }
    }
}

impl core::error::Error for LayoutError {}
