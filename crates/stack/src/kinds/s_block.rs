//! The translation by S-blocks.

use super::checksums::ChecksumKeys;
use super::ports::{BelowNodes, Form, PortKey, PortNodes, Ports, one, optional};
use super::segment_geometry::{
    Percent, PercentOrBlocks, Track, block_default, blocks_of, kappa_default,
    region_tracks_default, track_default,
};
use super::{
    Asked, Below, Body, Keeps, Kind, Known, Node, Offer, Part, Place, Planned, PlannedBands,
    Reported, World, Writer, wrong,
};
use crate::config::ConfigError;
use crate::durability::BLOCKS_MAX;
use crate::durability::JournalKeys;
use imbrex_core::buffer::ContentKind;
use imbrex_core::counters::{Group, JOURNAL, REWRITES, S_BLOCK, TABLES, UNUSED};
use imbrex_core::disk::{Geometry, Media, TrackTable};
use imbrex_core::extent::Extent;
use imbrex_core::layer::Port;
use imbrex_core::translation::s_block_records::RECORD_KINDS;
use imbrex_core::translation::{
    self, Fill, GcOrder, RingSize, SBlockError, SBlockLayout, SBlockSettings, SBlocks, SpareSlots,
    TrackSource, bands_fixed,
};
use imbrex_core::units::{BlockCount, Lba};
use imbrex_core::words;
use imbrex_drives::keys;
use imbrex_drives::quantity::Size;
use imbrex_drives::{AnyWord, DiskDesign, DiskOptions, OnOff, Word};
use std::borrow::Cow;
use std::sync::Arc;

keys! {
    /// A translation by S-blocks: regions that are circular logs.
    pub struct SBlockConfig {
        /// Name of the node.
        name: String => "any";
        /// The disk, and a store of copies.
        below: BelowNodes<SBlockPorts> => r#"a node; `{ disk = "NODE", copies = "NODE" }` with or without `copies`"#;
        /// Where tracks come from.
        track: Track = track_default() => r#"a size, a multiple of `block`: regions follow each other in the addresses of the disk, without guards; `"disk"`: the tracks of the drive, which must not overlap downwards"#;
        /// What is read and written at least.
        block: Size = block_default() => "a multiple of 4 KiB, up to 256 KiB with a ring";
        /// Tracks of a region's data, and blocks of an S-block.
        region_tracks: u64 = region_tracks_default() => "a whole number above 0";
        /// Tracks under the writer: with `track = "disk"` as many less one are guards inside and
        /// behind a region, or more where the drive says so; a track of a given size has no guards.
        kappa: u64 = kappa_default() => "a whole number above 0";
        /// Spare slots of a region, rounded to the nearest, at least one.
        spare: Percent = Percent(100_000) => "a share of its S-blocks";
        /// Where they lie.
        slots: Word<SpareSlots> = Word(SpareSlots::Extra) => r#"`"extra"`: beside the data; `"inside"`: among it, and the region offers less"#;
        /// Which S-blocks hold data at the start, in order.
        #[serde(skip_serializing_if = "Option::is_none")]
        prefill: Option<Word<Prefill>> => r#"`"all"`, `"touched"` (by the workload; in a simulation), `"none"`"#, r#"`"all"`; `"none"` where durable"#;
        /// When room is made.
        gc_order: Word<GcOrder> = Word(GcOrder::RoomFirst) => r#"`"room-first"`: as soon as an append has taken the last slot, its older copy being superseded; `"invalidate-first"`: before an append that finds none free, its older copy taken for superseded"#;
        /// Where the missing blocks of a rewrite are looked for first.
        fill: Word<Fill> = Word(Fill::Disk) => r#"`"disk"`; `"flash"`: in the store of copies"#;
        /// Blocks that a ring takes in.
        ring: PercentOrBlocks = PercentOrBlocks::Percent(Percent(100_000)) => "a share of the blocks of a region, rounded down; a whole number; 0: every write is a rewrite";
        /// Whether it keeps a journal, as it does when it is served from files; not when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        durable: Option<bool> => "`true`, `false`", "`false`; where it is served from files it always is durable";
        /// Blocks of the ring of its journal.
        #[serde(skip_serializing_if = "Option::is_none")]
        ring_blocks: Option<u64> => 1..=BLOCKS_MAX, "see [Durability](#durability)";
        /// Blocks of data it may write without a flush.
        #[serde(skip_serializing_if = "Option::is_none")]
        unflushed_blocks_max: Option<u64> => 1..=BLOCKS_MAX, "see [Durability](#durability)";
        /// Where it is durable, whether it keeps checksums of all blocks.
        #[serde(skip_serializing_if = "Option::is_none")]
        checksums: Option<Word<OnOff>> => AnyWord, r#"`"on"`"#;
        /// Memory for the tables of checksums.
        #[serde(skip_serializing_if = "Option::is_none")]
        table_memory: Option<Size> => "a size, at least 4 KiB", r#"`"64 MiB"`"#;
    }
}

/// The disk of a translation by S-blocks, and a store of copies.
pub struct SBlockPorts;

impl Ports for SBlockPorts {
    const PORTS: &'static [PortKey] = &[optional("copies"), one("disk")];
    const FORM: Form = Form::Both;
}

words! {
    /// Which S-blocks hold data at the start.
    pub enum Prefill {
        /// All, in order.
        All = "all",
        /// Those that a request of the workload touches, in order.
        Touched = "touched",
        /// None.
        None = "none",
    }
}

/// Times that the layout is tried with more tracks that do not overlap.
const TRIES_MAX: u32 = 16;

impl SBlockConfig {
    pub(super) fn checksums(&self) -> ChecksumKeys {
        ChecksumKeys { checksums: self.checksums, table_memory: self.table_memory }
    }

    fn settings(&self, world: &World<'_>) -> Result<SBlockSettings, ConfigError> {
        let blocks = |key, size| blocks_of(&self.name, key, size);
        if self.kappa == 0 || self.region_tracks == 0 {
            let words = format!(
                "kappa = {}, region_tracks = {}; accepted: 1 and more",
                self.kappa, self.region_tracks
            );
            return Err(wrong(&self.name, &words));
        }
        let durability = self.journal().and_then(|it| it.settings(world.options));
        let prefill = match (self.prefill, durability) {
            (Some(Word(Prefill::None)), _) | (None, Some(_)) => translation::Prefill::None,
            _ => translation::Prefill::All,
        };
        Ok(SBlockSettings {
            block: blocks("block", self.block)?,
            track: match self.track {
                Track::Size(size) => TrackSource::Dense(blocks("track", size)?),
                Track::Disk => TrackSource::Disk,
            },
            region_tracks: self.region_tracks,
            guard_tracks: self.kappa - 1,
            spare_ppm: self.spare.0,
            slots: self.slots.0,
            prefill,
            gc_order: self.gc_order.0,
            fill: self.fill.0,
            ring: match self.ring {
                PercentOrBlocks::Percent(share) => RingSize::Share(share.0),
                PercentOrBlocks::Blocks(blocks) => RingSize::Blocks(blocks),
            },
            wanted: None,
            durability,
            checksums: self.checksums().settings(&self.name)?,
        })
    }

    /// The layout on the node below, and the blocks at its start that must not overlap. Of a disk it
    /// takes so many blocks where that is said.
    fn layout(
        &self,
        settings: &SBlockSettings,
        world: &World<'_>,
        scale: u64,
        blocks: Option<BlockCount>,
    ) -> Result<(SBlockLayout, u64), ConfigError> {
        let disk = self.below.one("disk");
        if settings.track != TrackSource::Disk {
            let below = Geometry::plain(world.room(disk, scale)?, Media::Conventional);
            let layout = SBlockLayout::new(settings, &below);
            return Ok((layout.map_err(|error| wrong(&self.name, &error))?, 0));
        }
        let Some(drive) = world.drives.get(disk) else {
            let words = "track = \"disk\"; accepted: above a node of kind \"disk\"";
            return Err(wrong(&self.name, &words));
        };
        let mut front = 0;
        for _ in 0..TRIES_MAX {
            let conventional = Extent::new(0, front);
            let physical =
                |blocks| drive.model.physical_blocks(blocks, BlockCount(conventional.blocks.0));
            let options = DiskOptions {
                capacity: blocks.map(physical),
                scale,
                conventional: Some(conventional).filter(|it| !it.is_empty()).into_iter().collect(),
                ..DiskOptions::default()
            };
            let blank = DiskDesign::new(drive, options)
                .map_err(|error| ConfigError::words(error.to_string()))?;
            match SBlockLayout::new(settings, blank.geometry()) {
                Ok(layout) => return Ok((layout, front)),
                Err(SBlockError::FrontTooSmall { needed, .. }) if needed.0 > front => {
                    front = needed.0;
                }
                Err(error) => return Err(wrong(&self.name, &error)),
            }
        }
        let words = "its rings and its journal take all of the disk; accepted: a smaller `ring`";
        Err(wrong(&self.name, &words))
    }
}

impl SBlockConfig {
    /// The layout on a disk that is as short as it can be, and how many blocks that has: on a shorter
    /// disk the tracks may be others. None where no shorter one was found.
    fn trimmed(
        &self,
        settings: &SBlockSettings,
        world: &World<'_>,
        asked: Asked,
        (layout, front): (SBlockLayout, u64),
    ) -> (SBlockLayout, u64, Option<BlockCount>) {
        let mut blocks = BlockCount(layout.end());
        if settings.track != TrackSource::Disk {
            return (layout, front, Some(blocks));
        }
        for _ in 0..TRIES_MAX {
            match self.layout(settings, world, asked.scale, Some(blocks)) {
                Ok((shorter, front)) if shorter.blocks() >= asked.blocks => {
                    return (shorter, front, Some(blocks));
                }
                _ => blocks.0 += blocks.0 / 2,
            }
        }
        (layout, front, None)
    }
}

impl Kind for SBlockConfig {
    const NAME: &'static str = "s-block";
    const PLACE: Place = Place::Translation;
}

impl Node for SBlockConfig {
    fn name(&self) -> &str {
        &self.name
    }

    fn ports(&self) -> Vec<PortNodes<'_>> {
        self.below.ports()
    }

    fn journal(&self) -> Option<JournalKeys<'_>> {
        Some(JournalKeys {
            below: self.below.one("disk"),
            durable: self.durable,
            ring_blocks: self.ring_blocks,
            unflushed_blocks_max: self.unflushed_blocks_max,
            others: vec![],
        })
    }

    fn members(&self) -> Vec<(Cow<'static, str>, Port)> {
        let has_copies = self.below.optional("copies").is_some();
        vec![("below".into(), SBlocks::disk_port(has_copies))]
    }

    fn checks(&self, _below: &str) -> bool {
        self.checksums().are_kept()
    }

    fn record_kinds(&self) -> &'static [(u8, &'static str)] {
        &RECORD_KINDS
    }

    fn keeps(&self) -> Result<Keeps, ConfigError> {
        Ok(Keeps::SBlocks)
    }

    fn room(&self, world: &World<'_>, scale: u64) -> Result<BlockCount, ConfigError> {
        let settings = self.settings(world)?;
        Ok(self.layout(&settings, world, scale, None)?.0.blocks())
    }

    fn plan(
        &self,
        asked: Asked,
        world: &World<'_>,
    ) -> Result<(Box<dyn Planned>, Vec<Asked>), ConfigError> {
        let settings = SBlockSettings { wanted: Some(asked.blocks), ..self.settings(world)? };
        let (layout, front) = self.layout(&settings, world, asked.scale, None)?;
        let (layout, front, trimmed) = match world.options.trim_disks {
            true => self.trimmed(&settings, world, asked, (layout, front)),
            false => (layout, front, None),
        };
        let whole = trimmed.is_none();
        let below = Asked {
            blocks: match trimmed {
                None => world.room(self.below.one("disk"), asked.scale)?,
                Some(blocks) => blocks,
            },
            scale: asked.scale,
            writer: Writer::Tracks { whole },
            is_part: false,
        };
        let blocks = layout.blocks().min(asked.blocks);
        let segment = BlockCount(layout.segment);
        let planned = PlannedSBlocks {
            node: self.name.clone(),
            copies: self.below.optional("copies").is_some(),
            bands: PlannedBands {
                table: Arc::new(bands_fixed(blocks, segment)),
                key: format!("S-blocks of {segment:?}, {blocks:?}"),
                log_is_of_written: false,
            },
            is_touched: self.prefill == Some(Word(Prefill::Touched)),
            front,
            settings,
        };
        let mut asks = vec![below];
        if self.below.optional("copies").is_some() {
            // The last S-block may reach past what is asked, and is rewritten as a whole.
            let copies = Asked {
                blocks: layout.blocks().max(asked.blocks),
                scale: asked.scale,
                writer: Writer::Layer,
                is_part: false,
            };
            asks.insert(0, copies);
        }
        Ok((Box::new(planned), asks))
    }
}

struct PlannedSBlocks {
    node: String,
    /// A store of copies stands on the first port.
    copies: bool,
    settings: SBlockSettings,
    bands: PlannedBands,
    /// S-blocks that the workload touches hold data at the start.
    is_touched: bool,
    /// Blocks at the start of the disk that must not overlap.
    front: u64,
}

impl Planned for PlannedSBlocks {
    fn conventional(
        &self,
        _: &Known<'_>,
        _: &[Extent],
    ) -> Result<Vec<(usize, Extent)>, ConfigError> {
        Ok(vec![(usize::from(self.copies), Extent::new(0, self.front))])
    }

    fn needs_lookups(&self) -> bool {
        self.is_touched
    }

    fn bands(&self) -> Option<&PlannedBands> {
        Some(&self.bands)
    }

    fn build(&self, known: &Known<'_>, below: &Below<'_>) -> Result<Part, ConfigError> {
        let disk = &below.offers[usize::from(self.copies)].geometry;
        let copies = match self.copies {
            true => below.offers[0].geometry.copies,
            false => None,
        };
        if self.copies && copies.is_none() {
            let words = "copies; accepted: a node of kind \"read-cache\"";
            return Err(wrong(&self.node, &words));
        }
        let overlaps = disk.tracks.as_deref().is_some_and(TrackTable::has_overlaps);
        let is_dense = self.settings.track != TrackSource::Disk;
        if overlaps && is_dense && known.contents != ContentKind::Counted {
            return Err(wrong(&self.node, &SBlockError::DenseOverlaps));
        }
        let mut settings = self.settings.clone();
        if self.is_touched {
            let Some(lookups) = known.lookups else {
                let words =
                    "prefill = \"touched\" needs a workload; accepted here: \"all\" or \"none\"";
                return Err(wrong(&self.node, &words));
            };
            let table = &self.bands.table;
            let mut touched: Vec<u32> = lookups.iter().map(|lba| table.band_of(*lba).0).collect();
            touched.sort_unstable();
            touched.dedup();
            settings.prefill = translation::Prefill::Some(touched.into());
        }
        let is_durable = settings.durability.is_some();
        let (layer, geometry) =
            SBlocks::new(settings, disk, copies).map_err(|error| wrong(&self.node, &error))?;
        let layout = layer.layout().clone();
        Ok(Part {
            body: Body::Layer(Box::new(layer)),
            offer: Offer::over(geometry),
            facts: super::Facts::SBlock(Facts { is_durable, layout }),
        })
    }
}

/// What reports need to know of a translation by S-blocks.
pub struct Facts {
    is_durable: bool,
    /// Where everything lies.
    pub layout: SBlockLayout,
}

impl Reported for Facts {
    fn rewrites_bad_block(&self, at: u64) -> bool {
        (0..).zip(&self.layout.places).any(|(region, place)| {
            let mut positions = 0..place.shape.positions();
            positions.any(|it| self.layout.position(region, it).contains(Lba(at)))
        })
    }

    fn groups(&self) -> Vec<Group> {
        let mut groups = vec![REWRITES, S_BLOCK, UNUSED, TABLES];
        groups.extend(self.is_durable.then_some(JOURNAL));
        groups
    }
}
