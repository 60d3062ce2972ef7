//! Settings of RAID 4SMR, and what can be wrong with them.

use crate::array::ArrayError;
use crate::units::BlockCount;
use core::fmt;

crate::words! {
    /// Which home a block has.
    pub enum Placement {
        /// The next free place when it is written first, home after home.
        Append = "append",
        /// That of its address: block k is on home k modulo their number.
        Static = "static",
    }
}

crate::words! {
    /// Which first writes go home, where places are those of the addresses.
    pub enum FirstWrite {
        /// Those that destroy nothing: no later track of the band was written.
        Rule = "rule",
        /// All, as if tracks did not overlap: for counting alone.
        Free = "free",
    }
}

crate::words! {
    /// Which of the slots that were freed is used next. They are used before new ones.
    pub enum SlotOrder {
        /// The one with the lowest address.
        Lowest = "lowest",
        /// The one that was freed first.
        Fifo = "fifo",
    }
}

crate::words! {
    /// Where the bands of the homes come from.
    pub enum BandSource {
        /// The addresses of a home are cut into bands of tracks of one length, whatever lies below.
        Assumed = "arithmetic",
        /// Bands begin on the tracks of the disk, with guards between them; each has as many tracks as it needs.
        OfDisk = "disk",
    }
}

/// Settings of RAID 4SMR.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Raid4SmrSettings {
    /// Shingled members.
    pub homes: usize,
    /// Nodes that take the place of members that are lost.
    pub spares: usize,
    /// Where bands come from.
    pub bands: BandSource,
    /// Blocks of a track.
    pub track_blocks: u64,
    /// Tracks of a band.
    pub band_tracks: u64,
    /// Which home a block has.
    pub placement: Placement,
    /// Which first writes go home.
    pub first_write: FirstWrite,
    /// Blocks of a band row on the data disk at which it is collected; never, only to make room, where it is
    /// absent.
    pub collect_at: Option<u64>,
    /// Which freed slot is next.
    pub slots: SlotOrder,
    /// Slots of the data disk; as many as it and the parity disk have room for where it is absent.
    pub data_capacity: Option<BlockCount>,
    /// What is offered; all that there is where it is absent.
    pub offered: Option<BlockCount>,
}

impl Raid4SmrSettings {
    /// True when homes are written from their first place to their last.
    pub fn appends(&self) -> bool {
        self.placement == Placement::Append
    }

    /// Blocks of a band, by arithmetic.
    pub fn band_blocks(&self) -> u64 {
        self.track_blocks * self.band_tracks
    }

    /// How many members there are: homes, data and parity.
    pub fn columns(&self) -> usize {
        self.homes + 2
    }

    /// Finds values that cannot be.
    ///
    /// # Errors
    /// When there is one.
    pub fn check(&self) -> Result<(), Raid4SmrError> {
        if !(2..=super::super::COLUMNS_MAX - 2).contains(&self.homes) {
            return Err(Raid4SmrError::Homes(self.homes));
        }
        if self.first_write == FirstWrite::Free && self.placement == Placement::Append {
            return Err(Raid4SmrError::FreeAppend);
        }
        Ok(())
    }
}

/// Why nodes make no RAID 4SMR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Raid4SmrError {
    /// The data disk, the parity disk or a spare cannot be used.
    Array(ArrayError),
    /// There are too few homes or too many.
    Homes(usize),
    /// First writes are free where places are not those of the addresses.
    FreeAppend,
    /// Places are those of the addresses, over zones.
    StaticZones,
    /// Some homes have zones and others have not.
    MixedZones,
    /// Bands are to be those of the disk, and a home tells no tracks.
    NoTracks {
        /// Which home.
        home: usize,
    },
    /// A home has no two bands.
    ShortHome {
        /// Which home.
        home: usize,
        /// What it has.
        blocks: BlockCount,
        /// Two bands, with what stands between them.
        needed: BlockCount,
    },
    /// The parity disk has no two bands.
    ShortParity {
        /// What it has.
        blocks: BlockCount,
        /// Two bands.
        needed: BlockCount,
    },
    /// The threshold of collections is never reached, or always.
    CollectAt {
        /// What it is.
        found: u64,
        /// The most that it may be.
        most: u64,
    },
    /// There are more slots than rows of the parity disk, or of the data disk.
    Slots {
        /// How many there are to be.
        found: BlockCount,
        /// The most there can be.
        most: BlockCount,
    },
    /// The tracks of a spare overlap.
    ShingledSpare {
        /// Which spare.
        spare: usize,
    },
    /// More is offered than there is.
    TooMuch {
        /// What is offered.
        offered: BlockCount,
        /// What there is.
        room: BlockCount,
    },
}

impl From<ArrayError> for Raid4SmrError {
    fn from(error: ArrayError) -> Raid4SmrError {
        Raid4SmrError::Array(error)
    }
}

impl fmt::Display for Raid4SmrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Raid4SmrError::Array(error) => error.fmt(f),
            Raid4SmrError::Homes(found) => {
                let most = super::super::COLUMNS_MAX - 2;
                write!(f, "homes: {found} given; accepted: 2 to {most} nodes")
            }
            Raid4SmrError::FreeAppend => f.write_str(
                "first_write = \"free\" with placement = \"append\", where every first write goes home; \
                 accepted: with placement = \"static\"",
            ),
            Raid4SmrError::StaticZones => f.write_str(
                "placement = \"static\" over homes whose zones must be written in sequence; accepted: \
                 \"append\"",
            ),
            Raid4SmrError::MixedZones => f.write_str(
                "some homes have zones that must be written in sequence and others have not; accepted: homes \
                 that are all alike in this",
            ),
            Raid4SmrError::NoTracks { home } => write!(
                f,
                "bands = \"disk\", and home {home} does not tell its tracks; accepted: homes that are disks, \
                 or bands = \"arithmetic\""
            ),
            Raid4SmrError::ShortHome { home, blocks, needed } => write!(
                f,
                "home {home} has {} B; accepted: {} B or more, two bands",
                blocks.bytes(),
                needed.bytes()
            ),
            Raid4SmrError::ShortParity { blocks, needed } => write!(
                f,
                "the parity disk has {} B; accepted: {} B or more, two bands",
                blocks.bytes(),
                needed.bytes()
            ),
            Raid4SmrError::CollectAt { found, most } => {
                write!(f, "collect_at = {found}; accepted: 1 to {most}, \"band\" or \"never\"")
            }
            Raid4SmrError::Slots { found, most } => write!(
                f,
                "data_capacity: {} B; accepted: 4096 B to {} B, what the data disk and the parity disk have \
                 room for",
                found.bytes(),
                most.bytes()
            ),
            Raid4SmrError::ShingledSpare { spare } => write!(
                f,
                "the tracks of spare {spare} overlap, so it can stand for no member; accepted: nodes that \
                 take writes anywhere"
            ),
            Raid4SmrError::TooMuch { offered, room } => write!(
                f,
                "{} B are asked of it; accepted: up to {} B",
                offered.bytes(),
                room.bytes()
            ),
        }
    }
}
