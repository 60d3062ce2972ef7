//! What can be set on a persistent cache, and why a set of settings may not fit a disk.

use super::layout_error::{LayoutError, RING_BLOCKS_MIN};
use super::log::PACKET_BLOCKS_MAX;
use crate::durability::DurabilitySettings;
use crate::units::{BlockCount, Duration};
use crate::zone::ZoneGeometry;
use alloc::sync::Arc;

crate::words! {
    /// What happens to a block that is written while it is in the log.
    pub enum UpdateMethod {
        /// It is appended and its old slot is superseded, as in a log-structured drive.
        Append = "append",
        /// It is overwritten in its slot, which keeps its place in the queue (the prototype of PORE).
        InPlace = "in-place",
    }

    /// How a band is rewritten.
    #[derive(Default)]
    pub enum RewriteMethod {
        /// The merged copy goes to the scratch band first, so that the old content lives until the
        /// new is complete.
        #[default]
        CopyThenHome = "copy-then-home",
        /// The merged copy goes straight over the old content (the emulator of PORE): a rewrite that
        /// fails in the middle loses what it had not written again.
        InPlace = "in-place",
    }

    /// Which part of a band is rewritten.
    #[derive(Default)]
    pub enum RewriteExtent {
        /// All of it.
        #[default]
        Band = "band",
        /// From the start of the track of the lowest block to be merged to the end of the band, as if
        /// every band were full.
        FromFirstDirty = "from-first-dirty",
        /// From there to the end of what was ever written to the band.
        FromFirstDirtyToWritten = "from-first-dirty-to-written",
    }

    /// What becomes of the blocks of a band that the log holds, when the band is rewritten.
    #[derive(Default)]
    pub enum CoveredBlocks {
        /// They are read at home and copied to the scratch band like all others.
        #[default]
        AsOthers = "as-others",
        /// They are not read at home, and a stretch that the log holds in full is not copied to the
        /// scratch band. Where the map outlives a power cut it is as with `AsOthers`: a rewrite there
        /// verifies all that it overwrites, and a recovery takes it up from the scratch copy.
        FromLog = "from-log",
    }

    /// When what the log holds of a band is read, in a rewrite for want of room. In idle time it is always read after
    /// home, one run at a time, so that a request waits for one disk operation at most.
    #[derive(Default)]
    pub enum Gather {
        /// Once home is read: what is read lands where it belongs.
        #[default]
        After = "after",
        /// At the same time, into memory of its own: two disks read then, where log and home lie on two.
        Beside = "beside",
    }

    /// Where cleaning for want of slots puts what is at the tail of the log.
    #[derive(Default)]
    pub enum CleanTo {
        /// Home: the band of the oldest block is rewritten.
        #[default]
        Home = "home",
        /// To the head of the log, each block once; the band of one that comes to the tail again is rewritten. So is
        /// the band of the oldest where entries are short, which no move frees, and in idle time.
        Log = "log",
    }

    /// When a host-aware disk frees the space of its log (its paper does not say which).
    #[derive(Default)]
    pub enum Reclaim {
        /// From the oldest slot on, as far as nothing that counts is left there: so the slots of a zone that was cleaned,
        /// and those that were written again, stay in use until that is true of all before them.
        #[default]
        Tail = "tail",
        /// That of a zone when it is cleaned, wherever it lies, with what was written again.
        Zone = "zone",
    }

    /// What a trim does.
    #[derive(Default)]
    pub enum TrimMethod {
        /// There is none: zeroes are written to the log like data.
        None = "none",
        /// It takes the blocks out of the log. A trim that reaches the end of a band lowers its write
        /// pointer. A rewrite takes as long as before.
        #[default]
        FromLog = "from-log",
        /// It does that, and what lies behind the last block in use is neither read nor rewritten; the
        /// write pointer of the band is there, however many trims it took. Where the map outlives a
        /// power cut a band is read to its write pointer and rewritten to its end, as with `FromLog`.
        Frees = "frees",
    }
}

/// How bands are rewritten; the default is whole bands, copy then home.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RewriteSettings {
    /// Where the merged copy goes.
    pub method: RewriteMethod,
    /// Which part of a band is rewritten.
    pub extent: RewriteExtent,
    /// What becomes of the blocks that the log holds.
    pub covered: CoveredBlocks,
    /// When what the log holds is read.
    pub gather: Gather,
    /// How much of a band the drive has memory to merge at a time; `None` for the longest band.
    pub merge_buffer_blocks: Option<BlockCount>,
    /// Time the firmware takes for each rewrite beside its disk operations: a calibrated parameter
    /// of a drive.
    pub overhead: Duration,
}

crate::words! {
    /// Which band is cleaned next in idle time.
    pub enum Victim {
        /// That of the oldest live block in the log.
        Fifo = "fifo",
        /// The one with the most live blocks in the log; of several the lowest.
        MostDirty = "most-dirty",
        /// The lowest with a live block in the log.
        Lba = "lba",
        /// The one that takes the least time for each entry of the map that it frees, beyond the paper; of several the lowest.
        Cheapest = "cheapest",
    }

    /// What idle cleaning does when a request arrives.
    pub enum OnArrival {
        /// It stops at the next chunk, unless what is left of the band is estimated to take no longer
        /// than [`IdleCleaning::finish_within`].
        FinishIfShort = "finish-if-short",
        /// It stops at once: chunks in flight are done anew.
        Abort = "abort",
        /// It stops at the next chunk.
        FinishChunk = "finish-chunk",
        /// It finishes the band whose reading has begun.
        FinishBand = "finish-band",
    }

    /// How far a clean in idle time goes before the drive looks for requests and loses its place.
    pub enum IdlePiece {
        /// Over the band: the disk goes on with the next chunk where the last one ends, from track to
        /// track.
        Band = "band",
        /// Over a track. The next track is begun when the one before it has ended. Its start has passed
        /// the head by then, which costs a turn.
        Track = "track",
    }
}

/// How bands are cleaned while no request is being served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdleCleaning {
    /// Time since the last request was answered after which cleaning begins: 250 ms on the
    /// ST8000AS0022 (Idler, IEEE TC 2020, table 1).
    pub after: Duration,
    /// Which band comes next.
    pub victim: Victim,
    /// How far a clean goes before the drive looks for requests.
    pub piece: IdlePiece,
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
            piece: IdlePiece::Band,
            on_arrival: OnArrival::FinishIfShort,
            finish_within: Duration::from_ms(100),
            resumes: true,
            chunk_blocks,
            chunk_time,
        }
    }
}

/// Which sequential streams go around the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BypassSettings {
    /// How long a stream must have been sequential before ...
    pub after_blocks: BlockCount,
    /// ... and at most, where flushes stop streams that are longer than that.
    pub after_max_blocks: BlockCount,
    /// Shortest write of it that may.
    pub min_blocks: BlockCount,
    /// Instead of streams that have lasted: writes that are sequential by themselves.
    pub classes: Option<StreamClasses>,
}

/// Which writes are sequential by themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamClasses {
    /// Streams that are followed, at least 1.
    pub streams: u32,
    /// How far behind the end of a stream a write that goes on with it may begin.
    pub gap_blocks: BlockCount,
    /// A write of so many blocks is sequential at once.
    pub large_blocks: BlockCount,
}

impl BypassSettings {
    /// Writes of any length of a stream that was so long.
    pub fn after(after_blocks: BlockCount) -> BypassSettings {
        BypassSettings {
            after_blocks,
            after_max_blocks: after_blocks,
            min_blocks: BlockCount::ZERO,
            classes: None,
        }
    }
}

impl Default for BypassSettings {
    /// After 1 MiB.
    fn default() -> BypassSettings {
        BypassSettings::after(BlockCount(256))
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
    /// Where the oldest blocks go.
    pub to: CleanTo,
}

/// What can be set on the map's journal; the default is none.
///
/// A *record* is a flush that follows a write to the log, with all that was written since the last
/// one, or, where nothing flushes, a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MapJournalSettings {
    /// How many records there are from one stall to the next; 0 is no stall.
    pub every_records: u64,
    /// How long the writes wait in a stall at least ...
    pub stall: Duration,
    /// ... and how much longer for each MiB of log that records took since the last stall.
    pub stall_per_mib: Duration,
    /// Slots that a record of a flush takes; 0 is a flush that writes no record.
    pub log_per_flush: BlockCount,
    /// Blocks that go to the log in one go, with one record, unless a flush comes before: the data
    /// crosses the interface first. 0 lets the log take data as it comes.
    pub transaction: BlockCount,
    /// Time the firmware takes for the record of a flush or of a transaction beside its disk
    /// operations: a calibrated parameter of a drive.
    pub flush_overhead: Duration,
}

/// Longest stall of a map's journal. Far beyond any; it leaves the clock room for millions.
const MAP_STALL_MAX: Duration = Duration::from_ms(3_600_000);

impl MapJournalSettings {
    /// How long a stall takes when every record was one of a flush.
    fn longest_stall(&self) -> Duration {
        if self.every_records == 0 {
            return Duration::ZERO;
        }
        let per_record = u128::from(self.stall_per_mib.0) * u128::from(self.log_per_flush.bytes());
        let growth_ns = per_record.saturating_mul(u128::from(self.every_records)) >> 20;
        let stall_ns = growth_ns.saturating_add(u128::from(self.stall.0));
        Duration(u64::try_from(stall_ns).unwrap_or(u64::MAX))
    }
}

/// What makes a persistent cache host-aware. Its bands are the zones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostAware {
    /// The zones.
    pub zones: Arc<ZoneGeometry>,
    /// How much of each zone with a write pointer holds data at the start, in thousandths.
    pub filled_permille: u32,
    /// When the space of the log is free again.
    pub reclaim: Reclaim,
    /// Time of a zone command.
    pub command: Duration,
    /// Time of a report of zones, once everything before it has finished.
    pub report: Duration,
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
    /// Blocks from the first on that lie, in whole bands, where every write goes home.
    pub in_place_blocks: BlockCount,
    /// Which sequential streams go around the log; `None` sends all writes to the log.
    pub bypass: Option<BypassSettings>,
    /// What a trim does.
    pub trim: TrimMethod,
    /// How a band is rewritten.
    pub rewrite: RewriteSettings,
    /// Longest run of blocks that is one log entry and one write; published drives take 512 KiB.
    pub packet_blocks_max: BlockCount,
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
            in_place_blocks: BlockCount::ZERO,
            bypass: None,
            trim: TrimMethod::default(),
            rewrite: RewriteSettings::default(),
            packet_blocks_max: BlockCount(128),
            blocking: BlockingCleaning { low_permille: 1000, slice: None, to: CleanTo::Home },
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
        let blocks_max = PACKET_BLOCKS_MAX;
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
        if let Some(bypass) = self.bypass
            && bypass.after_max_blocks < bypass.after_blocks
        {
            return Err(LayoutError::BypassAfterMax {
                after_max: bypass.after_max_blocks,
                after: bypass.after_blocks,
            });
        }
        let log_per_flush = self.map_journal.log_per_flush;
        if log_per_flush >= self.log_blocks {
            return Err(LayoutError::LogPerFlush(log_per_flush));
        }
        let stall = self.map_journal.longest_stall();
        if stall > MAP_STALL_MAX {
            return Err(LayoutError::MapStall(stall));
        }
        if let Some(durability) = &self.durability {
            self.check_durability(durability)?;
        }
        if self.rewrite.gather == Gather::Beside && self.blocking.slice.is_some() {
            return Err(LayoutError::GatherInSlices);
        }
        if self.blocking.to == CleanTo::Log {
            if self.update == UpdateMethod::InPlace {
                return Err(LayoutError::MoveOfUpdated);
            }
            if self.log_blocks.0 < 2 {
                return Err(LayoutError::NoRoomToMove);
            }
        }
        if let Some(host_aware) = &self.host_aware {
            if self.in_place_blocks.0 > 0 {
                return Err(LayoutError::InPlaceWithZones);
            }
            let takes_zones = self.bypass.is_none()
                && self.update == UpdateMethod::Append
                && self.rewrite.method == RewriteMethod::InPlace
                && self.rewrite.extent == RewriteExtent::FromFirstDirty
                && self.rewrite.covered == CoveredBlocks::AsOthers
                && self.rewrite.gather == Gather::After
                && self.blocking.to == CleanTo::Home
                && self.trim == TrimMethod::FromLog;
            if !takes_zones {
                return Err(LayoutError::ZonesNeed);
            }
            if self.rewrite.merge_buffer_blocks.is_some() {
                return Err(LayoutError::MergeBufferWithZones);
            }
            if host_aware.reclaim == Reclaim::Zone && log_per_flush.0 > 0 {
                return Err(LayoutError::RecordsOfNoZone(log_per_flush));
            }
        }
        Ok(())
    }

    fn check_durability(&self, durability: &DurabilitySettings) -> Result<(), LayoutError> {
        if self.host_aware.is_some() {
            return Err(LayoutError::ZonesNotDurable);
        }
        if self.update == UpdateMethod::InPlace {
            return Err(LayoutError::UpdateNotDurable);
        }
        if self.in_place_blocks.0 > 0 {
            return Err(LayoutError::InPlaceNotDurable);
        }
        if self.rewrite.method == RewriteMethod::InPlace {
            return Err(LayoutError::RewriteNotDurable);
        }
        if self.rewrite.extent == RewriteExtent::FromFirstDirtyToWritten {
            return Err(LayoutError::ExtentNotDurable);
        }
        if durability.ring_blocks < RING_BLOCKS_MIN {
            return Err(LayoutError::RingTooSmall(durability.ring_blocks));
        }
        Ok(())
    }
}
