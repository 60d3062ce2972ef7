//! Leaves of the stack: what executes operations, simulated or real.

mod track_cursor;
mod track_parts;
mod tracks;

pub use track_cursor::TrackCursor;
pub use tracks::{ShingleRun, Shingling, TrackRun, TrackTable, UNKNOWN_TRACK};

use crate::buffer::{BufferSlice, Buffers};
use crate::command::{CommandError, Fault};
use crate::error::IoError;
use crate::extent::Extent;
use crate::map::BandTable;
use crate::operation::{Cause, Operation, RequestId};
use crate::saved::{Saved, SavedValue};
use crate::units::{BlockCount, Instant};
use crate::zone::{ZoneGeometry, ZoneModel};
use alloc::sync::Arc;

/// An operation on its way to a disk.
#[derive(Clone, Copy, Debug, SavedValue)]
pub struct DiskOp {
    /// To be returned with the completion.
    pub id: RequestId,
    /// What to do.
    pub operation: Operation,
    /// Where; empty for a flush.
    pub extent: Extent,
    /// The data, lent to the disk until it reports the completion.
    pub buffer: BufferSlice,
    /// Who wanted it.
    pub cause: Cause,
}

/// The result of an operation on a disk.
#[derive(Clone, Copy, Debug)]
pub struct DiskCompletion {
    /// As given with the operation.
    pub id: RequestId,
    /// What happened.
    pub result: Result<(), IoError>,
}

/// A leaf that executes operations.
///
/// Operations in flight together may be executed in any order; a layer that needs an order waits
/// for a completion, or locks.
pub trait Disk {
    /// What the layers above may know of the disk.
    fn geometry(&self) -> &Geometry;
    /// Takes an operation. A write's data may be taken at once or at any time before its
    /// completion; a read's buffer is filled by then.
    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers);
    /// An operation that has finished by `now`, in the order of finishing.
    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion>;
    /// When something will next finish; `None` when nothing is in flight, or when it will be
    /// signalled from outside.
    fn next_event(&self) -> Option<Instant>;
    /// Operations end by themselves, and the loop is woken then: the disk is asked at every event. One that is
    /// not is asked when it was given something, and when its [`next_event`](Self::next_event) has come.
    fn is_signalled(&self) -> bool {
        true
    }
    /// What comes of an operation is known when it was given, so the disk need not be asked before its
    /// [`next_event`](Self::next_event). Another one may decide something at the instant at which it was given one.
    fn is_settled_at_once(&self) -> bool {
        false
    }
    /// Breaks the disk in a way, or mends it.
    ///
    /// # Errors
    /// When the disk cannot be broken on purpose.
    fn set_fault(
        &mut self,
        _now: Instant,
        _fault: Fault,
        _buffers: &mut Buffers,
    ) -> Result<(), CommandError> {
        Err(CommandError::NotTaken)
    }
    /// The nodes above have lost the disk, and nothing is submitted to it any more: what is in flight
    /// ends soon, even where the medium never answers.
    fn abandon(&mut self) {}
    /// What there is to save of a disk that is simulated; `None` of one that cannot be saved.
    fn saved(&mut self) -> Option<&mut dyn Saved> {
        None
    }
}

/// What a disk is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Media {
    /// Rotating, tracks apart.
    Conventional,
    /// Rotating, tracks overlap.
    Shingled,
    /// No moving parts.
    SolidState,
}

crate::words! {
    /// What the contents of a medium survive.
    #[derive(PartialOrd, Ord, Default)]
    pub enum Survival {
        /// Nothing: plain memory.
        Nothing = "nothing",
        /// The death of the process: shared memory.
        Process = "process",
        /// A power cut, once flushed: a disk, or memory with a battery.
        #[default]
        Power = "power",
    }
}

/// How much a translation takes into its log before it must clean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogSize {
    /// Blocks.
    pub blocks: BlockCount,
    /// Entries of its map, where their number is limited. A run of blocks that arrives in one write
    /// is one entry.
    pub entries: Option<u64>,
}

impl LogSize {
    /// Written blocks that fill the log when each is a write of its own: what binds small writes.
    pub fn single_blocks(self) -> u64 {
        self.entries.map_or(self.blocks.0, |entries| entries.min(self.blocks.0))
    }
}

/// A node that keeps copies of blocks whose home is elsewhere. It may forget any copy at any time, and
/// it takes the [operations on copies](crate::operation::CopyOperation) alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyStore {
    /// Blocks of 4 KiB of one block of the store.
    pub block: BlockCount,
    /// It wants what a rewrite has read from the disk.
    pub wants_rewrite_reads: bool,
}

/// What a node tells the node above of itself.
#[derive(Clone, Debug)]
pub struct Geometry {
    /// Addressable blocks.
    pub blocks: BlockCount,
    /// What it is made of.
    pub media: Media,
    /// Tracks of a rotating disk and the way each run of them overlaps, for translations that place
    /// bands on them.
    pub tracks: Option<Arc<TrackTable>>,
    /// Bands of a translation, in its own addresses.
    pub bands: Option<Arc<BandTable>>,
    /// Zones that the node above must respect. None of a node that takes writes anywhere and hands them
    /// down later, whatever lies below.
    pub zones: Option<Arc<ZoneGeometry>>,
    /// Of a translation: the log through which written blocks go to its bands.
    pub log: Option<LogSize>,
    /// Of a translation that rewrites its bands in place: what it writes at least, in blocks of 4 KiB.
    /// Bands are made of these.
    pub rewrite_block: Option<BlockCount>,
    /// It tells a store of copies beside it which blocks it writes home.
    pub tells_copies: bool,
    /// What a store of copies says of itself; none of any other node.
    pub copies: Option<CopyStore>,
    /// What the contents survive, as the node says it of itself. A layer that keeps a journal of
    /// what it acknowledges on one port may say more than another port does. The layers there are
    /// say the least of their ports: each needs both to find what was flushed.
    pub survives: Survival,
    /// Where nothing was ever written there are zeroes. A disk that was in use before may hold anything
    /// there.
    pub is_blank: bool,
}

impl Geometry {
    /// A device of `blocks` blocks about which nothing else is known.
    pub fn plain(blocks: BlockCount, media: Media) -> Geometry {
        Geometry {
            blocks,
            media,
            tracks: None,
            bands: None,
            zones: None,
            log: None,
            rewrite_block: None,
            tells_copies: false,
            copies: None,
            survives: Survival::Power,
            is_blank: false,
        }
    }

    /// True when writing some of the first blocks destroys others behind them.
    pub fn overlaps_before(&self, blocks: BlockCount) -> bool {
        let tracks = self.tracks.as_deref();
        tracks.is_some_and(|it| it.overlap_tracks > 0 && it.conventional_prefix() < blocks)
    }

    /// True of a node with zones that must be written in sequence.
    pub fn refuses_random_writes(&self) -> bool {
        let zones = self.zones.as_deref();
        zones.is_some_and(|zones| zones.model == ZoneModel::HostManaged)
    }
}
