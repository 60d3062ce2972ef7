//! Leaves of the stack: what executes operations, simulated or real.

use crate::buffer::{BufferSlice, Buffers};
use crate::error::IoError;
use crate::extent::Extent;
use crate::map::BandTable;
use crate::operation::{Cause, Operation, RequestId};
use crate::units::{BlockCount, Instant};
use crate::zone::ZoneGeometry;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// An operation on its way to a disk.
#[derive(Clone, Copy, Debug)]
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

/// What a node tells the node above of itself.
#[derive(Clone, Debug)]
pub struct Geometry {
    /// Addressable blocks.
    pub blocks: BlockCount,
    /// What it is made of.
    pub media: Media,
    /// Tracks of a rotating disk, for translations that place bands on them.
    pub tracks: Option<Arc<TrackTable>>,
    /// Bands of a translation, in its own addresses.
    pub bands: Option<Arc<BandTable>>,
    /// Zones that the node above must respect.
    pub zones: Option<Arc<ZoneGeometry>>,
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
        }
    }
}

/// A run of tracks of equal length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TrackRun {
    /// First block of the run.
    pub first_block: u64,
    /// First track of the run.
    pub first_track: u64,
    /// Tracks in the run.
    pub tracks: u64,
    /// Blocks on each of them.
    pub blocks_per_track: u64,
}

/// Track length assumed of a disk that does not tell its tracks (1 MiB).
const UNKNOWN_TRACK_BLOCKS: u64 = 256;

/// Which block lies on which track, in address order, and which tracks overlap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrackTable {
    runs: Vec<TrackRun>,
    /// Blocks at the start of the disk whose tracks do not overlap.
    pub conventional_blocks: BlockCount,
    /// How many following tracks the writing of a shingled track destroys (kappa).
    pub overlap_tracks: u64,
}

impl TrackTable {
    /// A table of `(tracks, blocks_per_track)` runs in address order.
    ///
    /// Panics when a run is empty or the conventional part ends inside a track.
    pub fn new(
        runs: impl IntoIterator<Item = (u64, u64)>,
        conventional_blocks: BlockCount,
        overlap_tracks: u64,
    ) -> TrackTable {
        let (mut first_block, mut first_track) = (0, 0);
        let mut table = Vec::new();
        for (tracks, blocks_per_track) in runs {
            assert!(tracks > 0 && blocks_per_track > 0, "an empty run of tracks");
            table.push(TrackRun {
                first_block,
                first_track,
                tracks,
                blocks_per_track,
            });
            first_block += tracks * blocks_per_track;
            first_track += tracks;
        }
        let table = TrackTable {
            runs: table,
            conventional_blocks,
            overlap_tracks,
        };
        let edge = conventional_blocks.0;
        if edge < table.blocks() {
            let track = table.track_of(edge);
            assert_eq!(
                table.extent_of(track).start.0,
                edge,
                "conventional part inside a track"
            );
        }
        table
    }

    /// Blocks on all tracks.
    pub fn blocks(&self) -> u64 {
        self.runs
            .last()
            .map_or(0, |run| run.first_block + run.tracks * run.blocks_per_track)
    }

    /// Tracks in all.
    pub fn tracks(&self) -> u64 {
        self.runs
            .last()
            .map_or(0, |run| run.first_track + run.tracks)
    }

    /// The runs of tracks of equal length, in address order.
    pub fn runs(&self) -> &[TrackRun] {
        &self.runs
    }

    /// The run that holds a block. Panics past the end.
    #[inline]
    pub fn run_of_block(&self, block: u64) -> &TrackRun {
        let index = self.runs.partition_point(|run| run.first_block <= block) - 1;
        let run = &self.runs[index];
        assert!(
            block < run.first_block + run.tracks * run.blocks_per_track,
            "block past the end"
        );
        run
    }

    /// The track that holds a block. Panics past the end.
    #[inline]
    pub fn track_of(&self, block: u64) -> u64 {
        let run = self.run_of_block(block);
        run.first_track + (block - run.first_block) / run.blocks_per_track
    }

    /// The blocks of a track. Panics past the end.
    pub fn extent_of(&self, track: u64) -> Extent {
        let index = self.runs.partition_point(|run| run.first_track <= track) - 1;
        let run = &self.runs[index];
        assert!(track < run.first_track + run.tracks, "track past the end");
        let start = run.first_block + (track - run.first_track) * run.blocks_per_track;
        Extent::new(start, run.blocks_per_track)
    }

    /// The start of the track that follows the one before `end` and `guard` tracks more; the end of
    /// the disk when there is none.
    pub fn start_after(&self, end: u64, guard: u64) -> u64 {
        if end >= self.blocks() {
            return self.blocks();
        }
        let track = match end {
            0 => 0,
            _ => self.track_of(end - 1) + 1 + guard,
        };
        if track < self.tracks() {
            self.extent_of(track).start.0
        } else {
            self.blocks()
        }
    }

    /// A disk that does not tell its tracks: tracks of 1 MiB that do not overlap; `None` when it
    /// is shorter than one.
    pub(crate) fn unknown(blocks: BlockCount) -> Option<TrackTable> {
        let tracks = blocks.0 / UNKNOWN_TRACK_BLOCKS;
        let conventional = BlockCount(tracks * UNKNOWN_TRACK_BLOCKS);
        (tracks > 0).then(|| TrackTable::new([(tracks, UNKNOWN_TRACK_BLOCKS)], conventional, 0))
    }
}
