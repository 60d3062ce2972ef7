//! What can be set on a persistent cache, and why a set of settings may not fit a disk.

use super::map_journal::MapJournalSettings;
use super::zones::HostAware;
use crate::durability::DurabilitySettings;
use crate::units::{BlockCount, Duration, Lba};
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
    /// From the start of the track of the lowest block to be merged to the end of the band, as if
    /// every band were full.
    FromFirstDirty,
    /// From there to the end of what was ever written to the band.
    FromFirstDirtyToWritten,
}

/// Which band is cleaned next in idle time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Victim {
    /// That of the oldest live block in the log.
    Fifo,
    /// The one with the most live blocks in the log; of several the lowest.
    MostDirty,
    /// The lowest with a live block in the log.
    Lba,
}

/// What idle cleaning does when a request arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnArrival {
    /// It stops at the next chunk, unless what is left of the band is estimated to take no longer
    /// than [`IdleCleaning::finish_within`].
    FinishIfShort,
    /// It stops at once: chunks in flight are done anew.
    Abort,
    /// It stops at the next chunk.
    FinishChunk,
    /// It finishes the band whose reading has begun.
    FinishBand,
}

/// How bands are cleaned while no request is being served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdleCleaning {
    /// Time since the last request was answered after which cleaning begins: 250 ms on the
    /// ST8000AS0022 (Idler, IEEE TC 2020, table 1).
    pub after: Duration,
    /// Which band comes next.
    pub victim: Victim,
    /// What happens when a request arrives.
    pub on_arrival: OnArrival,
    /// Longest estimated rest of a band that is finished though a request has arrived.
    pub finish_within: Duration,
    /// Whether the next idle period goes on where the last one was interrupted; otherwise it
    /// begins anew (an ablation).
    pub resumes: bool,
    /// Longest operation of a clean, so that a request never waits long for one. Two are under
    /// way at a time. At most a quarter of the shortest track is used, so that none of the two
    /// can destroy the other.
    pub chunk_blocks: BlockCount,
    /// What a chunk takes on the medium, for estimates.
    pub chunk_time: Duration,
}

impl IdleCleaning {
    /// Fifo, finishing what is left within 100 ms, going on where it was interrupted.
    pub fn new(after: Duration, chunk_blocks: BlockCount, chunk_time: Duration) -> IdleCleaning {
        IdleCleaning {
            after,
            victim: Victim::Fifo,
            on_arrival: OnArrival::FinishIfShort,
            finish_within: Duration::from_ms(100),
            resumes: true,
            chunk_blocks,
            chunk_time,
        }
    }
}

/// How bands are cleaned when a write has no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockingCleaning {
    /// Once begun, it goes on until no more of the slots, and no more of the entries, are in use
    /// than this share in thousandths; 1000 makes only as much room as a write needs.
    pub low_permille: u32,
    /// Longest cleaning between two requests that can be served, which wait for it; with `None`
    /// they are served at once.
    pub slice: Option<Duration>,
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
    /// How much of a band the drive has memory to merge at a time; `None` for the longest band.
    pub merge_buffer_blocks: Option<BlockCount>,
    /// Longest run of blocks that is one log entry and one write; published drives take 512 KiB.
    pub packet_blocks_max: BlockCount,
    /// Time the firmware takes for each band rewrite beside its disk operations: a calibrated
    /// parameter of a drive.
    pub rewrite_overhead: Duration,
    /// How bands are cleaned for want of room.
    pub blocking: BlockingCleaning,
    /// How bands are cleaned in idle time; `None` cleans only for want of room.
    pub idle: Option<IdleCleaning>,
    /// What the drive does to keep its map over a power cut.
    pub map_journal: MapJournalSettings,
    /// What the host sees of the bands as zones; `None` shows none.
    pub host_aware: Option<HostAware>,
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
            merge_buffer_blocks: None,
            packet_blocks_max: BlockCount(128),
            rewrite_overhead: Duration::ZERO,
            blocking: BlockingCleaning {
                low_permille: 1000,
                slice: None,
            },
            idle: None,
            map_journal: MapJournalSettings::default(),
            host_aware: None,
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
        if self.idle.is_some_and(|idle| idle.chunk_blocks.0 == 0) {
            return Err(LayoutError::NoChunk);
        }
        let log_per_flush = self.map_journal.log_per_flush;
        if log_per_flush >= self.log_blocks {
            return Err(LayoutError::LogPerFlush(log_per_flush));
        }
        if self.host_aware.is_some() {
            if self.durability.is_some() {
                return Err(LayoutError::ZonesNotDurable);
            }
            let takes_zones = !self.bypass
                && self.update == UpdateMethod::Append
                && self.rewrite == RewriteMethod::InPlace
                && self.rewrite_extent == RewriteExtent::FromFirstDirty;
            if !takes_zones {
                return Err(LayoutError::ZonesNeed);
            }
            if self.merge_buffer_blocks.is_some() {
                return Err(LayoutError::MergeBufferWithZones);
            }
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
        if self.rewrite_extent == RewriteExtent::FromFirstDirtyToWritten {
            return Err(LayoutError::ExtentNotDurable);
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
    /// A clean that can be interrupted is made of empty chunks.
    NoChunk,
    /// The record of one flush fills the log.
    LogPerFlush(BlockCount),
    /// Zones are kept in memory, so they cannot outlive a crash.
    ZonesNotDurable,
    /// Zones go with certain settings only.
    ZonesNeed,
    /// The zones are no bands of the translation.
    ZonesAreNotBands,
    /// There is no band.
    NoBands,
    /// Blocks are updated in place, and a power cut in such a write would lose what was durable.
    UpdateNotDurable,
    /// Bands are rewritten in place, and a power cut in a rewrite would lose what was durable.
    RewriteNotDurable,
    /// A recovery takes a rewritten band to be whole.
    ExtentNotDurable,
    /// A zone is read from the memory it is merged in.
    MergeBufferWithZones,
    /// What is merged at a time is shorter than what it takes to go on from there.
    MergeBufferTooSmall {
        /// The buffer.
        buffer: BlockCount,
        /// The smallest that is accepted.
        needed: BlockCount,
    },
    /// The ring of journal blocks is too small.
    RingTooSmall(u64),
    /// The addresses are too large for the log's records.
    TooLarge(BlockCount),
    /// Tracks from this block on overlap towards lower addresses, and bands are written upwards.
    OverlapsDownwards(Lba),
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
            LayoutError::NoChunk => {
                f.write_str("a clean needs chunks of at least one block to be interrupted between")
            }
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
            LayoutError::ExtentNotDurable => f.write_str(
                "a persistent cache that outlives a power cut rewrites a band to its end; accepted \
                 with durability: rewrite_extent = \"band\" or \"from-first-dirty\"",
            ),
            LayoutError::MergeBufferWithZones => f.write_str(
                "a host-aware disk reads a zone that is rewritten from the memory that holds all \
                 of it; accepted: no merge_buffer",
            ),
            LayoutError::MergeBufferTooSmall { buffer, needed } => write!(
                f,
                "merge_buffer = {} KiB is too small; accepted: {} KiB or more, one track beside \
                 those that the writing of one destroys",
                buffer.bytes() / 1024,
                needed.bytes() / 1024
            ),
            LayoutError::RingTooSmall(blocks) => write!(
                f,
                "a journal ring of {blocks} blocks is too small; accepted: {RING_BLOCKS_MIN} or more"
            ),
            LayoutError::ZonesNotDurable => f.write_str(
                "a host-aware disk keeps the states of its zones in memory, so it can be simulated \
                 and emulated, but not created and served",
            ),
            LayoutError::ZonesNeed => f.write_str(
                "a host-aware disk needs update = \"append\", bypass = \"off\", rewrite = \
                 \"in-place\" and rewrite_extent = \"from-first-dirty\"",
            ),
            LayoutError::ZonesAreNotBands => {
                f.write_str("the bands of a host-aware disk are its zones: leave `bands` out")
            }
            LayoutError::NoBands => f.write_str("the disk needs at least one band"),
            LayoutError::TooLarge(blocks) => {
                write!(f, "{blocks:?} are more than a persistent cache can address")
            }
            LayoutError::OverlapsDownwards(from) => write!(
                f,
                "the tracks from block {} of the disk on overlap downwards, and bands are written \
                 upwards; accepted: tracks that overlap upwards or not at all",
                from.0
            ),
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
