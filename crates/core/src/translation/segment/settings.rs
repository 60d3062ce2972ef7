//! What can be set on a segment layout, and what cannot be.

use crate::checksums::ChecksumSettings;
use crate::durability::DurabilitySettings;
use crate::layer::Port;
use crate::units::{BLOCK_BYTES, BlockCount};
use core::fmt;

/// How long the tracks are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrackLength {
    /// All of one length, whatever the disk below has: the paper's arithmetic over the addresses of the
    /// disk. It says nothing about which tracks really overlap.
    Assumed(BlockCount),
    /// As the disk below says. Regions then lie on its tracks, with guards between them.
    OfDisk,
}

crate::words! {
    /// In which direction the regions overlap.
    pub enum RegionLayout {
        /// Neighbours in opposite directions: two regions share a guard (section 3.3).
        Wave = "wave",
        /// All in one direction: each region has its own guard.
        Conventional = "conventional",
    }

    /// Which blocks of a segment a rewrite writes.
    pub enum RewriteReach {
        /// Those that are dirty and those that would be destroyed.
        Cascade = "cascade",
        /// All that hold data.
        Whole = "whole",
    }

    /// Which blocks hold data.
    pub enum Holds {
        /// All, from the start.
        All = "all",
        /// Those that were written before.
        Touched = "touched",
    }
}

/// What a rewrite does before it writes home.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Journaling {
    /// Nothing: a power cut would lose what it has destroyed.
    Off,
    /// It writes to a slot what it is about to write home: the cost of losing nothing, and no more.
    Slots,
    /// It notes the slot in a journal too, so that nothing is lost.
    Durable(DurabilitySettings),
}

impl Journaling {
    /// Whether a rewrite writes to a slot first.
    pub fn has_slots(self) -> bool {
        self != Journaling::Off
    }

    /// Whether slots are noted, for the next start.
    pub fn has_notes(self) -> bool {
        self.notes().is_some()
    }

    /// The journal in which they are.
    pub fn notes(self) -> Option<DurabilitySettings> {
        match self {
            Journaling::Durable(settings) => Some(settings),
            _ => None,
        }
    }
}

/// Which ports a segment layer has beside that of its disk. They come before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SegmentPorts {
    /// A store of copies.
    pub copies: bool,
    /// What takes the journal instead of the disk.
    pub journal: bool,
}

impl SegmentPorts {
    /// The port of the store of copies.
    pub fn copies_port(self) -> Option<Port> {
        self.copies.then_some(Port(0))
    }

    /// The port of the disk.
    pub fn disk_port(self) -> Port {
        Port(u8::from(self.copies) + u8::from(self.journal))
    }

    /// The port of the journal.
    pub fn journal_port(self) -> Port {
        match self.journal {
            true => Port(u8::from(self.copies)),
            false => self.disk_port(),
        }
    }
}

/// The settings of a segment layout.
#[derive(Clone, Debug)]
pub struct SegmentSettings {
    /// How long tracks are.
    pub track: TrackLength,
    /// Length of a block.
    pub block: BlockCount,
    /// Tracks of a region: blocks of a segment.
    pub region_tracks: u64,
    /// How many tracks the writer is wide, the written one counted (kappa).
    pub kappa: u64,
    /// In which direction regions overlap.
    pub layout: RegionLayout,
    /// Which blocks a rewrite writes.
    pub rewrite: RewriteReach,
    /// Which blocks hold data.
    pub valid: Holds,
    /// What a rewrite does before it writes home.
    pub journal: Journaling,
    /// The checksums that a durable layout keeps of all blocks, if it does.
    pub checksums: Option<ChecksumSettings>,
    /// Blocks that are offered; as many as there is room for when absent.
    pub offered: Option<BlockCount>,
    /// The nodes below.
    pub ports: SegmentPorts,
}

/// Most tracks of a region: the paper's figures end at 128.
pub const REGION_TRACKS_MAX: u64 = 1024;
/// Most blocks of 4 KiB in a block: 8 MiB.
pub const BLOCK_BLOCKS_MAX: u64 = 2048;
/// Most tracks that a writer is wide.
pub const KAPPA_MAX: u64 = 64;
/// Most blocks of 4 KiB in a segment: 1 GiB.
pub const SEGMENT_BLOCKS_MAX: u64 = 1 << 18;

/// Why a segment layout cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SegmentError {
    /// A number is out of range.
    Range {
        /// The key.
        key: &'static str,
        /// Its value.
        value: u64,
        /// The least that is accepted.
        least: u64,
        /// The most.
        most: u64,
    },
    /// Not even one region has room below.
    NoRegion,
    /// Fewer blocks have room than are to be offered.
    TooFew {
        /// Blocks that have room.
        room: BlockCount,
        /// Blocks that are to be offered.
        offered: BlockCount,
    },
    /// The tracks of the disk overlap, and the layout does not lie on them.
    NotOnTracks,
    /// The disk does not say what tracks it has.
    UnknownTracks,
    /// A write of the disk destroys more tracks than the layout thinks.
    Narrow {
        /// Kappa of the layout.
        kappa: u64,
        /// Tracks that a write destroys beside its own.
        overlap_tracks: u64,
    },
    /// What must not be on overlapping tracks is on them.
    JournalOnShingles,
    /// The node of the journal is too small.
    JournalTooSmall {
        /// Blocks that are needed.
        needed: BlockCount,
        /// Blocks of the node.
        blocks: BlockCount,
    },
    /// A durable layout that forgets which blocks hold data.
    NotDurable(&'static str),
    /// The store of copies has blocks of another length.
    CopyBlock {
        /// Blocks of 4 KiB of one of its blocks.
        store: u64,
        /// And of one of the layout.
        block: u64,
    },
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            SegmentError::Range {
                key,
                value,
                least,
                most,
            } => write!(f, "{key} = {value}; accepted: {least} to {most}"),
            SegmentError::NoRegion => f.write_str(
                "no whole region has room below; accepted: a larger disk, fewer `region_tracks` or a \
                 shorter `block` or `track`",
            ),
            SegmentError::TooFew { room, offered } => write!(
                f,
                "{} B are asked of it, and whole regions below hold {} B",
                offered.bytes(),
                room.bytes()
            ),
            SegmentError::NotOnTracks => f.write_str(
                "the tracks of the disk overlap, so the layout must lie on them; accepted: track = \"disk\"",
            ),
            SegmentError::UnknownTracks => f.write_str(
                "track = \"disk\", and the disk does not say what tracks it has; accepted: a length, such \
                 as \"4MiB\"",
            ),
            SegmentError::Narrow {
                kappa,
                overlap_tracks,
            } => write!(
                f,
                "kappa = {kappa}, and a write of the disk destroys {overlap_tracks} tracks beside its own; \
                 accepted: {} or more",
                overlap_tracks + 1
            ),
            SegmentError::JournalOnShingles => f.write_str(
                "the journal would lie on tracks that overlap; accepted: a `journal` node, or a disk \
                 that begins with tracks that do not",
            ),
            SegmentError::JournalTooSmall { needed, blocks } => write!(
                f,
                "the journal needs {} B, and its node has {} B",
                needed.bytes(),
                blocks.bytes()
            ),
            SegmentError::NotDurable(what) => f.write_str(what),
            SegmentError::CopyBlock { store, block } => write!(
                f,
                "block = {} B, and the store of copies has blocks of {} B; accepted: the same",
                block * BLOCK_BYTES,
                store * BLOCK_BYTES
            ),
        }
    }
}

impl SegmentSettings {
    /// The paper's defaults: tracks of 4 MiB, blocks of 64 KiB, regions of 32 tracks, kappa 3.
    pub fn paper() -> SegmentSettings {
        SegmentSettings {
            track: TrackLength::Assumed(BlockCount(1024)),
            block: BlockCount(16),
            region_tracks: 32,
            kappa: 3,
            layout: RegionLayout::Wave,
            rewrite: RewriteReach::Cascade,
            valid: Holds::All,
            journal: Journaling::Slots,
            checksums: None,
            offered: None,
            ports: SegmentPorts::default(),
        }
    }

    /// Whether it keeps checksums: without a journal it never does.
    pub fn keeps_sums(&self) -> bool {
        self.checksums.is_some() && self.journal.has_notes()
    }

    /// Blocks of 4 KiB of a segment.
    pub fn segment_blocks(&self) -> u64 {
        self.region_tracks * self.block.0
    }

    /// Finds a number that is out of range.
    ///
    /// # Errors
    /// The first such number.
    pub fn check(&self) -> Result<(), SegmentError> {
        let within = |key, value, least, most| match (least..=most).contains(&value) {
            true => Ok(()),
            false => Err(SegmentError::Range { key, value, least, most }),
        };
        within("block (in blocks of 4096 B)", self.block.0, 1, BLOCK_BLOCKS_MAX)?;
        within("region_tracks", self.region_tracks, 1, REGION_TRACKS_MAX)?;
        within("kappa", self.kappa, 1, KAPPA_MAX)?;
        if let TrackLength::Assumed(track) = self.track {
            within("track (in blocks of 4096 B)", track.0, self.block.0, u64::MAX / 2)?;
        }
        let most = SEGMENT_BLOCKS_MAX;
        within("block x region_tracks (in blocks of 4096 B)", self.segment_blocks(), 1, most)?;
        match (self.journal.has_notes(), self.valid) {
            (true, Holds::Touched) => Err(SegmentError::NotDurable(
                "valid = \"touched\", and nothing keeps over a restart what was touched; accepted where \
                 nothing may be lost: \"all\"",
            )),
            _ => Ok(()),
        }
    }
}
