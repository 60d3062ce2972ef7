//! Why a persistent cache cannot be built as its settings say.

use super::log::PACKET_BLOCKS_MAX;
use crate::units::{BlockCount, Duration, Lba};
use core::fmt;

/// Smallest ring of a journal: a band rewrite and a few writes fit in the half that is filled
/// before a checkpoint.
pub(super) const RING_BLOCKS_MIN: u64 = 12;

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
    /// The longest that a stream must be to go around the log is shorter than the least.
    BypassAfterMax {
        /// The longest.
        after_max: BlockCount,
        /// The least.
        after: BlockCount,
    },
    /// The record of one flush fills the log.
    LogPerFlush(BlockCount),
    /// A stall of the map's journal may take so long.
    MapStall(Duration),
    /// Zones are kept in memory, so they cannot outlive a crash.
    ZonesNotDurable,
    /// The log of a host-aware disk lies on another disk.
    ZonesOnTwoDisks,
    /// Zones go with certain settings only.
    ZonesNeed,
    /// Log and home are to be read at the same time, in slices.
    GatherInSlices,
    /// Zones say themselves which of them take every write.
    InPlaceWithZones,
    /// More is to be written in place than there is.
    InPlacePastDevice {
        /// What is to be.
        in_place: BlockCount,
        /// What there is.
        device: BlockCount,
    },
    /// What is written in place has no record that a recovery could go by.
    InPlaceNotDurable,
    /// The tracks of the disk of the bands that do not overlap hold less than is written in place.
    InPlacePastConventional {
        /// What the bands that are written in place need.
        needed: BlockCount,
        /// What the disk has.
        conventional: BlockCount,
    },
    /// Blocks that may be updated in their slots are to move.
    MoveOfUpdated,
    /// A log of one slot has none to keep for what moves.
    NoRoomToMove,
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
    /// Slots are freed by zones, and records of flushes are of no zone.
    RecordsOfNoZone(BlockCount),
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
        /// The log lies on it too.
        has_log: bool,
    },
}

const NO_ENTRIES: &str = "the persistent cache needs room for at least one entry";
const NO_CHUNK: &str = "a clean needs chunks of at least one block to be interrupted between";

// Which settings go together: what to say of those that do not.
const UPDATE_NOT_DURABLE: &str = "\
    a persistent cache that updates blocks in place cannot outlive a power cut; accepted with \
    durability: update = append";
const REWRITE_NOT_DURABLE: &str = "\
    a persistent cache that rewrites bands in place, without a scratch copy, cannot outlive a \
    power cut; accepted with durability: rewrite = copy-then-home";
const EXTENT_NOT_DURABLE: &str = "\
    a persistent cache that outlives a power cut rewrites a band to its end; accepted with \
    durability: rewrite_extent = \"band\" or \"from-first-dirty\"";
const ZONES_NOT_DURABLE: &str = "\
    a host-aware disk keeps the states of its zones in memory, so it can be simulated and \
    emulated, but not created and served";
const ZONES_ON_TWO_DISKS: &str = "\
    a host-aware disk has its log beside its zones; accepted: one disk in `below`";
const ZONES_NEED: &str = "\
    a host-aware disk needs update = \"append\", bypass = \"off\", rewrite = \"in-place\", \
    rewrite_extent = \"from-first-dirty\", rewrite_covered = \"as-others\", gather = \"after\", clean_to = \"home\" and trim = \"from-log\"";
const ZONES_ARE_NOT_BANDS: &str = "the bands of a host-aware disk are its zones: leave `bands` out";
const RECORDS_OF_NO_ZONE: &str =
    "reclaim = \"zone\" frees what is of a zone, and log_per_flush takes";
const OVERLAPS_DOWNWARDS: &str = "\
    overlap downwards, and bands are written upwards; accepted: tracks that overlap upwards or not at all";
const GATHER_IN_SLICES: &str = "\
    gather = \"beside\" reads log and home at the same time, and with blocking_slice a clean stops between \
    short operations; accepted: one of them";
const IN_PLACE_WITH_ZONES: &str = "\
    in_place says which part of a device takes every write, and the zones of a host-aware disk say it \
    themselves; accepted: no in_place";
const IN_PLACE_NOT_DURABLE: &str = "\
    in_place writes over blocks without a record or a checksum that a recovery could go by; accepted with \
    durability: no in_place";
const MOVE_OF_UPDATED: &str = "\
    clean_to = \"log\" moves blocks that update = \"in-place\" may be writing in their slots; accepted: one of them";
const NO_ROOM_TO_MOVE: &str = "\
    clean_to = \"log\" keeps a slot of the persistent cache free, which has one; accepted: two blocks or more";
const MERGE_BUFFER_WITH_ZONES: &str = "\
    a host-aware disk reads a zone that is rewritten from the memory that holds all of it; \
    accepted: no merge_buffer";

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LayoutError::NoLog => f.write_str("the persistent cache needs at least one block"),
            LayoutError::NoEntries => f.write_str(NO_ENTRIES),
            LayoutError::PacketLength(blocks) => {
                write!(f, "a packet of {blocks:?} is not between 1 and {PACKET_BLOCKS_MAX} blocks")
            }
            LayoutError::NoChunk => f.write_str(NO_CHUNK),
            LayoutError::BypassAfterMax { after_max, after } => write!(
                f,
                "bypass_after_max = {} KiB is less than bypass_after = {} KiB; accepted: as much or \
                 more",
                after_max.bytes() / 1024,
                after.bytes() / 1024
            ),
            LayoutError::LogPerFlush(blocks) => write!(
                f,
                "a flush takes {blocks:?} of the persistent cache, which has no more; accepted: \
                 less than the persistent cache"
            ),
            LayoutError::RecordsOfNoZone(blocks) => write!(
                f,
                "{RECORDS_OF_NO_ZONE} {} KiB that are of none; accepted: one of them",
                blocks.bytes() / 1024
            ),
            LayoutError::MapStall(stall) => write!(
                f,
                "writes may wait {} s for the map; accepted: at most 1 h of `journal_stall` and, for \
                 the log that `journal_every_records` records of flushes take, \
                 `journal_stall_per_mib`",
                stall.0 / 1_000_000_000
            ),
            LayoutError::UpdateNotDurable => f.write_str(UPDATE_NOT_DURABLE),
            LayoutError::RewriteNotDurable => f.write_str(REWRITE_NOT_DURABLE),
            LayoutError::ExtentNotDurable => f.write_str(EXTENT_NOT_DURABLE),
            LayoutError::MergeBufferWithZones => f.write_str(MERGE_BUFFER_WITH_ZONES),
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
            LayoutError::ZonesNotDurable => f.write_str(ZONES_NOT_DURABLE),
            LayoutError::ZonesOnTwoDisks => f.write_str(ZONES_ON_TWO_DISKS),
            LayoutError::ZonesNeed => f.write_str(ZONES_NEED),
            LayoutError::GatherInSlices => f.write_str(GATHER_IN_SLICES),
            LayoutError::InPlaceWithZones => f.write_str(IN_PLACE_WITH_ZONES),
            LayoutError::InPlaceNotDurable => f.write_str(IN_PLACE_NOT_DURABLE),
            LayoutError::InPlacePastDevice { in_place, device } => write!(
                f,
                "in_place = {} KiB of a device of {} KiB; accepted: as much or less",
                in_place.bytes() / 1024,
                device.bytes() / 1024
            ),
            LayoutError::InPlacePastConventional { needed, conventional } => write!(
                f,
                "what is written in place needs {needed:?} on tracks that do not overlap, the disk of the \
                 bands has {conventional:?}"
            ),
            LayoutError::MoveOfUpdated => f.write_str(MOVE_OF_UPDATED),
            LayoutError::NoRoomToMove => f.write_str(NO_ROOM_TO_MOVE),
            LayoutError::ZonesAreNotBands => f.write_str(ZONES_ARE_NOT_BANDS),
            LayoutError::NoBands => f.write_str("the disk needs at least one band"),
            LayoutError::TooLarge(blocks) => {
                write!(f, "{blocks:?} are more than a persistent cache can address")
            }
            LayoutError::OverlapsDownwards(from) => {
                write!(f, "the tracks from block {} of the disk on {OVERLAPS_DOWNWARDS}", from.0)
            }
            LayoutError::LogPastConventional { needed, conventional } => write!(
                f,
                "the persistent cache needs {needed:?} on tracks that do not overlap, \
                 the disk has {conventional:?}"
            ),
            LayoutError::DiskTooSmall { bands_that_fit, bands, disk, has_log } => write!(
                f,
                "{bands_that_fit} of {bands} bands fit on the disk of {disk:?} \
                 beside {}the scratch band and the guard tracks",
                if *has_log { "the persistent cache, " } else { "" }
            ),
        }
    }
}

impl core::error::Error for LayoutError {}
