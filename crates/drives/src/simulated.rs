//! A disk of which only the behaviour exists.

use super::arm::Arm;
use super::bus_drive::{BusDrive, WriteRoom};
use super::contents::Contents;
use super::design::{DiskDesign, DiskOptions, Medium, RotatingMedium};
use super::due::Due;
use super::library::{Drive, DriveError};
use super::model::{CacheModel, DriveModel, MediaModel, PlatterModel, QueueModel};
use super::platters::Platters;
use super::rotating::{Electronics, RotatingDrive};
use super::seek::SeekCurve;
use super::segments::{Overheads, Segments};
use super::solid_state::SolidState;
use super::statistics::{DiskStatistics, OperationKind};
use super::write_cache::{RUN_BYTES_MAX, WriteCache};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::Operation;
use imbrex_core::rng::Rng;
use imbrex_core::saved::Saved;
use imbrex_core::units::{BLOCK_BYTES, BlockCount, Instant};
use std::rc::Rc;

/// The arm of a rotating drive, without anything that remembers what it read.
pub(super) fn bare_arm(
    platters: &PlatterModel,
    medium: Platters,
    curve: SeekCurve,
    options: &DiskOptions,
) -> Arm {
    let phase_ns = Rng::new(options.seed, 0).below(medium.revolution_ns());
    let (head_switch, write_settle) = (platters.head_switch.0.0, platters.write_settle.0);
    let arm = Arm::new(medium, curve, head_switch, write_settle, 0, phase_ns);
    arm.with_rotation(options.rotation)
}

#[derive(Saved)]
enum Mechanics {
    Conventional(#[saved(inner)] Box<RotatingDrive>),
    Shingled(#[saved(inner)] Box<RotatingDrive>),
    OnBus(#[saved(inner)] Box<BusDrive>),
    SolidState(#[saved(inner)] Box<SolidState>),
}

/// A simulated disk: how long operations take, what the blocks hold, and what was counted.
#[derive(Saved)]
pub struct SimulatedDisk {
    #[saved(keep)]
    geometry: Geometry,
    mechanics: Mechanics,
    #[saved(keep)]
    contents: Contents,
    due: Due,
    #[saved(keep)]
    statistics: Rc<DiskStatistics>,
    /// Blocks of the mechanics in one of the geometry: those of 4 KiB may be several sectors.
    #[saved(keep)]
    sectors_per_block: u64,
    /// Operations that failed when they arrived, by the order in which they end.
    failures: Vec<(DiskOp, IoError)>,
}

impl SimulatedDisk {
    /// A disk after a drive model.
    ///
    /// # Errors
    /// When the seek figures of the model contradict each other or the file for the contents
    /// cannot be used.
    pub fn new(drive: &Drive, options: &DiskOptions) -> Result<SimulatedDisk, DriveError> {
        DiskDesign::new(drive, options.clone())?.simulate()
    }

    /// The counters, which live as long as someone holds them.
    pub fn statistics(&self) -> Rc<DiskStatistics> {
        self.statistics.clone()
    }

    /// Brings the contents up to date at the arrival of an operation: the earliest instant at
    /// which a write may harm what lies beside it.
    #[inline]
    fn change_contents(&mut self, op: &DiskOp, buffers: &Buffers) -> Result<(), IoError> {
        match op.operation {
            Operation::Write { .. } if self.contents.is_nothing() => Ok(()),
            Operation::Write { .. } => {
                let tracks = match self.mechanics {
                    Mechanics::Shingled(_) => self.geometry.tracks.as_deref(),
                    _ => None,
                };
                self.contents.write(op.extent, op.buffer, buffers, tracks)
            }
            Operation::Zero { .. } => self.contents.zero(op.extent),
            Operation::Read | Operation::Flush => Ok(()),
            Operation::ZoneOpen
            | Operation::ZoneClose
            | Operation::ZoneReset
            | Operation::ZoneFinish
            | Operation::ZoneReport
            | Operation::Copy(_) => Err(IoError::Invalid),
        }
    }

    /// Lets the arm of a rotating disk do all that it has begun by `now`.
    #[inline(never)]
    fn move_arm(&mut self, now: Instant) {
        let (due, statistics) = (&mut self.due, &self.statistics);
        match &mut self.mechanics {
            Mechanics::Conventional(rotating) | Mechanics::Shingled(rotating) => {
                rotating.run(now, true, due, statistics);
            }
            Mechanics::OnBus(drive) => drive.run(now, true, due, statistics),
            Mechanics::SolidState(_) => {}
        }
    }

    /// When the arm has done something next, or an operation ends.
    #[inline(never)]
    fn next_event_of_arm(&self) -> Option<Instant> {
        let of_arm = match &self.mechanics {
            Mechanics::Conventional(rotating) | Mechanics::Shingled(rotating) => {
                rotating.next_event()
            }
            Mechanics::OnBus(drive) => drive.next_event(),
            Mechanics::SolidState(_) => None,
        };
        of_arm.into_iter().chain(self.due.next()).min()
    }

    /// What an operation that has ended is answered with; a read finds its data.
    #[inline(never)]
    fn result_of(&mut self, op: DiskOp, buffers: &mut Buffers) -> Result<(), IoError> {
        let failed = self.failures.iter().position(|(failed, _)| failed.id == op.id);
        match failed {
            Some(index) => Err(self.failures.remove(index).1),
            None if op.operation == Operation::Read => {
                let op = in_blocks(op, self.sectors_per_block);
                self.contents.read(op.extent, op.buffer, buffers)
            }
            None => Ok(()),
        }
    }
}

impl DiskDesign {
    /// The disk as a simulated one.
    ///
    /// # Errors
    /// When the file for the contents cannot be used.
    pub fn simulate(self) -> Result<SimulatedDisk, DriveError> {
        let DiskDesign { model, options, geometry, medium, write_cache, statistics } = self;
        let sectors_per_block = match options.in_sectors {
            true => 1,
            false => BLOCK_BYTES / model.sector_bytes(),
        };
        let kind = match options.in_sectors {
            true => ContentKind::Counted,
            false => options.contents,
        };
        let file = options.contents_file.as_deref();
        let contents =
            Contents::open(kind, geometry.blocks.0, file).map_err(|error| DriveError::Read {
                path: file.map_or(String::new(), |path| path.display().to_string()),
                reason: error.to_string(),
            })?;
        let mechanics = match medium {
            Medium::SolidState(solid_state) => {
                let state = SolidState::new(&solid_state, model.interface, write_cache);
                Mechanics::SolidState(Box::new(state))
            }
            Medium::Rotating(rotating) => mechanics(&model, *rotating, &options, write_cache),
        };
        Ok(SimulatedDisk {
            geometry,
            mechanics,
            contents,
            due: Due::default(),
            statistics,
            sectors_per_block,
            failures: Vec::new(),
        })
    }
}

impl Disk for SimulatedDisk {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        assert!(
            op.extent.end().0 <= self.geometry.blocks.0,
            "{:?} of {:?} past the end of the disk",
            op.operation,
            op.extent
        );
        if let Err(error) = self.change_contents(&op, buffers) {
            self.failures.push((op, error));
            self.due.push(now, op);
            return;
        }
        if let Some(kind) = OperationKind::of(op.operation) {
            self.statistics.arrived(kind, op.cause, op.extent);
        }
        match &mut self.mechanics {
            Mechanics::Conventional(rotating) | Mechanics::Shingled(rotating) => {
                let op = in_sectors(op, self.sectors_per_block);
                rotating.submit(now, op, &mut self.due, &self.statistics);
            }
            Mechanics::OnBus(drive) => {
                let op = in_sectors(op, self.sectors_per_block);
                drive.submit(now, op, &mut self.due, &self.statistics);
            }
            Mechanics::SolidState(state) => state.submit(now, op, &mut self.due, &self.statistics),
        }
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        if !self.is_settled_at_once() {
            self.move_arm(now);
        }
        let op = self.due.pop(now)?;
        let result = match self.failures.is_empty() && self.contents.is_nothing() {
            true => Ok(()),
            false => self.result_of(op, buffers),
        };
        Some(DiskCompletion { id: op.id, result })
    }

    fn saved(&mut self) -> Option<&mut dyn Saved> {
        Some(self)
    }

    fn is_signalled(&self) -> bool {
        false
    }

    fn is_settled_at_once(&self) -> bool {
        // An arm chooses when all have come that come together.
        matches!(self.mechanics, Mechanics::SolidState(_))
    }

    fn next_event(&self) -> Option<Instant> {
        match self.is_settled_at_once() {
            true => self.due.next(),
            false => self.next_event_of_arm(),
        }
    }
}

/// An operation as the mechanics address it.
#[inline]
fn in_sectors(mut op: DiskOp, sectors_per_block: u64) -> DiskOp {
    if sectors_per_block != 1 {
        let (start, blocks) = (op.extent.start.0, op.extent.blocks.0);
        op.extent = Extent::new(start * sectors_per_block, blocks * sectors_per_block);
    }
    op
}

/// An operation as the user addressed it.
#[inline]
fn in_blocks(mut op: DiskOp, sectors_per_block: u64) -> DiskOp {
    if sectors_per_block != 1 {
        let (start, blocks) = (op.extent.start.0, op.extent.blocks.0);
        op.extent = Extent::new(start / sectors_per_block, blocks / sectors_per_block);
    }
    op
}

/// The mechanics of a rotating drive.
fn mechanics(
    model: &DriveModel,
    rotating: RotatingMedium,
    options: &DiskOptions,
    write_cache: bool,
) -> Mechanics {
    let RotatingMedium { platters, curve } = rotating;
    let (Some(shape), Some(queue), Some(cache)) = (&model.platters, &model.queue, &model.cache)
    else {
        unreachable!("a design of a rotating disk has its tables");
    };
    let block_bytes = model.sector_bytes();
    let segments = model.segments.as_ref().map(|segments| Segments::new(segments, block_bytes));
    let mut arm = bare_arm(shape, platters, curve, options);
    arm.read_ahead_blocks = cache.read_ahead.0 / block_bytes;
    let electronics = electronics(model, queue, cache, options.in_sectors);
    let capacity = BlockCount(cache.write_buffer.0 / block_bytes);
    let arm = arm.with_segments(segments);
    if let Some(bus) = model.bus {
        let least = shape.least_write_seek;
        let arm = arm.with_bus(least.map_or(0, |span| span.0.0));
        let room = WriteRoom {
            blocks: capacity.0,
            writes: cache.write_segments as usize,
            answers_early: write_cache,
        };
        let drive = BusDrive::new(arm, bus, electronics, *queue, room);
        return Mechanics::OnBus(Box::new(drive));
    }
    let write_buffer = write_cache.then(|| {
        let run_blocks_max = RUN_BYTES_MAX / block_bytes;
        WriteCache::new(capacity, cache.write_segments as usize, run_blocks_max)
    });
    let drive = Box::new(RotatingDrive::new(arm, electronics, *queue, write_buffer));
    match model.media {
        MediaModel::Shingled => Mechanics::Shingled(drive),
        _ => Mechanics::Conventional(drive),
    }
}

fn electronics(
    model: &DriveModel,
    queue: &QueueModel,
    cache: &CacheModel,
    in_sectors: bool,
) -> Electronics {
    let block_bytes = model.sector_bytes();
    Electronics {
        command_overhead: queue.command_overhead.0,
        overheads: match &model.overheads {
            Some(overheads) => Overheads::of(overheads),
            None => Overheads::even(cache.latency.0, queue.command_overhead.0),
        },
        block_bytes,
        blocks_per_counted: match in_sectors {
            true => 1,
            false => BLOCK_BYTES / block_bytes,
        },
        interface: model.interface,
        destage_after: cache.destage_after.0,
    }
}
