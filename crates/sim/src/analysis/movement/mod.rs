//! How far the head of a disk is moved: the disk models of Le's thesis (2019, section 5).
//!
//! Each rule has a sentence in `docs/models/movement.md`. A first pass over the requests finds the
//! blocks they touch ([`Footprint`]); [`Movement`] then takes the same requests again and counts.

mod footprint;
mod geometry;
mod head;
mod in_place;
mod log;
mod marks;
mod settings;
mod timer;
mod trace;
mod written;

pub use footprint::Footprint;
pub use head::{CauseCounts, HeadCounts};
pub use settings::{
    ADDRESS_BLOCKS_MAX, FirstWrite, Model, MovementError, MovementSettings, RestExtent, RestUnit,
    TOUCHED_BLOCKS_MAX, WriteUnit,
};
pub use timer::ModelTime;
pub(crate) use trace::moved;
pub use trace::{TRACE_MOVEMENT_SCHEMA, TraceMovement, trace_movement};

use geometry::Geometry;
use head::Head;
use imbrex_core::operation::Cause;
use imbrex_drives::{Direction, Mechanism};
use imbrex_report::{ByCause, MovementCounts};
use in_place::{InPlace, Spill};
use log::Log;
use serde::Serialize;
use std::ops::Range;
use timer::Timer;
use written::Written;

/// What one model did.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ModelMovement {
    /// Which one.
    pub model: Model,
    /// Its head.
    #[serde(flatten)]
    pub head: HeadCounts,
    /// What it did for each cause; a trace has no cause but its host.
    #[serde(skip)]
    pub by_cause: ByCause<CauseCounts>,
    /// Writes to a block that was written before; with [`WriteUnit::Request`], to at least one.
    pub updates: u64,
    /// Writes behind which blocks were written back.
    pub rewrites: u64,
    /// Blocks written back.
    pub rewritten_blocks: u128,
    /// Blocks written to the spill area.
    pub spilled: u128,
    /// What it took on a drive; absent when it was only counted.
    #[serde(flatten)]
    pub time: Option<ModelTime>,
}

impl ModelMovement {
    /// The counts as a report has them; `None` when one has more than 64 bits.
    pub fn counts(&self) -> Option<MovementCounts> {
        let head = &self.head;
        Some(MovementCounts {
            model: self.model.into(),
            visits: u64::try_from(head.visits).ok()?,
            block: u64::try_from(head.block).ok()?,
            track: u64::try_from(head.track).ok()?,
            band: u64::try_from(head.band).ok()?,
            discontinuities: head.discontinuities,
            reversals: head.reversals,
            updates: self.updates,
            rewrites: self.rewrites,
            rewritten_blocks: u64::try_from(self.rewritten_blocks).ok()?,
            spilled: u64::try_from(self.spilled).ok()?,
            // None has more bits than the sums above.
            visits_by_cause: self.by_cause.map(|of| of.visits as u64),
            by_cause: self.by_cause.map(|of| of.block as u64),
        })
    }
}

/// A disk of one model.
#[derive(Clone, Debug)]
enum Disk {
    Conventional(Head),
    Log(Log),
    InPlace(InPlace),
}

/// Several models over the same requests.
#[derive(Clone, Debug)]
pub struct Movement {
    geometry: Geometry,
    settings: MovementSettings,
    written: Written,
    updates: u64,
    disks: Vec<(Model, Disk)>,
}

/// Blocks that are written, each for itself or all at once.
#[derive(Clone, Debug)]
struct Piece {
    first: u64,
    blocks: u64,
    ranks: Range<u64>,
    at_once: bool,
}

impl Movement {
    /// Disks on which nothing was read or written, for requests that touch `footprint`.
    ///
    /// # Errors
    /// When a setting is out of range or the requests touch too many blocks.
    pub fn new(
        models: &[Model],
        settings: MovementSettings,
        footprint: Footprint,
    ) -> Result<Movement, MovementError> {
        let geometry = settings.check()?;
        let touched = footprint.finish();
        if touched.blocks() > TOUCHED_BLOCKS_MAX {
            return Err(MovementError::Touched(touched.blocks()));
        }
        let head = || Head::new(geometry);
        // Log and spill area lie behind the last band that is touched.
        let start = touched.last().map_or(0, |last| geometry.band_end(last));
        let in_place = |spill| {
            let rest = (settings.rest, settings.rest_unit);
            Disk::InPlace(InPlace::new(head(), geometry, rest, spill))
        };
        let disks = models.iter().map(|&model| {
            let disk = match model {
                Model::Conventional => Disk::Conventional(head()),
                Model::Log => Disk::Log(Log::new(head(), touched.blocks(), start)),
                Model::InPlace => in_place(None),
                Model::Buffered => {
                    in_place(Some(Spill { buffer_blocks: settings.buffer_blocks, start }))
                }
            };
            (model, disk)
        });
        let disks = disks.collect();
        Ok(Movement {
            geometry,
            settings,
            written: Written::new(geometry, touched),
            updates: 0,
            disks,
        })
    }

    /// Lets every model have the mechanism of a drive, which tells what its visits take.
    pub fn time_on(&mut self, mechanism: &Mechanism) {
        for (_, disk) in &mut self.disks {
            disk.head().timer = Some(Timer::new(mechanism.clone()));
        }
    }

    /// The reads and writes from here on are wanted by `cause`, the host before.
    pub fn set_cause(&mut self, cause: Cause) {
        for (_, disk) in &mut self.disks {
            disk.head().cause = cause;
        }
    }

    /// Reads the blocks from `first` on, which must be in the footprint.
    pub fn read(&mut self, first: u64, blocks: u64) {
        if blocks == 0 {
            return;
        }
        let rank = self.written.rank(first);
        for (_, disk) in &mut self.disks {
            match disk {
                Disk::Log(log) => log.read(first, rank..rank + blocks),
                other => other.head().run(first, blocks, Direction::Read),
            }
        }
    }

    /// Writes the blocks from `first` on, which must be in the footprint.
    pub fn write(&mut self, first: u64, blocks: u64) {
        if blocks == 0 {
            return;
        }
        let rank = self.written.rank(first);
        let end = first + blocks;
        let mut block = first;
        while block < end {
            let at_once = self.settings.write_unit == WriteUnit::Request;
            let piece_end = match self.settings.rest_unit {
                _ if at_once => end,
                // Writes to one track have the same rest, and change nothing of it.
                RestUnit::Track => self.geometry.track_end(block).min(end),
                RestUnit::Block => block + 1,
            };
            self.write_piece(&Piece {
                first: block,
                blocks: piece_end - block,
                ranks: rank + (block - first)..rank + (piece_end - first),
                at_once,
            });
            block = piece_end;
        }
    }

    fn write_piece(&mut self, piece: &Piece) {
        let overwritten = self.written.count(piece.ranks.clone());
        self.updates += match piece.at_once {
            true => u64::from(overwritten > 0),
            false => overwritten,
        };
        for (_, disk) in &mut self.disks {
            match disk {
                Disk::Conventional(head) => head.run(piece.first, piece.blocks, Direction::Write),
                Disk::Log(log) => log.write(piece.ranks.clone()),
                Disk::InPlace(disk) => {
                    let is_free = self.settings.first_write == FirstWrite::Free;
                    disk.write_piece(piece, &self.written, is_free);
                }
            }
        }
        self.written.write(piece.first, piece.ranks.clone());
    }

    /// What the models did, in the order asked for.
    ///
    /// # Errors
    /// When a model visited blocks beyond the drive that gives the times.
    pub fn finish(self) -> Result<Vec<ModelMovement>, MovementError> {
        let updates = self.updates;
        let models = self.disks.into_iter().map(|(model, disk)| {
            let (head, in_place) = match disk {
                Disk::Conventional(head) => (head, None),
                Disk::Log(log) => (log.head, None),
                Disk::InPlace(disk) => (disk.head.clone(), Some(disk)),
            };
            let in_place = in_place.as_ref();
            let time = head.timer.as_ref().map(Timer::finish).transpose();
            let beyond = |(block, blocks)| MovementError::Beyond { model, block, blocks };
            Ok(ModelMovement {
                model,
                head: head.counts(),
                by_cause: head.by_cause(),
                updates,
                rewrites: in_place.map_or(0, |disk| disk.rewrites),
                rewritten_blocks: in_place.map_or(0, |disk| disk.rewritten_blocks),
                spilled: in_place.map_or(0, |disk| disk.spilled),
                time: time.map_err(beyond)?,
            })
        });
        models.collect()
    }
}

impl Disk {
    fn head(&mut self) -> &mut Head {
        match self {
            Disk::Conventional(head) => head,
            Disk::Log(log) => &mut log.head,
            Disk::InPlace(disk) => &mut disk.head,
        }
    }
}

impl InPlace {
    /// Writes a piece; a first write writes nothing back when these are `first_writes_free`.
    fn write_piece(&mut self, piece: &Piece, written: &Written, first_writes_free: bool) {
        let last = piece.first + (piece.blocks - 1);
        let rest = self.rest(written, piece.first, last);
        let run = (piece.first, piece.blocks);
        if rest.is_none() {
            self.write(run, None, written);
        } else if piece.at_once {
            let is_first = written.count(piece.ranks.clone()) == 0;
            let rest = rest.filter(|_| !(is_first && first_writes_free));
            self.write(run, rest.as_ref(), written);
        } else {
            for (rank, block) in piece.ranks.clone().zip(piece.first..) {
                let is_free = first_writes_free && !written.has(rank);
                let rest = rest.as_ref().filter(|_| !is_free);
                self.write((block, 1), rest, written);
            }
        }
    }
}

impl MovementSettings {
    /// The geometry of the disk, when all settings are in range.
    pub(crate) fn check(&self) -> Result<Geometry, MovementError> {
        if self.buffer_blocks == 0 {
            return Err(MovementError::Buffer);
        }
        let (track_blocks, band_tracks) = (self.track_blocks, self.band_tracks);
        Geometry::new(track_blocks, band_tracks)
            .ok_or(MovementError::Geometry(track_blocks, band_tracks))
    }
}
