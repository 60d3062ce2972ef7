//! A disk of which only the behaviour exists.

use super::arm::Arm;
use super::bus_drive::{BusDrive, WriteRoom};
use super::contents::Contents;
use super::due::Due;
use super::library::{Drive, DriveError};
use super::model::{
    CacheModel, DriveModel, MediaModel, PlatterModel, QueueModel, STEP_MAX, SeekModel,
};
use super::platters::{PlatterShape, Platters};
use super::rotating::{Electronics, RotatingDrive};
use super::seek::{DatasheetSeek, SeekCurve};
use super::segments::{Overheads, Segments};
use super::shingles::Shingles;
use super::solid_state::SolidState;
use super::statistics::{DiskStatistics, OperationKind};
use super::write_cache::{RUN_BYTES_MAX, WriteCache};
use crate::quantity::Size;
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry, Media, Survival, TrackTable};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::Operation;
use imbrex_core::rng::Rng;
use imbrex_core::units::{BLOCK_BYTES, BlockCount, Instant};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

const NS_PER_MINUTE: u64 = 60_000_000_000;

/// How a disk is made from a drive model.
#[derive(Clone, Debug)]
pub struct DiskOptions {
    /// Blocks of the medium; `None` is what the capacity of the model needs, divided by `scale`.
    pub capacity: Option<BlockCount>,
    /// Divides the capacity of the model. Mechanics stay: tracks are as long as before and fewer,
    /// and the arm takes as long from the first to the last.
    pub scale: u64,
    /// Parts of a shingled disk whose tracks do not overlap, each rounded outward to whole tracks,
    /// beside those that its drive file lists. Where `capacity` is `None` the medium has room for
    /// these as [`DriveModel::physical_blocks`] says.
    pub conventional: Vec<Extent>,
    /// What the medium holds: the same as the buffers of the engine.
    pub contents: ContentKind,
    /// A file to keep bytes in, instead of memory.
    pub contents_file: Option<PathBuf>,
    /// Whether the write cache of the drive is on; `None` is as the model says.
    pub write_cache: Option<bool>,
    /// False takes rotational latency out of a rotating drive; seeks, head switches, transfers and
    /// the electronics stay as they are.
    pub rotation: bool,
    /// Decides the angle of the spindle at time zero.
    pub seed: u64,
    /// What the contents survive, for whoever stands on the disk.
    pub survives: Survival,
    /// Addresses and lengths are in sectors of the drive instead of blocks of 4 KiB, for requests
    /// that are no multiple of those. Such a disk holds nothing.
    pub in_sectors: bool,
}

impl Default for DiskOptions {
    /// The drive as it is, holding nothing.
    fn default() -> DiskOptions {
        DiskOptions {
            capacity: None,
            scale: 1,
            conventional: Vec::new(),
            contents: ContentKind::Counted,
            contents_file: None,
            write_cache: None,
            rotation: true,
            seed: 0,
            survives: Survival::Power,
            in_sectors: false,
        }
    }
}

enum Mechanics {
    Conventional(Box<RotatingDrive>),
    Shingled(Box<RotatingDrive>),
    OnBus(Box<BusDrive>),
    SolidState(SolidState),
}

impl Mechanics {
    /// The tracks of a rotating drive.
    fn tracks(&self) -> Option<&Arc<TrackTable>> {
        let arm = match self {
            Mechanics::Conventional(drive) | Mechanics::Shingled(drive) => drive.arm(),
            Mechanics::OnBus(drive) => drive.arm(),
            Mechanics::SolidState(_) => return None,
        };
        Some(arm.platters.tracks())
    }
}

/// A simulated disk: how long operations take, what the blocks hold, and what was counted.
pub struct SimulatedDisk {
    geometry: Geometry,
    mechanics: Mechanics,
    contents: Contents,
    due: Due,
    statistics: Rc<DiskStatistics>,
    write_cache: bool,
    /// Blocks of the mechanics in one of the geometry: those of 4 KiB may be several sectors.
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
        let model = &drive.model;
        let blocks = options.capacity.unwrap_or_else(|| {
            let user = model.user_blocks(options.scale);
            let conventional = options.conventional.iter().map(|part| part.blocks.0);
            model.physical_blocks(user, BlockCount(conventional.sum()))
        });
        let write_cache = options.write_cache.unwrap_or(model.write_cache);
        let sectors_per_block = match options.in_sectors {
            true => 1,
            false => BLOCK_BYTES / model.sector_bytes(),
        };
        let wrong = |reason| DriveError::Model { file: drive.file.clone(), reason };
        let (mechanics, geometry) = match (&model.solid_state, model.media) {
            (Some(solid_state), _) => {
                let state = SolidState::new(solid_state, model.interface, write_cache);
                let geometry = Geometry::plain(blocks, Media::SolidState);
                (Mechanics::SolidState(state), geometry)
            }
            (None, _) => {
                let mechanics = rotating(model, blocks, options, write_cache).map_err(wrong)?;
                let tracks = mechanics.tracks().expect("a rotating drive").clone();
                let geometry = rotating_geometry(model, options, blocks, tracks);
                (mechanics, geometry)
            }
        };
        let file = options.contents_file.as_deref();
        let kind = match options.in_sectors {
            true => ContentKind::Counted,
            false => options.contents,
        };
        let contents =
            Contents::open(kind, geometry.blocks.0, file).map_err(|error| DriveError::Read {
                path: file.map_or(String::new(), |path| path.display().to_string()),
                reason: error.to_string(),
            })?;
        Ok(SimulatedDisk {
            geometry: Geometry { survives: options.survives, ..geometry },
            mechanics,
            contents,
            due: Due::default(),
            statistics: Rc::default(),
            write_cache,
            sectors_per_block,
            failures: Vec::new(),
        })
    }

    /// The counters, which live as long as someone holds them.
    pub fn statistics(&self) -> Rc<DiskStatistics> {
        self.statistics.clone()
    }

    /// Counts beside what another disk has counted, in whose place this one is.
    pub fn count_into(&mut self, statistics: Rc<DiskStatistics>) {
        self.statistics = statistics;
    }

    /// Whether the write cache of the drive is on.
    pub fn write_cache(&self) -> bool {
        self.write_cache
    }

    /// Brings the contents up to date at the arrival of an operation: the earliest instant at
    /// which a write may harm what lies beside it.
    fn change_contents(&mut self, op: &DiskOp, buffers: &Buffers) -> Result<(), IoError> {
        match op.operation {
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
        let (due, statistics) = (&mut self.due, &self.statistics);
        match &mut self.mechanics {
            Mechanics::Conventional(rotating) | Mechanics::Shingled(rotating) => {
                rotating.run(now, true, due, statistics);
            }
            Mechanics::OnBus(drive) => drive.run(now, true, due, statistics),
            Mechanics::SolidState(_) => {}
        }
        let op = self.due.pop(now)?;
        let failed = self.failures.iter().position(|(failed, _)| failed.id == op.id);
        let result = match failed {
            Some(index) => Err(self.failures.remove(index).1),
            None if op.operation == Operation::Read => {
                let op = in_blocks(op, self.sectors_per_block);
                self.contents.read(op.extent, op.buffer, buffers)
            }
            None => Ok(()),
        };
        Some(DiskCompletion { id: op.id, result })
    }

    fn next_event(&self) -> Option<Instant> {
        let due = self.due.next();
        match &self.mechanics {
            Mechanics::Conventional(rotating) | Mechanics::Shingled(rotating) => {
                rotating.next_event().into_iter().chain(due).min()
            }
            Mechanics::OnBus(drive) => drive.next_event().into_iter().chain(due).min(),
            Mechanics::SolidState(_) => due,
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

/// The seek curve of a model over `cylinders`.
pub(super) fn seek_curve(seek: &SeekModel, cylinders: u64) -> Result<SeekCurve, String> {
    let curve = any_seek_curve(seek, cylinders)?;
    let longest_ns = curve.time_ns(cylinders);
    match longest_ns > STEP_MAX.0 {
        true => Err(format!(
            "[seek] takes {} ms over {cylinders} cylinders; accepted: at most 1000",
            longest_ns / 1_000_000
        )),
        false => Ok(curve),
    }
}

fn any_seek_curve(seek: &SeekModel, cylinders: u64) -> Result<SeekCurve, String> {
    if let Some(points) = &seek.table {
        return SeekCurve::table(points, cylinders);
    }
    if let Some(formula) = &seek.formula {
        return SeekCurve::formula(formula, cylinders);
    }
    let [track_to_track_ms, average_ms, full_stroke_ms] = seek.figures_ms();
    let figures = DatasheetSeek { track_to_track_ms, average_ms, full_stroke_ms };
    SeekCurve::solve(figures, cylinders)
}

/// What the layers above may know of a rotating disk of `blocks` blocks.
fn rotating_geometry(
    model: &DriveModel,
    options: &DiskOptions,
    blocks: BlockCount,
    tracks: Arc<TrackTable>,
) -> Geometry {
    let platters = model.platters.as_ref();
    let is_listed = platters.is_some_and(|platters| platters.zone_table.is_some());
    let (blocks, media) = match model.media {
        MediaModel::Shingled => (BlockCount(tracks.blocks()), Media::Shingled),
        // Of conventional media the last tracks stay unused when they are not full.
        _ if options.in_sectors => {
            let sectors = blocks.bytes() / model.sector_bytes();
            (BlockCount(sectors), Media::Conventional)
        }
        _ => (blocks, Media::Conventional),
    };
    Geometry { tracks: (!is_listed).then_some(tracks), ..Geometry::plain(blocks, media) }
}

fn rotating(
    model: &DriveModel,
    blocks: BlockCount,
    options: &DiskOptions,
    write_cache: bool,
) -> Result<Mechanics, String> {
    let (Some(queue), Some(cache)) = (&model.queue, &model.cache) else {
        return Err("a rotating drive needs [platters], [seek], [queue] and [cache]".to_string());
    };
    let block_bytes = model.sector_bytes();
    let segments = model.segments.as_ref().map(|segments| Segments::new(segments, block_bytes));
    let mut arm = bare_arm(model, blocks, options)?;
    arm.read_ahead_blocks = cache.read_ahead.0 / block_bytes;
    let electronics = electronics(model, queue, cache, options.in_sectors);
    let capacity = BlockCount(cache.write_buffer.0 / block_bytes);
    let arm = arm.with_segments(segments);
    if let Some(bus) = model.bus {
        let least = model.platters.as_ref().and_then(|p| p.least_write_seek);
        let arm = arm.with_bus(least.map_or(0, |span| span.0.0));
        let room = WriteRoom {
            blocks: capacity.0,
            writes: cache.write_segments as usize,
            answers_early: write_cache,
        };
        let drive = BusDrive::new(arm, bus, electronics, *queue, room);
        return Ok(Mechanics::OnBus(Box::new(drive)));
    }
    let write_buffer = write_cache.then(|| {
        let run_blocks_max = RUN_BYTES_MAX / block_bytes;
        WriteCache::new(capacity, cache.write_segments as usize, run_blocks_max)
    });
    let drive = Box::new(RotatingDrive::new(arm, electronics, *queue, write_buffer));
    Ok(match model.media {
        MediaModel::Shingled => Mechanics::Shingled(drive),
        _ => Mechanics::Conventional(drive),
    })
}

/// The arm of a rotating drive, without anything that remembers what it read.
pub(super) fn bare_arm(
    model: &DriveModel,
    blocks: BlockCount,
    options: &DiskOptions,
) -> Result<Arm, String> {
    let (Some(platters), Some(seek)) = (&model.platters, &model.seek) else {
        return Err("a rotating drive needs [platters] and [seek]".to_string());
    };
    let shape = shape(platters, model.sector_bytes());
    let (listed, curve) = match platters.zone_table {
        Some(_) => listed_platters(model, platters, seek, shape, blocks, options.scale)?,
        None => built_platters(model, platters, seek, shape, blocks, options)?,
    };
    let phase_ns = Rng::new(options.seed, 0).below(listed.revolution_ns());
    let arm =
        Arm::new(listed, curve, platters.head_switch.0.0, platters.write_settle.0, 0, phase_ns);
    Ok(arm.with_rotation(options.rotation))
}

/// The shape of platters, without the skew from track to track.
fn shape(platters: &PlatterModel, block_bytes: u64) -> PlatterShape {
    let track_blocks = |track: Option<Size>| track.map_or(0, |track| track.0 / block_bytes);
    PlatterShape {
        heads: platters.heads,
        zones: platters.zones.unwrap_or(0),
        outer_track_blocks: track_blocks(platters.outer_track),
        inner_track_blocks: track_blocks(platters.inner_track),
        layout: platters.layout,
        head_rates: platters.head_rates.clone().unwrap_or_default(),
        revolution_ns: NS_PER_MINUTE / platters.rpm,
        head_skew_ns: settled(platters.head_switch.0.0, platters),
        track_skew_ns: 0,
    }
}

/// What a step takes with the settling before a write.
fn settled(step_ns: u64, platters: &PlatterModel) -> u64 {
    step_ns.saturating_add_signed(platters.write_settle.0)
}

/// Platters with the zones of a table, and the time of a seek over them.
fn listed_platters(
    model: &DriveModel,
    platters: &PlatterModel,
    seek: &SeekModel,
    shape: PlatterShape,
    blocks: BlockCount,
    scale: u64,
) -> Result<(Platters, SeekCurve), String> {
    let listed = Platters::of_zones(shape, &platters.listed_zones(scale));
    let needed = blocks.bytes() / model.sector_bytes();
    if listed.blocks() < needed {
        return Err(format!(
            "platters.zone_table has {} sectors, {needed} are needed",
            listed.blocks()
        ));
    }
    let curve = match (&seek.table, scale) {
        // Measured on these cylinders: nothing to stretch.
        (Some(points), 1) => SeekCurve::table(points, points[points.len() - 1].0)?,
        _ => seek_curve(seek, listed.cylinders())?,
    };
    Ok((listed, curve))
}

/// Platters whose tracks shorten linearly, and the time of a seek over them.
fn built_platters(
    model: &DriveModel,
    platters: &PlatterModel,
    seek: &SeekModel,
    mut shape: PlatterShape,
    blocks: BlockCount,
    options: &DiskOptions,
) -> Result<(Platters, SeekCurve), String> {
    let conventional = &options.conventional;
    let shingles = Shingles::of(model.shingles.as_ref(), options.scale, conventional);
    let build = |shape: &PlatterShape| Platters::new(shape.clone(), blocks, &shingles);
    let curve = seek_curve(seek, build(&shape).cylinders())?;
    let head_switch_ns = platters.head_switch.0.0;
    shape.track_skew_ns = settled(curve.time_ns(1).max(head_switch_ns), platters);
    Ok((build(&shape), curve))
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
