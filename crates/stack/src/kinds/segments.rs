//! A segment layout: a shingled disk in segments that are rewritten in place.

use super::checksums::{ChecksumKeys, ChecksumsKey};
use super::keys::words;
use super::segment_geometry::{
    Track, block_default, blocks_of, kappa_default, region_tracks_default, track_default,
};
use super::{
    Asked, Below, Body, Known, Node, Offer, Part, Planned, PlannedBands, Reported, World, Writer,
    wrong,
};
use crate::config::ConfigError;
use crate::durability::JournalKeys;
use imbrex_core::counters::{Counter, Gauge};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::extent::Extent;
use imbrex_core::layer::Port;
use imbrex_core::translation::bands_fixed;
use imbrex_core::translation::segment::codec::Identity;
use imbrex_core::translation::segment::{
    Holds, Journaling, RegionLayout, RewriteReach, SegmentAreas, SegmentLayout, SegmentPorts,
    SegmentSettings, Segments, TrackLength,
};
use imbrex_core::units::BlockCount;
use imbrex_drives::quantity::Size;
use imbrex_drives::{DiskDesign, DiskOptions};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A segment layout.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentsConfig {
    /// Name of the node.
    pub name: String,
    /// The disk, or the disk with what stands beside it.
    pub below: SegmentsBelow,
    /// How long tracks are.
    #[serde(default = "track_default")]
    pub track: Track,
    /// A block: what is read and written at least, and what a segment has on each track.
    #[serde(default = "block_default")]
    pub block: Size,
    /// Tracks of a region: blocks of a segment.
    #[serde(default = "region_tracks_default")]
    pub region_tracks: u64,
    /// How many tracks the writer is wide, the written one counted.
    #[serde(default = "kappa_default")]
    pub kappa: u64,
    /// In which direction regions overlap.
    #[serde(default)]
    pub layout: LayoutKey,
    /// Which blocks a rewrite writes.
    #[serde(default)]
    pub rewrite: RewriteKey,
    /// Which blocks hold data.
    #[serde(default)]
    pub valid: ValidKey,
    /// Whether a rewrite first writes elsewhere what it is about to write home.
    #[serde(default)]
    pub journal: JournalKey,
    /// Whether it keeps a journal over restarts, as it does when it is served from files; not when
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durable: Option<bool>,
    /// Blocks of the ring of that journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ring_blocks: Option<u64>,
    /// Whether a durable one keeps checksums; it does when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksums: Option<ChecksumsKey>,
    /// Memory for the tables of checksums.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table_memory: Option<Size>,
}

/// The nodes under a segment layout.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum SegmentsBelow {
    /// The disk.
    Disk(String),
    /// The disk and others.
    Nodes(SegmentsNodes),
}

/// The disk of a segment layout, and what stands beside it.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentsNodes {
    /// The disk.
    pub disk: String,
    /// A store of copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copies: Option<String>,
    /// What takes the journal instead of the disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<String>,
}

impl SegmentsBelow {
    /// The disk.
    pub fn disk(&self) -> &str {
        match self {
            SegmentsBelow::Disk(disk) => disk,
            SegmentsBelow::Nodes(nodes) => &nodes.disk,
        }
    }

    /// The store of copies.
    pub fn copies(&self) -> Option<&str> {
        match self {
            SegmentsBelow::Disk(_) => None,
            SegmentsBelow::Nodes(nodes) => nodes.copies.as_deref(),
        }
    }

    /// What takes the journal instead of the disk.
    pub fn journal(&self) -> Option<&str> {
        match self {
            SegmentsBelow::Disk(_) => None,
            SegmentsBelow::Nodes(nodes) => nodes.journal.as_deref(),
        }
    }

    fn ports(&self) -> SegmentPorts {
        SegmentPorts { copies: self.copies().is_some(), journal: self.journal().is_some() }
    }
}

words! {
    /// In which direction regions overlap.
    LayoutKey {
        /// Neighbours in opposite directions.
        #[default]
        Wave,
        /// All in one.
        Conventional,
    }
}

words! {
    /// Which blocks a rewrite writes.
    RewriteKey {
        /// Those that are dirty or would be destroyed.
        #[default]
        Cascade,
        /// The whole segment.
        Whole,
    }
}

words! {
    /// Which blocks hold data.
    ValidKey {
        /// All, from the start.
        #[default]
        All,
        /// Those that were written.
        Touched,
    }
}

words! {
    /// Whether rewrites are journaled.
    JournalKey {
        /// They are.
        #[default]
        On,
        /// They are not: a power cut in a rewrite loses blocks.
        Off,
    }
}

impl SegmentsConfig {
    fn settings(&self, world: &World<'_>) -> Result<SegmentSettings, ConfigError> {
        let settings = SegmentSettings {
            track: match self.track {
                Track::Size(size) => TrackLength::Assumed(blocks_of(&self.name, "track", size)?),
                Track::Disk => TrackLength::OfDisk,
            },
            block: blocks_of(&self.name, "block", self.block)?,
            region_tracks: self.region_tracks,
            kappa: self.kappa,
            layout: match self.layout {
                LayoutKey::Wave => RegionLayout::Wave,
                LayoutKey::Conventional => RegionLayout::Conventional,
            },
            rewrite: match self.rewrite {
                RewriteKey::Cascade => RewriteReach::Cascade,
                RewriteKey::Whole => RewriteReach::Whole,
            },
            valid: match self.valid {
                ValidKey::All => Holds::All,
                ValidKey::Touched => Holds::Touched,
            },
            journal: self.journaling(world)?,
            checksums: self.checksums().settings(&self.name)?,
            offered: None,
            ports: self.below.ports(),
        };
        let check = settings.check();
        check.map_err(|error| wrong(&self.name, &error))?;
        Ok(settings)
    }

    fn journaling(&self, world: &World<'_>) -> Result<Journaling, ConfigError> {
        let durable = Node::journal(self).and_then(|it| it.settings(world.options));
        match (durable, self.journal) {
            (None, JournalKey::Off) => Ok(Journaling::Off),
            (None, JournalKey::On) => Ok(Journaling::Slots),
            (Some(durable), JournalKey::On) => Ok(Journaling::Durable(durable)),
            (Some(_), JournalKey::Off) => Err(wrong(
                &self.name,
                &"journal = \"off\", and a power cut in a rewrite would lose blocks; accepted where \
                  nothing may be lost: \"on\"",
            )),
        }
    }

    pub(super) fn checksums(&self) -> ChecksumKeys {
        ChecksumKeys { checksums: self.checksums, table_memory: self.table_memory }
    }

    /// The blocks at the start of the disk that are the layout's own.
    fn front(
        &self,
        settings: &SegmentSettings,
        world: &World<'_>,
        scale: u64,
    ) -> Result<BlockCount, ConfigError> {
        Ok(match settings.ports.journal {
            true => BlockCount::ZERO,
            false => SegmentAreas::new(settings, world.room(self.below.disk(), scale)?).blocks(),
        })
    }

    /// The layout on the node below.
    fn layout(
        &self,
        settings: &SegmentSettings,
        world: &World<'_>,
        scale: u64,
    ) -> Result<SegmentLayout, ConfigError> {
        let (disk, front) = (self.below.disk(), self.front(settings, world, scale)?);
        let below = match settings.track {
            TrackLength::Assumed(_) => {
                Geometry::plain(world.room(disk, scale)?, Media::Conventional)
            }
            TrackLength::OfDisk => {
                let Some(drive) = world.drives.get(disk) else {
                    let words = "track = \"disk\"; accepted: above a node of kind \"disk\"";
                    return Err(wrong(&self.name, &words));
                };
                let front = Some(Extent::new(0, front.0));
                let options = DiskOptions {
                    scale,
                    conventional: front.filter(|it| !it.is_empty()).into_iter().collect(),
                    ..DiskOptions::default()
                };
                let blank = DiskDesign::new(drive, options);
                let blank = blank.map_err(|error| ConfigError::words(error.to_string()))?;
                blank.geometry().clone()
            }
        };
        let start = front.0.min(below.blocks.0);
        let layout = SegmentLayout::new(settings, start, below.blocks, below.tracks.as_deref());
        layout.map_err(|error| wrong(&self.name, &error))
    }
}

impl Node for SegmentsConfig {
    fn name(&self) -> &str {
        &self.name
    }

    fn below(&self) -> Vec<&str> {
        let beside = self.below.copies().into_iter().chain(self.below.journal());
        beside.chain([self.below.disk()]).collect()
    }

    fn journal(&self) -> Option<JournalKeys<'_>> {
        Some(JournalKeys {
            below: self.below.journal().unwrap_or(self.below.disk()),
            durable: self.durable,
            ring_blocks: self.ring_blocks,
            // Each rewrite flushes before it writes home.
            unflushed_blocks_max: None,
        })
    }

    fn members(&self) -> Vec<(&'static str, Port)> {
        let ports = self.below.ports();
        let journal = ports.journal.then(|| ("journal", ports.journal_port()));
        let disk = Some(("disk", ports.disk_port()));
        journal.into_iter().chain(disk).collect()
    }

    fn room(&self, world: &World<'_>, scale: u64) -> Result<BlockCount, ConfigError> {
        let mut settings = self.settings(world)?;
        let mut blocks = self.layout(&settings, world, scale)?.blocks();
        // The tables of what is offered are shorter than those of all that could have room, so regions
        // begin elsewhere. On tracks of several lengths one may have no room then.
        while settings.keeps_sums() {
            settings.offered = Some(blocks);
            match self.layout(&settings, world, scale) {
                Ok(_) => break,
                Err(_) if blocks.0 > settings.segment_blocks() => {
                    blocks = BlockCount(blocks.0 - settings.segment_blocks());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(blocks)
    }

    fn plan(
        &self,
        asked: Asked,
        world: &World<'_>,
    ) -> Result<(Box<dyn Planned>, Vec<Asked>), ConfigError> {
        let settings = SegmentSettings { offered: Some(asked.blocks), ..self.settings(world)? };
        let layout = self.layout(&settings, world, asked.scale)?;
        let front = self.front(&settings, world, asked.scale)?;
        // Where the tracks are the disk's own, they are those of the whole disk.
        let whole = settings.track == TrackLength::OfDisk || !world.options.trim_disks;
        let disk = Asked {
            blocks: match whole {
                true => world.room(self.below.disk(), asked.scale)?,
                false => BlockCount(layout.end()),
            },
            scale: asked.scale,
            writer: Writer::Tracks { whole },
            is_part: false,
        };
        let beside = |blocks, scale| Asked { blocks, scale, writer: Writer::Layer, is_part: false };
        let copies = self.below.copies().map(|_| beside(asked.blocks, asked.scale));
        let areas = SegmentAreas::new(&settings, BlockCount::ZERO).blocks();
        let journal = self.below.journal().map(|_| beside(areas, 1));
        let asks = copies.into_iter().chain(journal).chain([disk]).collect();
        let segment = BlockCount(settings.segment_blocks());
        let planned = PlannedSegments {
            node: self.name.clone(),
            bands: PlannedBands {
                table: Arc::new(bands_fixed(asked.blocks, segment)),
                key: format!("segments of {segment:?}, {:?}", asked.blocks),
                log_is_of_written: false,
            },
            front,
            settings,
        };
        Ok((Box::new(planned), asks))
    }
}

struct PlannedSegments {
    node: String,
    settings: SegmentSettings,
    bands: PlannedBands,
    /// Blocks at the start of the disk that must not overlap.
    front: BlockCount,
}

impl Planned for PlannedSegments {
    fn conventional(&self, _: &Known<'_>, _: &[Extent]) -> Result<Vec<Extent>, ConfigError> {
        let front = Some(Extent::new(0, self.front.0));
        Ok(front.filter(|it| !it.is_empty()).into_iter().collect())
    }

    fn conventional_port(&self) -> usize {
        usize::from(self.settings.ports.disk_port().0)
    }

    fn bands(&self) -> Option<&PlannedBands> {
        Some(&self.bands)
    }

    fn build(&self, _: &Known<'_>, below: &Below<'_>) -> Result<Part, ConfigError> {
        let geometries: Vec<_> = below.offers.iter().map(|offer| &offer.geometry).collect();
        if self.settings.ports.copies && geometries[0].copies.is_none() {
            let words = "copies; accepted: a node of kind \"read-cache\"";
            return Err(wrong(&self.node, &words));
        }
        let is_durable = self.settings.journal.has_notes();
        let (layer, geometry) = Segments::new(self.settings.clone(), &geometries)
            .map_err(|error| wrong(&self.node, &error))?;
        let facts = Facts {
            is_durable,
            identity: layer.identity(),
            layout: layer.layout().clone(),
            areas: *layer.areas(),
        };
        Ok(Part {
            body: Body::Layer(Box::new(layer)),
            offer: Offer::over(geometry),
            facts: super::Facts::Segments(facts),
        })
    }
}

/// What reports need to know of a segment layout.
pub struct Facts {
    is_durable: bool,
    /// What its checkpoints say of the layout.
    pub identity: Identity,
    /// Where its blocks lie.
    pub layout: SegmentLayout,
    /// Where its journal and its slots lie.
    pub areas: SegmentAreas,
}

impl Reported for Facts {
    fn counters(&self) -> Vec<Counter> {
        vec![
            Counter::SegmentsRewritten,
            Counter::RewriteBlocksRead,
            Counter::DestagedBlocks,
            Counter::RewriteBlocksWritten,
            Counter::JournalBytesWritten,
        ]
    }

    fn gauges(&self) -> Vec<Gauge> {
        let journal = [Gauge::RolledBackBlocksMax];
        let journal = journal.into_iter().filter(|_| self.is_durable);
        let own = [Gauge::UnusedBytes, Gauge::TableBytes].into_iter();
        own.chain(journal).collect()
    }
}
