//! What a drive file says.

use super::bus::BusModel;
use super::platters::Layout;
use super::schedulers::Scheduler;
use super::seek::SeekFormula;
use super::segments::{OverheadModel, SegmentModel};
use super::shingles::ShingleModel;
use super::translation::TranslationSettings;
use super::zone_table::{SparesAt, ZoneRow};
use super::zones::DriveZones;
use crate::quantity::{Rate, SignedSpan, Size, Span};
use imbrex_core::units::{BLOCK_BYTES, BlockCount, Duration};
use imbrex_core::zone::ZoneModel;
use serde::{Deserialize, Serialize};

/// A drive as its file describes it. `docs/models` explains the parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveModel {
    /// Vendor and model.
    pub name: String,
    /// What it is made of.
    pub media: MediaModel,
    /// What the user can address, a multiple of 4 KiB.
    pub capacity: Size,
    /// Rotating media: what a zone table, skews and segments count in; 4 KiB where not said. A
    /// power of two from 512 bytes to 4 KiB.
    pub sector: Option<Size>,
    /// Between drive and host.
    pub interface: Rate,
    /// Whether writes are answered before they are on the medium, unless forced.
    pub write_cache: bool,
    /// Rotating media: the platters.
    pub platters: Option<PlatterModel>,
    /// Rotating media: the arm.
    pub seek: Option<SeekModel>,
    /// Rotating media: commands and their order.
    pub queue: Option<QueueModel>,
    /// Rotating media: the memory of the drive.
    pub cache: Option<CacheModel>,
    /// Rotating media: what the memory keeps for reads, beyond the last stream.
    pub segments: Option<SegmentModel>,
    /// Rotating media: times by the kind of a request, instead of one for all.
    pub overheads: Option<OverheadModel>,
    /// Conventional media: a SCSI bus that requests share, and firmware that works on one at a time.
    pub bus: Option<BusModel>,
    /// Shingled media: the overlap of tracks.
    pub shingles: Option<ShingleModel>,
    /// Solid-state media.
    pub solid_state: Option<SolidStateModel>,
    /// Drive-managed shingled media: what hides the shingles from the user.
    pub translation: Option<TranslationSettings>,
    /// Zoned shingled media: the zones of the interface.
    pub zones: Option<DriveZones>,
}

/// What a drive is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MediaModel {
    /// Rotating, tracks apart.
    Conventional,
    /// Rotating, tracks overlap.
    Shingled,
    /// No moving parts.
    SolidState,
}

/// The platters of a rotating drive.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlatterModel {
    /// Revolutions per minute.
    pub rpm: u64,
    /// Surfaces with a head each.
    pub heads: u64,
    /// Zones of equally long tracks; the length falls linearly from the first to the last.
    pub zones: Option<u64>,
    /// Length of a track of the outermost zone, a multiple of the sector.
    pub outer_track: Option<Size>,
    /// Length of a track of the innermost zone, a multiple of the sector.
    pub inner_track: Option<Size>,
    /// Instead of the three above, a row per zone in address order: first and last cylinder,
    /// sectors per track, skew at a head switch and at a cylinder switch in sectors, spare sectors
    /// at the end, and, where they are not 0, the offset of the first sector and the sectors
    /// reserved before it.
    pub zone_table: Option<Vec<ZoneRow>>,
    /// With a zone table: cylinders from one run of spare sectors to the next, where they are not
    /// at the end of a zone only.
    pub spares_every: Option<u64>,
    /// With a zone table: where the spare sectors lie.
    #[serde(default)]
    pub spares_at: SparesAt,
    /// Numbering of the tracks.
    pub layout: Layout,
    /// Length of the tracks of each head relative to the above, a number per head, where heads
    /// write at different densities; needs `layout = "surface-by-surface"`.
    pub head_rates: Option<Vec<f64>>,
    /// Time to change to another head.
    pub head_switch: Span,
    /// Time for the head to settle before a write, beyond the seek; negative where a seek before a
    /// write takes less than one before a read.
    pub write_settle: SignedSpan,
    /// With a table `[bus]`: least time of a seek before a write.
    pub least_write_seek: Option<Span>,
}

/// The arm of a rotating drive: datasheet figures or a measured table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeekModel {
    /// To the next cylinder; 0.15 x average where the datasheet is silent.
    pub track_to_track: Option<Span>,
    /// Mean over all pairs of cylinders, reading.
    pub average: Option<Span>,
    /// Over all cylinders; 1.9 x average where the datasheet is silent.
    pub full_stroke: Option<Span>,
    /// Instead of the figures above: `[cylinders, milliseconds]` in ascending order, from one
    /// cylinder to all.
    pub table: Option<Vec<(u64, f64)>>,
    /// Instead of either: a formula in two pieces.
    pub formula: Option<SeekFormula>,
}

/// Commands and their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueModel {
    /// From the arrival of a command to the start of the arm.
    pub command_overhead: Span,
    /// Commands the scheduler can choose from.
    pub depth: u32,
    /// How it chooses.
    pub scheduler: Scheduler,
    /// A rotational wait shorter than this counts as missed when it chooses.
    pub guard: Span,
    /// How often the oldest command may be passed over; 0 is without limit.
    pub age_window: u32,
}

/// The memory of a rotating drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheModel {
    /// Response to a request that needs only this memory, without the transfer.
    pub latency: Span,
    /// Room for writes.
    pub write_buffer: Size,
    /// Separate runs of blocks it holds at most: what the scheduler can choose from.
    pub write_segments: u32,
    /// Quiet time after which it is written out though there is room.
    pub destage_after: Span,
    /// How far the drive reads on after a read; 0 is not at all.
    pub read_ahead: Size,
}

/// A disk without moving parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SolidStateModel {
    /// Requests worked on at once.
    pub channels: u32,
    /// Response to one 4 KiB read on an idle disk.
    pub read_latency: Span,
    /// Response to one 4 KiB write on an idle disk.
    pub write_latency: Span,
    /// 4 KiB reads per second at saturation.
    pub read_iops: u64,
    /// 4 KiB writes per second at saturation.
    pub write_iops: u64,
    /// Sequential reads.
    pub read_rate: Rate,
    /// Sequential writes.
    pub write_rate: Rate,
    /// Response to a flush; also what a forced write takes longer than a cached one.
    pub flush_latency: Span,
}

/// Full stroke over average seek where a datasheet omits it (docs/models/conventional.md).
const FULL_STROKE_PER_AVERAGE: f64 = 1.9;
/// Track-to-track over average seek where a datasheet omits it.
const TRACK_TO_TRACK_PER_AVERAGE: f64 = 0.15;
/// Largest band where the drive file names none: that of PORE's drive.
const LARGEST_BAND_BYTES: u64 = 36 << 20;

impl DriveModel {
    /// What the user can address when the drive is shrunk `scale` times.
    pub fn user_blocks(&self, scale: u64) -> BlockCount {
        BlockCount::from_bytes_floor(self.capacity.0 / scale)
    }

    /// What a block takes on the innermost track; zero where the drive does not state its length.
    pub fn slowest_block_ns(&self) -> u64 {
        let platters = self.platters.as_ref();
        let track = platters.and_then(|platters| Some((platters.rpm, platters.inner_track?)));
        track.map_or(0, |(rpm, track)| {
            let blocks = track.0 / BLOCK_BYTES;
            60_000_000_000 / rpm / blocks.max(1)
        })
    }

    /// Blocks the medium needs for `user` blocks of user capacity beside `conventional` blocks that
    /// do not overlap. On shingled media that includes the spare share and two scratch bands. The
    /// conventional parts that the drive has of its own add no room.
    pub fn physical_blocks(&self, user: BlockCount, conventional: BlockCount) -> BlockCount {
        let Some(shingles) = &self.shingles else {
            return user;
        };
        let spare = (user.0 as f64 * shingles.spare).ceil() as u64;
        if self.zones.is_some() && self.translation.is_none() {
            // Conventional zones are part of what the user has, and nothing is rewritten.
            return BlockCount(user.0 + spare);
        }
        let bands = self.translation.as_ref().and_then(|t| t.bands.as_ref());
        let band_bytes = match (&self.zones, bands) {
            (Some(zones), _) => zones.zone_size.0,
            (None, Some(bands)) => bands.largest().0,
            (None, None) => LARGEST_BAND_BYTES,
        };
        let scratch = 2 * band_bytes.div_ceil(BLOCK_BYTES);
        BlockCount(user.0 + spare + scratch + conventional.0)
    }

    /// Bytes of a sector, the unit of the mechanics.
    pub fn sector_bytes(&self) -> u64 {
        self.sector.map_or(BLOCK_BYTES, |sector| sector.0)
    }

    /// Checks what the type of a field cannot say.
    ///
    /// # Errors
    /// A sentence that names the field, its value and what is accepted.
    pub fn check(&self) -> Result<(), String> {
        positive("capacity", self.capacity.0)?;
        whole("capacity", self.capacity, BLOCK_BYTES)?;
        let sector = self.sector_bytes();
        if !sector.is_power_of_two() || !(512..=BLOCK_BYTES).contains(&sector) {
            let sector = Size(sector);
            return Err(format!("sector = \"{sector}\" is not a power of two from 512 B to 4 KiB"));
        }
        self.check_tables()?;
        if self.translation.is_some() && self.media != MediaModel::Shingled {
            return Err("only a drive with media = \"shingled\" has a [translation]".to_string());
        }
        if let Some(platters) = &self.platters {
            platters.check(sector)?;
            if platters.zone_table.is_some() && self.media != MediaModel::Conventional {
                return Err("platters.zone_table needs media = \"conventional\"".to_string());
            }
        }
        if let Some(segments) = &self.segments {
            within("segments.count", u64::from(segments.count), SEGMENTS_MAX)?;
            positive("segments.size", segments.size.0)?;
            whole("segments.size", segments.size, sector)?;
            segments.check()?;
        }
        self.check_bus()?;
        self.check_zones()?;
        self.seek.as_ref().map_or(Ok(()), SeekModel::check)?;
        self.queue.as_ref().map_or(Ok(()), |q| positive("queue.depth", u64::from(q.depth)))?;
        if let Some(cache) = &self.cache {
            within("cache.write_segments", u64::from(cache.write_segments), SEGMENTS_MAX)?;
            positive("cache.write_buffer", cache.write_buffer.0)?;
            if cache.read_ahead.0 > READ_AHEAD_MAX {
                return Err(format!(
                    "cache.read_ahead = \"{}\"; accepted: at most {}",
                    cache.read_ahead,
                    Size(READ_AHEAD_MAX)
                ));
            }
        }
        if let Some(shingles) = &self.shingles {
            shingles.check(self.capacity)?;
        }
        self.solid_state.as_ref().map_or(Ok(()), SolidStateModel::check)
    }

    /// Checks that the tables are those of the media.
    fn check_tables(&self) -> Result<(), String> {
        let rotating = self.media != MediaModel::SolidState;
        let tables = [
            ("platters", self.platters.is_some(), rotating),
            ("seek", self.seek.is_some(), rotating),
            ("queue", self.queue.is_some(), rotating),
            ("cache", self.cache.is_some(), rotating),
            ("shingles", self.shingles.is_some(), self.media == MediaModel::Shingled),
            ("solid_state", self.solid_state.is_some(), !rotating),
        ];
        let rotating_only =
            [("segments", self.segments.is_some()), ("overheads", self.overheads.is_some())];
        for (table, present) in rotating_only {
            if present && !rotating {
                return Err(format!("a drive with this `media` cannot have a table [{table}]"));
            }
        }
        for (table, present, wanted) in tables {
            if present != wanted {
                let verb = if wanted { "needs" } else { "cannot have" };
                return Err(format!("a drive with this `media` {verb} a table [{table}]"));
            }
        }
        Ok(())
    }

    /// Checks that a bus goes with the media and the memory.
    fn check_bus(&self) -> Result<(), String> {
        let least = self.platters.as_ref().and_then(|p| p.least_write_seek);
        let Some(bus) = &self.bus else {
            return match least {
                Some(_) => Err("platters.least_write_seek needs a table [bus]".to_string()),
                None => Ok(()),
            };
        };
        if self.media != MediaModel::Conventional {
            return Err("a table [bus] needs media = \"conventional\"".to_string());
        }
        if self.segments.is_none() {
            return Err("a table [bus] needs a table [segments]".to_string());
        }
        let destage_after = self.cache.map_or(Span::default(), |cache| cache.destage_after);
        if destage_after.0.0 > 0 {
            return Err(format!(
                "cache.destage_after = \"{destage_after}\"; accepted with a table [bus]: \"0 ms\", \
                 because what is written goes to the medium before anything else"
            ));
        }
        bus.check()
    }

    /// Checks that zones go with the media and the translation.
    fn check_zones(&self) -> Result<(), String> {
        let Some(zones) = &self.zones else {
            return Ok(());
        };
        let is_aware = zones.model.0 == ZoneModel::HostAware;
        if self.media != MediaModel::Shingled {
            return Err("only a drive with media = \"shingled\" has [zones]".to_string());
        }
        if self.translation.is_some() != is_aware {
            return Err(
                "a drive has a [translation] and [zones] with model = \"host-aware\", or no \
                 [translation] and model = \"host-managed\""
                    .to_string(),
            );
        }
        zones.check(self.capacity)
    }
}

impl PlatterModel {
    /// Bytes of the longest track; 0 where zones are listed in sectors.
    pub fn longest_track_bytes(&self) -> u64 {
        let rates = self.head_rates.iter().flatten();
        let highest = rates.copied().fold(1.0, f64::max);
        let track = self.outer_track.map_or(0, |track| track.0);
        (track as f64 * highest) as u64 + u64::from(highest > 1.0) * BLOCK_BYTES
    }

    fn check(&self, sector: u64) -> Result<(), String> {
        within("platters.rpm", self.rpm, RPM_MAX)?;
        within("platters.heads", self.heads, HEADS_MAX)?;
        let settle = Duration(self.write_settle.0.unsigned_abs());
        let least_seek = self.least_write_seek.unwrap_or_default();
        at_most_a_step("platters.head_switch", self.head_switch.0)?;
        at_most_a_step("platters.write_settle", settle)?;
        at_most_a_step("platters.least_write_seek", least_seek.0)?;
        if let Some(rates) = &self.head_rates {
            self.check_head_rates(rates)?;
        }
        let linear = (self.zones, self.outer_track, self.inner_track);
        match (linear, &self.zone_table) {
            ((Some(zones), Some(outer), Some(inner)), None) => {
                within("platters.zones", zones, ZONES_MAX)?;
                whole("platters.outer_track", outer, sector)?;
                whole("platters.inner_track", inner, sector)?;
                positive("platters.inner_track", inner.0)?;
                if self.spares_every.is_some() {
                    return Err("platters.spares_every needs a zone_table".to_string());
                }
                if self.spares_at != SparesAt::End {
                    return Err("platters.spares_at needs a zone_table".to_string());
                }
                if inner > outer {
                    return Err(format!(
                        "platters.inner_track = \"{inner}\" is longer than the outer one"
                    ));
                }
                Ok(())
            }
            ((None, None, None), Some(table)) => self.check_zone_table(table),
            _ => {
                Err("[platters] needs `zones`, `outer_track` and `inner_track`, or a `zone_table` \
                 instead of all three"
                    .to_string())
            }
        }
    }

    fn check_head_rates(&self, rates: &[f64]) -> Result<(), String> {
        if self.layout != Layout::SurfaceBySurface {
            return Err("platters.head_rates needs layout = \"surface-by-surface\"".to_string());
        }
        if rates.len() as u64 != self.heads {
            return Err(format!(
                "platters.head_rates has {} numbers for {} heads",
                rates.len(),
                self.heads
            ));
        }
        match rates.iter().find(|rate| !(0.5..=2.0).contains(*rate)) {
            Some(rate) => Err(format!("platters.head_rates: {rate} is not between 0.5 and 2")),
            None => Ok(()),
        }
    }
}

impl SeekModel {
    fn check(&self) -> Result<(), String> {
        let figures = [self.track_to_track, self.average, self.full_stroke];
        let curves = u8::from(self.table.is_some()) + u8::from(self.formula.is_some());
        match (curves, self.average) {
            (1, _) if figures.iter().all(Option::is_none) => Ok(()),
            (0, Some(_)) => Ok(()),
            (0, None) => Err("[seek] needs `average`, a `table` or a `formula`".to_string()),
            _ => Err("[seek] has a table, a formula or datasheet figures, not several".to_string()),
        }
    }

    /// Track-to-track, average and full stroke in milliseconds, with the usual ratios for what is
    /// missing. Zero where there is a table instead.
    pub(super) fn figures_ms(&self) -> [f64; 3] {
        let ms = |span: Option<Span>| span.map(|span| span.0.0 as f64 / 1e6);
        let average = ms(self.average).unwrap_or(0.0);
        let near = ms(self.track_to_track).unwrap_or(average * TRACK_TO_TRACK_PER_AVERAGE);
        let full = ms(self.full_stroke).unwrap_or(average * FULL_STROKE_PER_AVERAGE);
        [near, average, full]
    }
}

impl SolidStateModel {
    fn check(&self) -> Result<(), String> {
        let channels = u64::from(self.channels);
        within("solid_state.channels", channels, CHANNELS_MAX)?;
        positive("solid_state.read_iops", self.read_iops)?;
        positive("solid_state.write_iops", self.write_iops)
    }
}

/// Far beyond any disk, and small enough for the arithmetic of tracks and angles.
const RPM_MAX: u64 = 1_000_000;
const HEADS_MAX: u64 = 1_024;
const SEGMENTS_MAX: u64 = 1 << 16;
const ZONES_MAX: u64 = 100_000;
const CHANNELS_MAX: u64 = 1 << 16;
const READ_AHEAD_MAX: u64 = 1 << 30;
/// Longest step of the mechanics or the bus, of which an operation may take thousands.
pub(super) const STEP_MAX: Duration = Duration::from_ms(1000);

/// Checks the time of a step that an operation may take thousands of.
pub(super) fn at_most_a_step(field: &str, step: Duration) -> Result<(), String> {
    match step > STEP_MAX {
        true => Err(format!("{field} = \"{}\"; accepted: at most 1 s", Span(step))),
        false => Ok(()),
    }
}

pub(super) fn within(field: &str, value: u64, most: u64) -> Result<(), String> {
    match (1..=most).contains(&value) {
        true => Ok(()),
        false => Err(format!("{field} = {value}; accepted: 1 to {most}")),
    }
}

fn positive(field: &str, value: u64) -> Result<(), String> {
    match value {
        0 => Err(format!("{field} must be more than 0")),
        _ => Ok(()),
    }
}

fn whole(field: &str, size: Size, unit: u64) -> Result<(), String> {
    match size.0 % unit {
        0 => Ok(()),
        _ => Err(format!("{field} = \"{size}\" is not a multiple of {}", Size(unit))),
    }
}
