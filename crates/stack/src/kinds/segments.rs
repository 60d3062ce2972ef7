//! A segment layout: a shingled disk in segments that are rewritten in place.

use super::checksums::ChecksumKeys;
use super::ports::{BelowNodes, Form, PortKey, PortNodes, Ports, one, optional};
use super::segment_geometry::{
    Track, block_default, blocks_of, kappa_default, region_tracks_default, track_default,
};
use super::{
    Asked, Below, Body, Keeps, Kind, Known, Node, Offer, Part, Place, Planned, PlannedBands,
    Reported, World, Writer, wrong,
};
use crate::config::ConfigError;
use crate::durability::BLOCKS_MAX;
use crate::durability::JournalKeys;
use imbrex_core::counters::{Group, JOURNAL, REWRITES, SEGMENTS, TABLES, UNUSED};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::extent::Extent;
use imbrex_core::layer::Port;
use imbrex_core::translation::bands_fixed;
use imbrex_core::translation::segment::codec::Identity;
use imbrex_core::translation::segment::codec::RECORD_KINDS;
use imbrex_core::translation::segment::{
    Holds, Journaling, RegionLayout, RewriteReach, SegmentAreas, SegmentLayout, SegmentPorts,
    SegmentSettings, Segments, TrackLength,
};
use imbrex_core::units::BlockCount;
use imbrex_drives::keys;
use imbrex_drives::quantity::Size;
use imbrex_drives::{AnyWord, DiskDesign, DiskOptions, OnOff, Word};
use std::borrow::Cow;
use std::sync::Arc;

keys! {
    /// A segment layout.
    pub struct SegmentsConfig {
        /// Name of the node.
        name: String => "any";
        /// The disk, or `{ disk = .., copies = .., journal = .. }`: beside it a `read-cache` in which
        /// rewrites look for blocks, and a node that takes the journal.
        below: BelowNodes<SegmentsPorts> => "names of nodes";
        /// How long tracks are: a length is the paper's arithmetic over the addresses of the disk,
        /// whose real tracks set the time alone; `"disk"` lays regions onto the tracks of the drive,
        /// which a drive with overlapping tracks needs.
        track: Track = track_default() => r#"a size, `"disk"`"#;
        /// Length of a block; that of the buffer and the read cache.
        block: Size = block_default() => "a multiple of 4 KiB to 8 MiB";
        /// Tracks of a region: blocks of a segment.
        region_tracks: u64 = region_tracks_default() => 1..=1024;
        /// How many tracks the writer is wide, the written one counted.
        kappa: u64 = kappa_default() => 1..=64;
        /// Neighbouring regions overlap in opposite directions and share a guard, or all in one
        /// direction, a guard behind each.
        layout: Word<RegionLayout> = Word(RegionLayout::Wave) => AnyWord;
        /// A rewrite writes what is dirty or would be destroyed, or all blocks that hold data.
        rewrite: Word<RewriteReach> = Word(RewriteReach::Cascade) => AnyWord;
        /// All blocks hold data from the start, or those that were written.
        valid: Word<Holds> = Word(Holds::All) => AnyWord;
        /// A rewrite first writes to a slot elsewhere what it is about to write home, so that a power
        /// cut loses nothing; needed where the stack is served.
        journal: Word<OnOff> = Word(OnOff::On) => AnyWord;
        /// Whether it keeps a journal over restarts, as it does when it is served from files; not when
        /// absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        durable: Option<bool> => "`true`, `false`", "`false`; where it is served from files it always is durable";
        /// Blocks of the ring of that journal.
        #[serde(skip_serializing_if = "Option::is_none")]
        ring_blocks: Option<u64> => 1..=BLOCKS_MAX, "see [Durability](#durability)";
        /// A durable layout keeps a checksum of every 4 KiB, and a block that has changed on the disk
        /// is an error, not data.
        #[serde(skip_serializing_if = "Option::is_none")]
        checksums: Option<Word<OnOff>> => AnyWord, r#"`"on"`"#;
        /// Memory for their tables; a read or rewrite of which a page is not there reads it first.
        #[serde(skip_serializing_if = "Option::is_none")]
        table_memory: Option<Size> => "4 KiB or more", r#"`"64MiB"`"#;
    }
}

/// The disk of a segment layout, and what stands beside it.
pub struct SegmentsPorts;

impl Ports for SegmentsPorts {
    const PORTS: &'static [PortKey] = &[optional("copies"), optional("journal"), one("disk")];
    const FORM: Form = Form::Both;
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
            layout: self.layout.0,
            rewrite: self.rewrite.0,
            valid: self.valid.0,
            journal: self.journaling(world)?,
            checksums: self.checksums().settings(&self.name)?,
            offered: None,
            ports: self.segment_ports(),
        };
        let check = settings.check();
        check.map_err(|error| wrong(&self.name, &error))?;
        Ok(settings)
    }

    fn journaling(&self, world: &World<'_>) -> Result<Journaling, ConfigError> {
        let durable = Node::journal(self).and_then(|it| it.settings(world.options));
        match (durable, self.journal.0) {
            (None, OnOff::Off) => Ok(Journaling::Off),
            (None, OnOff::On) => Ok(Journaling::Slots),
            (Some(durable), OnOff::On) => Ok(Journaling::Durable(durable)),
            (Some(_), OnOff::Off) => Err(wrong(
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
            false => {
                SegmentAreas::new(settings, world.room(self.below.one("disk"), scale)?).blocks()
            }
        })
    }

    /// The layout on the node below.
    fn layout(
        &self,
        settings: &SegmentSettings,
        world: &World<'_>,
        scale: u64,
    ) -> Result<SegmentLayout, ConfigError> {
        let (disk, front) = (self.below.one("disk"), self.front(settings, world, scale)?);
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

impl SegmentsConfig {
    fn segment_ports(&self) -> SegmentPorts {
        SegmentPorts {
            copies: self.below.optional("copies").is_some(),
            journal: self.below.optional("journal").is_some(),
        }
    }
}

impl Kind for SegmentsConfig {
    const NAME: &'static str = "segments";
    const PLACE: Place = Place::Translation;
}

impl Node for SegmentsConfig {
    fn name(&self) -> &str {
        &self.name
    }

    fn ports(&self) -> Vec<PortNodes<'_>> {
        self.below.ports()
    }

    fn journal(&self) -> Option<JournalKeys<'_>> {
        Some(JournalKeys {
            below: self.below.optional("journal").unwrap_or(self.below.one("disk")),
            durable: self.durable,
            ring_blocks: self.ring_blocks,
            // Each rewrite flushes before it writes home.
            unflushed_blocks_max: None,
            others: vec![],
        })
    }

    fn members(&self) -> Vec<(Cow<'static, str>, Port)> {
        let ports = self.segment_ports();
        let journal = ports.journal.then(|| ("journal".into(), ports.journal_port()));
        let disk = Some(("disk".into(), ports.disk_port()));
        journal.into_iter().chain(disk).collect()
    }

    fn checks(&self, below: &str) -> bool {
        self.checksums().are_kept() || self.below.optional("journal") == Some(below)
    }

    fn record_kinds(&self) -> &'static [(u8, &'static str)] {
        &RECORD_KINDS
    }

    fn keeps(&self) -> Result<Keeps, ConfigError> {
        Ok(Keeps::Segments)
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
                true => world.room(self.below.one("disk"), asked.scale)?,
                false => BlockCount(layout.end()),
            },
            scale: asked.scale,
            writer: Writer::Tracks { whole },
            is_part: false,
        };
        let beside = |blocks, scale| Asked { blocks, scale, writer: Writer::Layer, is_part: false };
        // The last segment may reach past what is asked, and is rewritten as a whole.
        let copied = layout.blocks().max(asked.blocks);
        let copies = self.below.optional("copies").map(|_| beside(copied, asked.scale));
        let areas = SegmentAreas::new(&settings, BlockCount::ZERO).blocks();
        let journal = self.below.optional("journal").map(|_| beside(areas, 1));
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
    fn conventional(
        &self,
        _: &Known<'_>,
        _: &[Extent],
    ) -> Result<Vec<(usize, Extent)>, ConfigError> {
        let port = usize::from(self.settings.ports.disk_port().0);
        Ok(vec![(port, Extent::new(0, self.front.0))])
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
    fn rewrites_bad_block(&self, at: u64) -> bool {
        at >= self.areas.blocks().0
    }

    fn groups(&self) -> Vec<Group> {
        let mut groups = vec![REWRITES, SEGMENTS, UNUSED, TABLES];
        groups.extend(self.is_durable.then_some(JOURNAL));
        groups
    }
}
