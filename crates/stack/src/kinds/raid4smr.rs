//! RAID 4SMR: a parity array over shingled homes whose updates go to a data disk.

use super::checksums::table_bytes;
use super::ports::{BelowNodes, Form, PortKey, PortNodes, Ports, one, several};
use super::raid::{LOST_AFTER_S, check_copies, check_disks, with_spares};
use super::segment_geometry::blocks_of;
use super::{
    Asked, Below, Body, Keeps, Kind, Known, Node, NodeConfig, Offer, Part, Place, Planned,
    Reported, World, Writer, wrong,
};
use crate::config::ConfigError;
use crate::data_disk_table::DATA_DISK;
use crate::durability::{BLOCKS_MAX, JournalKeys};
use imbrex_core::array::raid4smr::{
    BandSource, FirstWrite, HomeBands, Placement, RECORD_KINDS, Raid4Smr, Raid4SmrKeeping,
    Raid4SmrLayout, Raid4SmrSettings, Raid4SmrShape, SlotOrder,
};
use imbrex_core::buffer::ContentKind;
use imbrex_core::counters::{ARRAY, Group, JOURNAL, RAID4SMR, UNUSED};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::layer::Port;
use imbrex_core::units::{BlockCount, Duration};
use imbrex_drives::keys;
use imbrex_drives::quantity::Size;
use imbrex_drives::{AnyWord, DiskDesign, DiskOptions, Word};
use imbrex_report::TableOfKind;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

keys! {
    /// A parity array over shingled homes.
    pub struct Raid4SmrConfig {
        /// Name of the node.
        name: String => "any";
        /// The shingled homes, the disk that takes what is written again, and the one with the parity.
        below: BelowNodes<Raid4SmrPorts> => "`{ homes = [..], data = .., parity = .. }`";
        /// Nodes that take the place of members that are lost, in this order, and are rebuilt at once. Their
        /// tracks do not overlap.
        #[serde(skip_serializing_if = "Option::is_none")]
        spares: Option<Vec<String>> => "a list of names", "none";
        /// Where the bands of homes come from: by arithmetic over their addresses, or laid onto the tracks of
        /// the drives, which contents need. Homes that are `host-managed` have their zones.
        bands: Word<BandSource> = Word(BandSource::Assumed) => AnyWord;
        /// Blocks of a track.
        track_blocks: u64 = 200 => 1..=1_000_000;
        /// Tracks of a band. On the tracks of a drive a band has the same number of blocks and as many tracks as
        /// these need.
        band_tracks: u64 = 200 => 1..=1_000_000;
        /// A block gets the next free place when it is written first, home after home; or that of its address.
        placement: Word<Placement> = Word(Placement::Append) => AnyWord;
        /// With `static`, which first writes go home: those that destroy nothing, or all, as if tracks did not
        /// overlap.
        first_write: Word<FirstWrite> = Word(FirstWrite::Rule) => AnyWord;
        /// Blocks of a band row on the data disk at which it is collected.
        #[serde(skip_serializing_if = "Option::is_none")]
        collect_at: Option<CollectAt> => "1 to the blocks of a band row less one, `\"band\"` or `\"never\"`", "`\"band\"`: as many as a band has";
        /// Which of the slots that were freed is used next, before new ones.
        slots: Word<SlotOrder> = Word(SlotOrder::Lowest) => AnyWord;
        /// What the data disk takes.
        #[serde(skip_serializing_if = "Option::is_none")]
        data_capacity: Option<Size> => "4 KiB to the size of the data disk and the parity disk", "as much as both have room for";
        /// Whether it keeps a journal, as it does when it is served from files; not when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        durable: Option<bool> => "`true`, `false`", "`false`; where it is served from files it always is durable";
        /// Blocks of the ring of its journal.
        #[serde(skip_serializing_if = "Option::is_none")]
        ring_blocks: Option<u64> => 1..=BLOCKS_MAX, "see [Durability](#durability)";
        /// Where it is durable: a member of which an operation takes longer than so many seconds is lost.
        #[serde(skip_serializing_if = "Option::is_none")]
        lost_after_s: Option<u64> => 1..=86_400, "60";
        /// Where it is durable: memory for the tables of checksums.
        #[serde(skip_serializing_if = "Option::is_none")]
        table_memory: Option<Size> => "a size, at least 4 KiB", r#"`"64 MiB"`"#;
    }
}

/// The members of a RAID 4SMR.
pub struct Raid4SmrPorts;

impl Ports for Raid4SmrPorts {
    const PORTS: &'static [PortKey] = &[several("homes"), one("data"), one("parity")];
    const FORM: Form = Form::Table;
}

/// When a band row is collected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(try_from = "toml::Value", into = "toml::Value")]
pub enum CollectAt {
    /// At so many blocks.
    Blocks(u64),
    /// At as many as a band has.
    Band,
    /// To make room alone.
    Never,
}

impl TryFrom<toml::Value> for CollectAt {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<CollectAt, String> {
        match (value.as_integer().map(u64::try_from), value.as_str()) {
            (Some(Ok(blocks)), _) => Ok(CollectAt::Blocks(blocks)),
            (_, Some("band")) => Ok(CollectAt::Band),
            (_, Some("never")) => Ok(CollectAt::Never),
            _ => Err(format!(
                "collect_at = {value}; accepted: 1 to the blocks of a band row less one, \"band\" or \
                 \"never\""
            )),
        }
    }
}

impl From<CollectAt> for toml::Value {
    fn from(from: CollectAt) -> toml::Value {
        match from {
            CollectAt::Blocks(blocks) => toml::Value::Integer(blocks.min(i64::MAX as u64) as i64),
            CollectAt::Band => "band".into(),
            CollectAt::Never => "never".into(),
        }
    }
}

impl Raid4SmrConfig {
    fn homes(&self) -> &[String] {
        self.below.several("homes")
    }

    fn spares(&self) -> &[String] {
        self.spares.as_deref().unwrap_or_default()
    }

    fn settings(&self) -> Result<Raid4SmrSettings, ConfigError> {
        let capacity = |size| blocks_of(&self.name, "data_capacity", size);
        let settings = Raid4SmrSettings {
            homes: self.homes().len(),
            spares: self.spares().len(),
            bands: self.bands.0,
            track_blocks: self.track_blocks,
            band_tracks: self.band_tracks,
            placement: self.placement.0,
            first_write: self.first_write.0,
            collect_at: match self.collect_at {
                // One band, which is as long as a zone where there are some.
                None | Some(CollectAt::Band) => Some(1),
                Some(CollectAt::Blocks(blocks)) => Some(blocks),
                Some(CollectAt::Never) => None,
            },
            slots: self.slots.0,
            data_capacity: self.data_capacity.map(capacity).transpose()?,
            offered: None,
        };
        settings.check().map_err(|error| wrong(&self.name, &error))?;
        Ok(settings)
    }

    /// What a home will tell of itself.
    fn home(&self, name: &str, world: &World<'_>, scale: u64) -> Result<Geometry, ConfigError> {
        let blocks = world.room(name, scale)?;
        let plain = Geometry::plain(blocks, Media::Shingled);
        let node = world.config.node(name).expect("a checked stack");
        if let NodeConfig::HostManaged(zoned) = node {
            let model = &world.drive_below(&**zoned)?.model;
            let zones = zoned.zones(model, blocks, scale).map_err(|error| wrong(name, &error))?;
            return Ok(Geometry { zones: Some(Arc::new(zones)), ..plain });
        }
        if self.bands.0 == BandSource::Assumed {
            return Ok(plain);
        }
        let Some(drive) = world.drives.get(name) else {
            let words = format!(
                "bands = \"disk\", and home `{name}` is no disk; accepted: nodes of kind \"disk\", or \
                 bands = \"arithmetic\""
            );
            return Err(wrong(&self.name, &words));
        };
        let options = DiskOptions { scale, ..DiskOptions::default() };
        let blank = DiskDesign::new(drive, options);
        Ok(blank.map_err(|error| ConfigError::words(error.to_string()))?.geometry().clone())
    }

    /// Where everything lies, for an array that offers so many blocks, or all that there is room for.
    fn lay_out(
        &self,
        blocks: Option<BlockCount>,
        world: &World<'_>,
        scale: u64,
    ) -> Result<LaidOut, ConfigError> {
        let settings = self.settings()?;
        let homes = self.homes().iter().map(|name| self.home(name, world, scale));
        let homes = homes.collect::<Result<Vec<_>, _>>()?;
        let homes: Vec<&Geometry> = homes.iter().collect();
        let room = |port: &str| world.room(self.below.one(port), scale);
        let members = (room("data")?, room("parity")?);
        let bands_over = |parity: BlockCount| {
            let bands = Raid4Smr::bands_of(&settings, &homes, parity);
            bands.map_err(|error| wrong(&self.name, &error))
        };
        let shorten = |mut bands: HomeBands| {
            if let Some(blocks) = blocks {
                let of_band_row = bands.band_blocks() * settings.homes as u64;
                bands.shorten(blocks.0.div_ceil(of_band_row) + 1);
            }
            bands
        };
        let bands = shorten(bands_over(members.1)?);
        let Some(durability) = self.journal().and_then(|it| it.settings(world.options)) else {
            let slots = settings.data_capacity.unwrap_or(members.0.min(members.1));
            return Ok(LaidOut { bands, slots, members, keeping: None });
        };
        self.check_durable(world)?;
        // No more blocks are on the data disk than there are places.
        let places = BlockCount(bands.rows() * settings.homes as u64);
        let capacity = settings.data_capacity.unwrap_or(places);
        let most = members.0.min(members.1).min(places).min(capacity);
        let layout = Raid4SmrLayout::new(&durability, settings.homes, &bands, most.0);
        if durability.ring_blocks < layout.ring_blocks_min() {
            let (found, least) = (durability.ring_blocks, layout.ring_blocks_min());
            let words = format!("ring_blocks = {found}; accepted: {least} and more for its bands");
            return Err(wrong(&self.name, &words));
        }
        let behind = |blocks: BlockCount| BlockCount(blocks.0.saturating_sub(layout.first_block()));
        let (data, parity) = (behind(members.0), behind(members.1));
        let bands = shorten(bands_over(parity)?);
        let slots = settings.data_capacity.unwrap_or(data.min(parity).min(places));
        let lost_after = Duration::from_ms(self.lost_after_s.unwrap_or(LOST_AFTER_S) * 1000);
        let memory_bytes = table_bytes(&self.name, self.table_memory)?;
        let keeping = Some(Raid4SmrKeeping { durability, layout, memory_bytes, lost_after });
        Ok(LaidOut { bands, slots, members, keeping })
    }

    /// Finds what a durable array does not take.
    fn check_durable(&self, world: &World<'_>) -> Result<(), ConfigError> {
        if self.first_write.0 == FirstWrite::Free {
            let words = "first_write = \"free\", which destroys blocks of other tracks and so is only simulated, \
                         without a journal; accepted where the array is durable: \"rule\"";
            return Err(wrong(&self.name, &words));
        }
        if let Some(home) = self.homes().iter().find(|home| self.shows_zones_at(home, world)) {
            let words = format!(
                "home `{home}` has zones that must be written in sequence, which is only simulated, without a \
                 journal; accepted where the array is durable: homes that take writes anywhere"
            );
            return Err(wrong(&self.name, &words));
        }
        check_copies(&self.name, 2 + self.spares().len())
    }

    fn too_much(&self, asked: BlockCount, room: BlockCount) -> ConfigError {
        let (asked, room) = (asked.bytes(), room.bytes());
        wrong(&self.name, &format_args!("{asked} B are asked of it; accepted: up to {room} B"))
    }
}

impl Kind for Raid4SmrConfig {
    const NAME: &'static str = "raid4smr";
    const PLACE: Place = Place::Joint;
    const TABLES: &'static [TableOfKind] = &[DATA_DISK];
}

impl Node for Raid4SmrConfig {
    fn name(&self) -> &str {
        &self.name
    }

    fn ports(&self) -> Vec<PortNodes<'_>> {
        with_spares(self.below.ports(), self.spares())
    }

    fn moves_addresses(&self) -> bool {
        true
    }

    fn journal(&self) -> Option<JournalKeys<'_>> {
        Some(JournalKeys {
            below: self.below.one("data"),
            durable: self.durable,
            ring_blocks: self.ring_blocks,
            // Its checkpoints flush what was written.
            unflushed_blocks_max: None,
            others: [
                ("lost_after_s", self.lost_after_s.is_some()),
                ("table_memory", self.table_memory.is_some()),
            ]
            .into_iter()
            .filter_map(|(key, is_stated)| is_stated.then_some(key))
            .collect(),
        })
    }

    fn members(&self) -> Vec<(Cow<'static, str>, Port)> {
        let homes = self.homes().len();
        let name = |at: usize| match at.checked_sub(homes) {
            None => format!("home-{at}").into(),
            Some(0) => "data".into(),
            Some(1) => "parity".into(),
            Some(spare) => format!("spare-{}", spare - 2).into(),
        };
        let ports = 0..homes + 2 + self.spares().len();
        ports.map(|at| (name(at), Port(at as u8))).collect()
    }

    fn record_kinds(&self) -> &'static [(u8, &'static str)] {
        &RECORD_KINDS
    }

    fn keeps(&self) -> Result<Keeps, ConfigError> {
        Ok(Keeps::ParityArray)
    }

    fn room(&self, world: &World<'_>, scale: u64) -> Result<BlockCount, ConfigError> {
        Ok(BlockCount(self.lay_out(None, world, scale)?.bands.host_blocks()))
    }

    fn plan(
        &self,
        asked: Asked,
        world: &World<'_>,
    ) -> Result<(Box<dyn Planned>, Vec<Asked>), ConfigError> {
        check_disks(&self.name, &self.below(), world.config)?;
        let mut settings = self.settings()?;
        let scale = asked.scale;
        let room = self.room(world, scale)?;
        if asked.blocks > room {
            return Err(self.too_much(asked.blocks, room));
        }
        let is_all = asked.blocks == room;
        let LaidOut { bands, slots, members, keeping } =
            self.lay_out(Some(asked.blocks), world, scale)?;
        if matches!(self.collect_at, None | Some(CollectAt::Band)) {
            settings.collect_at = Some(bands.band_blocks());
        }
        settings.offered = Some(asked.blocks);
        if keeping.is_some() {
            settings.data_capacity = Some(slots);
        }
        let first = keeping.map_or(0, |keeping| keeping.layout.first_block());
        let (data, parity) = members;
        let room = |name: &str| world.room(name, scale);
        let home = |at: usize, name: &String| -> Result<Asked, ConfigError> {
            let is_disk = world.drive_of(name).is_some() || self.shows_zones_at(name, world);
            let whole = is_all || !world.options.trim_disks;
            let blocks = match whole || self.shows_zones_at(name, world) {
                true => room(name)?,
                false => BlockCount(bands.end_of(at)),
            };
            let writer = if is_disk { Writer::Tracks { whole } } else { Writer::Layer };
            Ok(Asked { blocks, scale, writer, is_part: false })
        };
        let homes = self.homes().iter().enumerate().map(|(at, name)| home(at, name));
        let mut asks = homes.collect::<Result<Vec<_>, _>>()?;
        let beside = |blocks| Asked { blocks, scale, writer: Writer::Layer, is_part: false };
        let rows = BlockCount(bands.rows());
        let used = (0..settings.homes).map(|at| BlockCount(bands.end_of(at))).max();
        let longest = used.unwrap_or_default().max(rows).max(slots);
        let behind = |blocks: BlockCount| BlockCount(first + blocks.0);
        asks.push(beside(if is_all { data } else { behind(slots).min(data) }));
        asks.push(beside(if is_all { parity } else { behind(rows.max(slots)).min(parity) }));
        for spare in self.spares() {
            asks.push(beside(behind(longest).min(room(spare)?)));
        }
        let planned = PlannedRaid4Smr { name: self.name.clone(), settings, keeping };
        Ok((Box::new(planned), asks))
    }
}

impl Raid4SmrConfig {
    fn shows_zones_at(&self, name: &str, world: &World<'_>) -> bool {
        world.config.node(name).is_some_and(|node| node.node().shows_zones())
    }
}

/// Where everything of an array lies.
struct LaidOut {
    bands: HomeBands,
    /// Slots of the data disk.
    slots: BlockCount,
    /// What the data disk and the parity disk have.
    members: (BlockCount, BlockCount),
    /// How it keeps what it knows, if it does.
    keeping: Option<Raid4SmrKeeping>,
}

struct PlannedRaid4Smr {
    name: String,
    settings: Raid4SmrSettings,
    keeping: Option<Raid4SmrKeeping>,
}

impl PlannedRaid4Smr {
    /// Finds what would be counted right and hold the wrong data.
    fn check_contents(&self, below: &Below<'_>) -> Result<(), ConfigError> {
        if self.settings.first_write == FirstWrite::Free {
            return Err(wrong(
                &self.name,
                &"first_write = \"free\", which destroys blocks of other tracks; accepted where disks hold \
                  contents: \"rule\"",
            ));
        }
        let homes = &below.offers[..self.settings.homes];
        let overlaps = |offer: &&&Offer| offer.geometry.overlaps_before(offer.geometry.blocks);
        match homes.iter().find(overlaps) {
            Some(_) if self.settings.bands == BandSource::Assumed => Err(wrong(
                &self.name,
                &"bands = \"arithmetic\" over drives whose tracks overlap; accepted where disks hold \
                  contents: \"disk\"",
            )),
            _ => Ok(()),
        }
    }
}

impl Planned for PlannedRaid4Smr {
    fn build(&self, known: &Known<'_>, below: &Below<'_>) -> Result<Part, ConfigError> {
        if known.contents != ContentKind::Counted {
            self.check_contents(below)?;
        }
        let geometries: Vec<_> = below.offers.iter().map(|offer| &offer.geometry).collect();
        let built = Raid4Smr::new(self.settings.clone(), self.keeping, &geometries);
        let (layer, geometry) = built.map_err(|error| wrong(&self.name, &error))?;
        let facts = Facts { shape: layer.shape() };
        Ok(Part {
            body: Body::Layer(Box::new(layer)),
            offer: Offer::over(geometry),
            facts: super::Facts::Raid4Smr(facts),
        })
    }
}

/// What reports, and whoever reads its members, need to know of the array.
pub struct Facts {
    /// Where it has everything; none where it keeps nothing.
    pub shape: Option<Raid4SmrShape>,
}

impl Reported for Facts {
    fn groups(&self) -> Vec<Group> {
        match self.shape.is_some() {
            true => vec![ARRAY, RAID4SMR, UNUSED, JOURNAL],
            false => vec![ARRAY, RAID4SMR, UNUSED],
        }
    }
}
