//! A part of a node as a node of its own, so that several stand on one.
//!
//! A slice keeps nothing. It moves addresses and passes operations on. Where the tracks of the node
//! below overlap, it offers whole tracks and leaves those unused that guard its neighbours: writing
//! any block of it destroys nothing outside of the blocks that it was given.

use crate::buffer::BufferSlice;
use crate::command::{CommandId, OnReplacement};
use crate::disk::{Geometry, Shingling, TrackTable};
use crate::error::IoError;
use crate::extent::Extent;
use crate::flush_failure::FlushFailure;
use crate::layer::{Context, Issue, Layer, Port};
use crate::map::Slab;
use crate::operation::{Completion, Operation, Request, RequestId, Tag};
use crate::planted::PlantedBug;
use crate::saved::{Saved, SavedValue};
use crate::units::{BlockCount, Lba};
use crate::zone::{ZoneGeometry, part_of_report};
use alloc::sync::Arc;
use core::fmt;

/// Why a slice cannot be where it is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SliceError {
    /// It ends past the node below, which has so many blocks.
    PastEnd {
        /// The end of the slice.
        end: Lba,
        /// Blocks of the node.
        blocks: BlockCount,
    },
    /// No whole track is left beside the guard of its neighbours; such a guard has so many tracks.
    NoRoom {
        /// Tracks of a guard.
        guard_tracks: u64,
    },
    /// It begins or ends inside of a zone; zones have so many blocks.
    CutsZone {
        /// Blocks of a zone.
        zone_blocks: BlockCount,
    },
}

impl fmt::Display for SliceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SliceError::PastEnd { end, blocks } => write!(
                f,
                "the slice ends at {} B, and what it is cut from has {} B",
                end.0 * crate::units::BLOCK_BYTES,
                blocks.bytes()
            ),
            SliceError::NoRoom { guard_tracks } => write!(
                f,
                "no whole track is left of the slice; accepted: more than the {guard_tracks} tracks \
                 that guard a neighbour"
            ),
            SliceError::CutsZone { zone_blocks } => write!(
                f,
                "the slice cuts a zone; accepted: an offset and a size of whole zones of {} B",
                zone_blocks.bytes()
            ),
        }
    }
}

/// What is waited for below.
#[derive(Clone, Copy, SavedValue)]
struct Passed {
    request: RequestId,
    operation: Operation,
    /// Where, in the addresses of the slice.
    extent: Extent,
    buffer: BufferSlice,
}

/// A part of a node.
///
/// A flush reaches the whole node below and bears the blocks of the slice, so that whoever counts
/// there knows for which slice it was. When one has failed, through whichever slice of the node, all
/// later flushes and forced writes fail as it did, until a new disk takes the place of the node.
#[derive(Debug, Saved)]
pub struct Slice {
    /// What it offers, in the addresses of the node below.
    #[saved(keep)]
    extent: Extent,
    #[saved(keep)]
    zones: Option<Arc<ZoneGeometry>>,
    failure: FlushFailure,
    passed: Slab<Passed>,
    /// What a planted bug moves into the guard.
    guarded: Option<Guarded>,
}

/// Tracks that a slice overlaps in one way up to a guard.
#[derive(Clone, Copy, Debug, SavedValue)]
struct Guarded {
    /// In the addresses of the node below.
    extent: Extent,
    /// Blocks of the guard, which lies behind; before where tracks overlap downwards.
    guard_blocks: u64,
    is_behind: bool,
}

impl fmt::Debug for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?}", self.operation, self.extent)
    }
}

impl Slice {
    /// The node that it is a part of.
    pub const BELOW: Port = Port(0);

    /// The part of a node that lies in `wanted`, and what it tells the node above. All slices of a
    /// node share one `failure`.
    ///
    /// On a node whose tracks overlap, `wanted` is rounded inward to whole tracks, and those at its
    /// ends whose writing would destroy a track outside are left out. Bands that it cuts are shorter.
    ///
    /// # Errors
    /// When it is not inside of the node, nothing is left of it, or it cuts a zone.
    pub fn new(
        wanted: Extent,
        below: &Geometry,
        failure: &FlushFailure,
    ) -> Result<(Slice, Geometry), SliceError> {
        let end = wanted.start.0.checked_add(wanted.blocks.0);
        if end.is_none_or(|end| end > below.blocks.0) {
            return Err(SliceError::PastEnd {
                end: Lba(end.unwrap_or(u64::MAX)),
                blocks: below.blocks,
            });
        }
        let tracks = below.tracks.as_deref();
        let extent = tracks.map_or(wanted, |tracks| tracks.harmless_part(wanted));
        if extent.is_empty() {
            let guard_tracks = tracks.map_or(0, |tracks| tracks.overlap_tracks);
            return Err(SliceError::NoRoom { guard_tracks });
        }
        let zones = below.zones.as_deref().map(|zones| {
            let zone_blocks = zones.zone_blocks;
            let part = zones.part(extent).map(Arc::new);
            part.ok_or(SliceError::CutsZone { zone_blocks })
        });
        let zones = zones.transpose()?;
        let geometry = Geometry {
            blocks: extent.blocks,
            media: below.media,
            tracks: tracks.map(|tracks| Arc::new(tracks.part(extent))),
            bands: below.bands.as_deref().map(|it| Arc::new(it.part(extent))),
            zones: zones.clone(),
            log: below.log,
            survives: below.survives,
            is_blank: below.is_blank,
            rewrite_block: None,
            tells_copies: false,
            copies: None,
        };
        let slice = Slice {
            extent,
            zones,
            failure: failure.clone(),
            passed: Slab::default(),
            guarded: tracks.and_then(|tracks| guarded(tracks, wanted, extent)),
        };
        Ok((slice, geometry))
    }

    /// The blocks that it offers, in the addresses of the node below.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// Where blocks of the slice lie below. A flush of everything is one of all its blocks.
    fn below(&self, extent: Extent, ctx: &Context<'_>) -> Extent {
        if extent.is_empty() {
            return self.extent;
        }
        let below = Extent::new(self.extent.start.0 + extent.start.0, extent.blocks.0);
        match self.guarded {
            Some(guarded) if ctx.is_planted(PlantedBug::SliceGuardLeftOut) => guarded.moved(below),
            _ => below,
        }
    }

    /// The flush that has failed, for an operation that such a failure concerns.
    fn failure(&self, operation: Operation, ctx: &Context<'_>) -> Option<IoError> {
        let is_forgotten = ctx.is_planted(PlantedBug::SliceFlushFailureForgotten);
        self.failure.of(operation).filter(|_| !is_forgotten)
    }

    /// Gives a report of zones the addresses of the slice.
    fn move_report(&self, passed: Passed, ctx: &mut Context<'_>) {
        let Some(zones) = &self.zones else {
            return;
        };
        let first = zones.zone_of(passed.extent.start);
        let report = ctx.metadata(passed.buffer);
        let moved = report.map(|report| part_of_report(report, self.extent, zones, first));
        if let Some(moved) = moved {
            ctx.fill_metadata(passed.buffer, &moved);
        }
    }
}

impl Guarded {
    /// Where blocks lie without the guard: nearer to the neighbour, or where they were.
    fn moved(self, below: Extent) -> Extent {
        if !self.extent.covers(below) {
            return below;
        }
        let start = match self.is_behind {
            true => below.start.0 + self.guard_blocks,
            false => below.start.0 - self.guard_blocks,
        };
        Extent::new(start, below.blocks.0)
    }
}

/// The run of tracks at an end of `extent` that needed a guard, which is the rest of `wanted`.
fn guarded(tracks: &TrackTable, wanted: Extent, extent: Extent) -> Option<Guarded> {
    let of_run = |track: u64, shingling: Shingling| {
        let runs = tracks.shingle_runs().iter();
        let run = runs.rev().find(|run| run.first_track <= track)?;
        let (first, last) = (run.first_track, run.first_track + run.tracks - 1);
        let blocks = Extent::between(tracks.extent_of(first).start, tracks.extent_of(last).end());
        let blocks = blocks.intersection(extent)?;
        (run.shingling == shingling).then_some(blocks)
    };
    let first = tracks.track_of(extent.start.0);
    let last = tracks.track_of(extent.end().0 - 1);
    let (before, behind) = (extent.start.0 - wanted.start.0, wanted.end().0 - extent.end().0);
    let guarded =
        |blocks, guard_blocks, is_behind| Guarded { extent: blocks, guard_blocks, is_behind };
    match of_run(last, Shingling::Upwards).filter(|_| behind > 0) {
        Some(blocks) => Some(guarded(blocks, behind, true)),
        None => of_run(first, Shingling::Downwards)
            .filter(|_| before > 0)
            .map(|blocks| guarded(blocks, before, false)),
    }
}

impl Layer for Slice {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        if ctx.is_lost(Slice::BELOW) {
            return ctx.finish(request.id, Err(IoError::Lost));
        }
        if let Some(error) = self.failure(request.operation, ctx) {
            return ctx.finish(request.id, Err(error));
        }
        let extent = self.below(request.extent, ctx);
        let number = self.passed.add(Passed {
            request: request.id,
            operation: request.operation,
            extent: request.extent,
            buffer: request.buffer,
        });
        ctx.issue(Issue {
            port: Slice::BELOW,
            operation: request.operation,
            extent,
            buffer: request.buffer,
            cause: request.cause,
            tag: Tag(u64::from(number)),
        });
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        let passed = self.passed.take(completion.tag.0 as u32);
        let mut result = completion.result;
        match (passed.operation, result) {
            (Operation::Flush, _) => {
                let told = self.failure.flush_ended(result);
                if !ctx.is_planted(PlantedBug::SliceFlushFailureForgotten) {
                    result = told;
                }
            }
            (Operation::ZoneReport, Ok(())) => self.move_report(passed, ctx),
            _ => {}
        }
        ctx.finish(passed.request, result);
    }

    fn on_replacement(&self) -> OnReplacement {
        OnReplacement::PassesOn
    }

    fn replaced(&mut self, _port: Port, _command: CommandId, _ctx: &mut Context<'_>) {
        self.failure.forget();
    }

    fn saved(&mut self) -> Option<&mut dyn Saved> {
        Some(self)
    }
}
