//! What can be set on a translation by S-blocks, and why a set of settings may not fit a disk.

use crate::checksums::ChecksumSettings;
use crate::durability::DurabilitySettings;
use crate::units::{BLOCK_BYTES, BlockCount, Lba};
use alloc::sync::Arc;
use core::fmt;

/// Most blocks of 4 KiB of one block, for a ring notes in one word which of them it holds.
pub const RING_BLOCK_MAX: BlockCount = BlockCount(64);
/// Smallest ring of a journal: some rewrites fit in the half that is filled before a checkpoint.
pub const JOURNAL_RING_MIN: u64 = 12;
/// What a share of all is counted in.
pub const MILLION: u64 = 1_000_000;

/// Where tracks come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrackSource {
    /// All are this long: regions follow each other in the addresses of the disk, without guards.
    Dense(BlockCount),
    /// The disk's own.
    Disk,
}

crate::words! {
    /// Whether the spare slots of a region lie beside its data.
    pub enum SpareSlots {
        /// Beside it: a region of n S-blocks offers all of them.
        Extra = "extra",
        /// Among the n: it offers so many less.
        Inside = "inside",
    }
}

/// Which S-blocks hold data at the start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Prefill {
    /// All, in order.
    All,
    /// Those with these numbers, in order.
    Some(Arc<[u32]>),
    /// None.
    None,
}

crate::words! {
    /// When room is made.
    pub enum GcOrder {
        /// As soon as no slot is free: behind an append that took the last one, when the S-block's older
        /// copy is no more valid.
        RoomFirst = "room-first",
        /// When no slot is free for an append: the older copy is taken for invalid, then room is made,
        /// then the append goes there.
        InvalidateFirst = "invalidate-first",
    }

    /// Where the missing blocks of a rewrite are looked for first.
    pub enum Fill {
        /// On the disk.
        Disk = "disk",
        /// In the store of copies.
        Flash = "flash",
    }
}

/// Room of the ring of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RingSize {
    /// So many blocks; 0 is no ring.
    Blocks(u64),
    /// A share of the region's blocks, in millionths, rounded down.
    Share(u64),
}

/// What can be set on [`SBlocks`](super::SBlocks).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SBlockSettings {
    /// Blocks of 4 KiB of one block.
    pub block: BlockCount,
    /// Where tracks come from.
    pub track: TrackSource,
    /// Tracks of the data of a region. An S-block has as many blocks.
    pub region_tracks: u64,
    /// Tracks between a write and what it must not destroy, where the disk does not say more.
    pub guard_tracks: u64,
    /// Spare slots, in millionths of the S-blocks of a region, rounded to the nearest, at least one.
    pub spare_ppm: u64,
    /// Where they lie.
    pub slots: SpareSlots,
    /// Which S-blocks hold data at the start.
    pub prefill: Prefill,
    /// When room is made.
    pub gc_order: GcOrder,
    /// Where missing blocks are looked for.
    pub fill: Fill,
    /// What takes the writes that are no destages.
    pub ring: RingSize,
    /// Blocks of 4 KiB to offer: no more regions are used than that takes. All with `None`.
    pub wanted: Option<BlockCount>,
    /// What the journal may hold; without it nothing outlives a restart.
    pub durability: Option<DurabilitySettings>,
    /// The checksums that a durable translation keeps of all blocks, if it does.
    pub checksums: Option<ChecksumSettings>,
}

/// What is done in another way when the map outlives a restart, each a choice of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Keeping {
    /// What the journal may hold, where there is one.
    pub journal: Option<DurabilitySettings>,
    /// A block in a ring that is written again goes over its older parts, and what is forced is forced
    /// below.
    pub in_place: bool,
    /// How checksums are kept, where there are some.
    pub checksums: Option<ChecksumSettings>,
}

impl SBlockSettings {
    /// Blocks of 64 KiB, regions of 32 tracks of 4 MiB, a tenth to spare, and a ring of a tenth.
    pub fn new() -> SBlockSettings {
        SBlockSettings {
            block: BlockCount(16),
            track: TrackSource::Dense(BlockCount(1024)),
            region_tracks: 32,
            guard_tracks: 2,
            spare_ppm: MILLION / 10,
            slots: SpareSlots::Extra,
            prefill: Prefill::All,
            gc_order: GcOrder::RoomFirst,
            fill: Fill::Disk,
            ring: RingSize::Share(MILLION / 10),
            wanted: None,
            durability: None,
            checksums: None,
        }
    }

    /// Blocks of 4 KiB of an S-block.
    pub fn segment(&self) -> u64 {
        self.region_tracks * self.block.0
    }

    /// What is done in another way when the map outlives a restart.
    pub(super) fn keeping(&self) -> Keeping {
        match self.durability {
            None => Keeping { journal: None, in_place: true, checksums: None },
            journal => Keeping { journal, in_place: false, checksums: self.checksums },
        }
    }

    pub(super) fn check(&self) -> Result<(), SBlockError> {
        if self.block.0 == 0 || self.region_tracks == 0 || self.segment() > u64::from(u16::MAX) {
            return Err(SBlockError::SegmentLength(BlockCount(self.segment())));
        }
        let has_ring = !matches!(self.ring, RingSize::Blocks(0) | RingSize::Share(0));
        if has_ring && self.block > RING_BLOCK_MAX {
            return Err(SBlockError::BlockTooLongForRing(self.block));
        }
        if self.spare_ppm >= 100 * MILLION {
            return Err(SBlockError::Spare(self.spare_ppm));
        }
        if let TrackSource::Dense(track) = self.track
            && (track < self.block || !track.0.is_multiple_of(self.block.0))
        {
            return Err(SBlockError::TrackNotBlocks(track, self.block));
        }
        match self.keeping().journal {
            Some(journal) if journal.ring_blocks < JOURNAL_RING_MIN => {
                Err(SBlockError::JournalTooSmall(journal.ring_blocks))
            }
            _ => Ok(()),
        }
    }
}

impl Default for SBlockSettings {
    fn default() -> SBlockSettings {
        SBlockSettings::new()
    }
}

/// Why a translation by S-blocks cannot be built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SBlockError {
    /// An S-block is empty or too long.
    SegmentLength(BlockCount),
    /// A block is too long for the ring's table.
    BlockTooLongForRing(BlockCount),
    /// A ring has more places than its table can name.
    RingTooLong(u64),
    /// More spare slots than a hundred times the data.
    Spare(u64),
    /// A track is no whole number of blocks.
    TrackNotBlocks(BlockCount, BlockCount),
    /// The ring of journal blocks is too small.
    JournalTooSmall(u64),
    /// The spare slots leave no room for data.
    NoData {
        /// S-blocks of a region.
        segments: u64,
        /// Spare slots among them.
        spare: u64,
    },
    /// A region has more slots than its tables can name.
    TooManySlots(u64),
    /// The disk does not tell its tracks.
    NoTracks,
    /// Tracks from this block on overlap towards lower addresses.
    OverlapsDownwards(Lba),
    /// The tracks overlap, and what is written by arithmetic would destroy what is beside it.
    DenseOverlaps,
    /// No region fits.
    NoRegion {
        /// Blocks of the disk.
        blocks: BlockCount,
    },
    /// What must not overlap needs more tracks that do not.
    FrontTooSmall {
        /// Blocks of the journal, of the tables of checksums and of the rings.
        needed: BlockCount,
        /// Blocks that do not overlap at the start of the disk.
        there: BlockCount,
    },
    /// A store of copies has blocks of another length.
    CopyBlock {
        /// The store's.
        store: BlockCount,
        /// The translation's.
        block: BlockCount,
    },
    /// Copies are to fill a rewrite, and there is no store of them.
    NoCopies,
}

impl fmt::Display for SBlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kib = |blocks: &BlockCount| blocks.0 * BLOCK_BYTES / 1024;
        match self {
            SBlockError::SegmentLength(blocks) => write!(
                f,
                "an S-block of {} KiB (block times region_tracks); accepted: 4 KiB to {} KiB",
                kib(blocks),
                u64::from(u16::MAX) * BLOCK_BYTES / 1024
            ),
            SBlockError::BlockTooLongForRing(block) => write!(
                f,
                "block = {} KiB with a ring; accepted: up to {} KiB, or ring = 0",
                kib(block),
                kib(&RING_BLOCK_MAX)
            ),
            SBlockError::RingTooLong(blocks) => {
                write!(f, "ring = {blocks} blocks; accepted: up to {}", u64::from(u16::MAX) * 4 / 5)
            }
            SBlockError::Spare(ppm) => {
                write!(f, "spare = {} %; accepted: less than 10000 %", ppm / 10_000)
            }
            SBlockError::TrackNotBlocks(track, block) => write!(
                f,
                "track = {} KiB is no whole number of blocks of {} KiB; accepted: a multiple",
                kib(track),
                kib(block)
            ),
            SBlockError::JournalTooSmall(blocks) => {
                write!(f, "ring_blocks = {blocks}; accepted: {JOURNAL_RING_MIN} and more")
            }
            SBlockError::NoData { segments, spare } => write!(
                f,
                "slots = \"inside\": {spare} spare slots of {segments} leave none for data; \
                 accepted: a smaller spare, or a smaller block"
            ),
            SBlockError::TooManySlots(slots) => write!(
                f,
                "{slots} slots in a region; accepted: up to {}: use a larger block",
                u16::MAX
            ),
            SBlockError::NoTracks => {
                write!(f, "track = \"disk\": the node below does not tell its tracks")
            }
            SBlockError::OverlapsDownwards(from) => write!(
                f,
                "from block {} on the tracks overlap towards lower addresses; accepted: a disk whose \
                 tracks overlap upwards",
                from.0
            ),
            SBlockError::DenseOverlaps => write!(
                f,
                "the tracks of the disk overlap, and a track of a given size has no guards: what is \
                 written would destroy its neighbours; accepted: track = \"disk\""
            ),
            SBlockError::NoRegion { blocks } => {
                write!(f, "no region fits on a disk of {} KiB", kib(blocks))
            }
            SBlockError::FrontTooSmall { needed, there } => write!(
                f,
                "the journal, the checksums and the rings need {} KiB on tracks that do not overlap, at \
                 the start of the disk, and {} KiB are there",
                kib(needed),
                kib(there)
            ),
            SBlockError::CopyBlock { store, block } => write!(
                f,
                "block = {} KiB, and the store of copies has blocks of {} KiB; accepted: the same",
                kib(block),
                kib(store)
            ),
            SBlockError::NoCopies => write!(
                f,
                "fill = \"flash\" needs a store of copies; accepted: below = {{ disk, copies }}"
            ),
        }
    }
}
