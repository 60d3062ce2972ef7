//! What a disk will be, as its drive file and options say it: the geometry that layers ask for, before
//! anything is simulated.

use super::library::{Drive, DriveError};
use super::model::{DriveModel, MediaModel, PlatterModel, STEP_MAX, SeekModel, SolidStateModel};
use super::platters::{PlatterShape, Platters};
use super::seek::{DatasheetSeek, SeekCurve};
use super::shingles::Shingles;
use super::statistics::DiskStatistics;
use crate::quantity::Size;
use imbrex_core::buffer::ContentKind;
use imbrex_core::disk::{Geometry, Media, Survival, TrackTable};
use imbrex_core::extent::Extent;
use imbrex_core::units::BlockCount;
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

/// A disk of which all is known and nothing exists yet. A door makes of it what it serves or simulates.
pub struct DiskDesign {
    pub(super) model: DriveModel,
    pub(super) options: DiskOptions,
    pub(super) geometry: Geometry,
    pub(super) medium: Medium,
    pub(super) write_cache: bool,
    pub(super) statistics: Rc<DiskStatistics>,
}

/// What blocks lie on.
pub(super) enum Medium {
    SolidState(SolidStateModel),
    Rotating(Box<RotatingMedium>),
}

/// The platters of a rotating drive, and the time of a seek over them.
pub(super) struct RotatingMedium {
    pub platters: Platters,
    pub curve: SeekCurve,
}

impl DiskDesign {
    /// The design of a disk after a drive model.
    ///
    /// # Errors
    /// When figures of the model contradict each other.
    pub fn new(drive: &Drive, options: DiskOptions) -> Result<DiskDesign, DriveError> {
        let model = drive.model.clone();
        let blocks = options.capacity.unwrap_or_else(|| {
            let user = model.user_blocks(options.scale);
            let conventional = options.conventional.iter().map(|part| part.blocks.0);
            model.physical_blocks(user, BlockCount(conventional.sum()))
        });
        let (medium, geometry) = match &model.solid_state {
            Some(solid_state) => {
                let geometry = Geometry::plain(blocks, Media::SolidState);
                (Medium::SolidState(*solid_state), geometry)
            }
            None => {
                let medium = rotating_medium(&model, blocks, &options)
                    .map_err(|reason| DriveError::Model { file: drive.file.clone(), reason })?;
                let tracks = medium.platters.tracks().clone();
                let geometry = rotating_geometry(&model, &options, blocks, tracks);
                (Medium::Rotating(Box::new(medium)), geometry)
            }
        };
        Ok(DiskDesign {
            geometry: Geometry { survives: options.survives, ..geometry },
            write_cache: options.write_cache.unwrap_or(model.write_cache),
            statistics: Rc::default(),
            medium,
            model,
            options,
        })
    }

    /// What layers may know of it.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The counters that the disk will count into.
    pub fn statistics(&self) -> Rc<DiskStatistics> {
        self.statistics.clone()
    }

    /// Counts beside what another disk has counted, in whose place this one will be.
    pub fn count_into(&mut self, statistics: Rc<DiskStatistics>) {
        self.statistics = statistics;
    }

    /// Whether the write cache of the drive is on.
    pub fn write_cache(&self) -> bool {
        self.write_cache
    }
}

/// The platters of a model whose tracks hold `blocks`.
///
/// # Errors
/// When the model is none of a rotating drive, or its figures contradict each other.
fn rotating_medium(
    model: &DriveModel,
    blocks: BlockCount,
    options: &DiskOptions,
) -> Result<RotatingMedium, String> {
    if model.queue.is_none() || model.cache.is_none() {
        return Err("a rotating drive needs [platters], [seek], [queue] and [cache]".to_string());
    }
    platters_of(model, blocks, options)
}

/// The same, of a model of which nothing but the arm is asked.
pub(super) fn platters_of(
    model: &DriveModel,
    blocks: BlockCount,
    options: &DiskOptions,
) -> Result<RotatingMedium, String> {
    let (Some(platters), Some(seek)) = (&model.platters, &model.seek) else {
        return Err("a rotating drive needs [platters] and [seek]".to_string());
    };
    let shape = shape(platters, model.sector_bytes());
    let (platters, curve) = match platters.zone_table {
        Some(_) => listed_platters(model, platters, seek, shape, blocks, options.scale)?,
        None => built_platters(model, platters, seek, shape, blocks, options)?,
    };
    Ok(RotatingMedium { platters, curve })
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
